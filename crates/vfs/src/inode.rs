//! Inodes: everything about a file except its names.

use crate::content::FileBody;
use crate::dir::Dir;
use crate::place::Ino;
use crate::quota::{self, Usage};
use crate::stat::{Device, FileKind, Stat, now};
use std::num::NonZeroU64;
use std::sync::Arc;

/// One file of the tree.
#[derive(Clone)]
pub(crate) struct Inode {
    pub(crate) body: Body,
    pub(crate) atime: i64,
    pub(crate) mtime: i64,
    pub(crate) ctime: i64,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The number of names of a file; for a directory 1, or 0 once it is removed.
    pub(crate) nlink: u32,
    /// The file system it belongs to: 1 is the tree itself, each overlay has its own number.
    pub(crate) dev: u32,
    /// The inode number to show, if it differs from the inode's own: a lower file keeps its number when an overlay
    /// copies it up.
    pub(crate) shown_ino: Option<NonZeroU64>,
    /// Whether the quota counts it. What came from outside (the system, an overlay's lower layer) is free until the
    /// sandbox writes to it.
    pub(crate) charged: bool,
    /// Installed with the system: even the inode itself does not count against the quota, until it is charged.
    pub(crate) installed: bool,
}

/// What kind of file it is, with what only that kind has.
#[derive(Clone)]
pub(crate) enum Body {
    File(FileBody),
    Dir(Box<Dir>),
    Symlink(Arc<[u8]>),
    Fifo,
    Device(Device),
    /// The name of a socket, or what was copied up from a host directory.
    Socket,
}

/// An inode equals itself alone: clones of a tree share those that neither has changed.
impl PartialEq for Inode {
    fn eq(&self, other: &Inode) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Inode {}

impl Inode {
    pub(crate) fn new(body: Body, mode: u32, uid: u32, gid: u32, dev: u32) -> Inode {
        let now = now();
        Inode {
            body,
            atime: now,
            mtime: now,
            ctime: now,
            mode,
            uid,
            gid,
            nlink: 1,
            dev,
            shown_ino: None,
            charged: true,
            installed: false,
        }
    }

    pub(crate) fn kind(&self) -> FileKind {
        match &self.body {
            Body::File(_) => FileKind::File,
            Body::Dir(_) => FileKind::Dir,
            Body::Symlink(_) => FileKind::Symlink,
            Body::Fifo => FileKind::Fifo,
            Body::Device(device) => FileKind::Device(*device),
            Body::Socket => FileKind::Socket,
        }
    }

    pub(crate) fn dir(&self) -> Option<&Dir> {
        match &self.body {
            Body::Dir(dir) => Some(dir),
            _ => None,
        }
    }

    pub(crate) fn file(&self) -> Option<&FileBody> {
        match &self.body {
            Body::File(file) => Some(file),
            _ => None,
        }
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.body {
            Body::File(file) => file.size(),
            Body::Dir(_) => 4096,
            Body::Symlink(target) => target.len() as u64,
            Body::Fifo | Body::Device(_) | Body::Socket => 0,
        }
    }

    /// Marks it as installed with the system.
    pub(crate) fn into_installed(mut self) -> Inode {
        (self.charged, self.installed) = (false, true);
        self
    }

    /// Returns what the quota counts for it as it is.
    pub(crate) fn cost(&self) -> Usage {
        let mut cost = Usage::default();
        if self.charged {
            cost.inodes = 1;
            cost.bytes = match &self.body {
                Body::File(file) => file.charge(),
                Body::Symlink(target) => target.len() as u64,
                _ => 0,
            };
        }
        if self.charged || !self.installed {
            cost.metadata = self.metadata();
        }
        cost
    }

    /// Returns the memory that the inode itself uses.
    pub(crate) fn metadata(&self) -> u64 {
        quota::INODE
            + match &self.body {
                Body::File(file) => file.metadata(),
                // Of a link that is not charged, at least the memory.
                Body::Symlink(target) if !self.charged => target.len() as u64,
                Body::Dir(_) => quota::DIR,
                _ => 0,
            }
    }

    pub(crate) fn stat(&self, ino: Ino) -> Stat {
        let stored = match &self.body {
            Body::File(file) if file.is_own() => file.charge(),
            Body::File(file) => file.size(),
            _ => 0,
        };
        Stat {
            dev: u64::from(self.dev),
            ino: self.shown_ino.map_or(ino, NonZeroU64::get),
            kind: self.kind(),
            mode: self.mode,
            nlink: match &self.body {
                Body::Dir(dir) if self.nlink > 0 => 2 + dir.subdirs,
                _ => self.nlink,
            },
            uid: self.uid,
            gid: self.gid,
            size: self.size(),
            blocks: stored.div_ceil(512),
            rdev: if let Body::Device(device) = &self.body { device.rdev() } else { 0 },
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            version: self.file().map_or(0, FileBody::version),
        }
    }

    /// Notes that the content changed.
    pub(crate) fn touch(&mut self) {
        self.mtime = now();
        self.ctime = self.mtime;
    }
}
