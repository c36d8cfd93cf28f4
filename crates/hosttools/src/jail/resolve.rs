//! Resolving paths, by `openat2` if Linux has it, else by a separate walk.

use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2, readlinkat};
use rustix::io::Errno;

use super::walk::walk;
use crate::error::ToolError;
use crate::spec::HeldDirectory;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Inside,
    Outside,
    /// It cannot be determined, and why.
    Unknown(String),
}

/// Who resolves paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolver {
    /// The kernel, which does not leave the directory it starts from.
    Openat2,
    /// This code, name by name: the caller has allowed that.
    Walk,
}

/// A concurrent rename makes the kernel unsure about `..`; it then asks for a retry.
const ATTEMPTS: usize = 64;

impl Resolver {
    /// The kernel if possible, else this code if that is allowed.
    pub(super) fn choose(without_openat2: bool) -> Result<Resolver, ToolError> {
        Resolver::choose_where(openat2_works(), without_openat2)
    }

    fn choose_where(openat2_works: bool, without_openat2: bool) -> Result<Resolver, ToolError> {
        match (openat2_works, without_openat2) {
            (true, _) => Ok(Resolver::Openat2),
            (false, true) => Ok(Resolver::Walk),
            (false, false) => Err(ToolError::ConfinementUnavailable("openat2".to_owned())),
        }
    }

    /// Returns where `relative` leads from `root`.
    pub(super) fn place(self, root: &HeldDirectory, relative: &Path) -> Place {
        if self == Resolver::Walk {
            return walk(root, relative);
        }
        match beneath(root, relative, OFlags::PATH) {
            Ok(_) => Place::Inside,
            // There is no such file. What it could become is for the walk to say: it knows `..` after a missing name.
            Err(Errno::NOENT) => walk(root, relative),
            Err(Errno::NOTDIR) => Place::Inside,
            Err(Errno::XDEV) => Place::Outside,
            Err(error) => Place::Unknown(error.to_string()),
        }
    }

    /// Opens a directory, and returns its real path.
    pub(super) fn open_directory(
        self,
        root: &HeldDirectory,
        relative: &Path,
    ) -> Result<(OwnedFd, PathBuf), String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = match self {
            Resolver::Openat2 => beneath(root, relative, flags),
            Resolver::Walk => match walk(root, relative) {
                Place::Inside => openat(root, relative, flags | OFlags::CLOEXEC, Mode::empty()),
                Place::Outside => Err(Errno::XDEV),
                Place::Unknown(why) => return Err(format!("cannot be resolved: {why}")),
            },
        };
        let descriptor = opened.map_err(|error| match error {
            Errno::XDEV => super::OUTSIDE.to_owned(),
            error => format!("is not a directory to work in: {error}"),
        })?;
        let real = path_of(&descriptor).map_err(|error| error.to_string())?;
        if !real.starts_with(root.path()) {
            return Err(super::OUTSIDE.to_owned());
        }
        Ok((descriptor, real))
    }
}

fn beneath(root: &HeldDirectory, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS {
        match openat2(root, relative, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            outcome => return outcome,
        }
    }
    Err(Errno::AGAIN)
}

/// Returns whether Linux has `openat2`, and allows it.
pub(crate) fn openat2_works() -> bool {
    openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::NO_MAGICLINKS).is_ok()
}

/// Returns where an open file is.
fn path_of(descriptor: &OwnedFd) -> Result<PathBuf, Errno> {
    let link = format!("/proc/self/fd/{}", descriptor.as_fd().as_raw_fd());
    let path = readlinkat(CWD, link, Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(path.into_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_openat2_is_missing_there_is_no_jail_unless_someone_says_so() {
        let refused = Resolver::choose_where(false, false).unwrap_err();
        assert_eq!(refused.code(), "CONFINEMENT_UNAVAILABLE");
        assert!(refused.to_string().contains("openat2"), "{refused}");
        assert_eq!(Resolver::choose_where(false, true).unwrap(), Resolver::Walk);
        assert_eq!(Resolver::choose_where(true, true).unwrap(), Resolver::Openat2);
    }
}
