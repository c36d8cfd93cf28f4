//! Perl's patterns, as PCRE reads them, in the words of `regex_syntax` and `fancy_regex`.
//!
//! A pattern without look-around and references back runs on the same automata as all others; the rest is tried way
//! by way, up to a limit.

use fancy_regex::{BytesMode, RegexBuilder};

/// A pattern that only `fancy_regex` can run.
pub struct Fancy {
    regex: fancy_regex::Regex,
    gave_up: std::cell::Cell<bool>,
}

/// So many tries for one search, then it is given up.
const TRIES: usize = 10_000_000;

impl Fancy {
    pub fn new(pattern: &str, ignore_case: bool, multi_line: bool, dot_all: bool) -> Result<Fancy, String> {
        let regex = RegexBuilder::new(pattern)
            .case_insensitive(ignore_case)
            .multi_line(multi_line)
            .dot_matches_new_line(dot_all)
            .bytes_mode(BytesMode::UnicodeBytes)
            .backtrack_limit(TRIES)
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Fancy { regex, gave_up: std::cell::Cell::new(false) })
    }

    pub fn groups(&self) -> usize {
        self.regex.captures_len().saturating_sub(1)
    }

    /// The names of the groups, by number.
    pub fn names(&self) -> Vec<Option<String>> {
        self.regex.capture_names().map(|name| name.map(str::to_owned)).collect()
    }

    pub fn gave_up(&self) -> bool {
        self.gave_up.get()
    }

    pub fn find_at(&self, text: &[u8], start: usize, groups: &mut crate::Groups) -> bool {
        match self.regex.captures_from_pos(text, start) {
            Ok(Some(captures)) => {
                groups.clear();
                let bounds = |index| captures.get(index).map(|found| (found.start(), found.end()));
                groups.extend((0..captures.len()).map(bounds));
                true
            }
            Ok(None) => false,
            Err(_) => {
                self.gave_up.set(true);
                false
            }
        }
    }
}

/// Writes a Perl pattern in Rust's syntax. `\d`, `\w` and `\s` know ASCII alone, as PCRE's do.
pub fn translate(pattern: &str) -> String {
    let mut translator = Translator { rest: pattern.chars().collect(), at: 0, out: String::new() };
    translator.run();
    translator.out
}

struct Translator {
    rest: Vec<char>,
    at: usize,
    out: String,
}

impl Translator {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.rest.get(self.at + ahead).copied()
    }

    fn run(&mut self) {
        while let Some(char) = self.peek(0) {
            match char {
                '\\' => self.escape(false),
                '[' => self.class(),
                '{' if !self.is_interval() => {
                    self.out.push_str("\\{");
                    self.at += 1;
                }
                _ => {
                    self.out.push(char);
                    self.at += 1;
                }
            }
        }
    }

    /// Whether the brace here begins `{2}`, `{2,}` or `{2,3}`.
    fn is_interval(&self) -> bool {
        let inside: String = self.rest[self.at + 1..].iter().take_while(|char| **char != '}').collect();
        let is_closed = self.peek(inside.chars().count() + 1) == Some('}');
        let mut numbers = inside.splitn(2, ',');
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let first = numbers.next().is_some_and(is_number);
        is_closed && first && numbers.next().is_none_or(|text| text.is_empty() || is_number(text))
    }

    fn escape(&mut self, in_class: bool) {
        let Some(char) = self.peek(1) else {
            self.out.push('\\');
            self.at += 1;
            return;
        };
        self.at += 2;
        let plain = match (char, in_class) {
            ('d', false) => "[0-9]",
            ('D', false) => "[^0-9]",
            ('w', false) => "[0-9A-Za-z_]",
            ('W', false) => "[^0-9A-Za-z_]",
            ('s', false) => "[\\t-\\r ]",
            ('S', false) => "[^\\t-\\r ]",
            ('d', true) => "0-9",
            ('w', true) => "0-9A-Za-z_",
            ('s', true) => "\\t-\\r ",
            ('D', true) => "[^0-9]",
            ('W', true) => "[^0-9A-Za-z_]",
            ('S', true) => "[^\\t-\\r ]",
            ('h', false) => "[ \\t\\u{a0}]",
            ('h', true) => " \\t\\u{a0}",
            ('H', _) => "[^ \\t\\u{a0}]",
            ('v', false) => "[\\n-\\r\\u{85}\\u{2028}\\u{2029}]",
            ('R', false) => "(?:\\r\\n|[\\n-\\r\\u{85}\\u{2028}\\u{2029}])",
            ('N', false) => "[^\\n]",
            ('b', true) => "\\x08",
            ('e', _) => "\\x1B",
            ('Z', false) => "\\z",
            ('0', _) => "\\x00",
            ('p' | 'P', _) => return self.property(char),
            ('Q', _) => return self.quoted(),
            ('E', _) => "",
            _ => return self.other_escape(char),
        };
        self.out.push_str(plain);
    }

    /// An escape that both know, or a sign that stands for itself.
    fn other_escape(&mut self, char: char) {
        if char.is_ascii_alphanumeric() || is_special(char) {
            self.out.push('\\');
        }
        self.out.push(char);
    }

    /// `\p{Lu}`, `\p{^Lu}`, `\pL`: the class of a character, which both name alike.
    fn property(&mut self, letter: char) {
        let is_negated = (letter == 'P') != (self.peek(0) == Some('{') && self.peek(1) == Some('^'));
        self.out.push_str(if is_negated { "\\P" } else { "\\p" });
        if self.peek(0) != Some('{') {
            return;
        }
        while let Some(char) = self.peek(0) {
            self.at += 1;
            if char != '^' {
                self.out.push(char);
            }
            if char == '}' {
                return;
            }
        }
    }

    /// `\Q…\E`.
    fn quoted(&mut self) {
        while let Some(char) = self.peek(0) {
            if char == '\\' && self.peek(1) == Some('E') {
                self.at += 2;
                return;
            }
            if is_special(char) {
                self.out.push('\\');
            }
            self.out.push(char);
            self.at += 1;
        }
    }

    /// A bracket expression: signs that mean something only to Rust are escaped.
    fn class(&mut self) {
        self.out.push('[');
        self.at += 1;
        if self.peek(0) == Some('^') {
            self.out.push('^');
            self.at += 1;
        }
        let first = self.at;
        while let Some(char) = self.peek(0) {
            match char {
                ']' if self.at > first => {
                    self.out.push(']');
                    self.at += 1;
                    return;
                }
                '\\' => self.escape(true),
                '[' if self.peek(1) == Some(':') => self.named_class(),
                '[' | ']' | '&' | '~' => {
                    self.out.push('\\');
                    self.out.push(char);
                    self.at += 1;
                }
                '-' if self.peek(1) == Some('-') => {
                    self.out.push_str("\\-");
                    self.at += 1;
                }
                _ => {
                    self.out.push(char);
                    self.at += 1;
                }
            }
        }
    }

    fn named_class(&mut self) {
        let rest: String = self.rest[self.at..].iter().collect();
        let length = rest.find(":]").map_or(1, |end| rest[..end + 2].chars().count());
        if length == 1 {
            self.out.push('\\');
        }
        self.out.extend(&self.rest[self.at..self.at + length]);
        self.at += length;
    }
}

fn is_special(char: char) -> bool {
    "\\.+*?()|[]{}^$#&-~/".contains(char)
}
