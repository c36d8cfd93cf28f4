//! The tree itself: a value. Cloning it takes constant time, and no clone sees what another writes.

use crate::conflict::Below;
use crate::dir::{Dir, Target};
use crate::inode::{Body, Inode};
use crate::list::Listings;
use crate::mount::Mounts;
use crate::name::Name;
use crate::packed::Packed;
use crate::place::{Ino, MountSpot, Spot};
use crate::quota::{Quota, Usage};
use crate::{Caller, Errno, Handle, Place, Result};
use imbl::OrdMap;
use std::sync::Arc;

/// A tree of files, in memory except for its mounts.
#[derive(Clone)]
pub struct Tree {
    pub(crate) inodes: OrdMap<Ino, Arc<Inode>>,
    pub(crate) root: Ino,
    next_ino: Ino,
    /// How many handles of this tree each inode has: an unlinked one lives until the last is closed.
    pub(crate) opens: OrdMap<Ino, u32>,
    pub(crate) quota: Quota,
    pub(crate) used: Usage,
    /// The part of it that is for what was installed for this sandbox alone.
    pub(crate) given: Usage,
    /// Additional names of the sandbox's own files, beyond the first of each.
    pub(crate) extra_links: u64,
    pub(crate) writable: Option<Arc<[Vec<u8>]>>,
    pub(crate) mounts: Arc<Mounts>,
    /// Overlays: which lower files and directories have become inodes, whatever happened to those since.
    pub(crate) copied: OrdMap<MountSpot, Ino>,
    /// Overlays: what was below each name when it was first touched.
    pub(crate) below: OrdMap<MountSpot, Below>,
    pub(crate) listings: Listings,
    pub(crate) packed: Option<Arc<Packed>>,
    /// Packed inodes that are not in `inodes` because the tree removed them.
    pub(crate) unpacked_and_gone: OrdMap<Ino, ()>,
}

impl Tree {
    /// Creates a tree with only an empty root directory, mode 755, owned by root.
    pub fn new(quota: Quota) -> Tree {
        const ROOT: Ino = 1;
        let mut root = Inode::new(Body::Dir(Box::new(Dir::new(ROOT, b""))), 0o755, 0, 0, 1);
        root = root.into_installed();
        Tree {
            inodes: OrdMap::unit(ROOT, Arc::new(root)),
            root: ROOT,
            next_ino: ROOT + 1,
            opens: OrdMap::new(),
            quota,
            used: Usage::default(),
            given: Usage::default(),
            extra_links: 0,
            writable: None,
            mounts: Arc::default(),
            copied: OrdMap::new(),
            below: OrdMap::new(),
            listings: Listings::default(),
            packed: None,
            unpacked_and_gone: OrdMap::new(),
        }
    }

    /// Returns the root directory.
    pub fn root(&self) -> Place {
        Place::inode(self.root)
    }

    /// With a list of absolute paths, makes everything that is neither at nor below one of them read-only: changes there
    /// return `EROFS`. Paths are compared after links are resolved, so a link cannot bypass it.
    pub fn set_writable_paths(&mut self, paths: Option<Vec<Vec<u8>>>) {
        self.writable = paths.map(|paths| {
            let clean = paths.into_iter().map(|mut path| {
                while path.last() == Some(&b'/') {
                    path.pop();
                }
                path
            });
            clean.collect()
        });
    }

    /// Checks that the entry `name` of `dir` may be added, removed or changed (`""`: the directory itself).
    pub(crate) fn check_writable(&self, dir: &Place, name: &[u8]) -> Result<()> {
        match &dir.0 {
            Spot::Mount(spot) => self.check_mount_writable(spot)?,
            Spot::Inode(ino) => self.check_files_writable(*ino)?,
        }
        let Some(allowed) = &self.writable else { return Ok(()) };
        let mut path = self.path_of(dir)?;
        if !name.is_empty() {
            path = crate::name::join(&path, name);
        }
        let is_allowed = allowed.iter().any(|prefix| {
            path.strip_prefix(&prefix[..]).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        });
        if is_allowed { Ok(()) } else { Err(Errno::EROFS) }
    }

    /// Rolls back to an earlier clone of this tree, of which only the handles in `kept` are still open. Numbers assigned
    /// since are not reused, so a handle on a removed file never finds another file in its place.
    pub fn go_back_to<'h>(&mut self, earlier: Tree, kept: impl Iterator<Item = &'h Handle>) {
        let next_ino = self.next_ino.max(earlier.next_ino);
        *self = earlier;
        self.next_ino = next_ino;
        self.close_all_but(kept);
    }

    pub(crate) fn inode(&self, ino: Ino) -> Result<&Inode> {
        let found = self.inodes.get(&ino).or_else(|| self.packed_inode(ino));
        found.map(|inode| &**inode).ok_or(Errno::ENOENT)
    }

    pub(crate) fn inode_mut(&mut self, ino: Ino) -> Result<&mut Inode> {
        self.take_packed(ino);
        self.inodes.get_mut(&ino).map(Arc::make_mut).ok_or(Errno::ENOENT)
    }

    pub(crate) fn dir(&self, ino: Ino) -> Result<&Dir> {
        self.inode(ino)?.dir().ok_or(Errno::ENOTDIR)
    }

    pub(crate) fn dir_mut(&mut self, ino: Ino) -> Result<&mut Dir> {
        match &mut self.inode_mut(ino)?.body {
            Body::Dir(dir) => Ok(dir),
            _ => Err(Errno::ENOTDIR),
        }
    }

    /// Returns the number of the next inode.
    pub(crate) fn next_number(&self) -> Ino {
        self.next_ino
    }

    /// Numbers inodes from `first` on.
    pub(crate) fn start_numbers_at(&mut self, first: Ino) {
        self.next_ino = first;
    }

    /// Adds a new inode to the table, if the quota allows it. It has no name yet.
    pub(crate) fn add_inode(&mut self, inode: Inode) -> Result<Ino> {
        self.check_fits(inode.cost())?;
        self.used += inode.cost();
        let ino = self.next_ino;
        self.next_ino += 1;
        self.inodes.insert(ino, Arc::new(inode));
        Ok(ino)
    }

    /// Creates an inode for `who` in the directory `dir` under `name`.
    pub(crate) fn create(
        &mut self,
        who: &Caller,
        dir: Ino,
        name: &[u8],
        mode: u32,
        body: Body,
    ) -> Result<Ino> {
        let parent = self.inode(dir)?;
        let mut mode = mode & 0o7777;
        let mut gid = who.gid;
        if parent.mode & 0o2000 != 0 {
            // A set-group-id directory hands its group down.
            gid = parent.gid;
            if matches!(body, Body::Dir(_)) {
                mode |= 0o2000;
            }
        }
        let inode = Inode::new(body, mode, who.uid, gid, parent.dev);
        self.check_fits(inode.cost() + Usage::metadata(self.entry_cost(dir, name)?))?;
        let ino = self.add_inode(inode)?;
        if let Err(errno) = self.enter(dir, name, Target::Inode(ino)) {
            self.forget(ino);
            return Err(errno);
        }
        Ok(ino)
    }

    /// Gives an inode the name `name` in `dir`, replacing the previous entry. The caller has checked that the quota
    /// allows [`Tree::entry_cost`].
    pub(crate) fn enter(&mut self, dir: Ino, name: &[u8], target: Target) -> Result<()> {
        self.note_below(dir, name);
        let name = Name::new(name);
        let mut is_dir = false;
        if let Some(ino) = target.ino()
            && let Body::Dir(child) = &mut self.inode_mut(ino)?.body
        {
            (child.parent, child.name) = (dir, name.clone());
            is_dir = true;
        }
        self.put_name(dir, &name, target)?;
        self.dir_mut(dir)?.subdirs += u32::from(is_dir);
        self.inode_mut(dir)?.touch();
        Ok(())
    }

    /// Adds a name to a directory and updates the counters.
    pub(crate) fn put_name(&mut self, dir: Ino, name: &Name, target: Target) -> Result<()> {
        self.take_name(dir, name)?;
        if !self.dir_mut(dir)?.put(name, target) {
            return Err(Errno::ENOSPC);
        }
        self.used.metadata += target.cost(name);
        Ok(())
    }

    fn take_name(&mut self, dir: Ino, name: &[u8]) -> Result<()> {
        if let Some(old) = self.dir_mut(dir)?.take(name) {
            self.used.metadata -= old.cost(name);
        }
        Ok(())
    }

    /// Removes the name `name` from `dir`, leaving a whiteout if a lower entry would show through.
    pub(crate) fn leave(&mut self, dir: Ino, name: &[u8], is_dir: bool) -> Result<()> {
        self.note_below(dir, name);
        let hides = self.lower_has(dir, name);
        self.take_name(dir, name)?;
        if hides {
            // In place of the name that was copied up and counted then.
            self.put_name(dir, &Name::new(name), Target::Whiteout)?;
        }
        self.dir_mut(dir)?.subdirs -= u32::from(is_dir);
        self.inode_mut(dir)?.touch();
        Ok(())
    }

    /// Notes that an inode lost one of its names. With the last name and the last handle it is dropped.
    pub(crate) fn unlinked(&mut self, ino: Ino) -> Result<()> {
        let inode = self.inode_mut(ino)?;
        inode.nlink -= 1;
        inode.ctime = crate::stat::now();
        let (left, charged) = (inode.nlink, inode.charged);
        if left > 0 {
            self.extra_links -= u64::from(charged);
        } else if !self.opens.contains_key(&ino) {
            self.forget(ino);
        }
        Ok(())
    }

    /// Drops an inode and returns what it was charged.
    pub(crate) fn forget(&mut self, ino: Ino) {
        self.forget_packed(ino);
        if let Some(inode) = self.inodes.remove(&ino) {
            self.used -= inode.cost();
            // An overlay's directory is empty when all that is in it hides what is below.
            self.used.metadata -= inode.dir().map_or(0, |dir| dir.names_cost());
        }
    }

    /// Starts charging one of the system's files when it is first written to.
    pub(crate) fn start_charging(&mut self, ino: Ino, bytes: u64) -> Result<()> {
        let inode = self.inode(ino)?;
        if inode.charged {
            return self.check_room(bytes, 0);
        }
        self.check_room(bytes.saturating_add(self.cost_to_charge(ino)?), 1)?;
        let extra = u64::from(inode.nlink.saturating_sub(1));
        self.update(ino, |inode| inode.charged = true)?;
        self.extra_links += extra;
        Ok(())
    }

    /// Returns what charging an inode costs in addition to its content.
    pub(crate) fn cost_to_charge(&self, ino: Ino) -> Result<u64> {
        let inode = self.inode(ino)?;
        Ok(if inode.charged || !inode.installed { 0 } else { inode.metadata() })
    }

    /// Empties a directory and everything below it, regardless of owners. For what the tree itself removes.
    pub(crate) fn remove_all_below(&mut self, top: Ino) -> Result<()> {
        let mut pending = vec![top];
        while let Some(dir) = pending.pop() {
            let children: Vec<Ino> = self.dir(dir)?.iter().map(|(_, ino)| ino).collect();
            for ino in children {
                match self.inode(ino)?.dir() {
                    Some(_) => pending.push(ino),
                    None => self.unlinked(ino)?,
                }
            }
            self.used.metadata -= self.dir(dir)?.names_cost();
            self.dir_mut(dir)?.clear();
            if dir != top {
                self.unlinked(dir)?;
            }
        }
        Ok(())
    }
}
