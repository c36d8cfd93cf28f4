//! What a model is told.

use serde_json::Value;
use wardian::Error;

/// Something that the model has to do differently, in a sentence.
#[derive(Debug)]
pub(crate) struct Mistake(String);

impl Mistake {
    pub(crate) fn new(sentence: impl Into<String>) -> Mistake {
        Mistake(sentence.into())
    }

    pub(crate) fn sentence(&self) -> &str {
        &self.0
    }
}

impl From<Error> for Mistake {
    fn from(error: Error) -> Mistake {
        Mistake(error.to_string())
    }
}

/// The result of a tool: text for the model, the same as data for the client, and images.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) data: Value,
    /// PNGs, in base64.
    pub(crate) images: Vec<String>,
    pub(crate) failed: bool,
}

impl Answer {
    pub(crate) fn new(text: impl Into<String>, data: Value) -> Answer {
        Answer { text: text.into(), data, images: Vec::new(), failed: false }
    }
}

/// Cuts a text that is too long in the middle: returns its beginning and its end, and how many characters are missing.
pub(crate) fn halves(text: &str, most: usize) -> Option<(&str, &str, usize)> {
    // Most texts are short: bytes are no fewer than characters.
    if text.len() <= most {
        return None;
    }
    let count = text.chars().count();
    if count <= most {
        return None;
    }
    let head = text.char_indices().nth(most / 2).map_or(text.len(), |(at, _)| at);
    let tail = text.char_indices().nth(count - (most - most / 2)).map_or(text.len(), |(at, _)| at);
    Some((&text[..head], &text[tail..], count - most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_in_the_middle_between_characters() {
        assert_eq!(halves("short", 5), None);
        assert_eq!(halves("üüüüü", 5), None);
        assert_eq!(halves("aüüüüb", 4), Some(("aü", "üb", 2)));
        assert_eq!(halves("abcdef", 3), Some(("a", "ef", 3)));
        assert_eq!(halves("abc", 0), Some(("", "", 3)));
    }
}
