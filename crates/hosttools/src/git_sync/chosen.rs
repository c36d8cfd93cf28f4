//! Which files a snapshot takes: found here and not by git, which stops at repositories inside the work tree and
//! silently skips what it cannot store.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::held::Held;

/// The longest path on Linux, with its NUL.
const PATH_MAX: usize = 4096;

/// What is in the chosen paths, relative to the top of the work tree, in order.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    /// Files and symbolic links.
    pub files: BTreeSet<PathBuf>,
    /// Pipes, sockets, devices and paths that are too long: git cannot store them.
    pub skipped: BTreeSet<PathBuf>,
}

impl Chosen {
    pub fn find(top: &Path, paths: &[PathBuf]) -> io::Result<Chosen> {
        let top = Held::open(top)?;
        let mut chosen = Chosen::default();
        let mut directories = Vec::new();
        for path in paths {
            let name = path.file_name().unwrap_or(OsStr::new("."));
            // What is not there is in no snapshot; nor is what lies behind a link, which is a file itself.
            if let Some(parent) = found(top.below(path.parent().unwrap_or(Path::new(""))))? {
                directories.extend(chosen.take(&parent, name, path.clone())?);
            }
        }
        while let Some(directory) = directories.pop() {
            match top.below(&directory) {
                Err(error) if error.raw_os_error() == Some(libc::ENAMETOOLONG) => {
                    chosen.skipped.insert(directory);
                }
                opened => {
                    if let Some(held) = found(opened)? {
                        directories.extend(chosen.take_all(&held, &directory)?);
                    }
                }
            }
        }
        Ok(chosen)
    }

    /// Takes what is in a directory, except for the directories in it, which it returns.
    fn take_all(&mut self, held: &Held, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut directories = Vec::new();
        for name in held.names()? {
            if !name.as_bytes().eq_ignore_ascii_case(b".git") {
                directories.extend(self.take(held, &name, directory.join(&name))?);
            }
        }
        Ok(directories)
    }

    /// Takes one file, or returns that it is a directory.
    fn take(&mut self, parent: &Held, name: &OsStr, path: PathBuf) -> io::Result<Option<PathBuf>> {
        let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from);
        let Some(stat) = found(stat)? else { return Ok(None) };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Ok(Some(path)),
            FileType::RegularFile | FileType::Symlink if path.as_os_str().len() < PATH_MAX => {
                self.files.insert(path);
            }
            _ => {
                self.skipped.insert(path);
            }
        }
        Ok(None)
    }
}

/// What disappeared meanwhile, or became a link, counts as absent.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    const NOT_THERE: [Errno; 3] = [Errno::NOENT, Errno::LOOP, Errno::NOTDIR];
    match result {
        Ok(found) => Ok(Some(found)),
        Err(error) if NOT_THERE.iter().any(|none| error.raw_os_error() == Some(none.raw_os_error())) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
