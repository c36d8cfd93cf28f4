//! Values after a name that identifies them: `password=…`, `"api_key": "…"`, `--token …`, `<secret>…</secret>`.
//!
//! Where a value ends, and how much it must look like a secret, depends on how it is written: in quotes it is a literal;
//! without quotes it is usually code, unless the line belongs to a settings file.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use super::judge::{self, Kind, LOOKED_AT};

/// How far back a name is examined, to see what it is part of.
pub(super) const LOOK_BEHIND: usize = 64;

/// The endings of secrets' names.
static NAME: LazyLock<Regex> = LazyLock::new(|| {
    let keys = "(?:api|access|secret|private|account|encryption|signing|master|auth|client|service)[_-]?key";
    let pattern = format!(
        "(?i-u)pass(?:word|wd|phrase|code)?|pwd|secret(?:[_-]?key[_-]?base)?|token|credentials?|{keys}|auth"
    );
    Regex::new(&pattern).expect("every name is tried by a test")
});

/// A name, and the value after it if that is a secret.
pub(super) struct Named {
    pub(super) name: Range<usize>,
    pub(super) value: Option<Range<usize>>,
}

/// The context of a text: the rest of a line whose beginning has been passed on has no beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// What precedes this is there only as context.
    pub(super) from: usize,
    /// Whether a line begins where the text does.
    pub(super) at_line_start: bool,
    /// Whether everything after a name counts: for records, which no one edits files from.
    pub(super) eager: bool,
}

/// Returns all names in a text, with those values that are secrets.
pub(super) fn find(text: &[u8], reading: Reading) -> Vec<Named> {
    let mut found = Vec::new();
    let mut from = reading.from;
    while let Some(name) = NAME.find_at(text, from) {
        let place = Place::new(text, name.range(), reading);
        let value = place.value().filter(|value| place.is_secret(value)).map(|value| place.all_of(&value));
        // A name inside of what is no secret may stand before one.
        from = value.as_ref().map_or(name.end(), |value| value.end.max(name.end()));
        found.push(Named { name: name.range(), value });
    }
    found
}

/// Returns where a value begins that the end of the text has cut off, whatever it looks like so far.
pub(super) fn cut_at(text: &[u8]) -> Option<usize> {
    let reading = Reading { from: 0, at_line_start: true, eager: true };
    let at = |name: regex::bytes::Match<'_>| {
        let place = Place::new(text, name.range(), reading);
        let value = place.value()?;
        (place.all_of(&value).end == text.len() && place.is_secret(&value)).then_some(value.range.start)
    };
    // What begins before that is judged by what there is of it.
    let near = text.len().saturating_sub(8 * LOOKED_AT);
    NAME.find_iter(text).filter(|name| name.start() >= near).filter_map(at).min()
}

/// Returns whether an argument says that the next one is a secret: `--token`, `-password`.
pub(super) fn announces(word: &str) -> bool {
    let flag = word.strip_prefix('-').is_some_and(|flag| !flag.contains('='));
    flag && NAME.find_iter(word.as_bytes()).last().is_some_and(|name| name.end() == word.len())
}

/// How a value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// In quotes.
    Literal,
    /// After a flag, in a query, in an element, between semicolons: code is not written like that.
    Plain,
    /// A whole line of settings.
    Setting,
    /// Anything else, usually code.
    Bare,
}

struct Value {
    /// Of a long value, the part that is examined.
    range: Range<usize>,
    form: Form,
    ends: Ends,
}

/// What ends a value, apart from the end of the line.
#[derive(Clone, Copy)]
enum Ends {
    /// The quote it began with; that of a literal inside another is escaped.
    Quote {
        quote: u8,
        escaped: bool,
    },
    Any(&'static [u8]),
}

/// What is between name and value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Equals,
    Colon,
    Comma,
    Element,
    Space,
}

/// A name in a text.
struct Place<'t> {
    text: &'t [u8],
    name: Range<usize>,
    kind: Kind,
    reading: Reading,
}

impl<'t> Place<'t> {
    fn new(text: &'t [u8], name: Range<usize>, reading: Reading) -> Place<'t> {
        // `password`, `pwd`; not `private_key`.
        let of_a_person = matches!(text[name.start + 1], b'a' | b'A' | b'w' | b'W')
            && matches!(text[name.start], b'p' | b'P');
        Place { text, name, kind: if of_a_person { Kind::Password } else { Kind::Token }, reading }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    /// Skips spaces.
    fn behind_spaces(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        at
    }

    /// Returns where the word begins that the name ends: `DB_PASSWORD`, `--api-token`, `x.secret`.
    fn word_start(&self) -> usize {
        let least = self.name.start.saturating_sub(LOOK_BEHIND);
        let is_part = |at: &usize| self.text[*at].is_ascii_alphanumeric() || b"_-.".contains(&self.text[*at]);
        (least..self.name.start).rev().take_while(is_part).last().unwrap_or(self.name.start)
    }

    /// Returns the value after the name, if there is one.
    fn value(&self) -> Option<Value> {
        // `Some::Secret` is a type.
        if self.text[..self.word_start()].ends_with(b"::") {
            return None;
        }
        let (quoted, at) = self.closing_quote();
        let (separator, begin) = self.separator(quoted, at)?;
        if let Some(value) = self.literal(begin) {
            return Some(value);
        }
        if separator == Separator::Comma {
            return None;
        }
        if let Some(value) = self.wrapped_literal(begin, separator) {
            return Some(value);
        }
        self.unquoted(separator, begin)
    }

    /// Skips the quotes and brackets around the name: `"password"`, `\"password\"`, `env["TOKEN"]`.
    fn closing_quote(&self) -> (bool, usize) {
        let mut at = self.name.end;
        at += usize::from(self.byte(at) == Some(b'\\') && matches!(self.byte(at + 1), Some(b'"' | b'\'')));
        let quoted = matches!(self.byte(at), Some(b'"' | b'\'' | b'`'));
        at += usize::from(quoted);
        at += usize::from(quoted && matches!(self.byte(at), Some(b']' | b')')));
        (quoted, at)
    }

    fn separator(&self, quoted: bool, at: usize) -> Option<(Separator, usize)> {
        let sign = self.behind_spaces(at);
        let next = self.byte(sign + 1);
        let (separator, length) = match (self.byte(sign)?, next) {
            (b'=', Some(b'=')) | (b':', Some(b':')) => return None,
            (b'=', Some(b'>')) => (Separator::Equals, 2),
            (b':', Some(b'=')) => (Separator::Equals, 2),
            (b'=', _) => (Separator::Equals, 1),
            (b':', _) => (Separator::Colon, 1),
            (b',', _) if quoted => (Separator::Comma, 1),
            (b'>', _) if sign == self.name.end && self.before_word() == Some(b'<') => (Separator::Element, 1),
            _ if sign > at && !quoted && self.byte(self.word_start()) == Some(b'-') => (Separator::Space, 0),
            _ => return None,
        };
        Some((separator, self.behind_spaces(sign + length)))
    }

    fn before_word(&self) -> Option<u8> {
        self.byte(self.word_start().checked_sub(1)?)
    }

    /// Returns a literal that begins here, perhaps with a prefix letter.
    fn literal(&self, begin: usize) -> Option<Value> {
        let letters =
            self.text[begin..].iter().take(2).take_while(|byte| b"bBrRuUfF@".contains(byte)).count();
        let mut at = begin + letters;
        at += usize::from(self.byte(at) == Some(b'\\'));
        let quote = self.byte(at).filter(|byte| b"\"'`".contains(byte))?;
        let start = at + 1;
        // Three of them: what follows may be on the next line, which is no secret of this one.
        if self.text[start..].starts_with(&[quote, quote]) {
            return None;
        }
        let ends = Ends::Quote { quote, escaped: at > begin + letters };
        let range = start..self.end(start, ends, start + LOOKED_AT);
        Some(Value { range, form: Form::Literal, ends })
    }

    /// Returns where a value ends that begins at `at`, or `limit` if that comes first.
    fn end(&self, mut at: usize, ends: Ends, limit: usize) -> usize {
        let limit = limit.min(self.text.len());
        while at < limit && !b"\r\n".contains(&self.text[at]) {
            match ends {
                Ends::Any(ends) if ends.contains(&self.text[at]) => break,
                Ends::Quote { quote, .. } if self.text[at] == quote => break,
                Ends::Quote { quote, escaped: true } if self.text[at..].starts_with(&[b'\\', quote]) => break,
                // What is escaped does not end it.
                Ends::Quote { .. } if self.text[at] == b'\\' => at += 1,
                _ => {}
            }
            at += 1;
        }
        at.min(limit)
    }

    /// Returns the whole value, however long.
    fn all_of(&self, value: &Value) -> Range<usize> {
        value.range.start..self.end(value.range.start, value.ends, usize::MAX)
    }

    /// `String::from("…")`, `password: str = "…"`.
    fn wrapped_literal(&self, begin: usize, separator: Separator) -> Option<Value> {
        let rest = &self.text[begin..self.text.len().min(begin + LOOK_BEHIND)];
        let word = rest
            .iter()
            .take_while(|byte| byte.is_ascii_alphanumeric() || b"_:.!&<>'?".contains(byte))
            .count();
        let next = self.behind_spaces(begin + word);
        match self.byte(next)? {
            b'(' if next == begin + word && makes_one(&rest[..word]) => self.literal(next + 1),
            b'=' if separator == Separator::Colon && word > 0 && self.byte(next + 1) != Some(b'=') => {
                self.literal(self.behind_spaces(next + 1))
            }
            _ => None,
        }
    }

    fn unquoted(&self, separator: Separator, begin: usize) -> Option<Value> {
        let bare = |ends| begin..self.end(begin, ends, begin + LOOKED_AT);
        let ends = match separator {
            Separator::Element => Ends::Any(b"<\\()[]"),
            _ => Ends::Any(b" \t\"'`,;&|<>"),
        };
        let range = bare(ends);
        let long = range.len() == LOOKED_AT;
        if separator == Separator::Element && !long && !self.text[range.end..].starts_with(b"</") {
            return None;
        }
        let glued = self.byte(begin.wrapping_sub(1)).is_some_and(|byte| !b" \t".contains(&byte));
        let before = self.before_word();
        // A variable of the environment may be anything, up to the end of its line.
        let line = Ends::Any(b" \t\"'");
        if separator == Separator::Equals
            && glued
            && self.shouts()
            && (self.is_setting(&bare(line)) || self.precedes_command(&bare(line)))
        {
            return Some(Value { range: bare(line), form: Form::Setting, ends: line });
        }
        let form = match separator {
            Separator::Element if !long => Form::Plain,
            Separator::Space => Form::Plain,
            Separator::Equals if glued && self.byte(self.word_start()) == Some(b'-') => Form::Plain,
            Separator::Equals if glued && matches!(before, Some(b'?' | b'&')) => Form::Plain,
            Separator::Equals if glued && before == Some(b';') && self.kind == Kind::Password => Form::Plain,
            Separator::Equals if glued && self.is_setting(&range) => Form::Setting,
            Separator::Colon if !glued && self.kind == Kind::Password && self.is_setting(&range) => {
                Form::Setting
            }
            _ => Form::Bare,
        };
        (!range.is_empty()).then_some(Value { range, form, ends })
    }

    /// Returns whether name and value are a whole line, or all of a quoted text: `PASSWORD=x`, `export TOKEN=x`, `-
    /// "KEY=x"`, also in program output: `+PASSWORD=x`, `file:12:PASSWORD=x`.
    fn is_setting(&self, value: &Range<usize>) -> bool {
        let ended = match self.byte(self.behind_spaces(value.end)) {
            None | Some(b'\r' | b'\n') => true,
            Some(b'"' | b'\'') => matches!(self.before_word(), Some(b'"' | b'\'')),
            Some(b'#') => true,
            Some(_) => false,
        };
        let begun = match self.before_word() {
            None => self.reading.at_line_start,
            Some(byte) => b" \t\n+-:\"'".contains(&byte),
        };
        let code = self.text[value.clone()].iter().any(|byte| b"(){}[]\\".contains(byte));
        ended && begun && (!code || self.shouts())
    }

    /// Returns whether the value is a variable for the command after it: `PGPASSWORD=x psql`.
    fn precedes_command(&self, value: &Range<usize>) -> bool {
        let command = self.behind_spaces(value.end);
        let begun = match self.before_word() {
            None => self.reading.at_line_start,
            Some(byte) => b" \t\n+:;&|(\"'`".contains(&byte),
        };
        begun && command > value.end && self.byte(command).is_some_and(|byte| byte.is_ascii_graphic())
    }

    /// Returns whether the name is written like an environment variable.
    fn shouts(&self) -> bool {
        !self.text[self.word_start()..self.name.end].iter().any(u8::is_ascii_lowercase)
    }

    fn is_secret(&self, value: &Value) -> bool {
        let text = &self.text[value.range.clone()];
        let text = &text[..text.len().min(LOOKED_AT)];
        if self.reading.eager {
            return !text.is_empty() && !text.starts_with(b"$");
        }
        // On its own it is a word like others: only as `"auth": "…"` is it the name of anything.
        let name = &self.text[self.name.clone()];
        if [&b"auth"[..], b"pass"].iter().any(|short| name.eq_ignore_ascii_case(short)) {
            let before = self.name.start.checked_sub(1).and_then(|at| self.byte(at));
            let whole = before.is_none_or(|byte| !byte.is_ascii_alphanumeric());
            return whole && value.form != Form::Bare && judge::literal(self.kind, text);
        }
        match value.form {
            Form::Literal => judge::literal(self.kind, text),
            Form::Plain => judge::literal(self.kind, text) || judge::chosen(text),
            Form::Setting => {
                judge::literal(self.kind, text)
                    || (judge::chosen(text) && (self.kind == Kind::Password || self.shouts()))
            }
            Form::Bare => judge::bare(text),
        }
    }
}

/// Returns whether the call only wraps the literal: `String::from`, `Some`, `Secret::new`. Methods of a value do not.
fn makes_one(called: &[u8]) -> bool {
    let plain = called.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let named = [&b"::from"[..], b"::new", b"::from_str"].iter().any(|end| called.ends_with(end));
    named || (plain && called.first().is_some_and(u8::is_ascii_uppercase))
}
