//! Reading and writing through a descriptor, whatever is behind it.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use wardian_vfs::{Caller, Device, Errno, FileKind, Handle, OpenFlags, Result, Tree};

use crate::call::{Call, Fail, Outcome};
use crate::fd::{Nonblocking, OpenFile, TreeFile};
use crate::instance::Stop;
use crate::limits::SCRATCH;
use crate::machine::Machine;
use crate::net::{Flags, Kind, SocketFd};
use crate::pause::pause;
use crate::pipe::PipeWriter;
use crate::proc::Process;
use crate::signal::{Effect, SIGPIPE, SIGXFSZ, Signal};

/// The largest part of a host file moved at once: it goes through a buffer.
const HOST_CHUNK: usize = 1 << 20;
/// The most that one call moves to or from a file in memory, all parts of a list together: the guest calls again for the
/// rest.
const TREE_CHUNK: usize = 4 << 20;
/// What is moved to or from a file in memory without a pause, so that a worker is not held.
const TREE_PIECE: usize = 1 << 20;
/// The same for bytes of `/dev/urandom`, which take longer.
const RANDOM_PIECE: usize = 64 * 1024;
/// The most that one call moves to or from a run's stream. The host may need the same amount again.
const STREAM_CHUNK: usize = 64 * 1024;
/// Writes in several parts up to this size are joined first, so that they stay in one piece.
const GATHER: usize = SCRATCH;
/// The longest scatter or gather list, as on Linux.
const MAX_PARTS: u32 = 1024;

impl Call<'_> {
    /// Reads into the guest's memory at `ptr`; with `offset` the file's own position does not change. Returns EAGAIN if
    /// it must not wait.
    async fn read(
        &mut self,
        file: &Arc<OpenFile>,
        (ptr, len): (u32, u32),
        offset: Option<u64>,
        may_wait: bool,
    ) -> Result<usize> {
        let (machine, process) = (self.machine().clone(), self.process().clone());
        let buf = self.bytes(ptr, len)?;
        let n = match &**file {
            OpenFile::Tree(f) if f.is_host() => {
                let len = buf.len().min(HOST_CHUNK);
                let charge = machine.meter().hold_for(&process.run(), len)?;
                let data = machine.on_file(file, move |tree, handle| {
                    let _charge = charge;
                    let mut data = vec![0; len];
                    let n = match offset {
                        None => tree.read(handle, &mut data)?,
                        Some(offset) => tree.pread(handle, &mut data, offset)?,
                    };
                    data.truncate(n);
                    Ok(data)
                });
                let data = data.await?;
                buf[..data.len()].copy_from_slice(&data);
                data.len()
            }
            OpenFile::Tree(f) => read_tree(&machine, f, buf, offset).await?,
            _ if offset.is_some() => return Err(Errno::ESPIPE),
            OpenFile::Reader(pipe) | OpenFile::Both(pipe, _) => match pipe.try_read(buf) {
                Some(n) => n,
                None if pipe.is_nonblocking() || !may_wait => return Err(Errno::EAGAIN),
                None => process.interruptible(pipe.read(buf)).await?,
            },
            OpenFile::Socket(socket) => {
                let flags = Flags { dont_wait: !may_wait, ..Flags::default() };
                socket.socket().receive(&process, buf, flags).await?.count
            }
            OpenFile::Input(..) | OpenFile::Terminal(..) if !may_wait => return Err(Errno::EAGAIN),
            OpenFile::Input(input, mode) => {
                let most = buf.len().min(STREAM_CHUNK);
                waiting(&process, mode, input.read(&mut buf[..most])).await?
            }
            OpenFile::Terminal(tty, _, mode) => {
                waiting(&process, mode, tty.read(&machine, &process, buf)).await?
            }
            OpenFile::Writer(_) | OpenFile::Output(..) => return Err(Errno::EBADF),
        };
        process.run.lock().count_read(n);
        Ok(n)
    }

    /// Writes the guest's bytes at `ptr`. A broken pipe kills the process unless it ignores the signal.
    pub(crate) async fn write(&mut self, fd: u32, ptr: u32, len: u32, offset: Option<u64>) -> Outcome<usize> {
        let file = self.file(fd)?;
        let (machine, process) = (self.machine().clone(), self.process().clone());
        let data: &[u8] = self.bytes(ptr, len)?;
        let written = write_file(&machine, &process, &file, data, offset).await;
        self.account(written).await
    }

    pub(crate) async fn account(&self, written: Result<usize>) -> Outcome<usize> {
        match self.noted(written).await {
            Ok(n) => {
                self.process().run.lock().count_written(n);
                Ok(n)
            }
            Err(Errno::EPIPE) => Err(self.signalled(SIGPIPE, Errno::EPIPE)),
            Err(Errno::EFBIG) => Err(self.too_large()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// An error that comes with a signal, which by default is all that the process sees of it.
    fn signalled(&self, signal: Signal, errno: Errno) -> Fail {
        match self.process().signals.lock().receive_with_error(signal) {
            Effect::Terminate => Fail::Stop(Stop::Signal(signal)),
            _ => Fail::Errno(errno),
        }
    }

    /// A file would become larger than allowed. Only the process's own limit has a signal.
    pub(crate) fn too_large(&self) -> Fail {
        match self.process().fds.lock().file_size.soft {
            u64::MAX => Fail::Errno(Errno::EFBIG),
            _ => self.signalled(SIGXFSZ, Errno::EFBIG),
        }
    }

    /// A full disk is a limit of the sandbox, and is reported to the caller of the run.
    pub(crate) async fn noted<T>(&self, done: Result<T>) -> Result<T> {
        if matches!(done, Err(Errno::ENOSPC)) {
            let limit = self.machine().which_is_full().await;
            self.process().run.lock().hit(limit);
        }
        done
    }

    /// Reads into the parts of a scatter list one after another, and waits only for the first.
    pub(crate) async fn read_vectored(
        &mut self,
        fd: u32,
        iovs: u32,
        count: u32,
        offset: Option<u64>,
    ) -> Result<usize> {
        let file = self.file(fd)?;
        let mut total = 0;
        for part in self.parts(iovs, count)?.into_iter().filter(|(_, len)| *len > 0) {
            let at = offset.map(|offset| offset.saturating_add(total as u64));
            match self.read(&file, part, at, total == 0).await {
                // Parts may overlap, so that a list can ask for far more than there is memory.
                Ok(n) if n == part.1 as usize && total + n < TREE_CHUNK => total += n,
                Ok(n) => return Ok(total + n),
                Err(errno) if total == 0 => return Err(errno),
                Err(_) => return Ok(total),
            }
        }
        Ok(total)
    }

    /// Writes the parts of a gather list: in one piece if they are small, else the first of them.
    pub(crate) async fn write_vectored(
        &mut self,
        fd: u32,
        iovs: u32,
        count: u32,
        offset: Option<u64>,
    ) -> Outcome<usize> {
        let mut parts = self.parts(iovs, count)?;
        parts.retain(|(_, len)| *len > 0);
        let total: usize = parts.iter().map(|(_, len)| *len as usize).sum();
        match parts[..] {
            [] => Ok(self.file(fd).map(|_| 0)?),
            [(ptr, len)] => self.write(fd, ptr, len, offset).await,
            [(ptr, len), ..] if total > GATHER => self.write(fd, ptr, len, offset).await,
            _ => self.write_gathered(fd, &parts, offset).await,
        }
    }

    async fn write_gathered(&mut self, fd: u32, parts: &[(u32, u32)], offset: Option<u64>) -> Outcome<usize> {
        let mut data = Vec::with_capacity(parts.iter().map(|(_, len)| *len as usize).sum());
        for (ptr, len) in parts {
            data.extend_from_slice(self.bytes(*ptr, *len)?);
        }
        let (file, machine, process) = (self.file(fd)?, self.machine().clone(), self.process().clone());
        let written = write_file(&machine, &process, &file, &data, offset).await;
        self.account(written).await
    }

    fn parts(&mut self, iovs: u32, count: u32) -> Result<Vec<(u32, u32)>> {
        let raw = self.list(iovs, (count, 8), MAX_PARTS, Errno::EINVAL)?;
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        Ok(raw.chunks_exact(8).map(|iov| (word(&iov[..4]), word(&iov[4..]))).collect())
    }
}

/// Waits for a run's stream until a signal comes. If it must not wait, it is tried once: nothing is taken or given before it
/// returns.
async fn waiting(
    process: &Process,
    mode: &Nonblocking,
    work: impl Future<Output = Result<usize>>,
) -> Result<usize> {
    if !mode.is_set() {
        return process.interruptible(work).await;
    }
    // Without a budget: what is there is there, however much the process has done in this turn.
    let mut work = pin!(tokio::task::unconstrained(work));
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(done) => Poll::Ready(done),
        Poll::Pending => Poll::Ready(Err(Errno::EAGAIN)),
    })
    .await
}

/// Writes what fits, wherever it goes.
pub(crate) async fn write_file(
    machine: &Machine,
    process: &Process,
    file: &Arc<OpenFile>,
    data: &[u8],
    offset: Option<u64>,
) -> Result<usize> {
    let largest = process.fds.lock().file_size.soft;
    match &**file {
        OpenFile::Tree(f) if f.is_host() => {
            let data = &data[..data.len().min(HOST_CHUNK)];
            let charge = machine.meter().hold_for(&process.run(), data.len())?;
            let data = data.to_vec();
            let work = move |tree: &mut Tree, handle: &mut Handle| {
                let _charge = charge;
                let data = allowed(tree, handle, &data, offset, largest)?;
                write_tree(tree, handle, data, offset)
            };
            machine.on_file(file, work).await
        }
        OpenFile::Tree(f) => write_tree_in_pieces(machine, f, data, offset, largest).await,
        _ if offset.is_some() => Err(Errno::ESPIPE),
        OpenFile::Writer(pipe) | OpenFile::Both(_, pipe) => write_pipe(process, pipe, data).await,
        OpenFile::Output(outlet, which, mode) => {
            let data = &data[..data.len().min(STREAM_CHUNK)];
            waiting(process, mode, outlet.write(which.stream(), data, || process.is_doomed())).await
        }
        OpenFile::Terminal(tty, _, mode) => waiting(process, mode, tty.write(machine, process, data)).await,
        OpenFile::Socket(socket) => write_socket(process, socket, data).await,
        OpenFile::Reader(_) | OpenFile::Input(..) => Err(Errno::EBADF),
    }
}

/// What went into the pipe counts, whatever happens to the rest.
async fn write_pipe(process: &Process, pipe: &PipeWriter, data: &[u8]) -> Result<usize> {
    if pipe.pipe().is_substitution() {
        process.run().substitutions().note(pipe.pipe());
    }
    let mut written = pipe.try_write(data)?;
    if written == data.len() {
        return Ok(written);
    }
    if pipe.pipe().is_starved() {
        process.run().hit("memoryBytes");
    }
    let wait = match pipe.is_nonblocking() {
        true => Err(Errno::EAGAIN),
        false => process.interruptible(pipe.write(data, &mut written)).await,
    };
    match wait {
        Err(errno) if written == 0 => Err(errno),
        _ => Ok(written),
    }
}

async fn write_socket(process: &Process, socket: &SocketFd, data: &[u8]) -> Result<usize> {
    let socket = socket.socket();
    let sent = match socket.kind() {
        Kind::Stream => socket.send(process, data, Flags::default(), None).await,
        Kind::Datagram => socket.send_datagram(process, data, Flags::default(), None, None).await,
    };
    if sent == Err(Errno::ENOBUFS) || socket.is_starved() {
        process.run().hit("memoryBytes");
    }
    sent
}

/// Returns the part of a write that keeps a file within the process's limit; EFBIG if that is nothing.
fn allowed<'d>(
    tree: &Tree,
    handle: &Handle,
    data: &'d [u8],
    offset: Option<u64>,
    largest: u64,
) -> Result<&'d [u8]> {
    if largest == u64::MAX || handle.kind() != FileKind::File {
        return Ok(data);
    }
    let at = match offset {
        _ if handle.flags().contains(OpenFlags::APPEND) => tree.stat_handle(&Caller::USER, handle)?.size,
        Some(offset) => offset,
        None => handle.offset(),
    };
    match largest.saturating_sub(at) {
        0 => Err(Errno::EFBIG),
        room => Ok(&data[..data.len().min(usize::try_from(room).unwrap_or(usize::MAX))]),
    }
}

/// Reads from a file in memory, in pieces: others get the files and the worker in between.
async fn read_tree(machine: &Machine, file: &TreeFile, buf: &mut [u8], offset: Option<u64>) -> Result<usize> {
    let most = buf.len().min(TREE_CHUNK);
    let size = piece_size(file)?;
    let mut done = 0;
    loop {
        let piece = &mut buf[done..most.min(done + size)];
        let wanted = piece.len();
        let tree = machine.tree().await;
        let read = file.with(|handle| match offset {
            None => tree.read(handle, piece),
            Some(offset) => tree.pread(handle, piece, offset.saturating_add(done as u64)),
        });
        drop(tree);
        match read {
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => return Ok(done),
            Ok(n) => done += n,
        }
        if read != Ok(wanted) || done == most {
            return Ok(done);
        }
        pause().await;
    }
}

/// Writes to a file in memory, in pieces.
async fn write_tree_in_pieces(
    machine: &Machine,
    file: &TreeFile,
    data: &[u8],
    offset: Option<u64>,
    largest: u64,
) -> Result<usize> {
    let data = &data[..data.len().min(TREE_CHUNK)];
    let mut done = 0;
    loop {
        let piece = &data[done..data.len().min(done + TREE_PIECE)];
        let at = offset.map(|offset| offset.saturating_add(done as u64));
        let mut tree = machine.tree().await;
        let written = file.with(|handle| {
            let piece = allowed(&tree, handle, piece, at, largest)?;
            write_tree(&mut tree, handle, piece, at)
        });
        drop(tree);
        match written {
            Err(errno) if done == 0 => return Err(errno),
            Err(_) => return Ok(done),
            Ok(n) => done += n,
        }
        if written != Ok(piece.len()) || done == data.len() {
            return Ok(done);
        }
        pause().await;
    }
}

/// What of a file is read without a pause.
fn piece_size(file: &TreeFile) -> Result<usize> {
    let kind = file.with(|handle| Ok(handle.kind()))?;
    Ok(match kind {
        FileKind::Device(Device::Random | Device::Urandom) => RANDOM_PIECE,
        _ => TREE_PIECE,
    })
}

fn write_tree(tree: &mut Tree, handle: &mut Handle, data: &[u8], offset: Option<u64>) -> Result<usize> {
    match offset {
        None => tree.write(handle, data),
        Some(offset) => tree.pwrite(handle, data, offset),
    }
}

/// What kind of thing an open file is, and the flags it was opened with.
pub(crate) fn describe(file: &Arc<OpenFile>) -> Result<(FileKind, OpenFlags)> {
    let (mut flags, nonblocking) = match &**file {
        OpenFile::Tree(file) => return file.with(|handle| Ok((handle.kind(), handle.flags()))),
        OpenFile::Reader(pipe) => (OpenFlags::READ, pipe.is_nonblocking()),
        OpenFile::Writer(pipe) => (OpenFlags::WRITE, pipe.is_nonblocking()),
        OpenFile::Both(pipe, _) => (OpenFlags::READ | OpenFlags::WRITE, pipe.is_nonblocking()),
        OpenFile::Input(_, mode) => (OpenFlags::READ, mode.is_set()),
        OpenFile::Output(.., mode) => (OpenFlags::WRITE, mode.is_set()),
        OpenFile::Socket(socket) => {
            let mut flags = OpenFlags::READ | OpenFlags::WRITE;
            flags.set(OpenFlags::NONBLOCK, socket.socket().is_nonblocking());
            return Ok((FileKind::Socket, flags));
        }
        OpenFile::Terminal(.., mode) => {
            let mut flags = OpenFlags::READ | OpenFlags::WRITE;
            flags.set(OpenFlags::NONBLOCK, mode.is_set());
            return Ok((FileKind::Device(Device::Tty), flags));
        }
    };
    flags.set(OpenFlags::NONBLOCK, nonblocking);
    Ok((FileKind::Fifo, flags))
}
