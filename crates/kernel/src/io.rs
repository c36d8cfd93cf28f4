//! Reading and writing through a descriptor, whatever is behind it.

use std::sync::Arc;

use wardian_vfs::{Device, Errno, FileKind, Handle, OpenFlags, Result, Tree};

use crate::call::{Call, Fail, Outcome};
use crate::fd::{OpenFile, TreeFile};
use crate::instance::Stop;
use crate::machine::Machine;
use crate::proc::Process;
use crate::signal::{Effect, SIGPIPE};

/// The largest part of a host file moved at once: it goes through a buffer of ours.
const HOST_CHUNK: usize = 1 << 20;
/// The most that one call moves to or from a file in memory: a worker is not held for longer than a tick or so, and the
/// guest asks again for the rest.
const TREE_CHUNK: usize = 4 << 20;
/// Writes in several parts up to this size are put together first, so that they stay in one piece.
const GATHER: usize = 64 * 1024;

impl Call<'_> {
    /// Reads into the guest's memory at `ptr`; `offset` leaves the file's own position alone.
    pub(crate) async fn read(&mut self, fd: u32, ptr: u32, len: u32, offset: Option<u64>) -> Result<usize> {
        let file = self.file(fd)?;
        let (machine, process) = (self.machine().clone(), self.process().clone());
        let buf = self.bytes(ptr, len)?;
        let n = match &*file {
            OpenFile::Tree(f) if f.is_host() => {
                let len = buf.len().min(HOST_CHUNK);
                let data = machine.on_file(&file, move |tree, handle| {
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
            OpenFile::Tree(f) => read_tree(&*machine.tree().await, f, buf, offset)?,
            _ if offset.is_some() => return Err(Errno::ESPIPE),
            OpenFile::Reader(pipe) | OpenFile::Both(pipe, _) => match pipe.try_read(buf) {
                Some(n) => n,
                None => process.interruptible(pipe.read(buf)).await?,
            },
            OpenFile::Input(input) => process.interruptible(input.read(buf)).await?,
            OpenFile::Terminal(tty, _) => process.interruptible(tty.read(&machine, &process, buf)).await?,
            OpenFile::Writer(_) | OpenFile::Output(..) => return Err(Errno::EBADF),
        };
        process.run.lock().count_read(n);
        Ok(n)
    }

    /// Writes the guest's bytes at `ptr`. A broken pipe ends the process unless it ignores the signal.
    pub(crate) async fn write(&mut self, fd: u32, ptr: u32, len: u32, offset: Option<u64>) -> Outcome<usize> {
        let file = self.file(fd)?;
        let (machine, process) = (self.machine().clone(), self.process().clone());
        let data: &[u8] = self.bytes(ptr, len)?;
        let written = write_file(&machine, &process, &file, data, offset).await;
        self.account(written)
    }

    fn account(&self, written: Result<usize>) -> Outcome<usize> {
        match written {
            Ok(n) => {
                self.process().run.lock().count_written(n);
                Ok(n)
            }
            Err(Errno::EPIPE) => Err(self.broken_pipe()),
            Err(errno) => {
                self.note_full(errno);
                Err(errno.into())
            }
        }
    }

    fn broken_pipe(&self) -> Fail {
        match self.process().signals.lock().receive(SIGPIPE) {
            Effect::Terminate => Fail::Stop(Stop::Signal(SIGPIPE)),
            _ => Fail::Errno(Errno::EPIPE),
        }
    }

    /// A full disk is a limit of the sandbox, and the caller of the run hears of it.
    pub(crate) fn note_full(&self, errno: Errno) {
        if errno == Errno::ENOSPC {
            self.process().run.lock().hit("fsLimitBytes");
        }
    }

    /// Reads into the first part of a scatter list that has room.
    pub(crate) async fn read_vectored(
        &mut self,
        fd: u32,
        iovs: u32,
        count: u32,
        offset: Option<u64>,
    ) -> Result<usize> {
        match self.parts(iovs, count)?.into_iter().find(|(_, len)| *len > 0) {
            Some((ptr, len)) => self.read(fd, ptr, len, offset).await,
            None => self.file(fd).map(|_| 0),
        }
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
        let mut data = Vec::new();
        for (ptr, len) in parts {
            data.extend_from_slice(self.bytes(*ptr, *len)?);
        }
        let (file, machine, process) = (self.file(fd)?, self.machine().clone(), self.process().clone());
        let written = write_file(&machine, &process, &file, &data, offset).await;
        self.account(written)
    }

    fn parts(&mut self, iovs: u32, count: u32) -> Result<Vec<(u32, u32)>> {
        if count > 1024 {
            return Err(Errno::EINVAL);
        }
        let raw = self.bytes(iovs, count * 8)?;
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        Ok(raw.chunks_exact(8).map(|iov| (word(&iov[..4]), word(&iov[4..]))).collect())
    }
}

async fn write_file(
    machine: &Machine,
    process: &Process,
    file: &Arc<OpenFile>,
    data: &[u8],
    offset: Option<u64>,
) -> Result<usize> {
    match &**file {
        OpenFile::Tree(f) if f.is_host() => {
            let data = data[..data.len().min(HOST_CHUNK)].to_vec();
            let work = move |tree: &mut Tree, handle: &mut Handle| match offset {
                None => tree.write(handle, &data),
                Some(offset) => tree.pwrite(handle, &data, offset),
            };
            machine.on_file(file, work).await
        }
        OpenFile::Tree(f) => write_tree(&mut *machine.tree().await, f, data, offset),
        _ if offset.is_some() => Err(Errno::ESPIPE),
        OpenFile::Writer(pipe) | OpenFile::Both(_, pipe) => match pipe.try_write(data)? {
            n if n == data.len() => Ok(n),
            n => process.interruptible(pipe.write(&data[n..])).await.map(|more| n + more),
        },
        OpenFile::Output(output, _) => process.interruptible(output.write(data)).await,
        OpenFile::Terminal(tty, _) => process.interruptible(tty.write(machine, process, data)).await,
        OpenFile::Reader(_) | OpenFile::Input(_) => Err(Errno::EBADF),
    }
}

fn read_tree(tree: &Tree, file: &TreeFile, buf: &mut [u8], offset: Option<u64>) -> Result<usize> {
    let most = buf.len().min(TREE_CHUNK);
    let buf = &mut buf[..most];
    file.with(|handle| match offset {
        None => tree.read(handle, buf),
        Some(offset) => tree.pread(handle, buf, offset),
    })
}

fn write_tree(tree: &mut Tree, file: &TreeFile, data: &[u8], offset: Option<u64>) -> Result<usize> {
    let data = &data[..data.len().min(TREE_CHUNK)];
    file.with(|handle| match offset {
        None => tree.write(handle, data),
        Some(offset) => tree.pwrite(handle, data, offset),
    })
}

/// What kind of thing an open file is, and the flags it was opened with.
pub(crate) fn describe(file: &Arc<OpenFile>) -> Result<(FileKind, OpenFlags)> {
    match &**file {
        OpenFile::Tree(file) => file.with(|handle| Ok((handle.kind(), handle.flags()))),
        OpenFile::Reader(_) | OpenFile::Input(_) => Ok((FileKind::Fifo, OpenFlags::READ)),
        OpenFile::Writer(_) | OpenFile::Output(..) => Ok((FileKind::Fifo, OpenFlags::WRITE)),
        OpenFile::Both(..) => Ok((FileKind::Fifo, OpenFlags::READ | OpenFlags::WRITE)),
        OpenFile::Terminal(..) => Ok((FileKind::Device(Device::Tty), OpenFlags::READ | OpenFlags::WRITE)),
    }
}
