//! Keys: which part of a line is compared, and how. `-k 2,3nr` is one.

use super::order::{Filter, Order, is_blank};
use std::cmp::Ordering;
use toolkit::quote;

/// How a key, or a whole line, is compared.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub order: Order,
    pub filter: Filter,
    pub reverse: bool,
}

impl How {
    pub const PLAIN: How = How {
        order: Order::Text,
        filter: Filter { dictionary: false, fold: false, printing: false },
        reverse: false,
    };

    pub fn compare(&self, left: &[u8], right: &[u8], salt: u64) -> Ordering {
        let ordering = self.order.compare(left, right, self.filter, salt);
        if self.reverse { ordering.reverse() } else { ordering }
    }
}

/// The letters that say how to compare, as they were given.
#[derive(Clone, Default, Debug)]
pub struct Letters(pub Vec<u8>);

pub const LETTERS: &[u8] = b"bdfghiMnRrV";

impl Letters {
    fn has(&self, letter: u8) -> bool {
        self.0.contains(&letter)
    }

    /// Whether anything but `b` is said: then the global letters do not count.
    fn is_given(&self) -> bool {
        !self.0.is_empty()
    }

    pub fn how(&self) -> How {
        let order = match () {
            () if self.has(b'n') => Order::Numeric,
            () if self.has(b'g') => Order::General,
            () if self.has(b'h') => Order::Human,
            () if self.has(b'M') => Order::Month,
            () if self.has(b'V') => Order::Version,
            () if self.has(b'R') => Order::Random,
            () => Order::Text,
        };
        let filter = Filter { dictionary: self.has(b'd'), fold: self.has(b'f'), printing: self.has(b'i') };
        How { order, filter, reverse: self.has(b'r') }
    }

    /// The letters that cannot be together, if there are such.
    pub fn conflict(&self) -> Option<String> {
        let orders = b"ghMn".iter().filter(|letter| self.has(**letter)).count()
            + usize::from(self.has(b'V') || self.has(b'R') || self.has(b'd') || self.has(b'i'));
        if orders < 2 {
            return None;
        }
        // GNU names all but those that go with everything, in this order.
        let named: String =
            b"dghiMnRV".iter().filter(|letter| self.has(**letter)).map(|&byte| char::from(byte)).collect();
        Some(format!("options '-{named}' are incompatible"))
    }
}

/// A place in a line: a field, and a character in it.
#[derive(Clone, Copy, Default, Debug)]
struct Place {
    field: usize,
    char: usize,
    skips_blanks: bool,
}

#[derive(Clone, Debug)]
pub struct Key {
    start: Place,
    end: Option<Place>,
    pub letters: Letters,
    pub how: How,
}

impl Key {
    /// Reads the argument of `-k`.
    pub fn parse(text: &[u8]) -> Result<Key, String> {
        let mut rest = text;
        let mut key =
            Key { start: Place::default(), end: None, letters: Letters::default(), how: How::PLAIN };
        let field = count(&mut rest, "invalid number at field start")?;
        key.start.field = field.checked_sub(1).ok_or_else(|| wrong("field number is zero", text))?;
        if let [b'.', after @ ..] = rest {
            rest = after;
            let char = count(&mut rest, "invalid number after '.'")?;
            key.start.char = char.checked_sub(1).ok_or_else(|| wrong("character offset is zero", text))?;
        }
        key.start.skips_blanks = key.take_letters(&mut rest);
        if let [b',', after @ ..] = rest {
            rest = after;
            let field = count(&mut rest, "invalid number after ','")?;
            let field = field.checked_sub(1).ok_or_else(|| wrong("field number is zero", text))?;
            let mut end = Place { field, ..Place::default() };
            if let [b'.', after @ ..] = rest {
                rest = after;
                end.char = count(&mut rest, "invalid number after '.'")?;
            }
            end.skips_blanks = key.take_letters(&mut rest);
            key.end = Some(end);
        }
        if !rest.is_empty() {
            return Err(wrong("stray character in field spec", text));
        }
        Ok(key)
    }

    /// Takes the letters at the front; answers whether `b` was among them.
    fn take_letters(&mut self, rest: &mut &[u8]) -> bool {
        let mut blanks = false;
        while let [letter, after @ ..] = rest
            && LETTERS.contains(letter)
        {
            blanks |= *letter == b'b';
            if *letter != b'b' {
                self.letters.0.push(*letter);
            }
            *rest = after;
        }
        blanks
    }

    /// Takes over what was said for all keys, if this one has nothing of its own.
    pub fn inherit(&mut self, global: &Letters) {
        if !self.letters.is_given()
            && !self.start.skips_blanks
            && !self.end.is_some_and(|end| end.skips_blanks)
        {
            self.letters = global.clone();
            let blanks = global.has(b'b');
            self.start.skips_blanks = blanks;
            if let Some(end) = &mut self.end {
                end.skips_blanks = blanks;
            }
        }
        self.how = self.letters.how();
    }

    /// The part of a line that this key means.
    pub fn cut<'a>(&self, line: &'a [u8], separator: Option<u8>) -> &'a [u8] {
        let start = self.start_in(line, separator);
        let end = match &self.end {
            None => line.len(),
            Some(end) => end_in(end, line, separator),
        };
        &line[start..end.max(start)]
    }

    fn start_in(&self, line: &[u8], separator: Option<u8>) -> usize {
        let mut at = 0;
        for _ in 0..self.start.field {
            if at >= line.len() {
                break;
            }
            match separator {
                Some(separator) => at = (past(line, at, |byte| byte != separator) + 1).min(line.len()),
                None => at = past(line, past(line, at, is_blank), |byte| !is_blank(byte)),
            }
        }
        if self.start.skips_blanks {
            at = past(line, at, is_blank);
        }
        at.saturating_add(self.start.char).min(line.len())
    }

    /// Whether several fields are in it.
    pub fn spans_fields(&self) -> bool {
        self.end.is_none_or(|end| end.field > self.start.field)
    }
}

fn end_in(end: &Place, line: &[u8], separator: Option<u8>) -> usize {
    // Without a character the whole field is meant.
    let fields = end.field.saturating_add(usize::from(end.char == 0));
    let mut at = 0;
    for left in (0..fields).rev() {
        if at >= line.len() {
            break;
        }
        match separator {
            Some(separator) => {
                at = past(line, at, |byte| byte != separator);
                if at < line.len() && (left > 0 || end.char > 0) {
                    at += 1;
                }
            }
            None => at = past(line, past(line, at, is_blank), |byte| !is_blank(byte)),
        }
    }
    if end.char > 0 {
        if end.skips_blanks {
            at = past(line, at, is_blank);
        }
        at = at.saturating_add(end.char);
    }
    at.min(line.len())
}

/// The first place from `at` on whose byte is another kind.
fn past(line: &[u8], at: usize, is_kind: impl Fn(u8) -> bool) -> usize {
    line[at..].iter().position(|&byte| !is_kind(byte)).map_or(line.len(), |found| at + found)
}

/// A number off the front; one too large for any line is as good as the largest.
fn count(rest: &mut &[u8], what: &str) -> Result<usize, String> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Err(format!("{what}: invalid count at start of {}", quote::word(rest)));
    }
    let (number, after) = rest.split_at(digits);
    *rest = after;
    let add = |value: usize, digit: &u8| value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
    Ok(number.iter().fold(0, add))
}

fn wrong(why: &str, text: &[u8]) -> String {
    format!("{why}: invalid field specification {}", quote::word(text))
}
