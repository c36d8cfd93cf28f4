//! Objects, and what all kinds of values share.

use std::rc::Rc;

use crate::json;
use crate::object::Object;
use crate::run::ops::{self, described};
use crate::run::{Error, Outcome, paths, raise};
use crate::value::{Str, Value};
use crate::world::World;

use super::{Run, items};

pub const TABLE: &[(&str, usize, Run)] = &[
    ("length", 0, length),
    ("not", 0, |_, input, _| Ok(Value::Bool(!input.is_true()))),
    ("type", 0, |_, input, _| Ok(Value::string(input.type_name()))),
    ("keys", 0, |_, input, _| keys(&input, true)),
    ("keys_unsorted", 0, |_, input, _| keys(&input, false)),
    ("has", 1, has),
    ("contains", 1, |_, input, arguments| contains(&input, &arguments[0], 0).map(Value::Bool)),
    ("to_entries", 0, to_entries),
    ("from_entries", 0, from_entries),
    ("setpath", 2, set_path),
    ("delpaths", 1, delete_paths),
    ("tojson", 0, |_, input, _| Ok(Value::from(json::to_text(&input)))),
    ("fromjson", 0, from_json),
    ("tostring", 0, |_, input, _| Ok(Value::String(text_of(&input)))),
    ("tonumber", 0, to_number),
    ("error", 0, |_, input, _| Err(Error::Raised(input))),
    ("error", 1, |_, _, arguments| Err(Error::Raised(std::mem::take(&mut arguments[0])))),
    ("_tostream", 0, |_, input, _| Ok(Value::array(stream_of(input)))),
];

/// A value as a string: a string as it is, the rest as JSON.
pub fn text_of(value: &Value) -> Str {
    match value {
        Value::String(text) => text.clone(),
        other => json::to_text(other).into(),
    }
}

fn length(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    Ok(match &input {
        Value::Null => Value::Number(0.0),
        Value::Bool(_) => return raise(format!("{} has no length", described(&input))),
        Value::Number(number) => Value::Number(number.abs()),
        Value::Literal(literal) => Value::Number(literal.double.abs()),
        Value::String(text) => text.chars().count().into(),
        Value::Array(items) => items.len().into(),
        Value::Object(object) => object.len().into(),
    })
}

fn keys(input: &Value, sorted: bool) -> Outcome {
    Ok(Value::array(match input {
        Value::Array(items) => (0..items.len()).map(Value::from).collect(),
        Value::Object(object) if sorted => {
            object.sorted_keys().into_iter().map(|key| Value::String(key.clone())).collect()
        }
        Value::Object(object) => object.iter().map(|(key, _)| Value::String(key.clone())).collect(),
        other => return raise(format!("{} has no keys", described(other))),
    }))
}

fn has(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let key = &arguments[0];
    Ok(Value::Bool(match (&input, key) {
        (Value::Object(object), Value::String(key)) => object.contains_key(key),
        (Value::Array(items), Value::Number(_) | Value::Literal(_)) => {
            let number = key.as_number().unwrap_or(-1.0);
            number >= 0.0 && number < items.len() as f64
        }
        _ => {
            let (container, key) = (input.type_name(), key.type_name());
            return raise(format!("Cannot check whether {container} has a {key} key"));
        }
    }))
}

/// How deep containment is looked into: as deep as any JSON text goes, and some.
const DEEPEST: usize = 5_000;

fn contains(one: &Value, two: &Value, depth: usize) -> Outcome<bool> {
    if depth > DEEPEST {
        return raise("the values are nested too deeply");
    }
    match (one, two) {
        (Value::Object(one), Value::Object(two)) => {
            for (key, value) in two.iter() {
                match one.get(key) {
                    Some(present) if contains(present, value, depth + 1)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Value::Array(one), Value::Array(two)) => {
            for wanted in two.iter() {
                let mut found = false;
                for present in one.iter().filter(|present| present.type_name() == wanted.type_name()) {
                    found = found || contains(present, wanted, depth + 1)?;
                }
                if !found {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::String(one), Value::String(two)) => Ok(one.contains(&**two)),
        _ if one.type_name() == two.type_name() => Ok(one == two),
        _ if depth > 0 => Ok(false),
        _ => {
            raise(format!("{} and {} cannot have their containment checked", described(one), described(two)))
        }
    }
}

fn to_entries(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let (name_of_key, name_of_value): (Str, Str) = ("key".into(), "value".into());
    let entry = |key: Value, value: &Value| {
        let mut entry = Object::default();
        entry.insert(name_of_key.clone(), key);
        entry.insert(name_of_value.clone(), value.clone());
        Value::object(entry)
    };
    Ok(Value::array(match &input {
        Value::Object(object) => {
            object.iter().map(|(key, value)| entry(Value::String(key.clone()), value)).collect()
        }
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| entry(at.into(), item)).collect(),
        other => return raise(format!("{} has no keys", described(other))),
    }))
}

/// The names under which an entry may have its key and its value.
const KEYS: &[&str] = &["key", "Key", "name", "Name", "k", "K"];
const VALUES: &[&str] = &["value", "Value", "v", "V"];

fn from_entries(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let mut object = Object::default();
    for entry in items(&input)? {
        let entry = match entry {
            Value::Object(entry) => entry,
            other => return ops::index(other, &Value::string("key")),
        };
        let key = KEYS.iter().filter_map(|name| entry.get(name)).find(|key| key.is_true());
        let key = ops::object_key(key.unwrap_or(&Value::Null))?;
        let value = VALUES.iter().find_map(|name| entry.get(name));
        object.insert(key, value.cloned().unwrap_or_default());
    }
    Ok(Value::object(object))
}

fn set_path(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let [path, value] = arguments else { return raise("setpath takes a path and a value") };
    match path {
        Value::Array(path) => paths::set(input, path, std::mem::take(value)),
        _ => raise("Path must be specified as an array"),
    }
}

fn delete_paths(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let Value::Array(all) = &arguments[0] else { return raise("Paths must be specified as an array") };
    if let Some(wrong) = all.iter().find(|path| !matches!(path, Value::Array(_))) {
        return raise(format!("Path must be specified as array, not {}", wrong.type_name()));
    }
    paths::delete(input, all.to_vec())
}

fn parse(text: &str) -> Outcome {
    match json::parse_one(text.as_bytes()) {
        Ok(Some(value)) => Ok(value),
        Ok(None) => raise(format!("Expected JSON value (while parsing '{text}')")),
        Err(problem) => raise(format!("{problem} (while parsing '{text}')")),
    }
}

fn from_json(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    match &input {
        Value::String(text) => parse(text),
        other => raise(format!("{} only strings can be parsed", described(other))),
    }
}

fn to_number(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    match &input {
        Value::Number(_) | Value::Literal(_) => Ok(input),
        Value::String(text) => {
            let parsed = parse(text)?;
            match parsed.as_number() {
                Some(_) => Ok(parsed),
                None => raise(format!("{} cannot be parsed as a number", described(&input))),
            }
        }
        other => raise(format!("{} cannot be parsed as a number", described(other))),
    }
}

/// A value as `--stream` would give it.
fn stream_of(value: Value) -> Vec<Value> {
    let mut events = Vec::new();
    // Containers on the way, each with the place of the item that comes next.
    let mut open: Vec<(Vec<(Value, Value)>, usize)> = Vec::new();
    let mut path: Vec<Value> = Vec::new();
    let mut next = Some(value);
    loop {
        match next.take() {
            Some(value) => match children(&value) {
                Some(children) => open.push((children, 0)),
                None => events.push(Value::array(vec![Value::array(path.clone()), value])),
            },
            None => {
                let Some((children, place)) = open.last_mut() else { return events };
                if *place > 0 {
                    if *place == children.len() {
                        events.push(Value::array(vec![Value::array(path.clone())]));
                        path.pop();
                        open.pop();
                        continue;
                    }
                    path.pop();
                }
                let (key, value) = &children[*place];
                *place += 1;
                path.push(key.clone());
                next = Some(value.clone());
                continue;
            }
        }
        if open.is_empty() {
            return events;
        }
    }
}

/// The keys and values of a container that is not empty.
fn children(value: &Value) -> Option<Vec<(Value, Value)>> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            Some(items.iter().enumerate().map(|(at, item)| (at.into(), item.clone())).collect())
        }
        Value::Object(object) if !object.is_empty() => {
            Some(object.iter().map(|(key, value)| (Value::String(Rc::clone(key)), value.clone())).collect())
        }
        _ => None,
    }
}
