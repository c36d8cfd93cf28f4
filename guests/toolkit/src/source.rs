//! Input for tools that pass over all of it: in large blocks, or line by line.

use super::out::Out;
use super::quote;
use memchr::{memchr, memrchr};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// How much is read at a time.
pub const BLOCK: usize = 128 * 1024;

/// An operand, open for reading; `-` is standard input, which stays open.
pub struct Source {
    fd: Fd,
}

impl Source {
    pub fn open(operand: &[u8]) -> Result<Source, Errno> {
        match operand {
            b"-" => Ok(Source { fd: 0 }),
            path => {
                abi::open(Dir::CWD, path, open_flags::RDONLY | open_flags::CLOEXEC, 0).map(|fd| Source { fd })
            }
        }
    }

    /// Reads what there is, up to the length of the buffer; 0 at the end.
    pub fn read(&self, buffer: &mut [u8]) -> Result<usize, Errno> {
        loop {
            match abi::read(self.fd, buffer) {
                Err(Errno::INTR) => {}
                answer => return answer,
            }
        }
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
        if self.fd != 0 {
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

/// A source read line by line.
pub struct Lines {
    source: Source,
    line_end: u8,
    buffer: Vec<u8>,
    /// Where what was not yet given out begins, and where what was read ends.
    start: usize,
    end: usize,
    is_end: bool,
}

/// A line without what ends it, and whether that was there.
#[derive(Clone, Copy)]
pub struct Line<'a> {
    pub text: &'a [u8],
    pub is_ended: bool,
}

impl Lines {
    pub fn new(source: Source, line_end: u8) -> Lines {
        Lines { source, line_end, buffer: Vec::new(), start: 0, end: 0, is_end: false }
    }

    /// The next line; `None` at the end.
    pub fn next_line(&mut self) -> Result<Option<Line<'_>>, Errno> {
        let mut seen = self.start;
        loop {
            if let Some(at) = memchr(self.line_end, &self.buffer[seen..self.end]) {
                let text = self.start..seen + at;
                self.start = text.end + 1;
                return Ok(Some(Line { text: &self.buffer[text], is_ended: true }));
            }
            if self.is_end {
                let text = self.start..self.end;
                self.start = self.end;
                return Ok((!text.is_empty()).then_some(Line { text: &self.buffer[text], is_ended: false }));
            }
            let unfinished = self.end - self.start;
            self.fill()?;
            seen = self.start + unfinished;
        }
    }

    /// Reads more behind what is left.
    fn fill(&mut self) -> Result<(), Errno> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        if self.end == self.buffer.len() {
            self.buffer.resize(BLOCK.max(2 * self.end), 0);
        }
        let count = self.source.read(&mut self.buffer[self.end..])?;
        self.is_end = count == 0;
        self.end += count;
        Ok(())
    }
}
