//! Records from a descriptor.

use crate::regex::Regex;
use std::rc::Rc;
use wardian_abi as abi;

/// What ends a record.
#[derive(Clone, Debug)]
pub enum Separator {
    /// A byte.
    Byte(u8),
    /// Empty lines, one or more; those before the first record do not count.
    Paragraph,
    /// A match of a pattern.
    Regex(Rc<Regex>),
    /// A newline outside of quotes.
    Csv,
}

/// About how much is read at once.
const CHUNK: usize = 64 << 10;

/// A descriptor that is read record by record.
pub struct Reader {
    fd: abi::Fd,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl Reader {
    /// Reads a descriptor. It is closed by [`Reader::close`], standard input never.
    pub fn new(fd: abi::Fd) -> Reader {
        Reader { fd, buffer: Vec::new(), start: 0, end: 0, at_end: false }
    }

    /// Closes the descriptor.
    pub fn close(self) {
        if self.fd != 0 {
            // It was only read: nothing can be lost.
            let _ = abi::close(self.fd);
        }
    }

    /// Reads on; answers whether more came. What is in the buffer moves to its start.
    fn fill(&mut self) -> abi::Result<bool> {
        if self.at_end {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            let grown = (self.buffer.len() * 2).max(CHUNK);
            self.buffer.resize(grown, 0);
        }
        let count = loop {
            match abi::read(self.fd, &mut self.buffer[self.end..]) {
                Err(abi::Errno::INTR) => {}
                answer => break answer?,
            }
        };
        self.end += count;
        self.at_end = count == 0;
        Ok(count > 0)
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Hands out the record of so many bytes, and what ended it behind that.
    #[inline]
    fn take(&mut self, length: usize, ending: usize, record: &mut Vec<u8>, terminator: &mut Vec<u8>) {
        let (end, next) = (self.start + length, self.start + length + ending);
        record.extend_from_slice(&self.buffer[self.start..end]);
        terminator.clear();
        terminator.extend_from_slice(&self.buffer[end..next]);
        self.start = next;
    }

    /// Appends the next record, and sets what ended it; answers whether there was one.
    #[inline]
    pub fn read(
        &mut self,
        separator: &Separator,
        record: &mut Vec<u8>,
        terminator: &mut Vec<u8>,
    ) -> abi::Result<bool> {
        match separator {
            Separator::Byte(byte) => self.read_to_byte(*byte, record, terminator),
            Separator::Paragraph => self.read_paragraph(record, terminator),
            Separator::Regex(regex) => self.read_to_match(regex, record, terminator),
            Separator::Csv => self.read_csv(record, terminator),
        }
    }

    fn read_to_byte(
        &mut self,
        byte: u8,
        record: &mut Vec<u8>,
        terminator: &mut Vec<u8>,
    ) -> abi::Result<bool> {
        let mut seen = 0;
        loop {
            if let Some(at) = memchr::memchr(byte, &self.rest()[seen..]) {
                self.take(seen + at, 1, record, terminator);
                return Ok(true);
            }
            seen = self.rest().len();
            if !self.fill()? {
                return Ok(self.take_last(record, terminator));
            }
        }
    }

    /// What is left, if anything is.
    fn take_last(&mut self, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> bool {
        let length = self.rest().len();
        self.take(length, 0, record, terminator);
        length > 0
    }

    fn read_paragraph(&mut self, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> abi::Result<bool> {
        loop {
            let newlines = self.rest().iter().take_while(|&&byte| byte == b'\n').count();
            self.start += newlines;
            if !self.rest().is_empty() {
                break;
            }
            if !self.fill()? {
                return Ok(false);
            }
        }
        let mut seen = 0;
        loop {
            let found = memchr::memmem::find(&self.rest()[seen..], b"\n\n").map(|at| seen + at);
            if let Some(at) = found {
                let newlines = self.rest()[at..].iter().take_while(|&&byte| byte == b'\n').count();
                // Where the newlines end is known only when something else follows, or nothing at all.
                if at + newlines < self.rest().len() || !self.fill()? {
                    self.take(at, newlines, record, terminator);
                    return Ok(true);
                }
                continue;
            }
            seen = self.rest().len().saturating_sub(1);
            if !self.fill()? {
                let newline = usize::from(self.rest().last() == Some(&b'\n'));
                self.take(self.rest().len() - newline, newline, record, terminator);
                return Ok(true);
            }
        }
    }

    fn read_to_match(
        &mut self,
        regex: &Regex,
        record: &mut Vec<u8>,
        terminator: &mut Vec<u8>,
    ) -> abi::Result<bool> {
        loop {
            let length = self.rest().len();
            let found = regex.find_at(self.rest(), 0).filter(|(start, end)| start < end);
            if let Some((start, end)) = found {
                // A match that touches the end may go on in what is not yet read.
                if end < length || !self.fill()? {
                    self.take(start, end - start, record, terminator);
                    return Ok(true);
                }
                continue;
            }
            // Reading twice as much before looking again keeps the looking linear.
            let mut more = false;
            while self.rest().len() < (length * 2).max(1) && self.fill()? {
                more = true;
            }
            if !more {
                return Ok(self.take_last(record, terminator));
            }
        }
    }

    fn read_csv(&mut self, record: &mut Vec<u8>, terminator: &mut Vec<u8>) -> abi::Result<bool> {
        let (mut seen, mut quoted) = (0, false);
        loop {
            for (at, &byte) in self.rest().iter().enumerate().skip(seen) {
                match byte {
                    b'"' => quoted = !quoted,
                    b'\n' if !quoted => {
                        let returns = usize::from(at > 0 && self.rest()[at - 1] == b'\r');
                        self.take(at - returns, 1 + returns, record, terminator);
                        return Ok(true);
                    }
                    _ => {}
                }
            }
            seen = self.rest().len();
            if !self.fill()? {
                return Ok(self.take_last(record, terminator));
            }
        }
    }
}
