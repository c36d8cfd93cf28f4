//! Searching one file: a buffer of whole lines at a time, and in it from match to match.

use super::options::{Binary, Listing, Options};
use super::print::{CONTEXT, Position, Printer, SELECTED};
use memchr::{memchr, memchr_iter, memrchr};
use wardian_abi as abi;
use wardian_abi::{Errno, Fd};

/// How much is read at a time.
const CHUNK: usize = 96 * 1024;

/// What a search found.
pub struct Found {
    /// How many lines were selected; 1 stands for some where more need not be known.
    pub lines: u64,
    /// There was something to print that is not text.
    pub is_binary: bool,
}

/// The search of one file.
pub struct Search<'a> {
    options: &'a Options,
    printer: Printer<'a>,
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
    /// Nothing is printed: only whether there is a match matters, or how many there are.
    quiet: bool,
    stops_at_first: bool,
    zero_bytes_seen_at: Option<u64>,
    has_wrong_characters: bool,
    done: bool,
}

impl<'a> Search<'a> {
    pub fn new(options: &'a Options, printer: Printer<'a>) -> Search<'a> {
        let lists = options.listing != Listing::Lines;
        Search {
            options,
            printer,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            lines_before: 0,
            counted: 0,
            printed: None,
            pending: 0,
            selected: 0,
            quiet: options.quiet || lists || options.count,
            stops_at_first: options.quiet || lists,
            zero_bytes_seen_at: None,
            has_wrong_characters: false,
            done: false,
        }
    }

    pub fn run(mut self, fd: Fd) -> Result<Found, Errno> {
        loop {
            let is_end = self.fill(fd)?;
            let limit = match memrchr(self.options.line_end, &self.buffer[self.start..]) {
                _ if is_end => self.buffer.len(),
                Some(at) => self.start + at + 1,
                None => self.start,
            };
            if limit > self.start {
                self.scan(limit);
                self.start = limit;
            }
            if is_end || self.done {
                break;
            }
        }
        let told_by_zero = self.zero_bytes_seen_at.is_some_and(|before| before < self.selected);
        let tells = self.options.binary == Binary::Tell && !self.options.quiet;
        let shows_lines = self.options.listing == Listing::Lines && !self.options.count;
        let is_binary = tells && shows_lines && (told_by_zero || self.has_wrong_characters);
        Ok(Found { lines: self.selected, is_binary })
    }

    /// Reads more behind what is left; says whether that was all.
    fn fill(&mut self, fd: Fd) -> Result<bool, Errno> {
        self.forget();
        let old = self.buffer.len();
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
        self.look_for_zeros(old);
        Ok(count == 0 || self.done)
    }

    /// Drops what was searched, but for lines that may yet be context.
    fn forget(&mut self) {
        let mut keep = self.start;
        for _ in 0..self.options.before.unwrap_or(0) {
            if keep <= self.printed.unwrap_or(0) {
                break;
            }
            keep = self.line_start(keep - 1);
        }
        if self.options.line_numbers {
            self.count_to(keep);
        }
        self.buffer.drain(..keep);
        self.offset += keep as u64;
        self.start -= keep;
        self.counted = self.counted.saturating_sub(keep);
        self.printed = self.printed.and_then(|printed| printed.checked_sub(keep));
    }

    /// A zero byte makes a file binary, and ends a line in it.
    fn look_for_zeros(&mut self, from: usize) {
        let line_end = self.options.line_end;
        if self.options.binary == Binary::Text || line_end == 0 {
            return;
        }
        if memchr(0, &self.buffer[from..]).is_none() {
            return;
        }
        if self.zero_bytes_seen_at.is_none() {
            self.zero_bytes_seen_at = Some(self.selected);
            if self.options.binary == Binary::Skip {
                self.selected = 0;
                self.done = true;
                self.buffer.truncate(self.start);
                return;
            }
            if !self.options.count {
                self.stops_at_first = true;
                self.quiet = true;
            }
        }
        self.buffer[from..].iter_mut().filter(|byte| **byte == 0).for_each(|byte| *byte = line_end);
    }

    fn line_start(&self, place: usize) -> usize {
        memrchr(self.options.line_end, &self.buffer[..place]).map_or(0, |at| at + 1)
    }

    /// Where the line that has a place ends, with what ends it.
    fn line_end(&self, place: usize, limit: usize) -> usize {
        memchr(self.options.line_end, &self.buffer[place..limit]).map_or(limit, |at| place + at + 1)
    }

    /// Goes from match to match up to a place.
    fn scan(&mut self, limit: usize) {
        let mut at = self.start;
        while at < limit && !self.done {
            let found = self.options.regex.find_line(&self.buffer[..limit], at);
            // Behind the last line there is no other.
            let found =
                found.filter(|place| *place < limit || self.buffer[limit - 1] != self.options.line_end);
            let (from, to) = match found {
                Some(place) => (self.line_start(place).max(at), self.line_end(place, limit)),
                None => (limit, limit),
            };
            if self.options.invert {
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
        while at < to && self.pending > 0 && !self.done {
            let end = self.line_end(at, to);
            self.print(at, end, CONTEXT);
            self.pending -= 1;
            at = end;
        }
        self.done |= self.pending == 0 && self.selected >= self.options.max_count;
    }

    fn select_all(&mut self, from: usize, to: usize) {
        if self.quiet && !self.stops_at_first && self.options.max_count == u64::MAX {
            let whole = memchr_iter(self.options.line_end, &self.buffer[from..to]).count() as u64;
            let has_rest = to > from && self.buffer[to - 1] != self.options.line_end;
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
        if self.selected >= self.options.max_count {
            self.pass_over(from, to);
            return;
        }
        self.selected += 1;
        if self.quiet {
            self.done = self.stops_at_first || self.selected >= self.options.max_count;
            return;
        }
        self.print_context_before(from);
        self.print(from, to, SELECTED);
        self.pending = self.options.after.unwrap_or(0);
        self.done |= self.pending == 0 && self.selected >= self.options.max_count;
    }

    fn print_context_before(&mut self, line: usize) {
        let mut from = line;
        let least = self.printed.unwrap_or(0);
        for _ in 0..self.options.before.unwrap_or(0) {
            if from <= least {
                break;
            }
            from = self.line_start(from - 1).max(least);
        }
        let has_groups = self.options.before.is_some() || self.options.after.is_some();
        if has_groups && *self.printer.has_printed && self.printed != Some(from) {
            self.printer.group_separator();
        }
        while from < line {
            let end = self.line_end(from, line);
            self.print(from, end, CONTEXT);
            from = end;
        }
    }

    fn print(&mut self, from: usize, to: usize, sign: u8) {
        if self.quiet {
            return;
        }
        let text_end = to - usize::from(self.buffer[to - 1] == self.options.line_end);
        // What is printed of matches alone is text.
        let checks = self.options.utf8 && self.options.binary != Binary::Text && !self.options.only_matching;
        if checks && !is_valid(&self.buffer[from..text_end]) {
            self.has_wrong_characters = true;
            self.quiet = true;
            self.stops_at_first = true;
            self.done = true;
            return;
        }
        let mut position = Position { number: 0, offset: self.offset + from as u64 };
        if self.options.line_numbers {
            self.count_to(from);
            position.number = self.lines_before + 1;
        }
        self.printer.line(&self.buffer[from..text_end], position, sign);
        self.printed = Some(to);
        *self.printer.has_printed = true;
    }

    /// Counts the lines that end before a place.
    fn count_to(&mut self, place: usize) {
        if place > self.counted {
            let line_end = self.options.line_end;
            self.lines_before += memchr_iter(line_end, &self.buffer[self.counted..place]).count() as u64;
            self.counted = place;
        }
    }
}

/// Whether a line is text. Most are ASCII, which is seen faster.
fn is_valid(line: &[u8]) -> bool {
    line.is_ascii() || std::str::from_utf8(line).is_ok()
}
