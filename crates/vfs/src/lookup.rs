//! From a path to a place: `.` and `..`, symbolic links, mounts, search permission.
//!
//! A path is walked one name at a time. A link in the middle starts a separate walk from the directory it is in; more
//! than 40 of them in one lookup are `ELOOP`.

use crate::dir::Target;
use crate::inode::Body;
use crate::mount::Source;
use crate::name::{NAME_MAX, PATH_MAX, split};
use crate::place::{MountSpot, Spot};
use crate::stat::Stat;
use crate::{Access, Caller, Errno, FileKind, Place, Result, Tree};
use std::cell::Cell;

const MAX_LINKS: u32 = 40;

/// The last part of a path, which each operation handles in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last<'p> {
    Name(&'p [u8]),
    Dot,
    DotDot,
    /// The path consists only of slashes.
    Root,
}

/// All of a path but its last part.
pub(crate) struct Parent<'p> {
    pub(crate) dir: Place,
    pub(crate) last: Last<'p>,
    /// The path ends in slashes, so it means a directory.
    pub(crate) slash: bool,
}

/// One lookup.
pub(crate) struct Walk<'t> {
    tree: &'t Tree,
    who: &'t Caller,
    links: u32,
    /// Stop (with any error) instead of asking the host, and remember that.
    avoid_host: bool,
    met_host: Cell<bool>,
}

impl<'t> Walk<'t> {
    pub(crate) fn new(tree: &'t Tree, who: &'t Caller) -> Walk<'t> {
        Walk { tree, who, links: 0, avoid_host: false, met_host: Cell::new(false) }
    }

    /// Walks to the directory that holds, or would hold, the path's last name.
    pub(crate) fn parent<'p>(&mut self, at: &Place, path: &'p [u8]) -> Result<Parent<'p>> {
        check_path(path)?;
        let mut dir = if path[0] == b'/' { self.tree.root() } else { self.tree.settle(at) };
        let end = path.len() - path.iter().rev().take_while(|&&byte| byte == b'/').count();
        let slash = end < path.len();
        let mut names = path[..end].split(|&byte| byte == b'/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            self.search(&dir)?;
            if names.peek().is_none() {
                let last = match name {
                    b"." => Last::Dot,
                    b".." => Last::DotDot,
                    name => Last::Name(name),
                };
                return Ok(Parent { dir, last, slash });
            }
            dir = match name {
                b"." => dir,
                b".." => self.tree.up(&dir)?,
                name => self.through(&dir, name)?,
            };
        }
        Ok(Parent { dir, last: Last::Root, slash })
    }

    /// Walks the whole path; `follow` applies to a link at the very end.
    pub(crate) fn resolve(&mut self, at: &Place, path: &[u8], follow: bool) -> Result<Place> {
        let parent = self.parent(at, path)?;
        let found = match parent.last {
            Last::Root | Last::Dot => parent.dir,
            Last::DotDot => self.tree.up(&parent.dir)?,
            Last::Name(name) => {
                let place = self.child(&parent.dir, name)?;
                self.end_of_link(&parent.dir, place, follow || parent.slash)?
            }
        };
        if parent.slash && self.stat(&found)?.kind != FileKind::Dir {
            return Err(Errno::ENOTDIR);
        }
        Ok(found)
    }

    /// If `place`, found in `dir`, is a link to be followed, returns where it leads. A link that stands for something
    /// without a path (see [`VirtualStat::magic`](crate::VirtualStat)) leads to itself.
    fn end_of_link(&mut self, dir: &Place, place: Place, follow: bool) -> Result<Place> {
        if !follow || self.tree.is_magic(self.who, &place) {
            return Ok(place);
        }
        match self.link_target(&place)? {
            None => Ok(place),
            Some(target) => {
                self.count_link()?;
                self.resolve(dir, &target, true)
            }
        }
    }

    /// A name in the middle of a path.
    fn through(&mut self, dir: &Place, name: &[u8]) -> Result<Place> {
        let place = self.child(dir, name)?;
        match self.link_target(&place)? {
            None => Ok(place),
            Some(target) => {
                self.count_link()?;
                self.resolve(dir, &target, true)
            }
        }
    }

    pub(crate) fn count_link(&mut self) -> Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS { Err(Errno::ELOOP) } else { Ok(()) }
    }

    /// Returns whether the walk may continue below `dir`.
    fn search(&self, dir: &Place) -> Result<()> {
        let stat = self.stat(dir)?;
        if stat.kind != FileKind::Dir {
            return Err(Errno::ENOTDIR);
        }
        self.who.check(&stat, Access::X)
    }

    fn stat(&self, place: &Place) -> Result<Stat> {
        self.guard(place)?;
        self.tree.stat_place(self.who, place)
    }

    fn link_target(&self, place: &Place) -> Result<Option<Vec<u8>>> {
        self.guard(place)?;
        self.tree.link_target(self.who, place)
    }

    pub(crate) fn child(&self, dir: &Place, name: &[u8]) -> Result<Place> {
        if self.avoid_host && self.tree.asks_host(dir) {
            self.met_host.set(true);
            return Err(Errno::EAGAIN);
        }
        self.tree.child(self.who, dir, name)
    }

    fn guard(&self, place: &Place) -> Result<()> {
        if self.avoid_host && self.tree.is_on_host(place) {
            self.met_host.set(true);
            return Err(Errno::EAGAIN);
        }
        Ok(())
    }
}

fn check_path(path: &[u8]) -> Result<()> {
    if path.is_empty() {
        return Err(Errno::ENOENT);
    }
    if path.len() >= PATH_MAX {
        return Err(Errno::ENAMETOOLONG);
    }
    if path.contains(&0) {
        return Err(Errno::EINVAL);
    }
    Ok(())
}

impl Tree {
    /// Returns the place a path leads to, from `at` unless it is absolute. `follow`: also follows a link at its end.
    pub fn lookup(&self, who: &Caller, at: &Place, path: &[u8], follow: bool) -> Result<Place> {
        Walk::new(self, who).resolve(at, path, follow)
    }

    /// Returns the absolute path of a place, as `getcwd`. It follows renames; a removed place is `ENOENT`.
    pub fn path_of(&self, place: &Place) -> Result<Vec<u8>> {
        self.path_within(place, usize::MAX)
    }

    /// Returns the same, if it has at most `most` bytes, else `ENAMETOOLONG`, without walking all the way up.
    pub fn path_within(&self, place: &Place, most: usize) -> Result<Vec<u8>> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut place = self.settle(place);
        let (mut known, mut length) = (0, 0usize);
        loop {
            for name in &names[known..] {
                length += 1 + name.len();
            }
            known = names.len();
            if length > most {
                return Err(Errno::ENAMETOOLONG);
            }
            match &place.0 {
                Spot::Inode(ino) if *ino == self.root => break,
                Spot::Inode(ino) => {
                    let inode = self.inode(*ino)?;
                    let dir = inode.dir().ok_or(Errno::ENOTDIR)?;
                    if inode.nlink == 0 {
                        return Err(Errno::ENOENT);
                    }
                    names.push(dir.name.to_vec());
                    place = Place::inode(dir.parent);
                }
                Spot::Mount(spot) if spot.path.is_empty() => {
                    place = Place::inode(self.mount_point(spot.mount)?.covered);
                }
                Spot::Mount(spot) => {
                    let (parent, name) = split(&spot.path);
                    names.push(name.to_vec());
                    place =
                        self.settle(&Place::mounted(MountSpot { mount: spot.mount, path: parent.into() }));
                }
            }
        }
        if names.is_empty() {
            return Ok(b"/".to_vec());
        }
        Ok(names.iter().rev().flat_map(|name| [b"/", &name[..]].concat()).collect())
    }

    /// Returns the absolute path, without any links in it, of the file that a path leads to.
    pub fn real_path(&self, who: &Caller, at: &Place, path: &[u8]) -> Result<Vec<u8>> {
        match self.real_parent(who, at, path, true) {
            Ok((dir, name)) => Ok(crate::name::join(&self.path_of(&dir)?, &name)),
            Err(Errno::EISDIR) => self.path_of(&self.lookup(who, at, path, true)?),
            Err(errno) => Err(errno),
        }
    }

    /// Returns whether this path could run into a host directory, so that the call may have to wait for a disk.
    /// Immediately false if none is mounted; may return true unnecessarily.
    pub fn touches_host(&self, at: &Place, path: &[u8]) -> bool {
        if !self.has_host_mounts() {
            return false;
        }
        let mut walk = Walk { avoid_host: true, ..Walk::new(self, &Caller::ROOT) };
        match walk.resolve(at, path, true) {
            Ok(place) => walk.met_host.get() || self.is_on_host(&place) || self.is_layered(&place),
            Err(_) => walk.met_host.get(),
        }
    }

    /// Returns the directory and name of what a path leads to, following links at its end if requested.
    pub(crate) fn real_parent(
        &self,
        who: &Caller,
        at: &Place,
        path: &[u8],
        follow: bool,
    ) -> Result<(Place, Vec<u8>)> {
        let mut walk = Walk::new(self, who);
        let (mut at, mut path) = (at.clone(), path.to_vec());
        loop {
            let parent = walk.parent(&at, &path)?;
            let Last::Name(name) = parent.last else { return Err(Errno::EISDIR) };
            let place = walk.child(&parent.dir, name)?;
            match self.link_target(who, &place)? {
                Some(target) if follow => {
                    walk.count_link()?;
                    (at, path) = (parent.dir, target);
                }
                _ => return Ok((parent.dir, name.to_vec())),
            }
        }
    }

    /// Returns a place as it is now: a lower one that an overlay has since copied up is an inode.
    pub(crate) fn settle(&self, place: &Place) -> Place {
        match &place.0 {
            Spot::Mount(spot) if !self.copied.is_empty() => match self.copied.get(spot) {
                Some(ino) => Place::inode(*ino),
                None => place.clone(),
            },
            _ => place.clone(),
        }
    }

    /// Returns the directory above `dir`; the root is above itself.
    pub(crate) fn up(&self, dir: &Place) -> Result<Place> {
        match &dir.0 {
            Spot::Inode(ino) => {
                let parent = self.dir(*ino)?.parent;
                self.inode(parent)?;
                Ok(Place::inode(parent))
            }
            Spot::Mount(spot) if spot.path.is_empty() => {
                let covered = self.mount_point(spot.mount)?.covered;
                Ok(Place::inode(self.dir(covered)?.parent))
            }
            Spot::Mount(spot) => {
                let path = split(&spot.path).0.into();
                Ok(self.settle(&Place::mounted(MountSpot { mount: spot.mount, path })))
            }
        }
    }

    /// Returns what `name` is in `dir`, or `ENOENT`.
    pub(crate) fn child(&self, who: &Caller, dir: &Place, name: &[u8]) -> Result<Place> {
        if let Spot::Inode(ino) = dir.0
            && self.inode(ino)?.nlink == 0
        {
            return Err(Errno::ENOENT); // a removed directory has no names, not even impossible ones
        }
        if name.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        match &dir.0 {
            Spot::Inode(ino) => {
                let body = self.dir(*ino)?;
                match (body.get(name), &body.lower) {
                    (Some(Target::Inode(child) | Target::System(child)), _) => self.enter_mount(child),
                    (None, Some(lower)) => self.mount_child(who, lower, name),
                    (Some(Target::Whiteout), _) | (None, None) => Err(Errno::ENOENT),
                }
            }
            Spot::Mount(spot) => self.mount_child(who, spot, name),
        }
    }

    fn enter_mount(&self, ino: crate::place::Ino) -> Result<Place> {
        match self.inode(ino)?.dir().and_then(|dir| dir.covered_by) {
            None => Ok(Place::inode(ino)),
            Some(mount) => self.mount_root(mount),
        }
    }

    fn mount_child(&self, who: &Caller, dir: &MountSpot, name: &[u8]) -> Result<Place> {
        let child = Place::mounted(dir.child(name));
        self.stat_place(who, &child)?;
        Ok(child)
    }

    /// Returns a symbolic link's target; `None` for everything else.
    pub(crate) fn link_target(&self, who: &Caller, place: &Place) -> Result<Option<Vec<u8>>> {
        match &place.0 {
            Spot::Inode(ino) => Ok(match &self.inode(*ino)?.body {
                Body::Symlink(target) => Some(target.to_vec()),
                _ => None,
            }),
            Spot::Mount(spot) => {
                if self.stat_place(who, place)?.kind != FileKind::Symlink {
                    return Ok(None);
                }
                match &self.mount_point(spot.mount)?.source {
                    Source::Virtual(files) => files.read_link(who, &spot.path).map(Some),
                    source => source.host_dir().ok_or(Errno::EIO)?.read_link(&spot.path).map(Some),
                }
            }
        }
    }

    pub(crate) fn is_magic(&self, who: &Caller, place: &Place) -> bool {
        let Spot::Mount(spot) = &place.0 else { return false };
        match self.mount_point(spot.mount).map(|point| &point.source) {
            Ok(Source::Virtual(files)) => files.stat(who, &spot.path).is_ok_and(|stat| stat.magic),
            _ => false,
        }
    }

    /// Returns whether accessing this place means accessing the host.
    pub(crate) fn is_on_host(&self, place: &Place) -> bool {
        match &place.0 {
            Spot::Inode(_) => false,
            Spot::Mount(spot) => {
                self.mount_point(spot.mount).is_ok_and(|point| point.source.host_dir().is_some())
            }
        }
    }

    /// Returns whether finding or changing a name in `dir` could mean accessing the host. In an overlay even removing
    /// one of its own names does, because there may be one below.
    fn asks_host(&self, dir: &Place) -> bool {
        self.is_on_host(dir) || self.is_layered(dir)
    }

    /// Returns whether this is an inode backed by the host: an overlay's directory, or a file whose bytes are still
    /// below.
    pub(crate) fn is_layered(&self, place: &Place) -> bool {
        let Spot::Inode(ino) = &place.0 else { return false };
        match self.inode(*ino).map(|inode| &inode.body) {
            Ok(Body::Dir(dir)) => dir.lower.is_some(),
            Ok(Body::File(file)) => file.lower_spot().is_some(),
            _ => false,
        }
    }
}
