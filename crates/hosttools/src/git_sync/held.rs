//! Directories of a repository as this process uses them: by descriptors, without following links. Anyone who works in
//! the tree may put a link anywhere at any time, and this process is not confined to the tree as git is.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, mkdirat, open, openat, openat2, unlinkat};
use rustix::io::Errno;

/// An open directory.
#[derive(Debug)]
pub(super) struct Held(OwnedFd);

impl Held {
    /// Opens the directory of that name, whatever leads there.
    pub fn open(path: &Path) -> io::Result<Held> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Held(open(path, flags, Mode::empty())?))
    }

    /// Opens a directory below this one, with no link on the way.
    pub fn below(&self, path: &Path) -> io::Result<Held> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        Ok(Held(openat2(&self.0, path, flags, Mode::empty(), resolve)?))
    }

    /// Opens a directory in this one, creating it if it does not exist.
    pub fn make(&self, name: &str) -> io::Result<Held> {
        match mkdirat(&self.0, name, Mode::from_raw_mode(0o700)) {
            // Also where there is something else of that name, which must not be used.
            Ok(()) | Err(Errno::EXIST) => self.below(Path::new(name)).map_err(|error| {
                io::Error::new(error.kind(), format!("'{name}' is not a directory to use: {error}"))
            }),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes a file that must not exist yet.
    pub fn write_new(&self, name: &str, contents: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        File::from(openat(&self.0, name, flags, Mode::from_raw_mode(0o600))?).write_all(contents)
    }

    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.0)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// Removes a file or a directory recursively, as far as possible.
    pub fn remove(&self, name: &Path) {
        let _ = fs::remove_dir_all(self.by_descriptor().join(name));
    }

    /// Removes a directory if it is empty.
    pub fn remove_empty(&self, name: &str) {
        let _ = unlinkat(&self.0, name, AtFlags::REMOVEDIR);
    }

    /// Returns a path that leads to this very directory, even if it is moved.
    fn by_descriptor(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.0.as_raw_fd()).into()
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
