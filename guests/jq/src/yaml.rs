//! YAML: values, and beside each document how it was written, so that what is not changed can be written the same again.

mod comments;
mod read;
mod scalar;
mod write;

use crate::value::{Str, Value};

pub use read::read;
pub use write::{Options, write};

/// A document: what it says and how.
pub struct Document {
    pub value: Value,
    pub dress: Dress,
    /// Whether it began with `---`.
    pub explicit: bool,
    /// Comments after all else.
    pub foot: Vec<String>,
}

/// How a node was written.
#[derive(Clone, Debug, Default)]
pub struct Dress {
    /// Comments on lines before it, and after it on its line.
    pub head: Vec<String>,
    pub line: Option<String>,
    pub anchor: Option<String>,
    pub tag: Option<String>,
    pub form: Form,
    /// What it says, to be told from what it says after a change.
    pub value: Value,
    /// Where it, or the key before it, begins: line and column.
    at: (usize, usize),
}

/// The kinds of nodes.
#[derive(Clone, Debug, Default)]
pub enum Form {
    #[default]
    None,
    /// A scalar's text and how it was quoted.
    Scalar(Str, Quotes),
    /// Items, and whether they stood in brackets.
    Sequence(Vec<Dress>, bool),
    /// Keys and values, and whether they stood in braces.
    Mapping(Vec<(Dress, Dress)>, bool),
    Alias(String),
}

/// How a scalar was quoted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quotes {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

impl Dress {
    /// How what lies at the end of a path was written.
    pub fn at_path(&self, path: &[Value]) -> Option<&Dress> {
        let Some((key, rest)) = path.split_first() else { return Some(self) };
        match (&self.form, key) {
            (Form::Sequence(items, _), _) => {
                let place = crate::run::ops::place(key.as_number()?, items.len())?;
                items.get(place)?.at_path(rest)
            }
            (Form::Mapping(..), Value::String(key)) => self.entry(key)?.1.at_path(rest),
            _ => None,
        }
    }

    /// The same, apart from what it stood in.
    pub fn alone(&self) -> Dress {
        Dress { head: Vec::new(), anchor: None, ..self.clone() }
    }

    /// The entry of a key.
    pub fn entry(&self, key: &str) -> Option<(&Dress, &Dress)> {
        let Form::Mapping(entries, _) = &self.form else { return None };
        entries.iter().find(|(name, _)| *key_text(&name.value) == *key).map(|(key, value)| (key, value))
    }
}

/// A key as an object has it: a string.
pub fn key_text(key: &Value) -> Str {
    match key {
        Value::String(text) => text.clone(),
        other => crate::json::to_text(other).into(),
    }
}
