//! From text to tokens. Whether a slash divides or opens a pattern only the parser knows: it asks for the pattern.

use crate::ast::{Builtin, Name};
use crate::escape;
use crate::number;

/// A piece of a program.
#[derive(Clone, PartialEq, Debug)]
#[allow(missing_docs)]
pub enum Token {
    End,
    Newline,
    Number(f64),
    Text(Vec<u8>),
    Name(Name),
    /// A name with a `(` right behind it.
    Call(Name),
    Builtin(Builtin),
    Word(Word),
    /// An operator or bracket, as it is written; `**` is `^`.
    Mark(&'static str),
}

macro_rules! words {
    ($($variant:ident $($name:literal)|+,)*) => {
        /// A word of the language.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(missing_docs)]
        pub enum Word { $($variant),* }

        fn word(name: &str) -> Option<Word> {
            Some(match name { $($($name)|+ => Word::$variant,)* _ => return None })
        }
    };
}

words! {
    Begin "BEGIN",
    BeginFile "BEGINFILE",
    Break "break",
    Case "case",
    Continue "continue",
    Default "default",
    Delete "delete",
    Do "do",
    Else "else",
    End "END",
    EndFile "ENDFILE",
    Exit "exit",
    For "for",
    Function "function" | "func",
    Getline "getline",
    If "if",
    In "in",
    Next "next",
    NextFile "nextfile",
    Print "print",
    Printf "printf",
    Return "return",
    Switch "switch",
    While "while",
}

/// The operators, longer ones first.
const MARKS: &[(&str, &str)] = &[
    ("**=", "^="),
    ("&&", "&&"),
    ("||", "||"),
    ("|&", "|&"),
    ("++", "++"),
    ("--", "--"),
    ("+=", "+="),
    ("-=", "-="),
    ("*=", "*="),
    ("/=", "/="),
    ("%=", "%="),
    ("^=", "^="),
    ("**", "^"),
    ("==", "=="),
    ("<=", "<="),
    (">=", ">="),
    ("!=", "!="),
    ("!~", "!~"),
    (">>", ">>"),
    ("{", "{"),
    ("}", "}"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    (";", ";"),
    (",", ","),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("%", "%"),
    ("^", "^"),
    ("!", "!"),
    (">", ">"),
    ("<", "<"),
    ("|", "|"),
    ("?", "?"),
    (":", ":"),
    ("~", "~"),
    ("$", "$"),
    ("=", "="),
    ("@", "@"),
];

/// A text on its way to tokens.
pub struct Lexer {
    text: Vec<u8>,
    at: usize,
    /// The line that is being read.
    pub line: u32,
    /// Where the last token began.
    pub start: usize,
}

impl Lexer {
    /// Begins a text.
    pub fn new(text: Vec<u8>) -> Lexer {
        Lexer { text, at: 0, line: 1, start: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Past blanks, comments and newlines behind a backslash.
    fn skip_blanks(&mut self) {
        loop {
            let rest = &self.text[self.at..];
            match rest {
                [b' ' | b'\t' | b'\r' | 0x0c | 0x0b, ..] => self.at += 1,
                [b'\\', b'\n', ..] => {
                    self.at += 2;
                    self.line += 1;
                }
                [b'\\', b'\r', b'\n', ..] => {
                    self.at += 3;
                    self.line += 1;
                }
                [b'#', ..] => self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len()),
                _ => return,
            }
        }
    }

    /// The next token.
    pub fn next(&mut self) -> Result<Token, String> {
        self.skip_blanks();
        self.start = self.at;
        let Some(byte) = self.peek() else { return Ok(Token::End) };
        match byte {
            b'\n' => {
                self.at += 1;
                self.line += 1;
                Ok(Token::Newline)
            }
            b'"' => self.text(),
            b'0'..=b'9' => Ok(self.number()),
            b'.' if self.text.get(self.at + 1).is_some_and(u8::is_ascii_digit) => Ok(self.number()),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => Ok(self.name()),
            _ => self.mark(),
        }
    }

    fn mark(&mut self) -> Result<Token, String> {
        let rest = &self.text[self.at..];
        for (written, meant) in MARKS {
            if rest.starts_with(written.as_bytes()) {
                self.at += written.len();
                return Ok(Token::Mark(meant));
            }
        }
        let length = crate::text::char_len(rest);
        let shown = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length;
        Err(format!("invalid char '{shown}' in expression"))
    }

    fn number(&mut self) -> Token {
        let rest = &self.text[self.at..];
        if let [b'0', b'x' | b'X', digit, ..] = rest
            && digit.is_ascii_hexdigit()
        {
            let digits = rest[2..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
            self.at += 2 + digits;
            let digit = |byte: &u8| f64::from(char::from(*byte).to_digit(16).unwrap_or(0));
            return Token::Number(rest[2..2 + digits].iter().fold(0.0, |sum, byte| sum * 16.0 + digit(byte)));
        }
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is_octal = rest[0] == b'0'
            && digits > 1
            && rest[..digits].iter().all(|byte| matches!(byte, b'0'..=b'7'))
            && !matches!(rest.get(digits), Some(b'.' | b'e' | b'E'));
        if is_octal {
            self.at += digits;
            return Token::Number(
                rest[..digits].iter().fold(0.0, |sum, byte| sum * 8.0 + f64::from(byte - b'0')),
            );
        }
        let (number, end) = number::scan(rest);
        self.at += end;
        Token::Number(number)
    }

    fn name(&mut self) -> Token {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let name: Name = String::from_utf8_lossy(&rest[..length]).into();
        self.at += length;
        if let Some(word) = word(&name) {
            Token::Word(word)
        } else if let Some(builtin) = Builtin::named(&name) {
            Token::Builtin(builtin)
        } else if self.peek() == Some(b'(') {
            Token::Call(name)
        } else {
            Token::Name(name)
        }
    }

    fn text(&mut self) -> Result<Token, String> {
        let start = self.at + 1;
        let mut at = start;
        loop {
            match self.text.get(at) {
                None | Some(b'\n') => {
                    self.at = at;
                    return Err("unterminated string".into());
                }
                Some(b'"') => break,
                Some(b'\\') => {
                    self.line += u32::from(self.text.get(at + 1) == Some(&b'\n'));
                    at += 2;
                }
                Some(_) => at += 1,
            }
        }
        self.at = at + 1;
        Ok(Token::Text(escape::unescape(&self.text[start..at])))
    }

    /// The pattern whose opening slash was the last token (`/=` if its first character is an equals sign).
    pub fn pattern(&mut self) -> Result<Vec<u8>, String> {
        self.at = self.start + 1;
        let mut pattern = Vec::new();
        let mut in_brackets = false;
        loop {
            let Some(byte) = self.peek().filter(|byte| *byte != b'\n') else {
                return Err("unterminated regexp".into());
            };
            self.at += 1;
            match byte {
                b'/' if !in_brackets => return Ok(pattern),
                b'\\' => match self.peek() {
                    Some(b'/') => {
                        pattern.push(b'/');
                        self.at += 1;
                        continue;
                    }
                    Some(b'\n') | None => {}
                    Some(next) => {
                        pattern.extend_from_slice(&[b'\\', next]);
                        self.at += 1;
                        continue;
                    }
                },
                b'[' if in_brackets && self.peek() == Some(b':') => {
                    let end = memchr::memmem::find(&self.text[self.at..], b":]");
                    let end = end.map_or(self.at, |end| self.at + end + 2);
                    pattern.push(b'[');
                    pattern.extend_from_slice(&self.text[self.at..end]);
                    self.at = end;
                    continue;
                }
                b'[' if !in_brackets => {
                    in_brackets = true;
                    pattern.push(b'[');
                    if self.peek() == Some(b'^') {
                        pattern.push(b'^');
                        self.at += 1;
                    }
                    if self.peek() == Some(b']') {
                        pattern.push(b']');
                        self.at += 1;
                    }
                    continue;
                }
                b']' => in_brackets = false,
                _ => {}
            }
            pattern.push(byte);
        }
    }

    /// Whether a word comes next, without taking it.
    pub fn is_followed_by(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let rest = self.text[self.at..].strip_prefix(word.as_bytes());
        rest.is_some_and(|rest| {
            !rest.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
        })
    }

    /// The line that the last token stands in, and how many bytes of it stand before that.
    pub fn place(&self) -> (String, usize) {
        let start = self.text[..self.start].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let rest = &self.text[start..];
        let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        (String::from_utf8_lossy(&rest[..end]).into_owned(), self.start - start)
    }
}
