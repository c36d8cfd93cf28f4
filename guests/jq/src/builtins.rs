//! Functions that are not written in the language itself.

mod arrays;
mod dates;
mod formats;
mod math;
mod objects;
mod regex;
mod strings;
mod system;

use crate::run::{Outcome, raise};
use crate::value::Value;
use crate::world::World;

pub use formats::format;
pub use regex::Cache as RegexCache;

/// What carries a function out: on an input, with its arguments.
pub type Run = fn(&mut World, Value, &mut [Value]) -> Outcome;

/// A function.
#[derive(Clone, Copy)]
pub struct Native {
    pub run: Run,
}

/// All of them, file by file.
fn tables() -> [&'static [(&'static str, usize, Run)]; 8] {
    [
        arrays::TABLE,
        dates::TABLE,
        formats::TABLE,
        math::TABLE,
        objects::TABLE,
        regex::TABLE,
        strings::TABLE,
        system::TABLE,
    ]
}

/// The function of a name and a number of parameters.
pub fn find(name: &str, parameters: usize) -> Option<Native> {
    let all = tables().into_iter().flatten();
    all.filter(|(known, count, _)| *known == name && *count == parameters)
        .map(|&(_, _, run)| Native { run })
        .next()
}

/// Names and numbers of parameters, of those meant to be called.
pub fn names() -> impl Iterator<Item = (&'static str, usize)> {
    let all = tables().into_iter().flatten();
    all.map(|(name, parameters, _)| (*name, *parameters)).filter(|(name, _)| !name.starts_with('_'))
}

/// The items of an array or the values of an object.
fn items(value: &Value) -> Outcome<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items.to_vec()),
        Value::Object(object) => Ok(object.iter().map(|(_, value)| value.clone()).collect()),
        other => crate::run::ops::cannot_iterate(other).map(|_| Vec::new()),
    }
}

/// A string for a function that takes nothing else.
fn needs_string(value: &Value, problem: &str) -> Outcome<crate::value::Str> {
    match value {
        Value::String(text) => Ok(text.clone()),
        _ => raise(problem),
    }
}
