//! Reads JSON texts from bytes that come in pieces, one value after another.

use std::borrow::Cow;

use crate::number;
use crate::value::Value;

use super::Tree;

/// What a text is made of.
pub enum Token {
    /// A string, a number or a name.
    Scalar(Value),
    /// One of `[ ] { } : ,`.
    Mark(u8),
}

/// What makes values of tokens.
pub trait Sink {
    /// Takes the next token; the error says why it may not stand there.
    fn take(&mut self, token: Token) -> Result<(), &'static str>;
    /// A string, as a value: keys that come again and again need not be made again and again.
    fn string(&mut self, text: &str) -> Value {
        Value::string(text)
    }
    /// The next finished value.
    fn finished(&mut self) -> Option<Value>;
    /// Whether a value has begun that is not finished.
    fn is_within(&self) -> bool;
}

enum State {
    Between,
    InString,
    /// After a backslash.
    InEscape,
}

/// Cuts bytes into tokens, and keeps count of lines.
pub struct Reader<S> {
    pub sink: S,
    state: State,
    /// The part of a literal or string that came with earlier pieces.
    begun: Vec<u8>,
    line: usize,
    /// Where the current line began, and the current piece, counted in bytes from the start of all input.
    line_start: usize,
    piece_start: usize,
    /// Whether a record separator (`--seq`) counts as a blank.
    pub takes_separators: bool,
}

impl<S: Sink> Reader<S> {
    pub fn new(sink: S) -> Self {
        let (line, line_start, piece_start) = (1, 0, 0);
        Reader {
            sink,
            state: State::Between,
            begun: Vec::new(),
            line,
            line_start,
            piece_start,
            takes_separators: false,
        }
    }

    /// Reads on at `*at`, until a value is finished (`Some`) or the piece is at its end.
    pub fn next(&mut self, piece: &[u8], at: &mut usize) -> Result<Option<Value>, String> {
        loop {
            if let Some(value) = self.sink.finished() {
                return Ok(Some(value));
            }
            if *at >= piece.len() {
                self.piece_start += piece.len();
                *at = 0;
                return Ok(None);
            }
            match self.state {
                State::Between => self.between(piece, at)?,
                State::InString => self.string(piece, at)?,
                State::InEscape => {
                    self.begun.push(piece[*at]);
                    self.state = State::InString;
                    *at += 1;
                }
            }
        }
    }

    fn between(&mut self, piece: &[u8], at: &mut usize) -> Result<(), String> {
        let byte = piece[*at];
        match byte {
            b'\n' => {
                self.line += 1;
                self.line_start = self.piece_start + *at + 1;
                self.end_literal(*at)?;
            }
            b' ' | b'\t' | b'\r' => self.end_literal(*at)?,
            0x1e if self.takes_separators => self.end_literal(*at)?,
            // A literal that ends here may be a whole text: the mark waits until that is given out.
            b'[' | b']' | b'{' | b'}' | b':' | b',' if !self.begun.is_empty() => {
                return self.end_literal(*at);
            }
            b'[' | b']' | b'{' | b'}' | b':' | b',' => self.give(Token::Mark(byte), *at)?,
            b'"' => {
                self.end_literal(*at)?;
                self.state = State::InString;
            }
            _ => return self.literal(piece, at),
        }
        *at += 1;
        Ok(())
    }

    /// A number or a name: to the next byte that cannot be part of one.
    fn literal(&mut self, piece: &[u8], at: &mut usize) -> Result<(), String> {
        let rest = &piece[*at..];
        let length = rest.iter().position(|&byte| ends_literal(byte)).unwrap_or(rest.len());
        *at += length;
        if self.begun.is_empty() && length < rest.len() {
            // What ends it is what an error is counted to.
            let taken = scalar(&rest[..length]).and_then(|value| self.sink.take(Token::Scalar(value)));
            return taken.or_else(|problem| self.end_badly(problem, rest[length], *at));
        }
        self.begun.extend_from_slice(&rest[..length]);
        Ok(())
    }

    /// An error at what ends a literal: a line break has ended its line too.
    fn end_badly(&mut self, problem: &str, end: u8, at: usize) -> Result<(), String> {
        if end == b'\n' {
            self.line += 1;
            self.line_start = self.piece_start + at + 1;
        }
        Err(self.error(problem, at))
    }

    fn end_literal(&mut self, at: usize) -> Result<(), String> {
        if self.begun.is_empty() {
            return Ok(());
        }
        let value = scalar(&self.begun).map_err(|problem| self.error(problem, at))?;
        self.begun.clear();
        self.give(Token::Scalar(value), at)
    }

    fn string(&mut self, piece: &[u8], at: &mut usize) -> Result<(), String> {
        let rest = &piece[*at..];
        let Some(length) = memchr::memchr2(b'"', b'\\', rest) else {
            self.begun.extend_from_slice(rest);
            *at = piece.len();
            return Ok(());
        };
        if rest[length] == b'\\' {
            self.begun.extend_from_slice(&rest[..=length]);
            self.state = State::InEscape;
            *at += length + 1;
            return Ok(());
        }
        *at += length;
        let text = if self.begun.is_empty() {
            unescape(&rest[..length])
        } else {
            self.begun.extend_from_slice(&rest[..length]);
            unescape(&self.begun)
        };
        let value = match text {
            Ok(text) => self.sink.string(&text),
            Err(problem) => {
                let begun = std::mem::take(&mut self.begun);
                let whole = if begun.is_empty() { &rest[..length] } else { &begun[..] };
                self.count_lines(whole, *at);
                return Err(self.error(problem, *at));
            }
        };
        self.begun.clear();
        self.state = State::Between;
        self.give(Token::Scalar(value), *at)?;
        *at += 1;
        Ok(())
    }

    /// Line breaks in a string, which is only allowed to have them in a message.
    fn count_lines(&mut self, text: &[u8], end: usize) {
        if let Some(last) = memchr::memrchr(b'\n', text) {
            self.line += memchr::memchr_iter(b'\n', text).count();
            self.line_start = self.piece_start + end - (text.len() - last - 1);
        }
    }

    fn give(&mut self, token: Token, at: usize) -> Result<(), String> {
        self.sink.take(token).map_err(|problem| self.error(problem, at))
    }

    fn error(&self, problem: &str, at: usize) -> String {
        let column = (self.piece_start + at + 1).saturating_sub(self.line_start);
        format!("{problem} at line {}, column {column}", self.line)
    }

    /// At the end of all input: the last value, if a number or name was it.
    pub fn finish(&mut self) -> Result<Option<Value>, String> {
        if let Some(value) = self.sink.finished() {
            return Ok(Some(value));
        }
        let problem = match self.state {
            State::Between if self.begun.is_empty() => None,
            State::Between => match scalar(&self.begun) {
                Ok(value) => self.sink.take(Token::Scalar(value)).err(),
                Err(problem) => Some(problem),
            },
            _ => {
                let begun = std::mem::take(&mut self.begun);
                self.count_lines(&begun, 0);
                Some("Unfinished string")
            }
        };
        let problem = match self.sink.is_within() {
            true => problem.or(Some("Unfinished JSON term")),
            false => problem,
        };
        self.begun.clear();
        self.state = State::Between;
        match problem {
            None => Ok(self.sink.finished()),
            Some(problem) => {
                let column = self.piece_start.saturating_sub(self.line_start);
                Err(format!("{problem} at EOF at line {}, column {column}", self.line))
            }
        }
    }
}

fn ends_literal(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'[' | b']' | b'{' | b'}' | b':' | b',' | b'"' | 0x1e)
}

/// The value of a number or a name.
fn scalar(text: &[u8]) -> Result<Value, &'static str> {
    let name = |name: &[u8], value: Value| if text == name { Ok(value) } else { Err("Invalid literal") };
    match text {
        [b't', ..] => name(b"true", Value::Bool(true)),
        [b'f', ..] => name(b"false", Value::Bool(false)),
        [b'n', b'u', ..] => name(b"null", Value::Null),
        _ => number::parse(text).or_else(|| special_number(text)).ok_or("Invalid numeric literal"),
    }
}

/// What jq reads beside JSON's numbers: a plus sign, `nan` and `infinity`.
fn special_number(text: &[u8]) -> Option<Value> {
    let (sign, rest) = match text {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        _ => (1.0, text),
    };
    match rest.to_ascii_lowercase().as_slice() {
        b"nan" => Some(Value::Number(f64::NAN)),
        b"inf" | b"infinity" => Some(Value::Number(sign * f64::INFINITY)),
        _ if text[0] == b'+' && rest.first().is_some_and(|byte| *byte != b'-') => number::parse(rest),
        _ => None,
    }
}

/// The string that stands between two quotes.
fn unescape(text: &[u8]) -> Result<Cow<'_, str>, &'static str> {
    // Without a way out before the end, so that many bytes are looked at at once.
    if text.iter().fold(false, |found, &byte| found | (byte < 0x20)) {
        return Err("Invalid string: control characters from U+0000 through U+001F must be escaped");
    }
    if memchr::memchr(b'\\', text).is_none() {
        return Ok(String::from_utf8_lossy(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        bytes.extend_from_slice(&rest[..at]);
        rest = unescape_one(&rest[at + 1..], &mut bytes)?;
    }
    bytes.extend_from_slice(rest);
    Ok(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

/// What follows a backslash; the rest after it.
fn unescape_one<'a>(text: &'a [u8], bytes: &mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    let (&letter, rest) = text.split_first().ok_or("Expected escape character at end of string")?;
    let plain = match letter {
        b'"' | b'\\' | b'/' => letter,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'u' => return unescape_code(rest, bytes),
        _ => return Err("Invalid escape"),
    };
    bytes.push(plain);
    Ok(rest)
}

fn unescape_code<'a>(text: &'a [u8], bytes: &mut Vec<u8>) -> Result<&'a [u8], &'static str> {
    let (first, mut rest) = hex(text)?;
    let mut code = first;
    if (0xd800..0xdc00).contains(&first) {
        let pair = "Invalid \\uXXXX\\uXXXX surrogate pair escape";
        let (second, after) = hex(rest.strip_prefix(b"\\u").ok_or(pair)?)?;
        if !(0xdc00..0xe000).contains(&second) {
            return Err(pair);
        }
        code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        rest = after;
    }
    let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
    bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(rest)
}

fn hex(text: &[u8]) -> Result<(u32, &[u8]), &'static str> {
    let (digits, rest) = text.split_at_checked(4).ok_or("Invalid \\uXXXX escape")?;
    let mut code = 0;
    for digit in digits {
        let digit = char::from(*digit).to_digit(16).ok_or("Invalid characters in \\uXXXX escape")?;
        code = code * 16 + digit;
    }
    Ok((code, rest))
}

/// The one value that a whole text must be; `None` if it is blank.
pub fn parse_one(text: &[u8]) -> Result<Option<Value>, String> {
    let mut reader = Reader::new(Tree::default());
    let mut at = 0;
    let first = match reader.next(text, &mut at)? {
        None => return reader.finish(),
        first => first,
    };
    let second = match reader.next(text, &mut at)? {
        None => reader.finish()?,
        second => second,
    };
    match second {
        None => Ok(first),
        Some(_) => Err("Unexpected extra JSON values".into()),
    }
}
