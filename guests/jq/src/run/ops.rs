//! Operators and access, with jq's words for what cannot be done.

use std::rc::Rc;

use crate::json;
use crate::lang::Operator;
use crate::object::Object;
use crate::value::{Array, Str, Value, compare};

use super::errors::{Outcome, raise};

/// A value in a message: its text, cut to fit in so many bytes with the one that ends it.
pub fn shown(value: &Value, room: usize) -> String {
    let text = json::to_text(value);
    if text.len() < room {
        return text;
    }
    let mut end = room - 4;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}...", &text[..end])
}

/// A value with its type, in a message.
pub fn described(value: &Value) -> String {
    format!("{} ({})", value.type_name(), shown(value, 15))
}

fn refused(left: &Value, right: &Value, what: &str) -> Outcome {
    raise(format!("{} and {} cannot be {what}", described(left), described(right)))
}

pub fn cannot_iterate(value: &Value) -> Outcome {
    match value {
        Value::Null => raise("Cannot iterate over null"),
        other => raise(format!("Cannot iterate over {}", described(other))),
    }
}

pub fn negate(value: &Value) -> Outcome {
    match value.as_number() {
        Some(number) => Ok(Value::Number(-number)),
        None => raise(format!("{} cannot be negated", described(value))),
    }
}

pub fn object_key(key: &Value) -> Outcome<Str> {
    match key {
        Value::String(key) => Ok(key.clone()),
        other => raise(format!("Cannot use {} as object key", described(other))),
    }
}

pub fn binary(operator: Operator, left: Value, right: Value) -> Outcome {
    let truth = match operator {
        Operator::Add => return add(left, right),
        Operator::Subtract => return subtract(left, right),
        Operator::Multiply => return multiply(left, right),
        Operator::Divide => return divide(&left, &right),
        Operator::Modulo => return modulo(&left, &right),
        Operator::Equal => compare(&left, &right).is_eq(),
        Operator::NotEqual => compare(&left, &right).is_ne(),
        Operator::Less => compare(&left, &right).is_lt(),
        Operator::LessOrEqual => compare(&left, &right).is_le(),
        Operator::Greater => compare(&left, &right).is_gt(),
        Operator::GreaterOrEqual => compare(&left, &right).is_ge(),
    };
    Ok(Value::Bool(truth))
}

pub fn add(left: Value, right: Value) -> Outcome {
    Ok(match (left, right) {
        (Value::Null, other) | (other, Value::Null) => other,
        (Value::String(left), Value::String(right)) => {
            let mut text = String::with_capacity(left.len() + right.len());
            text.push_str(&left);
            text.push_str(&right);
            Value::from(text)
        }
        (Value::Array(mut left), Value::Array(right)) => {
            if left.is_empty() {
                return Ok(Value::Array(right));
            }
            Rc::make_mut(&mut left).extend(right.iter().cloned());
            Value::Array(left)
        }
        (Value::Object(mut left), Value::Object(right)) => {
            let all = Rc::make_mut(&mut left);
            for (key, value) in right.iter() {
                all.insert(key.clone(), value.clone());
            }
            Value::Object(left)
        }
        (left, right) => match (left.as_number(), right.as_number()) {
            (Some(one), Some(two)) => Value::Number(one + two),
            _ => return refused(&left, &right, "added"),
        },
    })
}

fn subtract(left: Value, right: Value) -> Outcome {
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => {
            let kept = left.iter().filter(|item| !right.contains(item)).cloned().collect();
            Ok(Value::array(kept))
        }
        (left, right) => match (left.as_number(), right.as_number()) {
            (Some(one), Some(two)) => Ok(Value::Number(one - two)),
            _ => refused(&left, &right, "subtracted"),
        },
    }
}

/// The longest string that repetition makes: a limit that is reached must not look like one that is not.
const LONGEST_STRING: usize = 1 << 29;

fn multiply(left: Value, right: Value) -> Outcome {
    match (left, right) {
        (Value::Object(mut left), Value::Object(right)) => {
            merge(Rc::make_mut(&mut left), &right);
            Ok(Value::Object(left))
        }
        (Value::String(text), times) | (times, Value::String(text)) if times.as_number().is_some() => {
            let times = times.as_number().unwrap_or(0.0);
            if times < 0.0 || times.is_nan() {
                return Ok(Value::Null);
            }
            let count = times.trunc();
            if count * text.len() as f64 > LONGEST_STRING as f64 {
                return raise("Repeat string result too long");
            }
            Ok(Value::from(text.repeat(count as usize)))
        }
        (left, right) => match (left.as_number(), right.as_number()) {
            (Some(one), Some(two)) => Ok(Value::Number(one * two)),
            _ => refused(&left, &right, "multiplied"),
        },
    }
}

/// Puts one object over another, and so on within what both have as objects.
fn merge(under: &mut Object, over: &Object) {
    for (key, value) in over.iter() {
        match (under.get_mut(key), value) {
            (Some(Value::Object(under)), Value::Object(over)) => merge(Rc::make_mut(under), over),
            _ => under.insert(key.clone(), value.clone()),
        }
    }
}

fn divide(left: &Value, right: &Value) -> Outcome {
    match (left, right) {
        (Value::String(text), Value::String(by)) => Ok(split(text, by)),
        _ => match (left.as_number(), right.as_number()) {
            (Some(_), Some(0.0)) => refused(left, right, "divided because the divisor is zero"),
            (Some(one), Some(two)) => Ok(Value::Number(one / two)),
            _ => refused(left, right, "divided"),
        },
    }
}

/// The parts of a string between separators; its characters, if there is none.
pub fn split(text: &str, by: &str) -> Value {
    if text.is_empty() {
        return Value::array(Vec::new());
    }
    let parts = match by {
        "" => text.chars().map(|letter| Value::string(letter.encode_utf8(&mut [0; 4]))).collect(),
        _ => text.split(by).map(Value::string).collect(),
    };
    Value::array(parts)
}

fn modulo(left: &Value, right: &Value) -> Outcome {
    let (Some(one), Some(two)) = (left.as_number(), right.as_number()) else {
        return refused(left, right, "divided");
    };
    if one.is_nan() || two.is_nan() {
        return Ok(Value::Number(f64::NAN));
    }
    // As integers, cut off at the ends of their range.
    let (one, two) = (one as i64, two as i64);
    if two == 0 {
        return refused(left, right, "divided (remainder) because the divisor is zero");
    }
    let rest = (one.unsigned_abs() % two.unsigned_abs()) as f64;
    Ok(Value::Number(if one < 0 && rest > 0.0 { -rest } else { rest }))
}

/// What lies under a key.
pub fn index(container: Value, key: &Value) -> Outcome {
    match (&container, key) {
        (Value::Object(object), Value::String(key)) => Ok(object.get(key).cloned().unwrap_or_default()),
        (Value::Array(items), Value::Number(_) | Value::Literal(_)) => {
            Ok(place(key.as_number().unwrap_or(0.0), items.len())
                .and_then(|at| items.get(at))
                .cloned()
                .unwrap_or_default())
        }
        (Value::Null, Value::String(_) | Value::Number(_) | Value::Literal(_)) => Ok(Value::Null),
        (Value::Null | Value::Array(_) | Value::String(_), Value::Object(bounds)) => {
            let bound = |name: &str| bounds.get(name).cloned().unwrap_or_default();
            let (from, to) = (bound("start"), bound("end"));
            if !bounds.contains_key("start") && !bounds.contains_key("end") {
                return raise("Array/string slice indices must be integers");
            }
            slice(container, &from, &to)
        }
        (Value::Array(items), Value::Array(part)) => Ok(indices_of_part(items, part)),
        _ => cannot_index(&container, key),
    }
}

fn cannot_index(container: &Value, key: &Value) -> Outcome {
    match key {
        Value::String(key) => raise(format!("Cannot index {} with string \"{key}\"", container.type_name())),
        _ => raise(format!("Cannot index {} with {}", container.type_name(), key.type_name())),
    }
}

/// The index that a number means, if it is not before the first.
pub fn place(number: f64, length: usize) -> Option<usize> {
    let number = number.trunc();
    let from_start = if number < 0.0 { number + length as f64 } else { number };
    if from_start >= 0.0 { Some(from_start as usize) } else { None }
}

/// Where an array holds another's items in a row.
pub fn indices_of_part(items: &Array, part: &Array) -> Value {
    if part.is_empty() {
        return Value::Null;
    }
    let starts = items.windows(part.len()).enumerate().filter(|(_, window)| *window == part.as_slice());
    Value::array(starts.map(|(at, _)| Value::from(at)).collect())
}

/// The ends of a slice of something so long.
pub fn slice_ends(from: &Value, to: &Value, length: usize) -> Outcome<(usize, usize)> {
    let bound = |value: &Value, default: f64| match value {
        Value::Null => Ok(default),
        other => other.as_number().map_or_else(
            || raise("Array/string slice indices must be integers"),
            |number| Ok(if number.is_nan() { default } else { number }),
        ),
    };
    let long = length as f64;
    let from = bound(from, 0.0)?;
    let to = bound(to, long)?;
    let counted = |number: f64| if number < 0.0 { number + long } else { number };
    let from = counted(from).clamp(0.0, long).floor();
    let to = counted(to).clamp(from, long).ceil();
    Ok((from as usize, to as usize))
}

pub fn slice(container: Value, from: &Value, to: &Value) -> Outcome {
    match container {
        Value::Null => Ok(Value::Null),
        Value::Array(items) => {
            let (from, to) = slice_ends(from, to, items.len())?;
            Ok(Value::array(items[from..to].to_vec()))
        }
        Value::String(text) => {
            let length = if text.is_ascii() { text.len() } else { text.chars().count() };
            let (from, to) = slice_ends(from, to, length)?;
            if length == text.len() {
                return Ok(Value::string(&text[from..to]));
            }
            let at = |count: usize| text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
            Ok(Value::string(&text[at(from)..at(to)]))
        }
        other => raise(format!("Cannot index {} with object", other.type_name())),
    }
}
