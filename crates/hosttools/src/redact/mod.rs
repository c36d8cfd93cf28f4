//! Stage 9: removes secrets from everything that leaves: output, arguments, messages, records.
//!
//! ```
//! use wardian_hosttools::Redactor;
//! let redactor = Redactor::new(["hunter2"]).unwrap();
//! assert_eq!(redactor.text("it is hunter2; PASSWORD=tr0ub4dor"), "it is [REDACTED]; PASSWORD=[REDACTED]");
//! assert_eq!(redactor.text("password = get_password()"), "password = get_password()");
//! ```

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod generated;
mod judge;
mod keys;
mod named;
mod shapes;
mod stream;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use crate::config::ConfigError;
use named::{Named, Reading};
use shapes::SHAPES;

pub use stream::StreamRedactor;

/// What replaces a secret.
pub const REDACTED: &str = "[REDACTED]";
/// Shorter values occur in too many words to be removed from all of them.
const SHORTEST: usize = 4;

/// Recognizes secrets by value and by format.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: Arc<[Vec<u8>]>,
}

impl Redactor {
    /// Creates a redactor that knows these values, in addition to the formats of secrets.
    pub fn new(secrets: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Result<Redactor, ConfigError> {
        let secrets: Vec<Vec<u8>> = secrets.into_iter().map(Into::into).collect();
        if secrets.iter().any(|secret| secret.len() < SHORTEST) {
            return Err(ConfigError(format!("a secret has fewer than {SHORTEST} bytes")));
        }
        Ok(Redactor { secrets: secrets.into() })
    }

    /// Returns the text without secrets.
    pub fn bytes(&self, text: &[u8]) -> Vec<u8> {
        replaced(text, &self.found(text, Reading { from: 0, at_line_start: true, eager: false }).secrets)
    }

    /// Does the same for a string.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Redacts a text for a record: no one edits files based on it, so a value named like a secret counts as one,
    /// whatever it looks like.
    pub(crate) fn recorded(&self, text: &str) -> String {
        let found = self.found(text.as_bytes(), Reading { from: 0, at_line_start: true, eager: true });
        String::from_utf8_lossy(&replaced(text.as_bytes(), &found.secrets)).into_owned()
    }

    /// Redacts arguments for a record: a secret may be named by the argument before it.
    pub fn words(&self, words: &[String]) -> Vec<String> {
        let announced = [false].into_iter().chain(words.iter().map(|word| named::announces(word)));
        let line = words.join(" ");
        let secrets =
            self.found(line.as_bytes(), Reading { from: 0, at_line_start: true, eager: false }).secrets;
        let mut start = 0;
        let mut shown = Vec::with_capacity(words.len());
        for (word, announced) in words.iter().zip(announced) {
            let place = start..start + word.len();
            start = place.end + 1;
            shown.push(match announced && !word.starts_with('-') {
                true => REDACTED.to_owned(),
                false => self.recorded(&without(word, place, &secrets)),
            });
        }
        shown
    }

    /// Returns a redactor for streamed output.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.clone())
    }

    /// Returns where secrets are.
    fn found(&self, text: &[u8], reading: Reading) -> Found {
        let (mut secrets, mut known_by) = keys::find(text, reading.from);
        for secret in self.secrets.iter() {
            let finder = memmem::Finder::new(secret);
            let mut from = 0;
            // Also where it overlaps itself.
            while let Some(at) = finder.find(&text[from..]) {
                secrets.push(from + at..from + at + secret.len());
                from += at + 1;
            }
        }
        known_by.extend_from_slice(&secrets);
        for shape in SHAPES.present_in(text) {
            let mut from = reading.from;
            while let Some(captures) = shape.whole.captures_at(text, from) {
                let whole = captures.get(0).expect("a match is one").range();
                let secret =
                    captures.iter().skip(1).flatten().next().map_or(whole.clone(), |secret| secret.range());
                secrets.extend(shape.accepts(&text[secret.clone()]).then_some(secret));
                from = whole.end;
                known_by.push(whole);
            }
        }
        for Named { name, value } in named::find(text, reading) {
            known_by.push(name.start..value.as_ref().map_or(name.end, |value| value.end));
            secrets.extend(value);
        }
        Found { secrets: merged(secrets), known_by: merged(known_by) }
    }

    /// Returns where a secret begins that the end of the text has cut off.
    fn cut_at(&self, text: &[u8]) -> Option<usize> {
        let beginnings = self.secrets.iter().filter_map(|secret| beginning_at_end(text, secret, SHORTEST));
        let line = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let shapes = SHAPES.cut_at(&text[line..]).into_iter().chain(named::cut_at(&text[line..]));
        beginnings.chain(shapes.map(|start| line + start)).chain(keys::open_at(text)).min()
    }
}

/// Where secrets are in a text; each list is sorted, and its entries do not overlap.
struct Found {
    secrets: Vec<Range<usize>>,
    /// The secrets with the text that identifies them, and candidates: cutting the text inside these would hide some of
    /// it.
    known_by: Vec<Range<usize>>,
}

/// Returns where a text ends with the beginning, but not all, of a secret: at least `shortest` bytes of it.
fn beginning_at_end(text: &[u8], secret: &[u8], shortest: usize) -> Option<usize> {
    let longest = secret.len().saturating_sub(1).min(text.len());
    (shortest..=longest)
        .rev()
        .find(|length| text.ends_with(&secret[..*length]))
        .map(|length| text.len() - length)
}

/// Sorts ranges and merges those that overlap.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

/// Returns a word without what is secret of it on the line of which it is a part.
fn without(word: &str, place: Range<usize>, secrets: &[Range<usize>]) -> String {
    let within = secrets.iter().filter(|secret| secret.start < place.end && secret.end > place.start);
    let within: Vec<Range<usize>> = within
        .map(|secret| secret.start.max(place.start) - place.start..secret.end.min(place.end) - place.start)
        .collect();
    String::from_utf8_lossy(&replaced(word.as_bytes(), &within)).into_owned()
}

fn replaced(text: &[u8], secrets: &[Range<usize>]) -> Vec<u8> {
    let mut shown = Vec::with_capacity(text.len());
    let mut from = 0;
    for secret in secrets {
        shown.extend_from_slice(&text[from..secret.start]);
        shown.extend_from_slice(REDACTED.as_bytes());
        from = secret.end;
    }
    shown.extend_from_slice(&text[from..]);
    shown
}
