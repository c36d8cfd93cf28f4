//! A tree as bytes: what differs from the tree it began as, in pieces that change separately.
//!
//! ```text
//! group 0    inodes 0 to 31       of each that is not as in the base: its metadata, its names or chunks
//! group 1    inodes 32 to 63      a change to one inode changes one group
//! rest       counters, mounts, notes about what is below overlays
//! ```
//! The base is the system, with what the embedder installed and mounted. It is not recorded, so that a tree wakes up over
//! today's programs; its shape is, since numbers of inodes mean nothing over another one.

use crate::chunk::{Chunk, ChunkName, ChunkSource};
use crate::conflict::Below;
use crate::content::{CHUNK, FileBody, Recorded};
use crate::dir::{Dir, Target};
use crate::host::HostDir;
use crate::inode::{Body, Inode};
use crate::mount::{MountPoint, Mounts, Source};
use crate::name::Name;
use crate::packed::PACKED;
use crate::place::{Ino, MountSpot};
use crate::quota::{Quota, Usage};
use crate::record_bytes::{Reader, Writer};
use crate::{Device, HostAccess, HostRefusal, HostRoots, Result, Tree};
use imbl::OrdMap;
use imbl::ordmap::DiffItem;
use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many inodes are in a group: 2 to this power.
const GROUP: u32 = 5;

/// Takes the chunks of files that are recorded, in order.
pub trait ChunkSink {
    /// Takes a chunk. One that is not `new` was in the tree that was recorded last.
    fn chunk(&mut self, chunk: &Chunk, new: bool) -> Result<()>;
}

/// Why a tree could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordError {
    /// The bytes are not those of a tree.
    Damaged(&'static str),
    /// A host directory that was mounted cannot be mounted again.
    Mount(PathBuf, HostRefusal),
}

/// What a tree is read from.
pub struct Records<'a> {
    /// The groups, each with the names of its chunks.
    pub groups: &'a [(Vec<u8>, Vec<ChunkName>)],
    /// The rest.
    pub rest: &'a [u8],
    /// Where chunks are fetched from.
    pub source: &'a Arc<dyn ChunkSource>,
    /// The directory for the journals of overlays.
    pub state: Option<&'a Path>,
    /// Where host directories have to be that were mounted, if not anywhere.
    pub roots: Option<&'a HostRoots>,
}

impl std::fmt::Debug for Records<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Records").field("groups", &self.groups.len()).finish_non_exhaustive()
    }
}

impl Tree {
    /// Returns the numbers of the groups in which this tree differs from `since`. Takes time in proportion to what differs.
    pub fn changed_groups(&self, since: &Tree) -> BTreeSet<u64> {
        let number = |change: DiffItem<'_, '_, Ino, Arc<Inode>>| match change {
            DiffItem::Add(ino, _) | DiffItem::Remove(ino, _) => ino >> GROUP,
            DiffItem::Update { new: (ino, _), .. } => ino >> GROUP,
        };
        since.inodes.diff(&self.inodes).map(number).collect()
    }

    /// Records a group: `None` if everything in it is as in `base`. `since` is the tree that was recorded last.
    pub fn record_group(
        &self,
        base: &Tree,
        since: &Tree,
        group: u64,
        sink: &mut dyn ChunkSink,
    ) -> Result<Option<Vec<u8>>> {
        let (first, last) = (group << GROUP, ((group + 1) << GROUP) - 1);
        let mut out = Writer::default();
        for (ino, inode) in self.inodes.range(first..=last) {
            let of_base = base.inodes.get(ino).or_else(|| base.packed_inode(*ino));
            // A removed file that is still open belongs to the process that has it open.
            if inode.nlink == 0 || of_base.is_some_and(|known| Arc::ptr_eq(known, inode)) {
                continue;
            }
            out.number(ino + 1);
            let known = since.inodes.get(ino);
            let is_known = known.is_some_and(|known| Arc::ptr_eq(known, inode));
            let before = known.and_then(|known| known.file());
            write_inode(&mut out, self, inode, of_base.map(|of_base| &**of_base));
            if let Some(file) = inode.file() {
                file.each_chunk(of_base.and_then(|of_base| of_base.file()), |number, chunk| {
                    let new = !is_known && !before.is_some_and(|before| before.has_chunk(number, chunk));
                    sink.chunk(chunk, new)
                })?;
            }
        }
        let gone = base.inodes.range(first..=last);
        let gone: Vec<Ino> = gone
            .map(|(ino, _)| *ino)
            .filter(|ino| self.inodes.get(ino).is_none_or(|inode| inode.nlink == 0))
            .collect();
        if out.is_empty() && gone.is_empty() {
            return Ok(None);
        }
        out.number(0);
        gone.iter().for_each(|ino| out.number(*ino));
        Ok(Some(out.into_bytes()))
    }

    /// Records what is not in any group.
    pub fn record_rest(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.next_number());
        let orphans =
            self.opens.keys().filter_map(|ino| self.inodes.get(ino)).filter(|inode| inode.nlink == 0);
        let mut used = self.used;
        orphans.for_each(|inode| used -= inode.cost());
        for usage in [used, self.given] {
            write_usage(&mut out, usage);
        }
        out.number(self.extra_links);
        out.number(self.copied.len() as u64);
        for (spot, ino) in &self.copied {
            write_spot(&mut out, spot);
            out.number(*ino);
        }
        out.number(self.below.len() as u64);
        for (spot, below) in &self.below {
            write_spot(&mut out, spot);
            below.write(&mut out);
        }
        out.number(self.unpacked_and_gone.len() as u64);
        self.unpacked_and_gone.keys().for_each(|ino| out.number(ino - PACKED));
        self.mounts.write(&mut out);
        out.into_bytes()
    }

    /// Returns the shape of a base: its inodes with their numbers, names, modes and sizes. Trees recorded over a base of one
    /// shape can be read over another base of the same.
    pub fn shape(&self) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(self.next_number());
        for (ino, inode) in &self.inodes {
            out.number(ino + 1);
            let timeless = Inode { atime: 0, mtime: 0, ctime: 0, shown_ino: None, ..(**inode).clone() };
            // Content that the base would supply.
            write_inode(&mut out, self, &timeless, Some(&timeless));
        }
        out.number(0);
        out.into_bytes()
    }

    /// Reads a tree over a base of the same shape as the one it was recorded over.
    pub fn from_records(base: &Tree, records: &Records<'_>) -> std::result::Result<Tree, RecordError> {
        let mut tree = base.clone();
        tree.opens = OrdMap::new();
        for (bytes, names) in records.groups {
            let mut chunks = names.iter().map(|name| Chunk::stored(*name, records.source));
            read_group(&mut Reader::new(bytes), base, &mut tree, &mut chunks)?;
        }
        tree.read_rest(&mut Reader::new(records.rest), base, records)?;
        Ok(tree)
    }

    /// Reads a tree without its base, of which only the shape is known: its own files can then be exported.
    pub fn from_records_alone(shape: &[u8], records: &Records<'_>) -> std::result::Result<Tree, RecordError> {
        let mut base = Tree::new(Quota::NONE);
        let mut input = Reader::new(shape);
        let next = input.number()?;
        read_inodes(&mut input, None, &mut base, &mut std::iter::empty())?;
        base.start_numbers_at(next);
        let mut tree = base.clone();
        for (bytes, names) in records.groups {
            let mut chunks = names.iter().map(|name| Chunk::stored(*name, records.source));
            read_group(&mut Reader::new(bytes), &base, &mut tree, &mut chunks)?;
        }
        // Without mounts: what they cover is there, what is in them is not.
        let covered: Vec<Ino> = tree
            .inodes
            .iter()
            .filter(|(_, inode)| inode.dir().is_some_and(|dir| dir.covered_by.is_some()))
            .map(|(ino, _)| *ino)
            .collect();
        for ino in covered {
            if let Ok(dir) = tree.dir_mut(ino) {
                dir.covered_by = None;
            }
        }
        Ok(tree)
    }

    fn read_rest(
        &mut self,
        input: &mut Reader<'_>,
        base: &Tree,
        records: &Records<'_>,
    ) -> std::result::Result<(), RecordError> {
        let next = input.number()?;
        self.start_numbers_at(next);
        (self.used, self.given) = (read_usage(input)?, read_usage(input)?);
        self.extra_links = input.number()?;
        self.copied = OrdMap::new();
        for _ in 0..input.number()? {
            let spot = read_spot(input)?;
            self.copied.insert(spot, input.number()?);
        }
        self.below = OrdMap::new();
        for _ in 0..input.number()? {
            let spot = read_spot(input)?;
            self.below.insert(spot, Below::read(input)?);
        }
        self.unpacked_and_gone = OrdMap::new();
        for _ in 0..input.number()? {
            self.unpacked_and_gone.insert(PACKED.saturating_add(input.number()?), ());
        }
        self.mounts = Arc::new(Mounts::read(input, &base.mounts, records)?);
        Ok(())
    }
}

fn write_usage(out: &mut Writer, usage: Usage) {
    [usage.bytes, usage.inodes, usage.metadata].iter().for_each(|number| out.number(*number));
}

fn read_usage(input: &mut Reader<'_>) -> std::result::Result<Usage, RecordError> {
    Ok(Usage { bytes: input.number()?, inodes: input.number()?, metadata: input.number()? })
}

fn write_spot(out: &mut Writer, spot: &MountSpot) {
    out.number(u64::from(spot.mount));
    out.bytes(&spot.path);
}

fn read_spot(input: &mut Reader<'_>) -> std::result::Result<MountSpot, RecordError> {
    let mount = input.small()?;
    Ok(MountSpot { mount, path: input.bytes()?.into() })
}

/// Writes all of an inode but the bytes of its chunks.
fn write_inode(out: &mut Writer, tree: &Tree, inode: &Inode, of_base: Option<&Inode>) {
    for time in [inode.atime, inode.mtime, inode.ctime] {
        out.fixed(time);
    }
    for number in [inode.mode, inode.uid, inode.gid, inode.nlink, inode.dev] {
        out.number(u64::from(number));
    }
    out.number(inode.shown_ino.map_or(0, NonZeroU64::get));
    out.number(u64::from(inode.charged) | u64::from(inode.installed) << 1);
    match &inode.body {
        Body::File(file) => {
            out.number(0);
            file.write(out, of_base.and_then(Inode::file));
        }
        Body::Dir(dir) => {
            out.number(1);
            write_dir(out, tree, dir);
        }
        Body::Symlink(target) => {
            out.number(2);
            out.bytes(target);
        }
        Body::Fifo => out.number(3),
        Body::Socket => out.number(4),
        Body::Device(device) => {
            out.number(5);
            out.number(device.number());
        }
    }
}

fn write_dir(out: &mut Writer, tree: &Tree, dir: &Dir) {
    out.number(dir.parent);
    out.bytes(&dir.name);
    out.number(u64::from(dir.subdirs));
    match &dir.lower {
        Some(lower) => {
            out.number(1);
            write_spot(out, lower);
        }
        None => out.number(0),
    }
    // Computed files are mounted again by the code that computes them.
    let covered_by = dir
        .covered_by
        .filter(|id| tree.mount_point(*id).is_ok_and(|point| !matches!(point.source, Source::Virtual(_))));
    out.number(covered_by.map_or(0, u64::from));
    let entries = dir.entries_from(0).count();
    out.number(entries as u64);
    for (_, entry) in dir.entries_from(0) {
        out.bytes(&entry.name);
        match entry.target {
            Target::Inode(ino) => {
                out.number(0);
                out.number(ino);
            }
            Target::System(ino) => {
                out.number(1);
                out.number(ino);
            }
            Target::Whiteout => out.number(2),
        }
    }
}

fn read_dir(input: &mut Reader<'_>) -> std::result::Result<Dir, RecordError> {
    let parent = input.number()?;
    let mut dir = Dir::new(parent, input.bytes()?);
    dir.subdirs = input.small()?;
    if input.number()? != 0 {
        dir.lower = Some(read_spot(input)?);
    }
    dir.covered_by = Some(input.small()?).filter(|id| *id != 0);
    for _ in 0..input.number()? {
        let name = Name::new(input.bytes()?);
        let target = match input.number()? {
            0 => Target::Inode(input.number()?),
            1 => Target::System(input.number()?),
            2 => Target::Whiteout,
            _ => return Err(RecordError::Damaged("a name of an unknown kind")),
        };
        if !dir.put(&name, target) {
            return Err(RecordError::Damaged("a directory with too many names of one hash"));
        }
    }
    Ok(dir)
}

fn read_group(
    input: &mut Reader<'_>,
    base: &Tree,
    tree: &mut Tree,
    chunks: &mut dyn Iterator<Item = Chunk>,
) -> std::result::Result<(), RecordError> {
    read_inodes(input, Some(base), tree, chunks)?;
    while !input.is_empty() {
        let gone = input.number()?;
        tree.inodes.remove(&gone);
    }
    Ok(())
}

/// Reads inodes until the number 0. Without a base, what it would supply is a hole.
fn read_inodes(
    input: &mut Reader<'_>,
    base: Option<&Tree>,
    tree: &mut Tree,
    chunks: &mut dyn Iterator<Item = Chunk>,
) -> std::result::Result<(), RecordError> {
    loop {
        let Some(ino) = input.number()?.checked_sub(1) else { return Ok(()) };
        let of_base = base.and_then(|base| base.inode(ino).ok());
        let inode = read_inode(input, of_base, chunks)?;
        tree.inodes.insert(ino, Arc::new(inode));
    }
}

fn read_inode(
    input: &mut Reader<'_>,
    of_base: Option<&Inode>,
    chunks: &mut dyn Iterator<Item = Chunk>,
) -> std::result::Result<Inode, RecordError> {
    let (atime, mtime, ctime) = (input.fixed()?, input.fixed()?, input.fixed()?);
    let (mode, uid, gid, nlink, dev) =
        (input.small()?, input.small()?, input.small()?, input.small()?, input.small()?);
    let shown_ino = NonZeroU64::new(input.number()?);
    let flags = input.number()?;
    let body = match input.number()? {
        0 => Body::File(read_file(input, of_base.and_then(Inode::file), chunks)?),
        1 => Body::Dir(Box::new(read_dir(input)?)),
        2 => Body::Symlink(input.bytes()?.into()),
        3 => Body::Fifo,
        4 => Body::Socket,
        5 => Body::Device(Device::of(input.number()?).ok_or(RecordError::Damaged("an unknown device"))?),
        _ => return Err(RecordError::Damaged("an inode of an unknown kind")),
    };
    let (charged, installed) = (flags & 1 != 0, flags & 2 != 0);
    Ok(Inode { body, atime, mtime, ctime, mode, uid, gid, nlink, dev, shown_ino, charged, installed })
}

fn read_file(
    input: &mut Reader<'_>,
    of_base: Option<&FileBody>,
    chunks: &mut dyn Iterator<Item = Chunk>,
) -> std::result::Result<FileBody, RecordError> {
    let missing = RecordError::Damaged("a file has fewer chunks than it says");
    let size = input.number()?;
    let recorded = match input.number()? {
        0 => Recorded::Chunks(Vec::new()),
        1 => {
            let count = input.number()?;
            let (mut all, mut number) = (Vec::new(), 0);
            for _ in 0..count {
                number += input.number()?;
                if number > size / CHUNK {
                    return Err(RecordError::Damaged("a chunk lies beyond the end of its file"));
                }
                all.push((number, chunks.next().ok_or(missing.clone())?));
                number += 1;
            }
            Recorded::Chunks(all)
        }
        2 => match of_base {
            Some(file) if file.size() == size => return Ok(file.clone()),
            _ => Recorded::Chunks(Vec::new()),
        },
        3 => {
            let mut all = Vec::new();
            for _ in 0..size.div_ceil(CHUNK) {
                all.push(chunks.next().ok_or(missing.clone())?);
            }
            Recorded::Given(all)
        }
        4 => Recorded::Lower(read_spot(input)?),
        _ => return Err(RecordError::Damaged("a file of an unknown kind")),
    };
    Ok(FileBody::recorded(size, recorded))
}

impl Mounts {
    fn write(&self, out: &mut Writer) {
        out.number(u64::from(self.last_id()));
        let kept = |point: &MountPoint| !matches!(point.source, Source::Virtual(_));
        out.number(self.points().filter(|(_, point)| kept(point)).count() as u64);
        for (id, point) in self.points().filter(|(_, point)| kept(point)) {
            out.number(u64::from(id));
            out.number(point.covered);
            write_usage(out, point.charge);
            match &point.source {
                Source::Files { root, writable } => {
                    out.number(u64::from(*writable));
                    out.number(*root);
                }
                Source::Host { dir, writable } => {
                    out.number(2 + u64::from(*writable));
                    out.bytes(dir.path().as_os_str().as_bytes());
                }
                Source::Overlay { dir, root } => {
                    out.number(4);
                    out.number(*root);
                    out.bytes(dir.path().as_os_str().as_bytes());
                }
                Source::Virtual(_) => {}
            }
        }
    }

    fn read(
        input: &mut Reader<'_>,
        base: &Mounts,
        records: &Records<'_>,
    ) -> std::result::Result<Mounts, RecordError> {
        let last_id = input.small()?;
        let mut points = Vec::new();
        for _ in 0..input.number()? {
            let (id, covered, charge) = (input.small()?, input.number()?, read_usage(input)?);
            let kind = input.number()?;
            let host = |input: &mut Reader<'_>, access| {
                let path = PathBuf::from(std::ffi::OsStr::from_bytes(input.bytes()?));
                let known = base.points().filter_map(|(_, point)| point.source.host_dir());
                match known.into_iter().find(|dir| dir.path() == path) {
                    Some(dir) => Ok(dir.clone()),
                    None => {
                        let state = records.state.map(Path::to_owned);
                        let opened = HostDir::open(&path, access, state, records.roots);
                        opened.map(Arc::new).map_err(|refusal| RecordError::Mount(path, refusal))
                    }
                }
            };
            let source = match kind {
                0 | 1 => Source::Files { root: input.number()?, writable: kind == 1 },
                2 => Source::Host { dir: host(input, HostAccess::ReadOnly)?, writable: false },
                3 => Source::Host { dir: host(input, HostAccess::ReadWrite)?, writable: true },
                4 => {
                    let root = input.number()?;
                    Source::Overlay { dir: host(input, HostAccess::Overlay)?, root }
                }
                _ => return Err(RecordError::Damaged("a mount of an unknown kind")),
            };
            points.push((id, MountPoint { covered, source, charge }));
        }
        Ok(Mounts::of(points, last_id))
    }
}
