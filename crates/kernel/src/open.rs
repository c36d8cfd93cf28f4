//! Opening and making files, for WASI's calls and our own alike.

use wardian_vfs::{Caller, Device, Errno, FileKind, Handle, OpenFlags, Place, Result, Tree};

use crate::call::Call;
use crate::fd::{Fd, OpenFile};
use crate::io::describe;
use crate::procfs;
use crate::stream::Standard;

impl Call<'_> {
    /// Opens what is at `path` from `at`; answers its descriptor.
    pub(crate) async fn open_path(
        &mut self,
        at: Place,
        path: Vec<u8>,
        flags: OpenFlags,
        mode: u32,
    ) -> Result<u32> {
        let caller = self.process().caller();
        let (from, name) = (at.clone(), path.clone());
        let work = move |tree: &mut Tree| {
            let handle = tree.open(&caller, &from, &name, flags, mode)?;
            let name = tree.path_of(&handle.place()).unwrap_or(name);
            Ok((handle, name))
        };
        let opened = self.machine().clone().at_path(&at, &path, work).await;
        let (handle, name) = opened.inspect_err(|errno| self.note_full(*errno))?;
        let entry = match handle.kind() {
            FileKind::Fifo => self.open_fifo(handle).await?,
            FileKind::Symlink => self.open_descriptor(handle, flags).await?,
            FileKind::Device(Device::Tty) => self.open_terminal(handle).await?,
            _ => {
                let cwd = self.process().cwd.lock().clone();
                self.machine().tree_fd(handle, absolute(name, cwd.name()))
            }
        };
        let inserted = self.process().fds.lock().insert(entry, 0);
        inserted.inspect_err(|_| self.process().run.lock().hit("openFiles"))
    }

    /// Opening `/dev/fd/N` gives another descriptor of what N has open.
    async fn open_descriptor(&mut self, link: Handle, flags: OpenFlags) -> Result<Fd> {
        let place = link.place();
        self.machine().tree().await.close(link);
        let entry = self.descriptor_at(&place)?;
        let (_, open) = describe(&entry.file)?;
        let wanted = flags & (OpenFlags::READ | OpenFlags::WRITE);
        if open.contains(wanted) { Ok(Fd { cloexec: false, ..entry }) } else { Err(Errno::EACCES) }
    }

    /// `/dev/tty` is the terminal of the run that the process belongs to.
    async fn open_terminal(&mut self, device: Handle) -> Result<Fd> {
        self.machine().tree().await.close(device);
        let terminal = self.process().run().terminal().ok_or(Errno::ENXIO)?;
        Ok(Fd::new(OpenFile::Terminal(terminal, Standard::Input)))
    }

    /// The descriptor that a link in `/proc` stands for.
    pub(crate) fn descriptor_at(&self, link: &Place) -> Result<Fd> {
        let (pid, fd) = link.mount_path().and_then(procfs::descriptor_of).ok_or(Errno::ELOOP)?;
        let owner = self.machine().table().get(pid).map(|entry| entry.process.clone());
        owner.ok_or(Errno::ENOENT)?.fd(fd).map_err(|_| Errno::ENOENT)
    }

    /// A FIFO opens when somebody has opened its other end.
    async fn open_fifo(&mut self, handle: Handle) -> Result<Fd> {
        let flags = handle.flags();
        let pipe = self.machine().fifo(handle.ino());
        self.machine().tree().await.close(handle);
        let (read, write) = (flags.contains(OpenFlags::READ), flags.contains(OpenFlags::WRITE));
        let waits = !flags.contains(OpenFlags::NONBLOCK);
        if read && write {
            return Ok(Fd::new(OpenFile::Both(pipe.open_reader(), pipe.open_writer())));
        }
        let process = self.process().clone();
        if read {
            let reader = pipe.open_reader();
            if waits {
                process.interruptible(pipe.writer_opened()).await?;
            }
            return Ok(Fd::new(OpenFile::Reader(reader)));
        }
        if !waits && !pipe.has_readers() {
            return Err(Errno::ENXIO);
        }
        let writer = pipe.open_writer();
        process.interruptible(pipe.reader_opened()).await?;
        Ok(Fd::new(OpenFile::Writer(writer)))
    }

    /// Does something with what is, or is to be, at one path.
    pub(crate) async fn on_path<T, F>(&mut self, dir: u32, path: u32, len: u32, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &Caller, &Place, &[u8]) -> Result<T> + Send + 'static,
    {
        let (at, path) = (self.directory(dir).await?, self.path(path, len)?);
        let caller = self.process().caller();
        let (from, name) = (at.clone(), path.clone());
        let work = move |tree: &mut Tree| work(tree, &caller, &from, &name);
        let done = self.machine().clone().at_path(&at, &path, work).await;
        done.inspect_err(|errno| self.note_full(*errno))
    }
}

/// A name for people: `/proc` shows it, nothing is opened by it.
fn absolute(name: Vec<u8>, cwd: &[u8]) -> Vec<u8> {
    if name.starts_with(b"/") { name } else { [cwd, b"/", &name[..]].concat() }
}
