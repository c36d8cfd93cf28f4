//! The form a script is lowered to: parsed once, words cut into pieces, arithmetic compiled.

use crate::arith::Arith;
use std::cell::OnceCell;
use std::rc::Rc;

/// Commands in order.
#[derive(Debug, Default, Clone)]
pub struct List {
    pub items: Vec<AndOr>,
}

/// Pipelines joined by `&&` and `||`.
#[derive(Debug, Clone)]
pub struct AndOr {
    pub first: Pipeline,
    pub rest: Vec<(Connector, Pipeline)>,
    pub background: bool,
    /// A line ends behind it.
    pub ends_line: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connector {
    And,
    Or,
}

/// Commands joined by `|`.
#[derive(Debug, Clone)]
pub struct Pipeline {
    pub negated: bool,
    pub timed: Option<Timing>,
    pub stages: Vec<Command>,
}

/// How `time` reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    Bash,
    Posix,
}

#[derive(Debug, Clone)]
pub enum Command {
    Simple(Simple),
    Compound(Rc<Compound>),
    Function(Rc<Function>),
    Coproc(Rc<Coproc>),
}

impl Command {
    /// The line it stands on, if that is known.
    pub fn line(&self) -> Option<u32> {
        match self {
            Command::Simple(simple) => Some(simple.line),
            Command::Compound(compound) => Some(compound.line),
            Command::Function(_) | Command::Coproc(_) => None,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct Simple {
    pub line: u32,
    pub assignments: Vec<Assignment>,
    pub words: Vec<Arg>,
    pub redirects: Vec<Redirect>,
}

/// A word of a simple command. To `declare` and its kin an assignment is not just a word: it is not
/// split, and may hold an array.
#[derive(Debug, Clone)]
pub enum Arg {
    Word(Word),
    Assignment(Assignment),
}

#[derive(Debug, Clone)]
pub struct Assignment {
    pub name: Rc<[u8]>,
    pub subscript: Option<Subscript>,
    pub append: bool,
    pub value: AssignedValue,
}

#[derive(Debug, Clone)]
pub enum AssignedValue {
    Scalar(Word),
    Array(Vec<Element>),
}

/// One element of `(…)` in an array assignment.
#[derive(Debug, Clone)]
pub struct Element {
    pub subscript: Option<Subscript>,
    pub append: bool,
    pub value: Word,
}

/// What stands between `[` and `]`: a key to an associative array, arithmetic to an indexed one.
#[derive(Debug, Clone)]
pub struct Subscript {
    pub word: Word,
    pub arith: Arith,
}

#[derive(Debug, Clone)]
pub struct Compound {
    pub line: u32,
    pub kind: CompoundKind,
    pub redirects: Vec<Redirect>,
}

#[derive(Debug, Clone)]
pub enum CompoundKind {
    Group(List),
    Subshell(List),
    If { arms: Vec<(List, List)>, otherwise: Option<List> },
    While { condition: List, body: List, until: bool },
    For { name: Rc<[u8]>, words: Option<Vec<Word>>, body: List },
    Select { name: Rc<[u8]>, words: Option<Vec<Word>>, body: List },
    ArithFor { first: Option<Arith>, condition: Option<Arith>, step: Option<Arith>, body: List },
    Case { word: Word, arms: Vec<CaseArm> },
    Arith(Arith),
    Condition(Condition),
}

#[derive(Debug, Clone)]
pub struct CaseArm {
    pub patterns: Vec<Word>,
    pub body: List,
    pub end: CaseEnd,
}

/// `;;`, `;&` or `;;&`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaseEnd {
    Break,
    FallThrough,
    Continue,
}

#[derive(Debug)]
pub struct Function {
    pub name: Rc<[u8]>,
    pub body: Rc<Compound>,
    /// The line its name is on.
    pub line: u32,
    /// The line its body ends on.
    pub end: u32,
    /// The file it was defined in, once it was.
    pub source: std::cell::OnceCell<Rc<[u8]>>,
}

#[derive(Debug)]
pub struct Coproc {
    pub name: Rc<[u8]>,
    pub body: Command,
}

/// The inside of `[[ ]]`.
#[derive(Debug, Clone)]
pub enum Condition {
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
    Group(Box<Condition>),
    Unary(Vec<u8>, Word),
    Binary(Word, Vec<u8>, Word),
    Word(Word),
}

#[derive(Debug, Clone)]
pub struct Redirect {
    pub fd: RedirectFd,
    pub action: RedirectAction,
}

/// Which descriptor a redirection is about.
#[derive(Debug, Clone)]
pub enum RedirectFd {
    /// 0 or 1, by the operator.
    Default,
    Number(i32),
    /// `{name}>`: a free one, whose number goes to the variable.
    Variable(Rc<[u8]>),
}

#[derive(Debug, Clone)]
pub enum RedirectAction {
    Read(Word),
    Write(Word),
    Clobber(Word),
    Append(Word),
    ReadWrite(Word),
    /// `&>` and `>&word`, `&>>`.
    WriteBoth(Word),
    AppendBoth(Word),
    /// `<&word`, `>&word`: a number, `-`, or `number-`.
    DupInput(Word),
    DupOutput(Word),
    HereString(Word),
    HereDocument(Rc<HereDocument>),
}

/// Its body is read when the line with its operator ends, after the operator was parsed.
#[derive(Debug, Default)]
pub struct HereDocument {
    pub body: OnceCell<Word>,
    /// The line of its operator.
    pub line: u32,
    pub delimiter: Vec<u8>,
    pub quoted: bool,
    pub strip_tabs: bool,
}

/// A word, as pieces that stand beside each other.
#[derive(Debug, Clone, Default)]
pub struct Word {
    pub pieces: Vec<Piece>,
    /// How it was written, for `declare -f`; none when the pieces say it. Of the words a brace expression became,
    /// the first has it all and the others have nothing.
    pub raw: Option<Box<[u8]>>,
}

impl Word {
    /// The text of a word without expansions or quotes.
    pub fn as_plain(&self) -> Option<&[u8]> {
        match self.pieces.as_slice() {
            [] => Some(b""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The text of a word without expansions, quotes removed.
    pub fn as_literal(&self) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        literal(&self.pieces, &mut text).then_some(text)
    }
}

fn literal(pieces: &[Piece], text: &mut Vec<u8>) -> bool {
    pieces.iter().all(|piece| match piece {
        Piece::Text(part) | Piece::Quoted(part) => {
            text.extend_from_slice(part);
            true
        }
        Piece::Double(inner) => literal(inner, text),
        _ => false,
    })
}

#[derive(Debug, Clone)]
pub enum Piece {
    /// Unquoted text, where `*?[` are special. Inside [`Piece::Double`] it is quoted.
    Text(Vec<u8>),
    /// Text out of `'…'`, `$'…'` or after a backslash.
    Quoted(Vec<u8>),
    /// `"…"`.
    Double(Vec<Piece>),
    /// `~` or `~user` where it is expanded.
    Tilde(Vec<u8>),
    Param(Box<Param>),
    Command(Rc<Substitution>),
    Arith(Box<Arith>),
    /// `<(…)` or `>(…)`.
    Process {
        reads: bool,
        body: Rc<List>,
    },
}

/// `$(…)` or backquotes.
#[derive(Debug)]
pub struct Substitution {
    pub list: List,
    /// `$(<file)`: the file's contents without a process.
    pub file: Option<Word>,
    /// The text between backquotes, if it cannot be read.
    pub unread: Option<Vec<u8>>,
    /// Its text, if it has several lines: bash counts them from the line of the command around it.
    pub lines: Option<Box<[u8]>>,
    /// It stands in a here-document and has no end.
    pub unclosed: bool,
}

/// `$name` or `${…}`.
#[derive(Debug, Clone)]
pub struct Param {
    pub name: ParamName,
    pub subscript: Option<ParamSubscript>,
    /// `${!name…}`.
    pub indirect: bool,
    /// `$name` without braces, which brace expansion may still lengthen.
    pub bare: bool,
    pub op: ParamOp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParamName {
    Variable(Rc<[u8]>),
    Positional(usize),
    /// One of `@*#?-$!`.
    Special(u8),
}

#[derive(Debug, Clone)]
pub enum ParamSubscript {
    /// `[@]`
    At,
    /// `[*]`
    Star,
    One(Box<Subscript>),
}

#[derive(Debug, Clone)]
pub enum ParamOp {
    None,
    /// `${#x}`
    Length,
    /// `${!prefix*}` (join: `*`) and `${!prefix@}`.
    Names {
        star: bool,
    },
    /// `${!name[@]}`: the keys.
    Keys {
        star: bool,
    },
    /// `-`, `=`, `?`, `+`; with a colon an empty value counts as unset.
    Alternative {
        kind: u8,
        colon: bool,
        word: Word,
    },
    /// `#`, `##`, `%`, `%%`.
    Remove {
        suffix: bool,
        longest: bool,
        pattern: Word,
    },
    Replace {
        anchor: Anchor,
        pattern: Word,
        with: Word,
    },
    /// `^`, `,` or `~`, once or for all characters.
    Case {
        kind: u8,
        all: bool,
        pattern: Option<Word>,
    },
    Substring {
        offset: Arith,
        length: Option<Arith>,
    },
    /// `@Q` and the like.
    Transform(u8),
    /// `@` with anything else: an error unless the parameter is unset.
    BadTransform(Vec<u8>),
    /// What bash calls a bad substitution, when it gets there.
    Bad(Vec<u8>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    First,
    All,
    Start,
    End,
}
