//! Objects: keys in the order they came, found by a scan while few and by a table once many.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::value::{Str, Value, drop_gently};

/// The entries of an object in order of insertion.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// A removed entry leaves a gap, so that the places in the table stay right.
    entries: Vec<Option<(Str, Value)>>,
    gaps: usize,
    table: Option<Box<Table>>,
}

type Table = HashMap<Str, usize, BuildHasherDefault<Mixer>>;

/// From here on a table is worth its keep.
const MANY: usize = 12;

impl Object {
    pub fn len(&self) -> usize {
        self.entries.len() - self.gaps
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Str, &Value)> {
        self.entries.iter().flatten().map(|(key, value)| (key, value))
    }

    /// The entry at a place, which may be a gap. Places go up to `places()`.
    pub fn at(&self, place: usize) -> Option<(&Str, &Value)> {
        self.entries.get(place)?.as_ref().map(|(key, value)| (key, value))
    }

    pub fn places(&self) -> usize {
        self.entries.len()
    }

    fn find(&self, key: &str) -> Option<usize> {
        match &self.table {
            Some(table) => table.get(key).copied(),
            None => {
                self.entries.iter().position(|entry| matches!(entry, Some((present, _)) if **present == *key))
            }
        }
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.at(self.find(key)?).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        let place = self.find(key)?;
        self.entries[place].as_mut().map(|(_, value)| value)
    }

    pub fn contains_key(&self, key: &str) -> bool {
        self.find(key).is_some()
    }

    /// Sets a key, at its old place if it has one.
    pub fn insert(&mut self, key: Str, value: Value) {
        match self.find(&key) {
            Some(place) => self.entries[place] = Some((key, value)),
            None => self.push(key, value),
        }
    }

    fn push(&mut self, key: Str, value: Value) {
        let place = self.entries.len();
        match &mut self.table {
            Some(table) => {
                table.insert(key.clone(), place);
            }
            None if place == MANY => {
                let keys = self.entries.iter().enumerate();
                let mut table: Table = keys
                    .filter_map(|(place, entry)| entry.as_ref().map(|(key, _)| (key.clone(), place)))
                    .collect();
                table.insert(key.clone(), place);
                self.table = Some(Box::new(table));
            }
            None => {}
        }
        self.entries.push(Some((key, value)));
    }

    /// The value of a key, `null` if it had none, to be written to.
    pub fn entry(&mut self, key: &Str) -> &mut Value {
        let place = match self.find(key) {
            Some(place) => place,
            None => {
                self.push(key.clone(), Value::Null);
                self.entries.len() - 1
            }
        };
        let (_, value) = self.entries[place].get_or_insert_with(|| (key.clone(), Value::Null));
        value
    }

    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let place = self.find(key)?;
        let (_, value) = self.entries[place].take()?;
        self.gaps += 1;
        if let Some(table) = &mut self.table {
            table.remove(key);
        }
        if self.gaps > MANY && self.gaps * 2 > self.entries.len() {
            let entries = std::mem::take(&mut self.entries);
            *self = entries.into_iter().flatten().collect();
        }
        Some(value)
    }

    /// The keys in the order of their code points, which is that of their bytes.
    pub fn sorted_keys(&self) -> Vec<&Str> {
        let mut keys: Vec<&Str> = self.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys
    }
}

impl FromIterator<(Str, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (Str, Value)>>(entries: I) -> Object {
        let mut object = Object::default();
        for (key, value) in entries {
            object.insert(key, value);
        }
        object
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        if self.entries.iter().flatten().any(|(_, value)| matches!(value, Value::Array(_) | Value::Object(_)))
        {
            let entries = std::mem::take(&mut self.entries);
            drop_gently(entries);
        }
    }
}

/// A quick hash: keys are short, and who makes them collide only slows down a program of their own.
#[derive(Default)]
struct Mixer(u64);

const FACTOR: u64 = 0xf135_7aea_2e62_a9c5;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        let mut last = [0; 8];
        let rest = chunks.remainder();
        last[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(last) ^ bytes.len() as u64);
    }

    fn write_u8(&mut self, _end: u8) {}

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
