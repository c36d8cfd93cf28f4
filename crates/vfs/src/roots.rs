//! Where host directories may be mounted from, if somebody else than the caller says which.
//!
//! A root is opened once and held: what its path leads to later does not matter. What is mounted below one is looked up from
//! that descriptor, name by name and without following links, so that no link, `..` or race leads out.

use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use cap_std::fs::Dir;
use rustix::fs::{Mode, OFlags, openat};

use crate::{Errno, HostAccess};

/// The directories below which host directories may be mounted; none at first. Cloning it shares their descriptors.
#[derive(Clone, Default)]
pub struct HostRoots(Arc<Vec<Root>>);

#[derive(Clone)]
struct Root {
    dir: Arc<OwnedFd>,
    /// The path that it was given by, and what that led to.
    names: [PathBuf; 2],
    writable: bool,
}

/// Why a host directory is not mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostRefusal {
    /// Its path is not absolute, or has `.` or `..` in it.
    Path,
    /// It is not below a directory from which one may mount.
    Outside,
    /// It is below one from which one may only read.
    ReadOnly,
    /// A symbolic link leads to it.
    Link,
    /// It cannot be opened.
    Failed(Errno),
}

impl From<Errno> for HostRefusal {
    fn from(errno: Errno) -> HostRefusal {
        HostRefusal::Failed(errno)
    }
}

impl fmt::Display for HostRefusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostRefusal::Path => formatter.write_str("not an absolute path without '.' and '..'"),
            HostRefusal::Outside => formatter.write_str("not below a directory that may be mounted"),
            HostRefusal::ReadOnly => formatter.write_str("only for reading"),
            HostRefusal::Link => {
                formatter.write_str("a symbolic link leads there: name the directory itself")
            }
            HostRefusal::Failed(errno) => errno.fmt(formatter),
        }
    }
}

impl fmt::Debug for HostRoots {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().map(|root| (&root.names[0], root.writable));
        formatter.debug_map().entries(shown).finish()
    }
}

impl HostRoots {
    /// Adds a directory, which must not be `/`. What is below one that is not `writable` can be mounted read-only or as an overlay
    /// whose changes are never applied.
    pub fn with(mut self, path: &Path, writable: bool) -> std::io::Result<HostRoots> {
        let given = std::path::absolute(path)?;
        let real = path.canonicalize()?;
        if real.parent().is_none() {
            return Err(std::io::Error::other("it is the whole machine"));
        }
        let dir = rustix::fs::open(&real, OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Arc::make_mut(&mut self.0).push(Root { dir: Arc::new(dir), names: [given, real], writable });
        Ok(self)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a directory is in one of them, or one of them in it.
    pub fn touch(&self, path: &Path) -> bool {
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        self.0.iter().any(|root| root.names[1].starts_with(&real) || real.starts_with(&root.names[1]))
    }

    /// Opens a directory below one of them. Returns whether it may be written to as well.
    pub(crate) fn open(&self, path: &Path, access: HostAccess) -> Result<(Dir, bool), HostRefusal> {
        if !path.is_absolute() || has_dots(path) {
            return Err(HostRefusal::Path);
        }
        let below = |root: &'_ Root| {
            let inside = root.names.iter().find_map(|name| path.strip_prefix(name).ok());
            inside.map(|inside| (root.clone(), inside.to_owned()))
        };
        let mut roots: Vec<(Root, PathBuf)> = self.0.iter().filter_map(below).collect();
        // One that is in two of them is in the one that allows more.
        roots.sort_by_key(|(root, _)| !root.writable);
        let (root, inside) = roots.into_iter().next().ok_or(HostRefusal::Outside)?;
        if access == HostAccess::ReadWrite && !root.writable {
            return Err(HostRefusal::ReadOnly);
        }
        Ok((descend(&root.dir, &inside)?, root.writable))
    }
}

/// Returns whether a path has parts that are no names, as it is written: `components` leaves some out.
fn has_dots(path: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes().split(|byte| *byte == b'/').any(|name| matches!(name, b"." | b".."))
}

/// Opens what is below a directory, name by name.
fn descend(root: &OwnedFd, inside: &Path) -> Result<Dir, HostRefusal> {
    let way = OFlags::DIRECTORY | OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at: Option<OwnedFd> = None;
    for part in inside.components() {
        let Component::Normal(name) = part else { return Err(HostRefusal::Path) };
        let next = openat(at.as_ref().unwrap_or(root), name, way, Mode::empty());
        at = Some(next.map_err(|error| match error {
            // So says Linux of a link where a directory was asked for.
            rustix::io::Errno::LOOP => HostRefusal::Link,
            rustix::io::Errno::NOTDIR if is_link(at.as_ref().unwrap_or(root), name) => HostRefusal::Link,
            error => HostRefusal::Failed(error.into()),
        })?);
    }
    // Until here it was only looked at.
    let read = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let dir = openat(at.as_ref().unwrap_or(root), ".", read, Mode::empty()).map_err(Errno::from)?;
    Ok(Dir::from_std_file(dir.into()))
}

fn is_link(dir: &OwnedFd, name: &std::ffi::OsStr) -> bool {
    rustix::fs::statat(dir, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| rustix::fs::FileType::from_raw_mode(stat.st_mode).is_symlink())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn refusal(roots: &HostRoots, path: &Path, access: HostAccess) -> HostRefusal {
        roots.open(path, access).err().unwrap_or_else(|| panic!("{} was opened", path.display()))
    }

    #[test]
    fn only_what_is_below_a_root_is_opened_and_no_link_or_dots_lead_out() {
        let all = tempfile::tempdir().unwrap();
        let (root, outside) = (all.path().join("root"), all.path().join("outside"));
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::create_dir_all(outside.join("secret")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink("a", root.join("in")).unwrap();
        symlink(&root, all.path().join("alias")).unwrap();
        let roots = HostRoots::default().with(&all.path().join("alias"), true).unwrap();
        for inside in ["root", "root/", "root//a", "root/a/b", "alias", "alias/a"] {
            let opened = roots.open(&all.path().join(inside), HostAccess::ReadWrite);
            assert!(opened.is_ok_and(|(_, writable)| writable), "{inside}");
        }
        let refused = [
            ("root/out", HostRefusal::Link),
            ("root/out/secret", HostRefusal::Link),
            ("root/in/b", HostRefusal::Link),
            ("root/file", HostRefusal::Failed(Errno::ENOTDIR)),
            ("root/missing", HostRefusal::Failed(Errno::ENOENT)),
            ("root/../outside", HostRefusal::Path),
            ("root/./a", HostRefusal::Path),
            ("outside", HostRefusal::Outside),
            ("rootless", HostRefusal::Outside),
            ("", HostRefusal::Outside),
        ];
        for (path, why) in refused {
            assert_eq!(refusal(&roots, &all.path().join(path), HostAccess::ReadOnly), why, "{path}");
        }
        assert_eq!(refusal(&roots, Path::new("/"), HostAccess::ReadOnly), HostRefusal::Outside);
        assert_eq!(refusal(&roots, Path::new("root"), HostAccess::ReadOnly), HostRefusal::Path);
        let none = HostRoots::default();
        assert_eq!(refusal(&none, &root, HostAccess::ReadOnly), HostRefusal::Outside);
        assert!(HostRoots::default().with(Path::new("/"), true).is_err());
        assert!(HostRoots::default().with(&root.join("file"), true).is_err());
    }

    #[test]
    fn a_root_for_reading_is_only_read_unless_another_allows_more() {
        let all = tempfile::tempdir().unwrap();
        let inner = all.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let roots = HostRoots::default().with(all.path(), false).unwrap();
        assert_eq!(refusal(&roots, &inner, HostAccess::ReadWrite), HostRefusal::ReadOnly);
        let writable = |roots: &HostRoots, access| roots.open(&inner, access).unwrap().1;
        assert!(!writable(&roots, HostAccess::Overlay));
        let more = roots.with(&inner, true).unwrap();
        assert!(writable(&more, HostAccess::ReadWrite));
    }

    #[test]
    fn a_root_is_the_directory_that_it_was_when_it_was_opened() {
        let all = tempfile::tempdir().unwrap();
        let (root, outside) = (all.path().join("root"), all.path().join("outside"));
        fs::create_dir_all(root.join("mine")).unwrap();
        fs::create_dir_all(outside.join("mine/secret")).unwrap();
        let roots = HostRoots::default().with(&root, true).unwrap();
        fs::rename(&root, all.path().join("moved")).unwrap();
        symlink(&outside, &root).unwrap();
        let (opened, _) = roots.open(&root.join("mine"), HostAccess::ReadOnly).unwrap();
        assert_eq!(opened.entries().unwrap().count(), 0, "the old one");
    }

    /// One thread swaps a directory for a link that leads out, others open it: they get the directory or nothing.
    #[test]
    fn a_race_with_a_link_does_not_lead_out() {
        let all = tempfile::tempdir().unwrap();
        let (root, outside) = (all.path().join("root"), all.path().join("outside"));
        fs::create_dir_all(root.join("d/inside")).unwrap();
        fs::create_dir_all(outside.join("inside/secret")).unwrap();
        symlink(&outside, root.join("link")).unwrap();
        let roots = HostRoots::default().with(&root, false).unwrap();
        let swapping = std::thread::spawn({
            let root = root.clone();
            move || {
                for _ in 0..2000 {
                    let _ = rustix::fs::renameat_with(
                        rustix::fs::CWD,
                        root.join("d"),
                        rustix::fs::CWD,
                        root.join("link"),
                        rustix::fs::RenameFlags::EXCHANGE,
                    );
                }
            }
        });
        while !swapping.is_finished() {
            if let Ok((opened, _)) = roots.open(&root.join("d/inside"), HostAccess::ReadOnly) {
                assert_eq!(opened.entries().unwrap().count(), 0, "never the other one");
            }
        }
        swapping.join().unwrap();
    }
}
