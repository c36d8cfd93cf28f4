//! The functions: `$(NAME argument,…)`. Those of words and names are in the files below this one.

mod control;
mod names;
mod words;

use crate::make::{Make, Res};
use crate::text;

/// A function, and how its arguments are taken.
#[derive(Clone, Copy)]
pub struct Function {
    pub name: &'static str,
    least: usize,
    /// The last of these takes all commas that follow; without one there may be any number.
    most: Option<usize>,
    act: Act,
}

#[derive(Clone, Copy)]
enum Act {
    /// Of its arguments alone.
    Pure(fn(&[Vec<u8>]) -> Vec<u8>),
    /// With what make knows.
    With(WithMake),
    /// Expands its arguments by itself.
    Special(Unexpanded),
}

const fn pure(name: &'static str, least: usize, most: usize, act: fn(&[Vec<u8>]) -> Vec<u8>) -> Function {
    Function { name, least, most: Some(most), act: Act::Pure(act) }
}

type WithMake = fn(&mut Make, &[Vec<u8>]) -> Res<Vec<u8>>;

const fn with(name: &'static str, least: usize, most: usize, act: WithMake) -> Function {
    Function { name, least, most: Some(most), act: Act::With(act) }
}

type Unexpanded = fn(&mut Make, &[&[u8]]) -> Res<Vec<u8>>;

const fn special(name: &'static str, least: usize, most: Option<usize>, act: Unexpanded) -> Function {
    Function { name, least, most, act: Act::Special(act) }
}

const FUNCTIONS: &[Function] = &[
    pure("abspath", 0, 1, names::abspath),
    pure("addprefix", 2, 2, words::addprefix),
    pure("addsuffix", 2, 2, words::addsuffix),
    special("and", 1, None, control::and),
    pure("basename", 0, 1, names::basename),
    Function { name: "call", least: 1, most: None, act: Act::With(control::call) },
    pure("dir", 0, 1, names::dir),
    with("error", 0, 1, control::error),
    with("eval", 0, 1, control::eval),
    with("file", 1, 2, control::file),
    pure("filter", 2, 2, words::filter),
    pure("filter-out", 2, 2, words::filter_out),
    pure("findstring", 2, 2, words::findstring),
    pure("firstword", 0, 1, words::firstword),
    with("flavor", 0, 1, control::flavor),
    special("foreach", 3, Some(3), control::foreach),
    special("if", 2, Some(3), control::condition),
    with("info", 0, 1, control::info),
    pure("join", 2, 2, words::join),
    pure("lastword", 0, 1, words::lastword),
    pure("notdir", 0, 1, names::notdir),
    special("or", 1, None, control::or),
    with("origin", 0, 1, control::origin),
    pure("patsubst", 3, 3, words::patsubst),
    pure("realpath", 0, 1, names::realpath),
    with("shell", 0, 1, control::shell),
    pure("sort", 0, 1, words::sort),
    pure("strip", 0, 1, words::strip),
    pure("subst", 3, 3, words::subst),
    pure("suffix", 0, 1, names::suffix),
    with("value", 0, 1, control::value),
    with("warning", 0, 1, control::warning),
    pure("wildcard", 0, 1, names::wildcard),
    with("word", 2, 2, words::word),
    with("wordlist", 3, 3, words::wordlist),
    pure("words", 0, 1, words::count),
];

/// The function that a reference begins with, and the rest.
pub fn find(inner: &[u8]) -> Option<(Function, &[u8])> {
    let length = inner.iter().position(|byte| byte.is_ascii_whitespace())?;
    let function = named(&inner[..length])?;
    Some((function, text::trim_start(&inner[length..])))
}

/// The function of that name.
pub fn named(name: &[u8]) -> Option<Function> {
    FUNCTIONS.iter().find(|function| function.name.as_bytes() == name).copied()
}

impl Make {
    /// A function's value for arguments as they are written.
    pub fn function(&mut self, function: Function, arguments: &[u8], open: u8) -> Res<Vec<u8>> {
        let arguments = split(arguments, open, function.most);
        self.check_count(function, &arguments)?;
        match function.act {
            Act::Special(act) => act(self, &arguments),
            _ => {
                let expanded: Vec<Vec<u8>> =
                    arguments.iter().map(|argument| self.expand(argument)).collect::<Res<_>>()?;
                self.apply(function, expanded)
            }
        }
    }

    /// A function's value for arguments that are expanded already, as `$(call)` has them.
    pub fn apply(&mut self, function: Function, arguments: Vec<Vec<u8>>) -> Res<Vec<u8>> {
        match function.act {
            Act::Pure(act) => Ok(act(&arguments)),
            Act::With(act) => act(self, &arguments),
            Act::Special(act) => {
                let quoted: Vec<Vec<u8>> =
                    arguments.iter().map(|argument| text::replace(argument, b"$", b"$$")).collect();
                let quoted: Vec<&[u8]> = quoted.iter().map(Vec::as_slice).collect();
                act(self, &quoted)
            }
        }
    }

    /// Refuses too few arguments, by GNU make's words.
    pub fn check_count<T>(&mut self, function: Function, arguments: &[T]) -> Res<()> {
        if arguments.len() >= function.least {
            return Ok(());
        }
        let (count, name) = (arguments.len(), function.name);
        Err(self.fatal(&format!("insufficient number of arguments ({count}) to function '{name}'")))
    }
}

/// Cuts arguments at commas outside of parentheses of the reference's own kind.
fn split(text: &[u8], open: u8, most: Option<usize>) -> Vec<&[u8]> {
    let close = if open == b'(' { b')' } else { b'}' };
    let (mut arguments, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, &byte) in text.iter().enumerate() {
        if byte == open {
            depth += 1;
        } else if byte == close {
            depth = depth.saturating_sub(1);
        } else if byte == b',' && depth == 0 && most.is_none_or(|most| arguments.len() + 1 < most) {
            arguments.push(&text[start..at]);
            start = at + 1;
        }
    }
    arguments.push(&text[start..]);
    arguments
}
