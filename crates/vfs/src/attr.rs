//! Metadata: stat, access, chmod, chown, utimes.

use crate::inode::Inode;
use crate::mount::{Source, VirtualStat};
use crate::place::{Ino, MountSpot, Spot};
use crate::stat::{SetTime, Stat, now};
use crate::{Access, Caller, Errno, FileKind, Handle, Place, Result, Tree};

impl Tree {
    /// Returns a file's metadata. `follow`: of what a link leads to, rather than of the link.
    pub fn stat(&self, who: &Caller, at: &Place, path: &[u8], follow: bool) -> Result<Stat> {
        self.stat_place(who, &self.lookup(who, at, path, follow)?)
    }

    /// Returns the metadata of what is at a place.
    pub fn stat_place(&self, who: &Caller, place: &Place) -> Result<Stat> {
        match &place.0 {
            Spot::Inode(ino) => Ok(self.stat_inode(*ino)?),
            Spot::Mount(spot) => match self.copied.get(spot) {
                Some(ino) => self.stat_inode(*ino),
                None => self.stat_mounted(who, spot),
            },
        }
    }

    pub(crate) fn stat_inode(&self, ino: Ino) -> Result<Stat> {
        Ok(self.inode(ino)?.stat(ino))
    }

    fn stat_mounted(&self, who: &Caller, spot: &MountSpot) -> Result<Stat> {
        let dev = u64::from(spot.mount) + 1;
        match &self.mount_point(spot.mount)?.source {
            Source::Virtual(files) => Ok(show_virtual(files.stat(who, &spot.path)?, &spot.path, dev)),
            Source::Host { dir, .. } => Ok(Stat { dev, ..dir.stat(&spot.path)? }),
            Source::Overlay { dir, .. } => {
                let stat = dir.stat(&spot.path)?;
                Ok(Stat { dev, ino: crate::overlay::lower_ino(stat.ino), ..stat })
            }
            Source::Files { .. } => Err(Errno::ENOENT),
        }
    }

    /// Checks that `who` may do this with the file (links followed).
    pub fn access(&self, who: &Caller, at: &Place, path: &[u8], wanted: Access) -> Result<()> {
        let place = self.lookup(who, at, path, true)?;
        let stat = self.stat_place(who, &place)?;
        if wanted.contains(Access::W) && matches!(stat.kind, FileKind::File | FileKind::Dir) {
            self.check_place_writable(&place, at, path, true, who)?;
        }
        who.check(&stat, wanted)
    }

    /// Sets the permission bits.
    pub fn chmod(&mut self, who: &Caller, at: &Place, path: &[u8], follow: bool, mode: u32) -> Result<()> {
        let place = self.lookup(who, at, path, follow)?;
        self.check_place_writable(&place, at, path, follow, who)?;
        self.chmod_place(who, &place, mode)
    }

    /// Sets the permission bits of an open file.
    pub fn chmod_handle(&mut self, who: &Caller, handle: &Handle, mode: u32) -> Result<()> {
        check_frozen(handle)?;
        self.chmod_place(who, &self.settle(&handle.place()), mode)
    }

    fn chmod_place(&mut self, who: &Caller, place: &Place, mode: u32) -> Result<()> {
        let stat = self.stat_place(who, place)?;
        if !who.owns(&stat) {
            return Err(Errno::EPERM);
        }
        if stat.kind == FileKind::Symlink {
            return Err(Errno::ENOTSUP);
        }
        let mut mode = mode & 0o7777;
        if !who.is_root() && who.gid != stat.gid {
            mode &= !0o2000; // one cannot lend a group one is not in
        }
        match self.own(place)?.0 {
            Spot::Inode(ino) => {
                let inode = self.inode_mut(ino)?;
                inode.mode = mode;
                inode.ctime = now();
                Ok(())
            }
            Spot::Mount(spot) => self.host_for_change(&spot)?.chmod(&spot.path, mode),
        }
    }

    /// Changes a file's owner or group. Only root can change the owner.
    pub fn chown(
        &mut self,
        who: &Caller,
        at: &Place,
        path: &[u8],
        follow: bool,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<()> {
        let place = self.lookup(who, at, path, follow)?;
        self.check_place_writable(&place, at, path, follow, who)?;
        self.chown_place(who, &place, uid, gid)
    }

    /// Changes an open file's owner or group.
    pub fn chown_handle(
        &mut self,
        who: &Caller,
        handle: &Handle,
        uid: Option<u32>,
        gid: Option<u32>,
    ) -> Result<()> {
        check_frozen(handle)?;
        self.chown_place(who, &self.settle(&handle.place()), uid, gid)
    }

    fn chown_place(&mut self, who: &Caller, place: &Place, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        let stat = self.stat_place(who, place)?;
        let keeps_owner = uid.is_none_or(|uid| uid == stat.uid && who.uid == stat.uid);
        let own_group = gid.is_none_or(|gid| who.uid == stat.uid && (gid == who.gid || gid == stat.gid));
        if !(who.is_root() || keeps_owner && own_group) {
            return Err(Errno::EPERM);
        }
        match self.own(place)?.0 {
            Spot::Inode(ino) => {
                let inode = self.inode_mut(ino)?;
                inode.uid = uid.unwrap_or(inode.uid);
                inode.gid = gid.unwrap_or(inode.gid);
                if inode.dir().is_none() {
                    drop_set_ids(inode);
                }
                inode.ctime = now();
                Ok(())
            }
            // Host files all show one owner; keeping that one is all there is to do.
            Spot::Mount(_) if uid.is_none_or(|id| id == stat.uid) && gid.is_none_or(|id| id == stat.gid) => {
                Ok(())
            }
            Spot::Mount(_) => Err(Errno::EPERM),
        }
    }

    /// Sets the access and modification times.
    pub fn utimes(
        &mut self,
        who: &Caller,
        at: &Place,
        path: &[u8],
        follow: bool,
        atime: SetTime,
        mtime: SetTime,
    ) -> Result<()> {
        let place = self.lookup(who, at, path, follow)?;
        self.check_place_writable(&place, at, path, follow, who)?;
        self.utimes_place(who, &place, atime, mtime)
    }

    /// Sets the access and modification times of an open file.
    pub fn utimes_handle(
        &mut self,
        who: &Caller,
        handle: &Handle,
        atime: SetTime,
        mtime: SetTime,
    ) -> Result<()> {
        check_frozen(handle)?;
        self.utimes_place(who, &self.settle(&handle.place()), atime, mtime)
    }

    fn utimes_place(&mut self, who: &Caller, place: &Place, atime: SetTime, mtime: SetTime) -> Result<()> {
        let stat = self.stat_place(who, place)?;
        match (atime, mtime) {
            (SetTime::Keep, SetTime::Keep) => return Ok(()),
            (SetTime::Now, SetTime::Now) if !who.owns(&stat) => who.check(&stat, Access::W)?,
            _ if !who.owns(&stat) => return Err(Errno::EPERM),
            _ => {}
        }
        match self.own(place)?.0 {
            Spot::Inode(ino) => {
                let (inode, now) = (self.inode_mut(ino)?, now());
                atime.apply(&mut inode.atime, now);
                mtime.apply(&mut inode.mtime, now);
                inode.ctime = now;
                Ok(())
            }
            Spot::Mount(spot) => self.host_for_change(&spot)?.utimes(&spot.path, atime, mtime),
        }
    }

    /// [`Tree::check_writable`] for something that a path has led to. A directory knows its own path; a file is where
    /// its path says, once links are resolved.
    pub(crate) fn check_place_writable(
        &self,
        place: &Place,
        at: &Place,
        path: &[u8],
        follow: bool,
        who: &Caller,
    ) -> Result<()> {
        if self.writable.is_none() || self.stat_place(who, place)?.kind == FileKind::Dir {
            return self.check_writable(place, b"");
        }
        if let Spot::Mount(_) = &place.0 {
            return self.check_writable(place, b"");
        }
        let (dir, name) = self.real_parent(who, at, path, follow)?;
        self.check_writable(&dir, &name)
    }
}

fn check_frozen(handle: &Handle) -> Result<()> {
    if handle.frozen { Err(Errno::EROFS) } else { Ok(()) }
}

/// What a change by anyone but root removes: the power to act as the file's owner or group.
pub(crate) fn drop_set_ids(inode: &mut Inode) {
    inode.mode &= !0o4000;
    if inode.mode & 0o010 != 0 {
        inode.mode &= !0o2000;
    }
}

fn show_virtual(stat: VirtualStat, path: &[u8], dev: u64) -> Stat {
    let ino = if stat.ino == 0 { crate::dir::first_key(path) } else { stat.ino };
    let time = now();
    Stat {
        dev,
        ino,
        kind: stat.kind,
        mode: stat.mode,
        nlink: if stat.kind == FileKind::Dir { 2 } else { 1 },
        uid: stat.uid,
        gid: stat.gid,
        size: stat.size,
        blocks: 0,
        rdev: 0,
        atime: time,
        mtime: time,
        ctime: time,
        version: 0,
    }
}
