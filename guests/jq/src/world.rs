//! All that a program reaches beyond its input.

use crate::builtins::RegexCache;
use crate::inputs::Inputs;
use crate::run::Outcome;
use crate::value::Value;

/// The outside, as seen from a program.
pub struct World {
    pub inputs: Inputs,
    pub regexes: RegexCache,
    pub search_list: Value,
    pub documents: Documents,
}

/// The documents that yq was given, and the one it is at.
#[derive(Default)]
pub struct Documents {
    pub all: Vec<(Value, Origin)>,
    pub current: Origin,
}

/// Where a document came from.
#[derive(Clone, Default)]
pub struct Origin {
    pub file: String,
    pub file_index: usize,
    /// Within its file.
    pub index: usize,
}

impl Documents {
    /// Goes to a document.
    pub fn enter(&mut self, index: usize) -> Option<Value> {
        let (value, origin) = self.all.get(index)?;
        self.current = origin.clone();
        Some(value.clone())
    }
}

impl World {
    pub fn new(inputs: Inputs) -> World {
        World {
            inputs,
            regexes: RegexCache::default(),
            search_list: Value::array(Vec::new()),
            documents: Documents::default(),
        }
    }

    /// The next input, for `input` and `inputs`.
    pub fn next_input(&mut self) -> Outcome<Option<Value>> {
        self.inputs.next()
    }

    /// Says something on standard error.
    pub fn say(&mut self, text: &str) {
        // There is nowhere left to say that this failed.
        let _ = wardian_abi::write_all(2, text.as_bytes());
    }
}
