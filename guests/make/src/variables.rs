//! Variables: their values, where they come from, and which of them programs get to see.

use std::collections::HashMap;

use crate::make::Place;
use crate::text;

/// Where a variable's value comes from; a later one in this list is not replaced by an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    Default,
    Environment,
    File,
    /// From the environment, with `-e`.
    EnvironmentOverride,
    CommandLine,
    Override,
    Automatic,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Origin::Default => "default",
            Origin::Environment => "environment",
            Origin::File => "file",
            Origin::EnvironmentOverride => "environment override",
            Origin::CommandLine => "command line",
            Origin::Override => "override",
            Origin::Automatic => "automatic",
        }
    }
}

/// Whether programs get a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Export {
    /// If it came from the environment or the command line, or if all are exported.
    Default,
    Yes,
    No,
}

#[derive(Clone, Debug)]
pub struct Variable {
    pub value: Vec<u8>,
    /// Expanded when it is used, not when it was set.
    pub recursive: bool,
    pub origin: Origin,
    pub export: Export,
    /// Of a target: not for its prerequisites.
    pub private: bool,
    /// Of a target, set by `+=`: what it has is added to the value outside.
    pub appends: bool,
    /// It was in the environment that make was started with.
    pub from_environment: bool,
    /// Where it was defined.
    pub place: Option<Place>,
}

impl Variable {
    pub fn new(value: impl Into<Vec<u8>>, recursive: bool, origin: Origin) -> Variable {
        Variable {
            value: value.into(),
            recursive,
            origin,
            export: Export::Default,
            private: false,
            appends: false,
            from_environment: false,
            place: None,
        }
    }
}

/// Variables by name.
pub type Table = HashMap<Vec<u8>, Variable>;

/// How a definition sets a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Recursive,
    /// `:=` and `::=`
    Simple,
    /// `+=`
    Append,
    /// `?=`
    Conditional,
    /// `!=`
    Shell,
}

/// `NAME OPERATOR VALUE`, not yet expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    pub name: &'a [u8],
    pub operator: Operator,
    pub value: &'a [u8],
}

/// Reads a line as a definition, if it is one: its first operator comes before any colon that ends a rule's targets.
pub fn definition(line: &[u8]) -> Option<Definition<'_>> {
    let line = text::trim_start(line);
    let mut at = 0;
    let mut word_over = false;
    while at < line.len() {
        let rest = &line[at..];
        let (operator, length) = match rest {
            [b'$', after @ ..] => {
                at += 1 + text::reference_length(after)?;
                continue;
            }
            [b'=', ..] => (Operator::Recursive, 1),
            [b':', b':', b'=', ..] => (Operator::Simple, 3),
            [b':', b'=', ..] => (Operator::Simple, 2),
            [b'+', b'=', ..] => (Operator::Append, 2),
            [b'?', b'=', ..] => (Operator::Conditional, 2),
            [b'!', b'=', ..] => (Operator::Shell, 2),
            [b':' | b';', ..] => return None,
            [blank, ..] if text::is_blank(*blank) => {
                word_over = true;
                at += 1;
                continue;
            }
            _ if word_over => return None,
            _ => {
                at += 1;
                continue;
            }
        };
        let name = text::trim_end(&line[..at]);
        return Some(Definition { name, operator, value: text::trim_start(&line[at + length..]) });
    }
    None
}

/// A value with another added to it.
pub fn appended(value: &[u8], added: &[u8]) -> Vec<u8> {
    let blank: &[u8] = if value.is_empty() || added.is_empty() { b"" } else { b" " };
    [value, blank, added].concat()
}

/// Whether a name can be one in the environment of programs.
pub fn is_exportable(name: &[u8]) -> bool {
    let mut bytes = name.iter();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}
