//! The basic steps of applying an overlay's changes and of recovering from a crash: each is one system call that changes
//! something in a host directory.
//!
//! Paths are walked name by name below the directory, and no link is ever followed. That is stricter than for guests'
//! own calls: what is done here may follow a journal, and must not be misled by changes to the directory since the
//! journal was written.

use crate::host::HostDir;
use crate::probe::{self, Did};
use crate::{Errno, Result};
use cap_std::fs::{Permissions, PermissionsExt};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno as Io;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// What is at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) ino: u64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) is_dir: bool,
    pub(crate) is_link: bool,
}

/// A host directory that is being changed.
#[derive(Clone, Copy)]
pub(crate) struct Disk<'h>(pub(crate) &'h HostDir);

impl Disk<'_> {
    /// Returns the directory a path is in, opened without following links, and the name there.
    fn parent<'p>(&self, path: &'p [u8]) -> Result<(OwnedFd, &'p OsStr)> {
        let (dir, name) = crate::name::split(path);
        if matches!(name, b"" | b"." | b"..") {
            return Err(Errno::EINVAL);
        }
        Ok((self.walk(dir, OFlags::PATH)?, OsStr::from_bytes(name)))
    }

    fn walk(&self, path: &[u8], how: OFlags) -> Result<OwnedFd> {
        let mut names = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let start = if names.peek().is_some() { OFlags::PATH } else { how };
        let mut dir = rustix::fs::openat(self.0.root(), ".", flags | start, Mode::empty())?;
        while let Some(name) = names.next() {
            if matches!(name, b"." | b"..") {
                return Err(Errno::EINVAL);
            }
            let how = if names.peek().is_some() { OFlags::PATH } else { how };
            dir = rustix::fs::openat(&dir, OsStr::from_bytes(name), flags | how, Mode::empty())?;
        }
        Ok(dir)
    }

    /// Returns what is there; `None` if nothing is, or if the directory it would be in is gone.
    pub(crate) fn find(&self, path: &[u8]) -> Result<Option<Found>> {
        let found = self
            .parent(path)
            .and_then(|(dir, name)| Ok(rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW)?));
        let stat = match found {
            Ok(stat) => stat,
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        Ok(Some(Found {
            ino: stat.st_ino,
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            is_dir: kind == FileType::Directory,
            is_link: kind == FileType::Symlink,
        }))
    }

    /// Moves to a name that must not exist.
    pub(crate) fn rename_new(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let ((from_dir, from_name), (to_dir, to_name)) = (self.parent(from)?, self.parent(to)?);
        probe::step();
        match rustix::fs::renameat_with(&from_dir, from_name, &to_dir, to_name, RenameFlags::NOREPLACE) {
            // A file system that cannot promise it.
            Err(Io::INVAL | Io::NOSYS | Io::NOTSUP) => {}
            done => return Ok(done?),
        }
        if self.find(to)?.is_some() {
            return Err(Errno::EEXIST);
        }
        Ok(rustix::fs::renameat(&from_dir, from_name, &to_dir, to_name)?)
    }

    /// Moves to a name, replacing what is there.
    pub(crate) fn rename_over(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let ((from_dir, from_name), (to_dir, to_name)) = (self.parent(from)?, self.parent(to)?);
        probe::step();
        Ok(rustix::fs::renameat(&from_dir, from_name, &to_dir, to_name)?)
    }

    /// Gives a file or a link an additional name.
    pub(crate) fn link(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let ((from_dir, from_name), (to_dir, to_name)) = (self.parent(from)?, self.parent(to)?);
        probe::step();
        Ok(rustix::fs::linkat(&from_dir, from_name, &to_dir, to_name, AtFlags::empty())?)
    }

    pub(crate) fn mkdir(&self, path: &[u8]) -> Result<()> {
        let (dir, name) = self.parent(path)?;
        probe::step();
        Ok(rustix::fs::mkdirat(&dir, name, Mode::RWXU)?)
    }

    pub(crate) fn symlink(&self, target: &[u8], path: &[u8]) -> Result<()> {
        let (dir, name) = self.parent(path)?;
        probe::step();
        Ok(rustix::fs::symlinkat(OsStr::from_bytes(target), &dir, name)?)
    }

    pub(crate) fn create(&self, path: &[u8]) -> Result<File> {
        let (dir, name) = self.parent(path)?;
        probe::step();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&dir, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    pub(crate) fn remove(&self, path: &[u8]) -> Result<()> {
        let (dir, name) = self.parent(path)?;
        probe::step();
        Ok(rustix::fs::unlinkat(&dir, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_dir(&self, path: &[u8]) -> Result<()> {
        let (dir, name) = self.parent(path)?;
        probe::step();
        probe::note(Did::RemoveDir, path);
        Ok(rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR)?)
    }

    /// Sets permission bits; never set-user-id or set-group-id, which would take effect on the host.
    pub(crate) fn chmod(&self, path: &[u8], mode: u32) -> Result<()> {
        let (dir, name) = self.parent(path)?;
        if self.find(path)?.is_none_or(|found| found.is_link) {
            return Err(Errno::ENOENT);
        }
        // A link that somebody swaps in just now is followed, but never out of its directory.
        let dir = cap_std::fs::Dir::from_std_file(File::from(dir));
        probe::step();
        probe::note(Did::Chmod, path);
        Ok(dir.set_permissions(name, Permissions::from_mode(mode & 0o1777))?)
    }

    pub(crate) fn list(&self, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        let dir = rustix::fs::Dir::new(self.walk(path, OFlags::RDONLY)?)?;
        let mut names = Vec::new();
        for entry in dir {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Makes names added to or removed from a directory survive a power failure.
    pub(crate) fn sync_dir(&self, path: &[u8]) -> Result<()> {
        match self.walk(path, OFlags::RDONLY) {
            Ok(dir) => {
                probe::note(Did::Sync, path);
                sync(&dir)
            }
            // One that is gone was synced with the one above it; one that may not be read cannot be.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::EACCES) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    /// Makes the permission bits of a file or directory survive a power failure.
    pub(crate) fn sync_mode(&self, path: &[u8]) -> Result<()> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |(dir, name)| Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?);
        match self.parent(path).and_then(open) {
            Ok(file) => {
                probe::note(Did::Sync, path);
                sync(&file)
            }
            // One that is gone has no bits.
            Err(Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP) => Ok(()),
            // One that may not be opened, perhaps by these very bits.
            Err(_) => self.sync_all(),
        }
    }

    /// Does the same for everything on this file system at once: faster for many files.
    pub(crate) fn sync_all(&self) -> Result<()> {
        let dir = self.walk(b"", OFlags::RDONLY)?;
        probe::step();
        probe::note(Did::SyncAll, b"");
        Ok(rustix::fs::syncfs(&dir)?)
    }
}

/// Waits until a file's content and metadata, or a directory's names, are on disk.
pub(crate) fn sync(file: impl AsFd) -> Result<()> {
    probe::step();
    match rustix::fs::fsync(file) {
        // A file system that has no such thing.
        Err(Io::INVAL | Io::NOTSUP) => Ok(()),
        done => Ok(done?),
    }
}
