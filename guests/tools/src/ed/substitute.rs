//! `s/FROM/TO/`.

use super::address::{Line, Range};
use super::commands::{ends_with_backslash, lines_of};
use super::{Dialect, Editor, Wrong, wrong};
use std::rc::Rc;
use wardian_regex::{Groups, Regex};

/// What a substitution does, for those that repeat it.
#[derive(Clone)]
pub struct Substitution {
    regex: Rc<Regex>,
    to: Vec<Piece>,
    flags: Flags,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    all: bool,
    /// Which match of a line is meant, from 1; 0 for the first.
    number: usize,
    print: bool,
    with_number: bool,
    list: bool,
    fold: bool,
}

#[derive(Clone)]
enum Piece {
    Text(Vec<u8>),
    Group(usize),
}

/// A line may not grow beyond this.
const LONGEST: usize = 64 << 20;

impl Editor {
    pub(super) fn substitute(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let delimiter =
            line.peek().filter(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b' ' | b'\n'));
        let Some(delimiter) = delimiter.filter(|byte| self.dialect == Dialect::Ed || *byte != b'|') else {
            return self.substitute_again(range, line);
        };
        line.next();
        // A line of the replacement that ends with a backslash goes on in the next.
        let mut text = std::mem::take(&mut line.rest).to_vec();
        while ends_with_backslash(&text) {
            text.push(b'\n');
            text.extend(self.next_line().ok_or("Unexpected end-of-file")?);
        }
        let mut rest = Line { rest: &text };
        let (from, closed) = rest.pattern(delimiter)?;
        if !closed && self.dialect == Dialect::Ed {
            return wrong("Missing pattern delimiter");
        }
        let (to, closed) = take_replacement(&mut rest, delimiter);
        let mut flags = self.flags(&mut rest)?;
        // Without its last delimiter it prints what it did.
        flags.print |= !closed && self.dialect == Dialect::Ed;
        let regex = self.regex(from, delimiter, flags.fold)?;
        let pieces = match (&to[..], &self.substitution) {
            (b"%", Some(last)) => last.to.clone(),
            (b"%", None) if self.dialect == Dialect::Ed => return wrong("No previous substitution"),
            _ => pieces(&to),
        };
        let last_group = pieces.iter().filter_map(|piece| match piece {
            Piece::Group(group) => Some(*group),
            Piece::Text(_) => None,
        });
        if last_group.max().is_some_and(|group| group > regex.groups()) {
            return wrong("Invalid back reference");
        }
        let after = rest.rest.to_vec();
        self.substitution = Some(Substitution { regex, to: pieces, flags });
        self.apply(range)?;
        // Another command of ex may follow.
        match after.strip_prefix(b"|") {
            Some(more) => self.command(more, false).map(drop),
            None => Ok(()),
        }
    }

    /// `s` and `&` alone: the last substitution again.
    pub(super) fn substitute_again(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let Some(mut last) = self.substitution.clone() else { return wrong("No previous substitution") };
        let mut flags = Flags { fold: last.flags.fold, ..Flags::default() };
        loop {
            match line.peek() {
                Some(b'g') => flags.all = true,
                Some(b'p') => flags.print = true,
                Some(b'r') => last.regex = self.pattern.clone().ok_or("No previous pattern")?,
                Some(b'&') if self.dialect == Dialect::Ex => flags.all |= last.flags.all,
                Some(b'0'..=b'9') => {
                    flags.number = line.number().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
                    continue;
                }
                None => break,
                Some(b'|') if self.dialect == Dialect::Ex => break,
                Some(_) => return wrong("Invalid command suffix"),
            }
            line.next();
        }
        if self.dialect == Dialect::Ed {
            flags.all ^= last.flags.all;
            flags.print |= last.flags.print;
            flags.number = flags.number.max(last.flags.number);
        }
        last.flags = flags;
        self.substitution = Some(last);
        self.apply(range)
    }

    fn flags(&self, line: &mut Line<'_>) -> Result<Flags, Wrong> {
        let mut flags = Flags::default();
        loop {
            match line.peek() {
                Some(b'g') => flags.all = true,
                Some(b'p') => flags.print = true,
                Some(b'n') if self.dialect == Dialect::Ed => flags.with_number = true,
                Some(b'#') if self.dialect == Dialect::Ex => flags.with_number = true,
                Some(b'l') => flags.list = true,
                Some(b'i' | b'I') => flags.fold = true,
                Some(b'e' | b' ') if self.dialect == Dialect::Ex => {}
                Some(b'0'..=b'9') => {
                    flags.number = line.number().and_then(|number| usize::try_from(number).ok()).unwrap_or(0);
                    continue;
                }
                None => return Ok(flags),
                Some(b'|') if self.dialect == Dialect::Ex => return Ok(flags),
                Some(_) => return wrong("Invalid command suffix"),
            }
            line.next();
        }
    }

    fn apply(&mut self, range: Range) -> Result<(), Wrong> {
        let Some(substitution) = self.substitution.clone() else { return wrong("No previous substitution") };
        let (first, mut last) = lines_of(range, self.buffer.last())?;
        let (mut line, mut changed) = (first, false);
        while line <= last {
            if let Some(text) = substitution.replaced(self.buffer.text(line))? {
                self.note_change();
                let texts: Vec<Vec<u8>> = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
                self.buffer.replace(line, &texts);
                line += texts.len() - 1;
                last += texts.len() - 1;
                self.buffer.current = line;
                changed = true;
            }
            line += 1;
        }
        if !changed {
            // A command that a global one runs on many lines may find nothing on some.
            return if self.list.is_some() { Ok(()) } else { wrong("No match") };
        }
        let flags = substitution.flags;
        let mut shown = Line {
            rest: match (flags.with_number, flags.list, flags.print) {
                (true, true, _) => b"nl",
                (true, ..) => b"n",
                (_, true, _) => b"l",
                (.., true) => b"p",
                _ => b"",
            },
        };
        let show = self.suffix(&mut shown)?;
        self.finish(show)
    }
}

impl Substitution {
    /// A line with what was found replaced; `None` if nothing was.
    fn replaced(&self, text: &[u8]) -> Result<Option<Vec<u8>>, Wrong> {
        let (mut result, mut groups) = (Vec::new(), Groups::new());
        let (mut end, mut from, mut count, mut changed) = (0, 0, 0, false);
        while from <= text.len() && self.regex.captures_at(text, from, &mut groups) {
            let Some((start, stop)) = groups[0] else { break };
            // Nothing is not found again right behind a match.
            let is_new = start != stop || start != end || count == 0;
            if is_new {
                count += 1;
                if count >= self.flags.number.max(1) {
                    result.extend_from_slice(&text[end..start]);
                    self.write(text, &groups, &mut result);
                    (end, changed) = (stop, true);
                    if result.len() > LONGEST {
                        return wrong("Line too long");
                    }
                    if !self.flags.all {
                        break;
                    }
                }
            }
            from = if stop > start { stop } else { stop + wardian_regex::char_len(&text[stop..]) };
        }
        result.extend_from_slice(&text[end..]);
        Ok(changed.then_some(result))
    }

    fn write(&self, text: &[u8], groups: &Groups, result: &mut Vec<u8>) {
        for piece in &self.to {
            match piece {
                Piece::Text(text) => result.extend_from_slice(text),
                Piece::Group(group) => {
                    if let Some((from, to)) = groups.get(*group).copied().flatten() {
                        result.extend_from_slice(&text[from..to]);
                    }
                }
            }
        }
    }
}

/// What stands before the delimiter, and whether that was there.
fn take_replacement(line: &mut Line<'_>, delimiter: u8) -> (Vec<u8>, bool) {
    let mut taken = Vec::new();
    while let Some(byte) = line.next() {
        match byte {
            byte if byte == delimiter => return (taken, true),
            b'\\' => {
                let next = line.next();
                if next != Some(delimiter) {
                    taken.push(b'\\');
                }
                taken.extend(next);
            }
            b'\n' => {
                // Only an escaped line end belongs to it.
                line.rest = b"";
                return (taken, false);
            }
            byte => taken.push(byte),
        }
    }
    (taken, false)
}

fn pieces(text: &[u8]) -> Vec<Piece> {
    let (mut pieces, mut plain) = (Vec::new(), Vec::new());
    let mut bytes = text.iter().copied();
    let mut group = |plain: &mut Vec<u8>, group: usize| {
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(plain)));
        }
        pieces.push(Piece::Group(group));
    };
    while let Some(byte) = bytes.next() {
        match byte {
            b'&' => group(&mut plain, 0),
            b'\\' => match bytes.next() {
                Some(digit @ b'1'..=b'9') => group(&mut plain, usize::from(digit - b'0')),
                Some(other) => plain.push(other),
                None => plain.push(b'\\'),
            },
            byte => plain.push(byte),
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}
