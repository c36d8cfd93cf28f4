//! How much a tree may hold, and how much it does. The counters are exact after every operation.

use crate::inode::Inode;
use crate::place::{Place, Spot};
use crate::{Errno, Result, Tree};

/// How much a tree may hold. `u64::MAX` is no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Bytes in files (their sizes, less whole 64 KiB blocks never written) and in symbolic links.
    pub bytes: u64,
    /// Files, directories, links and so on; two names of one file count once. As many additional names
    /// (hard links) are allowed on top, since they too take memory.
    pub inodes: u64,
}

impl Quota {
    /// No limits.
    pub const NONE: Quota = Quota { bytes: u64::MAX, inodes: u64::MAX };
}

/// How much a tree holds of its own: neither what was installed nor what lies on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Usage {
    /// Counted as [`Quota::bytes`].
    pub bytes: u64,
    /// Counted as [`Quota::inodes`].
    pub inodes: u64,
}

impl Tree {
    /// The limits.
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// Sets the limits. What is already there stays, even above them.
    pub fn set_quota(&mut self, quota: Quota) {
        self.quota = quota;
    }

    /// What is in use.
    pub fn usage(&self) -> Usage {
        self.used
    }

    /// Is it the number of files, or of their names, that leaves no room for another?
    pub fn is_out_of_files(&self) -> bool {
        self.used.inodes >= self.quota.inodes || self.extra_links >= self.quota.inodes
    }

    /// What is in use, counted anew from the files themselves: what [`Tree::usage`] must always equal.
    pub fn recount(&self) -> Usage {
        let charged = self.inodes.values().filter(|inode| inode.charged);
        charged.fold(Usage::default(), |sum, inode| Usage {
            bytes: sum.bytes + inode.charge(),
            inodes: sum.inodes + 1,
        })
    }

    /// Does the quota count what is at this place?
    pub(crate) fn is_charged(&self, place: &Place) -> bool {
        match place.0 {
            Spot::Inode(ino) => self.inode(ino).is_ok_and(|inode| inode.charged),
            Spot::Mount(_) => false,
        }
    }

    pub(crate) fn room(&self) -> u64 {
        self.quota.bytes.saturating_sub(self.used.bytes)
    }

    pub(crate) fn check_room(&self, bytes: u64, inodes: u64) -> Result<()> {
        let fits = bytes <= self.room() && inodes <= self.quota.inodes.saturating_sub(self.used.inodes);
        if fits { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    /// One more name for a file that has one.
    pub(crate) fn check_extra_link(&self) -> Result<()> {
        if self.extra_links < self.quota.inodes { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    pub(crate) fn charge(&mut self, inode: &Inode) -> Result<()> {
        if inode.charged {
            let bytes = inode.charge();
            self.check_room(bytes, 1)?;
            self.used.bytes += bytes;
            self.used.inodes += 1;
        }
        Ok(())
    }

    pub(crate) fn refund(&mut self, inode: &Inode) {
        if inode.charged {
            self.used.bytes -= inode.charge();
            self.used.inodes -= 1;
        }
    }

    /// A charged file's bytes went from `before` to `after`.
    pub(crate) fn recharge(&mut self, before: u64, after: u64) {
        self.used.bytes = self.used.bytes - before + after;
    }
}
