//! More lines than memory holds: sorted piece by piece into files, which are then merged.

use super::lines::{Lines, Rules};
use std::cmp::Ordering;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

/// What reading gets at a time.
const BLOCK: usize = 64 * 1024;
/// What putting a line in order takes besides its bytes.
const PER_LINE: usize = 48;
/// The least and the most memory that is used where nobody says how much.
const LEAST: usize = 1 << 20;
const MOST: usize = 64 << 20;

/// Where pieces go, and how large they are.
pub struct Room {
    /// The directory for temporary files.
    pub directory: Vec<u8>,
    /// Bytes that lines and their order may take.
    pub memory: usize,
    /// How many files are merged at once.
    pub batch: usize,
}

impl Default for Room {
    fn default() -> Room {
        let directory = std::env::var_os("TMPDIR").map(|path| path.into_encoded_bytes()).unwrap_or_default();
        let directory = if directory.is_empty() { b"/tmp".to_vec() } else { directory };
        Room { directory, memory: (available() / 4).clamp(LEAST, MOST), batch: 16 }
    }
}

/// The memory that is free, as far as the system says.
fn available() -> usize {
    let kilobytes = match toolkit::processes::memory("MemAvailable") {
        0 => u64::MAX,
        known => known,
    };
    usize::try_from(kilobytes.saturating_mul(1024)).unwrap_or(usize::MAX)
}

/// The lines read so far: in memory, and sorted in files.
pub struct Store<'a> {
    rules: &'a Rules<'a>,
    room: Room,
    text: Vec<u8>,
    count: usize,
    runs: Vec<Fd>,
}

impl<'a> Store<'a> {
    pub fn new(rules: &'a Rules<'a>, room: Room) -> Store<'a> {
        Store { rules, room, text: Vec::new(), count: 0, runs: Vec::new() }
    }

    /// Reads a file to its end. Its last line ends there, whatever follows in the next file.
    pub fn read(&mut self, fd: Fd) -> Result<(), Failure> {
        let mut grown = false;
        loop {
            let filled = self.text.len();
            self.text.resize(filled + BLOCK, 0);
            let read = loop {
                match abi::read(fd, &mut self.text[filled..]) {
                    Err(Errno::INTR) => {}
                    other => break other,
                }
            };
            self.text.truncate(filled + *read.as_ref().unwrap_or(&0));
            let read = read.map_err(Failure::Input)?;
            if read == 0 {
                break;
            }
            grown = true;
            self.count += memchr::memchr_iter(self.rules.end, &self.text[filled..]).count();
            if self.text.len() + self.count * PER_LINE >= self.room.memory {
                self.spill(false)?;
            }
        }
        let unended = self.text.last().is_some_and(|&last| last != self.rules.end);
        if grown && unended {
            self.text.push(self.rules.end);
            self.count += 1;
        }
        Ok(())
    }

    /// Sorts the whole lines in memory into a file; all of them at the end.
    fn spill(&mut self, all: bool) -> Result<(), Failure> {
        let cut = memchr::memrchr(self.rules.end, &self.text).map_or(0, |at| at + 1);
        let cut = if all { self.text.len() } else { cut };
        if cut == 0 {
            return Ok(());
        }
        let rest = self.text.split_off(cut);
        let mut lines = Lines::default();
        lines.add(std::mem::replace(&mut self.text, rest), self.rules.end);
        self.count = 0;
        let fd = temporary(&self.room.directory)?;
        self.runs.push(fd);
        let mut sink = Sink::new(fd, Some(self.rules.end));
        for line in lines.sorted(self.rules) {
            sink.put(line).map_err(|error| self.room.failure(error))?;
        }
        let rewound = sink.flush().and_then(|()| abi::seek(fd, 0, abi::Whence::Start));
        rewound.map(drop).map_err(|error| self.room.failure(error))
    }

    /// Gives all lines in order to `out`, which is made only now: it may be one of the files that were read.
    pub fn finish(mut self, out: impl FnOnce() -> Result<Sink, i32>) -> Result<Result<(), Failure>, i32> {
        if self.runs.is_empty() {
            let mut lines = Lines::default();
            lines.add(std::mem::take(&mut self.text), self.rules.end);
            let order = lines.sorted(self.rules);
            let mut out = out()?;
            let written = order.into_iter().try_for_each(|line| out.put(line));
            return Ok(written.and_then(|()| out.flush()).map_err(Failure::Output));
        }
        if let Err(failure) = self.spill(true).and_then(|()| self.merge_down()) {
            return Ok(Err(failure));
        }
        let mut out = out()?;
        let merged = merge(&self.runs, self.rules, &mut out);
        Ok(merged.and_then(|()| out.flush().map_err(Failure::Output)))
    }

    /// Merges neighbours until few enough files are left to merge at once.
    fn merge_down(&mut self) -> Result<(), Failure> {
        while self.runs.len() > self.room.batch {
            let mut merged = Vec::new();
            for some in self.runs.chunks(self.room.batch) {
                let fd = temporary(&self.room.directory)?;
                let mut sink = Sink::new(fd, Some(self.rules.end));
                merge(some, self.rules, &mut sink).map_err(|failure| match failure {
                    Failure::Output(error) => self.room.failure(error),
                    other => other,
                })?;
                let rewound = sink.flush().and_then(|()| abi::seek(fd, 0, abi::Whence::Start));
                rewound.map_err(|error| self.room.failure(error))?;
                for &fd in some {
                    let _ = abi::close(fd);
                }
                merged.push(fd);
            }
            self.runs = merged;
        }
        Ok(())
    }
}

/// What went wrong, and with which file.
#[derive(Debug)]
pub enum Failure {
    Input(Errno),
    Output(Errno),
    /// A temporary file, in this directory.
    Temporary(Vec<u8>, Errno),
}

impl Room {
    fn failure(&self, error: Errno) -> Failure {
        Failure::Temporary(self.directory.clone(), error)
    }
}

/// A file without a name: gone when it is closed, however the program ends.
fn temporary(directory: &[u8]) -> Result<Fd, Failure> {
    let flags = open_flags::RDWR | open_flags::CREAT | open_flags::EXCL | open_flags::CLOEXEC;
    let mut tries = 0u32;
    loop {
        let name = format!("/sort{}-{tries}", abi::getpid());
        let path = [directory, name.as_bytes()].concat();
        match abi::open(Dir::CWD, &path, flags, 0o600) {
            Ok(fd) => {
                let _ = abi::unlink(Dir::CWD, &path);
                return Ok(fd);
            }
            Err(Errno::EXIST) if tries < 10_000 => tries += 1,
            Err(error) => return Err(Failure::Temporary(directory.to_vec(), error)),
        }
    }
}

/// Merges files that are sorted each; of equal lines the first file's come first.
pub fn merge(files: &[Fd], rules: &Rules<'_>, out: &mut Sink) -> Result<(), Failure> {
    let mut runs = Vec::with_capacity(files.len());
    for &fd in files {
        let mut run = Run { fd, end: rules.end, buffer: Vec::new(), at: 0, length: 0, over: false };
        run.advance().map_err(Failure::Input)?;
        runs.push(run);
    }
    let mut previous: Option<Vec<u8>> = None;
    loop {
        let mut least: Option<usize> = None;
        for at in 0..runs.len() {
            let Some(line) = runs[at].line() else { continue };
            let other = least.and_then(|least| runs[least].line());
            if other.is_none_or(|other| rules.compare(line, other) == Ordering::Less) {
                least = Some(at);
            }
        }
        let Some(least) = least else { return Ok(()) };
        let line = runs[least].line().unwrap_or_default();
        let repeated =
            previous.as_ref().is_some_and(|previous| rules.compare(previous, line) == Ordering::Equal);
        if !repeated {
            out.put(line).map_err(Failure::Output)?;
            if rules.unique {
                previous = Some(line.to_vec());
            }
        }
        runs[least].advance().map_err(Failure::Input)?;
    }
}

/// A sorted file, of which the first line that was not given out is held.
struct Run {
    fd: Fd,
    end: u8,
    buffer: Vec<u8>,
    /// Where the line begins, and how long it is with its end.
    at: usize,
    length: usize,
    over: bool,
}

impl Run {
    fn line(&self) -> Option<&[u8]> {
        let line = &self.buffer[self.at..self.at + self.length];
        (self.length > 0).then(|| line.strip_suffix(&[self.end]).unwrap_or(line))
    }

    fn advance(&mut self) -> Result<(), Errno> {
        self.at += self.length;
        self.length = 0;
        let mut searched = self.at;
        loop {
            if let Some(found) = memchr::memchr(self.end, &self.buffer[searched..]) {
                self.length = searched + found + 1 - self.at;
                return Ok(());
            }
            if self.over {
                self.length = self.buffer.len() - self.at;
                return Ok(());
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            searched = self.buffer.len();
            self.buffer.resize(searched + BLOCK, 0);
            let read = match abi::read(self.fd, &mut self.buffer[searched..]) {
                Err(Errno::INTR) => None,
                other => Some(other?),
            };
            self.buffer.truncate(searched + read.unwrap_or(0));
            self.over = read == Some(0);
        }
    }
}

/// Lines on their way into a file.
pub struct Sink {
    fd: Fd,
    end: Option<u8>,
    buffer: Vec<u8>,
}

impl Sink {
    pub fn new(fd: Fd, end: Option<u8>) -> Sink {
        Sink { fd, end, buffer: Vec::with_capacity(BLOCK + 4096) }
    }

    pub fn put(&mut self, line: &[u8]) -> Result<(), Errno> {
        self.buffer.extend_from_slice(line);
        self.buffer.extend(self.end);
        if self.buffer.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    pub fn flush(&mut self) -> Result<(), Errno> {
        abi::write_all(self.fd, &self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}
