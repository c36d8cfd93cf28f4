//! The right side of `s`, and `y`.

use super::command::Pattern;
use std::collections::HashMap;
use wardian_regex::{Groups, char_len};

/// An `s` command.
pub struct Substitution {
    pub pattern: Pattern,
    pub pieces: Vec<Piece>,
    /// Which match is the first to be replaced.
    pub number: usize,
    pub all: bool,
    pub print: usize,
    /// The result is a command, whose output takes its place.
    pub executes: bool,
    /// It is printed before it is executed.
    pub prints_first: bool,
    /// The file that the result is written to.
    pub write: Option<usize>,
    /// Whether groups are wanted, and not only the match.
    pub wants_groups: bool,
    /// Letters beyond ASCII have cases too.
    pub utf8: bool,
}

/// A piece of a replacement.
pub enum Piece {
    Text(Vec<u8>),
    Group(usize),
    Case(Case),
}

/// `\U`, `\L`, `\E`, `\u` and `\l`.
#[derive(Clone, Copy, PartialEq)]
pub enum Case {
    Upper,
    Lower,
    End,
    NextUpper,
    NextLower,
}

impl Substitution {
    /// Adds to `out` what a match becomes.
    pub fn expand(&self, text: &[u8], groups: &Groups, out: &mut Vec<u8>) {
        let (mut all, mut next) = (Case::End, Case::End);
        for piece in &self.pieces {
            let added = match piece {
                Piece::Text(added) => &added[..],
                Piece::Group(group) => match groups.get(*group).copied().flatten() {
                    Some((from, to)) => &text[from..to],
                    None => b"",
                },
                Piece::Case(case @ (Case::NextUpper | Case::NextLower)) => {
                    next = *case;
                    continue;
                }
                Piece::Case(case) => {
                    (all, next) = (*case, Case::End);
                    continue;
                }
            };
            if all == Case::End && next == Case::End {
                out.extend_from_slice(added);
            } else if !added.is_empty() {
                let first = char_len(added);
                let first_case = if next == Case::End { all } else { next };
                self.convert(&added[..first], first_case, out);
                self.convert(&added[first..], all, out);
                next = Case::End;
            }
        }
    }

    /// Adds a text in another case.
    fn convert(&self, text: &[u8], case: Case, out: &mut Vec<u8>) {
        let upper = match case {
            Case::Upper | Case::NextUpper => true,
            Case::Lower | Case::NextLower => false,
            Case::End => {
                out.extend_from_slice(text);
                return;
            }
        };
        if !self.utf8 || text.is_ascii() {
            let change = if upper { u8::to_ascii_uppercase } else { u8::to_ascii_lowercase };
            out.extend(text.iter().map(change));
            return;
        }
        for chunk in text.utf8_chunks() {
            for char in chunk.valid().chars() {
                let mut changed = String::new();
                if upper {
                    changed.extend(char.to_uppercase())
                } else {
                    changed.extend(char.to_lowercase())
                }
                // One character stays one, as in C.
                let is_one = changed.chars().count() == 1;
                let char = if is_one { changed.chars().next().unwrap_or(char) } else { char };
                out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
            out.extend_from_slice(chunk.invalid());
        }
    }
}

/// A `y` command.
pub enum Translation {
    Bytes(Box<[u8; 256]>),
    Characters(HashMap<Vec<u8>, Vec<u8>>),
}

impl Translation {
    /// Characters for characters; nothing if there are more on one side.
    pub fn new(from: &[Vec<u8>], to: &[Vec<u8>]) -> Option<Translation> {
        if from.len() != to.len() {
            return None;
        }
        if from.iter().chain(to).all(|char| char.len() == 1) {
            let mut table: Box<[u8; 256]> = Box::new(std::array::from_fn(|byte| byte as u8));
            // The first of several that are the same counts.
            from.iter().zip(to).rev().for_each(|(from, to)| table[usize::from(from[0])] = to[0]);
            return Some(Translation::Bytes(table));
        }
        let mut map = HashMap::new();
        from.iter().zip(to).rev().for_each(|(from, to)| _ = map.insert(from.clone(), to.clone()));
        Some(Translation::Characters(map))
    }

    pub fn apply(&self, text: &mut Vec<u8>) {
        match self {
            Translation::Bytes(table) => text.iter_mut().for_each(|byte| *byte = table[usize::from(*byte)]),
            Translation::Characters(map) => {
                let mut changed = Vec::with_capacity(text.len());
                let mut at = 0;
                while at < text.len() {
                    let char = &text[at..at + char_len(&text[at..])];
                    changed.extend_from_slice(map.get(char).map_or(char, Vec::as_slice));
                    at += char.len();
                }
                *text = changed;
            }
        }
    }
}
