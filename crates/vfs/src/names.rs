//! Creating and removing names: mkdir, rmdir, unlink, link, symlink, mkfifo, mksocket.

use crate::dir::{Dir, Target};
use crate::inode::Body;
use crate::lookup::{Last, Walk};
use crate::name::PATH_MAX;
use crate::place::Spot;
use crate::stat::{Stat, now};
use crate::{Access, Caller, Errno, FileKind, Place, Result, Tree};

impl Tree {
    /// Creates a directory.
    pub fn mkdir(&mut self, who: &Caller, at: &Place, path: &[u8], mode: u32) -> Result<()> {
        let (dir, name) = self.new_name(who, at, path, true)?;
        self.check_entry_change(who, &dir)?;
        let mode = mode & !who.umask & 0o1777;
        match self.own(&dir)?.0 {
            Spot::Inode(ino) => {
                self.create(who, ino, name, mode, Body::Dir(Box::new(Dir::new(ino, name))))?;
                Ok(())
            }
            Spot::Mount(spot) => {
                let spot = spot.child(name);
                self.host_for_change(&spot)?.mkdir(&spot.path, mode)
            }
        }
    }

    /// Creates a symbolic link with any text as its target.
    pub fn symlink(&mut self, who: &Caller, target: &[u8], at: &Place, path: &[u8]) -> Result<()> {
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        if target.len() >= PATH_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        if target.contains(&0) {
            return Err(Errno::EINVAL);
        }
        let (dir, name) = self.new_name(who, at, path, false)?;
        self.check_entry_change(who, &dir)?;
        match self.own(&dir)?.0 {
            Spot::Inode(ino) => {
                self.create(who, ino, name, 0o777, Body::Symlink(target.into()))?;
                Ok(())
            }
            Spot::Mount(spot) => {
                let spot = spot.child(name);
                self.host_for_change(&spot)?.symlink(target, &spot.path)
            }
        }
    }

    /// Creates a named pipe. Returns `EPERM` in host directories.
    pub fn mkfifo(&mut self, who: &Caller, at: &Place, path: &[u8], mode: u32) -> Result<()> {
        self.make_special(who, at, path, mode, Body::Fifo)
    }

    /// Creates the file that names a socket. Returns `EPERM` in host directories.
    pub fn mksocket(&mut self, who: &Caller, at: &Place, path: &[u8], mode: u32) -> Result<()> {
        self.make_special(who, at, path, mode, Body::Socket)
    }

    fn make_special(&mut self, who: &Caller, at: &Place, path: &[u8], mode: u32, body: Body) -> Result<()> {
        let (dir, name) = self.new_name(who, at, path, false)?;
        self.check_entry_change(who, &dir)?;
        match self.own(&dir)?.0 {
            Spot::Inode(ino) => {
                self.create(who, ino, name, mode & !who.umask, body)?;
                Ok(())
            }
            Spot::Mount(_) => Err(Errno::EPERM),
        }
    }

    /// Gives an existing file an additional name. `follow`: links to what a link leads to, rather than to the link.
    pub fn link(
        &mut self,
        who: &Caller,
        from_at: &Place,
        from: &[u8],
        follow: bool,
        to_at: &Place,
        to: &[u8],
    ) -> Result<()> {
        let old = self.lookup(who, from_at, from, follow)?;
        let stat = self.stat_place(who, &old)?;
        let (dir, name) = self.new_name(who, to_at, to, false)?;
        if self.stat_place(who, &dir)?.dev != stat.dev {
            return Err(Errno::EXDEV);
        }
        check_link_source(who, &stat)?;
        self.check_entry_change(who, &dir)?;
        if stat.kind == FileKind::Dir {
            return Err(Errno::EPERM);
        }
        self.check_place_writable(&old, from_at, from, follow, who)?;
        match (self.own(&dir)?.0, self.own(&old)?.0) {
            (Spot::Inode(dir), Spot::Inode(ino)) => self.link_inode(dir, name, ino),
            (Spot::Mount(dir), Spot::Mount(old)) => {
                let new = dir.child(name);
                self.host_for_change(&new)?.link(&old.path, &new.path)
            }
            _ => Err(Errno::EXDEV),
        }
    }

    fn link_inode(&mut self, dir: u64, name: &[u8], ino: u64) -> Result<()> {
        let inode = self.inode(ino)?;
        if inode.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        if inode.nlink == u32::MAX {
            return Err(Errno::EMLINK);
        }
        let charged = inode.charged;
        self.check_extra_link()?;
        self.check_room(self.entry_cost(dir, name)?, 0)?;
        self.enter(dir, name, Target::Inode(ino))?;
        let inode = self.inode_mut(ino)?;
        inode.nlink += 1;
        inode.ctime = now();
        self.extra_links += u64::from(charged);
        Ok(())
    }

    /// Removes a name that is not a directory's. The file is freed with its last name and last handle.
    pub fn unlink(&mut self, who: &Caller, at: &Place, path: &[u8]) -> Result<()> {
        let parent = Walk::new(self, who).parent(at, path)?;
        let Last::Name(name) = parent.last else { return Err(Errno::EISDIR) };
        self.check_writable(&parent.dir, name)?;
        let place = self.child(who, &parent.dir, name)?;
        let stat = self.stat_place(who, &place)?;
        if parent.slash {
            return Err(if stat.kind == FileKind::Dir { Errno::EISDIR } else { Errno::ENOTDIR });
        }
        self.check_removal(who, &parent.dir, &stat)?;
        if stat.kind == FileKind::Dir {
            return Err(Errno::EISDIR);
        }
        self.remove(&parent.dir, name, &place)
    }

    /// Removes an empty directory.
    pub fn rmdir(&mut self, who: &Caller, at: &Place, path: &[u8]) -> Result<()> {
        let parent = Walk::new(self, who).parent(at, path)?;
        let name = match parent.last {
            Last::Name(name) => name,
            Last::Dot => return Err(Errno::EINVAL),
            Last::DotDot => return Err(Errno::ENOTEMPTY),
            Last::Root => return Err(Errno::EBUSY),
        };
        self.check_writable(&parent.dir, name)?;
        let place = self.child(who, &parent.dir, name)?;
        let stat = self.stat_place(who, &place)?;
        self.check_removal(who, &parent.dir, &stat)?;
        if stat.kind != FileKind::Dir {
            return Err(Errno::ENOTDIR);
        }
        if self.is_mount_point(&place) {
            return Err(Errno::EBUSY);
        }
        if !self.is_empty_dir(who, &place)? {
            return Err(Errno::ENOTEMPTY);
        }
        self.remove(&parent.dir, name, &place)
    }

    /// Removes what has been found removable.
    fn remove(&mut self, dir: &Place, name: &[u8], place: &Place) -> Result<()> {
        match (self.own(dir)?.0, self.own(place)?.0) {
            (Spot::Inode(dir), Spot::Inode(ino)) => {
                let is_dir = self.inode(ino)?.dir().is_some();
                self.leave(dir, name, is_dir)?;
                self.unlinked(ino)
            }
            (Spot::Mount(_), Spot::Mount(spot)) => self.host_for_change(&spot)?.remove(&spot.path),
            _ => Err(Errno::EIO),
        }
    }

    /// Returns a symbolic link's target.
    pub fn read_link(&self, who: &Caller, at: &Place, path: &[u8]) -> Result<Vec<u8>> {
        let place = self.lookup(who, at, path, false)?;
        self.link_target(who, &place)?.ok_or(Errno::EINVAL)
    }

    /// Finds the directory and name for something new. If it already exists, returns `EEXIST`, before any permission
    /// check.
    fn new_name<'p>(
        &self,
        who: &Caller,
        at: &Place,
        path: &'p [u8],
        for_dir: bool,
    ) -> Result<(Place, &'p [u8])> {
        let parent = Walk::new(self, who).parent(at, path)?;
        let Last::Name(name) = parent.last else { return Err(Errno::EEXIST) };
        match self.child(who, &parent.dir, name) {
            Ok(_) => return Err(Errno::EEXIST),
            Err(Errno::ENOENT) => {}
            Err(errno) => return Err(errno),
        }
        let removed = self.stat_place(who, &parent.dir)?.nlink == 0;
        if removed || parent.slash && !for_dir {
            return Err(Errno::ENOENT);
        }
        self.check_writable(&parent.dir, name)?;
        Ok((parent.dir, name))
    }

    /// Checks that `who` may create names in `dir`. In a removed directory no one may.
    pub(crate) fn check_entry_change(&self, who: &Caller, dir: &Place) -> Result<()> {
        let stat = self.stat_place(who, dir)?;
        if stat.nlink == 0 {
            return Err(Errno::ENOENT);
        }
        who.check(&stat, Access::W | Access::X)
    }

    /// Checks that `who` may remove this from `dir`. In a sticky directory only one's own files.
    pub(crate) fn check_removal(&self, who: &Caller, dir: &Place, victim: &Stat) -> Result<()> {
        let stat = self.stat_place(who, dir)?;
        who.check(&stat, Access::W | Access::X)?;
        if stat.mode & 0o1000 != 0 && !who.owns(victim) && !who.owns(&stat) {
            return Err(Errno::EPERM);
        }
        Ok(())
    }

    pub(crate) fn is_empty_dir(&self, who: &Caller, place: &Place) -> Result<bool> {
        if let Spot::Inode(ino) = place.0 {
            let dir = self.dir(ino)?;
            if dir.len() > 0 || dir.lower.is_none() {
                return Ok(dir.len() == 0);
            }
        }
        Ok(self.list_names(who, place)?.is_empty())
    }

    /// Returns whether something is mounted here.
    pub(crate) fn is_mount_point(&self, place: &Place) -> bool {
        match &place.0 {
            Spot::Inode(ino) => self.is_mount_root(*ino),
            Spot::Mount(spot) => spot.path.is_empty(),
        }
    }
}

/// A caller who may neither own nor change a file may not hard-link it either (as on Linux with `protected_hardlinks`,
/// the usual default).
fn check_link_source(who: &Caller, stat: &Stat) -> Result<()> {
    let set_id = stat.mode & 0o4000 != 0 || stat.mode & 0o2010 == 0o2010;
    let harmless = stat.kind == FileKind::File && !set_id && who.check(stat, Access::R | Access::W).is_ok();
    if who.owns(stat) || harmless { Ok(()) } else { Err(Errno::EPERM) }
}
