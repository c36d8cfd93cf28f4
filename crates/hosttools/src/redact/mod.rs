//! Stage 9: secrets are taken out of everything that leaves: output, arguments, messages, records.
//!
//! ```
//! use wardian_hosttools::Redactor;
//! let redactor = Redactor::new(["hunter2"]).unwrap();
//! assert_eq!(redactor.text("it is hunter2; token=abc"), "it is [REDACTED]; token=[REDACTED]");
//! ```

mod keys;
mod shapes;
mod stream;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use memchr::memmem;

use crate::config::ConfigError;
use shapes::SHAPES;

pub use stream::StreamRedactor;

/// What stands in a secret's place.
pub const REDACTED: &str = "[REDACTED]";
/// A value shorter than this is in too many words to be taken out of all of them.
const SHORTEST: usize = 4;

/// Knows secrets by their value and by what they look like.
#[derive(Clone, Debug)]
pub struct Redactor {
    secrets: Arc<[Vec<u8>]>,
}

impl Redactor {
    /// One that knows these values, besides what secrets look like.
    pub fn new(secrets: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Result<Redactor, ConfigError> {
        let secrets: Vec<Vec<u8>> = secrets.into_iter().map(Into::into).collect();
        if secrets.iter().any(|secret| secret.len() < SHORTEST) {
            return Err(ConfigError(format!("a secret has fewer than {SHORTEST} bytes")));
        }
        Ok(Redactor { secrets: secrets.into() })
    }

    /// The text without secrets.
    pub fn bytes(&self, text: &[u8]) -> Vec<u8> {
        replaced(text, &self.found(text).secrets)
    }

    /// The same for a string.
    pub fn text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.bytes(text.as_bytes())).into_owned()
    }

    /// Arguments without secrets: one may be named by the word before it.
    pub fn words(&self, words: &[String]) -> Vec<String> {
        let mut before = String::new();
        let redact = |word: &String| {
            let named = format!("{before} {word}");
            let alone = self.text(word);
            let shown = if !alone.contains(REDACTED) && self.text(&named) == format!("{before} {REDACTED}") {
                REDACTED.to_owned()
            } else {
                alone
            };
            before.clone_from(word);
            shown
        };
        words.iter().map(redact).collect()
    }

    /// For output that comes in pieces.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.clone())
    }

    /// Where secrets are.
    fn found(&self, text: &[u8]) -> Found {
        let mut secrets = keys::find(text);
        for secret in self.secrets.iter() {
            let finder = memmem::Finder::new(secret);
            let mut from = 0;
            // Also where it overlaps itself.
            while let Some(at) = finder.find(&text[from..]) {
                secrets.push(from + at..from + at + secret.len());
                from += at + 1;
            }
        }
        let mut known_by = secrets.clone();
        for shape in SHAPES.present_in(text) {
            for captures in shape.whole.captures_iter(text) {
                let secret = captures.iter().skip(1).flatten().next().or(captures.get(0));
                secrets.extend(secret.map(|secret| secret.range()));
                known_by.extend(captures.get(0).map(|whole| whole.range()));
            }
        }
        Found { secrets: merged(secrets), known_by: merged(known_by) }
    }

    /// Where a secret begins that the end of the text has cut off.
    fn cut_at(&self, text: &[u8]) -> Option<usize> {
        let beginnings = self.secrets.iter().filter_map(|secret| beginning_at_end(text, secret, SHORTEST));
        let line = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let shapes = SHAPES.cut_at(&text[line..]).map(|start| line + start);
        beginnings.chain(shapes).min()
    }
}

/// Where secrets are in a text; each list is in order, and nothing in it overlaps.
struct Found {
    secrets: Vec<Range<usize>>,
    /// The secrets with what they are known by: a text cut inside of these would not show all of them.
    known_by: Vec<Range<usize>>,
}

/// Where a text ends with the beginning, but not all, of a secret: at least `shortest` bytes of it.
fn beginning_at_end(text: &[u8], secret: &[u8], shortest: usize) -> Option<usize> {
    let longest = secret.len().saturating_sub(1).min(text.len());
    (shortest..=longest)
        .rev()
        .find(|length| text.ends_with(&secret[..*length]))
        .map(|length| text.len() - length)
}

/// In order, with those that overlap made one.
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
