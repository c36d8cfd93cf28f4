//! Where expanded text goes: into fields, one string, a pattern or a regular expression.

use crate::pattern::char_at;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Fields,
    Text,
    /// One string to be assigned, where more of the lists are joined by IFS.
    Value,
    Pattern,
    /// What takes a match's place: `&` is special, and a backslash before it or before itself.
    Replacement,
    Regex,
}

/// A field, with the places where characters stand that are special to file name expansion.
#[derive(Default)]
pub struct Field {
    pub text: Vec<u8>,
    pub active: Vec<usize>,
}

pub struct Sink {
    mode: Mode,
    done: Vec<Field>,
    current: Field,
    /// The current field is there even if it is empty.
    started: bool,
    /// Splitting just ended a field at white space, which a separator may still belong to.
    after_blank: bool,
    ifs: Option<Vec<u8>>,
    /// Separators of several bytes are looked for as characters.
    wide: bool,
}

/// Bytes that may be special to file name expansion.
pub fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b'*' | b'?' | b'[' | b']' | b'\\' | b'(' | b')' | b'|' | b'!' | b'^' | b'-' | b'+' | b'@' | b':'
    )
}

fn is_regex_special(byte: u8) -> bool {
    matches!(
        byte,
        b'.' | b'*' | b'?' | b'[' | b']' | b'\\' | b'(' | b')' | b'|' | b'^' | b'$' | b'+' | b'{' | b'}'
    )
}

/// Separators that are white space run together.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn contains_char(ifs: &[u8], wanted: &[u8]) -> bool {
    let mut at = 0;
    while at < ifs.len() {
        let len = char_at(ifs, at, true).1;
        if &ifs[at..at + len] == wanted {
            return true;
        }
        at += len;
    }
    false
}

impl Sink {
    pub(super) fn new(mode: Mode) -> Sink {
        Sink {
            mode,
            done: Vec::new(),
            current: Field::default(),
            started: false,
            after_blank: false,
            ifs: None,
            wide: false,
        }
    }

    pub(super) fn is_value(&self) -> bool {
        self.mode == Mode::Value
    }

    pub(super) fn is_fields(&self) -> bool {
        self.mode == Mode::Fields
    }

    /// Whether splitting will need to know IFS, and does not yet.
    pub fn wants_ifs(&self) -> bool {
        self.mode == Mode::Fields && self.ifs.is_none()
    }

    pub fn set_ifs(&mut self, ifs: Vec<u8>, utf8: bool) {
        self.wide = utf8 && !ifs.is_ascii();
        self.ifs = Some(ifs);
    }

    /// From here on there is a field, even an empty one.
    pub fn start(&mut self) {
        self.started = true;
    }

    /// Quoted text: nothing in it is special.
    pub fn quoted(&mut self, text: &[u8]) {
        match self.mode {
            Mode::Fields | Mode::Text | Mode::Value => self.current.text.extend_from_slice(text),
            Mode::Pattern => self.escaped(text, |byte| byte.is_ascii_punctuation()),
            Mode::Replacement => self.escaped(text, |byte| matches!(byte, b'&' | b'\\')),
            // Between brackets there is nothing to take away from a character but a backslash's meaning.
            Mode::Regex if is_in_brackets(&self.current.text) => self.escaped(text, |byte| byte == b'\\'),
            Mode::Regex => self.escaped(text, is_regex_special),
        }
        if !text.is_empty() {
            self.after_blank = false;
            self.started = true;
        }
    }

    fn escaped(&mut self, text: &[u8], special: impl Fn(u8) -> bool) {
        for &byte in text {
            if special(byte) {
                self.current.text.push(b'\\');
            }
            self.current.text.push(byte);
        }
    }

    /// Unquoted text of the script: special characters count, but it is not split.
    pub fn literal(&mut self, text: &[u8]) {
        if self.mode == Mode::Fields {
            let start = self.current.text.len();
            let special = text.iter().enumerate().filter(|(_, byte)| is_special(**byte));
            self.current.active.extend(special.map(|(at, _)| start + at));
        }
        self.current.text.extend_from_slice(text);
        if !text.is_empty() {
            self.after_blank = false;
            self.started = true;
        }
    }

    /// An unquoted expansion's result: split at the separators.
    pub fn split(&mut self, text: &[u8]) {
        if self.mode != Mode::Fields {
            self.current.text.extend_from_slice(text);
            return;
        }
        let Some(ifs) = self.ifs.take() else { return self.literal(text) };
        let mut at = 0;
        while at < text.len() {
            let run = self.unseparated(&text[at..], &ifs);
            if run > 0 {
                self.literal(&text[at..at + run]);
                at += run;
                continue;
            }
            if is_blank(text[at]) {
                if self.started {
                    self.finish_field();
                    self.after_blank = true;
                }
            } else if self.after_blank {
                self.after_blank = false;
            } else {
                self.finish_field();
            }
            at += if self.wide { char_at(text, at, true).1 } else { 1 };
        }
        self.ifs = Some(ifs);
    }

    /// How much of a text comes before its first separator.
    fn unseparated(&self, text: &[u8], ifs: &[u8]) -> usize {
        if !self.wide {
            return text.iter().position(|byte| ifs.contains(byte)).unwrap_or(text.len());
        }
        let mut at = 0;
        while at < text.len() {
            let len = char_at(text, at, true).1;
            if contains_char(ifs, &text[at..at + len]) {
                return at;
            }
            at += len;
        }
        at
    }

    /// Ends the current field, empty or not.
    pub fn finish_field(&mut self) {
        self.done.push(std::mem::take(&mut self.current));
        self.started = false;
        self.after_blank = false;
    }

    /// Ends the current field if there is one.
    pub fn break_field(&mut self) {
        if self.started {
            self.finish_field();
        }
    }

    pub fn into_fields(mut self) -> Vec<Field> {
        self.break_field();
        self.done
    }

    pub fn into_text(self) -> Vec<u8> {
        self.current.text
    }
}

/// Whether a regular expression ends inside a bracket expression.
fn is_in_brackets(text: &[u8]) -> bool {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 2,
            b'[' => match bracket_end(text, at + 1) {
                Some(end) => at = end,
                None => return true,
            },
            _ => at += 1,
        }
    }
    false
}

/// What follows the bracket expression whose inside begins at `at`, if it is closed.
fn bracket_end(text: &[u8], mut at: usize) -> Option<usize> {
    at += usize::from(text.get(at) == Some(&b'^'));
    at += usize::from(text.get(at) == Some(&b']'));
    loop {
        match text.get(at)? {
            b']' => return Some(at + 1),
            b'[' if matches!(text.get(at + 1), Some(b':' | b'.' | b'=')) => {
                let closing = [text[at + 1], b']'];
                at += 4 + text.get(at + 2..)?.windows(2).position(|pair| pair == closing)?;
            }
            _ => at += 1,
        }
    }
}
