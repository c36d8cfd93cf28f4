//! Access to a sandbox's files from outside.
//!
//! Calls act immediately on the live tree, even while a command runs, as the sandbox's own user. Relative paths start
//! from the shell's directory, as its last command left it.

use std::io::Write;

use wardian_vfs::{Caller, Errno, FileKind, OpenFlags, Place, Stat, Tree};

use crate::error::Error;
use crate::file_parts::WriteOptions;
use crate::limit::Limit;
use crate::sandbox::Sandbox;

pub(crate) const USER: Caller = Caller::USER;
/// How many bytes may be read or written on a worker that others wait for.
pub(crate) const AT_ONCE: u64 = 256 << 10;
/// A path longer than this can have many parts to create.
pub(crate) const LONG_PATH: usize = 256;
/// How many names are read at once.
const NAMES: usize = 1024;

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// The name.
    pub name: Vec<u8>,
    /// Its kind; links are not followed.
    pub kind: FileKind,
    /// Its size in bytes; for a link, the length of its target.
    pub size: u64,
}

/// A directory's entries, sorted by name.
#[derive(Clone, Debug, Default)]
pub struct DirectoryListing {
    /// All names, one after the other.
    names: Vec<u8>,
    entries: Vec<Listed>,
}

#[derive(Clone, Copy, Debug)]
struct Listed {
    start: usize,
    length: usize,
    kind: FileKind,
    size: u64,
}

impl DirectoryListing {
    /// What an entry takes in addition to its name.
    pub const ENTRY: usize = size_of::<Listed>();

    pub(crate) fn push(&mut self, name: &[u8], kind: FileKind, size: u64) {
        self.entries.push(Listed { start: self.names.len(), length: name.len(), kind, size });
        self.names.extend_from_slice(name);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.names.len() + self.entries.len() * DirectoryListing::ENTRY
    }

    pub(crate) fn sort(&mut self) {
        let names = &self.names;
        let name = |entry: &Listed| &names[entry.start..entry.start + entry.length];
        self.entries.sort_unstable_by(|a, b| name(a).cmp(name(b)));
    }

    /// Returns each name, kind and size, as in [`DirectoryEntry`].
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], FileKind, u64)> {
        let entry =
            |entry: &Listed| (&self.names[entry.start..entry.start + entry.length], entry.kind, entry.size);
        self.entries.iter().map(entry)
    }
}

/// A file's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// The last part of its path.
    pub name: Vec<u8>,
    /// Its kind; links are not followed.
    pub kind: FileKind,
    /// Its size in bytes.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// When its content last changed, in milliseconds since 1970.
    pub mtime_ms: i64,
}

impl Sandbox {
    /// Reads a file. Returns `EFBIG` if it is longer than `Limits::fs_bytes`, as sparse files and host files can be.
    pub async fn read_file(&self, path: impl AsRef<[u8]>) -> Result<Vec<u8>, Error> {
        self.read_file_within(path, u64::MAX).await
    }

    /// Does the same, and also returns `EFBIG` if it is longer than `max`.
    pub async fn read_file_within(&self, path: impl AsRef<[u8]>, max: u64) -> Result<Vec<u8>, Error> {
        self.read_file_into(path, max, Vec::new()).await
    }

    /// Does the same, and writes the content to `out` piece by piece, on a thread that may block if it is long. It is
    /// the file of one moment: nothing changes in between. Returns `EIO` if `out` fails.
    pub async fn read_file_into<W>(&self, path: impl AsRef<[u8]>, max: u64, mut out: W) -> Result<W, Error>
    where
        W: Write + Send + 'static,
    {
        let path = path.as_ref();
        let large = self.file_size(path).await? > AT_ONCE;
        self.at(path, large, move |tree, root, path| {
            readable(&tree.stat(&USER, root, path, true)?)?;
            let handle = tree.open(&USER, root, path, OpenFlags::READ, 0)?;
            let read = read_to(tree, &handle, tree.quota().bytes.min(max), &mut out);
            tree.close(handle);
            read.map(|()| out)
        })
        .await
    }

    /// Returns the size of a file that can be read as a whole. Links are followed.
    pub async fn file_size(&self, path: impl AsRef<[u8]>) -> Result<u64, Error> {
        self.at(path, false, |tree, root, path| {
            let stat = tree.stat(&USER, root, path, true)?;
            readable(&stat).map(|()| stat.size)
        })
        .await
    }

    /// Creates a file with this content, or replaces the content of an existing one. All of it or nothing.
    pub async fn write_file(&self, path: impl AsRef<[u8]>, content: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.write_file_with(path, content, WriteOptions::default()).await
    }

    /// Lists a directory, sorted by name.
    pub async fn list(&self, path: impl AsRef<[u8]>) -> Result<Vec<DirectoryEntry>, Error> {
        let listing = self.list_within(path, usize::MAX).await?;
        let entry =
            |(name, kind, size): (&[u8], FileKind, u64)| DirectoryEntry { name: name.to_vec(), kind, size };
        Ok(listing.iter().map(entry).collect())
    }

    /// Does the same in little memory. Returns `EFBIG` as soon as the names, with [`DirectoryListing::ENTRY`] bytes for each, take
    /// more than `max` bytes.
    pub async fn list_within(&self, path: impl AsRef<[u8]>, max: usize) -> Result<DirectoryListing, Error> {
        self.at(path, true, move |tree, root, path| {
            let dir = tree.lookup(&USER, root, path, true)?;
            let mut listing = DirectoryListing::default();
            each_name(tree, &dir, |tree, name| {
                // A name may go between being listed and being looked at only on the host.
                if let Ok(stat) = tree.stat(&USER, &dir, &name, false) {
                    listing.push(&name, stat.kind, stat.size);
                }
                if listing.bytes() > max { Err(Errno::EFBIG) } else { Ok(()) }
            })?;
            listing.sort();
            Ok(listing)
        })
        .await
    }

    /// Creates a directory and its parents. It may already exist.
    pub async fn mkdir(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        let long = path.as_ref().len() > LONG_PATH;
        self.changing("mkdir", path, long, make_directories).await
    }

    /// Removes a file, or a directory recursively.
    pub async fn rm(&self, path: impl AsRef<[u8]>) -> Result<(), Error> {
        let path = self.absolute(path);
        let at = path.clone();
        let removing = move |tree: &mut Tree| {
            let root = tree.root();
            remove(tree, &root, &at)
        };
        self.live()?.aside(removing).await.map_err(|errno| Error::refused(errno, &path))?;
        self.changed("rm", &path).await
    }

    /// Returns a file's metadata. Links are not followed.
    pub async fn stat(&self, path: impl AsRef<[u8]>) -> Result<Metadata, Error> {
        self.at(path, false, |tree, root, path| {
            let stat = tree.stat(&USER, root, path, false)?;
            let name = path.split(|&byte| byte == b'/').rfind(|name| !name.is_empty()).unwrap_or(b"/");
            Ok(Metadata {
                name: name.to_vec(),
                kind: stat.kind,
                size: stat.size,
                mode: stat.mode,
                mtime_ms: stat.mtime.div_euclid(1_000_000),
            })
        })
        .await
    }

    /// Renames a file, replacing the target if it exists.
    pub async fn rename(&self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<(), Error> {
        let (from, to) = (self.absolute(from), self.absolute(to));
        let machine = self.live()?;
        let root = machine.tree().await.root();
        let (old, new) = (from.clone(), to.clone());
        let renaming = move |tree: &mut Tree| {
            let root = tree.root();
            tree.rename(&USER, &root, &old, &root, &new)
        };
        let done = machine.at_paths(&[(&root, &from), (&root, &to)], renaming).await;
        match done {
            Ok(()) => self.changed("rename", &from).await,
            Err(errno) => Err(self.refusal(errno, &from).await),
        }
    }

    /// Sets permission bits.
    pub async fn chmod(&self, path: impl AsRef<[u8]>, mode: u32) -> Result<(), Error> {
        self.changing("chmod", path, false, move |tree, root, path| tree.chmod(&USER, root, path, true, mode))
            .await
    }

    /// Creates a symbolic link at `path` that points to `target`.
    pub async fn symlink(&self, target: impl AsRef<[u8]>, path: impl AsRef<[u8]>) -> Result<(), Error> {
        let target = target.as_ref().to_vec();
        self.changing("symlink", path, false, move |tree, root, path| {
            tree.symlink(&USER, &target, root, path)
        })
        .await
    }

    /// Saves a change that was made, if the sandbox is saved.
    pub(crate) async fn changed(&self, what: &str, path: &[u8]) -> Result<(), Error> {
        self.committed(None, &[what.as_bytes(), b" ", path].concat(), None).await
    }

    /// Runs an operation like [`Sandbox::at`], one that changes something: it is saved, if the sandbox is.
    pub(crate) async fn changing<T, F>(
        &self,
        what: &str,
        path: impl AsRef<[u8]>,
        large: bool,
        work: F,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &Place, &[u8]) -> wardian_vfs::Result<T> + Send + 'static,
    {
        let path = path.as_ref().to_vec();
        let done = self.at(&path, large, work).await?;
        self.changed(what, &path).await?;
        Ok(done)
    }

    /// Runs an operation at a path on the live tree; an error names the path. If it is `large`, it runs on a thread that
    /// may block.
    pub(crate) async fn at<T, F>(&self, path: impl AsRef<[u8]>, large: bool, work: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &Place, &[u8]) -> wardian_vfs::Result<T> + Send + 'static,
    {
        let path = self.absolute(path);
        let machine = self.live()?;
        let root = machine.tree().await.root();
        let at = path.clone();
        let working = move |tree: &mut Tree| {
            let root = tree.root();
            work(tree, &root, &at)
        };
        let done =
            if large { machine.aside(working).await } else { machine.at_path(&root, &path, working).await };
        match done {
            Ok(done) => Ok(done),
            Err(errno) => Err(self.refusal(errno, &path).await),
        }
    }

    /// Returns the error for a path; where it is one of the sandbox's own limits, with its name and value.
    pub(crate) async fn refusal(&self, errno: Errno, path: &[u8]) -> Error {
        if errno != Errno::ENOSPC {
            return Error::refused(errno, path);
        }
        let machine = self.machine();
        let is_quota = {
            let tree = machine.tree().await;
            is_quota(&tree, path)
        };
        if !is_quota {
            return Error::refused(errno, path);
        }
        let limit = machine.which_is_full().await;
        let value = Limit::named(limit).and_then(|limit| self.limits().value(limit)).unwrap_or_default();
        Error::limit_reached(path, limit, value)
    }
}

/// Returns whether a lack of space at a path is the sandbox's own. A host directory may be full as well: there it is the
/// sandbox's only if little is left.
fn is_quota(tree: &Tree, path: &[u8]) -> bool {
    const LITTLE: u64 = 64 << 10;
    let left = tree.quota().bytes.saturating_sub(tree.usage().total());
    !tree.touches_host(&tree.root(), path) || tree.is_out_of_files() || left < LITTLE
}

/// Creates a directory and its parents.
pub(crate) fn make_directories(tree: &mut Tree, root: &Place, path: &[u8]) -> wardian_vfs::Result<()> {
    let mut names = path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
    // Each from the one before: a path can have thousands of names.
    let mut place = root.clone();
    while let Some(name) = names.next() {
        if let Err(errno) = tree.mkdir(&USER, &place, name, 0o777) {
            // Whatever the reason (also a read-only one above ours): all that counts is that it is there.
            match tree.stat(&USER, &place, name, true) {
                Ok(stat) if stat.kind == FileKind::Dir => {}
                Ok(_) if names.peek().is_some() => return Err(Errno::ENOTDIR),
                _ => return Err(errno),
            }
        }
        place = tree.lookup(&USER, &place, name, true)?;
    }
    Ok(())
}

/// Only files that end can be read or written as a whole.
pub(crate) fn readable(stat: &Stat) -> wardian_vfs::Result<()> {
    match stat.kind {
        FileKind::File => Ok(()),
        FileKind::Dir => Err(Errno::EISDIR),
        _ => Err(Errno::EINVAL),
    }
}

/// Reads a file's whole content, if it is not longer than `max`: a sparse file costs its creator nothing, but its
/// reader.
pub(crate) fn read_all(tree: &Tree, handle: &wardian_vfs::Handle, max: u64) -> wardian_vfs::Result<Vec<u8>> {
    let mut content = Vec::new();
    read_to(tree, handle, max, &mut content).map(|()| content)
}

fn read_to(
    tree: &Tree,
    handle: &wardian_vfs::Handle,
    max: u64,
    out: &mut impl Write,
) -> wardian_vfs::Result<()> {
    if tree.stat_handle(&USER, handle)?.size > max {
        return Err(Errno::EFBIG);
    }
    let mut piece = vec![0; 64 * 1024];
    let mut offset = 0;
    loop {
        let count = tree.pread(handle, &mut piece, offset)?;
        if count == 0 {
            return Ok(());
        }
        offset += count as u64;
        if offset > max {
            return Err(Errno::EFBIG);
        }
        out.write_all(&piece[..count]).map_err(|_| Errno::EIO)?;
    }
}

pub(crate) fn names_in(tree: &mut Tree, dir: &Place) -> wardian_vfs::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    each_name(tree, dir, |_, name| {
        names.push(name);
        Ok(())
    })?;
    Ok(names)
}

/// Calls `each` with every name in a directory, a few of which are in memory at once.
pub(crate) fn each_name(
    tree: &mut Tree,
    dir: &Place,
    mut each: impl FnMut(&Tree, Vec<u8>) -> wardian_vfs::Result<()>,
) -> wardian_vfs::Result<()> {
    let handle = tree.open(&USER, dir, b".", OpenFlags::READ | OpenFlags::DIRECTORY, 0)?;
    let mut read = || -> wardian_vfs::Result<()> {
        let mut cursor = 0;
        loop {
            let entries = tree.read_dir(&USER, &handle, cursor, NAMES)?;
            let Some(last) = entries.last() else { return Ok(()) };
            cursor = last.next;
            let names = entries.into_iter().map(|entry| entry.name);
            names.filter(|name| !matches!(&name[..], b"." | b"..")).try_for_each(|name| each(tree, name))?;
        }
    };
    let done = read();
    tree.close(handle);
    done
}

/// Removes a tree, deepest first, without recursion: trees can be deeper than stacks.
fn remove(tree: &mut Tree, root: &Place, path: &[u8]) -> wardian_vfs::Result<()> {
    if tree.stat(&USER, root, path, false)?.kind != FileKind::Dir {
        return tree.unlink(&USER, root, path);
    }
    // Each directory on the way down, with the names still in it and its own in the one above.
    let top = tree.lookup(&USER, root, path, false)?;
    let mut way = vec![(top.clone(), names_in(tree, &top)?, Vec::new())];
    while let Some((dir, names, _)) = way.last_mut() {
        let Some(name) = names.pop() else {
            let (_, _, own) = way.pop().expect("the loop looked at it");
            match way.last() {
                Some((above, ..)) => tree.rmdir(&USER, &above.clone(), &own)?,
                None => tree.rmdir(&USER, root, path)?,
            }
            continue;
        };
        let dir = dir.clone();
        if tree.stat(&USER, &dir, &name, false)?.kind == FileKind::Dir {
            let below = tree.lookup(&USER, &dir, &name, false)?;
            let names = names_in(tree, &below)?;
            way.push((below, names, name));
        } else {
            tree.unlink(&USER, &dir, &name)?;
        }
    }
    Ok(())
}
