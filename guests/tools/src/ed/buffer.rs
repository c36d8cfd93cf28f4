//! The lines that are edited. Each has a number of its own that it keeps wherever it goes: marks and global commands
//! hold on to that. What was there before a command is a list of numbers.

use std::collections::HashMap;

#[derive(Default)]
pub struct Buffer {
    texts: Vec<Box<[u8]>>,
    /// The lines in order, by number.
    lines: Vec<u32>,
    /// The line that commands mean by default, from 1; 0 before the first.
    pub current: usize,
    marks: HashMap<u8, u32>,
}

/// The lines as they were.
pub struct Snapshot {
    lines: Vec<u32>,
    current: usize,
    modified: bool,
}

impl Buffer {
    /// How many lines there are, which is also the address of the last.
    pub fn last(&self) -> usize {
        self.lines.len()
    }

    /// The text of a line, from 1.
    pub fn text(&self, line: usize) -> &[u8] {
        line.checked_sub(1)
            .and_then(|at| self.lines.get(at))
            .map_or(&[], |&number| &self.texts[number as usize])
    }

    pub fn numbers(&self, first: usize, last: usize) -> Vec<u32> {
        self.lines[first - 1..last].to_vec()
    }

    /// A new line's number.
    pub fn add_text(&mut self, text: &[u8]) -> u32 {
        self.texts.push(text.into());
        (self.texts.len() - 1) as u32
    }

    /// Copies of lines, with numbers of their own.
    pub fn copies(&mut self, numbers: &[u32]) -> Vec<u32> {
        let copy = |number: &u32| {
            let text = self.texts[*number as usize].clone();
            self.texts.push(text);
            (self.texts.len() - 1) as u32
        };
        numbers.iter().map(copy).collect()
    }

    /// Puts lines behind a line.
    pub fn insert(&mut self, after: usize, numbers: &[u32]) {
        self.lines.splice(after..after, numbers.iter().copied());
    }

    pub fn insert_texts(&mut self, after: usize, texts: &[Vec<u8>]) {
        let numbers: Vec<u32> = texts.iter().map(|text| self.add_text(text)).collect();
        self.insert(after, &numbers);
    }

    /// Puts lines in the place of one.
    pub fn replace(&mut self, line: usize, texts: &[Vec<u8>]) {
        let numbers: Vec<u32> = texts.iter().map(|text| self.add_text(text)).collect();
        match numbers[..] {
            // The usual case moves nothing.
            [number] => self.lines[line - 1] = number,
            _ => drop(self.lines.splice(line - 1..line, numbers)),
        }
    }

    /// Takes lines out; answers their numbers.
    pub fn remove(&mut self, first: usize, last: usize) -> Vec<u32> {
        self.lines.drain(first - 1..last).collect()
    }

    pub fn set_mark(&mut self, name: u8, line: usize) {
        self.marks.insert(name, self.lines[line - 1]);
    }

    pub fn mark(&self, name: u8) -> Option<usize> {
        let number = self.marks.get(&name)?;
        self.lines.iter().position(|line| line == number).map(|at| at + 1)
    }

    /// Where a line is now; it is most likely near where the last one was.
    pub fn find(&self, number: u32, near: usize) -> Option<usize> {
        let start = near.min(self.lines.len());
        let ahead = self.lines[start..].iter().position(|line| *line == number).map(|at| start + at);
        ahead.or_else(|| self.lines[..start].iter().rposition(|line| *line == number)).map(|at| at + 1)
    }

    pub fn clear(&mut self) {
        *self = Buffer::default();
    }

    pub fn snapshot(&self, modified: bool) -> Snapshot {
        Snapshot { lines: self.lines.clone(), current: self.current, modified }
    }

    /// Brings a snapshot back; answers what was there until now.
    pub fn restore(&mut self, snapshot: Snapshot, modified: &mut bool) -> Snapshot {
        let now = self.snapshot(*modified);
        (self.lines, self.current, *modified) = (snapshot.lines, snapshot.current, snapshot.modified);
        now
    }
}
