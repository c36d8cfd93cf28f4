//! Values: what JSON can say, shared by reference count and copied when written to.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use crate::number::Literal;
use crate::object::Object;

/// A string. Always UTF-8: what is not becomes U+FFFD where it is read.
pub type Str = Rc<str>;

/// One JSON value.
#[derive(Clone, Debug, Default)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    Number(f64),
    /// A number as it was written, where printing the double would lose digits or zeros. Any arithmetic makes it a
    /// plain number.
    Literal(Rc<Literal>),
    String(Str),
    Array(Rc<Array>),
    Object(Rc<Object>),
}

impl Value {
    pub fn string(text: impl AsRef<str>) -> Value {
        Value::String(Rc::from(text.as_ref()))
    }

    pub fn array(items: Vec<Value>) -> Value {
        Value::Array(Rc::new(Array(items)))
    }

    pub fn object(object: Object) -> Value {
        Value::Object(Rc::new(object))
    }

    /// Everything but `null` and `false`.
    pub fn is_true(&self) -> bool {
        !matches!(self, Value::Null | Value::Bool(false))
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Literal(literal) => Some(literal.double),
            _ => None,
        }
    }

    pub fn as_str(&self) -> Option<&Str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) | Value::Literal(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    /// Whether two values are the very same: containers and strings by where they lie, the rest by what they are.
    pub fn is_identical(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::String(one), Value::String(two)) => Rc::ptr_eq(one, two),
            (Value::Array(one), Value::Array(two)) => Rc::ptr_eq(one, two),
            (Value::Object(one), Value::Object(two)) => Rc::ptr_eq(one, two),
            _ => match (self.as_number(), other.as_number()) {
                (Some(one), Some(two)) => one.to_bits() == two.to_bits(),
                _ => false,
            },
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Value::Null => 0,
            Value::Bool(false) => 1,
            Value::Bool(true) => 2,
            Value::Number(_) | Value::Literal(_) => 3,
            Value::String(_) => 4,
            Value::Array(_) => 5,
            Value::Object(_) => 6,
        }
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Value {
        Value::Number(number as f64)
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::Bool(truth)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::string(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::String(Rc::from(text))
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::array(items)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        compare(self, other) == Ordering::Equal
    }
}

/// jq's order of all values: null, false, true, numbers, strings, arrays, objects. `nan` is below every number.
pub fn compare(one: &Value, two: &Value) -> Ordering {
    compare_at(one, two, 0)
}

/// How deep two values are compared. No JSON text is this deep; a program that builds such a value and sorts it would
/// run out of stack.
const DEEPEST_COMPARED: usize = 20_000;

fn compare_at(one: &Value, two: &Value, depth: usize) -> Ordering {
    if depth > DEEPEST_COMPARED {
        toolkit::complain("jq", "error: the values are nested too deeply to be compared");
        wardian_abi::exit(5);
    }
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => compare_numbers(*one, *two),
        (Value::Literal(one), Value::Literal(two)) => {
            compare_numbers(one.double, two.double).then_with(|| one.compare_digits(two))
        }
        (Value::String(one), Value::String(two)) => one.as_bytes().cmp(two.as_bytes()),
        (Value::Array(one), Value::Array(two)) => {
            if Rc::ptr_eq(one, two) {
                return Ordering::Equal;
            }
            let pairs = one.iter().zip(two.iter());
            let first = pairs.map(|(one, two)| compare_at(one, two, depth + 1)).find(|order| order.is_ne());
            first.unwrap_or_else(|| one.len().cmp(&two.len()))
        }
        (Value::Object(one), Value::Object(two)) => {
            if Rc::ptr_eq(one, two) {
                return Ordering::Equal;
            }
            compare_objects(one, two, depth)
        }
        _ => match (one.as_number(), two.as_number()) {
            (Some(one), Some(two)) => compare_numbers(one, two),
            _ => one.rank().cmp(&two.rank()),
        },
    }
}

fn compare_numbers(one: f64, two: f64) -> Ordering {
    if one.is_nan() { Ordering::Less } else { one.partial_cmp(&two).unwrap_or(Ordering::Greater) }
}

/// First the sets of keys, then the values key by key.
fn compare_objects(one: &Object, two: &Object, depth: usize) -> Ordering {
    let (keys_of_one, keys_of_two) = (one.sorted_keys(), two.sorted_keys());
    keys_of_one.cmp(&keys_of_two).then_with(|| {
        let both = keys_of_one.iter().map(|key| (one.get(key), two.get(key)));
        let orders = both.map(|pair| match pair {
            (Some(one), Some(two)) => compare_at(one, two, depth + 1),
            _ => Ordering::Equal,
        });
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    })
}

/// The items of an array.
#[derive(Clone, Debug, Default)]
pub struct Array(pub Vec<Value>);

impl Array {
    /// The items, without copying them if nobody else has the array.
    pub fn into_items(shared: Rc<Array>) -> Vec<Value> {
        let mut shared = shared;
        match Rc::get_mut(&mut shared) {
            Some(array) => std::mem::take(&mut array.0),
            None => shared.0.clone(),
        }
    }
}

impl Deref for Array {
    type Target = Vec<Value>;
    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}

impl DerefMut for Array {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if self.0.iter().any(|item| matches!(item, Value::Array(_) | Value::Object(_))) {
            let items = std::mem::take(&mut self.0);
            drop_gently(items);
        }
    }
}

thread_local! {
    static DROPPING: Cell<usize> = const { Cell::new(0) };
    static PENDING: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
}

/// How many drops may be within each other.
const DEEPEST_DROP: usize = 500;

/// Drops what may be the head of a long chain of things, each held by the one before: what lies too deep waits until
/// the stack is free again.
pub fn drop_gently<T: 'static>(thing: T) {
    let depth = DROPPING.get();
    if depth >= DEEPEST_DROP {
        PENDING.with_borrow_mut(|pending| pending.push(Box::new(thing)));
        return;
    }
    DROPPING.set(depth + 1);
    drop(thing);
    if depth == 0 {
        while let Some(next) = PENDING.with_borrow_mut(Vec::pop) {
            drop(next);
        }
    }
    DROPPING.set(depth);
}
