//! Which lines a command is for: `1,5`, `/from/;+3`, `'a,$`.

use super::{Dialect, Editor, Wrong, wrong};
use std::rc::Rc;
use wardian_regex::{Options, Regex, Syntax};

/// The addresses of a command, and how many were given.
#[derive(Clone, Copy, Debug, Default)]
pub struct Range {
    pub given: usize,
    pub first: usize,
    pub last: usize,
}

/// What is left to read of a command line.
pub struct Line<'a> {
    pub rest: &'a [u8],
}

impl<'a> Line<'a> {
    pub fn peek(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    pub fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    pub fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.rest = &self.rest[1..];
        }
    }

    pub fn number(&mut self) -> Option<i64> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.rest.split_at(count);
        if digits.is_empty() {
            return None;
        }
        self.rest = rest;
        let add = |value: i64, digit: &u8| value.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
        Some(digits.iter().fold(0, add).min(1 << 40))
    }

    /// A pattern up to its delimiter, which may be left out at the end of the line; a bracket hides one. Says whether
    /// the delimiter was there.
    pub fn pattern(&mut self, delimiter: u8) -> Result<(&'a [u8], bool), Wrong> {
        let text = self.rest;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'\\' => at += 1,
                b'[' => at = after_brackets(text, at).ok_or("Unbalanced brackets ([])")? - 1,
                byte if byte == delimiter => {
                    self.rest = &text[at + 1..];
                    return Ok((&text[..at], true));
                }
                _ => {}
            }
            at += 1;
        }
        if text.last() == Some(&b'\\') && at > text.len() {
            return wrong("Trailing backslash");
        }
        self.rest = b"";
        Ok((text, false))
    }
}

fn after_brackets(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    at += usize::from(text.get(at) == Some(&b'^'));
    at += usize::from(text.get(at) == Some(&b']'));
    loop {
        match text.get(at)? {
            b']' => return Some(at + 1),
            b'[' if matches!(text.get(at + 1), Some(b':' | b'.' | b'=')) => {
                let end = [text[at + 1], b']'];
                let length = text[at + 2..].windows(2).position(|window| window == end)?;
                at += length + 4;
            }
            _ => at += 1,
        }
    }
}

impl Editor {
    /// Reads the addresses before a command.
    pub(super) fn range(&mut self, line: &mut Line<'_>) -> Result<Range, Wrong> {
        let last = self.buffer.last();
        line.skip_blanks();
        if line.eat(b'%') {
            return Ok(Range { given: 2, first: last.min(1), last });
        }
        let found = self.address_within(line)?;
        let mut address = found;
        let mut range = Range { given: usize::from(found.is_some()), ..Range::default() };
        loop {
            line.skip_blanks();
            let Some(separator @ (b',' | b';')) = line.peek() else { break };
            line.next();
            let is_ed = self.dialect == Dialect::Ed;
            let first = address.unwrap_or_else(|| match separator {
                b',' if is_ed => last.min(1),
                _ => self.buffer.current,
            });
            if separator == b';' && address.is_some() {
                self.buffer.current = first;
            }
            line.skip_blanks();
            let next = self.address_within(line)?;
            let absent = match address {
                Some(_) if is_ed => first,
                None if is_ed => last,
                _ => self.buffer.current,
            };
            (range.given, range.first, address) = (2, first, Some(next.unwrap_or(absent)));
        }
        range.last = address.unwrap_or(self.buffer.current);
        if range.given < 2 {
            range.first = range.last;
        }
        Ok(range)
    }

    /// One address that is a line, or the place before the first.
    fn address_within(&mut self, line: &mut Line<'_>) -> Result<Option<usize>, Wrong> {
        match self.address(line)? {
            Some(address) if address < 0 || address > self.buffer.last() as i64 => wrong("Invalid address"),
            address => Ok(address.map(|address| address as usize)),
        }
    }

    /// One address, if there is one.
    pub(super) fn address(&mut self, line: &mut Line<'_>) -> Result<Option<i64>, Wrong> {
        let base = match line.peek() {
            Some(b'0'..=b'9') => line.number(),
            Some(b'.') => {
                line.next();
                Some(self.buffer.current as i64)
            }
            Some(b'$') => {
                line.next();
                Some(self.buffer.last() as i64)
            }
            Some(b'\'') => {
                line.next();
                let name = line.next().filter(u8::is_ascii_lowercase).ok_or("Invalid mark character")?;
                Some(self.buffer.mark(name).ok_or("Invalid address")? as i64)
            }
            Some(delimiter @ (b'/' | b'?')) => {
                line.next();
                let (pattern, _) = line.pattern(delimiter)?;
                let regex = self.regex(pattern, delimiter, false)?;
                Some(self.search(&regex, delimiter == b'/').ok_or("No match")? as i64)
            }
            _ => None,
        };
        let mut address = base;
        loop {
            line.skip_blanks_before_offset(address.is_some());
            let sign = match line.peek() {
                Some(b'+') => 1,
                Some(b'-' | b'^') => -1,
                Some(b'0'..=b'9') if address.is_some() => {
                    let more = line.number().unwrap_or(0);
                    address = address.map(|address| address.saturating_add(more));
                    continue;
                }
                _ => return Ok(address),
            };
            line.next();
            let offset = line.number().unwrap_or(1);
            let from = address.unwrap_or(self.buffer.current as i64);
            address = Some(from.saturating_add(sign * offset));
        }
    }

    /// A pattern, or the last one for an empty one.
    pub(super) fn regex(&mut self, text: &[u8], delimiter: u8, fold: bool) -> Result<Rc<Regex>, Wrong> {
        if text.is_empty() {
            return self.pattern.clone().ok_or_else(|| "No previous pattern".to_owned());
        }
        // A delimiter needs its backslash no more.
        let mut plain = Vec::with_capacity(text.len());
        let mut bytes = text.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' if bytes.peek() == Some(&delimiter) && !b"(){}|+?.*[]^$".contains(&delimiter) => {}
                b'\\' => {
                    plain.push(byte);
                    plain.extend(bytes.next());
                }
                _ => plain.push(byte),
            }
        }
        let syntax = if self.extended { Syntax::Extended } else { Syntax::Basic };
        let options = Options { strict: true, ignore_case: fold, ..Options::new(syntax) };
        let regex = Rc::new(Regex::new(&plain, &options)?);
        self.pattern = Some(regex.clone());
        Ok(regex)
    }

    /// The next line that matches, around the end of the text.
    fn search(&self, regex: &Regex, forward: bool) -> Option<usize> {
        let (current, last) = (self.buffer.current, self.buffer.last());
        let matches = |line: &usize| regex.is_match(self.buffer.text(*line));
        if forward {
            (current + 1..=last).chain(1..=current.min(last)).find(matches)
        } else {
            (1..current).rev().chain((current.max(1)..=last).rev()).find(matches)
        }
    }
}

impl Line<'_> {
    /// Blanks may stand before an offset, but not before the letter of a command that takes a name.
    fn skip_blanks_before_offset(&mut self, has_address: bool) {
        let blanks = self.rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let next = self.rest.get(blanks);
        if blanks > 0 && has_address && matches!(next, Some(b'+' | b'-' | b'^' | b'0'..=b'9')) {
            self.rest = &self.rest[blanks..];
        }
    }
}
