//! Calls on descriptors.

use std::sync::Arc;

use wardian_vfs::{Device, DirEntry, Errno, FileKind, Handle, OpenFlags, Result, Seek, SetTime, Stat, Tree};

use super::{MODULE, filetype};
use crate::call::{CWD_FD, Call, Outcome, ROOT_FD, quick_calls, waiting_calls};
use crate::fd::OpenFile;
use crate::imports::Imports;
use crate::io::describe;
use crate::pause::pause;

pub(super) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    waiting_calls! { imports, MODULE;
        fd_read(fd: u32, iovs: u32, count: u32, out: u32);
        fd_write(fd: u32, iovs: u32, count: u32, out: u32);
        fd_pread(fd: u32, iovs: u32, count: u32, offset: u64, out: u32);
        fd_pwrite(fd: u32, iovs: u32, count: u32, offset: u64, out: u32);
        fd_seek(fd: u32, offset: i64, whence: u32, out: u32);
        fd_tell(fd: u32, out: u32);
        fd_allocate(fd: u32, offset: u64, len: u64);
        fd_filestat_get(fd: u32, out: u32);
        fd_filestat_set_size(fd: u32, size: u64);
        fd_filestat_set_times(fd: u32, atime: u64, mtime: u64, flags: u32);
        fd_readdir(fd: u32, buf: u32, len: u32, cookie: u64, out: u32);
        fd_sync(fd: u32);
        fd_datasync(fd: u32);
        sock_accept(fd: u32, flags: u32, out: u32);
        sock_recv(fd: u32, iovs: u32, count: u32, flags: u32, out: u32, out_flags: u32);
        sock_send(fd: u32, iovs: u32, count: u32, flags: u32, out: u32);
        sock_shutdown(fd: u32, how: u32);
    }
    quick_calls! { imports, MODULE;
        fd_close(fd: u32);
        fd_renumber(from: u32, to: u32);
        fd_advise(fd: u32, offset: u64, len: u64, advice: u32);
        fd_fdstat_get(fd: u32, out: u32);
        fd_fdstat_set_flags(fd: u32, flags: u32);
        fd_fdstat_set_rights(fd: u32, base: u64, inheriting: u64);
        fd_prestat_get(fd: u32, out: u32);
        fd_prestat_dir_name(fd: u32, ptr: u32, len: u32);
    }
    Ok(())
}

async fn fd_read(call: &mut Call<'_>, fd: u32, iovs: u32, count: u32, out: u32) -> Outcome {
    call.bytes(out, 4)?;
    let n = call.read_vectored(fd, iovs, count, None).await?;
    Ok(call.put_u32(out, n as u32)?)
}

async fn fd_write(call: &mut Call<'_>, fd: u32, iovs: u32, count: u32, out: u32) -> Outcome {
    call.bytes(out, 4)?;
    let n = call.write_vectored(fd, iovs, count, None).await?;
    Ok(call.put_u32(out, n as u32)?)
}

async fn fd_pread(call: &mut Call<'_>, fd: u32, iovs: u32, count: u32, offset: u64, out: u32) -> Outcome {
    call.bytes(out, 4)?;
    let n = call.read_vectored(fd, iovs, count, Some(offset)).await?;
    Ok(call.put_u32(out, n as u32)?)
}

async fn fd_pwrite(call: &mut Call<'_>, fd: u32, iovs: u32, count: u32, offset: u64, out: u32) -> Outcome {
    call.bytes(out, 4)?;
    let n = call.write_vectored(fd, iovs, count, Some(offset)).await?;
    Ok(call.put_u32(out, n as u32)?)
}

async fn fd_seek(call: &mut Call<'_>, fd: u32, offset: i64, whence: u32, out: u32) -> Outcome {
    call.bytes(out, 8)?;
    let to = match whence {
        0 => Seek::Start(u64::try_from(offset).map_err(|_| Errno::EINVAL)?),
        1 => Seek::Current(offset),
        2 => Seek::End(offset),
        _ => return Err(Errno::EINVAL.into()),
    };
    let file = call.file(fd)?;
    let machine = call.machine().clone();
    let position = machine.on_file(&file, move |tree, handle| tree.seek(handle, to)).await?;
    Ok(call.put_u64(out, position)?)
}

async fn fd_tell(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    fd_seek(call, fd, 0, 1, out).await
}

async fn fd_allocate(call: &mut Call<'_>, fd: u32, offset: u64, len: u64) -> Outcome {
    let file = call.file(fd)?;
    if i64::try_from(offset).is_err() || i64::try_from(len).is_err() {
        return Err(Errno::EINVAL.into());
    }
    let end = offset.saturating_add(len);
    let (quota, usage) = {
        let tree = call.machine().tree().await;
        (tree.quota(), tree.usage())
    };
    let fits = quota.bytes.saturating_sub(usage.bytes) >= len.saturating_add(ALLOCATED_AT_ONCE);
    if !fits || matches!(&*file, OpenFile::Tree(file) if file.is_host()) {
        // Refused at once, there already for the most part, or the host's: whole, where it may take its time.
        return grow(call, &file, end, true, move |tree, handle| tree.allocate(handle, offset, len)).await;
    }
    let mut at = offset;
    loop {
        let piece = (end - at).min(ALLOCATED_AT_ONCE);
        grow(call, &file, end, false, move |tree, handle| tree.allocate(handle, at, piece)).await?;
        at += piece;
        if at >= end {
            return Ok(());
        }
        pause().await;
    }
}

/// Bytes of a file that are allocated without a pause.
const ALLOCATED_AT_ONCE: u64 = 1 << 20;

async fn fd_filestat_get(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    call.bytes(out, 64)?;
    let file = call.file(fd)?;
    let stat = call.stat_file(&file).await?;
    Ok(call.put(out, &encode_filestat(&stat))?)
}

/// WASI's 64 bytes about a file.
pub(super) fn encode_filestat(stat: &Stat) -> [u8; 64] {
    let mut out = [0; 64];
    let mut put = |at: usize, value: u64| out[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, stat.dev);
    put(8, stat.ino);
    put(16, u64::from(filetype(stat.kind)));
    put(24, u64::from(stat.nlink));
    put(32, stat.size);
    // WASI's times cannot lie before 1970.
    put(40, stat.atime.max(0) as u64);
    put(48, stat.mtime.max(0) as u64);
    put(56, stat.ctime.max(0) as u64);
    out
}

async fn fd_filestat_set_size(call: &mut Call<'_>, fd: u32, size: u64) -> Outcome {
    let file = call.file(fd)?;
    if !matches!(&*file, OpenFile::Tree(_)) {
        return Err(Errno::EINVAL.into());
    }
    grow(call, &file, size, false, move |tree, handle| tree.truncate(handle, size)).await
}

/// Does what may make a file as large as `end`, unless the process may not; `aside` if that may take long.
async fn grow<F>(call: &mut Call<'_>, file: &Arc<OpenFile>, end: u64, aside: bool, work: F) -> Outcome
where
    F: FnOnce(&mut Tree, &mut Handle) -> Result<()> + Send + 'static,
{
    let (machine, caller) = (call.machine().clone(), call.process().caller());
    let largest = call.process().fds.lock().file_size.soft;
    let work = move |tree: &mut Tree, handle: &mut Handle| {
        if end > largest && i64::try_from(end).is_ok() && end > tree.stat_handle(&caller, handle)?.size {
            return Err(Errno::EFBIG);
        }
        work(tree, handle)
    };
    match machine.on_file_where(file, aside, work).await {
        Err(Errno::EFBIG) => Err(call.too_large()),
        done => Ok(call.noted(done).await?),
    }
}

async fn fd_filestat_set_times(call: &mut Call<'_>, fd: u32, atime: u64, mtime: u64, flags: u32) -> Outcome {
    let (atime, mtime) = set_times(atime, mtime, flags)?;
    let file = call.file(fd)?;
    let (machine, caller) = (call.machine().clone(), call.process().caller());
    let work = move |tree: &mut wardian_vfs::Tree, handle: &mut wardian_vfs::Handle| {
        tree.utimes_handle(&caller, handle, atime, mtime)
    };
    Ok(machine.on_file(&file, work).await?)
}

/// WASI's `fstflags`: which times to set, and to what.
pub(super) fn set_times(atime: u64, mtime: u64, flags: u32) -> Result<(SetTime, SetTime)> {
    let one = |given: bool, now: bool, at: u64| match (given, now) {
        (true, true) => Err(Errno::EINVAL),
        (true, false) => Ok(SetTime::At(i64::try_from(at).map_err(|_| Errno::EINVAL)?)),
        (false, true) => Ok(SetTime::Now),
        (false, false) => Ok(SetTime::Keep),
    };
    Ok((one(flags & 1 != 0, flags & 2 != 0, atime)?, one(flags & 4 != 0, flags & 8 != 0, mtime)?))
}

/// Bytes of an entry before its name.
const DIRENT: usize = 24;
/// Entries that are listed without a pause: with the longest names they are still less than a call's scratch memory.
const ENTRIES_AT_ONCE: usize = 128;

async fn fd_readdir(call: &mut Call<'_>, fd: u32, buf: u32, len: u32, cookie: u64, out: u32) -> Outcome {
    call.bytes(buf, len)?;
    call.bytes(out, 4)?;
    let file = call.file(fd)?;
    let (machine, caller) = (call.machine().clone(), call.process().caller());
    let mut filled = 0;
    let mut cursor = cookie;
    // In parts, so that a huge directory and a huge buffer neither hold a worker nor are copied whole.
    while filled < len {
        let most = ((len - filled) as usize / DIRENT + 1).min(ENTRIES_AT_ONCE);
        let read =
            machine.on_file(&file, move |tree, handle| tree.read_dir(&caller, handle, cursor, most)).await;
        let entries = read.map_err(|e| if e == Errno::ESPIPE { Errno::ENOTDIR } else { e })?;
        if cursor == 0
            && let OpenFile::Tree(file) = &*file
        {
            // The listing of a directory that is not all in memory is kept with the open file from here on.
            file.charge(machine.meter(), &call.process().run())?;
        }
        let mut part = Vec::new();
        entries.iter().for_each(|entry| encode_entry(entry, &mut part));
        // The last entry may be cut: the guest sees a full buffer and asks again from before it.
        part.truncate((len - filled) as usize);
        call.put(buf + filled, &part)?;
        filled += part.len() as u32;
        match entries.last() {
            Some(last) if entries.len() == ENTRIES_AT_ONCE => cursor = last.next,
            _ => break,
        }
        pause().await;
    }
    Ok(call.put_u32(out, filled)?)
}

fn encode_entry(entry: &DirEntry, out: &mut Vec<u8>) {
    out.extend(entry.next.to_le_bytes());
    out.extend(entry.ino.to_le_bytes());
    out.extend((entry.name.len() as u32).to_le_bytes());
    out.extend([filetype(entry.kind), 0, 0, 0]);
    out.extend(&entry.name);
}

async fn fd_sync(call: &mut Call<'_>, fd: u32) -> Outcome {
    sync(call, fd, false).await
}

async fn fd_datasync(call: &mut Call<'_>, fd: u32) -> Outcome {
    sync(call, fd, true).await
}

/// Host files and directories are synced on a thread that may block; for what is in memory there is nothing to wait for.
async fn sync(call: &mut Call<'_>, fd: u32, data_only: bool) -> Outcome {
    let file = call.file(fd)?;
    match &*file {
        OpenFile::Tree(_) => {}
        _ => return Err(Errno::EINVAL.into()),
    }
    let machine = call.machine().clone();
    Ok(machine.on_file(&file, move |tree, handle| tree.sync(handle, data_only)).await?)
}

fn fd_close(call: &mut Call<'_>, fd: u32) -> Outcome {
    let closed = call.process().fds.lock().remove(fd)?;
    call.machine().closed(call.process(), &closed.file);
    Ok(())
}

fn fd_renumber(call: &mut Call<'_>, from: u32, to: u32) -> Outcome {
    let replaced = {
        let mut fds = call.process().fds.lock();
        fds.get(to)?;
        fds.get(from)?;
        if from == to {
            return Ok(());
        }
        let entry = fds.remove(from)?;
        fds.put(to, entry)?
    };
    if let Some(replaced) = replaced {
        call.machine().closed(call.process(), &replaced.file);
    }
    Ok(())
}

fn fd_advise(call: &mut Call<'_>, fd: u32, _offset: u64, _len: u64, advice: u32) -> Outcome {
    match &*call.file(fd)? {
        _ if advice > 5 => Err(Errno::EINVAL.into()),
        OpenFile::Tree(_) => Ok(()),
        _ => Err(Errno::ESPIPE.into()),
    }
}

const ALL_RIGHTS: u64 = (1 << 30) - 1;
const SEEK_AND_TELL: u64 = 1 << 2 | 1 << 5;
const FD_READ: u64 = 1 << 1;
const FD_WRITE: u64 = 1 << 6;
const FDFLAGS: u32 = 0b1_1111;
const FDFLAGS_APPEND: u16 = 1;
const FDFLAGS_NONBLOCK: u16 = 4;

fn fd_fdstat_get(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    let (kind, flags) = kind_and_flags(call, fd)?;
    let mut fdflags = 0;
    if flags.contains(OpenFlags::APPEND) {
        fdflags |= FDFLAGS_APPEND;
    }
    if flags.contains(OpenFlags::NONBLOCK) {
        fdflags |= FDFLAGS_NONBLOCK;
    }
    let rights = rights(kind, flags);
    let mut fdstat = [0; 24];
    fdstat[0] = filetype(kind);
    fdstat[2..4].copy_from_slice(&fdflags.to_le_bytes());
    fdstat[8..16].copy_from_slice(&rights.to_le_bytes());
    fdstat[16..24].copy_from_slice(&ALL_RIGHTS.to_le_bytes());
    Ok(call.put(out, &fdstat)?)
}

fn kind_and_flags(call: &Call<'_>, fd: u32) -> Result<(FileKind, OpenFlags)> {
    match fd {
        // libc asks for a directory's rights before it opens anything in it, also when the directory is a constant.
        ROOT_FD | CWD_FD if call.is_native() => Ok((FileKind::Dir, OpenFlags::READ)),
        _ => describe(&call.file(fd)?),
    }
}

/// What may be done with a descriptor. A directory has all rights, for what is opened in it.
fn rights(kind: FileKind, flags: OpenFlags) -> u64 {
    let mut rights = match kind {
        FileKind::Dir => return ALL_RIGHTS,
        // A character device that cannot be sought is how libc knows a terminal.
        FileKind::Device(Device::Tty) => ALL_RIGHTS & !SEEK_AND_TELL,
        FileKind::File | FileKind::Device(_) => ALL_RIGHTS,
        _ => ALL_RIGHTS & !SEEK_AND_TELL,
    };
    if !flags.contains(OpenFlags::READ) {
        rights &= !FD_READ;
    }
    if !flags.contains(OpenFlags::WRITE) {
        rights &= !FD_WRITE;
    }
    rights
}

fn fd_fdstat_set_flags(call: &mut Call<'_>, fd: u32, flags: u32) -> Outcome {
    let file = call.file(fd)?;
    if flags & !FDFLAGS != 0 {
        return Err(Errno::EINVAL.into());
    }
    let mut wanted = OpenFlags::empty();
    wanted.set(OpenFlags::APPEND, flags & u32::from(FDFLAGS_APPEND) != 0);
    wanted.set(OpenFlags::NONBLOCK, flags & u32::from(FDFLAGS_NONBLOCK) != 0);
    match &*file {
        OpenFile::Tree(file) => Ok(file.with(|handle| {
            handle.set_flags(wanted);
            Ok(())
        })?),
        other => {
            other.set_nonblocking(wanted.contains(OpenFlags::NONBLOCK));
            Ok(())
        }
    }
}

/// Rights can only be given up, and nothing here would remember that: attempts are refused.
fn fd_fdstat_set_rights(call: &mut Call<'_>, fd: u32, base: u64, inheriting: u64) -> Outcome {
    let (kind, flags) = kind_and_flags(call, fd)?;
    let held = rights(kind, flags);
    match () {
        () if base & !held != 0 || inheriting & !ALL_RIGHTS != 0 => Err(Errno::ENOTCAPABLE.into()),
        () if base == held && inheriting == ALL_RIGHTS => Ok(()),
        () => Err(Errno::ENOTSUP.into()),
    }
}

fn preopen_name(call: &Call<'_>, fd: u32) -> Result<Vec<u8>> {
    let file: Arc<OpenFile> = call.file(fd)?;
    match &*file {
        OpenFile::Tree(file) => file.preopen_name().map(<[u8]>::to_vec).ok_or(Errno::EBADF),
        _ => Err(Errno::EBADF),
    }
}

fn fd_prestat_get(call: &mut Call<'_>, fd: u32, out: u32) -> Outcome {
    let name = preopen_name(call, fd)?;
    call.bytes(out, 8)?;
    call.put_u32(out, 0)?;
    Ok(call.put_u32(out + 4, name.len() as u32)?)
}

fn fd_prestat_dir_name(call: &mut Call<'_>, fd: u32, ptr: u32, len: u32) -> Outcome {
    let name = preopen_name(call, fd)?;
    if name.len() > len as usize {
        return Err(Errno::ENAMETOOLONG.into());
    }
    Ok(call.put(ptr, &name)?)
}

async fn sock_accept(call: &mut Call<'_>, fd: u32, _flags: u32, _out: u32) -> Outcome {
    no_sockets(call, fd)
}

async fn sock_recv(
    call: &mut Call<'_>,
    fd: u32,
    _iovs: u32,
    _count: u32,
    _flags: u32,
    _out: u32,
    _out_flags: u32,
) -> Outcome {
    no_sockets(call, fd)
}

async fn sock_send(call: &mut Call<'_>, fd: u32, _iovs: u32, _count: u32, _flags: u32, _out: u32) -> Outcome {
    no_sockets(call, fd)
}

async fn sock_shutdown(call: &mut Call<'_>, fd: u32, _how: u32) -> Outcome {
    no_sockets(call, fd)
}

fn no_sockets(call: &Call<'_>, fd: u32) -> Outcome {
    call.file(fd)?;
    Err(Errno::ENOTSUP.into())
}
