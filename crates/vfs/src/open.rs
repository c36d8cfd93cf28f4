//! Opening files.

use crate::content::FileBody;
use crate::handle::{Handle, Listing, Open, OpenFlags};
use crate::inode::Body;
use crate::lookup::{Last, Walk};
use crate::mount::Source;
use crate::place::{Ino, MountSpot, Spot};
use crate::stat::Stat;
use crate::{Access, Caller, Errno, FileKind, Place, Result, Tree};
use std::sync::Arc;

/// Where `O_CREAT` ended up.
enum Found {
    Existing(Place),
    Missing { dir: Place, name: Vec<u8> },
}

impl Tree {
    /// Opens a file, as open(2) does. `mode` is for a newly created file, before the umask.
    pub fn open(
        &mut self,
        who: &Caller,
        at: &Place,
        path: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Handle> {
        let mut handle = self.open_checked(who, at, path, flags, mode)?;
        if self.may_be_frozen() && !flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNC) {
            let follow = !flags.contains(OpenFlags::NOFOLLOW);
            let place = handle.place();
            handle.frozen = self.check_place_writable(&place, at, path, follow, who) == Err(Errno::EROFS);
        }
        Ok(handle)
    }

    fn open_checked(
        &mut self,
        who: &Caller,
        at: &Place,
        path: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Handle> {
        if flags.contains(OpenFlags::PATH) {
            let place = self.lookup(who, at, path, !flags.contains(OpenFlags::NOFOLLOW))?;
            return self.open_path(who, &place, flags);
        }
        if !flags.contains(OpenFlags::CREATE) {
            let place = self.lookup(who, at, path, !flags.contains(OpenFlags::NOFOLLOW))?;
            self.check_open_writable(who, &place, at, path, flags)?;
            return self.open_existing(who, &place, flags);
        }
        if flags.contains(OpenFlags::DIRECTORY) {
            return Err(Errno::EINVAL);
        }
        match self.find_for_create(who, at, path, flags)? {
            Found::Existing(place) => {
                self.check_open_writable(who, &place, at, path, flags)?;
                self.open_existing(who, &place, flags)
            }
            Found::Missing { dir, name } => self.open_new(who, &dir, &name, flags, mode & !who.umask),
        }
    }

    /// Walks to where a file is or would be created, even through a dangling link.
    fn find_for_create(&self, who: &Caller, at: &Place, path: &[u8], flags: OpenFlags) -> Result<Found> {
        let exclusive = flags.contains(OpenFlags::EXCL);
        let mut walk = Walk::new(self, who);
        let (mut at, mut path) = (at.clone(), path.to_vec());
        loop {
            let parent = walk.parent(&at, &path)?;
            let Last::Name(name) = parent.last else {
                return Err(if exclusive { Errno::EEXIST } else { Errno::EISDIR });
            };
            if parent.slash {
                return Err(Errno::EISDIR);
            }
            let place = match walk.child(&parent.dir, name) {
                Ok(place) => place,
                Err(Errno::ENOENT) => return Ok(Found::Missing { name: name.to_vec(), dir: parent.dir }),
                Err(errno) => return Err(errno),
            };
            if exclusive {
                return Err(Errno::EEXIST);
            }
            if flags.contains(OpenFlags::NOFOLLOW) || self.is_magic(who, &place) {
                return Ok(Found::Existing(place));
            }
            match self.link_target(who, &place)? {
                None => return Ok(Found::Existing(place)),
                Some(target) => {
                    walk.count_link()?;
                    (at, path) = (parent.dir, target);
                }
            }
        }
    }

    fn check_open_writable(
        &self,
        who: &Caller,
        place: &Place,
        at: &Place,
        path: &[u8],
        flags: OpenFlags,
    ) -> Result<()> {
        if !flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNC)
            || self.stat_place(who, place)?.kind != FileKind::File
        {
            return Ok(());
        }
        self.check_place_writable(place, at, path, !flags.contains(OpenFlags::NOFOLLOW), who)
    }

    fn open_new(
        &mut self,
        who: &Caller,
        dir: &Place,
        name: &[u8],
        flags: OpenFlags,
        mode: u32,
    ) -> Result<Handle> {
        self.check_writable(dir, name)?;
        self.check_entry_change(who, dir)?;
        match self.own(dir)?.0 {
            Spot::Inode(ino) => {
                let new = self.create(who, ino, name, mode, Body::File(FileBody::empty()))?;
                self.opened(who, new, flags)
            }
            Spot::Mount(spot) => {
                let spot = spot.child(name);
                let host = self.host_for_change(&spot)?;
                let file = host.hold(|host| host.create(&spot.path, flags, mode))?;
                let stat = self.stat_place(who, &Place::mounted(spot.clone()))?;
                let open = Open::Host { spot, file: Some(file), listing: Listing::default() };
                Ok(new_handle(who, open, flags, &stat))
            }
        }
    }

    /// Opens what a lookup found. Permissions are checked here, `EROFS` before.
    fn open_existing(&mut self, who: &Caller, place: &Place, flags: OpenFlags) -> Result<Handle> {
        let stat = self.stat_place(who, place)?;
        check_kind(&stat, flags)?;
        if stat.kind == FileKind::Symlink {
            return if self.is_magic(who, place) {
                self.open_path(who, place, flags)
            } else {
                Err(Errno::ELOOP)
            };
        }
        let mut wanted = Access::empty();
        wanted.set(Access::R, flags.contains(OpenFlags::READ));
        wanted.set(Access::W, flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNC));
        who.check(&stat, wanted)?;
        match self.own(place)?.0 {
            Spot::Inode(ino) => {
                if flags.contains(OpenFlags::TRUNC) && stat.kind == FileKind::File {
                    self.empty_file(ino, who.is_root())?;
                }
                self.opened(who, ino, flags)
            }
            Spot::Mount(spot) => self.open_mounted(who, spot, flags, &stat),
        }
    }

    fn opened(&mut self, who: &Caller, ino: Ino, flags: OpenFlags) -> Result<Handle> {
        let inode = self.inode(ino)?;
        let (stat, listing) = (inode.stat(ino), inode.dir().and_then(|dir| dir.lower.as_ref()));
        let listing = listing.map(|_| Listing::default());
        let lower = match inode.file().and_then(FileBody::lower_spot) {
            Some(spot) if flags.intersects(OpenFlags::READ | OpenFlags::WRITE) => {
                Some(self.host_of(spot)?.hold(|host| host.open_file(&spot.path, OpenFlags::READ))?)
            }
            _ => None,
        };
        let handle = new_handle(who, Open::Inode { ino, lower, listing }, flags, &stat);
        self.count_open(&handle);
        Ok(handle)
    }

    fn open_mounted(
        &mut self,
        who: &Caller,
        spot: MountSpot,
        flags: OpenFlags,
        stat: &Stat,
    ) -> Result<Handle> {
        let listing = Listing::default();
        let open = match &self.mount_point(spot.mount)?.source {
            Source::Virtual(files) => {
                let content = match stat.kind {
                    FileKind::File => files.read(who, &spot.path)?.into(),
                    _ => Arc::default(),
                };
                Open::Virtual { spot, content, listing }
            }
            source => {
                let host = source.host_dir().ok_or(Errno::EIO)?;
                let file = match stat.kind {
                    FileKind::Dir => Some(host.hold(|host| host.open_dir(&spot.path))?),
                    FileKind::File => Some(host.hold(|host| host.open_file(&spot.path, flags))?),
                    // A pipe, socket or device of the host: opening could wait for ever, or act.
                    _ => return Err(Errno::ENXIO),
                };
                Open::Host { spot, file, listing }
            }
        };
        Ok(new_handle(who, open, flags, stat))
    }

    /// Opens again what a handle has open, as opening `/proc/self/fd/N` does: with a separate offset, and permissions
    /// checked again.
    pub fn reopen(&mut self, who: &Caller, handle: &Handle, flags: OpenFlags) -> Result<Handle> {
        if handle.frozen && flags.intersects(OpenFlags::WRITE | OpenFlags::TRUNC) {
            return Err(Errno::EROFS);
        }
        let flags = flags - (OpenFlags::CREATE | OpenFlags::EXCL | OpenFlags::NOFOLLOW);
        let mut again = self.open_existing(who, &handle.place(), flags)?;
        again.frozen = handle.frozen;
        Ok(again)
    }

    /// Opens a regular file at a known place, for the tree's own reading.
    pub(crate) fn open_place(&mut self, place: &Place) -> Result<Handle> {
        self.open_existing(&Caller::ROOT, place, OpenFlags::READ)
    }

    /// Returns a handle that only marks a place.
    fn open_path(&mut self, who: &Caller, place: &Place, flags: OpenFlags) -> Result<Handle> {
        let stat = self.stat_place(who, place)?;
        if flags.contains(OpenFlags::DIRECTORY) && stat.kind != FileKind::Dir {
            return Err(Errno::ENOTDIR);
        }
        let flags = flags - (OpenFlags::READ | OpenFlags::WRITE | OpenFlags::APPEND);
        let open = match self.own(place)?.0 {
            Spot::Inode(ino) => return self.opened(who, ino, flags),
            Spot::Mount(spot) if self.is_on_host(place) => {
                Open::Host { spot, file: None, listing: Listing::default() }
            }
            Spot::Mount(spot) => Open::Virtual { spot, content: Arc::default(), listing: Listing::default() },
        };
        Ok(new_handle(who, open, flags, &stat))
    }
}

fn check_kind(stat: &Stat, flags: OpenFlags) -> Result<()> {
    let is_dir = stat.kind == FileKind::Dir;
    if flags.contains(OpenFlags::DIRECTORY) && !is_dir {
        return Err(Errno::ENOTDIR);
    }
    let changes = OpenFlags::CREATE | OpenFlags::WRITE | OpenFlags::TRUNC;
    if is_dir && flags.intersects(changes) {
        return Err(Errno::EISDIR);
    }
    Ok(())
}

fn new_handle(who: &Caller, open: Open, flags: OpenFlags, stat: &Stat) -> Handle {
    Handle { open, flags, offset: 0, kind: stat.kind, ino: stat.ino, frozen: false, by_root: who.is_root() }
}
