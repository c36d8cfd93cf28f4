//! Overlays: a host directory below, the sandbox's changes above.
//!
//! ```text
//! above (inodes)     dir ── a (changed)    b (whiteout)    new
//!                     │
//! below (host)       dir ── a               b               c
//! the sandbox sees   dir ── a (changed)                     c    new
//! ```
//! An inode is created for a lower file or directory when it, or anything below it, is opened or changed. That inode
//! owns the metadata; a file's content stays below until the first write. A directory's inode remembers its lower
//! directory, so it can be renamed without being read. From then on every operation is in memory; only names never
//! touched are looked up below.

use crate::content::{CHUNK, FileBody};
use crate::dir::{Dir, Target};
use crate::handle::OpenFlags;
use crate::host::{HostDir, Listed};
use crate::inode::{Body, Inode};
use crate::mount::Source;
use crate::name::{Name, split};
use crate::place::{Ino, MountId, MountSpot, Spot};
use crate::quota::{Usage, name_cost, spot_cost};
use crate::{Caller, Errno, FileKind, Place, Result, Tree};
use cap_std::fs::FileExt;
use std::num::NonZeroU64;
use std::sync::Arc;

/// A lower file's inode number, in a range the tree itself does not use.
pub(crate) fn lower_ino(host: u64) -> u64 {
    host | 1 << 62
}

impl Tree {
    /// Makes the place one that the tree may change: a lower file or directory becomes an inode.
    pub(crate) fn own(&mut self, place: &Place) -> Result<Place> {
        match &place.0 {
            Spot::Inode(_) => Ok(place.clone()),
            Spot::Mount(spot) => match &self.mount_point(spot.mount)?.source {
                Source::Overlay { .. } => Ok(Place::inode(self.copy_up(spot)?)),
                _ => Ok(place.clone()),
            },
        }
    }

    /// Creates the inode of a lower file or directory, and those of the directories above it. They are not counted as
    /// files, since they hold nothing that is not below, but their memory is charged.
    fn copy_up(&mut self, spot: &MountSpot) -> Result<Ino> {
        // From the nearest that is there down, by hand: paths can be deeper than stacks.
        let mut missing = Vec::new();
        let mut at = spot.clone();
        let mut parent = loop {
            if let Some(ino) = self.copied.get(&at) {
                break *ino;
            }
            let above = MountSpot { mount: at.mount, path: split(&at.path).0.into() };
            if at.path.is_empty() {
                return Err(Errno::ENOENT);
            }
            missing.push(std::mem::replace(&mut at, above));
        };
        while let Some(spot) = missing.pop() {
            parent = self.copy_up_in(parent, &spot)?;
        }
        Ok(parent)
    }

    fn copy_up_in(&mut self, parent: Ino, spot: &MountSpot) -> Result<Ino> {
        let name = Name::new(split(&spot.path).1);
        let inode = self.inode_from_below(spot, parent)?;
        let noted = if self.below.contains_key(spot) { 1 } else { 2 };
        let notes = Usage::metadata(name_cost(&name) + noted * spot_cost(spot));
        self.check_fits(inode.cost() + notes)?;
        let ino = self.add_inode(inode)?;
        if let Err(errno) = self.put_name(parent, &name, Target::Inode(ino)) {
            self.forget(ino);
            return Err(errno);
        }
        self.note_copied(spot.clone(), ino);
        self.note_below_spot(spot);
        Ok(ino)
    }

    /// Notes that a lower file has become an inode.
    pub(crate) fn note_copied(&mut self, spot: MountSpot, ino: Ino) {
        self.used.metadata += spot_cost(&spot);
        self.copied.insert(spot, ino);
    }

    fn inode_from_below(&self, spot: &MountSpot, parent: Ino) -> Result<Inode> {
        let host = self.host_of(spot)?;
        let stat = host.stat(&spot.path)?;
        let body = match stat.kind {
            FileKind::File => Body::File(FileBody::lower(spot.clone(), stat.size)),
            FileKind::Dir => {
                let mut dir = Dir::new(parent, split(&spot.path).1);
                dir.lower = Some(spot.clone());
                dir.subdirs = stat.nlink.saturating_sub(2);
                Body::Dir(Box::new(dir))
            }
            FileKind::Symlink => Body::Symlink(host.read_link(&spot.path)?.into()),
            FileKind::Fifo => Body::Fifo,
            FileKind::Socket | FileKind::Device(_) => Body::Socket,
        };
        // One of several names of a lower file becomes a file of its own, with a number of its own.
        let keeps_number = stat.nlink == 1 || stat.kind == FileKind::Dir;
        Ok(Inode {
            body,
            atime: stat.atime,
            mtime: stat.mtime,
            ctime: stat.ctime,
            mode: stat.mode,
            uid: stat.uid,
            gid: stat.gid,
            nlink: 1,
            dev: spot.mount + 1,
            shown_ino: NonZeroU64::new(lower_ino(stat.ino)).filter(|_| keeps_number),
            charged: false,
            installed: false,
        })
    }

    /// The root inode of an overlay being mounted.
    pub(crate) fn overlay_root(&self, dir: &HostDir, covered: Ino, spot: MountSpot) -> Result<Inode> {
        let stat = dir.stat(b"")?;
        let under = self.dir(covered)?;
        let mut body = Dir::new(under.parent, &under.name);
        body.subdirs = stat.nlink.saturating_sub(2);
        let dev = spot.mount + 1;
        body.lower = Some(spot);
        let mut inode = Inode::new(Body::Dir(Box::new(body)), stat.mode, stat.uid, stat.gid, dev);
        (inode.atime, inode.mtime, inode.ctime) = (stat.atime, stat.mtime, stat.ctime);
        Ok(inode.into_installed())
    }

    /// Forgets which lower files of a mount have become inodes.
    pub(crate) fn forget_copies(&mut self, mount: MountId) {
        let (gone, kept) = self.copied.iter().partition::<Vec<_>, _>(|(spot, _)| spot.mount == mount);
        self.used.metadata -= gone.iter().map(|(spot, _)| spot_cost(spot)).sum::<u64>();
        self.copied = kept.into_iter().map(|(spot, ino)| (spot.clone(), *ino)).collect();
        self.forget_below(mount);
    }

    /// Returns whether a lower entry would show through if `name` were removed from `dir`.
    pub(crate) fn lower_has(&self, dir: Ino, name: &[u8]) -> bool {
        let Ok(Some(lower)) = self.dir(dir).map(|dir| dir.lower.clone()) else { return false };
        // When in doubt, hide it.
        !matches!(
            self.host_of(&lower).and_then(|host| host.stat(&lower.child(name).path)),
            Err(Errno::ENOENT)
        )
    }

    /// Reads a lower file's content into `own`, which may use `room` bytes of the quota.
    pub(crate) fn copy_lower(&self, spot: &MountSpot, own: &mut FileBody, room: u64) -> Result<()> {
        let file = self.host_of(spot)?.open_file(&spot.path, OpenFlags::READ)?;
        let mut buf = vec![0; CHUNK as usize];
        let mut offset = 0;
        loop {
            let count = file.read_at(&mut buf, offset)?;
            if count == 0 {
                return Ok(());
            }
            let left = room.saturating_sub(own.charge() + own.metadata());
            if own.write_at(&buf[..count], offset, left)? < count {
                return Err(Errno::ENOSPC);
            }
            offset += count as u64;
        }
    }

    /// The host directory behind a spot.
    pub(crate) fn host_of(&self, spot: &MountSpot) -> Result<&Arc<HostDir>> {
        self.mount_point(spot.mount)?.source.host_dir().ok_or(Errno::EIO)
    }

    /// Returns the host directory behind a spot that will be changed.
    pub(crate) fn host_for_change(&self, spot: &MountSpot) -> Result<&Arc<HostDir>> {
        self.check_mount_writable(spot)?;
        self.host_of(spot)
    }

    /// Returns whether changes below this place would stay in the tree, so that a clone can be thrown away.
    pub(crate) fn check_in_memory(&self, place: &Place) -> Result<()> {
        match &place.0 {
            Spot::Inode(_) => Ok(()),
            Spot::Mount(spot) => match &self.mount_point(spot.mount)?.source {
                Source::Overlay { .. } => Ok(()),
                _ => Err(Errno::EXDEV),
            },
        }
    }

    pub(crate) fn check_mount_writable(&self, spot: &MountSpot) -> Result<()> {
        match &self.mount_point(spot.mount)?.source {
            Source::Host { writable: false, .. } => Err(Errno::EROFS),
            Source::Virtual(_) => Err(Errno::EACCES),
            Source::Host { .. } | Source::Overlay { .. } | Source::Files { .. } => Ok(()),
        }
    }

    /// Returns the names in a directory that is not entirely in memory, with what shows through it.
    pub(crate) fn list_names(&self, who: &Caller, place: &Place) -> Result<Vec<Listed>> {
        let (spot, upper) = match &place.0 {
            Spot::Mount(spot) => (Some(spot), None),
            Spot::Inode(ino) => (self.dir(*ino)?.lower.as_ref(), Some(self.dir(*ino)?)),
        };
        let mut names = match spot {
            Some(spot) => self.list_mounted(who, spot)?,
            None => Vec::new(),
        };
        if let Some(upper) = upper {
            names.retain(|(name, ..)| upper.get(name).is_none());
            for (name, ino) in upper.iter() {
                let stat = self.stat_inode(ino)?;
                names.push((name.to_vec(), stat.ino, stat.kind));
            }
        }
        Ok(names)
    }

    fn list_mounted(&self, who: &Caller, spot: &MountSpot) -> Result<Vec<Listed>> {
        match &self.mount_point(spot.mount)?.source {
            Source::Virtual(files) => {
                let listed = files.list(who, &spot.path)?.into_iter();
                let numbered = listed.map(|(name, kind)| {
                    let ino = crate::dir::first_key(&spot.child(&name).path);
                    (name, ino, kind)
                });
                Ok(numbered.collect())
            }
            Source::Host { dir, .. } => dir.list(&spot.path),
            Source::Overlay { dir, .. } => {
                let mut listed = dir.list(&spot.path)?;
                listed.iter_mut().for_each(|(_, ino, _)| *ino = lower_ino(*ino));
                Ok(listed)
            }
            Source::Files { .. } => Err(Errno::EIO),
        }
    }
}
