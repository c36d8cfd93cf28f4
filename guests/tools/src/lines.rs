//! Searching a file for lines: a buffer of whole lines at a time, and in it from match to match. grep and rg share it;
//! what becomes of a line is theirs to say.

use memchr::{memchr, memchr_iter, memrchr};
use wardian_abi as abi;
use wardian_abi::{Errno, Fd};
use wardian_regex::Regex;

/// How much is read at a time.
const CHUNK: usize = 96 * 1024;

/// Which lines are wanted.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    pub regex: &'a Regex,
    pub line_end: u8,
    pub invert: bool,
    /// How many lines around a selected one are shown too.
    pub before: Option<usize>,
    pub after: Option<usize>,
    /// All other lines are context.
    pub all: bool,
    pub max_count: u64,
    pub numbers: bool,
    /// Lines are only counted.
    pub only_count: bool,
    /// It matters only whether there is a line.
    pub only_first: bool,
}

/// Where a line is: its number, if that is wanted, and its place in the file.
#[derive(Clone, Copy)]
pub struct Position {
    pub number: u64,
    pub offset: u64,
}

/// Whether a line was selected or stands beside one that was.
#[derive(Clone, Copy, PartialEq)]
pub enum Role {
    Selected,
    Context,
}

/// What is to be done after a look at what was read.
pub enum Verdict {
    GoOn,
    /// From here on it matters only whether there is a line.
    OnlyFirst,
    /// As if the file had ended before this place in what was read.
    EndAt(usize),
    /// The file is not to be searched at all.
    Forget,
}

/// What becomes of lines.
pub trait Sink {
    /// Looks at what was read, and may change it. It begins at an offset; so many lines were selected before.
    fn look(&mut self, fresh: &mut [u8], offset: u64, selected: u64) -> Verdict;
    /// A line, without what ends it; says whether to go on printing.
    fn line(&mut self, line: &[u8], position: Position, role: Role) -> bool;
    /// The next line does not follow the one before.
    fn gap(&mut self);
}

/// The search of one file.
pub struct Search<'a, S: Sink> {
    wanted: Wanted<'a>,
    sink: &'a mut S,
    /// Whole lines before `start` for context, what is to be searched, and the beginning of a line.
    buffer: Vec<u8>,
    /// Where what was not yet searched begins.
    start: usize,
    /// Where in the file the buffer begins.
    offset: u64,
    /// How many lines end before `counted`, a place in the buffer.
    lines_before: u64,
    counted: usize,
    /// Where what was last printed ends, if that is still in the buffer.
    printed: Option<usize>,
    /// How many lines of context are still to be printed.
    pending: usize,
    selected: u64,
    /// Where in the file the last selected line ends.
    after_selected: u64,
    /// Nothing is printed: only whether there is a match matters, or how many there are.
    quiet: bool,
    stops_at_first: bool,
    is_end: bool,
    done: bool,
    /// What was read of the file before.
    already_read: Vec<u8>,
}

impl<'a, S: Sink> Search<'a, S> {
    pub fn new(wanted: Wanted<'a>, sink: &'a mut S) -> Search<'a, S> {
        Search {
            wanted,
            sink,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            lines_before: 0,
            counted: 0,
            printed: None,
            pending: 0,
            selected: 0,
            after_selected: 0,
            quiet: wanted.only_count || wanted.only_first,
            stops_at_first: wanted.only_first,
            is_end: false,
            done: false,
            already_read: Vec::new(),
        }
    }

    /// Begins with what was already read of the file.
    pub fn after(mut self, already_read: &[u8]) -> Search<'a, S> {
        self.already_read = already_read.to_vec();
        self
    }

    /// Searches a file; answers how many lines were selected, or 1 for some where more need not be known.
    pub fn run(mut self, fd: Fd) -> Result<u64, Errno> {
        loop {
            self.fill(fd)?;
            let limit = match memrchr(self.wanted.line_end, &self.buffer[self.start..]) {
                _ if self.is_end => self.buffer.len(),
                Some(at) => self.start + at + 1,
                None => self.start,
            };
            if limit > self.start {
                self.scan(limit);
                self.start = limit;
            }
            if self.is_end || self.done {
                self.leave_rest(fd);
                return Ok(self.selected);
            }
        }
    }

    /// After the last line that was wanted, a file that others read too stands right behind that line.
    fn leave_rest(&self, fd: Fd) {
        if fd == 0 && self.selected > 0 && self.selected >= self.wanted.max_count {
            let unread = self.offset + self.buffer.len() as u64 - self.after_selected;
            // A pipe cannot be set back.
            let _ = abi::seek(fd, -(unread as i64), abi::Whence::Current);
        }
    }

    /// Reads more behind what is left.
    fn fill(&mut self, fd: Fd) -> Result<(), Errno> {
        self.forget();
        let old = self.buffer.len();
        if !self.already_read.is_empty() {
            self.buffer.append(&mut self.already_read);
            self.look(old);
            return Ok(());
        }
        // A line longer than the buffer makes it grow by as much again.
        self.buffer.resize(old + CHUNK.max(old - self.start), 0);
        let count = loop {
            match abi::read(fd, &mut self.buffer[old..]) {
                Err(Errno::INTR) => {}
                Ok(count) => break count,
                Err(error) => {
                    self.buffer.truncate(old);
                    return Err(error);
                }
            }
        };
        self.buffer.truncate(old + count);
        self.is_end = count == 0;
        self.look(old);
        Ok(())
    }

    /// Drops what was searched, but for lines that may yet be context.
    fn forget(&mut self) {
        let mut keep = self.start;
        for _ in 0..self.wanted.before.unwrap_or(0) {
            if keep <= self.printed.unwrap_or(0) {
                break;
            }
            keep = self.line_start(keep - 1);
        }
        if self.wanted.numbers {
            self.count_to(keep);
        }
        self.buffer.drain(..keep);
        self.offset += keep as u64;
        self.start -= keep;
        self.counted = self.counted.saturating_sub(keep);
        self.printed = self.printed.and_then(|printed| printed.checked_sub(keep));
    }

    /// Lets the sink have a look at what was read.
    fn look(&mut self, from: usize) {
        let offset = self.offset + from as u64;
        match self.sink.look(&mut self.buffer[from..], offset, self.selected) {
            Verdict::GoOn => {}
            Verdict::OnlyFirst => {
                self.stops_at_first = true;
                self.quiet = true;
            }
            Verdict::EndAt(length) => {
                self.buffer.truncate(from + length);
                self.is_end = true;
            }
            Verdict::Forget => {
                self.buffer.truncate(self.start);
                self.selected = 0;
                self.is_end = true;
            }
        }
    }

    fn line_start(&self, place: usize) -> usize {
        memrchr(self.wanted.line_end, &self.buffer[..place]).map_or(0, |at| at + 1)
    }

    /// Where the line that has a place ends, with what ends it.
    fn line_end(&self, place: usize, limit: usize) -> usize {
        memchr(self.wanted.line_end, &self.buffer[place..limit]).map_or(limit, |at| place + at + 1)
    }

    /// Goes from match to match up to a place.
    fn scan(&mut self, limit: usize) {
        let mut at = self.start;
        while at < limit && !self.done {
            let found = self.wanted.regex.find_line(&self.buffer[..limit], at);
            // Behind the last line there is no other.
            let found =
                found.filter(|place| *place < limit || self.buffer[limit - 1] != self.wanted.line_end);
            let (from, to) = match found {
                Some(place) => (self.line_start(place).max(at), self.line_end(place, limit)),
                None => (limit, limit),
            };
            if self.wanted.invert {
                self.select_all(at, from);
                self.pass_over(from, to);
            } else {
                self.pass_over(at, from);
                if from < limit && !self.done {
                    self.select(from, to);
                }
            }
            at = to;
        }
    }

    /// Lines that are not selected: the first of them may be context of one that was.
    fn pass_over(&mut self, from: usize, to: usize) {
        let mut at = from;
        while at < to && (self.pending > 0 || self.wanted.all) && !self.done {
            let end = self.line_end(at, to);
            self.print(at, end, Role::Context);
            self.pending = self.pending.saturating_sub(1);
            at = end;
        }
        self.done |= self.pending == 0 && self.selected >= self.wanted.max_count;
    }

    fn select_all(&mut self, from: usize, to: usize) {
        if self.quiet && !self.stops_at_first && self.wanted.max_count == u64::MAX {
            let whole = memchr_iter(self.wanted.line_end, &self.buffer[from..to]).count() as u64;
            let has_rest = to > from && self.buffer[to - 1] != self.wanted.line_end;
            self.selected += whole + u64::from(has_rest);
            return;
        }
        let mut at = from;
        while at < to && !self.done {
            let end = self.line_end(at, to);
            self.select(at, end);
            at = end;
        }
    }

    /// A selected line, with what ends it.
    fn select(&mut self, from: usize, to: usize) {
        // What follows the last line wanted is context, whatever it is.
        if self.selected >= self.wanted.max_count {
            self.pass_over(from, to);
            return;
        }
        self.selected += 1;
        self.after_selected = self.offset + to as u64;
        if self.quiet {
            self.done = self.stops_at_first || self.selected >= self.wanted.max_count;
            return;
        }
        self.print_context_before(from);
        self.print(from, to, Role::Selected);
        self.pending = self.wanted.after.unwrap_or(0);
        self.done |= self.pending == 0 && self.selected >= self.wanted.max_count;
    }

    fn print_context_before(&mut self, line: usize) {
        let mut from = line;
        let least = self.printed.unwrap_or(0);
        for _ in 0..self.wanted.before.unwrap_or(0) {
            if from <= least {
                break;
            }
            from = self.line_start(from - 1).max(least);
        }
        if self.printed != Some(from) {
            self.sink.gap();
        }
        while from < line {
            let end = self.line_end(from, line);
            self.print(from, end, Role::Context);
            from = end;
        }
    }

    fn print(&mut self, from: usize, to: usize, role: Role) {
        if self.quiet {
            return;
        }
        let text_end = to - usize::from(self.buffer[to - 1] == self.wanted.line_end);
        let mut position = Position { number: 0, offset: self.offset + from as u64 };
        if self.wanted.numbers {
            self.count_to(from);
            position.number = self.lines_before + 1;
        }
        if !self.sink.line(&self.buffer[from..text_end], position, role) {
            self.quiet = true;
            self.done = true;
            return;
        }
        self.printed = Some(to);
    }

    /// Counts the lines that end before a place.
    fn count_to(&mut self, place: usize) {
        if place > self.counted {
            let line_end = self.wanted.line_end;
            self.lines_before += memchr_iter(line_end, &self.buffer[self.counted..place]).count() as u64;
            self.counted = place;
        }
    }
}
