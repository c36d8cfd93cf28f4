//! Lines, from one file after the other.

use memchr::memchr;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Whence, open_flags};

/// How much is read at a time.
const CHUNK: usize = 64 * 1024;

/// A file that is read line by line.
pub struct Reader {
    fd: Fd,
    buffer: Vec<u8>,
    /// What of the buffer is still to be given.
    at: usize,
    is_end: bool,
    /// How much is asked for at a time.
    chunk: usize,
}

impl Reader {
    pub fn new(fd: Fd) -> Reader {
        Reader { fd, buffer: Vec::new(), at: 0, is_end: false, chunk: CHUNK }
    }

    pub fn open(name: &[u8]) -> Result<Reader, Errno> {
        abi::open(Dir::CWD, name, open_flags::RDONLY, 0).map(Reader::new)
    }

    /// What is read is only what was asked for, as far as that can be.
    pub fn by_line(mut self) -> Reader {
        self.chunk = 1;
        self
    }

    fn fill(&mut self) -> Result<(), Errno> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let old = self.buffer.len();
        self.buffer.resize(old + self.chunk.max(if self.chunk > 1 { old } else { 0 }), 0);
        loop {
            match abi::read(self.fd, &mut self.buffer[old..]) {
                Err(Errno::INTR) => {}
                Ok(count) => {
                    self.buffer.truncate(old + count);
                    self.is_end = count == 0;
                    return Ok(());
                }
                Err(error) => {
                    self.buffer.truncate(old);
                    self.is_end = true;
                    return Err(error);
                }
            }
        }
    }

    /// Whether there is nothing more to give.
    pub fn is_done(&mut self) -> Result<bool, Errno> {
        if self.at == self.buffer.len() && !self.is_end {
            self.fill()?;
        }
        Ok(self.at == self.buffer.len())
    }

    /// Adds the next line to a text. Says whether what ends it was there; nothing if there is no line.
    pub fn line(&mut self, end: u8, text: &mut Vec<u8>) -> Result<Option<bool>, Errno> {
        let mut searched = 0;
        loop {
            if let Some(found) = memchr(end, &self.buffer[self.at + searched..]) {
                let stop = self.at + searched + found;
                text.extend_from_slice(&self.buffer[self.at..stop]);
                self.at = stop + 1;
                return Ok(Some(true));
            }
            if self.is_end {
                let rest = &self.buffer[self.at..];
                let is_line = !rest.is_empty();
                text.extend_from_slice(rest);
                self.at = self.buffer.len();
                return Ok(is_line.then_some(false));
            }
            searched = self.buffer.len() - self.at;
            self.fill()?;
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let unread = self.buffer.len() - self.at;
        if unread > 0 && self.fd <= 2 {
            // After `q`, what was read too far is left to whoever reads next; a pipe cannot be given it back.
            let _ = abi::seek(self.fd, -(unread as i64), Whence::Current);
        }
        if self.fd > 2 {
            // What was read has been read.
            let _ = abi::close(self.fd);
        }
    }
}
