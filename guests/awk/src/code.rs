//! What a program is compiled to: operations for a machine with two stacks, one of numbers and one of values.
//!
//! The compiler knows of most expressions whether they make a number; those never become values on the way.

use crate::ast::{Arith, Builtin, Line, Name, Relation};
use crate::regex::Regex;
use crate::value::Value;
use std::rc::Rc;

/// A compiled program.
#[derive(Default)]
pub struct Code {
    /// All operations; actions and functions are stretches of it.
    pub ops: Vec<Op>,
    /// The line each operation comes from.
    pub lines: Vec<Line>,
    /// The names of the sources that lines refer to; none is the command line.
    pub sources: Vec<Option<String>>,
    /// Constants.
    pub constants: Vec<Value>,
    /// Patterns.
    pub regexes: Vec<Rc<Regex>>,
    /// Functions.
    pub functions: Vec<FunctionCode>,
    /// The global variables' names, the special ones first.
    pub globals: Vec<Name>,
    /// How many range patterns there are.
    pub ranges: usize,
    /// Where the actions begin, if there are any.
    pub begin: Option<u32>,
    /// As above.
    pub begin_file: Option<u32>,
    /// As above; this one tries all patterns.
    pub rules: Option<u32>,
    /// As above.
    pub end_file: Option<u32>,
    /// As above.
    pub end: Option<u32>,
}

/// A compiled function.
pub struct FunctionCode {
    /// Its name.
    pub name: Name,
    /// Where it begins.
    pub entry: u32,
    /// Its parameters' names.
    pub params: Vec<Name>,
}

/// The variables that mean something to the machine, at their places among the globals.
pub mod special {
    /// Their names, in order.
    pub const NAMES: &[&str] = &[
        "NF",
        "NR",
        "FNR",
        "FS",
        "OFS",
        "ORS",
        "RS",
        "SUBSEP",
        "CONVFMT",
        "OFMT",
        "IGNORECASE",
        "FIELDWIDTHS",
        "FPAT",
        "RT",
        "FILENAME",
        "RSTART",
        "RLENGTH",
        "ENVIRON",
        "ARGC",
        "ARGV",
        "ARGIND",
        "ERRNO",
        "PROCINFO",
    ];
    macro_rules! places {
        ($($name:ident)*) => { places!(@ 0; $($name)*); };
        (@ $at:expr; $name:ident $($rest:ident)*) => {
            #[allow(missing_docs, dead_code)]
            pub const $name: u32 = $at;
            places!(@ $at + 1; $($rest)*);
        };
        (@ $at:expr;) => {};
    }
    places! {
        NF NR FNR FS OFS ORS RS SUBSEP CONVFMT OFMT IGNORECASE FIELDWIDTHS FPAT
        RT FILENAME RSTART RLENGTH ENVIRON ARGC ARGV ARGIND ERRNO PROCINFO
    }
    /// Those below are kept by the machine itself, as numbers.
    pub const COUNTERS: u32 = FS;
    /// Setting one of those below changes how the machine works.
    pub const HOOKED: u32 = RT;
}

/// Where an array is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// In a global variable.
    Global(u32),
    /// In a parameter or local variable.
    Local(u32),
    /// On the stack of values, where it was put.
    Stack,
}

/// `++` and `--`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Step {
    /// Which of them.
    pub up: bool,
    /// What it answers.
    pub answer: StepAnswer,
}

/// What `++` and `--` answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StepAnswer {
    /// Nothing: nobody asks.
    None,
    /// The number before.
    Old,
    /// The number after.
    New,
}

/// Where output goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dest {
    /// To standard output.
    Stdout,
    /// To the file named on the stack.
    File,
    /// To the end of the file named on the stack.
    Append,
    /// To the command on the stack.
    Command,
    /// To the command on the stack, which is read from too.
    Coprocess,
}

/// Where `getline` reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum From {
    /// The main input.
    Main,
    /// The file named on the stack.
    File,
    /// The command on the stack.
    Command,
    /// The command on the stack, which is written to as well.
    Coprocess,
}

/// An operation. *Pops* and *pushes* are about values, or about numbers where the name ends in `Num`; the flag of a
/// store says whether what was stored is left on the stack.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Op {
    // Constants and variables.
    Num(f64),
    Const(u32),
    Regex(u32),
    GlobalNum(u32),
    LocalNum(u32),
    CounterNum(u32),
    FieldNum(u32),
    FieldAtNum,
    ElemNum(Place),
    Global(u32),
    Local(u32),
    Field(u32),
    FieldAt,
    Elem(Place),
    /// A variable as an argument: it may become an array there.
    ArgGlobal(u32),
    ArgLocal(u32),
    /// An element as an argument: it may be an array.
    ArgElem(Place),
    Array(Place),
    SubArray(Place),
    JoinKeys(u32),

    // Between the stacks.
    Box,
    Unbox,
    Drop,
    DropNum,

    // Arithmetic, comparison, joining.
    Add,
    Sub,
    Mul,
    Arith(Arith),
    Negate,
    CompareNum(Relation),
    Compare(Relation),
    Concat(u32),
    Match {
        regex: u32,
        negated: bool,
    },
    MatchField {
        field: u32,
        regex: u32,
        negated: bool,
    },
    MatchDynamic {
        negated: bool,
    },
    In(Place),

    // Stores.
    SetGlobal(u32, bool),
    SetLocal(u32, bool),
    SetSpecial(u32, bool),
    SetField(bool),
    SetElem(Place, bool),
    SetGlobalNum(u32, bool),
    SetLocalNum(u32, bool),
    AppendGlobal(u32, bool),
    AppendLocal(u32, bool),
    UpdateGlobal(u32, Arith, bool),
    UpdateLocal(u32, Arith, bool),
    UpdateSpecial(u32, Arith, bool),
    UpdateField(Arith, bool),
    UpdateElem(Place, Arith, bool),
    StepGlobal(u32, Step),
    StepLocal(u32, Step),
    StepSpecial(u32, Step),
    StepField(Step),
    StepElem(Place, Step),
    Delete(Place),
    DeleteAll(Place),

    // Where to go on.
    Jump(u32),
    JumpNum(bool, u32),
    JumpVal(bool, u32),
    JumpCompareNum(Relation, bool, u32),
    JumpCompare(Relation, bool, u32),
    JumpInRange(u32, u32),
    SetRange(u32, bool),
    /// Compares the value below with the one on top, and goes on elsewhere, without both, if they are equal.
    CaseEqual(u32),
    CaseMatch(u32, u32),
    ForIn(Place),
    NextKey(u32),
    EndForIn,
    Call {
        function: u32,
        args: u32,
    },
    CallNamed {
        args: u32,
    },
    Return,
    Next,
    NextFile,
    Exit {
        with_code: bool,
    },
    Stop,

    // Input and output.
    Getline(From),
    /// Leaves what was read on the stack of values; goes on elsewhere if nothing was.
    GetlineVar(From, u32),
    OutField(u32),
    OutConst(u32),
    Out,
    OutNum,
    OutSeparator,
    EndPrint(Dest),
    Print(u32, Dest),
    Printf(u32, Dest),

    // Functions of the language.
    Builtin(Builtin, u32),
    LengthField(u32),
    /// Leaves the changed text on the stack of values; goes on elsewhere if there was nothing to change.
    Subst {
        global: bool,
        skip: u32,
    },
}
