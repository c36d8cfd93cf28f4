//! The quota of a tree and its current usage. The counters are exact after every operation.
//!
//! The byte limit counts all host memory that a file uses: its content, plus a flat amount for each inode and each name.
//! Otherwise a million empty files would be free. The amounts are measured values, rounded up (`vfs:
//! memory::what_is_charged_covers_the_memory_it_takes`).

use crate::inode::{Body, Inode};
use crate::name::INLINE;
use crate::place::{Ino, MountSpot, Place, Spot};
use crate::{Errno, Result, Tree};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::ops::{Add, AddAssign, SubAssign};
use std::sync::Arc;

/// An inode in the tree's table.
pub(crate) const INODE: u64 = 320;
/// Additional cost of a directory's inode: the map of its names.
pub(crate) const DIR: u64 = 1024;
/// Additional cost of a file of more than one chunk: the map of its chunks.
pub(crate) const CHUNK_MAP: u64 = 512;
/// A name in its directory.
const NAME: u64 = 192;
/// What a tree stores about a file below an overlay, in addition to its path.
const BELOW: u64 = 320;
/// The header of a reference-counted allocation.
const SHARED: u64 = 32;

/// Returns what a name costs: a long one has its own allocation.
pub(crate) fn name_cost(name: &[u8]) -> u64 {
    NAME + if name.len() > INLINE { name.len() as u64 + SHARED } else { 0 }
}

/// Returns what a note about a lower file costs; an overlay's root is part of the mount.
pub(crate) fn spot_cost(spot: &MountSpot) -> u64 {
    if spot.path.is_empty() { 0 } else { BELOW + SHARED + spot.path.len() as u64 }
}

/// Returns what so many files and directories cost that were given from outside, without their content and the length of
/// their names.
pub(crate) fn given_inodes(files: u64, dirs: u64) -> Usage {
    let inodes = files + dirs;
    Usage { bytes: 0, inodes, metadata: inodes * (INODE + NAME) + dirs * DIR }
}

/// Returns the memory that an inode takes. Files that are given from outside count as a whole, and not each by itself; here
/// they are told apart from what another tree has.
fn memory(inode: &Inode) -> u64 {
    let content = match &inode.body {
        Body::File(file) => file.kept(),
        Body::Symlink(target) if inode.charged => target.len() as u64,
        _ => 0,
    };
    content + inode.metadata() + inode.dir().map_or(0, |dir| dir.names_memory())
}

/// Returns what the notes about lower files cost that `theirs` does not have.
fn notes_beyond<V: PartialEq>(ours: &OrdMap<MountSpot, V>, theirs: &OrdMap<MountSpot, V>) -> u64 {
    let costs = theirs.diff(ours).map(|change| match change {
        DiffItem::Add(spot, _) | DiffItem::Update { new: (spot, _), .. } => spot_cost(spot),
        DiffItem::Remove(..) => 0,
    });
    costs.sum()
}

/// How much a tree may hold. `u64::MAX` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes in files (their sizes, minus whole 64 KiB blocks never written) and in symbolic links, plus what inodes and
    /// names use: [`Usage::total`].
    pub bytes: u64,
    /// Files, directories, links and so on; two names of one file count once. The same number of additional names (hard
    /// links) is allowed on top.
    pub inodes: u64,
}

impl Quota {
    /// No limits.
    pub const NONE: Quota = Quota { bytes: u64::MAX, inodes: u64::MAX };
}

/// How much a tree holds of its own, excluding what was installed and what is on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Bytes of content.
    pub bytes: u64,
    /// Inodes, counted as in [`Quota::inodes`].
    pub inodes: u64,
    /// Bytes used by inodes, names and notes about files below overlays.
    pub metadata: u64,
}

impl Usage {
    /// Returns what [`Quota::bytes`] limits.
    pub fn total(&self) -> u64 {
        self.bytes.saturating_add(self.metadata)
    }

    pub(crate) fn metadata(metadata: u64) -> Usage {
        Usage { metadata, ..Usage::default() }
    }
}

impl Add for Usage {
    type Output = Usage;

    fn add(mut self, other: Usage) -> Usage {
        self += other;
        self
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.bytes += other.bytes;
        self.inodes += other.inodes;
        self.metadata += other.metadata;
    }
}

impl SubAssign for Usage {
    fn sub_assign(&mut self, other: Usage) {
        self.bytes -= other.bytes;
        self.inodes -= other.inodes;
        self.metadata -= other.metadata;
    }
}

impl Tree {
    /// Returns the limits.
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Sets the limits. Existing files stay, even above them.
    pub fn set_quota(&mut self, quota: Quota) {
        self.quota = quota;
    }

    /// Returns the current usage.
    pub fn usage(&self) -> Usage {
        self.used
    }

    /// Returns whether the number of files, or of their names, is what prevents creating another.
    pub fn is_out_of_files(&self) -> bool {
        self.used.inodes >= self.quota.inodes || self.extra_links >= self.quota.inodes
    }

    /// Charges a file of so many bytes in so many new directories, which an embedder is about to install for one sandbox,
    /// to the quota for good. Returns `ENOSPC` if there is no room.
    pub fn charge_given(&mut self, bytes: u64, dirs: u64) -> Result<()> {
        let mut charge = given_inodes(1, dirs);
        charge.bytes = bytes;
        self.check_fits(charge)?;
        self.given += charge;
        self.used += charge;
        Ok(())
    }

    /// Returns how many bytes this tree keeps that `other` does not: files that both share count once. Of a file
    /// that differs the chunks that differ count, of a directory all names. Files that were given from outside (a mount's,
    /// a package's) count like any other.
    pub fn bytes_beyond(&self, other: &Tree) -> u64 {
        let files = other.inodes.diff(&self.inodes).map(|change| match change {
            DiffItem::Add(_, inode) => memory(inode),
            DiffItem::Update { old: (_, old), new: (_, new) } if !Arc::ptr_eq(old, new) => {
                match (&old.body, &new.body) {
                    (Body::File(theirs), Body::File(ours)) => ours.bytes_beyond(theirs) + new.metadata(),
                    _ => memory(new),
                }
            }
            DiffItem::Update { .. } | DiffItem::Remove(..) => 0,
        });
        let notes = notes_beyond(&self.copied, &other.copied) + notes_beyond(&self.below, &other.below);
        files.sum::<u64>() + notes
    }

    /// Returns the current usage, recounted from the files themselves: [`Tree::usage`] must always equal it.
    pub fn recount(&self) -> Usage {
        let mut sum = Usage::default();
        for (_, inode) in self.all_inodes() {
            sum += inode.cost();
            sum.metadata += inode.dir().map_or(0, |dir| dir.names_cost());
        }
        let notes = self.copied.keys().chain(self.below.keys());
        sum + self.mounts.charge() + self.given + Usage::metadata(notes.map(spot_cost).sum())
    }

    /// Returns whether the quota counts what is at this place.
    pub(crate) fn is_charged(&self, place: &Place) -> bool {
        match place.0 {
            Spot::Inode(ino) => self.inode(ino).is_ok_and(|inode| inode.charged),
            Spot::Mount(_) => false,
        }
    }

    pub(crate) fn room(&self) -> u64 {
        self.quota.bytes.saturating_sub(self.used.total())
    }

    pub(crate) fn check_room(&self, bytes: u64, inodes: u64) -> Result<()> {
        let fits = bytes <= self.room() && inodes <= self.quota.inodes.saturating_sub(self.used.inodes);
        if fits { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    pub(crate) fn check_fits(&self, cost: Usage) -> Result<()> {
        self.check_room(cost.total(), cost.inodes)
    }

    /// One more name for a file that has one.
    pub(crate) fn check_extra_link(&self) -> Result<()> {
        if self.extra_links < self.quota.inodes { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    /// Returns what a new name in `dir` costs, including what is noted about the file below it in an overlay.
    pub(crate) fn entry_cost(&self, dir: Ino, name: &[u8]) -> Result<u64> {
        let lower = self.dir(dir)?.lower.as_ref().map(|lower| lower.child(name));
        let note = lower.filter(|spot| !self.below.contains_key(spot));
        Ok(name_cost(name) + note.map_or(0, |spot| spot_cost(&spot)))
    }

    /// Changes an inode and updates the counters. The caller has checked that there is space.
    pub(crate) fn update<T>(&mut self, ino: Ino, change: impl FnOnce(&mut Inode) -> T) -> Result<T> {
        let inode = self.inode_mut(ino)?;
        let before = inode.cost();
        let done = change(inode);
        let after = inode.cost();
        self.used -= before;
        self.used += after;
        Ok(done)
    }
}
