//! Unpacking an archive, completely or not at all.

use super::TarError;
use super::header::Kind;
use super::read::{Archive, Entry};
use crate::name::{NAME_MAX, PATH_MAX};
use crate::quota::{DIR, INODE, name_cost};
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
    /// its owners and set-user-id bits. A later entry replaces an earlier one of the same name, but all entries together
    /// may not be much more than the quota allows (`ENOSPC`). Links are created as they are but never followed while
    /// unpacking. After an error the tree is unchanged.
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
        let left = Allowance::new(next.quota());
        let mut archive = Archive::new(archive, left.bytes);
        let mut import = Import { tree: next, who, top, late: BTreeMap::new(), way: Vec::new(), left };
        let imported = import.run(&mut archive)?;
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
    /// The directories that led to the last entry: most others are below one of them. None of them can go away, since
    /// nothing here removes a directory.
    way: Vec<(Vec<u8>, Place)>,
    left: Allowance,
}

/// What an archive may still ask for. Entries that replace each other, and the way to each, count every time: so the work
/// is limited by what the tree may hold, whatever the archive repeats.
struct Allowance {
    /// Bytes as the quota counts them.
    bytes: u64,
    entries: u64,
    /// Directories to look up on the way.
    steps: u64,
}

impl Allowance {
    /// More than an archive needs that fills the tree: a few may be there twice.
    fn new(quota: Quota) -> Allowance {
        const SPARE_BYTES: u64 = 1 << 20;
        const SPARE_ENTRIES: u64 = 1024;
        const STEPS: u64 = 16;
        let bytes = quota.bytes.saturating_add(SPARE_BYTES);
        let entries = quota.inodes.saturating_mul(2).saturating_add(SPARE_ENTRIES);
        let steps = entries.min(bytes / INODE).saturating_mul(STEPS);
        Allowance { bytes, entries, steps }
    }

    /// Takes what an entry needs, before anything is done for it.
    fn take(&mut self, entry: &Entry) -> crate::Result<()> {
        // Each further piece of a sparse file is written by itself, however short it is.
        const PIECE: u64 = 64;
        let name = name_cost(entry.name.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
        let stored = entry.pieces.iter().fold(0u64, |sum, (_, len)| sum.saturating_add(*len));
        let cost = match entry.kind {
            Kind::HardLink => name,
            Kind::Dir => name + INODE + DIR,
            _ => {
                let parts = entry.link.len() as u64 + PIECE * entry.pieces.len().saturating_sub(1) as u64;
                (name + INODE + parts).saturating_add(stored)
            }
        };
        self.bytes = self.bytes.checked_sub(cost).ok_or(Errno::ENOSPC)?;
        self.entries = self.entries.checked_sub(1).ok_or(Errno::ENOSPC)?;
        Ok(())
    }

    fn step(&mut self) -> crate::Result<()> {
        self.steps = self.steps.checked_sub(1).ok_or(Errno::ENOSPC)?;
        Ok(())
    }
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
        let mut buf = vec![0; 64 << 10];
        while let Some(entry) = archive.next()? {
            imported.entries += 1;
            self.left.take(&entry).map_err(|errno| TarError::File { name: entry.name.clone(), errno })?;
            imported.bytes += self.unpack(archive, &entry, &mut buf)?;
        }
        for Late { target, mode, mtime } in std::mem::take(&mut self.late).into_values() {
            let set = self.set_metadata(&target, mode, mtime);
            set.map_err(|errno| TarError::File { name: target.name, errno })?;
        }
        Ok(imported)
    }

    fn unpack<R: Read>(
        &mut self,
        archive: &mut Archive<R>,
        entry: &Entry,
        buf: &mut [u8],
    ) -> Result<u64, TarError> {
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
            Kind::File | Kind::Sparse => return self.file(archive, &target, entry, buf),
            Kind::Symlink => self.symlink(&target, entry).map_err(failed)?,
            Kind::HardLink => self.hard_link(&target, entry)?,
            Kind::Fifo => self.fifo(&target, entry).map_err(failed)?,
            Kind::CharDevice | Kind::BlockDevice => return Err(refused("is a device")),
            _ => return Err(refused("is of an unknown kind")),
        }
        Ok(0)
    }

    /// Walks down from the top through directories only, creating missing ones if requested. Starts where the last walk
    /// was on the same way.
    fn enter(&mut self, names: &[&[u8]], make: bool) -> crate::Result<Place> {
        let known = self.way.iter().zip(names).take_while(|((known, _), name)| known[..] == ***name).count();
        self.way.truncate(known);
        for name in &names[known..] {
            self.left.step()?;
            let place = self.way.last().map_or(&self.top, |(_, place)| place).clone();
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
            self.way.push((name.to_vec(), below));
        }
        Ok(self.way.last().map_or(&self.top, |(_, place)| place).clone())
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
        buf: &mut [u8],
    ) -> Result<u64, TarError> {
        let failed = |errno| TarError::File { name: entry.name.clone(), errno };
        self.clear(target).map_err(failed)?;
        let flags = OpenFlags::CREATE | OpenFlags::EXCL | OpenFlags::WRITE;
        let file = self.tree.open(self.who, &target.dir, &target.name, flags, 0o600).map_err(failed)?;
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
        let dir = self.enter(dirs, false).map_err(|errno| match errno {
            Errno::ENOSPC => failed(errno),
            _ => refused("is a link to nothing in the archive"),
        })?;
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
