//! `--transform`: names changed by expressions of sed.

use wardian_regex::Groups;
use wardian_regex::small::{Manner, Regex, Style};

/// What kind of name is changed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Target {
    Name,
    Symlink,
    HardLink,
}

/// One `s/FROM/TO/FLAGS`.
struct Rule {
    from: Regex,
    to: Vec<Piece>,
    all: bool,
    /// The match from which on it counts.
    first: usize,
    names: bool,
    symlinks: bool,
    hard_links: bool,
}

/// A part of what a match is replaced by.
enum Piece {
    Text(String),
    Group(usize),
    Case(Case),
}

#[derive(Clone, Copy, PartialEq)]
enum Case {
    Upper,
    Lower,
    UpperOnce,
    LowerOnce,
    End,
}

/// The rules, in the order in which they are applied.
#[derive(Default)]
pub struct Transform(Vec<Rule>);

impl Transform {
    /// Adds the expressions of one option, apart by semicolons. `None` when one of them is none.
    pub fn add(&mut self, text: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(text).ok()?;
        let mut rest = text;
        let mut default = String::new();
        while !rest.is_empty() {
            if let Some(flags) = rest.strip_prefix("flags=") {
                let end = flags.find(';').unwrap_or(flags.len());
                default = flags[..end].to_owned();
                rest = flags[end..].trim_start_matches(';');
                continue;
            }
            rest = self.add_rule(rest, &default)?;
        }
        Some(())
    }

    fn add_rule<'a>(&mut self, text: &'a str, default: &str) -> Option<&'a str> {
        let mut letters = text.strip_prefix('s')?.chars();
        let delimiter = letters.next().filter(|char| *char != '\\' && *char != '\n')?;
        let (from, rest) = take_until(letters.as_str(), delimiter)?;
        let (to, rest) = take_until(rest, delimiter)?;
        let end = rest.find(';').unwrap_or(rest.len());
        let flags = &rest[..end];
        let has = |flag: char| flags.contains(flag);
        if !flags.chars().all(|flag| "gixrRsShH".contains(flag) || flag.is_ascii_digit()) {
            return None;
        }
        let style = if has('x') { Style::Extended } else { Style::Basic };
        let manner = Manner { style, fold: has('i'), utf8: true };
        let scope = |on: char, off: char| {
            let chosen = default.chars().chain(flags.chars()).rfind(|flag| *flag == on || *flag == off);
            chosen.is_none_or(|flag| flag == on)
        };
        let number: String = flags.chars().filter(char::is_ascii_digit).collect();
        self.0.push(Rule {
            from: Regex::new(from.as_bytes(), manner)?,
            to: pieces(&to),
            all: has('g'),
            first: if number.is_empty() { 1 } else { number.parse().ok()? },
            names: scope('r', 'R'),
            symlinks: scope('s', 'S'),
            hard_links: scope('h', 'H'),
        });
        Some(rest[end..].trim_start_matches(';'))
    }

    /// The name that a name becomes.
    pub fn apply(&self, name: &[u8], target: Target) -> Vec<u8> {
        // Bytes that are no text pass as characters of their own.
        let (text, is_text) = match std::str::from_utf8(name) {
            Ok(text) => (text.to_owned(), true),
            Err(_) => (name.iter().map(|&byte| char::from(byte)).collect(), false),
        };
        let mut text = text;
        for rule in &self.0 {
            let counts = match target {
                Target::Name => rule.names,
                Target::Symlink => rule.symlinks,
                Target::HardLink => rule.hard_links,
            };
            if counts {
                text = rule.apply(&text);
            }
        }
        // A name of nothing is none.
        if text.is_empty() {
            return name.to_vec();
        }
        if is_text {
            text.into_bytes()
        } else {
            text.chars().map(|char| u8::try_from(char).unwrap_or(b'?')).collect()
        }
    }
}

impl Rule {
    fn apply(&self, text: &str) -> String {
        let mut result = String::new();
        let (mut end, mut from, mut count) = (0, 0, 0);
        while let Some(groups) = self.from.find_at(text.as_bytes(), from) {
            let Some((start, stop)) = groups[0] else { break };
            // Nothing is not found again right behind a match.
            if (start, stop) != (end, end) || end == 0 {
                count += 1;
                if count >= self.first {
                    result += &text[end..start];
                    self.replace(text, &groups, &mut result);
                    end = stop;
                    if !self.all {
                        break;
                    }
                }
            }
            let step = text[stop..].chars().next().map_or(1, char::len_utf8);
            from = if stop > start { stop } else { stop + step };
            if from > text.len() {
                break;
            }
        }
        result + &text[end..]
    }

    fn replace(&self, whole: &str, groups: &Groups, result: &mut String) {
        let (mut case, mut once) = (Case::End, None);
        for piece in &self.to {
            let text = match piece {
                Piece::Case(new @ (Case::UpperOnce | Case::LowerOnce)) => {
                    once = Some(*new);
                    continue;
                }
                Piece::Case(new) => {
                    (case, once) = (*new, None);
                    continue;
                }
                Piece::Text(text) => text.as_str(),
                Piece::Group(number) => {
                    groups.get(*number).copied().flatten().map_or("", |(from, to)| &whole[from..to])
                }
            };
            for char in text.chars() {
                match once.take().unwrap_or(case) {
                    Case::Upper | Case::UpperOnce => result.extend(char.to_uppercase()),
                    Case::Lower | Case::LowerOnce => result.extend(char.to_lowercase()),
                    Case::End => result.push(char),
                }
            }
        }
    }
}

/// What stands before a delimiter that has no backslash before it, and what after.
fn take_until(text: &str, delimiter: char) -> Option<(String, &str)> {
    let mut taken = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '\\' => match chars.next()? {
                escaped if escaped == delimiter => taken.push(escaped),
                escaped => taken.extend(['\\', escaped]),
            },
            char if char == delimiter => return Some((taken, chars.as_str())),
            char => taken.push(char),
        }
    }
    None
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut chars = text.chars();
    let mut special = |plain: &mut String, piece: Piece| {
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(plain)));
        }
        pieces.push(piece);
    };
    while let Some(char) = chars.next() {
        match char {
            '&' => special(&mut plain, Piece::Group(0)),
            '\\' => match chars.next() {
                Some(digit @ '0'..='9') => special(&mut plain, Piece::Group(digit as usize - '0' as usize)),
                Some('U') => special(&mut plain, Piece::Case(Case::Upper)),
                Some('L') => special(&mut plain, Piece::Case(Case::Lower)),
                Some('u') => special(&mut plain, Piece::Case(Case::UpperOnce)),
                Some('l') => special(&mut plain, Piece::Case(Case::LowerOnce)),
                Some('E') => special(&mut plain, Piece::Case(Case::End)),
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            char => plain.push(char),
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(expression: &str, name: &str) -> String {
        let mut transform = Transform::default();
        transform.add(expression.as_bytes()).unwrap();
        String::from_utf8(transform.apply(name.as_bytes(), Target::Name)).unwrap()
    }

    #[test]
    fn expressions_are_those_of_sed() {
        assert_eq!(changed("s,^,top/,", "a/b"), "top/a/b");
        assert_eq!(changed("s/a/X/g", "banana"), "bXnXnX");
        assert_eq!(changed("s/a/X/2", "banana"), "banXna");
        assert_eq!(changed(r"s/\(.*\)\.txt$/\1.md/", "x.txt"), "x.md");
        assert_eq!(changed("s/(a|b)+/<&>/x", "xabay"), "x<aba>y");
        assert_eq!(changed(r"s/.*/\U&/", "abc"), "ABC");
        assert_eq!(changed(r"s/b/\u&c/;s/a/d/", "ab"), "dBc");
        assert_eq!(changed("s/a+/x/", "a+a"), "xa");
        assert_eq!(changed("s|[^/]*/||", "a/b/c"), "b/c");
        assert!(Transform::default().add(b"y/a/b/").is_none());
    }
}
