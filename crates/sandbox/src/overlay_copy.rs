//! A private copy of an overlay on the host's disk, for a native program to work on.
//!
//! A native program cannot see what an overlay keeps in the sandbox. So all files of the mount, as the sandbox sees them,
//! are copied to a directory that only this user can enter. When the program has ended, what it changed there is found by
//! comparing the directory with what was copied, and is made in the overlay: all of it or nothing.
//!
//! The directory is locked as long as this lives. After a crash it stays behind, and the next copy removes it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{FlockOperation, flock};
use wardian_vfs::{Caller, FileKind, OpenFlags, SetTime, Stat, Tree};

use crate::sandbox::new_id;

/// The most bytes and files that are copied.
const MOST_BYTES: u64 = 1 << 30;
const MOST_FILES: usize = 200_000;
/// How much is copied at once.
const PIECE: usize = 256 << 10;
/// How many names are read at once.
const NAMES: usize = 1024;
/// Changes are made as the sandbox's user, with the modes that the program has set.
const USER: Caller = Caller { umask: 0, ..Caller::USER };

/// Why a copy could not be made, or its changes not taken.
pub(crate) type Failed = String;

/// A copy of the files at a mount.
pub(crate) struct OverlayCopy {
    /// Locked; contains the copy.
    directory: PathBuf,
    _lock: File,
    /// What was copied, by its path in the copy.
    before: BTreeMap<PathBuf, Seen>,
    /// The same in the sandbox, where others may change it meanwhile.
    origins: BTreeMap<PathBuf, Origin>,
}

/// What tells whether a file of the sandbox was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Origin {
    kind: FileKind,
    version: u64,
    mtime: i64,
}

impl Origin {
    fn of(stat: &Stat) -> Origin {
        // A directory changes with its entries, which are looked at themselves.
        let mtime = if stat.kind == FileKind::Dir { 0 } else { stat.mtime };
        Origin { kind: stat.kind, version: stat.version, mtime }
    }
}

/// What tells whether a file was changed.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Seen {
    kind: FileKind,
    mode: u32,
    /// Nothing for a directory, which changes with its entries.
    stamp: Stamp,
}

/// What changes with a file's content; times in nanoseconds since 1970.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Stamp {
    size: u64,
    ino: u64,
    mtime: i64,
    ctime: i64,
}

/// One change to make in the overlay.
enum Change {
    Remove(PathBuf, FileKind),
    Directory(PathBuf, u32),
    Mode(PathBuf, u32),
    /// A file, with what this one on the host has in it.
    File {
        path: PathBuf,
        from: PathBuf,
        mode: u32,
        mtime: i64,
    },
    Link(PathBuf, Vec<u8>),
}

/// Stops the copying when its caller is gone.
#[derive(Clone, Default)]
pub(crate) struct Wanted(Arc<AtomicBool>);

/// Held by the caller.
pub(crate) struct Wanting(Wanted);

impl Wanted {
    pub(crate) fn hold(&self) -> Wanting {
        Wanting(self.clone())
    }

    fn check(&self) -> Result<(), Failed> {
        if self.0.load(Ordering::Relaxed) { Err("it was cancelled".to_owned()) } else { Ok(()) }
    }
}

impl Drop for Wanting {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

impl OverlayCopy {
    /// Copies the files at `mount`, as the sandbox sees them. Blocks.
    pub(crate) fn of(tree: &mut Tree, mount: &str, wanted: &Wanted) -> Result<OverlayCopy, Failed> {
        let (directory, lock) = new_directory().map_err(|error| format!("no private directory: {error}"))?;
        // From here on it is removed, whatever happens.
        let mut copy =
            OverlayCopy { directory, _lock: lock, before: BTreeMap::new(), origins: BTreeMap::new() };
        fs::DirBuilder::new().mode(0o700).create(copy.path()).map_err(|error| error.to_string())?;
        let mut copying = Copying {
            tree,
            mount: mount.as_bytes(),
            to: copy.path(),
            bytes: 0,
            origins: BTreeMap::new(),
            wanted,
        };
        copying.all()?;
        copy.origins = copying.origins;
        copy.before = scan(&copy.path())?;
        Ok(copy)
    }

    /// Where the files are.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join("files")
    }

    /// Returns whether one of its files has this text in it; false if there is no such file.
    pub(crate) fn has(&self, path: &str, text: &str) -> bool {
        let content = fs::read(self.path().join(path)).unwrap_or_default();
        content.windows(text.len()).any(|window| window == text.as_bytes())
    }

    /// Makes what was changed in the copy in the overlay, all of it or nothing: nothing if another program has changed one
    /// of the same files meanwhile, whose work would be lost. Blocks.
    pub(crate) fn take_back(&self, tree: &mut Tree, mount: &str) -> Result<(), Failed> {
        let changes = self.changes()?;
        if changes.is_empty() {
            return Ok(());
        }
        if let Some(path) = changes.iter().map(Change::path).find(|path| self.differs(tree, mount, path)) {
            return Err(format!("{} was changed by another program meanwhile: run it again", path.display()));
        }
        // A clone is free, and nobody else sees the tree meanwhile.
        let before = tree.clone();
        for change in &changes {
            if let Err(why) = change.make(tree, mount.as_bytes()) {
                *tree = before;
                return Err(why);
            }
        }
        Ok(())
    }

    /// Returns whether the sandbox has something else at a path than when it was copied.
    fn differs(&self, tree: &Tree, mount: &str, path: &Path) -> bool {
        let now = tree.stat(&Caller::ROOT, &tree.root(), &inside(mount.as_bytes(), path), false);
        now.ok().map(|stat| Origin::of(&stat)) != self.origins.get(path).copied()
    }

    /// What was changed: first what is gone, the deepest first, then what is new.
    fn changes(&self) -> Result<Vec<Change>, Failed> {
        let root = self.path();
        let after = scan(&root)?;
        let same_kind = |path: &Path, seen: &Seen| after.get(path).is_some_and(|now| now.kind == seen.kind);
        let gone = self.before.iter().rev().filter(|(path, seen)| !same_kind(path, seen));
        let mut changes: Vec<Change> =
            gone.map(|(path, seen)| Change::Remove(path.clone(), seen.kind)).collect();
        let mut modes = Vec::new();
        for (path, now) in &after {
            let before = self.before.get(path).filter(|before| before.kind == now.kind);
            if before == Some(now) {
                continue;
            }
            let from = root.join(path);
            let unreadable = |error: io::Error| format!("{}: {error}", path.display());
            changes.push(match now.kind {
                FileKind::Dir => {
                    // Closed to writing only when all is in it.
                    modes.push(Change::Mode(path.clone(), now.mode));
                    match before {
                        Some(_) => continue,
                        None => Change::Directory(path.clone(), now.mode | 0o700),
                    }
                }
                FileKind::Symlink => {
                    let target = fs::read_link(&from).map_err(unreadable)?;
                    Change::Link(path.clone(), target.into_os_string().into_vec())
                }
                _ => Change::File { path: path.clone(), from, mode: now.mode, mtime: now.stamp.mtime },
            });
        }
        changes.extend(modes);
        Ok(changes)
    }
}

impl Drop for OverlayCopy {
    fn drop(&mut self) {
        let directory = std::mem::take(&mut self.directory);
        // It can take a while, and this may be a thread that must not block. If there is no thread, the next copy does it.
        let _ = std::thread::Builder::new().spawn(move || remove(&directory));
    }
}

impl Seen {
    fn of(metadata: &Metadata) -> Option<Seen> {
        let kind = match metadata.file_type() {
            kind if kind.is_dir() => FileKind::Dir,
            kind if kind.is_file() => FileKind::File,
            kind if kind.is_symlink() => FileKind::Symlink,
            _ => return None,
        };
        let nanos = |seconds: i64, more: i64| seconds.saturating_mul(1_000_000_000).saturating_add(more);
        let stamp = Stamp {
            size: metadata.size(),
            ino: metadata.ino(),
            mtime: nanos(metadata.mtime(), metadata.mtime_nsec()),
            ctime: nanos(metadata.ctime(), metadata.ctime_nsec()),
        };
        let stamp = if kind == FileKind::Dir { Stamp::default() } else { stamp };
        Some(Seen { kind, mode: metadata.mode() & 0o777, stamp })
    }
}

/// Everything below a directory, by its path there: a directory before what is in it.
fn scan(root: &Path) -> Result<BTreeMap<PathBuf, Seen>, Failed> {
    let mut found = BTreeMap::new();
    let mut open = vec![PathBuf::new()];
    while let Some(directory) = open.pop() {
        let failed = |error: io::Error| format!("{}: {error}", directory.display());
        for entry in fs::read_dir(root.join(&directory)).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let path = directory.join(entry.file_name());
            let metadata = entry.metadata().map_err(failed)?;
            let seen = Seen::of(&metadata)
                .ok_or_else(|| format!("{} is not a file, a directory or a link", path.display()))?;
            if seen.kind == FileKind::Dir {
                open.push(path.clone());
            }
            found.insert(path, seen);
            if found.len() > 2 * MOST_FILES {
                return Err(format!("there are more than {} files", 2 * MOST_FILES));
            }
        }
    }
    Ok(found)
}

/// The work of copying.
struct Copying<'a> {
    tree: &'a mut Tree,
    mount: &'a [u8],
    to: PathBuf,
    bytes: u64,
    origins: BTreeMap<PathBuf, Origin>,
    wanted: &'a Wanted,
}

impl Copying<'_> {
    fn all(&mut self) -> Result<(), Failed> {
        let mut open = vec![PathBuf::new()];
        // A directory that must not be written is closed when all is in it.
        let mut modes = Vec::new();
        while let Some(directory) = open.pop() {
            for name in self.names(&directory)? {
                self.wanted.check()?;
                let path = directory.join(OsStr::from_bytes(&name));
                let failed = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
                let inside = inside(self.mount, &path);
                let root = self.tree.root();
                let stat =
                    self.tree.stat(&Caller::ROOT, &root, &inside, false).map_err(|errno| failed(&errno))?;
                self.origins.insert(path.clone(), Origin::of(&stat));
                if self.origins.len() > MOST_FILES {
                    return Err(format!("there are more than {MOST_FILES} files to copy"));
                }
                let to = self.to.join(&path);
                match stat.kind {
                    FileKind::Dir => {
                        fs::DirBuilder::new().mode(0o700).create(&to).map_err(|error| failed(&error))?;
                        modes.push((to, stat.mode & 0o777));
                        open.push(path);
                    }
                    FileKind::File => {
                        let times = FileTimes::new().set_modified(time(stat.mtime));
                        self.file(&inside, &to, stat.mode & 0o777, times).map_err(|why| failed(&why))?;
                    }
                    FileKind::Symlink => {
                        let target = self.tree.read_link(&Caller::ROOT, &root, &inside);
                        let target = OsString::from_vec(target.map_err(|errno| failed(&errno))?);
                        symlink(target, &to).map_err(|error| failed(&error))?;
                    }
                    // A pipe is nothing to a program that runs elsewhere.
                    _ => {}
                }
            }
        }
        for (directory, mode) in modes.iter().rev() {
            let done = fs::set_permissions(directory, Permissions::from_mode(*mode));
            done.map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        Ok(())
    }

    fn names(&mut self, directory: &Path) -> Result<Vec<Vec<u8>>, Failed> {
        let failed = |errno: wardian_vfs::Errno| format!("{}: {errno}", directory.display());
        let (root, path) = (self.tree.root(), inside(self.mount, directory));
        let flags = OpenFlags::READ | OpenFlags::DIRECTORY;
        let handle = self.tree.open(&Caller::ROOT, &root, &path, flags, 0).map_err(failed)?;
        let (mut names, mut cursor) = (Vec::new(), 0);
        let read = loop {
            match self.tree.read_dir(&Caller::ROOT, &handle, cursor, NAMES) {
                Err(errno) => break Err(failed(errno)),
                Ok(entries) => match entries.last() {
                    None => break Ok(()),
                    Some(last) => {
                        cursor = last.next;
                        let all = entries.into_iter().map(|entry| entry.name);
                        names.extend(all.filter(|name| !matches!(&name[..], b"." | b"..")));
                    }
                },
            }
            if names.len() > MOST_FILES {
                break Err(format!("there are more than {MOST_FILES} files to copy"));
            }
        };
        self.tree.close(handle);
        read.map(|()| names)
    }

    fn file(&mut self, from: &[u8], to: &Path, mode: u32, times: FileTimes) -> Result<(), Failed> {
        let root = self.tree.root();
        let handle = self
            .tree
            .open(&Caller::ROOT, &root, from, OpenFlags::READ, 0)
            .map_err(|errno| errno.to_string())?;
        let copied = self.content(&handle, to, mode, times);
        self.tree.close(handle);
        copied
    }

    fn content(
        &mut self,
        handle: &wardian_vfs::Handle,
        to: &Path,
        mode: u32,
        times: FileTimes,
    ) -> Result<(), Failed> {
        let text = |error: io::Error| error.to_string();
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(text)?;
        let (mut piece, mut offset) = (vec![0; PIECE], 0);
        loop {
            self.wanted.check()?;
            let count = self.tree.pread(handle, &mut piece, offset).map_err(|errno| errno.to_string())?;
            if count == 0 {
                break;
            }
            (offset, self.bytes) = (offset + count as u64, self.bytes + count as u64);
            if self.bytes > MOST_BYTES {
                return Err(format!("there are more than {MOST_BYTES} bytes to copy"));
            }
            file.write_all(&piece[..count]).map_err(text)?;
        }
        file.set_times(times).map_err(text)?;
        file.set_permissions(Permissions::from_mode(mode)).map_err(text)
    }
}

/// A time of the sandbox, in nanoseconds since 1970; those before are the beginning.
fn time(nanos: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// The path in the sandbox.
fn inside(mount: &[u8], path: &Path) -> Vec<u8> {
    match path.as_os_str().as_bytes() {
        b"" => mount.to_vec(),
        path => [mount, b"/", path].concat(),
    }
}

impl Change {
    fn path(&self) -> &Path {
        match self {
            Change::Remove(path, _)
            | Change::Directory(path, _)
            | Change::Mode(path, _)
            | Change::File { path, .. }
            | Change::Link(path, _) => path,
        }
    }

    fn make(&self, tree: &mut Tree, mount: &[u8]) -> Result<(), Failed> {
        let path = self.path();
        self.make_at(tree, &inside(mount, path)).map_err(|errno| format!("{}: {errno}", path.display()))
    }

    fn make_at(&self, tree: &mut Tree, at: &[u8]) -> wardian_vfs::Result<()> {
        let root = tree.root();
        match self {
            Change::Remove(_, FileKind::Dir) => tree.rmdir(&USER, &root, at),
            Change::Remove(..) => tree.unlink(&USER, &root, at),
            Change::Directory(_, mode) => tree.mkdir(&USER, &root, at, *mode),
            Change::Mode(_, mode) => tree.chmod(&USER, &root, at, false, *mode),
            Change::Link(_, target) => {
                replace(tree, at)?;
                tree.symlink(&USER, target, &root, at)
            }
            Change::File { from, mode, mtime, .. } => {
                replace(tree, at)?;
                let flags = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCL;
                let mut handle = tree.open(&USER, &root, at, flags, 0o600)?;
                let written = fill(tree, &mut handle, from);
                tree.close(handle);
                written?;
                tree.chmod(&USER, &root, at, false, *mode)?;
                tree.utimes(&USER, &root, at, false, SetTime::Keep, SetTime::At(*mtime))
            }
        }
    }
}

/// Writes what a file on the host has in it, piece by piece: the sandbox's limit ends it, not the host's memory.
fn fill(tree: &mut Tree, handle: &mut wardian_vfs::Handle, from: &Path) -> wardian_vfs::Result<()> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits() as i32;
    let unreadable = |_: io::Error| wardian_vfs::Errno::EIO;
    let mut file = OpenOptions::new().read(true).custom_flags(no_link).open(from).map_err(unreadable)?;
    let mut piece = vec![0; PIECE];
    loop {
        let count = file.read(&mut piece).map_err(unreadable)?;
        if count == 0 {
            return Ok(());
        }
        let mut left = &piece[..count];
        while !left.is_empty() {
            let written = tree.write(handle, left)?;
            left = &left[written..];
        }
    }
}

/// Makes room for a new file or link, as a rename over the old one does.
fn replace(tree: &mut Tree, at: &[u8]) -> wardian_vfs::Result<()> {
    match tree.unlink(&USER, &tree.root(), at) {
        Ok(()) | Err(wardian_vfs::Errno::ENOENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

/// A new directory that only this user can enter, locked. Removes those that nobody locks any more.
fn new_directory() -> io::Result<(PathBuf, File)> {
    let me = rustix::process::geteuid().as_raw();
    let base = std::env::temp_dir().join(format!("wardian-copies-{me}"));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&base)?;
    let metadata = fs::symlink_metadata(&base)?;
    if !metadata.is_dir() || metadata.uid() != me || metadata.mode() & 0o077 != 0 {
        let why = format!("{} is not a directory that only this user can enter", base.display());
        return Err(io::Error::other(why));
    }
    for entry in fs::read_dir(&base)?.flatten() {
        if let Ok(left_behind) = File::open(entry.path())
            && flock(&left_behind, FlockOperation::NonBlockingLockExclusive).is_ok()
            && !is_young(&left_behind)
        {
            remove(&entry.path());
        }
    }
    let directory = base.join(new_id());
    fs::DirBuilder::new().mode(0o700).create(&directory)?;
    let lock = File::open(&directory)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    Ok((directory, lock))
}

/// Another process may have created it and not locked it yet.
fn is_young(directory: &File) -> bool {
    let created = directory.metadata().and_then(|metadata| metadata.modified());
    created.ok().and_then(|at| at.elapsed().ok()).is_none_or(|age| age < Duration::from_secs(10))
}

/// Removes a directory, also where a program has closed one in it.
fn remove(directory: &Path) {
    if fs::remove_dir_all(directory).is_ok() {
        return;
    }
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        let _ = fs::set_permissions(&directory, Permissions::from_mode(0o700));
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        open.extend(entries.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()));
    }
    if let Err(error) = fs::remove_dir_all(directory) {
        tracing::warn!(directory = %directory.display(), %error, "a copy of an overlay stays behind");
    }
}
