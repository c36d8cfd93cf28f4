//! Reading a pattern.

use super::{Set, Style, Token, char_at, find};
use wardian_regex::class::Class;

/// Groups nested deeper than this are taken as ordinary characters.
const MAX_DEPTH: usize = 50;

pub(super) struct Compiler<'t> {
    text: &'t [u8],
    at: usize,
    style: Style,
    depth: usize,
    /// A bracket was opened in a group and never closed.
    broken: bool,
}

impl<'t> Compiler<'t> {
    pub(super) fn new(text: &'t [u8], style: Style) -> Compiler<'t> {
        Compiler { text, at: 0, style, depth: 0, broken: false }
    }

    /// Tokens to the end, or inside a group to `|` or `)`.
    pub(super) fn sequence(&mut self, inside: bool) -> Vec<Token> {
        let mut tokens = Vec::new();
        while self.at < self.text.len() {
            let byte = self.text[self.at];
            if inside && matches!(byte, b'|' | b')') {
                break;
            }
            let opens =
                self.style.extended && self.text.get(self.at + 1) == Some(&b'(') && self.depth < MAX_DEPTH;
            if opens
                && matches!(byte, b'?' | b'*' | b'+' | b'@' | b'!')
                && let Some(group) = self.group(byte)
            {
                tokens.push(group);
                continue;
            }
            match byte {
                b'*' => {
                    self.at += 1;
                    if !matches!(tokens.last(), Some(Token::Star)) {
                        tokens.push(Token::Star);
                    }
                }
                b'?' => {
                    self.at += 1;
                    tokens.push(Token::Any);
                }
                b'[' => match self.set() {
                    Some(set) => tokens.push(Token::Set(set)),
                    None => {
                        self.at += 1;
                        // To bash the parenthesis that follows is inside the bracket.
                        self.broken |= inside;
                        tokens.push(Token::Char(u32::from(b'[')));
                    }
                },
                b'\\' if self.at + 1 < self.text.len() => {
                    self.at += 1;
                    tokens.push(self.char());
                }
                // As in bash, a backslash that ends a pattern is itself, but not after a star.
                b'\\' if matches!(tokens.last(), Some(Token::Star)) => {
                    self.at += 1;
                    tokens.push(Token::Set(Set::default()));
                }
                _ => tokens.push(self.char()),
            }
        }
        tokens
    }

    fn char(&mut self) -> Token {
        let (c, len) = char_at(self.text, self.at, self.style.utf8);
        self.at += len;
        Token::Char(c)
    }

    fn group(&mut self, kind: u8) -> Option<Token> {
        let start = self.at;
        self.at += 2;
        self.depth += 1;
        let mut alternatives = Vec::new();
        let closed = loop {
            alternatives.push(self.sequence(true));
            match self.text.get(self.at) {
                Some(b'|') => self.at += 1,
                Some(_) => {
                    self.at += 1;
                    break true;
                }
                None => break false,
            }
        };
        self.depth -= 1;
        if !closed || std::mem::take(&mut self.broken) {
            self.at = start;
            return None;
        }
        Some(Token::Group(kind, alternatives))
    }

    /// `[…]`, or none when it is not closed.
    fn set(&mut self) -> Option<Set> {
        let start = self.at;
        let parsed = self.set_inside();
        if parsed.is_none() {
            self.at = start;
        }
        parsed
    }

    fn set_inside(&mut self) -> Option<Set> {
        let mut set = Set::default();
        self.at += 1;
        if matches!(self.text.get(self.at), Some(b'!' | b'^')) {
            set.negated = true;
            self.at += 1;
        }
        let mut first = true;
        loop {
            let byte = *self.text.get(self.at)?;
            if byte == b']' && !first {
                self.at += 1;
                return Some(set);
            }
            first = false;
            if byte == b'[' && self.text.get(self.at + 1) == Some(&b':') {
                let rest = &self.text[self.at + 2..];
                // A class that does not exist has no characters.
                if let Some(end) = find(rest, b":]") {
                    set.classes.extend(Class::named(&rest[..end]));
                    self.at += end + 4;
                    continue;
                }
            }
            let low = self.set_char()?;
            let dash = self.text.get(self.at) == Some(&b'-');
            if dash && self.text.get(self.at + 1).is_some_and(|&byte| byte != b']') {
                self.at += 1;
                let high = self.set_char()?;
                set.ranges.push((low, high));
            } else {
                set.ranges.push((low, low));
            }
        }
    }

    fn set_char(&mut self) -> Option<u32> {
        if self.text.get(self.at) == Some(&b'\\') && self.at + 1 < self.text.len() {
            self.at += 1;
        }
        for (open, close) in [(b"[.", b".]"), (b"[=", b"=]")] {
            if self.text[self.at.min(self.text.len())..].starts_with(open) {
                let rest = &self.text[self.at + 2..];
                let end = find(rest, close).filter(|end| *end > 0)?;
                let (c, len) = char_at(rest, 0, self.style.utf8);
                self.at += end + 4;
                // What has no such name is no character.
                return Some(if len == end { c } else { collating(&rest[..end]).unwrap_or(u32::MAX) });
            }
        }
        if self.at >= self.text.len() {
            return None;
        }
        let (c, len) = char_at(self.text, self.at, self.style.utf8);
        self.at += len;
        Some(c)
    }
}

/// The character that POSIX has this name for.
fn collating(name: &[u8]) -> Option<u32> {
    const NAMES: [(&str, u8); 54] = [
        ("tab", 9),
        ("newline", 10),
        ("vertical-tab", 11),
        ("form-feed", 12),
        ("carriage-return", 13),
        ("space", b' '),
        ("exclamation-mark", b'!'),
        ("quotation-mark", b'"'),
        ("number-sign", b'#'),
        ("dollar-sign", b'$'),
        ("percent-sign", b'%'),
        ("ampersand", b'&'),
        ("apostrophe", b'\''),
        ("left-parenthesis", b'('),
        ("right-parenthesis", b')'),
        ("asterisk", b'*'),
        ("plus-sign", b'+'),
        ("comma", b','),
        ("hyphen", b'-'),
        ("hyphen-minus", b'-'),
        ("minus", b'-'),
        ("dash", b'-'),
        ("period", b'.'),
        ("full-stop", b'.'),
        ("slash", b'/'),
        ("solidus", b'/'),
        ("zero", b'0'),
        ("one", b'1'),
        ("two", b'2'),
        ("three", b'3'),
        ("four", b'4'),
        ("five", b'5'),
        ("six", b'6'),
        ("seven", b'7'),
        ("eight", b'8'),
        ("nine", b'9'),
        ("colon", b':'),
        ("semicolon", b';'),
        ("less-than-sign", b'<'),
        ("equals-sign", b'='),
        ("greater-than-sign", b'>'),
        ("question-mark", b'?'),
        ("commercial-at", b'@'),
        ("left-square-bracket", b'['),
        ("backslash", b'\\'),
        ("reverse-solidus", b'\\'),
        ("right-square-bracket", b']'),
        ("circumflex", b'^'),
        ("underscore", b'_'),
        ("grave-accent", b'`'),
        ("left-brace", b'{'),
        ("vertical-line", b'|'),
        ("right-brace", b'}'),
        ("tilde", b'~'),
    ];
    NAMES.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, byte)| u32::from(*byte))
}
