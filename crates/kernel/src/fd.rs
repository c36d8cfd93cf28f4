//! Descriptors: a table of small numbers, each referring to an open file description that copies may share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use wardian_vfs::{Errno, Handle, Place, Result};

use crate::input::Input;
use crate::limits::{Charge, Meter};
use crate::locks::{Locks, Owner};
use crate::net::{Socket, SocketFd};
use crate::outlet::Outlet;
use crate::pipe::{Pipe, PipeReader, PipeWriter};
use crate::run::Run;
use crate::stream::Standard;
use crate::tty::Terminal;

/// An open file description: what `dup` and `fork` share, including its offset.
pub(crate) enum OpenFile {
    /// A file, directory or device in the tree.
    Tree(TreeFile),
    /// The read end of a pipe.
    Reader(PipeReader),
    /// The write end of a pipe.
    Writer(PipeWriter),
    /// Both ends of a FIFO, opened for reading and writing.
    Both(PipeReader, PipeWriter),
    /// A run's input.
    Input(Arc<Input>, Nonblocking),
    /// A run's output or error stream.
    Output(Arc<Outlet>, Standard, Nonblocking),
    /// A run's terminal, in place of one of its streams.
    Terminal(Arc<Terminal>, Standard, Nonblocking),
    /// A socket.
    Socket(SocketFd),
}

/// Whether reads and writes of a run's stream return EAGAIN instead of waiting. Each run begins with streams that wait.
#[derive(Default)]
pub(crate) struct Nonblocking(AtomicBool);

impl Nonblocking {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl OpenFile {
    /// A run's input.
    pub(crate) fn input(input: Arc<Input>) -> OpenFile {
        OpenFile::Input(input, Nonblocking::default())
    }

    /// One of the streams of a run's output.
    pub(crate) fn output(outlet: Arc<Outlet>, which: Standard) -> OpenFile {
        OpenFile::Output(outlet, which, Nonblocking::default())
    }

    /// A run's terminal in place of one of its streams.
    pub(crate) fn terminal(terminal: Arc<Terminal>, which: Standard) -> OpenFile {
        OpenFile::Terminal(terminal, which, Nonblocking::default())
    }

    /// Returns the file in the tree behind it: itself, or the name of a FIFO.
    pub(crate) fn in_tree(self: &Arc<Self>) -> Option<Arc<OpenFile>> {
        match &**self {
            OpenFile::Tree(_) => Some(self.clone()),
            _ => self.pipe()?.file().cloned(),
        }
    }

    /// Sets whether reads and writes return EAGAIN instead of waiting.
    pub(crate) fn set_nonblocking(&self, value: bool) {
        match self {
            OpenFile::Reader(reader) => reader.set_nonblocking(value),
            OpenFile::Writer(writer) => writer.set_nonblocking(value),
            OpenFile::Both(reader, writer) => {
                reader.set_nonblocking(value);
                writer.set_nonblocking(value);
            }
            OpenFile::Socket(socket) => socket.socket().set_nonblocking(value),
            OpenFile::Input(_, mode) | OpenFile::Output(.., mode) | OpenFile::Terminal(.., mode) => {
                mode.0.store(value, Ordering::Relaxed);
            }
            OpenFile::Tree(_) => {}
        }
    }

    /// The socket that it is.
    pub(crate) fn socket(&self) -> Option<&Arc<Socket>> {
        match self {
            OpenFile::Socket(socket) => Some(socket.socket()),
            _ => None,
        }
    }

    /// The pipe whose end it is.
    pub(crate) fn pipe(&self) -> Option<&Arc<Pipe>> {
        match self {
            OpenFile::Reader(reader) | OpenFile::Both(reader, _) => Some(reader.pipe()),
            OpenFile::Writer(writer) => Some(writer.pipe()),
            OpenFile::Tree(_)
            | OpenFile::Input(..)
            | OpenFile::Output(..)
            | OpenFile::Terminal(..)
            | OpenFile::Socket(_) => None,
        }
    }
}

/// A handle into the tree, closed with the last descriptor.
pub(crate) struct TreeFile {
    handle: Mutex<Option<Handle>>,
    place: Place,
    /// Its name when it was opened, for `/proc`. Shared with every fork and snapshot that has it open.
    name: Arc<[u8]>,
    host: bool,
    released: Arc<ReleaseBin>,
    /// Whether it is a preopened directory of a foreign program, which knows it by that name.
    preopen: bool,
    /// What the sandbox is charged for it; nothing for what the host opened.
    charge: Mutex<Option<Charge>>,
    /// What it is as an owner of locks, and where they are, if it has set some.
    locks: OnceLock<(Arc<Locks>, Owner)>,
}

/// What an open file costs in addition to its name.
const OVERHEAD: usize = 512;

impl TreeFile {
    pub(crate) fn new(handle: Handle, name: Arc<[u8]>, released: Arc<ReleaseBin>) -> TreeFile {
        let (place, host) = (handle.place(), handle.is_host());
        let (handle, charge) = (Mutex::new(Some(handle)), Mutex::new(None));
        let locks = OnceLock::new();
        TreeFile { handle, place, name, host, released, preopen: false, charge, locks }
    }

    /// One that a foreign program starts with.
    pub(crate) fn preopened(mut self) -> TreeFile {
        self.preopen = true;
        self
    }

    /// The name that a foreign program knows it by from the start.
    pub(crate) fn preopen_name(&self) -> Option<&[u8]> {
        self.preopen.then_some(&self.name)
    }

    /// Charges the sandbox for what it keeps now. Returns ENOMEM past the limit.
    pub(crate) fn charge(&self, meter: &Arc<Meter>, run: &Run) -> Result<()> {
        let bytes = OVERHEAD + self.name.len() + self.with(|handle| Ok(handle.held_bytes()))?;
        let mut charge = self.charge.lock();
        if charge.get_or_insert_with(|| Charge::nothing(meter)).grow_to(bytes) {
            return Ok(());
        }
        run.hit("memoryBytes");
        Err(Errno::ENOMEM)
    }

    /// What it is as an owner of locks, which go with it.
    pub(crate) fn owner(&self, locks: &Arc<Locks>) -> Owner {
        self.locks.get_or_init(|| (locks.clone(), Locks::new_description())).1
    }

    /// Where the file is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its name, for those who keep it.
    pub(crate) fn shared_name(&self) -> Arc<[u8]> {
        self.name.clone()
    }

    /// Returns whether reading or writing it may block on the host.
    pub(crate) fn is_host(&self) -> bool {
        self.host
    }

    /// Uses the handle. The tree's lock is taken before this one, never after.
    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Handle) -> Result<T>) -> Result<T> {
        f(self.handle.lock().as_mut().ok_or(Errno::EBADF)?)
    }
}

impl Drop for TreeFile {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.get_mut().take() {
            self.released.0.lock().push(handle);
        }
        if let Some((locks, owner)) = self.locks.get() {
            locks.release(&self.place, *owner);
        }
    }
}

/// Handles whose last descriptor is gone. A drop cannot wait for the tree's lock, so the next task that takes the lock
/// closes them first (`Machine::tree`): no observer ever sees them open.
#[derive(Default)]
pub(crate) struct ReleaseBin(Mutex<Vec<Handle>>);

impl ReleaseBin {
    pub(crate) fn drain(&self) -> Vec<Handle> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// One entry of a table.
#[derive(Clone)]
pub(crate) struct Fd {
    pub(crate) file: Arc<OpenFile>,
    pub(crate) cloexec: bool,
}

impl Fd {
    pub(crate) fn new(file: OpenFile) -> Fd {
        Fd { file: Arc::new(file), cloexec: false }
    }
}

/// A limit that a process may lower, and raise again up to the hard one. `u64::MAX` means none.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Allowance {
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

impl Allowance {
    const NONE: Allowance = Allowance { soft: u64::MAX, hard: u64::MAX };

    /// Sets both, as `setrlimit` may.
    pub(crate) fn set(&mut self, to: Allowance) -> Result<()> {
        match () {
            () if to.soft > to.hard => Err(Errno::EINVAL),
            () if to.hard > self.hard => Err(Errno::EPERM),
            () => {
                *self = to;
                Ok(())
            }
        }
    }
}

/// A process's descriptors, and what it may do with them.
#[derive(Clone, Default)]
pub(crate) struct FdTable {
    slots: Vec<Option<Fd>>,
    /// Numbers from here up are refused; those in use stay.
    pub(crate) open: Allowance,
    /// The maximum size of a file.
    pub(crate) file_size: Allowance,
}

impl FdTable {
    /// An empty table that holds up to `limit`.
    pub(crate) fn new(limit: usize) -> FdTable {
        let open = Allowance { soft: limit as u64, hard: limit as u64 };
        FdTable { slots: Vec::new(), open, file_size: Allowance::NONE }
    }

    /// An empty table with the same limits.
    pub(crate) fn emptied(&self) -> FdTable {
        FdTable { slots: Vec::new(), ..*self }
    }

    fn limit(&self) -> usize {
        self.open.soft as usize
    }

    pub(crate) fn get(&self, fd: u32) -> Result<&Fd> {
        self.slots.get(fd as usize).and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    pub(crate) fn get_mut(&mut self, fd: u32) -> Result<&mut Fd> {
        self.slots.get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// Inserts `entry` at the lowest free number from `min` up.
    pub(crate) fn insert(&mut self, entry: Fd, min: u32) -> Result<u32> {
        let min = min as usize;
        let free = (min..self.limit()).find(|&i| self.slots.get(i).is_none_or(Option::is_none));
        let at = free.ok_or(if min > 0 && min >= self.limit() { Errno::EINVAL } else { Errno::EMFILE })?;
        self.put(at as u32, entry)?;
        Ok(at as u32)
    }

    /// Inserts `entry` at `at`; returns what was there.
    pub(crate) fn put(&mut self, at: u32, entry: Fd) -> Result<Option<Fd>> {
        let at = at as usize;
        if at >= self.limit() {
            return Err(Errno::EBADF);
        }
        if at >= self.slots.len() {
            self.slots.resize(at + 1, None);
        }
        Ok(self.slots[at].replace(entry))
    }

    /// Removes the entry.
    pub(crate) fn remove(&mut self, fd: u32) -> Result<Fd> {
        self.slots.get_mut(fd as usize).and_then(Option::take).ok_or(Errno::EBADF)
    }

    /// All entries with their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Fd)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| Some((i as u32, slot.as_ref()?)))
    }

    /// All entries, to be changed in place.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut Fd)> {
        self.slots.iter_mut().enumerate().filter_map(|(i, slot)| Some((i as u32, slot.as_mut()?)))
    }

    /// Drops what is marked close-on-exec.
    pub(crate) fn close_on_exec(&mut self) {
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|fd| fd.cloexec) {
                *slot = None;
            }
        }
    }
}
