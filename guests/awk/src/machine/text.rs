//! Functions on text and patterns: `split`, `match`, `sub`, `gsub`, `gensub`, `substr`, …

use super::Machine;
use crate::array::{Array, KeyRef};
use crate::code::special;
use crate::error::{Error, Result};
use crate::fields::{self, Splitter, unquote};
use crate::format::{self, FormatError};
use crate::regex::{Regex, captures_at};
use crate::text::{Str, char_count, char_len, char_offset};
use crate::value::Value;
use std::rc::Rc;

impl Machine {
    pub(super) fn text_of(&self, args: &[Value], index: usize) -> Str {
        args.get(index).map_or(Str::EMPTY, |value| value.to_str(&self.convfmt))
    }

    /// `sprintf`, and the text of `printf`.
    pub(super) fn format(&self, values: &[Value]) -> Result<Vec<u8>> {
        let format = self.text_of(values, 0);
        let mut text = Vec::new();
        let formatted =
            format::append(&mut text, format.as_bytes(), values.get(1..).unwrap_or_default(), &self.convfmt);
        match formatted {
            Ok(()) => Ok(text),
            Err(FormatError::TooWide) => Err(Error::fatal("format: a width or precision is too big")),
            Err(FormatError::TooFewArguments(at)) => Err(Error::fatal(format_args!(
                "not enough arguments to satisfy format string\n\t`{}'\n\t {}^ ran out for this one",
                String::from_utf8_lossy(format.as_bytes()),
                " ".repeat(at.saturating_sub(2)),
            ))),
        }
    }

    /// `substr`: characters are counted from 1; a start before that is 1, and fractions do not count.
    pub(super) fn substr(&self, args: &[Value]) -> Value {
        let text = self.text_of(args, 0);
        let bytes = text.as_bytes();
        // What is no number converts to 0, what is beyond all to the greatest there is.
        let first = (args[1].to_num() as usize).max(1);
        if first > bytes.len() {
            return Value::Str(Str::EMPTY);
        }
        let rest = &bytes[char_offset(bytes, first - 1)..];
        let length = args.get(2).map_or(usize::MAX, |length| length.to_num() as usize);
        let end = if length >= rest.len() { rest.len() } else { char_offset(rest, length) };
        Value::text(&rest[..end])
    }

    /// `index`: at which character a text first occurs in another.
    pub(super) fn index(&self, args: &[Value]) -> f64 {
        let (text, wanted) = (self.text_of(args, 0), self.text_of(args, 1));
        if self.ignore_case {
            let lower = |text: &Str| String::from_utf8_lossy(text.as_bytes()).to_lowercase();
            let (text, wanted) = (lower(&text), lower(&wanted));
            return text.find(&wanted).map_or(0.0, |at| char_count(&text.as_bytes()[..at]) as f64 + 1.0);
        }
        let found = match wanted.as_bytes() {
            [byte] => memchr::memchr(*byte, text.as_bytes()),
            wanted => memchr::memmem::find(text.as_bytes(), wanted),
        };
        found.map_or(0.0, |at| char_count(&text.as_bytes()[..at]) as f64 + 1.0)
    }

    fn array_of(args: &[Value], index: usize, name: &str) -> Result<Option<Array>> {
        match args.get(index) {
            None => Ok(None),
            Some(Value::Array(array)) => Ok(Some(Rc::clone(array))),
            Some(_) => {
                let ordinal = ["first", "second", "third", "fourth"][index.min(3)];
                Err(Error::fatal(format_args!("{name}: {ordinal} argument is not an array")))
            }
        }
    }

    /// `split` and, where the pattern says what fields are, `patsplit`.
    pub(super) fn split(&mut self, args: &[Value], by_pattern: bool) -> Result<f64> {
        let name = if by_pattern { "patsplit" } else { "split" };
        let target = Self::array_of(args, 1, name)?.ok_or_else(|| Error::fatal("split: no array"))?;
        let separators = Self::array_of(args, 3, name)?;
        let text = self.text_of(args, 0);
        let splitter = match (args.get(2), by_pattern) {
            (None, true) => {
                let pattern = self.special_text(special::FPAT);
                Splitter::Pattern(self.pattern(&pattern)?)
            }
            (Some(pattern), true) => Splitter::Pattern(self.pattern_of(pattern)?),
            (None, false) if self.is_csv => Splitter::Csv,
            (None, false) => {
                let fs = self.special_text(special::FS);
                self.splitter_of(&fs)?
            }
            (Some(Value::Regex(regex)), false) => Splitter::Regex(Rc::clone(regex)),
            (Some(separator), false) => {
                let separator = separator.to_str(&self.convfmt);
                self.splitter_of(separator.as_bytes())?
            }
        };
        let bytes = text.as_bytes();
        let (mut spans, mut between) = (Vec::new(), Vec::new());
        fields::split(bytes, &splitter, &mut spans, separators.is_some().then_some(&mut between));
        let is_csv = matches!(splitter, Splitter::Csv);
        target.borrow_mut().fill(spans.iter().map(|&(start, end)| match unquote(&bytes[start..end]) {
            Some(meant) if is_csv => Value::outside(&meant),
            _ => Value::outside(&bytes[start..end]),
        }));
        if let Some(separators) = separators {
            let outer = by_pattern || matches!(splitter, Splitter::Blanks);
            fill_separators(&separators, bytes, &between, outer, by_pattern);
        }
        Ok(spans.len() as f64)
    }

    /// `match`: where a pattern first matches, and with an array what its groups did.
    pub(super) fn matched(&mut self, args: &[Value]) -> Result<f64> {
        let text = self.text_of(args, 0);
        let regex = self.pattern_of(&args[1])?;
        let bytes = text.as_bytes();
        let array = Self::array_of(args, 2, "match")?;
        let groups = match array {
            Some(_) => captures_at(&regex, bytes, 0),
            None => regex.find_at(bytes, 0).map(|bounds| vec![Some(bounds)]),
        };
        if let Some(array) = &array {
            array.borrow_mut().clear();
        }
        let mut place = (0.0, -1.0);
        if let Some(groups) = groups {
            for (index, bounds) in groups.iter().enumerate() {
                let Some((start, end)) = *bounds else { continue };
                let first = char_count(&bytes[..start]) as f64 + 1.0;
                let length = char_count(&bytes[start..end]) as f64;
                if index == 0 {
                    place = (first, length);
                }
                if let Some(array) = &array {
                    self.note_group(array, index, &bytes[start..end], first, length);
                }
            }
        }
        self.globals[special::RSTART as usize] = Value::Num(place.0);
        self.globals[special::RLENGTH as usize] = Value::Num(place.1);
        Ok(place.0)
    }

    fn note_group(&self, array: &Array, index: usize, text: &[u8], first: f64, length: f64) {
        let mut table = array.borrow_mut();
        table.set(KeyRef::Int(index as i64), Value::outside(text));
        for (word, number) in [(&b"start"[..], first), (b"length", length)] {
            let mut key = index.to_string().into_bytes();
            key.extend_from_slice(&self.subsep);
            key.extend_from_slice(word);
            table.set(KeyRef::new(&key), Value::Num(number));
        }
    }

    /// `sub` and `gsub`: pattern, replacement and text are on the stack. Leaves how often it replaced, and the new text
    /// if it did.
    pub(super) fn substitute(&mut self, global: bool) -> Result<bool> {
        let (text, replacement, pattern) = (self.pop(), self.pop(), self.pop());
        let regex = self.pattern_of(&pattern)?;
        let (text, replacement) = (text.to_str(&self.convfmt), replacement.to_str(&self.convfmt));
        if self.replacement.text != replacement.as_bytes() {
            self.replacement.text = replacement.as_bytes().to_vec();
            self.replacement.pieces = pieces_of(replacement.as_bytes());
        }
        let pieces = &self.replacement.pieces;
        let mut changed = std::mem::take(&mut self.scratch);
        changed.clear();
        let which = if global { Which::All } else { Which::Number(1) };
        let count = replace(&regex, text.as_bytes(), which, &mut changed, |out, text, bounds| {
            for piece in pieces {
                match piece {
                    Piece::Text(piece) => out.extend_from_slice(piece),
                    Piece::Group(_) => out.extend_from_slice(&text[bounds.0..bounds.1]),
                }
            }
        });
        self.nums.push(count as f64);
        if count > 0 {
            self.values.push(Value::text(&changed));
        }
        self.scratch = changed;
        Ok(count > 0)
    }

    /// `gensub`: as `gsub`, but groups may be named in the replacement, and the new text is the answer.
    pub(super) fn gensub(&mut self, args: &[Value]) -> Result<Value> {
        let regex = self.pattern_of(&args[0])?;
        let replacement = self.text_of(args, 1);
        let how = self.text_of(args, 2);
        let text = match args.get(3) {
            Some(text) => text.to_str(&self.convfmt),
            None => Str::new(self.record.text()),
        };
        let which = match how.as_bytes().first() {
            Some(b'g' | b'G') => Which::All,
            _ => Which::Number((args[2].to_num() as i64).max(1) as usize),
        };
        let pieces = group_pieces_of(replacement.as_bytes());
        let wants_groups = pieces.iter().any(|piece| matches!(piece, Piece::Group(group) if *group > 0));
        let mut changed = Vec::new();
        replace(&regex, text.as_bytes(), which, &mut changed, |out, text, bounds| {
            let groups = wants_groups.then(|| captures_at(&regex, text, bounds.0)).flatten();
            for piece in &pieces {
                match piece {
                    Piece::Text(piece) => out.extend_from_slice(piece),
                    Piece::Group(0) => out.extend_from_slice(&text[bounds.0..bounds.1]),
                    Piece::Group(group) => {
                        let found = groups.as_ref().and_then(|groups| groups.get(*group).copied().flatten());
                        out.extend_from_slice(found.map_or(b"", |(start, end)| &text[start..end]));
                    }
                }
            }
        });
        Ok(Value::Str(changed.into()))
    }
}

/// Puts what stood between the fields into an array: after the first field at 1 and so on; before it at 0.
fn fill_separators(array: &Array, text: &[u8], between: &[fields::Span], outer: bool, keep_empty: bool) {
    let mut table = array.borrow_mut();
    table.clear();
    let last = between.len().saturating_sub(1);
    for (index, &(start, end)) in between.iter().enumerate() {
        let is_outer = index == 0 || index == last;
        if is_outer && (!outer || start == end && !keep_empty) {
            continue;
        }
        table.set(KeyRef::Int(index as i64), Value::text(&text[start..end]));
    }
}

/// A replacement and its parts.
#[derive(Default)]
pub(super) struct Replacement {
    text: Vec<u8>,
    pieces: Vec<Piece>,
}

/// A part of a replacement.
enum Piece {
    Text(Vec<u8>),
    /// What a group matched; the whole is 0.
    Group(usize),
}

fn push_text(pieces: &mut Vec<Piece>, bytes: &[u8]) {
    match pieces.last_mut() {
        Some(Piece::Text(text)) => text.extend_from_slice(bytes),
        _ => pieces.push(Piece::Text(bytes.to_vec())),
    }
}

/// The parts of a replacement of `sub` and `gsub`: `&` is the match, `\&` an ampersand, `\\&` a backslash and the match.
fn pieces_of(replacement: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < replacement.len() {
        match &replacement[at..] {
            [b'\\', b'\\', b'\\', b'&', ..] => {
                push_text(&mut pieces, b"\\&");
                at += 4;
            }
            [b'\\', b'\\', b'&', ..] => {
                push_text(&mut pieces, b"\\");
                pieces.push(Piece::Group(0));
                at += 3;
            }
            [b'\\', b'&', ..] => {
                push_text(&mut pieces, b"&");
                at += 2;
            }
            [b'&', ..] => {
                pieces.push(Piece::Group(0));
                at += 1;
            }
            rest => {
                push_text(&mut pieces, &rest[..1]);
                at += 1;
            }
        }
    }
    pieces
}

/// The parts of a replacement of `gensub`: `\1` is a group, `\0` and `&` the match, a backslash takes what follows.
fn group_pieces_of(replacement: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < replacement.len() {
        match &replacement[at..] {
            [b'\\', digit @ b'0'..=b'9', ..] => {
                pieces.push(Piece::Group(usize::from(digit - b'0')));
                at += 2;
            }
            [b'\\', next, ..] => {
                push_text(&mut pieces, &[*next]);
                at += 2;
            }
            [b'&', ..] => {
                pieces.push(Piece::Group(0));
                at += 1;
            }
            rest => {
                push_text(&mut pieces, &rest[..1]);
                at += 1;
            }
        }
    }
    pieces
}

/// Which matches are replaced.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    All,
    Number(usize),
}

/// Copies a text with matches replaced; answers how many were. An empty match right behind another is none.
fn replace(
    regex: &Regex,
    text: &[u8],
    which: Which,
    out: &mut Vec<u8>,
    mut put: impl FnMut(&mut Vec<u8>, &[u8], (usize, usize)),
) -> usize {
    let (mut copied, mut from, mut seen, mut count) = (0, 0, 0, 0);
    let mut last_end = None;
    while from <= text.len()
        && let Some((start, end)) = regex.find_at(text, from)
    {
        let is_empty = start == end;
        if is_empty && last_end == Some(start) {
            from = start + if start < text.len() { char_len(&text[start..]) } else { 1 };
            continue;
        }
        seen += 1;
        last_end = Some(end);
        if which == Which::All || which == Which::Number(seen) {
            out.extend_from_slice(&text[copied..start]);
            put(out, text, (start, end));
            copied = end;
            count += 1;
        }
        if which == Which::Number(seen) {
            break;
        }
        from = if is_empty { end + if end < text.len() { char_len(&text[end..]) } else { 1 } } else { end };
    }
    out.extend_from_slice(&text[copied..]);
    count
}
