//! What a program is written in: words, numbers, signs.

use std::collections::VecDeque;
use toolkit::files;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// A piece of a program.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    Newline,
    Number(String),
    /// A name or a keyword.
    Word(String),
    Text(Vec<u8>),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// Longest first.
const SIGNS: &[&str] = &[
    "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "!=", "<=", ">=", "&&", "||", "+", "-", "*", "/",
    "%", "^", "=", "<", ">", "!", "(", ")", "[", "]", "{", "}", ",", ";", "&",
];

/// The files of a program, one after the other, standard input last.
pub struct Source {
    files: VecDeque<Vec<u8>>,
    fd: Option<Fd>,
    is_standard: bool,
    buffer: Vec<u8>,
}

impl Source {
    pub fn new(files: Vec<Vec<u8>>) -> Source {
        Source { files: files.into(), fd: None, is_standard: false, buffer: Vec::new() }
    }

    /// The next line, with its end if it has one; a file's last may have none. Answers the name of a file as it is
    /// opened.
    fn line(&mut self, opened: &mut Option<String>) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                return Some(self.buffer.drain(..=end).collect());
            }
            if self.fill() {
                continue;
            }
            if !self.buffer.is_empty() {
                return Some(std::mem::take(&mut self.buffer));
            }
            if self.is_standard {
                return None;
            }
            *opened = Some(self.open_next());
        }
    }

    /// Reads more of the open file; answers whether there was any.
    fn fill(&mut self) -> bool {
        let Some(fd) = self.fd else { return false };
        let mut piece = [0; 16 * 1024];
        loop {
            match abi::read(fd, &mut piece) {
                Err(Errno::INTR) => {}
                Ok(0) | Err(_) => return false,
                Ok(count) => {
                    self.buffer.extend_from_slice(&piece[..count]);
                    return true;
                }
            }
        }
    }

    fn open_next(&mut self) -> String {
        if let Some(fd) = self.fd.take() {
            // It was only read.
            let _ = abi::close(fd);
        }
        let Some(file) = self.files.pop_front() else {
            (self.fd, self.is_standard) = (Some(0), true);
            return "(standard_in)".into();
        };
        let name = String::from_utf8_lossy(&file).into_owned();
        let fd = abi::open(Dir::CWD, &file, open_flags::RDONLY | open_flags::CLOEXEC, 0);
        match fd {
            Ok(fd) if files::path(&file).is_file() || !files::path(&file).is_dir() => self.fd = Some(fd),
            _ => {
                let _ = abi::write_all(2, format!("File {name} is unavailable.\n").as_bytes());
                abi::exit(1);
            }
        }
        name
    }
}

/// Cuts a source into tokens.
pub struct Lexer {
    pub source: Source,
    text: Vec<u8>,
    at: usize,
    pub name: String,
    pub line: usize,
    /// Whether there was something that is no token.
    pub had_error: bool,
}

impl Lexer {
    pub fn new(source: Source) -> Lexer {
        Lexer { source, text: Vec::new(), at: 0, name: "(standard_in)".into(), line: 1, had_error: false }
    }

    /// Says what is wrong, and where.
    pub fn complain(&self, message: &str) {
        // There is nowhere left to say that this failed.
        let _ = abi::write_all(2, format!("{} {}: {message}\n", self.name, self.line).as_bytes());
    }

    /// The rest of the input's next line, for `read()`.
    pub fn read_line(&mut self) -> Option<Vec<u8>> {
        if self.at < self.text.len() {
            return Some(self.text.split_off(self.at));
        }
        self.source.line(&mut None)
    }

    /// Gets one more line behind those that are there.
    fn more(&mut self) -> bool {
        let mut opened = None;
        let line = self.source.line(&mut opened);
        if let Some(name) = opened {
            (self.name, self.line) = (name, 1);
        }
        if self.at == self.text.len() {
            self.text.clear();
            self.at = 0;
        }
        line.map(|line| self.text.extend(line)).is_some()
    }

    /// Whether brackets with nothing in them come next.
    pub fn has_empty_brackets(&self) -> bool {
        let rest = self.text[self.at..].trim_ascii_start();
        rest.strip_prefix(b"[").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"]"))
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes over blanks, comments and lines that go on; answers whether there is anything left.
    fn skip(&mut self) -> bool {
        loop {
            if self.at >= self.text.len() && !self.more() {
                return false;
            }
            match self.peek(0) {
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'\\' if self.peek(1) == b'\n' => {
                    self.at += 2;
                    self.line += 1;
                }
                b'#' => {
                    let rest = &self.text[self.at..];
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                b'/' if self.peek(1) == b'*' => {
                    if !self.skip_comment() {
                        return false;
                    }
                }
                _ => return true,
            }
        }
    }

    fn skip_comment(&mut self) -> bool {
        self.at += 2;
        loop {
            if self.at + 1 >= self.text.len() && !self.more() {
                let _ = abi::write_all(2, b"EOF encountered in a comment.\n");
                self.at = self.text.len();
                return false;
            }
            match (self.peek(0), self.peek(1)) {
                (b'*', b'/') => {
                    self.at += 2;
                    return true;
                }
                (b'\n', _) => self.line += 1,
                _ => {}
            }
            self.at += 1;
        }
    }

    pub fn next(&mut self) -> Token {
        loop {
            if !self.skip() {
                // As if one more file were opened.
                self.line = 1;
                return Token::End;
            }
            let byte = self.peek(0);
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.line += 1;
                    return Token::Newline;
                }
                b'a'..=b'z' => return self.word(),
                b'0'..=b'9' | b'A'..=b'Z' | b'.' => return self.number(),
                b'"' => {
                    if let Some(text) = self.quoted() {
                        return text;
                    }
                }
                _ => {
                    let rest = &self.text[self.at..];
                    if let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) {
                        self.at += sign.len();
                        return Token::Sign(sign);
                    }
                }
            }
            let shown =
                if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("\\{byte:03o}") };
            self.complain(&format!("illegal character: {shown}"));
            self.had_error = true;
            self.at += 1;
        }
    }

    fn word(&mut self) -> Token {
        let rest = &self.text[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_';
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let word = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length;
        Token::Word(word)
    }

    /// A number, which may go on behind a backslash at a line's end; a point alone is the last result.
    fn number(&mut self) -> Token {
        let mut number = String::new();
        loop {
            match self.peek(0) {
                byte @ (b'0'..=b'9' | b'A'..=b'Z') => number.push(char::from(byte)),
                b'.' if !number.contains('.') => number.push('.'),
                b'\\' if self.peek(1) == b'\n' => {
                    self.at += 2;
                    self.line += 1;
                    if self.at >= self.text.len() {
                        self.more();
                    }
                    continue;
                }
                _ => break,
            }
            self.at += 1;
        }
        if number == "." {
            return Token::Word("last".into());
        }
        let number = number.trim_start_matches('0');
        let number = number.strip_suffix('.').unwrap_or(number);
        Token::Number(if number.is_empty() { "0".into() } else { number.to_owned() })
    }

    /// A text between quotes, if there is a second one.
    fn quoted(&mut self) -> Option<Token> {
        let mut end = self.at + 1;
        loop {
            if let Some(length) = self.text[end..].iter().position(|&byte| byte == b'"') {
                let text = self.text[self.at + 1..end + length].to_vec();
                self.line += text.iter().filter(|&&byte| byte == b'\n').count();
                self.at = end + length + 1;
                return Some(Token::Text(text));
            }
            end = self.text.len();
            if !self.more() {
                return None;
            }
        }
    }
}
