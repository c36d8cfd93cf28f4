//! Everything the log does to the disk, one call per step, so that a test can stop it after any byte or step, or cut the
//! power.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;

#[cfg(test)]
use std::sync::Arc;

#[cfg(test)]
use super::power_cut::{Event, Tape, length_of, number_of};

/// The disk; in tests one that fails where it is told to, or keeps a tape of what was done.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    #[cfg(test)]
    fault: Option<Arc<fault::Fault>>,
    #[cfg(test)]
    tape: Option<Arc<Tape>>,
}

impl Disk {
    /// Returns the name of the current boot of the machine, empty if it is not known.
    pub(crate) fn boot(&self) -> &str {
        #[cfg(test)]
        if let Some(tape) = &self.tape {
            return tape.boot();
        }
        static BOOT: OnceLock<String> = OnceLock::new();
        BOOT.get_or_init(|| {
            let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
            let boot = boot.trim();
            let is_id = boot.len() == 36 && boot.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
            if is_id { boot.to_owned() } else { String::new() }
        })
    }

    /// Appends to a file opened for appending, in one write: a reader never sees half a line of an intact log.
    pub(crate) fn append(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        #[cfg(test)]
        self.note(Event::Write(number_of(file), length_of(file), bytes.to_owned()));
        self.put(bytes, |bytes| (&*file).write_all(bytes))
    }

    /// Overwrites what is at this offset.
    pub(crate) fn write_at(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
        #[cfg(test)]
        self.note(Event::Write(number_of(file), offset, bytes.to_owned()));
        self.put(bytes, |bytes| file.write_all_at(bytes, offset))
    }

    /// Writes a file that survives a power failure, replacing one of the same name.
    pub(crate) fn write_file(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let file = OpenOptions::new().create(true).write(true).truncate(true).open(path)?;
        #[cfg(test)]
        self.note(Event::Create(path.to_owned(), number_of(&file)));
        #[cfg(test)]
        self.note(Event::SetLen(number_of(&file), 0));
        self.write_at(&file, bytes, 0)?;
        self.sync(&file)?;
        self.sync_names(path)
    }

    pub(crate) fn set_len(&self, file: &File, length: u64) -> io::Result<()> {
        self.step()?;
        #[cfg(test)]
        self.note(Event::SetLen(number_of(file), length));
        file.set_len(length)
    }

    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        #[cfg(test)]
        self.note(Event::Rename(from.to_owned(), to.to_owned()));
        std::fs::rename(from, to)
    }

    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        #[cfg(test)]
        self.note(Event::Remove(path.to_owned()));
        std::fs::remove_file(path)
    }

    /// Opens a file for appending, creating it if necessary.
    pub(crate) fn open_to_append(&self, path: &Path) -> io::Result<File> {
        self.step()?;
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        #[cfg(test)]
        self.note(Event::Create(path.to_owned(), number_of(&file)));
        Ok(file)
    }

    /// Opens a file for reading and writing, creating it if necessary.
    pub(crate) fn open_to_overwrite(&self, path: &Path) -> io::Result<File> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        #[cfg(test)]
        self.note(Event::Create(path.to_owned(), number_of(&file)));
        Ok(file)
    }

    /// Waits until what was written to a file survives a power failure.
    pub(crate) fn sync(&self, file: &File) -> io::Result<()> {
        self.step()?;
        // Tests do it thousands of times.
        if !cfg!(test) {
            file.sync_all()?;
        }
        #[cfg(test)]
        self.note(Event::Sync(number_of(file)));
        Ok(())
    }

    /// The same for the names in the directory of `path`.
    pub(crate) fn sync_names(&self, path: &Path) -> io::Result<()> {
        self.step()?;
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        if !cfg!(test) {
            File::open(directory.unwrap_or(Path::new(".")))?.sync_all()?;
        }
        #[cfg(test)]
        self.note(Event::SyncNames);
        Ok(())
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

    #[cfg(test)]
    fn note(&self, event: Event) {
        if let Some(tape) = &self.tape {
            tape.add(event);
        }
    }

    #[cfg(test)]
    pub(crate) fn failing(fault: Arc<fault::Fault>) -> Disk {
        Disk { fault: Some(fault), tape: None }
    }

    #[cfg(test)]
    pub(crate) fn taped(tape: Arc<Tape>) -> Disk {
        Disk { fault: None, tape: Some(tape) }
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
