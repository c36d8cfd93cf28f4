//! Opening and creating files, for both WASI's and the `wardian` calls.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::{Caller, Device, Errno, FileKind, Handle, OpenFlags, Place, Result, Tree};

use crate::call::{Call, MAX_PATH};
use crate::fd::{Fd, OpenFile};
use crate::io::describe;
use crate::pipe::Pipe;
use crate::stream::Standard;
use crate::{foreign, procfs};

/// The lowest descriptor that a shell has `>(…)` at. Those below are what scripts open, `/dev/stdout` among them.
const FIRST_SUBSTITUTION: u32 = 10;

impl Call<'_> {
    /// Opens what is at `path` from `at`; returns its descriptor.
    pub(crate) async fn open_path(
        &mut self,
        at: Place,
        path: Vec<u8>,
        flags: OpenFlags,
        mode: u32,
    ) -> Result<u32> {
        let caller = self.process().caller();
        let (from, name) = (at.clone(), path.clone());
        let guard = self.guard(!flags.intersects(OpenFlags::NOFOLLOW | OpenFlags::EXCL));
        let work = move |tree: &mut Tree| {
            let name = guard.path(tree, &caller, &from, name)?;
            let handle = tree.open(&caller, &from, &name, flags, mode)?;
            let name = tree.path_within(&handle.place(), MAX_PATH as usize).unwrap_or(name);
            Ok((handle, name))
        };
        let opened = self.machine().clone().at_path(&at, &path, work).await;
        let (handle, name) = self.noted(opened).await?;
        let entry = match handle.kind() {
            FileKind::Fifo => self.open_fifo(handle, name).await?,
            FileKind::Socket => {
                self.machine().tree().await.close(handle);
                return Err(Errno::ENXIO);
            }
            FileKind::Symlink => self.open_descriptor(handle, flags).await?,
            FileKind::Device(Device::Tty) => self.open_terminal(handle).await?,
            _ => {
                let cwd = self.process().cwd.lock().clone();
                self.tree_fd(handle, absolute(name, cwd.name()))?
            }
        };
        let inserted = self.process().fds.lock().insert(entry, 0);
        inserted.inspect_err(|_| self.hit("openFiles"))
    }

    /// A handle as an open file, charged for.
    fn tree_fd(&self, handle: Handle, name: impl Into<Arc<[u8]>>) -> Result<Fd> {
        self.machine().charged_fd(&self.process().run(), handle, name.into())
    }

    /// Opening `/dev/fd/N` opens again what N has open, as on Linux; a run's streams are shared.
    async fn open_descriptor(&mut self, link: Handle, flags: OpenFlags) -> Result<Fd> {
        let place = link.place();
        self.machine().tree().await.close(link);
        let (entry, number) = self.descriptor_at(&place)?;
        match &*entry.file {
            OpenFile::Tree(file) => {
                let (caller, machine) = (self.process().caller(), self.machine().clone());
                let again = move |tree: &mut Tree, handle: &mut Handle| tree.reopen(&caller, handle, flags);
                let handle = machine.on_file(&entry.file, again).await?;
                self.tree_fd(handle, file.shared_name())
            }
            OpenFile::Input(..) | OpenFile::Output(..) | OpenFile::Terminal(..) => {
                let (_, open) = describe(&entry.file)?;
                let wanted = flags & (OpenFlags::READ | OpenFlags::WRITE);
                if open.contains(wanted) { Ok(Fd { cloexec: false, ..entry }) } else { Err(Errno::EACCES) }
            }
            OpenFile::Socket(_) => Err(Errno::ENXIO),
            OpenFile::Reader(_) | OpenFile::Writer(_) | OpenFile::Both(..) => {
                let pipe = entry.file.pipe().ok_or(Errno::EIO)?.clone();
                if number >= FIRST_SUBSTITUTION && flags.contains(OpenFlags::WRITE) && pipe.file().is_none() {
                    pipe.set_substitution();
                    self.process().run().substitutions().note(&pipe);
                }
                self.open_pipe(pipe, flags).await
            }
        }
    }

    /// `/dev/tty` is the terminal of the run that the process belongs to.
    async fn open_terminal(&mut self, device: Handle) -> Result<Fd> {
        self.machine().tree().await.close(device);
        let terminal = self.process().run().terminal().ok_or(Errno::ENXIO)?;
        Ok(Fd::new(OpenFile::terminal(terminal, Standard::Input)))
    }

    /// The descriptor that a link in `/proc` stands for, and its number.
    pub(crate) fn descriptor_at(&self, link: &Place) -> Result<(Fd, u32)> {
        let (pid, fd) = link.mount_path().and_then(procfs::descriptor_of).ok_or(Errno::ELOOP)?;
        let owner = self.machine().table().get(pid).map(|entry| entry.process.clone());
        let entry = owner.ok_or(Errno::ENOENT)?.fd(fd).map_err(|_| Errno::ENOENT)?;
        Ok((entry, fd))
    }

    async fn open_fifo(&mut self, handle: Handle, name: Vec<u8>) -> Result<Fd> {
        let (flags, ino) = (handle.flags(), handle.ino());
        let file = self.tree_fd(handle, name)?.file;
        let pipe = self.machine().fifo(ino).ok_or_else(|| {
            self.hit("memoryBytes");
            Errno::ENFILE
        })?;
        pipe.set_file(file);
        self.open_pipe(pipe, flags).await
    }

    /// A FIFO opens when something has opened its other end; an unnamed pipe immediately.
    async fn open_pipe(&mut self, pipe: Arc<Pipe>, flags: OpenFlags) -> Result<Fd> {
        let (read, write) = (flags.contains(OpenFlags::READ), flags.contains(OpenFlags::WRITE));
        let nonblocking = flags.contains(OpenFlags::NONBLOCK);
        let waits = !nonblocking && pipe.file().is_some();
        let process = self.process().clone();
        let file = match (read, write) {
            (true, true) => OpenFile::Both(pipe.open_reader(), pipe.open_writer()),
            (true, false) => {
                let reader = pipe.open_reader();
                if waits {
                    process.interruptible(pipe.writer_opened()).await?;
                }
                OpenFile::Reader(reader)
            }
            _ if nonblocking && !pipe.has_readers() => return Err(Errno::ENXIO),
            _ => {
                let writer = pipe.open_writer();
                if waits {
                    process.interruptible(pipe.reader_opened()).await?;
                }
                OpenFile::Writer(writer)
            }
        };
        file.set_nonblocking(nonblocking);
        Ok(Fd::new(file))
    }

    /// Does something with what is, or will be, at one path; a link at its end is not followed.
    pub(crate) async fn on_path<T, F>(&mut self, dir: u32, path: u32, len: u32, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &Caller, &Place, &[u8]) -> Result<T> + Send + 'static,
    {
        self.on_path_through(dir, path, len, false, work).await
    }

    /// Does the same, where `work` follows a link at the path's end if `follow` says so.
    pub(crate) async fn on_path_through<T, F>(
        &mut self,
        dir: u32,
        path: u32,
        len: u32,
        follow: bool,
        work: F,
    ) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &Caller, &Place, &[u8]) -> Result<T> + Send + 'static,
    {
        let (at, path) = (self.directory(dir).await?, self.path(path, len)?);
        let caller = self.process().caller();
        let (from, name) = (at.clone(), path.clone());
        let guard = self.guard(follow);
        let work = move |tree: &mut Tree| {
            let name = guard.path(tree, &caller, &from, name)?;
            work(tree, &caller, &from, &name)
        };
        let done = self.machine().clone().at_path(&at, &path, work).await;
        self.noted(done).await
    }
}

/// Keeps the paths of a confined program inside the directories it was given. It resolves the path under the same lock
/// as the operation, so no one can change a link in between.
#[derive(Clone, Copy)]
pub(crate) enum Guard {
    Free,
    Beneath { follow: bool },
}

impl Guard {
    pub(crate) fn path(self, tree: &Tree, who: &Caller, at: &Place, path: Vec<u8>) -> Result<Vec<u8>> {
        match self {
            Guard::Free => Ok(path),
            Guard::Beneath { follow } => foreign::beneath(tree, who, at, &path, follow),
        }
    }
}

impl Call<'_> {
    /// Returns the check that this process's paths must pass.
    pub(crate) fn guard(&self, follow: bool) -> Guard {
        match self.process().confined.load(Ordering::Relaxed) {
            true => Guard::Beneath { follow },
            false => Guard::Free,
        }
    }
}

/// Returns a name for people: `/proc` shows it, nothing is opened by it.
fn absolute(name: Vec<u8>, cwd: &[u8]) -> Vec<u8> {
    if name.starts_with(b"/") { name } else { [cwd, b"/", &name[..]].concat() }
}
