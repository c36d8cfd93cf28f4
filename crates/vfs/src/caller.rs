//! Who calls, and what the permission bits allow them.

use crate::stat::Stat;
use crate::{Errno, FileKind, Result};
use bitflags::bitflags;

/// The caller of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// User id; 0 passes every permission check, as on Unix.
    pub uid: u32,
    /// Group id; there are no supplementary groups.
    pub gid: u32,
    /// Permission bits that new files do not get.
    pub umask: u32,
    /// The calling process, for `/proc/self`; 0 outside any process.
    pub pid: u32,
}

impl Caller {
    /// The superuser, outside any process.
    pub const ROOT: Caller = Caller { uid: 0, gid: 0, umask: 0o022, pid: 0 };
    /// The sandbox's ordinary user.
    pub const USER: Caller = Caller { uid: 1000, gid: 1000, umask: 0o022, pid: 0 };

    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Returns whether this caller may act as the owner: change mode and times, remove from a sticky directory.
    pub(crate) fn owns(&self, stat: &Stat) -> bool {
        self.is_root() || self.uid == stat.uid
    }

    /// The Unix permission check: the first class that matches decides, and only that one.
    pub(crate) fn check(&self, stat: &Stat, wanted: Access) -> Result<()> {
        let granted = if self.is_root() {
            // Root reads and writes all, but executes only what somebody could.
            if stat.kind == FileKind::Dir || stat.mode & 0o111 != 0 { 0o7 } else { 0o6 }
        } else if self.uid == stat.uid {
            stat.mode >> 6
        } else if self.gid == stat.gid {
            stat.mode >> 3
        } else {
            stat.mode
        };
        if wanted.bits() & !(granted & 0o7) == 0 { Ok(()) } else { Err(Errno::EACCES) }
    }
}

bitflags! {
    /// The permissions that [`Tree::access`](crate::Tree::access) checks. Empty checks whether the file exists.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Access: u32 {
        /// Reading.
        const R = 4;
        /// Writing.
        const W = 2;
        /// Executing or, for a directory, searching.
        const X = 1;
    }
}
