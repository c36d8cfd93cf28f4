//! Open files.

use crate::place::{Ino, MountSpot};
use crate::tree::Tree;
use crate::{DirEntry, FileKind, Place};
use bitflags::bitflags;
use cap_std::fs::File;
use parking_lot::Mutex;
use std::sync::Arc;

bitflags! {
    /// How to open a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// For reading.
        const READ = 1;
        /// For writing.
        const WRITE = 1 << 1;
        /// Make it if it is not there.
        const CREATE = 1 << 2;
        /// With `CREATE`: `EEXIST` if it is there, even as a link that leads nowhere.
        const EXCL = 1 << 3;
        /// Empty it.
        const TRUNC = 1 << 4;
        /// Every write goes to the end.
        const APPEND = 1 << 5;
        /// `ENOTDIR` unless it is a directory.
        const DIRECTORY = 1 << 6;
        /// `ELOOP` if it is a symbolic link.
        const NOFOLLOW = 1 << 7;
        /// Just the place, without reading or writing: needs no permission, and with `NOFOLLOW` opens links.
        const PATH = 1 << 8;
        /// Never wait. The tree never does; it keeps the flag for pipes and terminals.
        const NONBLOCK = 1 << 9;
    }
}

/// An open file: plain data, with an offset of its own and no reference into the tree. It belongs to the
/// tree that opened it and to every clone made while it was open: each of them wants it (or a clone of it)
/// closed once by [`Tree::close`], or an unlinked file's space is not given back.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) open: Open,
    pub(crate) flags: OpenFlags,
    pub(crate) offset: u64,
    pub(crate) kind: FileKind,
    pub(crate) ino: u64,
    /// Opened on a path that is not writable: not even metadata may change through it.
    pub(crate) frozen: bool,
    /// Opened by root, whose writes leave set-user-id bits alone.
    pub(crate) by_root: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Open {
    /// `lower` is the host file to read from while an overlay has not copied the content.
    Inode { ino: Ino, lower: Option<Arc<File>>, listing: Option<Listing> },
    /// A file or directory on the host.
    Host { spot: MountSpot, file: Option<Arc<File>>, listing: Listing },
    /// A computed file, as it was when opened.
    Virtual { spot: MountSpot, content: Arc<[u8]>, listing: Listing },
}

/// A directory that is not all in memory is read whole when a listing starts, and the rest of the listing
/// is served from that, or from another reading if it was given up meanwhile (see `list.rs`). Handles of one
/// opening share it.
pub(crate) type Listing = Arc<Fetched>;
/// The entries of a directory, until they are let go to save memory.
pub(crate) type Fetched = Mutex<Option<Arc<[DirEntry]>>>;

impl Handle {
    /// What kind of file it is.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// How it was opened.
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// Sets or clears `APPEND` and `NONBLOCK` as in `flags`; the others stay as they were opened.
    pub fn set_flags(&mut self, flags: OpenFlags) {
        let changeable = OpenFlags::APPEND | OpenFlags::NONBLOCK;
        self.flags = (self.flags - changeable) | (flags & changeable);
    }

    /// The inode number, as `stat` shows it.
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// Where the next read or write happens.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Where it is: what `fchdir` and the `*at` calls start from.
    pub fn place(&self) -> Place {
        match &self.open {
            Open::Inode { ino, .. } => Place::inode(*ino),
            Open::Host { spot, .. } | Open::Virtual { spot, .. } => Place::mounted(spot.clone()),
        }
    }

    /// Could using it mean waiting for the host's disk? Stays as it was when opened.
    pub fn is_host(&self) -> bool {
        match &self.open {
            Open::Inode { lower, listing, .. } => lower.is_some() || listing.is_some(),
            Open::Host { .. } => true,
            Open::Virtual { .. } => false,
        }
    }

    /// Bytes of memory that it keeps beside the tree: a computed file as it was when opened, the listing of a directory
    /// that is not all in memory.
    pub fn held_bytes(&self) -> usize {
        let listed = |listing: &Listing| {
            listing.lock().as_ref().map_or(0, |entries| {
                entries.iter().map(|entry| size_of::<DirEntry>() + entry.name.capacity()).sum()
            })
        };
        match &self.open {
            Open::Inode { listing, .. } => listing.as_ref().map_or(0, listed),
            Open::Host { listing, .. } => listed(listing),
            Open::Virtual { content, listing, .. } => content.len() + listed(listing),
        }
    }

    /// A handle of its own on the same open file in `tree`, at the same offset: one more to close. `tree`
    /// is the one it belongs to or a clone made while it was open.
    pub fn duplicate_for(&self, tree: &mut Tree) -> Handle {
        tree.count_open(self);
        self.clone()
    }
}

impl Tree {
    pub(crate) fn count_open(&mut self, handle: &Handle) {
        if let Open::Inode { ino, .. } = handle.open {
            *self.opens.entry(ino).or_insert(0) += 1;
        }
    }

    /// Closes a handle. With the last one of an unlinked file, the file goes.
    pub fn close(&mut self, handle: Handle) {
        let Open::Inode { ino, .. } = handle.open else { return };
        match self.opens.get_mut(&ino) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => {
                self.opens.remove(&ino);
                self.forget_if_unlinked(ino);
            }
            None => {}
        }
    }

    /// Closes every handle of this tree at once, for a clone that takes none of them along.
    pub fn close_all(&mut self) {
        self.close_all_but(std::iter::empty());
    }

    /// Closes every handle but these, for a clone that takes only them along.
    pub fn close_all_but<'h>(&mut self, kept: impl Iterator<Item = &'h Handle>) {
        let before = std::mem::take(&mut self.opens);
        for handle in kept {
            self.count_open(handle);
        }
        for (ino, _) in before {
            if !self.opens.contains_key(&ino) {
                self.forget_if_unlinked(ino);
            }
        }
    }

    fn forget_if_unlinked(&mut self, ino: Ino) {
        if self.inode(ino).is_ok_and(|inode| inode.nlink == 0) {
            self.forget(ino);
        }
    }
}
