//! Access to a host directory, and never to anything outside it.
//!
//! All access goes through `cap-std`, which keeps every path within the opened directory whatever links or races it
//! meets. Paths arrive here with their links already resolved by the sandbox's own lookup (so that an absolute link
//! leads to the sandbox's root, not the host's); a link that someone swaps in meanwhile is not followed out.
//!
//! Every host file appears as owned by the sandbox user (1000), with its mode bits: the sandbox may do what the process
//! that runs it may do, and a file of another user that this process cannot read stays unreadable.

use crate::handle::OpenFlags;
use crate::held::{Held, Holding, Slot};
use crate::stat::{SetTime, Stat};
use crate::{Caller, Errno, FileKind, HostAccess, HostRefusal, HostRoots, Result};
use cap_std::ambient_authority;
use cap_std::fs::{
    Dir, DirBuilder, DirBuilderExt, File, FileType, FileTypeExt, Metadata, MetadataExt, OpenOptions,
    OpenOptionsExt, Permissions, PermissionsExt,
};
use rustix::fs::{AtFlags, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, statat, utimensat};
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A name with its inode number and kind.
pub(crate) type Listed = (Vec<u8>, u64, FileKind);

/// An opened host directory.
pub(crate) struct HostDir {
    root: Dir,
    holding: Holding,
    /// Where journals of changes to it are kept.
    state: Option<PathBuf>,
    /// Where it was when it was opened, to describe it.
    path: PathBuf,
    /// Whether nothing may ever be changed in it, not even by applying an overlay.
    read_only: bool,
    /// It holds a descriptor as long as it is mounted.
    _slot: Slot,
}

/// The prefix of the directories in which an apply stages contents. Guests can neither see nor create such names.
const STAGE: &[u8] = b".wardian-apply-";
const STAGE_DIGITS: usize = 32;

/// Returns a new, unguessable name for such a directory.
pub(crate) fn stage_name() -> Result<Vec<u8>> {
    let mut random = [0; STAGE_DIGITS / 2];
    getrandom::fill(&mut random).map_err(|_| Errno::EIO)?;
    Ok([STAGE, format!("{:032x}", u128::from_le_bytes(random)).as_bytes()].concat())
}

/// Returns whether this is one of those names.
pub(crate) fn is_stage(name: &[u8]) -> bool {
    let digits = name.strip_prefix(STAGE);
    digits.is_some_and(|digits| digits.len() == STAGE_DIGITS && digits.iter().all(u8::is_ascii_hexdigit))
}

/// Checks that guests may see this path.
fn visible(path: &[u8]) -> Result<&Path> {
    if path.split(|byte| *byte == b'/').any(is_stage) { Err(Errno::ENOENT) } else { Ok(rel(path)) }
}

/// Checks that guests may create something at this path.
fn makeable(path: &[u8]) -> Result<&Path> {
    visible(path).map_err(|_| Errno::EPERM)
}

impl HostDir {
    /// Opens one, which has to be below one of `roots` if there are any to be below of.
    pub(crate) fn open(
        path: &Path,
        access: HostAccess,
        state: Option<PathBuf>,
        roots: Option<&HostRoots>,
    ) -> std::result::Result<HostDir, HostRefusal> {
        let slot = Slot::of_directory()?;
        let (root, writable) = match roots {
            Some(roots) => roots.open(path, access)?,
            None => (Dir::open_ambient_dir(path, ambient_authority()).map_err(Errno::from)?, true),
        };
        let path = std::path::absolute(path).map_err(Errno::from)?;
        let holding = Holding::default();
        Ok(HostDir { root, holding, state, path, read_only: !writable, _slot: slot })
    }

    /// Returns whether nothing may ever be changed in it.
    pub(crate) fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Opens something to keep it open.
    pub(crate) fn hold(&self, open: impl FnOnce(&HostDir) -> Result<File>) -> Result<Arc<Held>> {
        self.holding.hold(|| open(self))
    }

    pub(crate) fn root(&self) -> &Dir {
        &self.root
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn state(&self) -> Option<&Path> {
        self.state.as_deref()
    }

    /// Returns the name of this directory's journal: the same for every path that leads to the directory.
    pub(crate) fn key(&self) -> Result<String> {
        let found = self.root.dir_metadata()?;
        Ok(format!("{:x}-{:x}", found.dev(), found.ino()))
    }

    pub(crate) fn stat(&self, path: &[u8]) -> Result<Stat> {
        Ok(show(&self.root.symlink_metadata(visible(path)?)?))
    }

    pub(crate) fn read_link(&self, path: &[u8]) -> Result<Vec<u8>> {
        Ok(self.root.read_link_contents(visible(path)?)?.into_os_string().into_vec())
    }

    /// Returns the names with inode numbers and kinds, without `.` and `..`.
    pub(crate) fn list(&self, path: &[u8]) -> Result<Vec<Listed>> {
        list_open(&self.open_dir(path)?)
    }

    /// Opens a directory to list it.
    pub(crate) fn open_dir(&self, path: &[u8]) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags((OFlags::DIRECTORY | OFlags::NOFOLLOW).bits() as i32);
        Ok(self.root.open_with(visible(path)?, &options)?)
    }

    /// Opens a regular file, and nothing else: never waits for a pipe's other end.
    pub(crate) fn open_file(&self, path: &[u8], flags: OpenFlags) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(flags.contains(OpenFlags::READ));
        options.write(flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNC));
        if !flags.intersects(OpenFlags::READ | OpenFlags::WRITE | OpenFlags::TRUNC) {
            options.read(true);
        }
        options.custom_flags((OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY).bits() as i32);
        let file = self.root.open_with(visible(path)?, &options)?;
        if !file.metadata()?.is_file() {
            return Err(Errno::ENXIO);
        }
        if flags.contains(OpenFlags::TRUNC) {
            file.set_len(0)?;
        }
        Ok(file)
    }

    pub(crate) fn create(&self, path: &[u8], flags: OpenFlags, mode: u32) -> Result<File> {
        let mut options = OpenOptions::new();
        options.read(flags.contains(OpenFlags::READ)).write(true).create_new(true);
        options.mode(mode & 0o1777);
        Ok(self.root.open_with(makeable(path)?, &options)?)
    }

    pub(crate) fn mkdir(&self, path: &[u8], mode: u32) -> Result<()> {
        let mut builder = DirBuilder::new();
        builder.mode(mode);
        Ok(self.root.create_dir_with(makeable(path)?, &builder)?)
    }

    pub(crate) fn remove(&self, path: &[u8]) -> Result<()> {
        if self.root.symlink_metadata(visible(path)?)?.is_dir() {
            Ok(self.root.remove_dir(rel(path))?)
        } else {
            Ok(self.root.remove_file(rel(path))?)
        }
    }

    pub(crate) fn rename(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let kind = kind_of(self.root.symlink_metadata(visible(from)?)?.file_type());
        match kind {
            FileKind::Symlink if leads_out(to, &self.read_link(from)?) => return Err(Errno::EPERM),
            FileKind::Dir if depth(to) < depth(from) => self.check_links_below(from, to)?,
            _ => {}
        }
        Ok(self.root.rename(rel(from), &self.root, makeable(to)?)?)
    }

    pub(crate) fn link(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let kind = kind_of(self.root.symlink_metadata(visible(from)?)?.file_type());
        match kind {
            FileKind::File => {}
            FileKind::Symlink if !leads_out(to, &self.read_link(from)?) => {}
            _ => return Err(Errno::EPERM),
        }
        Ok(self.root.hard_link(rel(from), &self.root, makeable(to)?)?)
    }

    /// Creates a link, unless it would lead a host program that follows it out of the directory.
    pub(crate) fn symlink(&self, target: &[u8], path: &[u8]) -> Result<()> {
        if leads_out(path, target) {
            return Err(Errno::EPERM);
        }
        Ok(self.root.symlink_contents(OsStr::from_bytes(target), makeable(path)?)?)
    }

    /// Checks a directory that is moving up: no link in it may then lead out.
    fn check_links_below(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let mut pending = vec![Vec::new()];
        while let Some(below) = pending.pop() {
            for (name, _, kind) in self.list(&crate::name::join(from, &below))? {
                let inside = crate::name::join(&below, &name);
                match kind {
                    FileKind::Dir => pending.push(inside),
                    FileKind::Symlink => {
                        let target = self.read_link(&crate::name::join(from, &inside))?;
                        // A link that led out before was the host's own.
                        let before = leads_out(&crate::name::join(from, &inside), &target);
                        if !before && leads_out(&crate::name::join(to, &inside), &target) {
                            return Err(Errno::EPERM);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Sets permission bits; never set-user-id or set-group-id, which would take effect on the host.
    pub(crate) fn chmod(&self, path: &[u8], mode: u32) -> Result<()> {
        if mode & 0o6000 != 0 {
            return Err(Errno::EPERM);
        }
        Ok(self.root.set_permissions(visible(path)?, Permissions::from_mode(mode))?)
    }

    pub(crate) fn utimes(&self, path: &[u8], atime: SetTime, mtime: SetTime) -> Result<()> {
        let (dir, name) = crate::name::split(path);
        visible(path)?;
        let dir = self.root.open_dir(rel(dir))?;
        let times = Timestamps { last_access: timespec(atime), last_modification: timespec(mtime) };
        // One name, and not followed if it is a link: it cannot lead anywhere.
        Ok(utimensat(&dir, rel(name), &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }
}

/// Lists an open directory, from its start.
pub(crate) fn list_open(dir: &File) -> Result<Vec<Listed>> {
    let mut entries = rustix::fs::Dir::new(OwnedFd::from(dir.try_clone()?.into_std()))?;
    entries.rewind();
    let mut listed = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." || is_stage(name) {
            continue;
        }
        let mut kind = entry.file_type();
        if kind == rustix::fs::FileType::Unknown {
            // Some file systems do not say.
            match statat(dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind = rustix::fs::FileType::from_raw_mode(stat.st_mode),
                Err(_) => continue,
            }
        }
        let kind = match kind {
            rustix::fs::FileType::RegularFile => FileKind::File,
            rustix::fs::FileType::Directory => FileKind::Dir,
            rustix::fs::FileType::Symlink => FileKind::Symlink,
            rustix::fs::FileType::Fifo => FileKind::Fifo,
            _ => FileKind::Socket,
        };
        listed.push((name.to_vec(), entry.ino(), kind));
    }
    Ok(listed)
}

/// Returns whether following `target` from a link at `path` would leave the mounted directory.
pub(crate) fn leads_out(path: &[u8], target: &[u8]) -> bool {
    if target.starts_with(b"/") {
        return true;
    }
    let mut level = depth(path).saturating_sub(1);
    for part in target.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if level == 0 => return true,
            b".." => level -= 1,
            _ => level += 1,
        }
    }
    false
}

/// Returns the number of names in a path.
fn depth(path: &[u8]) -> usize {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).count()
}

fn rel(path: &[u8]) -> &Path {
    if path.is_empty() { Path::new(".") } else { Path::new(OsStr::from_bytes(path)) }
}

fn timespec(time: SetTime) -> Timespec {
    match time {
        SetTime::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        SetTime::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        SetTime::At(ns) => {
            Timespec { tv_sec: ns.div_euclid(1_000_000_000), tv_nsec: ns.rem_euclid(1_000_000_000) }
        }
    }
}

fn kind_of(kind: FileType) -> FileKind {
    if kind.is_dir() {
        FileKind::Dir
    } else if kind.is_symlink() {
        FileKind::Symlink
    } else if kind.is_file() {
        FileKind::File
    } else if kind.is_fifo() {
        FileKind::Fifo
    } else {
        // Sockets, and the host's devices, which are no business of a sandbox's either.
        FileKind::Socket
    }
}

/// A host file's metadata as the sandbox sees it.
pub(crate) fn show(metadata: &Metadata) -> Stat {
    let ns = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Stat {
        dev: 0,
        ino: metadata.ino(),
        kind: kind_of(metadata.file_type()),
        mode: metadata.mode() & 0o7777,
        nlink: u32::try_from(metadata.nlink()).unwrap_or(u32::MAX),
        uid: Caller::USER.uid,
        gid: Caller::USER.gid,
        size: metadata.size(),
        blocks: metadata.blocks(),
        rdev: 0,
        atime: ns(metadata.atime(), metadata.atime_nsec()),
        mtime: ns(metadata.mtime(), metadata.mtime_nsec()),
        ctime: ns(metadata.ctime(), metadata.ctime_nsec()),
        version: 0,
    }
}
