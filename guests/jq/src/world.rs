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
}

impl World {
    pub fn new(inputs: Inputs) -> World {
        World { inputs, regexes: RegexCache::default(), search_list: Value::array(Vec::new()) }
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
