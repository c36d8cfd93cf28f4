//! Regular expressions, as git compiles them.

use wardian_regex::{Options, Regex, Syntax};

use crate::fail::{Fail, Res};
use crate::files::text;

pub fn regex(pattern: &[u8], syntax: Syntax, ignore_case: bool) -> Res<Regex> {
    let options = Options { ignore_case, ..Options::new(syntax) };
    Regex::new(pattern, &options)
        .map_err(|error| Fail::Fatal(format!("command line, '{}': {error}", text(pattern))))
}
