//! Arrays: from strings to values. A subscript that is an integer is kept as one, so that counting loops make no text.

use crate::number;
use crate::text::Str;
use crate::value::Value;
use indexmap::{Equivalent, IndexMap};
use rustc_hash::FxBuildHasher;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// An array, shared by all who were handed it.
pub type Array = Rc<RefCell<Table>>;

/// A new array without elements.
pub fn new_array() -> Array {
    Rc::new(RefCell::new(Table::default()))
}

/// The elements, in the order they were made (until one is deleted, which moves the last to its place).
#[derive(Default, Debug)]
pub struct Table(IndexMap<Key, Value, FxBuildHasher>);

/// A subscript. The text of an integer is always an `Int`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Key {
    /// One that is the text of an integer.
    Int(i64),
    /// Any other.
    Text(Str),
}

/// A subscript on its way to an element.
#[derive(Clone, Copy)]
pub enum KeyRef<'a> {
    /// One that is the text of an integer.
    Int(i64),
    /// Any other.
    Text(&'a [u8]),
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.borrowed().hash(state);
    }
}

impl Hash for KeyRef<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            KeyRef::Int(number) => state.write_i64(*number),
            KeyRef::Text(text) => state.write(text),
        }
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        match (self, key) {
            (KeyRef::Int(left), Key::Int(right)) => left == right,
            (KeyRef::Text(left), Key::Text(right)) => *left == right.as_bytes(),
            _ => false,
        }
    }
}

impl Key {
    /// The subscript, to look with.
    pub fn borrowed(&self) -> KeyRef<'_> {
        match self {
            Key::Int(number) => KeyRef::Int(*number),
            Key::Text(text) => KeyRef::Text(text.as_bytes()),
        }
    }

    /// The subscript as a value: a string, which compares as a number where it is one.
    pub fn to_value(&self) -> Value {
        Value::Str(self.to_str())
    }

    /// The subscript's text.
    pub fn to_str(&self) -> Str {
        match self {
            Key::Int(number) => {
                let mut text = Vec::with_capacity(20);
                number::append_integer(&mut text, *number);
                text.into()
            }
            Key::Text(text) => text.clone(),
        }
    }
}

impl<'a> KeyRef<'a> {
    /// The subscript with this text.
    #[inline]
    pub fn new(text: &'a [u8]) -> KeyRef<'a> {
        match canonical_integer(text) {
            Some(number) => KeyRef::Int(number),
            None => KeyRef::Text(text),
        }
    }

    /// A subscript to keep.
    pub fn to_key(self) -> Key {
        match self {
            KeyRef::Int(number) => Key::Int(number),
            KeyRef::Text(text) => Key::Text(Str::new(text)),
        }
    }
}

/// The integer whose only text this is: no sign but a minus, no leading zeros, not too long.
#[inline]
fn canonical_integer(text: &[u8]) -> Option<i64> {
    let digits = match text {
        [b'-', rest @ ..] if rest != b"0" => rest,
        _ => text,
    };
    let is_canonical = match digits {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 17 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !is_canonical {
        return None;
    }
    let number = digits.iter().fold(0, |number: i64, digit| number * 10 + i64::from(digit - b'0'));
    Some(if digits.len() < text.len() { -number } else { number })
}

impl Table {
    /// How many elements it has.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether there is such an element.
    #[inline]
    pub fn contains(&self, key: KeyRef<'_>) -> bool {
        self.0.contains_key(&key)
    }

    /// The element, if it is there.
    pub fn get(&self, key: KeyRef<'_>) -> Option<&Value> {
        self.0.get(&key)
    }

    /// The element, made if it is not there.
    #[inline]
    pub fn entry(&mut self, key: KeyRef<'_>) -> &mut Value {
        let index = match self.0.get_index_of(&key) {
            Some(index) => index,
            None => self.0.insert_full(key.to_key(), Value::Uninit).0,
        };
        &mut self.0[index]
    }

    /// Sets an element.
    pub fn set(&mut self, key: KeyRef<'_>, value: Value) {
        *self.entry(key) = value;
    }

    /// Takes an element out.
    pub fn delete(&mut self, key: KeyRef<'_>) {
        self.0.swap_remove(&key);
    }

    /// Takes all elements out.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The subscripts.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.keys()
    }

    /// The subscripts with their elements.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Value)> {
        self.0.iter()
    }

    /// Fills it anew with elements 1, 2, 3, …
    pub fn fill(&mut self, values: impl IntoIterator<Item = Value>) {
        self.0.clear();
        self.0.extend((1..).map(Key::Int).zip(values));
    }
}
