//! Open files.

use crate::held::Held;
use crate::place::{Ino, MountSpot};
use crate::tree::Tree;
use crate::{DirEntry, FileKind, Place};
use bitflags::bitflags;
use parking_lot::Mutex;
use std::sync::Arc;

bitflags! {
    /// How to open a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct OpenFlags: u32 {
        /// Opens for reading.
        const READ = 1;
        /// Opens for writing.
        const WRITE = 1 << 1;
        /// Creates the file if it does not exist.
        const CREATE = 1 << 2;
        /// With `CREATE`: returns `EEXIST` if the file exists, even as a dangling link.
        const EXCL = 1 << 3;
        /// Truncates the file.
        const TRUNC = 1 << 4;
        /// Makes every write append.
        const APPEND = 1 << 5;
        /// Returns `ENOTDIR` unless it is a directory.
        const DIRECTORY = 1 << 6;
        /// Returns `ELOOP` if it is a symbolic link.
        const NOFOLLOW = 1 << 7;
        /// Opens only the place, without reading or writing: needs no permission, and with `NOFOLLOW` opens links.
        const PATH = 1 << 8;
        /// Never waits. The tree never does; it keeps the flag for pipes and terminals.
        const NONBLOCK = 1 << 9;
    }
}

/// An open file: plain data, with its own offset and no reference into the tree. It belongs to the tree that opened it
/// and to every clone made while it was open: in each of them it (or a clone of it) must be closed once with
/// [`Tree::close`], or the space of an unlinked file is not freed.
#[derive(Clone, Debug)]
pub struct Handle {
    pub(crate) open: Open,
    pub(crate) flags: OpenFlags,
    pub(crate) offset: u64,
    pub(crate) kind: FileKind,
    pub(crate) ino: u64,
    /// Opened on a path that is not writable: not even metadata may change through it.
    pub(crate) frozen: bool,
    /// Opened by root, whose writes keep set-user-id bits.
    pub(crate) by_root: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Open {
    /// `lower` is the host file to read from while an overlay has not copied the content.
    Inode { ino: Ino, lower: Option<Arc<Held>>, listing: Option<Listing> },
    /// A file or directory on the host.
    Host { spot: MountSpot, file: Option<Arc<Held>>, listing: Listing },
    /// A computed file, as it was when opened.
    Virtual { spot: MountSpot, content: Arc<[u8]>, listing: Listing },
}

/// A directory that is not entirely in memory is read completely when a listing starts. The rest of the listing is
/// served from that, or from another read if it was dropped meanwhile (see `list.rs`). Handles of one opening share it.
pub(crate) type Listing = Arc<Fetched>;
/// The entries of a directory, until they are dropped to save memory.
pub(crate) type Fetched = Mutex<Option<Arc<[DirEntry]>>>;

impl Handle {
    /// Returns the kind of file.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// Returns the flags it was opened with.
    pub fn flags(&self) -> OpenFlags {
        self.flags
    }

    /// Sets or clears `APPEND` and `NONBLOCK` as in `flags`; the others do not change.
    pub fn set_flags(&mut self, flags: OpenFlags) {
        let changeable = OpenFlags::APPEND | OpenFlags::NONBLOCK;
        self.flags = (self.flags - changeable) | (flags & changeable);
    }

    /// Returns the inode number, as `stat` shows it.
    pub fn ino(&self) -> u64 {
        self.ino
    }

    /// Returns the offset of the next read or write.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns its place: what `fchdir` and the `*at` calls start from.
    pub fn place(&self) -> Place {
        match &self.open {
            Open::Inode { ino, .. } => Place::inode(*ino),
            Open::Host { spot, .. } | Open::Virtual { spot, .. } => Place::mounted(spot.clone()),
        }
    }

    /// Returns whether using it may have to wait for the host's disk. Does not change after opening.
    pub fn is_host(&self) -> bool {
        match &self.open {
            Open::Inode { lower, listing, .. } => lower.is_some() || listing.is_some(),
            Open::Host { .. } => true,
            Open::Virtual { .. } => false,
        }
    }

    /// Returns the bytes of memory that it uses outside the tree: a computed file as it was when opened, or the listing
    /// of a directory that is not entirely in memory.
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

    /// Returns a separate handle on the same open file in `tree`, at the same offset, which must be closed as well.
    /// `tree` is the one it belongs to or a clone made while it was open.
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

    /// Closes a handle. Closing the last handle of an unlinked file frees the file.
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

    /// Closes every handle of this tree at once, for a clone that keeps none of them.
    pub fn close_all(&mut self) {
        self.close_all_but(std::iter::empty());
    }

    /// Closes every handle but these, for a clone that keeps only them.
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
