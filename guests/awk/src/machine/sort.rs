//! Arrays in order: `asort`, `asorti`, and the order of `for (key in array)`.

use super::Machine;
use crate::array::{Array, Key, KeyRef};
use crate::code::special;
use crate::error::{Error, Result};
use crate::number;
use crate::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

/// An order: by what, as what, which way.
enum Order {
    Keys {
        numeric: bool,
        down: bool,
    },
    Values {
        by: By,
        down: bool,
    },
    /// A function of the program's.
    Function(u32),
}

#[derive(Clone, Copy, PartialEq)]
enum By {
    Kind,
    Text,
    Number,
}

impl Machine {
    fn order_named(&self, name: &[u8]) -> Result<Order> {
        Ok(match name {
            b"@ind_str_asc" => Order::Keys { numeric: false, down: false },
            b"@ind_str_desc" => Order::Keys { numeric: false, down: true },
            b"@ind_num_asc" => Order::Keys { numeric: true, down: false },
            b"@ind_num_desc" => Order::Keys { numeric: true, down: true },
            b"@val_type_asc" => Order::Values { by: By::Kind, down: false },
            b"@val_type_desc" => Order::Values { by: By::Kind, down: true },
            b"@val_str_asc" => Order::Values { by: By::Text, down: false },
            b"@val_str_desc" => Order::Values { by: By::Text, down: true },
            b"@val_num_asc" => Order::Values { by: By::Number, down: false },
            b"@val_num_desc" => Order::Values { by: By::Number, down: true },
            name if name.first() == Some(&b'@') => {
                let name = String::from_utf8_lossy(name);
                return Err(Error::fatal(format_args!("sort comparison function `{name}' is not defined")));
            }
            name => Order::Function(self.function_named(name, 4)?),
        })
    }

    /// The subscripts for a loop, in the order that `PROCINFO["sorted_in"]` asks for.
    pub(super) fn keys_in_order(&mut self, array: &Array) -> Result<Vec<Key>> {
        let wanted = match &self.globals[special::PROCINFO as usize] {
            Value::Array(process) => process.borrow().get(KeyRef::Text(b"sorted_in")).cloned(),
            _ => None,
        };
        let Some(wanted) = wanted else { return Ok(array.borrow().keys().cloned().collect()) };
        let name = wanted.to_str(&self.convfmt);
        if name.as_bytes().is_empty() || name.as_bytes() == b"@unsorted" {
            return Ok(array.borrow().keys().cloned().collect());
        }
        let order = self.order_named(name.as_bytes())?;
        let sorted = self.sorted(array, &order)?;
        Ok(sorted.into_iter().map(|(key, _)| key).collect())
    }

    fn sorted(&mut self, array: &Array, order: &Order) -> Result<Vec<(Key, Value)>> {
        let mut pairs: Vec<(Key, Value)> =
            array.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let convfmt = self.convfmt.clone();
        let mut failure = None;
        match order {
            Order::Keys { numeric, down } => {
                pairs.sort_by(|left, right| {
                    let by_number = if *numeric {
                        number::compare(key_number(&left.0), key_number(&right.0))
                    } else {
                        Ordering::Equal
                    };
                    let order =
                        by_number.then_with(|| left.0.to_str().as_bytes().cmp(right.0.to_str().as_bytes()));
                    if *down { order.reverse() } else { order }
                });
            }
            Order::Values { by, down } => pairs.sort_by(|left, right| {
                let order = compare_values(*by, &left.1, &right.1, &convfmt)
                    .then_with(|| compare_keys(&left.0, &right.0));
                if *down { order.reverse() } else { order }
            }),
            Order::Function(function) => {
                // A merge sort of ours: a function that contradicts itself must not panic the library's.
                pairs = merge_sort(pairs, &mut |left, right| {
                    if failure.is_some() {
                        return Ordering::Equal;
                    }
                    let args = vec![left.0.to_value(), left.1.clone(), right.0.to_value(), right.1.clone()];
                    match self.call(*function, args) {
                        Ok(answer) => number::compare(answer.to_num(), 0.0),
                        Err(error) => {
                            failure = Some(error);
                            Ordering::Equal
                        }
                    }
                });
            }
        }
        failure.map_or(Ok(pairs), Err)
    }

    /// `asort` and `asorti`: the values or subscripts in order, as elements 1, 2, 3, …
    pub(super) fn sort_array(&mut self, args: &[Value], of_keys: bool) -> Result<f64> {
        let Some(Value::Array(source)) = args.first() else {
            return Err(Error::fatal("asort: first argument is not an array"));
        };
        let target = match args.get(1) {
            Some(Value::Array(target)) => Rc::clone(target),
            _ => Rc::clone(source),
        };
        let order = match args.get(2) {
            Some(name) => {
                let name = name.to_str(&self.convfmt);
                self.order_named(name.as_bytes())?
            }
            None if of_keys => Order::Keys { numeric: false, down: false },
            None => Order::Values { by: By::Kind, down: false },
        };
        let sorted = self.sorted(source, &order)?;
        let count = sorted.len();
        let elements = sorted.into_iter().map(|(key, value)| if of_keys { key.to_value() } else { value });
        target.borrow_mut().fill(elements);
        Ok(count as f64)
    }
}

fn key_number(key: &Key) -> f64 {
    match key {
        Key::Int(number) => *number as f64,
        Key::Text(text) => number::parse(text.as_bytes()),
    }
}

fn compare_keys(left: &Key, right: &Key) -> Ordering {
    number::compare(key_number(left), key_number(right))
        .then_with(|| left.to_str().as_bytes().cmp(right.to_str().as_bytes()))
}

/// Numbers before strings before arrays, as far as the order looks at that.
fn compare_values(by: By, left: &Value, right: &Value, convfmt: &[u8]) -> Ordering {
    let rank = |value: &Value| match value {
        Value::Array(_) => 2,
        value if by == By::Kind && value.numeric().is_none() => 1,
        _ => 0,
    };
    let by_rank = rank(left).cmp(&rank(right));
    by_rank.then_with(|| match by {
        By::Kind => left.compare(right, convfmt),
        By::Text => left.to_str(convfmt).as_bytes().cmp(right.to_str(convfmt).as_bytes()),
        By::Number => number::compare(left.to_num(), right.to_num()),
    })
}

/// Sorts by a comparison that need not be consistent.
fn merge_sort<T>(items: Vec<T>, compare: &mut dyn FnMut(&T, &T) -> Ordering) -> Vec<T> {
    let mut runs: Vec<Vec<T>> = items.into_iter().map(|item| vec![item]).collect();
    while runs.len() > 1 {
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        let mut pending = runs.into_iter();
        while let Some(left) = pending.next() {
            merged.push(match pending.next() {
                Some(right) => merge(left, right, compare),
                None => left,
            });
        }
        runs = merged;
    }
    runs.pop().unwrap_or_default()
}

fn merge<T>(left: Vec<T>, right: Vec<T>, compare: &mut dyn FnMut(&T, &T) -> Ordering) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(first), Some(second)) = (left.peek(), right.peek()) {
        let from_right = compare(first, second) == Ordering::Greater;
        merged.extend(if from_right { right.next() } else { left.next() });
    }
    merged.extend(left);
    merged.extend(right);
    merged
}
