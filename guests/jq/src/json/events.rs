//! `--stream`: a text as a series of paths and leaves, of which only the path is held.

use std::collections::VecDeque;

use crate::value::Value;

use super::{DEEPEST, Sink, Token};

/// What may come next.
#[derive(Clone, Copy, PartialEq)]
enum Expects {
    /// A value; after an opening bracket, or the bracket's end.
    FirstItem,
    Item,
    FirstKey,
    Key,
    Colon,
    /// The value of a key, or a whole text.
    Value,
    /// A comma or the end.
    More,
}

/// Makes events: `[path, leaf]` for a scalar or an empty container, `[path]` of the last item at the end of others.
pub struct Events {
    /// A number within an array, a string within an object.
    path: Vec<Value>,
    expects: Expects,
    ready: VecDeque<Value>,
    /// A leaf within a container, which is given out once something follows it.
    held: Option<Value>,
    /// `null` for the key that an object has not had yet.
    is_array: Vec<bool>,
}

impl Default for Events {
    fn default() -> Self {
        Events {
            path: Vec::new(),
            expects: Expects::Value,
            ready: VecDeque::new(),
            held: None,
            is_array: Vec::new(),
        }
    }
}

impl Events {
    /// What is left of an unfinished text, for `--stream-errors`.
    pub fn path(&self) -> Value {
        Value::array(self.path.clone())
    }

    /// A value begins here: an array counts it.
    fn step(&mut self) -> Result<(), &'static str> {
        match (self.expects, self.path.last_mut()) {
            (Expects::FirstItem, Some(index)) => *index = Value::Number(0.0),
            (Expects::Item, Some(index)) => *index = Value::Number(index.as_number().unwrap_or(0.0) + 1.0),
            (Expects::Value, _) => {}
            (Expects::Colon, _) => return Err("':' should follow a key"),
            (Expects::FirstKey | Expects::Key, _) => return Err("Object keys must be strings"),
            _ => return Err("Expected separator between values"),
        }
        Ok(())
    }

    fn leaf(&mut self, value: Value) {
        self.ready.push_back(Value::array(vec![self.path(), value]));
        self.after_value();
    }

    fn after_value(&mut self) {
        self.expects = if self.path.is_empty() { Expects::Value } else { Expects::More };
    }

    fn begin(&mut self, is_array: bool) -> Result<(), &'static str> {
        if self.path.len() >= DEEPEST {
            return Err("Exceeds depth limit for parsing");
        }
        self.step()?;
        self.path.push(Value::Null);
        self.is_array.push(is_array);
        self.expects = if is_array { Expects::FirstItem } else { Expects::FirstKey };
        Ok(())
    }

    fn end(&mut self, is_array: bool) -> Result<(), &'static str> {
        let unmatched = if is_array { "Unmatched ']'" } else { "Unmatched '}'" };
        if self.is_array.last() != Some(&is_array) {
            return Err(unmatched);
        }
        let empty = match self.expects {
            Expects::FirstItem | Expects::FirstKey => true,
            Expects::More => false,
            Expects::Item => return Err("Expected another array element"),
            Expects::Key => return Err("Expected another key-value pair"),
            _ => return Err(unmatched),
        };
        let path = self.path();
        self.path.pop();
        self.is_array.pop();
        if empty {
            let nothing = if is_array { Value::array(Vec::new()) } else { Value::object(Default::default()) };
            self.leaf(nothing);
        } else {
            self.ready.push_back(Value::array(vec![path]));
            self.after_value();
        }
        Ok(())
    }
}

impl Sink for Events {
    fn take(&mut self, token: Token) -> Result<(), &'static str> {
        self.ready.extend(self.held.take());
        match token {
            Token::Scalar(key @ Value::String(_))
                if matches!(self.expects, Expects::FirstKey | Expects::Key) =>
            {
                if let Some(last) = self.path.last_mut() {
                    *last = key;
                }
                self.expects = Expects::Colon;
            }
            Token::Scalar(value) => {
                self.step()?;
                self.leaf(value);
                if !self.path.is_empty() {
                    self.held = self.ready.pop_back();
                }
            }
            Token::Mark(b'[') => self.begin(true)?,
            Token::Mark(b'{') => self.begin(false)?,
            Token::Mark(b']') => self.end(true)?,
            Token::Mark(b'}') => self.end(false)?,
            Token::Mark(b':') if self.expects == Expects::Colon => self.expects = Expects::Value,
            Token::Mark(b':') => return Err("':' not as part of an object"),
            Token::Mark(_) if self.expects == Expects::More => {
                let in_array = self.is_array.last() == Some(&true);
                self.expects = if in_array { Expects::Item } else { Expects::Key };
            }
            Token::Mark(_) if self.path.is_empty() => return Err("',' not as part of an object or array"),
            Token::Mark(_) => return Err("Expected value before ','"),
        }
        Ok(())
    }

    fn finished(&mut self) -> Option<Value> {
        self.ready.pop_front()
    }

    fn is_within(&self) -> bool {
        !self.path.is_empty()
    }
}
