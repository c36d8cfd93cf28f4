//! Words of a program.

use crate::number;
use crate::value::Value;

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name, with any `module::` before it, or a keyword.
    Name(String),
    /// `.name`, where it may follow a term.
    Field(String),
    /// `$name`.
    Variable(String),
    /// `@name`.
    Format(String),
    Number(Value),
    /// A string's pieces: text, and between texts the words of what is interpolated.
    String(Vec<Piece>),
    /// An operator or a bracket.
    Sign(&'static str),
    /// A byte that begins no word.
    Invalid(String),
    End,
}

/// A piece of a string.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    Text(String),
    Program(Vec<Word>),
}

/// A word and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    pub token: Token,
    pub at: usize,
}

/// Longest first.
const SIGNS: &[&str] = &[
    "?//=", "?//", "//=", "|=", "+=", "-=", "*=", "/=", "%=", "==", "!=", "<=", ">=", "//", "..", "::", "|",
    ",", "+", "-", "*", "/", "%", "=", "<", ">", "(", ")", "[", "]", "{", "}", ":", ";", ".", "?", "$",
];

/// How deep strings may lie in each other's interpolations.
const DEEPEST_STRING: usize = 100;

/// Cuts a program into words.
pub fn words(text: &str) -> Result<Vec<Word>, (String, usize)> {
    let mut lexer = Lexer { text, at: 0, depth: 0 };
    let (words, _) = lexer.until_closed(false)?;
    Ok(words)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

type Failure = (String, usize);

impl Lexer<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// Words up to the end, or up to the bracket that closes an interpolation.
    fn until_closed(&mut self, within_string: bool) -> Result<(Vec<Word>, bool), Failure> {
        let mut words = Vec::new();
        let mut open = 0;
        loop {
            self.skip_blanks();
            let at = self.at;
            let Some(first) = self.rest().chars().next() else {
                words.push(Word { token: Token::End, at });
                return Ok((words, false));
            };
            if within_string && first == ')' && open == 0 {
                self.at += 1;
                words.push(Word { token: Token::End, at });
                return Ok((words, true));
            }
            let token = self.word(first)?;
            match token {
                Token::Sign("(") => open += 1,
                Token::Sign(")") if open > 0 => open -= 1,
                _ => {}
            }
            words.push(Word { token, at });
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
            self.at += blank;
            if !self.rest().starts_with('#') {
                return;
            }
            self.skip_comment();
        }
    }

    /// A comment goes on over a line break that an odd number of backslashes stand before.
    fn skip_comment(&mut self) {
        while let Some(end) = self.rest().find('\n') {
            let line = &self.rest()[..end];
            let line = line.strip_suffix('\r').unwrap_or(line);
            let slashes = line.len() - line.trim_end_matches('\\').len();
            self.at += end + 1;
            if slashes.is_multiple_of(2) {
                return;
            }
        }
        self.at = self.text.len();
    }

    fn word(&mut self, first: char) -> Result<Token, Failure> {
        let rest = self.rest();
        let second = rest[first.len_utf8()..].chars().next();
        match first {
            '"' => self.string(),
            '.' if second.is_some_and(begins_name) => {
                self.at += 1;
                Ok(Token::Field(self.plain_name()))
            }
            '.' if second.is_some_and(|next| next.is_ascii_digit()) => self.number(),
            '0'..='9' => self.number(),
            '@' if second.is_some_and(|next| next.is_ascii_alphanumeric()) => {
                self.at += 1;
                Ok(Token::Format(self.plain_name()))
            }
            '$' if second.is_some_and(begins_name) => {
                self.at += 1;
                Ok(Token::Variable(self.name()))
            }
            _ if begins_name(first) => Ok(Token::Name(self.name())),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => {
                    self.at += sign.len();
                    Ok(Token::Sign(sign))
                }
                None => {
                    self.at += first.len_utf8();
                    Ok(Token::Invalid(first.to_string()))
                }
            },
        }
    }

    fn plain_name(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find(|letter: char| !continues_name(letter)).unwrap_or(rest.len());
        let name = rest[..end].to_owned();
        self.at += end;
        name
    }

    /// A name with the modules before it.
    fn name(&mut self) -> String {
        let mut name = self.plain_name();
        while self.rest().strip_prefix("::").and_then(|rest| rest.chars().next()).is_some_and(begins_name) {
            self.at += 2;
            name = format!("{name}::{}", self.plain_name());
        }
        name
    }

    fn number(&mut self) -> Result<Token, Failure> {
        let bytes = self.rest().as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let mut end = digits(0);
        if bytes.get(end) == Some(&b'.') {
            end += 1;
            end += digits(end);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let count = digits((end + 1 + sign).min(bytes.len()));
            if count > 0 {
                end += 1 + sign + count;
            }
        }
        let value = number::parse(&bytes[..end]).ok_or(("Invalid numeric literal".to_owned(), self.at))?;
        self.at += end;
        Ok(Token::Number(value))
    }

    fn string(&mut self) -> Result<Token, Failure> {
        let start = self.at;
        self.depth += 1;
        if self.depth > DEEPEST_STRING {
            return Err(("strings are nested too deeply".into(), start));
        }
        self.at += 1;
        let (mut pieces, mut text) = (Vec::new(), String::new());
        loop {
            let Some(letter) = self.rest().chars().next() else {
                return Err(("syntax error, unexpected end of file, expecting QQSTRING_END".into(), start));
            };
            self.at += letter.len_utf8();
            match letter {
                '"' => break,
                '\\' => self.escape(&mut pieces, &mut text)?,
                _ => text.push(letter),
            }
        }
        pieces.push(Piece::Text(text));
        self.depth -= 1;
        Ok(Token::String(pieces))
    }

    /// What follows a backslash.
    fn escape(&mut self, pieces: &mut Vec<Piece>, text: &mut String) -> Result<(), Failure> {
        let at = self.at;
        let invalid = || (format!("Invalid escape at line 1, column {}", 4), at);
        let letter = self.rest().chars().next().ok_or_else(invalid)?;
        self.at += letter.len_utf8();
        match letter {
            '"' | '\\' | '/' => text.push(letter),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'u' => text.push(self.code().ok_or_else(invalid)?),
            '(' => {
                let (words, closed) = self.until_closed(true)?;
                if !closed {
                    return Err(("syntax error, unexpected end of file".into(), at));
                }
                pieces.push(Piece::Text(std::mem::take(text)));
                pieces.push(Piece::Program(words));
            }
            _ => return Err(invalid()),
        }
        Ok(())
    }

    fn code(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return Some(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        if !self.rest().starts_with("\\u") {
            return Some(char::REPLACEMENT_CHARACTER);
        }
        self.at += 2;
        let second = self.hex()?.wrapping_sub(0xdc00);
        if second >= 0x400 {
            return Some(char::REPLACEMENT_CHARACTER);
        }
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.rest().get(..4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let code = u32::from_str_radix(digits, 16).ok()?;
        self.at += 4;
        Some(code)
    }
}

fn begins_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

fn continues_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}
