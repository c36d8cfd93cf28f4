//! A session between commands, as a value: what a fork clones, a snapshot keeps, an archive stores.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use wardian_vfs::{Caller, Errno, FileKind, Handle, OpenFlags, Result, Seek, Tree};

use crate::memory::image::Image;
use crate::memory::pages::Page;
use crate::memory::stored::StoredTemplate;
use crate::net::Shape;
use crate::signal::Signals;
use crate::stream::Standard;
use crate::strings::Strings;

/// What the kernel and the program keep for an idle process, except for its open files.
#[derive(Clone)]
pub(crate) struct Rest {
    pub(crate) image: Arc<Image>,
    pub(crate) env: Strings,
    pub(crate) umask: u32,
    pub(crate) signals: Signals,
}

/// What each value takes by itself, whatever it shares with others: its own parts, and the nodes of its tree that lead to
/// what differs.
const FLAT: u64 = 8 << 10;
/// What a descriptor takes in addition to its name: in the list, and in its tree's count of open files.
const DESCRIPTOR: u64 = size_of::<(u32, RestingFd)>() as u64 + 64;
/// Values with more descriptors than this are not opened on a worker.
const DESCRIPTORS_AT_ONCE: usize = 2_000;

/// A session program's state between commands. It belongs to the tree it was captured with, and to clones of that.
#[derive(Clone)]
pub struct AtRest {
    pub(crate) rest: Rest,
    pub(crate) cwd: Handle,
    pub(crate) cwd_name: Arc<[u8]>,
    pub(crate) fds: Arc<[(u32, RestingFd)]>,
}

/// A descriptor between commands.
#[derive(Clone)]
pub(crate) struct RestingFd {
    pub(crate) what: Resting,
    pub(crate) cloexec: bool,
}

/// What a descriptor refers to.
#[derive(Clone)]
pub(crate) enum Resting {
    /// A file of the tree, at its offset. Copies of one open file have the same `description`.
    File { description: u32, handle: Handle, name: Arc<[u8]> },
    /// A stream of the next command.
    Stream(Standard),
    /// The end of a pipe; its other end stays with the original.
    Pipe { reads: bool, writes: bool },
    /// A socket; its other end stays with the original.
    Socket(Shape),
}

impl AtRest {
    /// Returns the bytes of memory that it keeps and `other` does not: pages and names that both share count once.
    pub fn bytes_beyond(&self, other: Option<&AtRest>) -> u64 {
        let image = self.rest.image.bytes_beyond(other.map(|other| &*other.rest.image));
        let env = self.rest.env.block();
        let env =
            if other.is_some_and(|other| std::ptr::eq(other.rest.env.block(), env)) { 0 } else { env.len() };
        let mut known: HashSet<*const u8> =
            other.into_iter().flat_map(AtRest::names).map(|name| name.as_ptr()).collect();
        let names = self.names().filter(|name| known.insert(name.as_ptr()));
        let names: usize = names.map(<[u8]>::len).sum();
        let held: usize = self.handles().map(Handle::held_bytes).sum();
        FLAT + image + (env + names + held) as u64 + DESCRIPTOR * self.fds.len() as u64
    }

    /// The names of its directory and of its open files.
    fn names(&self) -> impl Iterator<Item = &[u8]> {
        let files = self.fds.iter().filter_map(|(_, fd)| match &fd.what {
            Resting::File { name, .. } => Some(&**name),
            Resting::Stream(_) | Resting::Pipe { .. } | Resting::Socket(_) => None,
        });
        std::iter::once(&*self.cwd_name).chain(files)
    }

    /// Its open files, each once however many descriptors it has.
    fn handles(&self) -> impl Iterator<Item = &Handle> {
        let mut seen = HashSet::new();
        self.fds.iter().filter_map(move |(_, fd)| match &fd.what {
            Resting::File { description, handle, .. } => seen.insert(*description).then_some(handle),
            Resting::Stream(_) | Resting::Pipe { .. } | Resting::Socket(_) => None,
        })
    }

    /// Returns whether it has so many open files that opening them again takes a while: not for an async worker.
    pub fn is_large(&self) -> bool {
        self.fds.len() > DESCRIPTORS_AT_ONCE
    }

    /// Prepares a clone of a tree for all sessions of its machine: closes what only the processes left behind have open.
    pub fn take_along<'a>(sessions: impl IntoIterator<Item = &'a AtRest>, tree: &mut Tree) {
        let open = |each: &'a AtRest| std::iter::once(&each.cwd).chain(each.handles());
        tree.close_all_but(sessions.into_iter().flat_map(open));
    }
}

/// An idle session without references to this process's memory: it can be written out and read elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// The environment it was started with.
    pub env: Vec<Vec<u8>>,
    /// The working directory.
    pub cwd: Vec<u8>,
    /// Permission bits new files do not get.
    pub umask: u32,
    /// Its disposition of each signal, by number, as in the guest interface.
    pub signals: Vec<u8>,
    /// Its descriptors.
    pub fds: Vec<PackedFd>,
    /// Its memory size in bytes.
    pub memory_size: u64,
    /// Its stack pointer.
    pub stack_pointer: u32,
    /// The pages of its memory that differ from a fresh instance's.
    pub pages: Vec<(u32, Arc<Page>)>,
}

/// A descriptor of a packed session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedFd {
    /// Its number.
    pub number: u32,
    /// Whether it closes on exec.
    pub cloexec: bool,
    /// What it refers to.
    pub what: PackedFile,
}

/// What a packed descriptor refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackedFile {
    /// An open file. Copies of one opening have the same `description`.
    File {
        /// Which opening.
        description: u32,
        /// How it was opened: bits of [`OpenFlags`].
        flags: u32,
        /// The offset of the next read or write.
        offset: u64,
        /// Where the file is, or its contents if it has no name any more.
        place: PackedPlace,
    },
    /// 0, 1 or 2: a stream of the next command.
    Stream(u8),
    /// The end of a pipe.
    Pipe {
        /// Whether it is readable.
        reads: bool,
        /// Whether it is writable.
        writes: bool,
    },
    /// A socket, as a number that says what kind it was.
    Socket(u8),
}

/// Where an open file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackedPlace {
    /// At this path.
    Path(Vec<u8>),
    /// Nowhere: it was removed, and only this content is left.
    Orphan(Vec<u8>),
}

impl AtRest {
    /// Packs it, given the tree it belongs to.
    pub fn pack(&self, tree: &Tree) -> std::io::Result<Packed> {
        Ok(Packed { pages: self.rest.image.flatten()?, ..self.pack_without_memory(tree)? })
    }

    /// Does the same without its pages: see [`AtRest::memory`].
    pub fn pack_without_memory(&self, tree: &Tree) -> std::io::Result<Packed> {
        let rest = &self.rest;
        let (size, stack_pointer) = rest.image.shape();
        Ok(Packed {
            env: rest.env.to_vecs(),
            cwd: tree.path_of(&self.cwd.place()).unwrap_or_else(|_| b"/".to_vec()),
            umask: rest.umask,
            signals: rest.signals.to_bytes(),
            fds: self
                .fds
                .iter()
                .map(|(number, fd)| fd.pack(*number, tree))
                .collect::<std::io::Result<_>>()?,
            memory_size: size as u64,
            stack_pointer,
            pages: Vec::new(),
        })
    }

    /// Unpacks it onto a tree, whose files it opens. Returns EINVAL if the parts cannot belong together.
    pub fn unpack(packed: Packed, tree: &mut Tree) -> Result<AtRest> {
        AtRest::unpack_over(packed, None, tree)
    }

    /// Does the same if it was packed without its memory's template; its pages are those that differ from that.
    pub fn unpack_over(
        mut packed: Packed,
        ground: Option<StoredTemplate>,
        tree: &mut Tree,
    ) -> Result<AtRest> {
        let size = usize::try_from(packed.memory_size).map_err(|_| Errno::EINVAL)?;
        let pages = std::mem::take(&mut packed.pages);
        let image = match ground {
            None => Image::rebuild(size, packed.stack_pointer, pages),
            Some(ground) => ground.image((size, packed.stack_pointer), pages)?,
        };
        let image = image.ok_or(Errno::EINVAL)?;
        let cwd = open_directory(tree, &packed.cwd)?;
        let mut opened = BTreeMap::new();
        let mut fds = Vec::with_capacity(packed.fds.len());
        for fd in packed.fds {
            let what = fd.what.unpack(tree, &mut opened)?;
            fds.push((fd.number, RestingFd { what, cloexec: fd.cloexec }));
        }
        let rest = Rest {
            image: Arc::new(image),
            env: Strings::given(&packed.env)?,
            umask: packed.umask & 0o777,
            signals: Signals::from_bytes(&packed.signals)?,
        };
        Ok(AtRest { rest, cwd, cwd_name: packed.cwd.into(), fds: fds.into() })
    }
}

impl RestingFd {
    fn pack(&self, number: u32, tree: &Tree) -> std::io::Result<PackedFd> {
        let what = match &self.what {
            Resting::Stream(which) => PackedFile::Stream(*which as u8),
            Resting::Pipe { reads, writes } => PackedFile::Pipe { reads: *reads, writes: *writes },
            Resting::Socket(shape) => PackedFile::Socket(shape.to_number()),
            Resting::File { description, handle, name } => PackedFile::File {
                description: *description,
                flags: handle.flags().bits(),
                offset: handle.offset(),
                place: pack_place(tree, handle, name)?,
            },
        };
        Ok(PackedFd { number, cloexec: self.cloexec, what })
    }
}

/// Returns the path of an open file, if the name it was opened by still leads to it; else its contents.
fn pack_place(tree: &Tree, handle: &Handle, name: &[u8]) -> std::io::Result<PackedPlace> {
    let found = tree.lookup(&Caller::ROOT, &tree.root(), name, true);
    if handle.kind() != FileKind::File || found.is_ok_and(|place| place == handle.place()) {
        return Ok(PackedPlace::Path(name.to_vec()));
    }
    let failed = |errno: Errno| std::io::Error::other(format!("an open file without a name: {errno}"));
    let size = tree.stat_handle(&Caller::ROOT, handle).map_err(failed)?.size;
    let mut content = vec![0; usize::try_from(size).map_err(std::io::Error::other)?];
    let mut filled = 0;
    while filled < content.len() {
        match tree.peek(handle, &mut content[filled..], filled as u64).map_err(failed)? {
            0 => break,
            count => filled += count,
        }
    }
    content.truncate(filled);
    Ok(PackedPlace::Orphan(content))
}

impl PackedFile {
    fn unpack(self, tree: &mut Tree, opened: &mut BTreeMap<u32, (Handle, Arc<[u8]>)>) -> Result<Resting> {
        Ok(match self {
            PackedFile::Stream(0) => Resting::Stream(Standard::Input),
            PackedFile::Stream(1) => Resting::Stream(Standard::Output),
            PackedFile::Stream(2) => Resting::Stream(Standard::Error),
            PackedFile::Stream(_) => return Err(Errno::EINVAL),
            PackedFile::Pipe { reads, writes } => Resting::Pipe { reads, writes },
            PackedFile::Socket(number) => Resting::Socket(Shape::from_number(number).ok_or(Errno::EINVAL)?),
            PackedFile::File { description, flags, offset, place } => {
                if let std::collections::btree_map::Entry::Vacant(vacant) = opened.entry(description) {
                    let (mut handle, name) = reopen(tree, flags, place)?;
                    // A directory or device need not take it.
                    let _ = tree.seek(&mut handle, Seek::Start(offset));
                    vacant.insert((handle, name.into()));
                }
                let (handle, name) = opened[&description].clone();
                Resting::File { description, handle, name }
            }
        })
    }
}

/// Opens a working directory again.
pub(crate) fn open_directory(tree: &mut Tree, path: &[u8]) -> Result<Handle> {
    tree.open(&Caller::USER, &tree.root(), path, OpenFlags::PATH | OpenFlags::DIRECTORY, 0)
}

/// Opens a file again that was opened with these flags.
pub(crate) fn open_name(tree: &mut Tree, flags: OpenFlags, name: &[u8]) -> Result<Handle> {
    tree.open(&Caller::USER, &tree.root(), name, flags - MADE_ONCE, 0)
}

/// What a file that is opened again is not asked for.
const MADE_ONCE: OpenFlags = OpenFlags::CREATE.union(OpenFlags::EXCL).union(OpenFlags::TRUNC);

fn reopen(tree: &mut Tree, flags: u32, place: PackedPlace) -> Result<(Handle, Vec<u8>)> {
    let flags = OpenFlags::from_bits(flags).ok_or(Errno::EINVAL)?;
    match place {
        PackedPlace::Path(path) => Ok((open_name(tree, flags, &path)?, path)),
        PackedPlace::Orphan(content) => {
            let (who, root) = (Caller::USER, tree.root());
            let name = b"/tmp/.wardian-orphan".to_vec();
            let fresh = OpenFlags::WRITE | OpenFlags::CREATE | OpenFlags::EXCL;
            let mut made = tree.open(&who, &root, &name, fresh, 0o600)?;
            let mut left = &content[..];
            while !left.is_empty() {
                let count = tree.write(&mut made, left)?;
                left = &left[count..];
            }
            let handle = open_name(tree, flags, &name)?;
            tree.close(made);
            tree.unlink(&who, &root, &name)?;
            Ok((handle, name))
        }
    }
}
