//! The lines of a file, one after the other: of the file no more is held than what was read at once.

use memchr::memchr;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// A file, read line by line.
pub struct Records {
    fd: Fd,
    /// What ends a line.
    end: u8,
    buffer: Vec<u8>,
    /// Where in the buffer the next line begins.
    start: usize,
}

const CHUNK: usize = 64 * 1024;

impl Records {
    /// The lines that a descriptor has to give.
    pub fn new(fd: Fd, end: u8) -> Records {
        Records { fd, end, buffer: Vec::new(), start: 0 }
    }

    /// The lines of an operand; `-` is standard input.
    pub fn open(operand: &[u8], end: u8) -> Result<Records, Errno> {
        Ok(Records::new(open(operand)?, end))
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
        let read = read(self.fd, &mut self.buffer);
        self.buffer.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }
}

/// Opens an operand for reading; `-` is standard input.
pub fn open(operand: &[u8]) -> Result<Fd, Errno> {
    match operand {
        b"-" => Ok(0),
        path => abi::open(Dir::CWD, path, open_flags::RDONLY | open_flags::CLOEXEC, 0),
    }
}

/// Reads once, whatever signals come.
pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize, Errno> {
    loop {
        match abi::read(fd, buffer) {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}
