//! Input for tools that pass over all of it: in large blocks, or byte by byte. For lines one by one see
//! `records`.

use super::out::Out;
use super::quote;
use memchr::memrchr;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// How much is read at a time.
pub const BLOCK: usize = 128 * 1024;

/// An operand, open for reading; `-` is standard input, which stays open.
pub struct Source {
    fd: Fd,
    owned: bool,
}

impl Source {
    pub fn open(operand: &[u8]) -> Result<Source, Errno> {
        open(operand).map(|fd| Source { fd, owned: fd != 0 })
    }

    /// What a descriptor has to give, which stays open.
    pub fn borrowed(fd: Fd) -> Source {
        Source { fd, owned: false }
    }

    pub fn fd(&self) -> Fd {
        self.fd
    }

    /// Reads what there is, up to the length of the buffer; 0 at the end.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        read(self.fd, buffer)
    }

    /// Reads until the buffer is full or the end is reached.
    pub fn read_full(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        let mut filled = 0;
        while filled < buffer.len() {
            match self.read(&mut buffer[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }

    /// Passes on all there is, in blocks as they come.
    pub fn for_blocks(&self, mut work: impl FnMut(&mut [u8])) -> Result<(), Errno> {
        let mut buffer = vec![0; BLOCK];
        loop {
            match self.read(&mut buffer)? {
                0 => return Ok(()),
                count => work(&mut buffer[..count]),
            }
        }
    }

    /// Passes on all there is, in blocks of whole lines. Only the last line may lack its end.
    pub fn for_lines(&self, line_end: u8, mut work: impl FnMut(&[u8])) -> Result<(), Errno> {
        let mut buffer = vec![0; BLOCK];
        let mut kept = 0;
        loop {
            let count = self.read(&mut buffer[kept..])?;
            let filled = kept + count;
            if count == 0 {
                if filled > 0 {
                    work(&buffer[..filled]);
                }
                return Ok(());
            }
            let whole = memrchr(line_end, &buffer[kept..filled]).map_or(0, |at| kept + at + 1);
            if whole > 0 {
                work(&buffer[..whole]);
                buffer.copy_within(whole..filled, 0);
            }
            kept = filled - whole;
            if kept == buffer.len() {
                // A line longer than the buffer makes it grow by as much again.
                buffer.resize(2 * kept, 0);
            }
        }
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if self.owned {
            // It was only read.
            let _ = abi::close(self.fd);
        }
    }
}

/// Works on each operand in turn and says which could not be read. Answers the exit code.
pub fn for_operands(
    out: &mut Out,
    operands: &[Vec<u8>],
    mut work: impl FnMut(&mut Out, &Source) -> Result<(), Errno>,
) -> i32 {
    let mut code = 0;
    for operand in operands {
        if let Err(error) = Source::open(operand).and_then(|source| work(out, &source)) {
            out.complain(format_args!("{}: {error}", quote::if_needed(operand)));
            code = 1;
        }
    }
    code
}

/// A source read byte by byte; one that cannot be read further is at its end.
pub struct Bytes {
    source: Source,
    buffer: Vec<u8>,
    at: usize,
    pub error: Option<Errno>,
}

impl Bytes {
    pub fn new(source: Source) -> Bytes {
        Bytes { source, buffer: Vec::new(), at: 0, error: None }
    }

    pub fn next_byte(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// The next byte, which stays the next.
    pub fn peek(&mut self) -> Option<u8> {
        if self.at == self.buffer.len() {
            self.buffer.resize(BLOCK, 0);
            let count = self.source.read(&mut self.buffer).unwrap_or_else(|error| {
                self.error = Some(error);
                0
            });
            self.buffer.truncate(count);
            self.at = 0;
        }
        self.buffer.get(self.at).copied()
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
