//! Wardian's state directory on the host, where journals are kept: never inside a directory that a guest or a repository
//! could write to.

use crate::disk::sync;
use crate::probe::{self, Did};
use crate::{Errno, Result};
use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Returns Wardian's state directory: `wardian` in `$XDG_STATE_HOME`, by default `~/.local/state`. `None` if neither
/// variable is an absolute path.
pub fn state_directory() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(state.join("wardian"))
}

/// The directory with the journals, mode 0700, owned by this user.
const JOURNALS: &str = "apply";
/// How long to wait for another process that is applying.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// The same for one that only looks: longer than a process that is just being started shares the lock.
pub(crate) const MOMENT: Duration = Duration::from_millis(200);
/// The largest journal that is read: a hundred thousand changes take a few megabytes.
const JOURNAL_MAX: u64 = 1 << 30;

/// The opened directory with the journals.
pub(crate) struct StateDir(OwnedFd);

/// The right to apply to one directory, or to recover it. Released when dropped, even by a crash.
pub(crate) struct Lock(#[allow(dead_code, reason = "it is the open file that holds the lock")] OwnedFd);

impl StateDir {
    /// Opens it if it exists.
    pub(crate) fn open(state: &Path) -> Result<StateDir> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let base = rustix::fs::open(state, flags, Mode::empty())?;
        // Others who can write there cannot create a directory that this user owns.
        let dir = rustix::fs::openat(&base, JOURNALS, flags | OFlags::NOFOLLOW, Mode::empty())?;
        check_private(&rustix::fs::fstat(&dir)?, FileType::Directory)?;
        Ok(StateDir(dir))
    }

    /// Opens it, creating it if it does not exist.
    pub(crate) fn create(state: &Path) -> Result<StateDir> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state.join(JOURNALS))?;
        StateDir::open(state)
    }

    /// Waits for the lock on a journal. Returns `EBUSY` if another process holds it for too long.
    pub(crate) fn lock(&self, name: &str, patience: Duration) -> Result<Lock> {
        let until = Instant::now() + patience;
        loop {
            match self.try_lock(name)? {
                Some(lock) => return Ok(lock),
                None if Instant::now() >= until => return Err(Errno::EBUSY),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Takes the lock, if it is free.
    fn try_lock(&self, name: &str) -> Result<Option<Lock>> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.0, format!("{name}.lock"), flags, Mode::RUSR | Mode::WUSR)?;
        check_private(&rustix::fs::fstat(&file)?, FileType::RegularFile)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Returns the content of a journal, if there is one.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&self.0, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        };
        check_private(&rustix::fs::fstat(&file)?, FileType::RegularFile)?;
        let mut content = Vec::new();
        file.take(JOURNAL_MAX).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    /// Writes a journal, replacing the existing one: after a crash it is either the old one or the new one.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<()> {
        let new = format!("{name}.new");
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        probe::step();
        let mut file = File::from(rustix::fs::openat(&self.0, &new, flags, Mode::RUSR | Mode::WUSR)?);
        check_private(&rustix::fs::fstat(&file)?, FileType::RegularFile)?;
        probe::step();
        file.write_all(content)?;
        sync(&file)?;
        probe::step();
        rustix::fs::renameat(&self.0, &new, &self.0, name)?;
        probe::note(Did::WriteJournal, name.as_bytes());
        sync(&self.0)
    }

    pub(crate) fn remove(&self, name: &str) -> Result<()> {
        probe::step();
        probe::note(Did::RemoveJournal, name.as_bytes());
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => sync(self.0.as_fd()),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn is_ours(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

/// Refuses what others could have written.
fn check_private(found: &Stat, kind: FileType) -> Result<()> {
    let private = is_ours(found) && found.st_mode & 0o077 == 0;
    if private && FileType::from_raw_mode(found.st_mode) == kind { Ok(()) } else { Err(Errno::EPERM) }
}
