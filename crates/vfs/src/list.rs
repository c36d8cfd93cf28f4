//! Reading directories.

use crate::dir::first_key;
use crate::handle::{Fetched, Handle, Listing, Open, OpenFlags};
use crate::host::list_open;
use crate::place::Ino;
use crate::{Caller, Errno, FileKind, Result, Tree};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::{Arc, Weak};

/// One entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Its inode number.
    pub ino: u64,
    /// Its kind.
    pub kind: FileKind,
    /// The cursor that continues after this entry.
    pub next: u64,
}

impl Tree {
    /// Returns up to `max` entries, including `.` and `..`, from a cursor on: 0, or the `next` of the last entry seen. A
    /// cursor stays valid while entries are added and removed: an entry that exists throughout is listed once.
    pub fn read_dir(&self, who: &Caller, handle: &Handle, cursor: u64, max: usize) -> Result<Vec<DirEntry>> {
        if handle.kind != FileKind::Dir {
            return Err(Errno::ENOTDIR);
        }
        if handle.flags.contains(OpenFlags::PATH) {
            return Err(Errno::EBADF);
        }
        match &handle.open {
            Open::Inode { ino, listing: None, .. } => self.list_inode(*ino, cursor, max),
            Open::Inode { listing: Some(listing), .. }
            | Open::Host { listing, .. }
            | Open::Virtual { listing, .. } => {
                let entries = self.listed(listing, cursor, || self.fetch(who, handle))?;
                let start = entries.partition_point(|entry| entry.next <= cursor);
                Ok(entries[start..].iter().take(max).cloned().collect())
            }
        }
    }

    /// Returns a listing that must be fetched as a whole: freshly fetched for cursor 0, else the previous one if it is
    /// still there. Fetching it again gives the same cursors for the same names.
    fn listed(
        &self,
        listing: &Listing,
        cursor: u64,
        fetch: impl FnOnce() -> Result<Arc<[DirEntry]>>,
    ) -> Result<Arc<[DirEntry]>> {
        let kept = listing.lock().clone();
        if let Some(entries) = kept.filter(|_| cursor > 0) {
            return Ok(entries);
        }
        let entries = fetch()?;
        *listing.lock() = Some(entries.clone());
        self.listings.keep(listing, entries.len());
        Ok(entries)
    }

    fn list_inode(&self, ino: Ino, cursor: u64, max: usize) -> Result<Vec<DirEntry>> {
        let inode = self.inode(ino)?;
        let dir = inode.dir().ok_or(Errno::ENOTDIR)?;
        if inode.nlink == 0 {
            return Ok(Vec::new()); // removed: not even dots are left
        }
        let dots = dots(inode.stat(ino).ino, self.stat_inode(dir.parent).map_or(0, |stat| stat.ino));
        let mut listed: Vec<_> = dots.into_iter().skip(cursor.min(2) as usize).take(max).collect();
        for (key, entry) in dir.entries_from(cursor.max(2)) {
            if listed.len() >= max {
                break;
            }
            if let Some(ino) = entry.target.ino() {
                let stat = self.stat_inode(ino)?;
                let (ino, kind) = (stat.ino, stat.kind);
                listed.push(DirEntry { name: entry.name.to_vec(), ino, kind, next: key + 1 });
            }
        }
        Ok(listed)
    }

    /// Returns the whole listing of a directory that is not entirely in memory.
    fn fetch(&self, who: &Caller, handle: &Handle) -> Result<Arc<[DirEntry]>> {
        let place = self.settle(&handle.place());
        let stat = self.stat_handle(who, handle)?;
        if stat.nlink == 0 {
            return Ok([].into());
        }
        let mut names = match &handle.open {
            Open::Host { file: Some(dir), .. } => list_open(dir)?,
            _ => self.list_names(who, &place)?,
        };
        // The order of in-memory directories, so that cursors mean the same.
        names.sort_by_cached_key(|(name, ..)| (first_key(name), name.clone()));
        let above = self.up(&place).and_then(|up| self.stat_place(who, &up)).map_or(0, |stat| stat.ino);
        let mut entries = dots(stat.ino, above).to_vec();
        let mut last = 0;
        for (name, ino, kind) in names {
            last = first_key(&name).max(last + 1);
            entries.push(DirEntry { name, ino, kind, next: last + 1 });
        }
        Ok(entries.into())
    }
}

/// The listings kept for open directories: the last ones fetched, so that a guest cannot fill memory by starting to read
/// the same large directory through thousands of descriptors.
#[derive(Default)]
pub(crate) struct Listings(Mutex<VecDeque<(Weak<Fetched>, usize)>>);

/// How many entries all kept listings may have together, except for a single listing, which may be of any size.
const ENTRIES_KEPT: usize = 1 << 16;
/// How many listings are kept.
const LISTINGS_KEPT: usize = 64;

impl Listings {
    fn keep(&self, listing: &Listing, len: usize) {
        let mut kept = self.0.lock();
        kept.retain(|(other, _)| other.strong_count() > 0 && other.as_ptr() != Arc::as_ptr(listing));
        kept.push_back((Arc::downgrade(listing), len));
        let mut total: usize = kept.iter().map(|(_, len)| len).sum();
        while kept.len() > 1 && (total > ENTRIES_KEPT || kept.len() > LISTINGS_KEPT) {
            let Some((oldest, len)) = kept.pop_front() else { break };
            total -= len;
            if let Some(oldest) = oldest.upgrade() {
                *oldest.lock() = None;
            }
        }
    }
}

impl Clone for Listings {
    fn clone(&self) -> Listings {
        Listings(Mutex::new(self.0.lock().clone()))
    }
}

fn dots(ino: u64, parent: u64) -> [DirEntry; 2] {
    [
        DirEntry { name: b".".to_vec(), ino, kind: FileKind::Dir, next: 1 },
        DirEntry { name: b"..".to_vec(), ino: parent, kind: FileKind::Dir, next: 2 },
    ]
}
