//! Unpacking an archive, completely or not at all.

use super::TarError;
use super::header::Kind;
use super::read::{Archive, Entry};
use crate::name::{NAME_MAX, PATH_MAX};
use crate::{Caller, Errno, FileKind, OpenFlags, Place, Quota, SetTime, Tree};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Read;

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Imported {
    /// How many entries the archive had.
    pub entries: u64,
    /// Bytes of file content it held.
    pub bytes: u64,
}

impl Tree {
    /// Unpacks a tar archive into the directory `path`, as `who`: with the archive's modes and times, and for root also
    /// its owners and set-user-id bits. A later entry replaces an earlier one of the same name. Links are created as
    /// they are but never followed while unpacking. After an error the tree is unchanged.
    pub fn import_tar(
        &mut self,
        who: &Caller,
        path: &[u8],
        archive: impl Read,
    ) -> Result<Imported, TarError> {
        // The tree is a value: unpack into a clone, and keep that only if all went well.
        let next = self.clone();
        let refused = |errno| TarError::File { name: path.to_vec(), errno };
        let top = next.lookup(who, &next.root(), path, true).map_err(refused)?;
        next.check_in_memory(&top).map_err(refused)?;
        let mut import = Import { tree: next, who, top, late: BTreeMap::new() };
        let imported = import.run(&mut Archive::new(archive))?;
        *self = import.tree;
        Ok(imported)
    }
}

struct Import<'c> {
    tree: Tree,
    who: &'c Caller,
    top: Place,
    /// Directories' modes and times, set when their contents are complete: a read-only one could not be filled. Ordered
    /// by depth, deepest first, since one without permissions cannot be entered; then by device and inode, since paths
    /// could use more memory than the quota counts.
    late: BTreeMap<(Reverse<usize>, u64, u64), Late>,
}

struct Late {
    target: Target,
    mode: u32,
    mtime: i64,
}

/// An entry's directory and the name it gets there.
struct Target {
    dir: Place,
    name: Vec<u8>,
}

impl Import<'_> {
    fn run<R: Read>(&mut self, archive: &mut Archive<R>) -> Result<Imported, TarError> {
        let mut imported = Imported::default();
        let most = most_entries(self.tree.quota());
        while let Some(entry) = archive.next()? {
            imported.entries += 1;
            if imported.entries > most {
                return Err(TarError::File { name: entry.name, errno: Errno::ENOSPC });
            }
            imported.bytes += self.unpack(archive, &entry)?;
        }
        for Late { target, mode, mtime } in std::mem::take(&mut self.late).into_values() {
            let set = self.set_metadata(&target, mode, mtime);
            set.map_err(|errno| TarError::File { name: target.name, errno })?;
        }
        Ok(imported)
    }

    fn unpack<R: Read>(&mut self, archive: &mut Archive<R>, entry: &Entry) -> Result<u64, TarError> {
        let refused = |why| TarError::Refused { name: entry.name.clone(), why };
        let failed = |errno| TarError::File { name: entry.name.clone(), errno };
        let names = names_of(&entry.name).map_err(refused)?;
        let Some((name, dirs)) = names.split_last() else {
            // The archive's own `./`: the directory that is there.
            return if entry.kind == Kind::Dir { Ok(0) } else { Err(refused("has no name")) };
        };
        let dir = self.enter(dirs, true).map_err(|errno| match errno {
            Errno::ENOTDIR => refused("has a parent that is not a directory"),
            errno => failed(errno),
        })?;
        let target = Target { dir, name: name.to_vec() };
        match entry.kind {
            Kind::Dir => self.dir(target, entry, names.len()).map_err(failed)?,
            Kind::File | Kind::Sparse => return self.file(archive, &target, entry),
            Kind::Symlink => self.symlink(&target, entry).map_err(failed)?,
            Kind::HardLink => self.hard_link(&target, entry)?,
            Kind::Fifo => self.fifo(&target, entry).map_err(failed)?,
            Kind::CharDevice | Kind::BlockDevice => return Err(refused("is a device")),
            _ => return Err(refused("is of an unknown kind")),
        }
        Ok(0)
    }

    /// Walks down from the top through directories only, creating missing ones if requested.
    fn enter(&mut self, names: &[&[u8]], make: bool) -> crate::Result<Place> {
        let mut place = self.top.clone();
        for name in names {
            let below = match self.tree.lookup(self.who, &place, name, false) {
                Err(Errno::ENOENT) if make => {
                    self.tree.mkdir(self.who, &place, name, 0o755)?;
                    self.tree.lookup(self.who, &place, name, false)?
                }
                found => found?,
            };
            if self.tree.stat_place(self.who, &below)?.kind != FileKind::Dir {
                return Err(Errno::ENOTDIR);
            }
            self.tree.check_in_memory(&below)?;
            place = below;
        }
        Ok(place)
    }

    /// Removes what is in the way of a new file. Writing into it could write to a file outside, through a hard link.
    fn clear(&mut self, target: &Target) -> crate::Result<()> {
        match self.tree.unlink(self.who, &target.dir, &target.name) {
            Err(Errno::ENOENT) => Ok(()),
            other => other,
        }
    }

    fn dir(&mut self, target: Target, entry: &Entry, depth: usize) -> crate::Result<()> {
        match self.tree.stat(self.who, &target.dir, &target.name, false) {
            Ok(stat) if stat.kind == FileKind::Dir => {}
            Ok(_) => {
                self.clear(&target)?;
                self.tree.mkdir(self.who, &target.dir, &target.name, 0o700)?;
            }
            Err(Errno::ENOENT) => self.tree.mkdir(self.who, &target.dir, &target.name, 0o700)?,
            Err(errno) => return Err(errno),
        }
        self.set_owner(&target, entry)?;
        let made = self.tree.stat(self.who, &target.dir, &target.name, false)?;
        let late = Late { target, mode: self.mode(entry), mtime: entry.mtime };
        self.late.insert((Reverse(depth), made.dev, made.ino), late);
        Ok(())
    }

    fn file<R: Read>(
        &mut self,
        archive: &mut Archive<R>,
        target: &Target,
        entry: &Entry,
    ) -> Result<u64, TarError> {
        let failed = |errno| TarError::File { name: entry.name.clone(), errno };
        self.clear(target).map_err(failed)?;
        let flags = OpenFlags::CREATE | OpenFlags::EXCL | OpenFlags::WRITE;
        let file = self.tree.open(self.who, &target.dir, &target.name, flags, 0o600).map_err(failed)?;
        let mut buf = vec![0; 64 << 10];
        let mut bytes = 0;
        for (mut offset, mut len) in entry.pieces.iter().copied() {
            while len > 0 {
                let step = usize::try_from(len).map_or(buf.len(), |len| len.min(buf.len()));
                let count = archive.content(&mut buf[..step])?;
                match self.tree.pwrite(&file, &buf[..count], offset) {
                    Ok(written) if written == count => {}
                    Ok(_) => return Err(failed(Errno::ENOSPC)),
                    Err(errno) => return Err(failed(errno)),
                }
                offset += count as u64;
                len -= count as u64;
                bytes += count as u64;
            }
        }
        self.tree.truncate(&file, entry.size).map_err(failed)?;
        self.tree.close(file);
        self.finish(target, entry).map_err(failed)?;
        Ok(bytes)
    }

    fn symlink(&mut self, target: &Target, entry: &Entry) -> crate::Result<()> {
        self.clear(target)?;
        self.tree.symlink(self.who, &entry.link, &target.dir, &target.name)?;
        self.set_owner(target, entry)?;
        let time = SetTime::At(entry.mtime);
        self.tree.utimes(self.who, &target.dir, &target.name, false, time, time)
    }

    /// Creates a hard link to a file in this archive's directory, reached through directories only.
    fn hard_link(&mut self, target: &Target, entry: &Entry) -> Result<(), TarError> {
        let refused = |why| TarError::Refused { name: entry.name.clone(), why };
        let failed = |errno| TarError::File { name: entry.name.clone(), errno };
        let names = names_of(&entry.link).map_err(|_| refused("is a link to outside"))?;
        let Some((name, dirs)) = names.split_last() else { return Err(refused("is a link to a directory")) };
        let dir = self.enter(dirs, false).map_err(|_| refused("is a link to nothing in the archive"))?;
        let source = self.tree.stat(self.who, &dir, name, false);
        let source = source.map_err(|_| refused("is a link to nothing in the archive"))?;
        if source.kind == FileKind::Dir {
            return Err(refused("is a link to a directory"));
        }
        let there = self.tree.stat(self.who, &target.dir, &target.name, false);
        if there.is_ok_and(|there| (there.dev, there.ino) == (source.dev, source.ino)) {
            return Ok(());
        }
        self.clear(target).map_err(failed)?;
        self.tree.link(self.who, &dir, name, false, &target.dir, &target.name).map_err(failed)
    }

    fn fifo(&mut self, target: &Target, entry: &Entry) -> crate::Result<()> {
        self.clear(target)?;
        self.tree.mkfifo(self.who, &target.dir, &target.name, 0o600)?;
        self.finish(target, entry)
    }

    fn finish(&mut self, target: &Target, entry: &Entry) -> crate::Result<()> {
        self.set_owner(target, entry)?;
        self.set_metadata(target, self.mode(entry), entry.mtime)
    }

    fn set_owner(&mut self, target: &Target, entry: &Entry) -> crate::Result<()> {
        if !self.who.is_root() {
            return Ok(());
        }
        self.tree.chown(self.who, &target.dir, &target.name, false, Some(entry.uid), Some(entry.gid))
    }

    fn set_metadata(&mut self, target: &Target, mode: u32, mtime: i64) -> crate::Result<()> {
        let time = SetTime::At(mtime);
        self.tree.utimes(self.who, &target.dir, &target.name, false, time, time)?;
        self.tree.chmod(self.who, &target.dir, &target.name, false, mode)
    }

    fn mode(&self, entry: &Entry) -> u32 {
        entry.mode & if self.who.is_root() { 0o7777 } else { 0o1777 }
    }
}

/// How many entries an archive may have: slightly more than there can be names, so that one that names the same few
/// files again and again does not waste time.
fn most_entries(quota: Quota) -> u64 {
    const NAME: u64 = 128;
    const SPARE: u64 = 1024;
    quota.inodes.saturating_mul(2).min(quota.bytes / NAME).saturating_add(SPARE)
}

/// The names of a path that stays below where it starts.
fn names_of(path: &[u8]) -> Result<Vec<&[u8]>, &'static str> {
    if path.starts_with(b"/") {
        return Err("has an absolute name");
    }
    if path.contains(&0) || path.len() >= PATH_MAX {
        return Err("has an impossible name");
    }
    let names: Vec<&[u8]> =
        path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).collect();
    if names.iter().any(|name| name == b"..") {
        return Err("has a name that leads outside");
    }
    if names.iter().any(|name| name.len() > NAME_MAX) {
        return Err("has an impossible name");
    }
    Ok(names)
}
