//! What a script becomes.

use super::replace::{Substitution, Translation};
use std::cell::Cell;
use std::rc::Rc;
use wardian_regex::Regex;

/// A whole script.
pub struct Script {
    pub commands: Vec<Command>,
    /// The files that are written to, by number.
    pub written: Vec<Vec<u8>>,
    /// The files that `R` reads, by number.
    pub read: Vec<Vec<u8>>,
    /// It begins with `#n`.
    pub starts_quiet: bool,
}

/// A pattern; none is the one that was last used.
pub type Pattern = Option<Rc<Regex>>;

/// The lines that a command is for.
pub enum Address {
    Line(u64),
    /// Every so many lines from one on.
    Step(u64, u64),
    Last,
    Pattern(Pattern),
}

/// Where a range of lines ends.
pub enum End {
    Line(u64),
    /// So many lines behind the first.
    After(u64),
    /// At the next line whose number is a multiple.
    Multiple(u64),
    Last,
    Pattern(Pattern),
}

/// Whether a line is in the range of a command.
#[derive(Clone, Copy, PartialEq)]
pub enum Range {
    Outside,
    /// Up to a line, if that is known.
    Inside(Option<u64>),
}

/// A command and its addresses.
pub struct Command {
    pub first: Option<Address>,
    pub second: Option<End>,
    pub negated: bool,
    pub range: Cell<Range>,
    pub action: Action,
}

/// What a command does.
pub enum Action {
    /// `{`: goes on behind the block where its addresses do not fit.
    Block(usize),
    /// `}`, a label, a comment.
    Nothing,
    Append(Vec<u8>),
    Insert(Vec<u8>),
    Change(Vec<u8>),
    Branch(usize),
    BranchIfReplaced(usize),
    BranchUnlessReplaced(usize),
    Delete,
    DeleteFirst,
    /// A command whose output is printed; an empty one is what the pattern space holds, and its output replaces that.
    Execute(Vec<u8>),
    FileName,
    Get,
    GetMore,
    Hold,
    HoldMore,
    Exchange,
    List(Option<usize>),
    Next,
    NextMore,
    Number,
    Print,
    PrintFirst,
    Quit(i32),
    QuitSilently(i32),
    ReadFile(Vec<u8>),
    ReadLine(usize),
    Substitute(Box<Substitution>),
    Translate(Box<Translation>),
    Write(usize),
    WriteFirst(usize),
    Zap,
}
