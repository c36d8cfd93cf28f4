//! What is a word, and where a sentence ends.

use super::options::Settings;
use toolkit::{complain, quote};
use wardian_regex::{Fit, Options, Regex, Syntax, locale_is_utf8};

/// What ends a sentence unless told otherwise: its sign and what closes it, at the end of a line or before two blanks.
const SENTENCE: &[u8] = b"[.?!][]\"')}]*\\($\\|\t\\|  \\)[ \t\n]*";

pub struct Words {
    sentence: Option<Sentence>,
    letters: Letters,
}

struct Sentence {
    source: Vec<u8>,
    regex: Regex,
}

/// How words are found.
enum Letters {
    /// Which bytes are in words.
    Bytes(Box<[bool; 256]>),
    /// Anywhere, and from the beginning of a text.
    Regex(Box<Regex>, Box<Regex>),
}

impl Words {
    pub fn new(settings: &Settings) -> Result<Words, i32> {
        let source = settings.sentence.clone().unwrap_or_else(|| {
            if settings.traditional || settings.has_references { b"\n".to_vec() } else { SENTENCE.to_vec() }
        });
        let sentence = match source.is_empty() {
            true => None,
            false => Some(Sentence { regex: compile(settings, &source, Fit::Anywhere)?, source }),
        };
        let letters = match &settings.word {
            Some(word) => Letters::Regex(
                Box::new(compile(settings, word, Fit::Anywhere)?),
                Box::new(compile(settings, word, Fit::Start)?),
            ),
            None => Letters::Bytes(Box::new(letters(settings)?)),
        };
        Ok(Words { sentence, letters })
    }

    /// Where the sentence that begins at a place ends, with what ends it.
    pub fn end_of_sentence(&self, text: &[u8], start: usize) -> Result<usize, i32> {
        let Some(sentence) = &self.sentence else { return Ok(text.len()) };
        match sentence.regex.find_at(&text[start..], 0) {
            None if sentence.regex.gave_up() => Err(too_long()),
            None => Ok(text.len()),
            // GNU's says so of any match right at the beginning.
            Some((0, _)) => {
                let source = quote::word(&sentence.source);
                let message = format!("error: regular expression has a match of length zero: {source}");
                complain("ptx", message);
                Err(1)
            }
            Some((_, length)) => Ok(start + length),
        }
    }

    /// The bounds of the next word in a text; it may be empty.
    pub fn next(&self, text: &[u8]) -> Result<Option<(usize, usize)>, i32> {
        match &self.letters {
            Letters::Bytes(letters) => {
                let is_letter = |byte: &u8| letters[usize::from(*byte)];
                let Some(start) = text.iter().position(is_letter) else { return Ok(None) };
                Ok(Some((start, start + text[start..].iter().take_while(|byte| is_letter(byte)).count())))
            }
            Letters::Regex(anywhere, _) => match anywhere.find_at(text, 0) {
                None if anywhere.gave_up() => Err(too_long()),
                found => Ok(found),
            },
        }
    }

    /// Where what comes next ends: a word, or one byte that is in none.
    pub fn skip(&self, text: &[u8], at: usize, end: usize) -> usize {
        let Some(rest) = text.get(at..end) else { return at + 1 };
        let length = match &self.letters {
            Letters::Bytes(letters) => rest.iter().take_while(|byte| letters[usize::from(**byte)]).count(),
            Letters::Regex(_, start) => start.find_at(rest, 0).map_or(0, |bounds| bounds.1),
        };
        at + length.max(1)
    }
}

fn too_long() -> i32 {
    complain("ptx", "error in regular expression matcher");
    1
}

fn compile(settings: &Settings, source: &[u8], fit: Fit) -> Result<Regex, i32> {
    let options = Options {
        ignore_case: settings.ignore_case,
        multi_line: true,
        bytes: !locale_is_utf8(),
        fit,
        ..Options::new(Syntax::Emacs)
    };
    Regex::new(source, &options).map_err(|error| {
        complain("ptx", format_args!("{error} (for regexp {})", quote::word(source)));
        1
    })
}

/// Which bytes are in words: letters, or all but blanks in System V's way, or all that a file does not name.
fn letters(settings: &Settings) -> Result<[bool; 256], i32> {
    let mut letters = [false; 256];
    for (byte, is_letter) in (0..=255u8).zip(&mut letters) {
        *is_letter = match (&settings.break_file, settings.traditional) {
            (None, false) => byte.is_ascii_alphabetic(),
            (Some(_), false) => true,
            (_, true) => !b" \t\n".contains(&byte),
        };
    }
    if let Some(file) = &settings.break_file {
        super::read(file)?.iter().for_each(|byte| letters[usize::from(*byte)] = false);
    }
    Ok(letters)
}
