//! Whole values, from the inside out.

use crate::object::Object;
use crate::value::{Str, Value};

use super::{DEEPEST, Sink, Token};

/// What has begun and is not closed yet.
enum Open {
    Array(Vec<Value>),
    Object(Object),
    /// An object with a key that waits for its value.
    Key(Object, Str),
}

/// Builds values.
#[derive(Default)]
pub struct Tree {
    open: Vec<Open>,
    /// The value that stands before the next comma or bracket.
    last: Option<Value>,
    /// Brackets and keys that are open.
    depth: usize,
    /// Keys that were met before, each at a place that follows from its text.
    keys: Vec<Str>,
}

/// How many keys are remembered.
const KEYS: usize = 256;

impl Tree {
    fn begin(&mut self, open: Open) -> Result<(), &'static str> {
        if self.depth >= DEEPEST {
            return Err("Exceeds depth limit for parsing");
        }
        if self.last.is_some() {
            return Err("Expected separator between values");
        }
        self.depth += 1;
        self.open.push(open);
        Ok(())
    }

    fn colon(&mut self) -> Result<(), &'static str> {
        let key = self.last.take().ok_or("Expected string key before ':'")?;
        match (self.open.pop(), key) {
            (Some(Open::Object(object)), Value::String(key)) => {
                self.open.push(Open::Key(object, key));
                self.depth += 1;
                Ok(())
            }
            (Some(Open::Object(_)), _) => Err("Object keys must be strings"),
            _ => Err("':' not as part of an object"),
        }
    }

    fn comma(&mut self) -> Result<(), &'static str> {
        let value = self.last.take().ok_or("Expected value before ','")?;
        match self.open.pop() {
            Some(Open::Array(mut items)) => {
                items.push(value);
                self.open.push(Open::Array(items));
            }
            Some(Open::Key(mut object, key)) => {
                object.insert(key, value);
                self.depth -= 1;
                self.open.push(Open::Object(object));
            }
            Some(Open::Object(_)) => return Err("Objects must consist of key:value pairs"),
            None => return Err("',' not as part of an object or array"),
        }
        Ok(())
    }

    fn end_array(&mut self) -> Result<(), &'static str> {
        let Some(Open::Array(mut items)) = self.open.pop() else {
            return Err("Unmatched ']'");
        };
        match self.last.take() {
            Some(value) => items.push(value),
            None if !items.is_empty() => return Err("Expected another array element"),
            None => {}
        }
        self.depth -= 1;
        self.last = Some(Value::array(items));
        Ok(())
    }

    fn end_object(&mut self) -> Result<(), &'static str> {
        let object = match (self.open.pop(), self.last.take()) {
            (None, _) | (Some(Open::Array(_) | Open::Key(..)), None) => return Err("Unmatched '}'"),
            (Some(Open::Key(mut object, key)), Some(value)) => {
                object.insert(key, value);
                self.depth -= 1;
                object
            }
            (Some(_), Some(_)) => return Err("Objects must consist of key:value pairs"),
            (Some(Open::Object(object)), None) if object.is_empty() => object,
            (Some(Open::Object(_)), None) => return Err("Expected another key-value pair"),
        };
        self.depth -= 1;
        self.last = Some(Value::object(object));
        Ok(())
    }
}

impl Sink for Tree {
    fn take(&mut self, token: Token) -> Result<(), &'static str> {
        match token {
            Token::Scalar(_) if self.last.is_some() => Err("Expected separator between values"),
            Token::Scalar(value) => {
                self.last = Some(value);
                Ok(())
            }
            Token::Mark(b'[') => self.begin(Open::Array(Vec::new())),
            Token::Mark(b'{') => self.begin(Open::Object(Object::default())),
            Token::Mark(b':') => self.colon(),
            Token::Mark(b',') => self.comma(),
            Token::Mark(b']') => self.end_array(),
            Token::Mark(_) => self.end_object(),
        }
    }

    fn string(&mut self, text: &str) -> Value {
        if !matches!(self.open.last(), Some(Open::Object(_))) || text.len() > 40 {
            return Value::string(text);
        }
        if self.keys.is_empty() {
            self.keys = vec!["".into(); KEYS];
        }
        let mix = |hash: u32, byte: u8| hash.wrapping_mul(31).wrapping_add(u32::from(byte));
        let place = &mut self.keys[text.bytes().fold(0, mix) as usize % KEYS];
        if **place != *text {
            *place = text.into();
        }
        Value::String(place.clone())
    }

    fn finished(&mut self) -> Option<Value> {
        if self.open.is_empty() { self.last.take() } else { None }
    }

    fn is_within(&self) -> bool {
        !self.open.is_empty()
    }
}
