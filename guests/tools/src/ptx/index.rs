//! Where the words are that the index is of.

use super::Text;
use super::layout::{is_blank, trim_end};
use super::options::Settings;
use super::words::Words;
use std::collections::HashSet;

/// A word, and where it stands.
pub struct Occurrence {
    pub file: usize,
    /// The word.
    pub start: usize,
    pub end: usize,
    /// The sentence.
    pub from: usize,
    pub to: usize,
    /// Where the reference in the text begins, or the number of lines before.
    pub reference: usize,
}

pub struct Index<'a> {
    settings: &'a Settings,
    words: &'a Words,
    ignored: Option<HashSet<Vec<u8>>>,
    only: Option<HashSet<Vec<u8>>>,
    pub texts: Vec<Text>,
    /// How many lines were passed in each text.
    pub lines: Vec<usize>,
    pub occurrences: Vec<Occurrence>,
    pub longest_word: usize,
    pub longest_reference: usize,
}

/// How far the lines of a text have been looked at, for the references.
struct Scan {
    at: usize,
    line_start: usize,
    /// How long the reference of the line is.
    length: usize,
    lines: usize,
}

impl<'a> Index<'a> {
    pub fn new(
        settings: &'a Settings,
        words: &'a Words,
        ignored: Option<HashSet<Vec<u8>>>,
        only: Option<HashSet<Vec<u8>>>,
    ) -> Index<'a> {
        Index {
            settings,
            words,
            ignored,
            only,
            texts: Vec::new(),
            lines: Vec::new(),
            occurrences: Vec::new(),
            longest_word: 0,
            longest_reference: 0,
        }
    }

    /// Adds the words of a text.
    pub fn add(&mut self, text: Text) -> Result<(), i32> {
        let bytes = &text.bytes;
        let mut scan = Scan { at: 0, line_start: 0, length: 0, lines: 0 };
        if self.settings.has_references {
            scan.length = reference_length(bytes);
            scan.at = scan.length + bytes[scan.length..].iter().take_while(|byte| is_blank(**byte)).count();
        }
        let mut start = 0;
        while start < bytes.len() {
            let next = self.words.end_of_sentence(bytes, start)?;
            self.add_sentence(bytes, start, trim_end(bytes, next, start), &mut scan)?;
            start = next;
        }
        self.lines.push(scan.lines);
        self.texts.push(text);
        Ok(())
    }

    fn add_sentence(&mut self, text: &[u8], mut from: usize, to: usize, scan: &mut Scan) -> Result<(), i32> {
        let mut at = from;
        while at < to
            && let Some((start, end)) = self.words.next(&text[at..to])?
        {
            let (start, end) = (at + start, at + end);
            if start == end {
                at = start + 1;
                continue;
            }
            at = end;
            self.longest_word = self.longest_word.max(end - start);
            if self.settings.has_references {
                scan.advance(text, start);
                // A reference is no word of the text.
                if scan.at > start {
                    continue;
                }
            }
            let word = &text[start..end];
            if !self.wants(word) {
                continue;
            }
            let reference = self.reference(text, start, scan);
            if self.settings.has_references && scan.line_start == from {
                // The reference at its beginning is no part of the sentence.
                from += reference_length(&text[from..to]);
                from += text[from..to].iter().take_while(|byte| is_blank(**byte)).count();
            }
            let file = self.texts.len();
            self.occurrences.push(Occurrence { file, start, end, from, to, reference });
        }
        Ok(())
    }

    fn wants(&self, word: &[u8]) -> bool {
        if self.ignored.is_none() && self.only.is_none() {
            return true;
        }
        let word = self.settings.folded(word);
        !self.ignored.as_ref().is_some_and(|ignored| ignored.contains(&word))
            && self.only.as_ref().is_none_or(|only| only.contains(&word))
    }

    fn reference(&mut self, text: &[u8], start: usize, scan: &mut Scan) -> usize {
        if self.settings.refers_to_lines {
            scan.advance(text, start);
            return scan.lines;
        }
        if self.settings.has_references {
            self.longest_reference = self.longest_reference.max(scan.length);
        }
        scan.line_start
    }

    /// Puts the words in order, those that are the same as they stand.
    pub fn sort(&mut self) {
        let (texts, fold) = (&self.texts, self.settings.ignore_case);
        self.occurrences.sort_by(|left, right| {
            let word = |of: &Occurrence| texts[of.file].bytes[of.start..of.end].iter().copied();
            let order = if fold {
                word(left)
                    .map(|byte| byte.to_ascii_uppercase())
                    .cmp(word(right).map(|byte| byte.to_ascii_uppercase()))
            } else {
                word(left).cmp(word(right))
            };
            order.then_with(|| (left.file, left.start).cmp(&(right.file, right.start)))
        });
    }
}

impl Scan {
    /// Goes on to a place, line by line.
    fn advance(&mut self, text: &[u8], to: usize) {
        while self.at < to {
            let is_end = text[self.at] == b'\n';
            self.at += 1;
            if is_end {
                self.lines += 1;
                self.line_start = self.at;
                self.length = reference_length(&text[self.at..]);
                self.at += self.length;
            }
        }
    }
}

/// How long the field is that a text begins with.
pub fn reference_length(text: &[u8]) -> usize {
    text.iter().take_while(|byte| !is_blank(**byte)).count()
}
