//! rename, with all of POSIX's cases.

use crate::dir::Target;
use crate::lookup::{Last, Walk};
use crate::place::{Ino, Spot};
use crate::stat::{Stat, now};
use crate::{Access, Caller, Errno, FileKind, Place, Result, Tree};

/// What is moved or replaced.
struct Named<'p> {
    dir: Place,
    name: &'p [u8],
    /// What has the name, if anything.
    place: Option<Place>,
    slash: bool,
}

impl Tree {
    /// Moves a file or directory to a new name, replacing a file or empty directory that has it.
    pub fn rename(
        &mut self,
        who: &Caller,
        from_at: &Place,
        from: &[u8],
        to_at: &Place,
        to: &[u8],
    ) -> Result<()> {
        let from = Walk::new(self, who).parent(from_at, from)?;
        let to = Walk::new(self, who).parent(to_at, to)?;
        if self.stat_place(who, &from.dir)?.dev != self.stat_place(who, &to.dir)?.dev {
            return Err(Errno::EXDEV);
        }
        let (Last::Name(old), Last::Name(new)) = (from.last, to.last) else { return Err(Errno::EBUSY) };
        self.check_writable(&from.dir, old)?;
        self.check_writable(&to.dir, new)?;
        let from = self.named(who, from.dir, old, from.slash)?;
        let old = from.place.clone().ok_or(Errno::ENOENT)?;
        let to = self.named(who, to.dir, new, to.slash)?;
        if self.check_rename(who, &from, &to, &old)? { self.do_rename(&from, &to, &old) } else { Ok(()) }
    }

    fn named<'p>(&self, who: &Caller, dir: Place, name: &'p [u8], slash: bool) -> Result<Named<'p>> {
        let place = match self.child(who, &dir, name) {
            Ok(place) => Some(place),
            Err(Errno::ENOENT) if self.stat_place(who, &dir)?.nlink > 0 => None,
            Err(errno) => return Err(errno),
        };
        Ok(Named { dir, name, place, slash })
    }

    /// Makes all checks, in Linux's order. Returns false if both names are the same file's, so that there is nothing to
    /// do.
    fn check_rename(&self, who: &Caller, from: &Named, to: &Named, old: &Place) -> Result<bool> {
        let stat = self.stat_place(who, old)?;
        let is_dir = stat.kind == FileKind::Dir;
        if !is_dir && (from.slash || to.slash) {
            return Err(Errno::ENOTDIR);
        }
        if is_dir && self.is_within(&to.dir, old)? {
            return Err(Errno::EINVAL);
        }
        let target = match &to.place {
            Some(place) if self.is_within(&from.dir, place)? => return Err(Errno::ENOTEMPTY),
            Some(place) => Some((place, self.stat_place(who, place)?)),
            None => None,
        };
        if let Some((_, new)) = &target
            && (new.dev, new.ino) == (stat.dev, stat.ino)
        {
            return Ok(false);
        }
        self.check_removal(who, &from.dir, &stat)?;
        self.check_target(who, to, is_dir, &target)?;
        if is_dir && from.dir != to.dir {
            who.check(&stat, Access::W)?; // its `..` changes
        }
        if self.is_mount_point(old) || target.as_ref().is_some_and(|(place, _)| self.is_mount_point(place)) {
            return Err(Errno::EBUSY);
        }
        if let Some((place, _)) = &target
            && is_dir
            && !self.is_empty_dir(who, place)?
        {
            return Err(Errno::ENOTEMPTY);
        }
        Ok(true)
    }

    fn check_target(
        &self,
        who: &Caller,
        to: &Named,
        is_dir: bool,
        target: &Option<(&Place, Stat)>,
    ) -> Result<()> {
        let Some((_, new)) = target else { return self.check_entry_change(who, &to.dir) };
        self.check_removal(who, &to.dir, new)?;
        match (is_dir, new.kind == FileKind::Dir) {
            (true, false) => Err(Errno::ENOTDIR),
            (false, true) => Err(Errno::EISDIR),
            _ => Ok(()),
        }
    }

    /// Returns whether `place` is the directory `dir`, or somewhere below it.
    fn is_within(&self, place: &Place, dir: &Place) -> Result<bool> {
        let mut place = place.clone();
        loop {
            if place == *dir {
                return Ok(true);
            }
            let up = self.up(&place)?;
            if up == place {
                return Ok(false);
            }
            place = up;
        }
    }

    fn do_rename(&mut self, from: &Named, to: &Named, old: &Place) -> Result<()> {
        let (from_dir, to_dir, old) = (self.own(&from.dir)?.0, self.own(&to.dir)?.0, self.own(old)?.0);
        let (from_dir, to_dir, ino) = match (from_dir, to_dir, old) {
            (Spot::Inode(from_dir), Spot::Inode(to_dir), Spot::Inode(ino)) => (from_dir, to_dir, ino),
            (Spot::Mount(_), Spot::Mount(dir), Spot::Mount(old)) => {
                return self.host_for_change(&old)?.rename(&old.path, &dir.child(to.name).path);
            }
            _ => return Err(Errno::EXDEV),
        };
        self.check_room(self.rename_cost(from_dir, from.name, to_dir, to.name)?, 0)?;
        let is_dir = self.inode(ino)?.dir().is_some();
        if let Some(place) = &to.place {
            let Spot::Inode(replaced) = self.own(place)?.0 else { return Err(Errno::EIO) };
            self.leave(to_dir, to.name, is_dir)?;
            self.unlinked(replaced)?;
        }
        self.leave(from_dir, from.name, is_dir)?;
        self.enter(to_dir, to.name, Target::Inode(ino))?;
        self.inode_mut(ino)?.ctime = now();
        Ok(())
    }

    /// Returns what the new name costs beyond what the old name, and a replaced file, give back.
    fn rename_cost(&self, from_dir: Ino, from: &[u8], to_dir: Ino, to: &[u8]) -> Result<u64> {
        let cost = |dir, name: &[u8]| -> Result<u64> {
            Ok(self.dir(dir)?.get(name).map_or(0, |target| target.cost(name)))
        };
        let mut back = cost(to_dir, to)?;
        if !self.lower_has(from_dir, from) {
            back += cost(from_dir, from)?;
        }
        Ok(self.entry_cost(to_dir, to)?.saturating_sub(back))
    }
}
