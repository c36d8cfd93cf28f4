//! Strings.

use crate::run::ops::{self, described};
use crate::run::{Outcome, raise};
use crate::value::Value;
use crate::world::World;

use super::objects::text_of;
use super::{Run, items, needs_string};

pub const TABLE: &[(&str, usize, Run)] = &[
    ("utf8bytelength", 0, utf8_length),
    ("explode", 0, explode),
    ("implode", 0, implode),
    ("_matches_glob", 2, |_, _, arguments| {
        Ok(Value::Bool(match (&arguments[0], &arguments[1]) {
            (Value::String(text), Value::String(pattern)) => matches_glob(text, pattern),
            (one, two) => one == two,
        }))
    }),
    ("split", 1, split),
    ("join", 1, join),
    ("startswith", 1, |_, input, arguments| {
        ends("startswith", &input, &arguments[0], |text, end| text.starts_with(end))
    }),
    ("endswith", 1, |_, input, arguments| {
        ends("endswith", &input, &arguments[0], |text, end| text.ends_with(end))
    }),
    ("ltrimstr", 1, |_, input, arguments| {
        Ok(without(input, &arguments[0], |text, end| text.strip_prefix(end)))
    }),
    ("rtrimstr", 1, |_, input, arguments| {
        Ok(without(input, &arguments[0], |text, end| text.strip_suffix(end)))
    }),
    ("trimstr", 1, |_, input, arguments| {
        let input = without(input, &arguments[0], |text, end| text.strip_prefix(end));
        Ok(without(input, &arguments[0], |text, end| text.strip_suffix(end)))
    }),
    ("trim", 0, |_, input, _| trimmed(&input, |text| text.trim_matches(is_blank))),
    ("ltrim", 0, |_, input, _| trimmed(&input, |text| text.trim_start_matches(is_blank))),
    ("rtrim", 0, |_, input, _| trimmed(&input, |text| text.trim_end_matches(is_blank))),
    ("ascii_downcase", 0, |_, input, _| cased(&input, |text| text.to_ascii_lowercase())),
    ("ascii_upcase", 0, |_, input, _| cased(&input, |text| text.to_ascii_uppercase())),
];

fn utf8_length(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    match &input {
        Value::String(text) => Ok(text.len().into()),
        other => raise(format!("{} only strings have UTF-8 byte length", described(other))),
    }
}

fn explode(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let text = needs_string(&input, "explode input must be a string")?;
    Ok(Value::array(text.chars().map(|letter| Value::Number(f64::from(u32::from(letter)))).collect()))
}

fn implode(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let Value::Array(codes) = &input else { return raise("implode input must be an array") };
    let mut text = String::with_capacity(codes.len());
    for code in codes.iter() {
        let Some(number) = code.as_number().filter(|number| !number.is_nan()) else {
            return raise(format!(
                "{} can't be imploded, unicode codepoint needs to be numeric",
                described(code)
            ));
        };
        let known = number.is_finite() && number >= 0.0;
        let letter = known.then(|| char::from_u32(number as u32)).flatten();
        text.push(letter.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    Ok(Value::from(text))
}

fn split(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    match (&input, &arguments[0]) {
        (Value::String(text), Value::String(by)) => Ok(ops::split(text, by)),
        _ => raise("split input and separator must be strings"),
    }
}

fn join(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let mut joined = String::new();
    for (at, item) in items(&input)?.iter().enumerate() {
        if at > 0 {
            match &arguments[0] {
                Value::String(between) => joined.push_str(between),
                Value::Null => {}
                other => return ops::add(Value::from(joined), other.clone()),
            }
        }
        match item {
            Value::Null => {}
            Value::Array(_) | Value::Object(_) => return ops::add(Value::from(joined), item.clone()),
            other => joined.push_str(&text_of(other)),
        }
    }
    Ok(Value::from(joined))
}

fn ends(name: &str, input: &Value, end: &Value, test: fn(&str, &str) -> bool) -> Outcome {
    match (input, end) {
        (Value::String(text), Value::String(end)) => Ok(Value::Bool(test(text, end))),
        _ => raise(format!("{name}() requires string inputs")),
    }
}

fn without(input: Value, end: &Value, strip: for<'a> fn(&'a str, &str) -> Option<&'a str>) -> Value {
    let stripped = match (&input, end) {
        (Value::String(text), Value::String(end)) => strip(text, end).map(Value::string),
        _ => None,
    };
    stripped.unwrap_or(input)
}

fn is_blank(letter: char) -> bool {
    letter.is_ascii_whitespace() || letter == '\u{b}'
}

fn trimmed(input: &Value, trim: fn(&str) -> &str) -> Outcome {
    match input {
        Value::String(text) => Ok(Value::string(trim(text))),
        other => raise(format!("{} cannot be trimmed", described(other))),
    }
}

fn cased(input: &Value, change: fn(&str) -> String) -> Outcome {
    let text = needs_string(input, "explode input must be a string")?;
    Ok(Value::from(change(&text)))
}

/// Whether a text is what a pattern says, in which a star is anything.
fn matches_glob(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.is_empty()
}
