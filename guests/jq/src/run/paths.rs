//! Reading, writing and deleting what lies at the end of a path.

use std::rc::Rc;

use crate::value::{Array, Value, compare};

use super::errors::{Outcome, raise};
use super::ops;

/// What lies there; `null` beyond what is not.
pub fn get(value: Value, path: &[Value]) -> Outcome {
    let mut value = value;
    for key in path {
        if let Value::Null = value {
            return Ok(Value::Null);
        }
        value = ops::index(value, key)?;
    }
    Ok(value)
}

/// The same with another value there. What is missing on the way is made.
pub fn set(mut root: Value, path: &[Value], new: Value) -> Outcome {
    set_in(&mut root, path, new)?;
    Ok(root)
}

fn set_in(value: &mut Value, path: &[Value], new: Value) -> Outcome<()> {
    let mut value = value;
    let mut path = path;
    loop {
        let Some((key, rest)) = path.split_first() else {
            *value = new;
            return Ok(());
        };
        if let Value::Object(_) = key {
            return set_slice(value, key, rest, new);
        }
        value = child(value, key)?;
        path = rest;
    }
}

/// The greatest index that an array is extended to.
const LARGEST_INDEX: f64 = 536_870_911.0;

/// The place of a child, made if it is not there.
fn child<'a>(value: &'a mut Value, key: &Value) -> Outcome<&'a mut Value> {
    if let Value::Null = value {
        *value = match key {
            Value::String(_) => Value::object(Default::default()),
            Value::Number(_) | Value::Literal(_) => Value::array(Vec::new()),
            _ => return raise(format!("Invalid path component {}", ops::described(key))),
        };
    }
    match (value, key) {
        (Value::Object(object), Value::String(key)) => Ok(Rc::make_mut(object).entry(key)),
        (Value::Array(items), Value::Number(_) | Value::Literal(_)) => {
            let number = key.as_number().unwrap_or(0.0);
            if number.is_nan() {
                return raise("Cannot set array element at NaN index");
            }
            if number > LARGEST_INDEX {
                return raise("Array index too large");
            }
            let Some(at) = ops::place(number, items.len()) else {
                return raise("Out of bounds negative array index");
            };
            let items = Rc::make_mut(items);
            if at >= items.len() {
                items.resize(at + 1, Value::Null);
            }
            Ok(&mut items[at])
        }
        (Value::Array(_), Value::Array(_)) => raise("Cannot update field at array index of array"),
        (other, Value::String(key)) => {
            raise(format!("Cannot index {} with string \"{key}\"", other.type_name()))
        }
        (other, key) => raise(format!("Cannot index {} with {}", other.type_name(), key.type_name())),
    }
}

fn set_slice(value: &mut Value, key: &Value, rest: &[Value], new: Value) -> Outcome<()> {
    let Value::Object(bounds) = key else {
        return raise("A slice of an array can only be assigned another array");
    };
    let bound = |name: &str| bounds.get(name).cloned().unwrap_or_default();
    if let Value::Null = value {
        *value = Value::array(Vec::new());
    }
    let items = match value {
        Value::Array(items) => items,
        Value::String(_) => return raise("Cannot update string slices"),
        other => return raise(format!("Cannot update field at object index of {}", other.type_name())),
    };
    let (from, to) = ops::slice_ends(&bound("start"), &bound("end"), items.len())?;
    let part = match rest {
        [] => new,
        _ => set(Value::array(items[from..to].to_vec()), rest, new)?,
    };
    let Value::Array(part) = part else {
        return raise("A slice of an array can only be assigned another array");
    };
    Rc::make_mut(items).splice(from..to, Array::into_items(part));
    Ok(())
}

/// The value without what lies at the ends of paths.
pub fn delete(mut root: Value, mut paths: Vec<Value>) -> Outcome {
    paths.sort_by(compare);
    let mut keys = Vec::with_capacity(paths.len());
    for path in &paths {
        match path {
            Value::Array(path) if path.is_empty() => return Ok(Value::Null),
            Value::Array(path) => keys.push(path.as_slice()),
            _ => return raise("Path must be specified as an array"),
        }
    }
    delete_in(&mut root, &keys)?;
    Ok(root)
}

/// Deletes what sorted paths lead to: first within what stays, then all keys of this value at once, so that none
/// moves what another means.
fn delete_in(value: &mut Value, paths: &[&[Value]]) -> Outcome<()> {
    let mut doomed = Vec::new();
    let mut rest = paths;
    while let Some(first) = rest.first() {
        let key = &first[0];
        let count = rest.iter().take_while(|path| path[0] == *key).count();
        let (group, others) = rest.split_at(count);
        rest = others;
        if group.iter().any(|path| path.len() == 1) {
            doomed.push(key);
            continue;
        }
        let inner: Vec<&[Value]> = group.iter().map(|path| &path[1..]).collect();
        delete_below(value, key, &inner)?;
    }
    match doomed.is_empty() {
        true => Ok(()),
        false => delete_keys(value, &doomed),
    }
}

fn delete_below(value: &mut Value, key: &Value, paths: &[&[Value]]) -> Outcome<()> {
    if let Value::Null = value {
        return Ok(());
    }
    // What is not there has nothing to delete, and must not come to be.
    let mut part = ops::index(value.clone(), key)?;
    match (&part, key) {
        (Value::Null, _) => Ok(()),
        (_, Value::Object(_)) => {
            delete_in(&mut part, paths)?;
            set_slice(value, key, &[], part)
        }
        _ => {
            drop(part);
            delete_in(child(value, key)?, paths)
        }
    }
}

fn delete_keys(value: &mut Value, keys: &[&Value]) -> Outcome<()> {
    match value {
        Value::Null => Ok(()),
        Value::Object(object) => {
            let object = Rc::make_mut(object);
            for key in keys {
                match key {
                    Value::String(key) => drop(object.remove(key)),
                    _ => return raise("Cannot delete field at array index of object"),
                }
            }
            Ok(())
        }
        Value::Array(items) => {
            let gone = doomed_items(keys, items.len())?;
            let mut places = gone.into_iter();
            Rc::make_mut(items).retain(|_| !places.next().unwrap_or(false));
            Ok(())
        }
        other => {
            let kind = if let Value::String(_) = keys[0] { "object" } else { "array" };
            raise(format!("Cannot delete field at {kind} index of {}", other.type_name()))
        }
    }
}

/// Which of the items of an array keys and slices mean.
fn doomed_items(keys: &[&Value], length: usize) -> Outcome<Vec<bool>> {
    let mut gone = vec![false; length];
    for key in keys {
        match key {
            Value::Number(_) | Value::Literal(_) => {
                let place = ops::place(key.as_number().unwrap_or(0.0), length);
                if let Some(item) = place.and_then(|place| gone.get_mut(place)) {
                    *item = true;
                }
            }
            Value::Object(bounds) => {
                let bound = |name: &str| bounds.get(name).cloned().unwrap_or_default();
                let (from, to) = ops::slice_ends(&bound("start"), &bound("end"), length)?;
                gone[from..to].fill(true);
            }
            _ => return raise("Cannot delete field at object index of array"),
        }
    }
    Ok(gone)
}
