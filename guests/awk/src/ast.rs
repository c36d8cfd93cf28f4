//! A program as it was written.

use std::rc::Rc;

/// The name of a variable, parameter or function.
pub type Name = Rc<str>;

/// A whole program.
#[derive(Default, Debug)]
pub struct Program {
    /// `BEGIN` actions.
    pub begin: Vec<Vec<Stmt>>,
    /// `BEGINFILE` actions.
    pub begin_file: Vec<Vec<Stmt>>,
    /// Patterns and their actions.
    pub rules: Vec<Rule>,
    /// `ENDFILE` actions.
    pub end_file: Vec<Vec<Stmt>>,
    /// `END` actions.
    pub end: Vec<Vec<Stmt>>,
    /// Functions.
    pub functions: Vec<Function>,
}

/// A pattern and its action.
#[derive(Debug)]
pub struct Rule {
    /// For which records.
    pub pattern: Pattern,
    /// What to do; nothing written means to print the record.
    pub action: Option<Vec<Stmt>>,
    /// Where it stands.
    pub line: Line,
}

/// Which records a rule is for.
#[derive(Debug)]
pub enum Pattern {
    /// All.
    Always,
    /// Those for which this holds.
    When(Expr),
    /// From one for which the first holds to one for which the second holds.
    Range(Expr, Expr),
}

/// A function of the program's.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// Its parameters, local variables among them.
    pub params: Vec<Name>,
    /// Its body.
    pub body: Vec<Stmt>,
    /// Where it stands.
    pub line: Line,
}

/// A place in the program: which source, and which line of it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Line {
    /// Which source.
    pub source: u32,
    /// Which line.
    pub number: u32,
}

/// A statement and where it stands.
#[derive(Debug)]
pub struct Stmt {
    /// Where.
    pub line: Line,
    /// What.
    pub kind: StmtKind,
}

/// A statement.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum StmtKind {
    Expr(Expr),
    Print { args: Vec<Expr>, to: Option<Redirect> },
    Printf { args: Vec<Expr>, to: Option<Redirect> },
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    While(Expr, Box<Stmt>),
    Do(Box<Stmt>, Expr),
    For { first: Option<Box<Stmt>>, test: Option<Expr>, next: Option<Box<Stmt>>, body: Box<Stmt> },
    ForIn { var: Expr, array: Expr, body: Box<Stmt> },
    Switch(Expr, Vec<Case>),
    Block(Vec<Stmt>),
    Delete { array: Expr, keys: Vec<Expr> },
    Exit(Option<Expr>),
    Return(Option<Expr>),
    Next,
    NextFile,
    Break,
    Continue,
}

/// One branch of a `switch`; `default` has no value.
#[derive(Debug)]
pub struct Case {
    /// What it is for.
    pub value: Option<Expr>,
    /// What it does.
    pub body: Vec<Stmt>,
}

/// Where `print` writes.
#[derive(Debug)]
pub struct Redirect {
    /// How.
    pub kind: RedirectKind,
    /// The file or command.
    pub target: Expr,
}

/// How `print` writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RedirectKind {
    /// `>`
    File,
    /// `>>`
    Append,
    /// `|`
    Command,
    /// `|&`
    Coprocess,
}

/// Arithmetic on two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Arith {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    Pow,
}

/// A comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Relation {
    Less,
    LessEqual,
    Equal,
    NotEqual,
    Greater,
    GreaterEqual,
}

/// An expression.
#[derive(Debug)]
#[allow(missing_docs)]
pub enum Expr {
    Number(f64),
    Text(Vec<u8>),
    Regex(Vec<u8>),
    /// `@/…/`
    TypedRegex(Vec<u8>),
    Var(Name),
    Field(Box<Expr>),
    /// An element. The array is a variable or an element itself.
    Index(Box<Expr>, Vec<Expr>),
    Assign(Box<Expr>, Box<Expr>),
    Update(Arith, Box<Expr>, Box<Expr>),
    Step {
        target: Box<Expr>,
        up: bool,
        prefix: bool,
    },
    Cond(Box<Expr>, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Not(Box<Expr>),
    In(Vec<Expr>, Box<Expr>),
    Match {
        negated: bool,
        subject: Box<Expr>,
        pattern: Box<Expr>,
    },
    Compare(Relation, Box<Expr>, Box<Expr>),
    Concat(Vec<Expr>),
    Binary(Arith, Box<Expr>, Box<Expr>),
    Negate(Box<Expr>),
    Plus(Box<Expr>),
    /// In parentheses, which end what `print` and `getline` would make of it.
    Group(Box<Expr>),
    /// `(a, b)`, for `print` and `in` alone.
    List(Vec<Expr>),
    Call(Name, Vec<Expr>, Line),
    /// `@name(…)`: the function that a variable names.
    CallNamed(Name, Vec<Expr>),
    Builtin(Builtin, Vec<Expr>),
    Getline {
        from: Source,
        var: Option<Box<Expr>>,
    },
}

/// Where `getline` reads.
#[derive(Debug)]
pub enum Source {
    /// The main input.
    Main,
    /// `< file`
    File(Box<Expr>),
    /// `command |`
    Command(Box<Expr>),
    /// `command |&`
    Coprocess(Box<Expr>),
}

macro_rules! builtins {
    ($($variant:ident $name:literal $least:literal $most:literal $numeric:literal,)*) => {
        /// A function of the language.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Builtin { $($variant),* }

        impl Builtin {
            /// The function of this name.
            pub fn named(name: &str) -> Option<Builtin> {
                Some(match name { $($name => Builtin::$variant,)* _ => return None })
            }

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name),* }
            }

            /// How many arguments it takes, at least and at most.
            pub fn arity(self) -> (usize, usize) {
                match self { $(Builtin::$variant => ($least, $most)),* }
            }

            /// Whether its answer is a number.
            pub fn is_numeric(self) -> bool {
                match self { $(Builtin::$variant => $numeric),* }
            }
        }
    };
}

builtins! {
    And "and" 2 255 true,
    Asort "asort" 1 3 true,
    Asorti "asorti" 1 3 true,
    Atan2 "atan2" 2 2 true,
    Close "close" 1 2 true,
    Compl "compl" 1 1 true,
    Cos "cos" 1 1 true,
    Exp "exp" 1 1 true,
    Fflush "fflush" 0 1 true,
    Gensub "gensub" 3 4 false,
    Gsub "gsub" 2 3 true,
    Index "index" 2 2 true,
    Int "int" 1 1 true,
    Isarray "isarray" 1 1 true,
    Length "length" 0 1 true,
    Log "log" 1 1 true,
    Lshift "lshift" 2 2 true,
    Match "match" 2 3 true,
    Mktime "mktime" 1 2 true,
    Or "or" 2 255 true,
    Patsplit "patsplit" 2 4 true,
    Rand "rand" 0 0 true,
    Rshift "rshift" 2 2 true,
    Sin "sin" 1 1 true,
    Split "split" 2 4 true,
    Sprintf "sprintf" 1 100000 false,
    Sqrt "sqrt" 1 1 true,
    Srand "srand" 0 1 true,
    Strftime "strftime" 0 3 false,
    Strtonum "strtonum" 1 1 true,
    Sub "sub" 2 3 true,
    Substr "substr" 2 3 false,
    System "system" 1 1 true,
    Systime "systime" 0 0 true,
    Tolower "tolower" 1 1 false,
    Toupper "toupper" 1 1 false,
    Typeof "typeof" 1 2 false,
    Xor "xor" 2 255 true,
}
