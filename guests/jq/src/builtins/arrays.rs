//! Arrays: order, groups, and what lies where.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::run::ops::{self, described};
use crate::run::{Outcome, raise};
use crate::value::{Array, Value, compare};
use crate::world::World;

use super::{Run, items};

pub const TABLE: &[(&str, usize, Run)] = &[
    ("add", 0, add),
    ("reverse", 0, reverse),
    ("sort", 0, sort),
    ("unique", 0, unique),
    ("min", 0, |_, input, _| extreme(&input, &input, Ordering::Less)),
    ("max", 0, |_, input, _| extreme(&input, &input, Ordering::Greater)),
    ("_min_by", 1, |_, input, keys| extreme(&input, &keys[0], Ordering::Less)),
    ("_max_by", 1, |_, input, keys| extreme(&input, &keys[0], Ordering::Greater)),
    ("_sort_by", 1, sort_by),
    ("_group_by", 1, group_by),
    ("_unique_by", 1, unique_by),
    ("flatten", 0, |_, input, _| flatten(&input, f64::INFINITY)),
    ("flatten", 1, flatten_to),
    ("transpose", 0, transpose),
    ("indices", 1, |_, input, arguments| indices(&input, &arguments[0])),
    ("index", 1, |_, input, arguments| Ok(end_of(indices(&input, &arguments[0])?, <[Value]>::first))),
    ("rindex", 1, |_, input, arguments| Ok(end_of(indices(&input, &arguments[0])?, <[Value]>::last))),
    ("bsearch", 1, bsearch),
];

fn add(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let items = items(&input)?;
    drop(input);
    if items.iter().all(|item| matches!(item, Value::String(_))) && !items.is_empty() {
        let text: String = items.iter().filter_map(Value::as_str).map(|text| &**text).collect();
        return Ok(Value::from(text));
    }
    items.into_iter().try_fold(Value::Null, ops::add)
}

fn reverse(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    match input {
        Value::Null => Ok(Value::array(Vec::new())),
        Value::Array(mut items) => {
            Rc::make_mut(&mut items).reverse();
            Ok(Value::Array(items))
        }
        Value::Object(object) if object.is_empty() => Ok(Value::array(Vec::new())),
        other => ops::index(other, &Value::Number(0.0)),
    }
}

fn array(input: Value) -> Outcome<Rc<Array>> {
    match input {
        Value::Array(items) => Ok(items),
        other => raise(format!("{} cannot be sorted, as it is not an array", described(&other))),
    }
}

fn sort(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let mut items = array(input)?;
    Rc::make_mut(&mut items).sort_by(compare);
    Ok(Value::Array(items))
}

fn unique(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let Value::Array(mut items) = input else { return ops::cannot_iterate(&input) };
    let own = Rc::make_mut(&mut items);
    own.sort_by(compare);
    own.dedup();
    Ok(Value::Array(items))
}

/// Items with their keys, in the order of the keys.
fn sorted(input: Value, keys: &Value) -> Outcome<Vec<(Value, Value)>> {
    let items = array(input)?;
    let Value::Array(keys) = keys else { return raise("keys must be an array") };
    let mut pairs: Vec<(Value, Value)> = keys.iter().cloned().zip(Array::into_items(items)).collect();
    pairs.sort_by(|one, two| compare(&one.0, &two.0));
    Ok(pairs)
}

fn sort_by(_: &mut World, input: Value, keys: &mut [Value]) -> Outcome {
    let pairs = sorted(input, &keys[0])?;
    Ok(Value::array(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn group_by(_: &mut World, input: Value, keys: &mut [Value]) -> Outcome {
    let mut groups: Vec<(Value, Vec<Value>)> = Vec::new();
    for (key, item) in sorted(input, &keys[0])? {
        match groups.last_mut() {
            Some((last, group)) if *last == key => group.push(item),
            _ => groups.push((key, vec![item])),
        }
    }
    Ok(Value::array(groups.into_iter().map(|(_, group)| Value::array(group)).collect()))
}

fn unique_by(_: &mut World, input: Value, keys: &mut [Value]) -> Outcome {
    let mut pairs = sorted(input, &keys[0])?;
    pairs.dedup_by(|later, earlier| later.0 == earlier.0);
    Ok(Value::array(pairs.into_iter().map(|(_, item)| item).collect()))
}

/// The first of the least, or the last of the greatest.
fn extreme(input: &Value, keys: &Value, wanted: Ordering) -> Outcome {
    let (Value::Array(items), Value::Array(keys)) = (input, keys) else {
        return raise(format!("{} and {} cannot be iterated over", described(input), described(keys)));
    };
    let mut best: Option<usize> = None;
    for (at, key) in keys.iter().enumerate() {
        let is_better = best.is_none_or(|best| {
            let order = compare(key, &keys[best]);
            order == wanted || order == Ordering::Equal && wanted == Ordering::Greater
        });
        if is_better {
            best = Some(at);
        }
    }
    Ok(best.and_then(|best| items.get(best)).cloned().unwrap_or_default())
}

fn flatten_to(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    match arguments[0].as_number() {
        Some(depth) if depth < 0.0 => raise("flatten depth must not be negative"),
        Some(depth) => flatten(&input, depth),
        None => raise("flatten depth must not be negative"),
    }
}

fn flatten(input: &Value, depth: f64) -> Outcome {
    let mut flat = Vec::new();
    // What is still to be laid out, last first.
    let mut pending: Vec<(Value, f64)> = items(input)?.into_iter().rev().map(|item| (item, depth)).collect();
    while let Some((item, depth)) = pending.pop() {
        match item {
            Value::Array(inner) if depth > 0.0 => {
                pending.extend(inner.iter().rev().map(|item| (item.clone(), depth - 1.0)));
            }
            other => flat.push(other),
        }
    }
    Ok(Value::array(flat))
}

fn transpose(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    let rows = items(&input)?;
    let mut width = 0;
    for row in &rows {
        match row {
            Value::Array(items) => width = width.max(items.len()),
            Value::Null => {}
            other => return ops::index(other.clone(), &Value::Number(0.0)),
        }
    }
    let column = |at: usize| {
        let cells = rows.iter().map(|row| match row {
            Value::Array(items) => items.get(at).cloned().unwrap_or_default(),
            _ => Value::Null,
        });
        Value::array(cells.collect())
    };
    Ok(Value::array((0..width).map(column).collect()))
}

fn indices(input: &Value, part: &Value) -> Outcome {
    match (input, part) {
        (Value::Null, _) => Ok(Value::Null),
        (Value::Array(_), Value::Array(part)) if part.is_empty() => Ok(Value::array(Vec::new())),
        (Value::Array(items), Value::Array(part)) => Ok(ops::indices_of_part(items, part)),
        (Value::String(text), Value::String(part)) => {
            // Counted in bytes, and they may overlap.
            let starts = memchr::memmem::find_iter(text.as_bytes(), part.as_bytes());
            if part.is_empty() {
                return Ok(Value::array(Vec::new()));
            }
            let mut all: Vec<usize> = Vec::new();
            for start in starts {
                all.push(start);
                let mut at = start + 1;
                while let Some(next) = overlapping(text, part, at, start + part.len()) {
                    all.push(next);
                    at = next + 1;
                }
            }
            all.sort_unstable();
            all.dedup();
            Ok(Value::array(all.into_iter().map(Value::from).collect()))
        }
        (Value::Array(items), item) => {
            let found = items.iter().enumerate().filter(|(_, present)| *present == item);
            Ok(Value::array(found.map(|(at, _)| Value::from(at)).collect()))
        }
        _ => ops::index(input.clone(), part),
    }
}

/// A match that begins within another.
fn overlapping(text: &str, part: &str, from: usize, until: usize) -> Option<usize> {
    (from..until.min(text.len())).find(|at| text.as_bytes()[*at..].starts_with(part.as_bytes()))
}

fn end_of(found: Value, end: fn(&[Value]) -> Option<&Value>) -> Value {
    match found {
        Value::Array(items) => end(&items).cloned().unwrap_or_default(),
        _ => Value::Null,
    }
}

fn bsearch(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let Value::Array(items) = &input else { return ops::index(input, &Value::Number(0.0)) };
    Ok(match items.binary_search_by(|item| compare(item, &arguments[0])) {
        Ok(at) => Value::from(at),
        Err(at) => Value::Number(-1.0 - at as f64),
    })
}
