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
        (other, Value::String(key)) => raise(format!("Cannot index {} with string \"{key}\"", other.type_name())),
        (other, key) => raise(format!("Cannot index {} with {}", other.type_name(), key.type_name())),
    }
}

fn set_slice(value: &mut Value, key: &Value, rest: &[Value], new: Value) -> Outcome<()> {
    let Value::Object(bounds) = key else { return raise("A slice of an array can only be assigned another array") };
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

/// The value without what lies at the ends of paths. The last paths go first, so that none moves another's end.
pub fn delete(mut root: Value, mut paths: Vec<Value>) -> Outcome {
    paths.sort_by(compare);
    for path in paths.iter().rev() {
        let Value::Array(keys) = path else {
            return raise("Path must be specified as an array");
        };
        match keys.split_last() {
            None => return Ok(Value::Null),
            Some((last, before)) => delete_in(&mut root, before, last)?,
        }
    }
    Ok(root)
}

fn delete_in(value: &mut Value, path: &[Value], last: &Value) -> Outcome<()> {
    let Some((key, rest)) = path.split_first() else { return delete_key(value, last) };
    if let Value::Null = value {
        return Ok(());
    }
    if let Value::Object(_) = key {
        let mut part = ops::index(value.clone(), key)?;
        delete_in(&mut part, rest, last)?;
        return set_slice(value, key, &[], part);
    }
    // What is not there has nothing to delete, and must not come to be.
    if let Value::Null = ops::index(value.clone(), key)? {
        return Ok(());
    }
    delete_in(child(value, key)?, rest, last)
}

fn delete_key(value: &mut Value, key: &Value) -> Outcome<()> {
    match (value, key) {
        (Value::Null, _) => Ok(()),
        (Value::Object(object), Value::String(key)) => {
            if object.contains_key(key) {
                Rc::make_mut(object).remove(key);
            }
            Ok(())
        }
        (Value::Array(items), Value::Number(_) | Value::Literal(_)) => {
            let place = ops::place(key.as_number().unwrap_or(0.0), items.len());
            if let Some(at) = place.filter(|at| *at < items.len()) {
                Rc::make_mut(items).remove(at);
            }
            Ok(())
        }
        (Value::Array(items), Value::Object(bounds)) => {
            let bound = |name: &str| bounds.get(name).cloned().unwrap_or_default();
            let (from, to) = ops::slice_ends(&bound("start"), &bound("end"), items.len())?;
            Rc::make_mut(items).drain(from..to);
            Ok(())
        }
        (other, Value::String(_)) => raise(format!("Cannot delete field at object index of {}", other.type_name())),
        (other, _) => raise(format!("Cannot delete field at array index of {}", other.type_name())),
    }
}
