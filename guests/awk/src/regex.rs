//! Regular expressions as awk has them.

pub use wardian_regex::Regex;
use wardian_regex::{Groups, Options, Syntax};

/// Compiles a pattern. The error says what is wrong with it.
pub fn compile(pattern: &[u8], ignore_case: bool) -> Result<Regex, String> {
    Regex::new(pattern, &Options { ignore_case, ..Options::new(Syntax::Awk) })
}

/// The bounds of the first match at or after a place and those of its groups.
pub fn captures_at(regex: &Regex, text: &[u8], start: usize) -> Option<Groups> {
    let mut groups = Groups::new();
    regex.captures_at(text, start, &mut groups).then_some(groups)
}
