//! The lines of a file, one after the other: of the file no more is held than what was read at once.

use super::source::Source;
use memchr::memchr;
use wardian_abi::{Errno, Fd};

/// A file, read line by line.
pub struct Records {
    source: Source,
    /// What ends a line.
    end: u8,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins.
    start: usize,
}

const CHUNK: usize = 64 * 1024;

impl Records {
    /// The lines that a descriptor has to give, which stays open.
    pub fn new(fd: Fd, end: u8) -> Records {
        Records::of(Source::borrowed(fd), end)
    }

    /// The lines of a source.
    pub fn of(source: Source, end: u8) -> Records {
        Records { source, end, buffer: Vec::new(), start: 0 }
    }

    /// The lines of an operand; `-` is standard input.
    pub fn open(operand: &[u8], end: u8) -> Result<Records, Errno> {
        Ok(Records::of(Source::open(operand)?, end))
    }

    /// Appends the next line, with what ends it if that is there; says whether there was one.
    pub fn next_into(&mut self, line: &mut Vec<u8>) -> Result<bool, Errno> {
        let before = line.len();
        loop {
            let rest = &self.buffer[self.start..];
            if let Some(at) = memchr(self.end, rest) {
                line.extend_from_slice(&rest[..=at]);
                self.start += at + 1;
                return Ok(true);
            }
            line.extend_from_slice(rest);
            self.fill()?;
            if self.buffer.is_empty() {
                return Ok(line.len() > before);
            }
        }
    }

    fn fill(&mut self) -> Result<(), Errno> {
        self.start = 0;
        self.buffer.resize(CHUNK, 0);
        let read = self.source.read(&mut self.buffer);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}
