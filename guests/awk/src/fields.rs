//! The record and its fields. Fields are found when they are asked for, and only as many as are asked for; the record
//! is put together again only when somebody looks at it after a field was changed.

use crate::number;
use crate::regex::Regex;
use crate::text::{Str, char_len, char_offset};
use crate::value::Value;
use std::rc::Rc;

/// How a text is cut into fields.
#[derive(Clone, Debug)]
pub enum Splitter {
    /// At runs of blanks, tabs and newlines; those around the text do not count.
    Blanks,
    /// At a byte.
    Byte(u8),
    /// At each match of a pattern.
    Regex(Rc<Regex>),
    /// Into characters.
    Chars,
    /// Into pieces of fixed widths.
    Widths(Rc<[Width]>),
    /// Into the matches of a pattern.
    Pattern(Rc<Regex>),
    /// As comma-separated values.
    Csv,
}

/// One field of a fixed width.
#[derive(Clone, Copy, Debug)]
pub struct Width {
    /// Characters to leave out before it.
    pub skip: usize,
    /// Its characters; `usize::MAX` for all that are left.
    pub length: usize,
}

/// From where to where a piece of a text goes.
pub type Span = (usize, usize);

/// Cuts a text into fields, and keeps what separates them if somebody wants to know: one more than there are fields,
/// for the text before the first and behind the last.
pub fn split(text: &[u8], splitter: &Splitter, fields: &mut Vec<Span>, separators: Option<&mut Vec<Span>>) {
    fields.clear();
    match splitter {
        Splitter::Blanks => split_blanks(text, fields),
        Splitter::Byte(byte) if !text.is_empty() => {
            let mut start = 0;
            for end in memchr::memchr_iter(*byte, text) {
                fields.push((start, end));
                start = end + 1;
            }
            fields.push((start, text.len()));
        }
        Splitter::Regex(regex) if !text.is_empty() => split_regex(text, regex, fields),
        Splitter::Chars => {
            let mut at = 0;
            while at < text.len() {
                let end = at + char_len(&text[at..]);
                fields.push((at, end));
                at = end;
            }
        }
        Splitter::Widths(widths) => split_widths(text, widths, fields),
        Splitter::Pattern(regex) => split_pattern(text, regex, fields),
        Splitter::Csv if !text.is_empty() => split_csv(text, fields),
        Splitter::Byte(_) | Splitter::Regex(_) | Splitter::Csv => {}
    }
    if let Some(separators) = separators {
        separators.clear();
        let mut at = 0;
        for &(start, end) in fields.iter() {
            separators.push((at, start));
            at = end;
        }
        separators.push((at, text.len()));
    }
}

#[inline]
fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t' || byte == b'\n'
}

fn split_blanks(text: &[u8], fields: &mut Vec<Span>) {
    let mut at = 0;
    while let Some(field) = next_word(text, at) {
        fields.push(field);
        at = field.1;
    }
}

#[inline]
fn next_word(text: &[u8], mut at: usize) -> Option<Span> {
    while at < text.len() && is_blank(text[at]) {
        at += 1;
    }
    if at == text.len() {
        return None;
    }
    let start = at;
    while at < text.len() && !is_blank(text[at]) {
        at += 1;
    }
    Some((start, at))
}

/// At each match that is not empty.
fn split_regex(text: &[u8], regex: &Regex, fields: &mut Vec<Span>) {
    let (mut start, mut from) = (0, 0);
    while from <= text.len()
        && let Some((left, right)) = regex.find_at(text, from)
    {
        if left == right {
            from = right + char_len(&text[right..]);
            continue;
        }
        fields.push((start, left));
        start = right;
        from = right;
    }
    fields.push((start, text.len()));
}

fn split_widths(text: &[u8], widths: &[Width], fields: &mut Vec<Span>) {
    let mut at = 0;
    for width in widths {
        let start = at + char_offset(&text[at..], width.skip);
        if start >= text.len() {
            break;
        }
        at = match width.length {
            usize::MAX => text.len(),
            length => start + char_offset(&text[start..], length),
        };
        fields.push((start, at));
    }
}

/// The matches; an empty one counts only where something separates it from the one before.
fn split_pattern(text: &[u8], regex: &Regex, fields: &mut Vec<Span>) {
    let mut at = 0;
    while at < text.len() || fields.is_empty() && !text.is_empty() {
        let mut found = regex.find_at(text, at);
        if !fields.is_empty() && found == Some((at, at)) {
            found = regex.find_at(text, at + char_len(&text[at..]));
        }
        let Some(field) = found else { break };
        fields.push(field);
        at = field.1;
    }
}

/// Quotes around a field belong to it here; [`unquote`] takes them away.
fn split_csv(text: &[u8], fields: &mut Vec<Span>) {
    let (mut start, mut quoted) = (0, false);
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                fields.push((start, at));
                start = at + 1;
            }
            _ => {}
        }
    }
    fields.push((start, text.len()));
}

/// A quoted field of comma-separated values as it is meant.
pub fn unquote(field: &[u8]) -> Option<Vec<u8>> {
    let inside = field.strip_prefix(b"\"")?;
    let inside = inside.strip_suffix(b"\"").unwrap_or(inside);
    let mut meant = Vec::with_capacity(inside.len());
    let mut rest = inside;
    while let Some(quote) = memchr::memchr(b'"', rest) {
        meant.extend_from_slice(&rest[..=quote]);
        rest = &rest[quote + 1..];
        rest = rest.strip_prefix(b"\"").unwrap_or(rest);
    }
    meant.extend_from_slice(rest);
    Some(meant)
}

/// What `$0` is when it is compared or asked whether it holds.
#[derive(Clone, Copy)]
enum Whole {
    /// Text that was read.
    Outside,
    /// A string: assigned as one, or put together from fields.
    Text,
    /// A number that was assigned.
    Number(f64),
}

/// A record: `$0`, `$1`, …, `NF`.
pub struct Record {
    text: Vec<u8>,
    /// The fields found so far, as parts of the text.
    fields: Vec<Span>,
    /// Where to look for the next.
    next: usize,
    /// Whether all fields have been found.
    is_split: bool,
    /// Fields that were assigned to, at their places; empty while none was.
    assigned: Vec<Option<Value>>,
    /// Whether the text is not yet what the fields say.
    is_stale: bool,
    whole: Whole,
    /// How it is cut.
    pub splitter: Splitter,
    /// What joins the fields.
    pub ofs: Vec<u8>,
    /// How a number becomes a field's text.
    pub convfmt: Vec<u8>,
}

impl Record {
    /// An empty record.
    pub fn new() -> Record {
        Record {
            text: Vec::new(),
            fields: Vec::new(),
            next: 0,
            is_split: true,
            assigned: Vec::new(),
            is_stale: false,
            whole: Whole::Outside,
            splitter: Splitter::Blanks,
            ofs: b" ".to_vec(),
            convfmt: b"%.6g".to_vec(),
        }
    }

    /// Begins a new record, whose text the caller puts here.
    #[inline]
    pub fn renew(&mut self) -> &mut Vec<u8> {
        self.text.clear();
        self.fields.clear();
        self.next = 0;
        self.is_split = false;
        self.is_stale = false;
        self.whole = Whole::Outside;
        self.assigned.clear();
        &mut self.text
    }

    /// The whole record.
    #[inline]
    pub fn text(&mut self) -> &[u8] {
        if self.is_stale {
            self.rebuild();
        }
        &self.text
    }

    /// `NF`.
    pub fn count(&mut self) -> usize {
        self.split_all();
        self.fields.len()
    }

    /// Finds all fields, by the rules that hold now.
    pub fn split_all(&mut self) {
        if self.is_split {
            return;
        }
        match self.splitter {
            Splitter::Blanks | Splitter::Byte(_) => self.split_up_to(usize::MAX),
            _ => {
                split(&self.text, &self.splitter, &mut self.fields, None);
                if let Splitter::Csv = self.splitter {
                    self.unquote_fields();
                }
            }
        }
        self.is_split = true;
    }

    fn unquote_fields(&mut self) {
        let text = &self.text;
        let meant: Vec<_> = self.fields.iter().map(|&(start, end)| unquote(&text[start..end])).collect();
        if meant.iter().any(Option::is_some) {
            self.assigned = meant.into_iter().map(|text| text.map(|text| Value::outside(&text))).collect();
        }
    }

    /// Finds fields until there are so many, where that can be done bit by bit.
    #[inline]
    fn split_up_to(&mut self, count: usize) {
        match self.splitter {
            Splitter::Blanks => {
                while self.fields.len() < count {
                    let Some(field) = next_word(&self.text, self.next) else {
                        self.is_split = true;
                        break;
                    };
                    self.fields.push(field);
                    self.next = field.1;
                }
            }
            Splitter::Byte(byte) => {
                if self.text.is_empty() {
                    self.is_split = true;
                }
                while self.fields.len() < count && !self.is_split {
                    let start = self.next;
                    let end = memchr::memchr(byte, &self.text[start..]);
                    self.is_split = end.is_none();
                    let end = end.map_or(self.text.len(), |end| start + end);
                    self.fields.push((start, end));
                    self.next = end + 1;
                }
            }
            _ => self.split_all(),
        }
    }

    /// Where a field is in the text; nothing for one there is not.
    #[inline]
    fn span(&mut self, index: usize) -> Option<Span> {
        if self.fields.len() < index && !self.is_split {
            self.split_up_to(index);
        }
        self.fields.get(index.wrapping_sub(1)).copied()
    }

    #[inline]
    fn assigned_at(&self, index: usize) -> Option<&Value> {
        self.assigned.get(index.wrapping_sub(1))?.as_ref()
    }

    /// A field's number.
    #[inline]
    pub fn number(&mut self, index: usize) -> f64 {
        if index == 0 {
            return number::parse(self.text());
        }
        let Some((start, end)) = self.span(index) else { return 0.0 };
        match self.assigned_at(index) {
            Some(value) => value.to_num(),
            None => number::parse(&self.text[start..end]),
        }
    }

    /// A field; one there is not is empty.
    #[inline]
    pub fn value(&mut self, index: usize) -> Value {
        if index == 0 {
            let text = Str::new(self.text());
            return match self.whole {
                Whole::Outside => Value::Strnum(text),
                Whole::Text => Value::Str(text),
                Whole::Number(number) => Value::Num(number),
            };
        }
        let Some((start, end)) = self.span(index) else { return Value::Strnum(Str::EMPTY) };
        match self.assigned_at(index) {
            Some(value) => value.clone(),
            None => Value::outside(&self.text[start..end]),
        }
    }

    /// A field's bytes.
    #[inline]
    pub fn bytes(&mut self, index: usize) -> &[u8] {
        if index == 0 {
            return self.text();
        }
        let Some(span) = self.span(index) else { return b"" };
        let is_text = |value: &Value| matches!(value, Value::Str(_) | Value::Strnum(_));
        if self.is_stale && self.assigned_at(index).is_some_and(|value| !is_text(value)) {
            self.rebuild();
        }
        match self.assigned_at(index) {
            Some(Value::Str(text) | Value::Strnum(text)) => text.as_bytes(),
            Some(_) => {
                let (start, end) = self.fields[index - 1];
                &self.text[start..end]
            }
            None => &self.text[span.0..span.1],
        }
    }

    /// Assigns to a field, making those before it where there are none.
    pub fn set(&mut self, index: usize, value: Value) {
        if index == 0 {
            let convfmt = std::mem::take(&mut self.convfmt);
            value.append_to(self.renew(), &convfmt);
            self.convfmt = convfmt;
            self.whole = match value {
                Value::Num(number) => Whole::Number(number),
                Value::Str(_) => Whole::Text,
                _ => Whole::Outside,
            };
            return;
        }
        self.split_all();
        let count = self.fields.len().max(index);
        self.fields.resize(count, (0, 0));
        self.assigned.resize(count.max(self.assigned.len()), None);
        self.assigned[index - 1] = Some(value);
        self.is_stale = true;
    }

    /// Sets `NF`: the fields behind it go, or empty ones come.
    pub fn set_count(&mut self, count: usize) {
        self.split_all();
        self.fields.resize(count, (0, 0));
        if !self.assigned.is_empty() {
            self.assigned.resize(count, None);
        }
        self.is_stale = true;
    }

    /// Puts the record together from its fields.
    pub fn rebuild(&mut self) {
        if !self.is_stale {
            return;
        }
        let mut text = Vec::with_capacity(self.text.len() + 16);
        for index in 0..self.fields.len() {
            if index > 0 {
                text.extend_from_slice(&self.ofs);
            }
            let start = text.len();
            match self.assigned.get(index) {
                Some(Some(value)) => value.append_to(&mut text, &self.convfmt),
                _ => {
                    let (from, to) = self.fields[index];
                    text.extend_from_slice(&self.text[from..to]);
                }
            }
            self.fields[index] = (start, text.len());
        }
        self.text = text;
        self.is_stale = false;
        self.whole = Whole::Text;
    }
}
