//! Bytes from and to descriptors: what is read can be looked at before it is taken.

use std::io::{self, Read, Write};
use wardian_abi as abi;
use wardian_abi::{Errno, Fd};

/// How much is read and written at once.
pub const CHUNK: usize = 128 * 1024;

/// A descriptor as `std` reads and writes it. It is closed by whoever opened it.
pub struct Raw(pub Fd);

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match abi::read(self.0, buffer) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }
}

impl Write for Raw {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match abi::write(self.0, bytes) {
                Err(Errno::INTR) => {}
                result => return Ok(result?),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A source with a buffer before it.
pub struct Input {
    source: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    taken: u64,
}

impl Input {
    pub fn new(source: impl Read + 'static) -> Input {
        Input { source: Box::new(source), buffer: vec![0; CHUNK], start: 0, end: 0, taken: 0 }
    }

    pub fn of(fd: Fd) -> Input {
        Input::new(Raw(fd))
    }

    /// What is there, after a read if nothing was; empty at the end.
    pub fn fill(&mut self) -> io::Result<&[u8]> {
        self.peek(1)?;
        Ok(&self.buffer[self.start..self.end])
    }

    /// The next bytes, at least so many unless the end comes first. Never more than a chunk.
    pub fn peek(&mut self, least: usize) -> io::Result<&[u8]> {
        if self.end - self.start < least {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            while self.end < least {
                match self.source.read(&mut self.buffer[self.end..])? {
                    0 => break,
                    count => self.end += count,
                }
            }
        }
        Ok(&self.buffer[self.start..self.end])
    }

    /// Takes bytes that were looked at.
    pub fn consume(&mut self, count: usize) {
        self.start += count;
        self.taken += count as u64;
    }

    /// The next byte.
    pub fn byte(&mut self) -> io::Result<Option<u8>> {
        let byte = self.fill()?.first().copied();
        self.consume(usize::from(byte.is_some()));
        Ok(byte)
    }

    /// How many bytes were taken in all.
    pub fn taken(&self) -> u64 {
        self.taken
    }
}

impl Read for Input {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        // Large reads need no stop in the buffer.
        let count = if self.start == self.end && out.len() >= CHUNK {
            let count = self.source.read(out)?;
            self.taken += count as u64;
            return Ok(count);
        } else {
            let ready = self.fill()?;
            let count = ready.len().min(out.len());
            out[..count].copy_from_slice(&ready[..count]);
            count
        };
        self.consume(count);
        Ok(count)
    }
}

/// A sink that counts what passes through it.
pub struct Counted<W> {
    pub inner: W,
    pub count: std::rc::Rc<std::cell::Cell<u64>>,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.count.set(self.count.get() + count as u64);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
