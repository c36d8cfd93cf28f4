//! Everything the log does to the disk, one call per step, so that a test can stop it after any byte or step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

#[cfg(test)]
use std::sync::Arc;

/// The disk; in tests one that fails where it is told to.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    #[cfg(test)]
    pub(crate) fault: Option<Arc<fault::Fault>>,
}

impl Disk {
    /// Appends to a file opened for appending, in one write: a reader never sees half a line of an intact log.
    pub(crate) fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.put(bytes, |bytes| (&*file).write_all(bytes))
    }

    /// Overwrites what is at this offset.
    pub(crate) fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.put(bytes, |bytes| file.write_all_at(bytes, offset))
    }

    /// Writes a file that survives a power failure, replacing one of the same name.
    pub(crate) fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(path)?;
        self.put(bytes, |bytes| (&file).write_all(bytes))?;
        // Tests write thousands of them.
        if cfg!(test) { Ok(()) } else { file.sync_all() }
    }

    pub(crate) fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        self.step()?;
        file.set_len(length)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        std::fs::rename(from, to)
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        std::fs::remove_file(path)
    }

    /// Opens a file for appending, creating it if necessary.
    pub(crate) fn open_to_append(&self, path: &Path) -> io::Result<File> {
        self.step()?;
        OpenOptions::new().create(true).append(true).open(path)
    }

    fn put(&self, bytes: &[u8], write: impl FnOnce(&[u8]) -> io::Result<()>) -> io::Result<()> {
        #[cfg(test)]
        if let Some(fault) = &self.fault {
            let written = fault.bytes(bytes.len());
            write(&bytes[..written])?;
            return if written == bytes.len() { Ok(()) } else { Err(fault.error()) };
        }
        write(bytes)
    }

    fn step(&self) -> io::Result<()> {
        #[cfg(test)]
        if let Some(fault) = &self.fault {
            return fault.step();
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod fault {
    use std::io;

    use parking_lot::Mutex;

    /// What happens when the budget is used up.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) enum Kind {
        /// The process is killed: nothing whatever is done after that.
        Killed,
        /// The disk is full: no byte more is written, but files can still be renamed, removed and cut.
        Full,
    }

    /// A disk that takes so many bytes and steps. Each step counts as one.
    pub(crate) struct Fault {
        kind: Kind,
        left: Mutex<usize>,
    }

    impl Fault {
        pub(crate) fn after(kind: Kind, budget: usize) -> Fault {
            Fault { kind, left: Mutex::new(budget) }
        }

        pub(crate) fn left(&self) -> usize {
            *self.left.lock()
        }

        /// Frees space.
        pub(crate) fn refill(&self, budget: usize) {
            *self.left.lock() = budget;
        }

        pub(super) fn bytes(&self, wanted: usize) -> usize {
            let mut left = self.left.lock();
            let taken = wanted.min(*left);
            *left -= taken;
            taken
        }

        pub(super) fn step(&self) -> io::Result<()> {
            let mut left = self.left.lock();
            match (*left, self.kind) {
                (0, Kind::Killed) => Err(self.error()),
                (0, Kind::Full) => Ok(()),
                _ => {
                    *left -= 1;
                    Ok(())
                }
            }
        }

        pub(super) fn error(&self) -> io::Error {
            match self.kind {
                Kind::Killed => io::Error::other("killed"),
                Kind::Full => io::ErrorKind::StorageFull.into(),
            }
        }
    }
}
