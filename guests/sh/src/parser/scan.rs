//! Characters and tokens: what stands at the parser's position, and the errors for what should not.

use super::*;

impl Parser {
    // --- characters and tokens ---

    /// The next byte; asks for more of the script at its end.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.peek_at(0)
    }

    pub(super) fn peek_at(&mut self, offset: usize) -> Option<u8> {
        while self.at + offset >= self.src.len() && self.read_on() {}
        self.src.get(self.at + offset).copied()
    }

    /// Asks for more of the script.
    pub(super) fn read_on(&mut self) -> bool {
        let Some(refill) = self.refill.as_mut() else { return false };
        let Some(more) = refill() else {
            self.refill = None;
            return false;
        };
        self.mentions_command |= crate::pattern::find(&more, b"BASH_COMMAND").is_some();
        self.src.extend_from_slice(&more);
        true
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        if byte == b'\n' {
            self.line += 1;
        }
        Some(byte)
    }

    pub(super) fn looking_at(&mut self, token: &[u8]) -> bool {
        self.peek();
        self.src[self.at.min(self.src.len())..].starts_with(token)
    }

    pub(super) fn eat(&mut self, token: &[u8]) -> bool {
        let found = self.looking_at(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Skips blanks, continued lines and a comment. The token behind them is in one piece then.
    pub(super) fn blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => {
                    self.at += 2;
                    self.line += 1;
                }
                Some(b'#') if self.at == 0 || !is_word_byte(self.src[self.at - 1]) => {
                    while self.peek().is_some_and(|byte| byte != b'\n') {
                        self.at += 1;
                    }
                }
                _ => return self.join_token(),
            }
        }
    }

    /// Takes continued lines out of what stands here, up to a blank or a quote: they may split operators and names.
    pub(super) fn join_token(&mut self) {
        let mut end = self.at.max(self.joined);
        while let Some(&byte) = self.src.get(end) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\'' | b'"' | b'`' => break,
                b'\\' if end + 1 == self.src.len() && !self.read_on() => break,
                b'\\' if self.src[end + 1] == b'\n' => self.join_line(end),
                b'\\' => end += 2,
                _ => end += 1,
            }
        }
        self.joined = end;
    }

    /// Takes a backslash and the newline behind it out of the text.
    pub(super) fn join_line(&mut self, at: usize) {
        self.src.drain(at..at + 2);
        self.line += 1;
        self.respelled.retain(|(_, to, _)| *to <= at);
        let ends = self.expanding.iter_mut().map(|(_, until)| until).chain(self.alias_next.as_mut());
        ends.filter(|until| **until > at).for_each(|until| *until = until.saturating_sub(2));
        if at == self.src.len() {
            self.read_on();
        }
    }

    pub(super) fn blanks_and_newlines(&mut self) -> Parsed<()> {
        loop {
            self.blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.newline()?;
        }
    }

    /// Passes the end of a line, and with it reads the here-documents it announced.
    pub(super) fn newline(&mut self) -> Parsed<()> {
        self.at += 1;
        self.line += 1;
        self.read_pending_bodies()
    }

    /// The unquoted word here, to compare with a reserved one; empty when it has quotes or expansions.
    pub(super) fn peek_keyword(&mut self) -> &'static [u8] {
        self.peek();
        let rest = &self.src[self.at.min(self.src.len())..];
        let end = rest.iter().position(|&byte| is_meta(byte)).unwrap_or(rest.len());
        KEYWORDS.iter().find(|keyword| **keyword == &rest[..end]).copied().unwrap_or(b"")
    }

    pub(super) fn keyword(&mut self, keyword: &'static [u8]) -> bool {
        let found = self.peek_keyword() == keyword;
        if found {
            self.at += keyword.len();
        }
        found
    }

    pub(super) fn expect(&mut self, keyword: &'static [u8]) -> Parsed<()> {
        self.blanks();
        if self.keyword(keyword) { Ok(()) } else { Err(self.unexpected()) }
    }

    // --- errors ---

    /// The error for whatever stands here.
    pub(super) fn unexpected(&mut self) -> SyntaxError {
        self.blanks();
        if self.peek().is_none() {
            return SyntaxError::Eof { line: self.line };
        }
        let rest = &self.src[self.at..];
        let operators: [&[u8]; 14] =
            [b";;&", b";;", b";&", b"&&", b"||", b"|&", b"&>", b"<<", b">>", b"<(", b">(", b";", b"&", b"|"];
        let token = match operators.iter().find(|operator| rest.starts_with(operator)) {
            Some(operator) => operator.to_vec(),
            None if rest[0] == b'\n' => b"newline".to_vec(),
            None if is_meta(rest[0]) => vec![rest[0]],
            None => rest[..rest.iter().position(|&byte| is_meta(byte)).unwrap_or(rest.len())].to_vec(),
        };
        let start = self.src[..self.at].iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let end = rest.iter().position(|&byte| byte == b'\n').map_or(self.src.len(), |n| self.at + n);
        SyntaxError::Unexpected { line: self.line, token, text: self.src[start..end.max(start)].to_vec() }
    }

    pub(super) fn other(&self, message: &str) -> SyntaxError {
        SyntaxError::Other { line: self.line, message: message.to_string() }
    }

    pub(super) fn wrong_condition(&self, message: &str) -> SyntaxError {
        SyntaxError::Condition { line: self.line, message: message.to_string(), inside: false }
    }

    pub(super) fn unclosed(&self, what: &'static str) -> SyntaxError {
        SyntaxError::Unclosed { line: self.line, what }
    }
}
