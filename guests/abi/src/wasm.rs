//! The backend inside the sandbox: the kernel's imports, and the parts of libc that must ask the kernel.
//!
//! Every `unsafe` here is a call of an import or a libc symbol with pointers into live slices; the kernel
//! checks them against this program's memory and writes results only on success.

use crate::{
    Dir, Disposition, Errno, Fd, FdMap, Group, Limit, Lock, LockHeld, LockRange, Pid, Pipe, Preopen,
    Resource, Result, Spawn, Stat, StatFs, Status, TerminalMode, Times, WaitFlags, Whence,
};
use std::ffi::{CStr, c_char, c_int, c_long};
use std::time::Duration;

/// The imports of docs/abi.md.
mod wardian {
    #[link(wasm_import_module = "wardian")]
    unsafe extern "C" {
        pub fn fork(entry: extern "C" fn(*mut u8) -> i32, data: *mut u8, pid: *mut i32) -> i32;
        pub fn spawn(request: *const u32, pid: *mut i32) -> i32;
        pub fn exec(request: *const u32) -> i32;
        pub fn exec_wasi(request: *const u32, preopens: *const [u32; 3], count: usize) -> i32;
        pub fn wait(pid: i32, flags: i32, status: *mut i32, ended: *mut i32) -> i32;
        pub fn kill(pid: i32, signal: i32) -> i32;
        pub fn getpid() -> i32;
        pub fn getppid() -> i32;
        pub fn getpgid(pid: i32, group: *mut i32) -> i32;
        pub fn setpgid(pid: i32, group: i32) -> i32;
        pub fn getsid(pid: i32, session: *mut i32) -> i32;
        pub fn setsid() -> i32;
        pub fn sigaction(signal: i32, disposition: i32, old: *mut i32) -> i32;
        pub fn sigpending(mask: *mut u64) -> i32;
        pub fn alarm(nanos: i64, left: *mut i64) -> i32;
        pub fn times(out: *mut crate::Times) -> i32;
        pub fn getrlimit(which: i32, out: *mut crate::Limit) -> i32;
        pub fn setrlimit(which: i32, limit: *const crate::Limit) -> i32;
        pub fn pipe(fds: *mut i32, flags: i32) -> i32;
        pub fn dup(fd: i32, min: i32, flags: i32, new: *mut i32) -> i32;
        pub fn dup2(from: i32, to: i32, flags: i32) -> i32;
        pub fn cloexec(fd: i32, value: i32, old: *mut i32) -> i32;
        pub fn flock(fd: i32, operation: u32) -> i32;
        pub fn lock(fd: i32, command: u32, range: *mut super::LockWords) -> i32;
        pub fn isatty(fd: i32) -> i32;
        pub fn winsize(fd: i32, out: *mut u16) -> i32;
        pub fn setwinsize(fd: i32, rows: u32, columns: u32) -> i32;
        pub fn tcgetattr(fd: i32, out: *mut crate::TerminalMode) -> i32;
        pub fn tcsetattr(fd: i32, flush: u32, mode: *const crate::TerminalMode) -> i32;
        pub fn tcgetpgrp(fd: i32, group: *mut i32) -> i32;
        pub fn tcsetpgrp(fd: i32, group: i32) -> i32;
        pub fn stat(dir: i32, path: *const u8, len: usize, flags: i32, out: *mut crate::Stat) -> i32;
        pub fn fstat(fd: i32, out: *mut crate::Stat) -> i32;
        pub fn chmod(dir: i32, path: *const u8, len: usize, flags: i32, mode: u32) -> i32;
        pub fn fchmod(fd: i32, mode: u32) -> i32;
        pub fn chown(dir: i32, path: *const u8, len: usize, flags: i32, uid: i32, gid: i32) -> i32;
        pub fn access(dir: i32, path: *const u8, len: usize, mode: u32) -> i32;
        pub fn mkdir(dir: i32, path: *const u8, len: usize, mode: u32) -> i32;
        pub fn mkfifo(dir: i32, path: *const u8, len: usize, mode: u32) -> i32;
        pub fn open(dir: i32, path: *const u8, len: usize, flags: u32, mode: u32, fd: *mut i32) -> i32;
        pub fn umask(mask: u32) -> u32;
        pub fn statfs(dir: i32, path: *const u8, len: usize, out: *mut crate::StatFs) -> i32;
        pub fn getcwd(buffer: *mut u8, len: usize, need: *mut usize) -> i32;
        pub fn chdir(dir: i32, path: *const u8, len: usize) -> i32;
    }
}

/// The few WASI calls that `std` does not offer on a bare descriptor.
mod wasi {
    #[repr(C)]
    pub struct Vector {
        pub pointer: *mut u8,
        pub len: usize,
    }

    /// `subscription`, with the union spelled as the words of its larger variant (the clock).
    #[repr(C)]
    #[derive(Default)]
    pub struct Subscription {
        pub userdata: u64,
        pub tag: u64,
        pub id_or_fd: u32,
        pub pad: u32,
        pub timeout: u64,
        pub precision: u64,
        pub flags: u64,
    }

    #[repr(C)]
    #[derive(Default, Clone, Copy)]
    pub struct Event {
        pub userdata: u64,
        pub error: u16,
        pub kind: u8,
        pub pad: [u8; 5],
        pub bytes: u64,
        pub flags: u64,
    }

    #[repr(C)]
    #[derive(Default)]
    pub struct FdStat {
        pub kind: u8,
        pub flags: u16,
        pub rights: u64,
        pub inheriting: u64,
    }

    #[link(wasm_import_module = "wasi_snapshot_preview1")]
    unsafe extern "C" {
        pub fn fd_read(fd: i32, vectors: *const Vector, count: usize, done: *mut usize) -> i32;
        pub fn fd_write(fd: i32, vectors: *const Vector, count: usize, done: *mut usize) -> i32;
        pub fn fd_pread(fd: i32, vectors: *const Vector, count: usize, offset: u64, done: *mut usize) -> i32;
        pub fn fd_pwrite(fd: i32, vectors: *const Vector, count: usize, offset: u64, done: *mut usize)
        -> i32;
        pub fn fd_close(fd: i32) -> i32;
        pub fn fd_fdstat_get(fd: i32, out: *mut FdStat) -> i32;
        pub fn fd_fdstat_set_flags(fd: i32, flags: u32) -> i32;
        pub fn fd_filestat_set_size(fd: i32, size: u64) -> i32;
        pub fn fd_allocate(fd: i32, offset: u64, len: u64) -> i32;
        pub fn fd_sync(fd: i32) -> i32;
        pub fn path_symlink(
            target: *const u8,
            target_len: usize,
            dir: i32,
            path: *const u8,
            len: usize,
        ) -> i32;
        pub fn path_readlink(
            dir: i32,
            path: *const u8,
            len: usize,
            buffer: *mut u8,
            size: usize,
            done: *mut usize,
        ) -> i32;
        pub fn path_link(
            from_dir: i32,
            lookup: i32,
            from: *const u8,
            from_len: usize,
            to_dir: i32,
            to: *const u8,
            to_len: usize,
        ) -> i32;
        pub fn path_rename(
            from_dir: i32,
            from: *const u8,
            from_len: usize,
            to_dir: i32,
            to: *const u8,
            to_len: usize,
        ) -> i32;
        pub fn path_unlink_file(dir: i32, path: *const u8, len: usize) -> i32;
        pub fn path_remove_directory(dir: i32, path: *const u8, len: usize) -> i32;
        pub fn proc_raise(signal: i32) -> i32;
        pub fn fd_seek(fd: i32, offset: i64, whence: i32, position: *mut u64) -> i32;
        pub fn poll_oneoff(
            subs: *const Subscription,
            out: *mut Event,
            count: usize,
            events: *mut usize,
        ) -> i32;
        pub fn path_filestat_set_times(
            dir: i32,
            lookup: i32,
            path: *const u8,
            len: usize,
            atime: i64,
            mtime: i64,
            flags: i32,
        ) -> i32;
        pub fn proc_exit(code: i32) -> !;
        pub fn args_sizes_get(count: *mut usize, size: *mut usize) -> i32;
        pub fn args_get(pointers: *mut *mut u8, bytes: *mut u8) -> i32;
        pub fn environ_sizes_get(count: *mut usize, size: *mut usize) -> i32;
        pub fn environ_get(pointers: *mut *mut u8, bytes: *mut u8) -> i32;
    }
}

/// An errno answered by an import, as a result.
fn check(errno: i32) -> Result<()> {
    match errno {
        0 => Ok(()),
        n => Err(Errno(u16::try_from(n).unwrap_or(Errno::IO.0))),
    }
}

/// Calls `$call` (with `$out` as an out-variable, if there is one) and answers the variable.
macro_rules! call {
    ($call:expr) => {
        // SAFETY: see the top of the file.
        check(unsafe { $call })
    };
    ($out:ident = $initial:expr; $call:expr) => {{
        let mut $out = $initial;
        // SAFETY: see the top of the file.
        check(unsafe { $call }).map(|()| $out)
    }};
}

#[path = "wasm_socket.rs"]
mod wasm_socket;
pub use wasm_socket::calls::*;

/// The function a forked child starts in: takes the closure from where its parent left it.
extern "C" fn enter_child<F: FnOnce() -> i32>(data: *mut u8) -> i32 {
    // SAFETY: `data` is the `&mut Option<F>` that `fork` passed, in this process's copy of the memory.
    let child = unsafe { &mut *data.cast::<Option<F>>() };
    child.take().map_or(255, |run| run())
}

pub fn fork<F: FnOnce() -> i32>(child: F) -> Result<Pid> {
    let mut child = Some(child);
    let data = (&raw mut child).cast::<u8>();
    call!(pid = 0; wardian::fork(enter_child::<F>, data, &mut pid))
}

/// Where the kernel enters a forked child.
#[unsafe(no_mangle)]
extern "C" fn __wardian_fork_entry(entry: extern "C" fn(*mut u8) -> i32, data: *mut u8) -> i32 {
    entry(data)
}

/// The eleven words of docs/abi.md.
fn request(spawn: &Spawn<'_>) -> [u32; 11] {
    let pair = |bytes: &[u8]| [bytes.as_ptr() as u32, bytes.len() as u32];
    let [path, path_len] = pair(spawn.path);
    let [argv, argv_len] = pair(spawn.argv);
    let [env, env_len] = pair(spawn.env);
    let [cwd, cwd_len] = pair(spawn.cwd);
    let group = match spawn.group {
        Group::Caller => -1,
        Group::New => 0,
        Group::Of(group) => group,
        Group::Foreground => -2,
    };
    let fds: *const FdMap = spawn.fds.as_ptr();
    let (fds, count) = (fds as u32, spawn.fds.len() as u32);
    [path, path_len, argv, argv_len, env, env_len, cwd, cwd_len, fds, count, group as u32]
}

pub fn spawn(spawn: &Spawn<'_>) -> Result<Pid> {
    let request = request(spawn);
    call!(pid = 0; wardian::spawn(request.as_ptr(), &mut pid))
}

pub fn exec(spawn: &Spawn<'_>) -> Errno {
    let request = request(spawn);
    call!(wardian::exec(request.as_ptr())).err().unwrap_or(Errno::IO)
}

pub fn exec_wasi(spawn: &Spawn<'_>, preopens: &[Preopen<'_>]) -> Errno {
    let request = request(spawn);
    let words =
        |preopen: &Preopen<'_>| [preopen.fd as u32, preopen.name.as_ptr() as u32, preopen.name.len() as u32];
    let preopens: Vec<[u32; 3]> = preopens.iter().map(words).collect();
    let answer = call!(wardian::exec_wasi(request.as_ptr(), preopens.as_ptr(), preopens.len()));
    answer.err().unwrap_or(Errno::IO)
}

pub fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { wasi::proc_exit(code) }
}

pub fn wait(who: Pid, flags: WaitFlags) -> Result<Option<(Pid, Status)>> {
    let bits = i32::from(flags.no_hang) | i32::from(flags.stopped) << 1;
    let (pid, status) = call!(out = (0, 0); wardian::wait(who, bits, &mut out.1, &mut out.0))?;
    Ok((pid != 0).then_some((pid, Status(status))))
}

pub fn kill(who: Pid, signal: i32) -> Result<()> {
    call!(wardian::kill(who, signal))
}

pub fn raise(signal: i32) -> Result<()> {
    call!(wasi::proc_raise(signal))
}

pub fn getpid() -> Pid {
    // SAFETY: takes nothing.
    unsafe { wardian::getpid() }
}

pub fn getppid() -> Pid {
    // SAFETY: takes nothing.
    unsafe { wardian::getppid() }
}

pub fn getpgid(pid: Pid) -> Result<Pid> {
    call!(group = 0; wardian::getpgid(pid, &mut group))
}

pub fn setpgid(pid: Pid, group: Pid) -> Result<()> {
    call!(wardian::setpgid(pid, group))
}

pub fn getsid(pid: Pid) -> Result<Pid> {
    call!(session = 0; wardian::getsid(pid, &mut session))
}

pub fn setsid() -> Result<()> {
    call!(wardian::setsid())
}

pub fn flock(fd: Fd, lock: Option<Lock>, wait: bool) -> Result<()> {
    let operation = match lock {
        None => 8,
        Some(Lock::Shared) => 1,
        Some(Lock::Exclusive) => 2,
    };
    call!(wardian::flock(fd, operation | if wait { 0 } else { 4 }))
}

/// A lock of bytes, as the kernel has it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct LockWords {
    kind: u32,
    pid: i32,
    start: i64,
    length: i64,
}

fn lock_words(lock: Option<Lock>, range: LockRange) -> LockWords {
    let kind = match lock {
        None => 2,
        Some(Lock::Shared) => 0,
        Some(Lock::Exclusive) => 1,
    };
    LockWords { kind, pid: 0, start: range.start, length: range.length }
}

pub fn lock(fd: Fd, lock: Option<Lock>, range: LockRange, wait: bool) -> Result<()> {
    let mut words = lock_words(lock, range);
    call!(wardian::lock(fd, if wait { 2 } else { 1 }, &mut words))
}

pub fn lock_in_the_way(fd: Fd, lock: Lock, range: LockRange) -> Result<Option<LockHeld>> {
    let words = call!(words = lock_words(Some(lock), range); wardian::lock(fd, 0, &mut words))?;
    let lock = match words.kind {
        2 => return Ok(None),
        1 => Lock::Exclusive,
        _ => Lock::Shared,
    };
    let range = LockRange { start: words.start, length: words.length };
    Ok(Some(LockHeld { lock, pid: words.pid, range }))
}

pub fn sigaction(signal: i32, new: Option<Disposition>) -> Result<Disposition> {
    let number = match new {
        None => -1,
        Some(Disposition::Default) => 0,
        Some(Disposition::Ignore) => 1,
        Some(Disposition::Flag) => 2,
    };
    Ok(match call!(old = 0; wardian::sigaction(signal, number, &mut old))? {
        1 => Disposition::Ignore,
        2 => Disposition::Flag,
        _ => Disposition::Default,
    })
}

pub fn sigpending() -> u64 {
    call!(mask = 0; wardian::sigpending(&mut mask)).unwrap_or(0)
}

pub fn alarm(nanos: i64) -> Result<i64> {
    call!(left = 0; wardian::alarm(nanos, &mut left))
}

pub fn times() -> Times {
    call!(out = Times::default(); wardian::times(&mut out)).unwrap_or_default()
}

pub fn getrlimit(which: Resource) -> Result<Limit> {
    call!(out = Limit { soft: -1, hard: -1 }; wardian::getrlimit(which as i32, &mut out))
}

pub fn setrlimit(which: Resource, limit: Limit) -> Result<()> {
    call!(wardian::setrlimit(which as i32, &limit))
}

pub fn pipe(cloexec: bool) -> Result<Pipe> {
    let [read, write] = call!(ends = [0; 2]; wardian::pipe(ends.as_mut_ptr(), cloexec.into()))?;
    Ok(Pipe { read, write })
}

pub fn dup(fd: Fd, min: Fd, cloexec: bool) -> Result<Fd> {
    call!(new = 0; wardian::dup(fd, min, cloexec.into(), &mut new))
}

pub fn dup2(from: Fd, to: Fd, cloexec: bool) -> Result<()> {
    call!(wardian::dup2(from, to, cloexec.into()))
}

pub fn cloexec(fd: Fd, value: Option<bool>) -> Result<bool> {
    let value = value.map_or(-1, i32::from);
    call!(old = 0; wardian::cloexec(fd, value, &mut old)).map(|old| old != 0)
}

pub fn close(fd: Fd) -> Result<()> {
    call!(wasi::fd_close(fd))
}

pub fn isatty(fd: Fd) -> Result<()> {
    call!(wardian::isatty(fd))
}

pub fn winsize(fd: Fd) -> Result<(u16, u16)> {
    call!(size = [0; 2]; wardian::winsize(fd, size.as_mut_ptr())).map(|[rows, columns]| (rows, columns))
}

pub fn set_winsize(fd: Fd, rows: u16, columns: u16) -> Result<()> {
    call!(wardian::setwinsize(fd, u32::from(rows), u32::from(columns)))
}

pub fn tcgetattr(fd: Fd) -> Result<TerminalMode> {
    call!(mode = TerminalMode::default(); wardian::tcgetattr(fd, &mut mode))
}

pub fn tcsetattr(fd: Fd, mode: &TerminalMode, flush: bool) -> Result<()> {
    call!(wardian::tcsetattr(fd, u32::from(flush), mode))
}

pub fn tcgetpgrp(fd: Fd) -> Result<Pid> {
    call!(group = 0; wardian::tcgetpgrp(fd, &mut group))
}

pub fn tcsetpgrp(fd: Fd, group: Pid) -> Result<()> {
    call!(wardian::tcsetpgrp(fd, group))
}

pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize> {
    let vector = wasi::Vector { pointer: buffer.as_mut_ptr(), len: buffer.len() };
    call!(done = 0; wasi::fd_read(fd, &vector, 1, &mut done))
}

pub fn write(fd: Fd, bytes: &[u8]) -> Result<usize> {
    let vector = wasi::Vector { pointer: bytes.as_ptr().cast_mut(), len: bytes.len() };
    call!(done = 0; wasi::fd_write(fd, &vector, 1, &mut done))
}

pub fn pread(fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let vector = wasi::Vector { pointer: buffer.as_mut_ptr(), len: buffer.len() };
    call!(done = 0; wasi::fd_pread(fd, &vector, 1, offset, &mut done))
}

pub fn pwrite(fd: Fd, bytes: &[u8], offset: u64) -> Result<usize> {
    let vector = wasi::Vector { pointer: bytes.as_ptr().cast_mut(), len: bytes.len() };
    call!(done = 0; wasi::fd_pwrite(fd, &vector, 1, offset, &mut done))
}

pub fn seek(fd: Fd, offset: i64, whence: Whence) -> Result<u64> {
    call!(position = 0; wasi::fd_seek(fd, offset, whence as i32, &mut position))
}

pub fn poll_read(fd: Fd, timeout: Option<Duration>) -> Result<bool> {
    const FD_READ: u64 = 1;
    poll(fd, FD_READ, timeout)
}

pub fn poll_write(fd: Fd, timeout: Option<Duration>) -> Result<bool> {
    const FD_WRITE: u64 = 2;
    poll(fd, FD_WRITE, timeout)
}

fn poll(fd: Fd, tag: u64, timeout: Option<Duration>) -> Result<bool> {
    const CLOCK: u64 = 0;
    const MONOTONIC: u32 = 1;
    let nanos = timeout.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    let subs = [
        wasi::Subscription { userdata: 1, tag, id_or_fd: fd as u32, ..Default::default() },
        wasi::Subscription { tag: CLOCK, id_or_fd: MONOTONIC, timeout: nanos, ..Default::default() },
    ];
    let mut events = [wasi::Event::default(); 2];
    let wanted = if timeout.is_some() { 2 } else { 1 };
    let count = call!(n = 0; wasi::poll_oneoff(subs.as_ptr(), events.as_mut_ptr(), wanted, &mut n))?;
    for event in &events[..count.min(2)] {
        if event.userdata == 1 {
            check(event.error.into())?;
            return Ok(true);
        }
    }
    Ok(false)
}

const FDFLAGS_NONBLOCK: u16 = 4;

fn fdflags(fd: Fd) -> Result<u16> {
    call!(out = wasi::FdStat::default(); wasi::fd_fdstat_get(fd, &mut out)).map(|stat| stat.flags)
}

pub fn nonblocking(fd: Fd) -> Result<bool> {
    fdflags(fd).map(|flags| flags & FDFLAGS_NONBLOCK != 0)
}

pub fn set_nonblocking(fd: Fd, value: bool) -> Result<()> {
    let flags = fdflags(fd)? & !FDFLAGS_NONBLOCK;
    let new = if value { flags | FDFLAGS_NONBLOCK } else { flags };
    call!(wasi::fd_fdstat_set_flags(fd, new.into()))
}

pub fn truncate(fd: Fd, size: u64) -> Result<()> {
    call!(wasi::fd_filestat_set_size(fd, size))
}

pub fn allocate(fd: Fd, offset: u64, len: u64) -> Result<()> {
    call!(wasi::fd_allocate(fd, offset, len))
}

pub fn sync(fd: Fd) -> Result<()> {
    call!(wasi::fd_sync(fd))
}

pub fn stat(dir: Dir, path: &[u8], follow: bool) -> Result<Stat> {
    call!(out = Stat::default(); wardian::stat(dir.0, path.as_ptr(), path.len(), follow.into(), &mut out))
}

pub fn fstat(fd: Fd) -> Result<Stat> {
    call!(out = Stat::default(); wardian::fstat(fd, &mut out))
}

pub fn chmod(dir: Dir, path: &[u8], follow: bool, mode: u32) -> Result<()> {
    call!(wardian::chmod(dir.0, path.as_ptr(), path.len(), follow.into(), mode))
}

pub fn fchmod(fd: Fd, mode: u32) -> Result<()> {
    call!(wardian::fchmod(fd, mode))
}

pub fn chown(dir: Dir, path: &[u8], follow: bool, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    let number = |id: Option<u32>| id.map_or(-1, |id| id as i32);
    call!(wardian::chown(dir.0, path.as_ptr(), path.len(), follow.into(), number(uid), number(gid)))
}

pub fn set_times(dir: Dir, path: &[u8], follow: bool, atime: Option<i64>, mtime: Option<i64>) -> Result<()> {
    let flags = i32::from(atime.is_some()) | i32::from(mtime.is_some()) << 2;
    let (atime, mtime) = (atime.unwrap_or(0), mtime.unwrap_or(0));
    call!(wasi::path_filestat_set_times(dir.0, follow.into(), path.as_ptr(), path.len(), atime, mtime, flags))
}

pub fn access(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    call!(wardian::access(dir.0, path.as_ptr(), path.len(), mode))
}

pub fn mkdir(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    call!(wardian::mkdir(dir.0, path.as_ptr(), path.len(), mode))
}

pub fn mkfifo(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    call!(wardian::mkfifo(dir.0, path.as_ptr(), path.len(), mode))
}

pub fn symlink(target: &[u8], dir: Dir, path: &[u8]) -> Result<()> {
    call!(wasi::path_symlink(target.as_ptr(), target.len(), dir.0, path.as_ptr(), path.len()))
}

pub fn readlink(dir: Dir, path: &[u8]) -> Result<Vec<u8>> {
    let mut target = vec![0; 4096];
    let (buffer, size) = (target.as_mut_ptr(), target.len());
    let n = call!(n = 0; wasi::path_readlink(dir.0, path.as_ptr(), path.len(), buffer, size, &mut n))?;
    target.truncate(n);
    Ok(target)
}

pub fn hard_link(from_dir: Dir, from: &[u8], to_dir: Dir, to: &[u8]) -> Result<()> {
    call!(wasi::path_link(from_dir.0, 0, from.as_ptr(), from.len(), to_dir.0, to.as_ptr(), to.len()))
}

pub fn rename(from_dir: Dir, from: &[u8], to_dir: Dir, to: &[u8]) -> Result<()> {
    call!(wasi::path_rename(from_dir.0, from.as_ptr(), from.len(), to_dir.0, to.as_ptr(), to.len()))
}

pub fn unlink(dir: Dir, path: &[u8]) -> Result<()> {
    call!(wasi::path_unlink_file(dir.0, path.as_ptr(), path.len()))
}

pub fn rmdir(dir: Dir, path: &[u8]) -> Result<()> {
    call!(wasi::path_remove_directory(dir.0, path.as_ptr(), path.len()))
}

pub fn open(dir: Dir, path: &[u8], flags: u32, mode: u32) -> Result<Fd> {
    call!(fd = 0; wardian::open(dir.0, path.as_ptr(), path.len(), flags, mode, &mut fd))
}

pub fn umask(mask: u32) -> u32 {
    // SAFETY: takes and answers a number.
    unsafe { wardian::umask(mask) }
}

pub fn statfs(dir: Dir, path: &[u8]) -> Result<StatFs> {
    call!(out = StatFs::default(); wardian::statfs(dir.0, path.as_ptr(), path.len(), &mut out))
}

pub fn getcwd() -> Result<Vec<u8>> {
    let mut buffer = vec![0; 256];
    loop {
        let mut need = 0;
        match call!(wardian::getcwd(buffer.as_mut_ptr(), buffer.len(), &mut need)) {
            Err(Errno::RANGE) if need > buffer.len() => buffer.resize(need, 0),
            Err(errno) => return Err(errno),
            Ok(()) => {
                buffer.truncate(need);
                return Ok(buffer);
            }
        }
    }
}

pub fn chdir(dir: Dir, path: &[u8]) -> Result<()> {
    call!(wardian::chdir(dir.0, path.as_ptr(), path.len()))
}

/// Strings that WASI hands out as a block: `sizes` says how many and how long, `get` fills them in.
fn string_block(
    sizes: unsafe extern "C" fn(*mut usize, *mut usize) -> i32,
    get: unsafe extern "C" fn(*mut *mut u8, *mut u8) -> i32,
) -> Vec<Vec<u8>> {
    let Ok((count, size)) = call!(out = (0, 0); sizes(&mut out.0, &mut out.1)) else { return Vec::new() };
    let mut pointers = vec![std::ptr::null_mut(); count];
    let mut bytes = vec![0; size];
    if call!(get(pointers.as_mut_ptr(), bytes.as_mut_ptr())).is_err() {
        return Vec::new();
    }
    bytes.split(|&byte| byte == 0).take(count).map(<[u8]>::to_vec).collect()
}

pub fn args() -> Vec<Vec<u8>> {
    string_block(wasi::args_sizes_get, wasi::args_get)
}

pub fn environ() -> Vec<Vec<u8>> {
    string_block(wasi::environ_sizes_get, wasi::environ_get)
}

/// The sandbox has one user.
pub fn getuid() -> u32 {
    1000
}

pub fn getgid() -> u32 {
    1000
}

/// Runs what C and Rust run before `main`; for `_initialize`.
pub fn call_constructors() {
    unsafe extern "C" {
        fn __wasm_call_ctors();
    }
    // SAFETY: the linker makes it; the kernel calls `_initialize` once, before anything else.
    unsafe { __wasm_call_ctors() }
}

/// Keeps the overrides below: a symbol nobody names is never pulled from this crate's archive.
pub fn link() {
    std::hint::black_box(__wasilibc_find_relpath as *const ());
    std::hint::black_box(chdir_for_libc as *const ());
    std::hint::black_box(getcwd_for_libc as *const ());
    std::hint::black_box(clock_nanosleep_for_libc as *const ());
}

/// libc's path look-up: which directory a path starts from, and what is left of the path. Every path goes
/// to the kernel as it is, the empty one too (it answers ENOENT).
///
/// # Safety
/// As libc calls it: `path` is a C string, the others point to pointers it owns.
#[unsafe(no_mangle)]
unsafe extern "C" fn __wasilibc_find_relpath(
    path: *const c_char,
    prefix: *mut *const c_char,
    relative: *mut *mut c_char,
    _relative_len: usize,
) -> c_int {
    // SAFETY: by the caller's promise.
    unsafe {
        *relative = path.cast_mut();
        let absolute = *path.cast::<u8>() == b'/';
        *prefix = if absolute { c"/".as_ptr() } else { c"".as_ptr() };
        if absolute { Dir::ROOT.0 } else { Dir::CWD.0 }
    }
}

/// Sets libc's `errno`.
fn set_errno(error: Errno) {
    unsafe extern "C" {
        /// Without threads it is an ordinary variable.
        static mut errno: c_int;
    }
    // SAFETY: there are no threads.
    unsafe { errno = c_int::from(error.0) }
}

/// libc's `chdir`, which would otherwise keep a directory of its own.
///
/// # Safety
/// `path` is a C string.
#[unsafe(export_name = "chdir")]
unsafe extern "C" fn chdir_for_libc(path: *const c_char) -> c_int {
    // SAFETY: by the caller's promise.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let moved = if path.is_empty() { Err(Errno::NOENT) } else { chdir(Dir::CWD, path) };
    match moved {
        Ok(()) => 0,
        Err(error) => {
            set_errno(error);
            -1
        }
    }
}

/// libc's `getcwd`.
///
/// # Safety
/// `buffer` has room for `len` bytes, or is null: then the answer is allocated.
#[unsafe(export_name = "getcwd")]
unsafe extern "C" fn getcwd_for_libc(buffer: *mut c_char, len: usize) -> *mut c_char {
    unsafe extern "C" {
        fn malloc(size: usize) -> *mut c_char;
    }
    let fail = |error| {
        set_errno(error);
        std::ptr::null_mut()
    };
    let path = match getcwd() {
        Ok(path) => path,
        Err(error) => return fail(error),
    };
    // SAFETY: `buffer` has `len` bytes by the caller's promise, or is fresh from malloc.
    unsafe {
        let target = if buffer.is_null() { malloc(path.len() + 1) } else { buffer };
        if target.is_null() {
            return fail(Errno::NOMEM);
        }
        if !buffer.is_null() && len <= path.len() {
            return fail(Errno::RANGE);
        }
        std::ptr::copy_nonoverlapping(path.as_ptr(), target.cast(), path.len());
        *target.add(path.len()) = 0;
        target
    }
}

/// `struct timespec`.
#[repr(C)]
#[derive(Clone, Copy)]
struct TimeSpec {
    seconds: i64,
    nanos: c_long,
}

/// libc's `clock_nanosleep`, under all its ways to sleep: its own answers that sleeping is not supported where a signal
/// cut it short. Answers an errno.
///
/// # Safety
/// `clock` points to one of libc's clocks, `wanted` to a time, `left` to one or is null.
#[unsafe(export_name = "clock_nanosleep")]
unsafe extern "C" fn clock_nanosleep_for_libc(
    clock: *const u32,
    flags: c_int,
    wanted: *const TimeSpec,
    left: *mut TimeSpec,
) -> c_int {
    const ABSOLUTE: c_int = 1;
    const SECOND: u64 = 1_000_000_000;
    // SAFETY: by the caller's promise.
    let (clock, TimeSpec { seconds, nanos }) = unsafe { (*clock, *wanted) };
    let (Ok(seconds), 0..=999_999_999) = (u64::try_from(seconds), nanos) else {
        return Errno::INVAL.0.into();
    };
    let timeout = seconds.saturating_mul(SECOND).saturating_add(nanos as u64);
    let start = std::time::Instant::now();
    let flags = (flags & ABSOLUTE) as u64;
    let sleep = wasi::Subscription { id_or_fd: clock, timeout, flags, ..Default::default() };
    let mut event = wasi::Event::default();
    let slept = call!(n = 0; wasi::poll_oneoff(&sleep, &mut event, 1, &mut n));
    let Err(error) = slept.and(check(event.error.into())) else { return 0 };
    if !left.is_null() && flags == 0 {
        let passed = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let rest = timeout.saturating_sub(passed);
        let rest = TimeSpec { seconds: (rest / SECOND) as i64, nanos: (rest % SECOND) as c_long };
        // SAFETY: by the caller's promise.
        unsafe { *left = rest };
    }
    error.0.into()
}
