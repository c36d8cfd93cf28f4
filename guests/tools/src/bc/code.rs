//! What a program is turned into: steps over a stack of numbers.

use super::number::Number;
use std::cell::OnceCell;
use std::rc::Rc;

/// Where a plain value is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Place {
    Variable(usize),
    Scale,
    InputBase,
    OutputBase,
    History,
    Last,
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Binary {
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
    Less,
    LessOrEqual,
    Equal,
    Unequal,
    GreaterOrEqual,
    Greater,
}

/// A number as it is written: which one it is depends on the base of input when it is reached.
#[derive(Debug)]
pub struct Literal {
    pub text: String,
    pub in_ten: OnceCell<Number>,
}

/// What a call gives to a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Argument {
    Value,
    Array(usize),
}

#[derive(Debug)]
pub enum Step {
    Constant(Literal),
    Load(Place),
    /// Keeps the value on the stack.
    Store(Place),
    /// Takes an index.
    LoadElement(usize),
    /// Takes an index and a value, and keeps the value.
    StoreElement(usize),
    Duplicate,
    Pop,
    Binary(Binary),
    Negate,
    Not,
    Jump(usize),
    JumpIfZero(usize),
    Length,
    ScaleOf,
    Root,
    Read,
    Call(usize, Vec<Argument>),
    Return,
    /// Writes the value and a newline.
    Show,
    /// Writes the value alone.
    Print,
    PrintText(Vec<u8>),
    Halt,
}

/// Steps, and for each the address that GNU bc would be at when it has taken it: its errors name that.
#[derive(Debug, Default)]
pub struct Code {
    pub steps: Vec<Step>,
    pub ends: Vec<usize>,
}

impl Code {
    pub fn push(&mut self, step: Step) {
        let end = self.ends.last().copied().unwrap_or(0) + step.size();
        self.steps.push(step);
        self.ends.push(end);
    }

    /// Adds a jump whose target is not known yet; answers where it is.
    pub fn push_jump(&mut self, jump: fn(usize) -> Step) -> usize {
        self.push(jump(usize::MAX));
        self.steps.len() - 1
    }

    /// Lets a jump lead to the next step.
    pub fn land(&mut self, jump: usize) {
        let here = self.steps.len();
        if let Some(Step::Jump(target) | Step::JumpIfZero(target)) = self.steps.get_mut(jump) {
            *target = here;
        }
    }
}

impl Step {
    /// How many bytes it has in GNU bc's code.
    fn size(&self) -> usize {
        let number = |number: usize| if number < 128 { 1 } else { 2 };
        match self {
            Step::Constant(literal) if matches!(literal.text.as_str(), "0" | "1") => 1,
            Step::Constant(literal) => literal.text.len() + 2,
            Step::Load(Place::Variable(variable)) | Step::Store(Place::Variable(variable)) => {
                1 + number(*variable)
            }
            Step::LoadElement(array) | Step::StoreElement(array) => 1 + number(*array),
            Step::Load(_) | Step::Store(_) | Step::Length | Step::ScaleOf | Step::Root | Step::Read => 2,
            Step::Jump(_) | Step::JumpIfZero(_) => 3,
            Step::Call(function, arguments) => 1 + number(*function) + arguments.len() + 1,
            Step::PrintText(text) => text.len() + 2,
            _ => 1,
        }
    }
}

/// A parameter or a variable of a function's own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Own {
    Variable(usize),
    Array(usize),
    /// An array of the caller's.
    Reference(usize),
}

/// What a function does.
#[derive(Debug)]
pub enum Body {
    Undefined,
    Written(Rc<Code>),
    /// One of the library of `-l`.
    Library(char),
}

#[derive(Debug)]
pub struct Function {
    pub name: String,
    pub parameters: Vec<Own>,
    pub autos: Vec<Own>,
    pub body: Body,
}
