//! Descriptors: a table of small numbers, each naming an open file description that copies may share.

use std::sync::Arc;

use parking_lot::Mutex;
use wardian_vfs::{Errno, Handle, Place, Result};

use crate::pipe::{PipeReader, PipeWriter};
use crate::stream::{Input, Output, Standard};
use crate::tty::Terminal;

/// An open file description: what `dup` and `fork` share, its offset included.
pub(crate) enum OpenFile {
    /// A file, directory or device in the tree.
    Tree(TreeFile),
    /// The end of a pipe one reads from.
    Reader(PipeReader),
    /// The end of a pipe one writes to.
    Writer(PipeWriter),
    /// Both ends of a FIFO, opened for reading and writing.
    Both(PipeReader, PipeWriter),
    /// A run's input.
    Input(Arc<Input>),
    /// A run's output or error stream.
    Output(Arc<Output>, Standard),
    /// A run's terminal, in the place of one of its streams.
    Terminal(Arc<Terminal>, Standard),
}

/// A handle into the tree, given back when the last descriptor goes.
pub(crate) struct TreeFile {
    handle: Mutex<Option<Handle>>,
    place: Place,
    /// What it was called when it was opened, for `/proc`.
    name: Vec<u8>,
    host: bool,
    released: Arc<ReleaseBin>,
    /// Set for the directories a foreign program starts with: the name it knows them by.
    pub(crate) preopen: Option<Vec<u8>>,
}

impl TreeFile {
    pub(crate) fn new(handle: Handle, name: Vec<u8>, released: Arc<ReleaseBin>) -> TreeFile {
        let (place, host) = (handle.place(), handle.is_host());
        TreeFile { handle: Mutex::new(Some(handle)), place, name, host, released, preopen: None }
    }

    /// Where the file is.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    pub(crate) fn name(&self) -> &[u8] {
        &self.name
    }

    /// Whether reading or writing it may block on the host.
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
    }
}

/// Handles whose last descriptor is gone. A drop cannot wait for the tree's lock, so whoever takes that lock next
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

/// A process's descriptors.
#[derive(Clone, Default)]
pub(crate) struct FdTable {
    slots: Vec<Option<Fd>>,
    limit: usize,
}

impl FdTable {
    /// An empty table that holds up to `limit`.
    pub(crate) fn new(limit: usize) -> FdTable {
        FdTable { slots: Vec::new(), limit }
    }

    pub(crate) fn get(&self, fd: u32) -> Result<&Fd> {
        self.slots.get(fd as usize).and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    pub(crate) fn get_mut(&mut self, fd: u32) -> Result<&mut Fd> {
        self.slots.get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)
    }

    /// Puts `entry` at the lowest free number from `min` up.
    pub(crate) fn insert(&mut self, entry: Fd, min: u32) -> Result<u32> {
        let min = min as usize;
        let free = (min..self.limit).find(|&i| self.slots.get(i).is_none_or(Option::is_none));
        let at = free.ok_or(if min >= self.limit { Errno::EINVAL } else { Errno::EMFILE })?;
        self.put(at as u32, entry)?;
        Ok(at as u32)
    }

    /// Puts `entry` at `at`; answers what was there.
    pub(crate) fn put(&mut self, at: u32, entry: Fd) -> Result<Option<Fd>> {
        let at = at as usize;
        if at >= self.limit {
            return Err(Errno::EBADF);
        }
        if at >= self.slots.len() {
            self.slots.resize(at + 1, None);
        }
        Ok(self.slots[at].replace(entry))
    }

    /// Takes the entry out.
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

    /// Numbers from `limit` up are refused from now on; those in use stay.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }
}
