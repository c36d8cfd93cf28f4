//! A compiled program. Variables and closures are found by counting back through the environment; functions are known
//! outright. A program lives as long as the process, so its parts refer to each other plainly.

use std::cell::OnceCell;

use crate::builtins::Native;
use crate::value::{Str, Value};

/// An expression.
pub struct Expr {
    pub node: Node,
    /// Whether it gives exactly one result (or an error) without the machine's help: no generator, no call.
    pub direct: bool,
    /// Whether it gives its results, however many, without the machine's help.
    pub streams: bool,
}

/// What an expression does.
pub enum Node {
    Identity,
    Const(Value),
    /// The value so many entries back.
    Variable(usize),
    Pipe(Entry, Entry),
    Comma(Entry, Entry),
    /// `TERM[KEY]`.
    Index(Entry, Entry),
    /// `TERM[FROM:TO]`.
    Slice(Entry, Option<Entry>, Option<Entry>),
    /// `TERM[]`.
    Iterate(Entry),
    /// `[…]`.
    Collect(Entry),
    /// `{…}`.
    Object(Vec<(Entry, Entry)>),
    Negate(Entry),
    Binary(Operator, Entry, Entry),
    And(Entry, Entry),
    Or(Entry, Entry),
    /// `A // B`.
    Otherwise(Entry, Entry),
    If(Entry, Entry, Entry),
    Try(Entry, Option<Entry>),
    Bind(Bind, Entry),
    Reduce(Bind, Entry, Entry),
    Foreach(Bind, Entry, Entry, Option<Entry>),
    /// The entry it makes is what `Break` counts back to.
    Label(Entry),
    Break(usize),
    /// `PATHS |= UPDATE`.
    Update(Entry, Entry),
    /// A string with interpolations, each through a format.
    Text(Str, Vec<Part>),
    /// A function of ours with its arguments, all their combinations.
    Native(Native, Vec<Entry>),
    /// A function that the machine itself carries out.
    Special(Special, Vec<Entry>),
    /// A function of the program, whose surroundings are so many entries back.
    Call(&'static Function, usize, Vec<Entry>),
    /// The closure so many entries back.
    Closure(usize),
}

/// A part of the tree.
pub type Entry = &'static Expr;

/// `SOURCE as PATTERN ?// PATTERN… |`.
pub struct Bind {
    pub source: Entry,
    pub patterns: Vec<Pattern>,
    /// How many variables the patterns have, together.
    pub variables: usize,
}

/// What takes a value apart. Variables are numbered within the bind.
pub enum Pattern {
    Variable(usize),
    Array(Vec<Pattern>),
    Object(Vec<(Key, Option<Pattern>)>),
}

/// A key in a pattern: what gives it, and the variable that takes the whole value, if it was written `$name`.
pub struct Key {
    pub expr: Entry,
    pub variable: Option<usize>,
}

/// A piece of a string.
pub enum Part {
    Text(Str),
    Program(Entry),
}

/// A function of a program.
pub struct Function {
    pub name: String,
    pub parameters: usize,
    /// Set once it is read to its end: it may call itself.
    pub body: OnceCell<Entry>,
}

/// Operators that take two values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// What the machine does itself, since it steers the flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Special {
    Empty,
    Path,
    GetPath,
    Select,
    /// `limit(n; f)`, and `first(f)` with the one.
    Limit,
    First,
    Range,
    Inputs,
    Recurse,
    /// All documents, for yq's `eval-all`.
    Documents,
}

impl Expr {
    /// Keeps an expression for good.
    pub fn keep(node: Node) -> Entry {
        let direct = node.is_direct();
        let streams = direct || node.streams();
        Box::leak(Box::new(Expr { node, direct, streams }))
    }
}

impl Node {
    fn is_direct(&self) -> bool {
        match self {
            Node::Identity | Node::Const(_) | Node::Variable(_) => true,
            Node::Pipe(one, two)
            | Node::Index(one, two)
            | Node::Binary(_, one, two)
            | Node::And(one, two)
            | Node::Or(one, two)
            | Node::Otherwise(one, two) => one.direct && two.direct,
            Node::Slice(term, from, to) => {
                term.direct && from.is_none_or(|from| from.direct) && to.is_none_or(|to| to.direct)
            }
            Node::Object(entries) => entries.iter().all(|(key, value)| key.direct && value.direct),
            Node::Negate(operand) => operand.direct,
            Node::Collect(inner) => inner.streams,
            Node::If(condition, yes, no) => condition.direct && yes.direct && no.direct,
            Node::Try(body, Some(handler)) => body.direct && handler.direct,
            Node::Bind(bind, body) => bind.is_plain() && bind.source.direct && body.direct,
            Node::Text(_, parts) => parts.iter().all(|part| match part {
                Part::Text(_) => true,
                Part::Program(program) => program.direct,
            }),
            Node::Native(_, arguments) => arguments.iter().all(|argument| argument.direct),
            _ => false,
        }
    }
}

impl Node {
    fn streams(&self) -> bool {
        match self {
            Node::Pipe(one, two) | Node::Comma(one, two) => one.streams && two.streams,
            Node::Iterate(term) => term.streams,
            Node::If(condition, yes, no) => condition.direct && yes.streams && no.streams,
            Node::Special(Special::Select, arguments) => arguments[0].direct,
            Node::Special(Special::Empty, _) => true,
            _ => false,
        }
    }
}

impl Bind {
    /// One variable and no more.
    pub fn is_plain(&self) -> bool {
        matches!(self.patterns[..], [Pattern::Variable(_)])
    }
}
