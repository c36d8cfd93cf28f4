//! What a variable can hold, and the two faces of it: a string and a number.

use crate::array::Array;
use crate::number;
use crate::regex::Regex;
use crate::text::Str;
use std::cmp::Ordering;
use std::rc::Rc;

/// A value.
#[derive(Clone, Default, Debug)]
pub enum Value {
    /// Never assigned: both the empty string and zero.
    #[default]
    Uninit,
    /// A number.
    Num(f64),
    /// A string.
    Str(Str),
    /// Text from outside, which counts as a number where it looks like one.
    Strnum(Str),
    /// A regular expression, `@/…/`.
    Regex(Rc<Regex>),
    /// An array: of a variable, of a parameter, or within another array.
    Array(Array),
}

impl Value {
    /// A string.
    #[inline]
    pub fn text(bytes: &[u8]) -> Value {
        Value::Str(Str::new(bytes))
    }

    /// Text from outside.
    #[inline]
    pub fn outside(bytes: &[u8]) -> Value {
        Value::Strnum(Str::new(bytes))
    }

    /// Its number.
    #[inline]
    pub fn to_num(&self) -> f64 {
        match self {
            Value::Num(number) => *number,
            Value::Str(text) | Value::Strnum(text) => number::parse(text.as_bytes()),
            Value::Uninit | Value::Array(_) | Value::Regex(_) => 0.0,
        }
    }

    /// Its string, a number by the format `convert`.
    #[inline]
    pub fn to_str(&self, convert: &[u8]) -> Str {
        match self {
            Value::Str(text) | Value::Strnum(text) => text.clone(),
            other => {
                let mut text = Vec::new();
                other.append_to(&mut text, convert);
                text.into()
            }
        }
    }

    /// Appends its string, a number by the format `convert`.
    pub fn append_to(&self, out: &mut Vec<u8>, convert: &[u8]) {
        match self {
            Value::Num(number) => number::append(out, *number, convert),
            Value::Str(text) | Value::Strnum(text) => out.extend_from_slice(text.as_bytes()),
            Value::Regex(regex) => out.extend_from_slice(regex.source()),
            Value::Uninit | Value::Array(_) => {}
        }
    }

    /// Whether it holds as a condition.
    #[inline]
    pub fn is_true(&self) -> bool {
        match self {
            Value::Uninit => false,
            Value::Num(number) => *number != 0.0,
            Value::Str(text) => !text.as_bytes().is_empty(),
            Value::Strnum(text) => match number::looks_numeric(text.as_bytes()) {
                Some(number) => number != 0.0,
                None => !text.as_bytes().is_empty(),
            },
            Value::Regex(regex) => !regex.source().is_empty(),
            Value::Array(_) => true,
        }
    }

    /// Its number, if it is compared as one.
    #[inline]
    pub fn numeric(&self) -> Option<f64> {
        match self {
            Value::Num(number) => Some(*number),
            Value::Uninit => Some(0.0),
            Value::Strnum(text) => number::looks_numeric(text.as_bytes()),
            _ => None,
        }
    }

    /// As `<`, `==` and their like see two values: as numbers if both may be, else as strings.
    pub fn compare(&self, other: &Value, convert: &[u8]) -> Ordering {
        if let (Some(left), Some(right)) = (self.numeric(), other.numeric()) {
            return number::compare(left, right);
        }
        match (self, other) {
            (Value::Str(left) | Value::Strnum(left), Value::Str(right) | Value::Strnum(right)) => {
                left.as_bytes().cmp(right.as_bytes())
            }
            _ => self.to_str(convert).as_bytes().cmp(other.to_str(convert).as_bytes()),
        }
    }

    /// What `typeof` calls it.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Uninit => "untyped",
            Value::Num(_) => "number",
            Value::Str(_) => "string",
            Value::Strnum(text) if number::looks_numeric(text.as_bytes()).is_some() => "strnum",
            Value::Strnum(_) => "string",
            Value::Regex(_) => "regexp",
            Value::Array(_) => "array",
        }
    }
}
