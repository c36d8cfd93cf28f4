//! Places in the tree.

use std::sync::Arc;

/// An inode's number within its tree. Never reused, so a stale one is noticed.
pub(crate) type Ino = u64;
/// A mount's number within its tree. Never reused.
pub(crate) type MountId = u32;
/// A path below a mount's root, without leading slash, `.`, `..` or symbolic links; empty means the root.
pub(crate) type RelPath = Arc<[u8]>;

/// A spot in a mount: the mount is queried about it each time.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct MountSpot {
    pub(crate) mount: MountId,
    pub(crate) path: RelPath,
}

impl MountSpot {
    pub(crate) fn child(&self, name: &[u8]) -> MountSpot {
        MountSpot { mount: self.mount, path: crate::name::join(&self.path, name).into() }
    }
}

/// A place in a tree: an inode in memory, or a spot in a mount. A working directory is one: it stays the same place
/// while names above it change. It does not keep a removed directory alive; a [`Handle`](crate::Handle) opened with
/// `PATH` does, as a working directory does on Unix.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Place(pub(crate) Spot);

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Spot {
    Inode(Ino),
    Mount(MountSpot),
}

impl Place {
    pub(crate) fn inode(ino: Ino) -> Place {
        Place(Spot::Inode(ino))
    }

    pub(crate) fn mounted(spot: MountSpot) -> Place {
        Place(Spot::Mount(spot))
    }

    /// Returns the place's path in its mount, if it is in a mount that is not part of the tree (a host directory,
    /// `/proc`).
    pub fn mount_path(&self) -> Option<&[u8]> {
        match &self.0 {
            Spot::Inode(_) => None,
            Spot::Mount(spot) => Some(&spot.path),
        }
    }
}
