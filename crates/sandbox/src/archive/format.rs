//! How shells, interpreters and histories are written, in archives and in stores.

use std::io::{Read, Write};
use std::sync::Arc;

use wardian_kernel::{Packed, PackedFd, PackedFile, PackedPlace, Page};
use wardian_vfs::{Caller, Errno, TarError, Tree};

use super::{ArchiveError, damaged, unusable};
use crate::budget::Budget;
use crate::history::{History, HistoryEntry};
use crate::options::Limits;
use crate::python::{MOST_INTERPRETERS, check_name};

/// By how much a shell's memory may exceed the sandbox's limit: what its program starts with.
const PROGRAM_START: u64 = 64 << 20;

/// A shell as stored in an archive.
pub(crate) struct Shell {
    pub(crate) programs: String,
    pub(crate) packed: Packed,
}

/// Writes shells and histories.
pub(crate) struct Encoder<W: Write>(pub(crate) W);

impl<W: Write> Encoder<W> {
    pub(super) fn number(&mut self, number: u64) -> std::io::Result<()> {
        self.0.write_all(&number.to_le_bytes())
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.number(bytes.len() as u64)?;
        self.0.write_all(bytes)
    }

    pub(crate) fn shell(&mut self, packed: &Packed, programs: &str) -> std::io::Result<()> {
        self.bytes(programs.as_bytes())?;
        self.number(packed.env.len() as u64)?;
        packed.env.iter().try_for_each(|pair| self.bytes(pair))?;
        self.bytes(&packed.cwd)?;
        self.number(u64::from(packed.umask))?;
        self.bytes(&packed.signals)?;
        self.number(packed.fds.len() as u64)?;
        packed.fds.iter().try_for_each(|fd| self.descriptor(fd))?;
        self.number(packed.memory_size)?;
        self.number(u64::from(packed.stack_pointer))?;
        self.number(packed.pages.len() as u64)?;
        for (number, contents) in &packed.pages {
            self.0.write_all(&number.to_le_bytes())?;
            self.0.write_all(&contents[..])?;
        }
        Ok(())
    }

    fn descriptor(&mut self, fd: &PackedFd) -> std::io::Result<()> {
        self.number(u64::from(fd.number))?;
        self.number(u64::from(fd.cloexec))?;
        match &fd.what {
            PackedFile::Stream(which) => {
                self.number(0)?;
                self.number(u64::from(*which))
            }
            PackedFile::Pipe { reads, writes } => {
                self.number(1)?;
                self.number(u64::from(*reads) | u64::from(*writes) << 1)
            }
            PackedFile::Socket(shape) => {
                self.number(4)?;
                self.number(u64::from(*shape))
            }
            PackedFile::File { description, flags, offset, place } => {
                let (kind, bytes) = match place {
                    PackedPlace::Path(path) => (2, path),
                    PackedPlace::Orphan(content) => (3, content),
                };
                self.number(kind)?;
                self.number(u64::from(*description))?;
                self.number(u64::from(*flags))?;
                self.number(*offset)?;
                self.bytes(bytes)
            }
        }
    }

    pub(crate) fn history(&mut self, history: &History) -> std::io::Result<()> {
        let (last, entries) = history.parts();
        self.number(last)?;
        self.number(entries.len() as u64)?;
        for entry in entries {
            self.number(entry.index)?;
            self.number(entry.timestamp)?;
            self.bytes(&entry.command)?;
        }
        Ok(())
    }
}

/// Reads what an [`Encoder`] wrote, or what somebody made up.
pub(crate) struct Decoder<R: Read> {
    input: R,
    budget: Budget,
}

impl<'a> Decoder<&'a [u8]> {
    /// Reads what a store has kept, within the same limits as an archive.
    pub(crate) fn of_bytes(bytes: &'a [u8], limits: &Limits) -> Decoder<&'a [u8]> {
        Decoder::new(bytes, limits)
    }
}

impl<R: Read> Decoder<R> {
    /// Reads no more than these limits allow.
    pub(super) fn new(input: R, limits: &Limits) -> Decoder<R> {
        Decoder { input, budget: Budget::new(limits) }
    }

    fn number(&mut self) -> Result<u64, ArchiveError> {
        let mut bytes = [0; 8];
        self.input.read_exact(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn small(&mut self) -> Result<u32, ArchiveError> {
        u32::try_from(self.number()?).or_else(|_| damaged("a number is too large"))
    }

    /// Reads some bytes of the shell, which count against its memory.
    fn bytes(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let length = self.number()?;
        self.budget.take_shell(length)?;
        self.exactly(length)
    }

    /// Reads the name of a version: a hash, so anything longer is not one.
    fn name(&mut self) -> Result<String, ArchiveError> {
        const LONGEST: u64 = 256;
        let length = self.number()?;
        if length > LONGEST {
            return damaged("the name of its programs is too long");
        }
        String::from_utf8(self.exactly(length)?).or_else(|_| damaged("the name of its programs is not text"))
    }

    /// Grows as the bytes arrive: a length is only a claim, even if the budget covers it.
    fn exactly(&mut self, length: u64) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        if self.input.by_ref().take(length).read_to_end(&mut bytes)? as u64 != length {
            return damaged("it ends too early");
        }
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    pub(crate) fn shell(&mut self, limits: &Limits) -> Result<Shell, ArchiveError> {
        let programs = self.name()?;
        let mut env = Vec::new();
        for _ in 0..self.number()? {
            env.push(self.bytes()?);
        }
        let cwd = self.bytes()?;
        let umask = self.small()?;
        let signals = self.bytes()?;
        let mut fds = Vec::new();
        let count = self.number()?;
        if count > limits.open_files as u64 {
            return Err(ArchiveError::TooLarge(format!("its shell has {count} files open")));
        }
        for _ in 0..count {
            self.budget.take_shell(size_of::<PackedFd>() as u64)?;
            fds.push(self.descriptor()?);
        }
        let memory_size = self.number()?;
        if memory_size > limits.memory_bytes.saturating_add(PROGRAM_START) {
            return Err(ArchiveError::TooLarge(format!("its shell has {memory_size} bytes of memory")));
        }
        let stack_pointer = self.small()?;
        let pages = self.pages(memory_size)?;
        let packed = Packed { env, cwd, umask, signals, fds, memory_size, stack_pointer, pages };
        Ok(Shell { programs, packed })
    }

    pub(super) fn interpreters(&mut self, limits: &Limits) -> Result<Vec<(String, Shell)>, ArchiveError> {
        let count = self.number()?;
        if count > MOST_INTERPRETERS as u64 {
            return Err(ArchiveError::TooLarge(format!("it has {count} interpreters")));
        }
        let mut all = Vec::new();
        for _ in 0..count {
            let name = String::from_utf8(self.bytes()?).or_else(|_| damaged("an interpreter has no name"))?;
            if check_name(&name).is_err() {
                return damaged("an interpreter has no name");
            }
            all.push((name, self.shell(limits)?));
        }
        Ok(all)
    }

    fn pages(&mut self, memory_size: u64) -> Result<Vec<(u32, Arc<Page>)>, ArchiveError> {
        let count = self.number()?;
        if count > memory_size / size_of::<Page>() as u64 {
            return damaged("its shell has more pages than memory");
        }
        let mut pages = Vec::new();
        for _ in 0..count {
            let (mut number, mut contents) = ([0; 4], [0; size_of::<Page>()]);
            self.budget.take_shell(size_of::<Page>() as u64)?;
            self.input.read_exact(&mut number)?;
            self.input.read_exact(&mut contents)?;
            pages.push((u32::from_le_bytes(number), Arc::new(contents)));
        }
        Ok(pages)
    }

    fn descriptor(&mut self) -> Result<PackedFd, ArchiveError> {
        let (number, cloexec) = (self.small()?, self.number()? != 0);
        let what = match self.number()? {
            0 => PackedFile::Stream(self.small()?.min(255) as u8),
            1 => {
                let ends = self.number()?;
                PackedFile::Pipe { reads: ends & 1 != 0, writes: ends & 2 != 0 }
            }
            kind @ (2 | 3) => {
                let (description, flags, offset) = (self.small()?, self.small()?, self.number()?);
                let place = if kind == 2 {
                    PackedPlace::Path(self.bytes()?)
                } else {
                    let length = self.number()?;
                    self.budget.take_open(length)?;
                    PackedPlace::Orphan(self.exactly(length)?)
                };
                PackedFile::File { description, flags, offset, place }
            }
            4 => PackedFile::Socket(self.small()?.min(255) as u8),
            _ => return damaged("it has a descriptor of an unknown kind"),
        };
        Ok(PackedFd { number, cloexec, what })
    }

    pub(crate) fn history(&mut self) -> Result<History, ArchiveError> {
        let last = self.number()?;
        if last > History::LAST_MAX {
            return damaged("its history has more commands than anybody could have entered");
        }
        let mut entries = Vec::new();
        for _ in 0..self.number()? {
            let (index, timestamp) = (self.number()?, self.number()?);
            entries.push(HistoryEntry { index, timestamp, command: self.bytes()? });
        }
        Ok(History::from_parts(last, entries))
    }

    /// Imports the files as the sandbox's own user: an archive cannot create anything where a guest could not.
    pub(super) fn files(&mut self, tree: &mut Tree) -> Result<(), ArchiveError> {
        match tree.import_tar(&Caller::USER, b"/", &mut self.input) {
            Ok(_) => Ok(()),
            Err(TarError::File { name, errno: Errno::ENOSPC }) => {
                Err(ArchiveError::TooLarge(format!("no space for {}", String::from_utf8_lossy(&name))))
            }
            Err(error) => Err(unusable(error)),
        }
    }
}
