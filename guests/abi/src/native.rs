//! The backend on Linux: libc. It makes the shell an ordinary program for debuggers, profilers and fuzzers.

use crate::{
    Dir, Disposition, Errno, Fd, Group, Limit, Lock, LockHeld, LockRange, Pid, Pipe, Preopen, Resource,
    Result, Spawn, Stat, StatFs, Status, TerminalMode, Times, WaitFlags, Whence,
};
use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The error a libc call just left.
fn last() -> Errno {
    Errno::from_linux(std::io::Error::last_os_error().raw_os_error().unwrap_or(5))
}

/// A libc answer: negative is an error.
fn check(answer: c_int) -> Result<c_int> {
    if answer < 0 { Err(last()) } else { Ok(answer) }
}

/// Calls libc with valid pointers and plain numbers, and checks the answer.
macro_rules! call {
    ($call:expr) => {
        // SAFETY: every pointer passed here comes from a live value of the right type.
        check(unsafe { $call })
    };
}

#[path = "native_socket.rs"]
mod native_socket;
pub use native_socket::*;

/// A path for libc; one with a NUL names nothing.
fn cstring(path: &[u8]) -> Result<CString> {
    CString::new(path).map_err(|_| Errno::NOENT)
}

/// The constants of docs/abi.md as libc has them. An absolute path needs no directory.
fn dirfd(dir: Dir) -> c_int {
    if dir == Dir::CWD || dir == Dir::ROOT { libc::AT_FDCWD } else { dir.0 }
}

/// A path relative to the root becomes absolute.
fn path_at(dir: Dir, path: &[u8]) -> Result<CString> {
    if dir == Dir::ROOT && !path.starts_with(b"/") {
        let mut absolute = b"/".to_vec();
        absolute.extend_from_slice(path);
        return cstring(&absolute);
    }
    cstring(path)
}

pub fn fork<F: FnOnce() -> i32>(child: F) -> Result<Pid> {
    match call!(libc::fork())? {
        0 => exit(child()),
        pid => Ok(pid),
    }
}

/// The C strings of a block, for the pointers libc wants.
fn pointers(block: &[u8]) -> Vec<*const libc::c_char> {
    let mut list = Vec::new();
    let mut start = 0;
    for (at, &byte) in block.iter().enumerate() {
        if byte == 0 {
            list.push(block[start..].as_ptr().cast());
            start = at + 1;
        }
    }
    list.push(std::ptr::null());
    list
}

/// In a new process: directory, descriptors, group, then the program. Answers only errors.
fn become_program(request: &Spawn<'_>) -> Errno {
    let prepare = || -> Result<()> {
        if !request.cwd.is_empty() {
            chdir(Dir::CWD, request.cwd)?;
        }
        match request.group {
            Group::Caller => {}
            Group::New => setpgid(0, 0)?,
            Group::Of(group) => setpgid(0, group)?,
            Group::Foreground => become_foreground()?,
        }
        // Copies above every target first, so that the order of the map does not matter.
        let above = request.fds.iter().map(|map| map.to + 1).max().unwrap_or(0).max(64);
        let mut copies = Vec::new();
        for map in request.fds {
            copies.push(if map.from < 0 { -1 } else { dup(map.from, above, true)? });
        }
        for (map, copy) in request.fds.iter().zip(copies) {
            match copy {
                -1 => drop(close(map.to)),
                copy => dup2(copy, map.to, false)?,
            }
        }
        Ok(())
    };
    if let Err(errno) = prepare() {
        return errno;
    }
    let Ok(path) = cstring(request.path) else { return Errno::NOENT };
    let (argv, env) = (pointers(request.argv), pointers(request.env));
    // SAFETY: NUL-terminated strings in null-terminated lists.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    last()
}

/// A new group, in front. Only who ignores SIGTTOU may ask for that from the background.
fn become_foreground() -> Result<()> {
    setpgid(0, 0)?;
    let Ok(terminal) = call!(libc::open(c"/dev/tty".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC)) else {
        return Ok(());
    };
    let before = sigaction(libc::SIGTTOU, Some(Disposition::Ignore))?;
    let moved = tcsetpgrp(terminal, getpid());
    sigaction(libc::SIGTTOU, Some(before))?;
    close(terminal)?;
    moved
}

pub fn spawn(request: &Spawn<'_>) -> Result<Pid> {
    let report = pipe(true)?;
    let high = dup(report.write, 512, true);
    let pid = fork(|| {
        for signal in 1..32 {
            if sigaction(signal, None) == Ok(Disposition::Flag) {
                let _ = sigaction(signal, Some(Disposition::Default));
            }
        }
        let errno = become_program(request);
        let _ = write(high.unwrap_or(report.write), &errno.0.to_ne_bytes());
        127
    });
    let _ = close(report.write);
    if let Ok(high) = high {
        let _ = close(high);
    }
    let mut errno = [0; 2];
    let failed = pid.is_ok() && matches!(read_retrying(report.read, &mut errno), Ok(2));
    let _ = close(report.read);
    if failed {
        if let Ok(pid) = pid {
            let _ = wait(pid, WaitFlags::default());
        }
        return Err(Errno(u16::from_ne_bytes(errno)));
    }
    pid
}

fn read_retrying(fd: Fd, buffer: &mut [u8]) -> Result<usize> {
    loop {
        match read(fd, buffer) {
            Err(Errno::INTR) => {}
            other => return other,
        }
    }
}

pub fn exec(request: &Spawn<'_>) -> Errno {
    become_program(request)
}

/// Only the sandbox runs WASI programs.
pub fn exec_wasi(_request: &Spawn<'_>, _preopens: &[Preopen<'_>]) -> Errno {
    Errno::NOSYS
}

pub fn exit(code: i32) -> ! {
    // SAFETY: takes a number and does not return.
    unsafe { libc::_exit(code) }
}

pub fn wait(who: Pid, flags: WaitFlags) -> Result<Option<(Pid, Status)>> {
    let options =
        if flags.no_hang { libc::WNOHANG } else { 0 } | if flags.stopped { libc::WUNTRACED } else { 0 };
    let mut status = 0;
    let pid = call!(libc::waitpid(who, &mut status, options))?;
    Ok((pid != 0).then_some((pid, Status(status))))
}

pub fn kill(who: Pid, signal: i32) -> Result<()> {
    call!(libc::kill(who, signal)).map(drop)
}

pub fn raise(signal: i32) -> Result<()> {
    // SAFETY: takes a number.
    match unsafe { libc::raise(signal) } {
        0 => Ok(()),
        _ => Err(last()),
    }
}

pub fn getpid() -> Pid {
    // SAFETY: takes nothing.
    unsafe { libc::getpid() }
}

pub fn getppid() -> Pid {
    // SAFETY: takes nothing.
    unsafe { libc::getppid() }
}

pub fn getpgid(pid: Pid) -> Result<Pid> {
    call!(libc::getpgid(pid))
}

pub fn setpgid(pid: Pid, group: Pid) -> Result<()> {
    call!(libc::setpgid(pid, group)).map(drop)
}

pub fn getsid(pid: Pid) -> Result<Pid> {
    call!(libc::getsid(pid))
}

pub fn setsid() -> Result<()> {
    call!(libc::setsid()).map(drop)
}

pub fn flock(fd: Fd, lock: Option<Lock>, wait: bool) -> Result<()> {
    let operation = match lock {
        None => libc::LOCK_UN,
        Some(Lock::Shared) => libc::LOCK_SH,
        Some(Lock::Exclusive) => libc::LOCK_EX,
    };
    call!(libc::flock(fd, operation | if wait { 0 } else { libc::LOCK_NB })).map(drop)
}

fn lock_words(lock: Option<Lock>, range: LockRange) -> libc::flock {
    let kind = match lock {
        None => libc::F_UNLCK,
        Some(Lock::Shared) => libc::F_RDLCK,
        Some(Lock::Exclusive) => libc::F_WRLCK,
    };
    let whence = libc::SEEK_SET as i16;
    libc::flock { l_type: kind as i16, l_whence: whence, l_start: range.start, l_len: range.length, l_pid: 0 }
}

pub fn lock(fd: Fd, lock: Option<Lock>, range: LockRange, wait: bool) -> Result<()> {
    let words = lock_words(lock, range);
    call!(libc::fcntl(fd, if wait { libc::F_SETLKW } else { libc::F_SETLK }, &words)).map(drop)
}

pub fn lock_in_the_way(fd: Fd, lock: Lock, range: LockRange) -> Result<Option<LockHeld>> {
    let mut words = lock_words(Some(lock), range);
    call!(libc::fcntl(fd, libc::F_GETLK, &mut words))?;
    let lock = match i32::from(words.l_type) {
        libc::F_UNLCK => return Ok(None),
        libc::F_WRLCK => Lock::Exclusive,
        _ => Lock::Shared,
    };
    let range = LockRange { start: words.l_start, length: words.l_len };
    Ok(Some(LockHeld { lock, pid: words.l_pid, range }))
}

/// Signals that arrived and were not taken yet.
static PENDING: AtomicU64 = AtomicU64::new(0);

extern "C" fn note(signal: c_int) {
    PENDING.fetch_or(1 << signal, Ordering::SeqCst);
}

pub fn sigaction(signal: i32, new: Option<Disposition>) -> Result<Disposition> {
    let note = note as extern "C" fn(c_int) as libc::sighandler_t;
    // SAFETY: an all-zero sigaction is a valid one.
    let (mut action, mut old): (libc::sigaction, libc::sigaction) = unsafe { std::mem::zeroed() };
    action.sa_sigaction = match new {
        Some(Disposition::Flag) => note,
        Some(Disposition::Ignore) => libc::SIG_IGN,
        _ => libc::SIG_DFL,
    };
    let pointer = if new.is_some() { &raw const action } else { std::ptr::null() };
    call!(libc::sigaction(signal, pointer, &mut old))?;
    Ok(match old.sa_sigaction {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignore,
        _ => Disposition::Flag,
    })
}

pub fn sigpending() -> u64 {
    PENDING.swap(0, Ordering::SeqCst)
}

pub fn alarm(nanos: i64) -> Result<i64> {
    let time = libc::timeval { tv_sec: nanos / 1_000_000_000, tv_usec: nanos % 1_000_000_000 / 1000 };
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let new = libc::itimerval { it_interval: zero, it_value: time };
    let mut old = new;
    call!(libc::setitimer(libc::ITIMER_REAL, &new, &mut old))?;
    Ok(nanoseconds(old.it_value))
}

fn nanoseconds(time: libc::timeval) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_usec * 1000
}

pub fn times() -> Times {
    let usage = |who| {
        // SAFETY: an all-zero rusage is a valid one.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        let _ = call!(libc::getrusage(who, &mut usage));
        (nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime))
    };
    let (user, system) = usage(libc::RUSAGE_SELF);
    let (child_user, child_system) = usage(libc::RUSAGE_CHILDREN);
    Times { user, system, child_user, child_system }
}

fn resource(which: Resource) -> libc::__rlimit_resource_t {
    match which {
        Resource::FileSize => libc::RLIMIT_FSIZE,
        Resource::Processes => libc::RLIMIT_NPROC,
        Resource::Descriptors => libc::RLIMIT_NOFILE,
        Resource::Memory => libc::RLIMIT_AS,
    }
}

pub fn getrlimit(which: Resource) -> Result<Limit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    call!(libc::getrlimit(resource(which), &mut limit))?;
    Ok(Limit { soft: limit.rlim_cur as i64, hard: limit.rlim_max as i64 })
}

pub fn setrlimit(which: Resource, limit: Limit) -> Result<()> {
    let limit = libc::rlimit { rlim_cur: limit.soft as u64, rlim_max: limit.hard as u64 };
    call!(libc::setrlimit(resource(which), &limit)).map(drop)
}

pub fn pipe(cloexec: bool) -> Result<Pipe> {
    let mut ends = [0; 2];
    call!(libc::pipe2(ends.as_mut_ptr(), if cloexec { libc::O_CLOEXEC } else { 0 }))?;
    Ok(Pipe { read: ends[0], write: ends[1] })
}

pub fn dup(fd: Fd, min: Fd, cloexec: bool) -> Result<Fd> {
    let command = if cloexec { libc::F_DUPFD_CLOEXEC } else { libc::F_DUPFD };
    call!(libc::fcntl(fd, command, min))
}

pub fn dup2(from: Fd, to: Fd, cloexec: bool) -> Result<()> {
    if from == to {
        return self::cloexec(from, Some(cloexec)).map(drop);
    }
    call!(libc::dup3(from, to, if cloexec { libc::O_CLOEXEC } else { 0 })).map(drop)
}

pub fn cloexec(fd: Fd, value: Option<bool>) -> Result<bool> {
    let old = call!(libc::fcntl(fd, libc::F_GETFD))?;
    if let Some(value) = value {
        call!(libc::fcntl(fd, libc::F_SETFD, if value { libc::FD_CLOEXEC } else { 0 }))?;
    }
    Ok(old & libc::FD_CLOEXEC != 0)
}

pub fn close(fd: Fd) -> Result<()> {
    call!(libc::close(fd)).map(drop)
}

pub fn isatty(fd: Fd) -> Result<()> {
    // SAFETY: takes a number.
    if unsafe { libc::isatty(fd) } == 1 { Ok(()) } else { Err(last()) }
}

pub fn winsize(fd: Fd) -> Result<(u16, u16)> {
    // SAFETY: an all-zero winsize is a valid one.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    call!(libc::ioctl(fd, libc::TIOCGWINSZ, &mut size))?;
    Ok((size.ws_row, size.ws_col))
}

pub fn set_winsize(fd: Fd, rows: u16, columns: u16) -> Result<()> {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    call!(libc::ioctl(fd, libc::TIOCSWINSZ, &size)).map(drop)
}

pub fn tcgetattr(fd: Fd) -> Result<TerminalMode> {
    // SAFETY: an all-zero termios is a valid one.
    let mut termios: libc::termios = unsafe { std::mem::zeroed() };
    call!(libc::tcgetattr(fd, &mut termios))?;
    let mut mode = TerminalMode {
        input: termios.c_iflag,
        output: termios.c_oflag,
        control: termios.c_cflag,
        local: termios.c_lflag,
        ..TerminalMode::default()
    };
    let known = mode.chars.len();
    mode.chars.copy_from_slice(&termios.c_cc[..known]);
    Ok(mode)
}

pub fn tcsetattr(fd: Fd, mode: &TerminalMode, flush: bool) -> Result<()> {
    // SAFETY: an all-zero termios is a valid one.
    let mut termios: libc::termios = unsafe { std::mem::zeroed() };
    // What the mode does not say, such as the speed, stays.
    call!(libc::tcgetattr(fd, &mut termios))?;
    termios.c_iflag = mode.input;
    termios.c_oflag = mode.output;
    termios.c_cflag = mode.control;
    termios.c_lflag = mode.local;
    termios.c_cc[..mode.chars.len()].copy_from_slice(&mode.chars);
    let when = if flush { libc::TCSAFLUSH } else { libc::TCSADRAIN };
    call!(libc::tcsetattr(fd, when, &termios)).map(drop)
}

pub fn tcgetpgrp(fd: Fd) -> Result<Pid> {
    call!(libc::tcgetpgrp(fd))
}

pub fn tcsetpgrp(fd: Fd, group: Pid) -> Result<()> {
    call!(libc::tcsetpgrp(fd, group)).map(drop)
}

pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize> {
    // SAFETY: the pointer and length are a live slice's.
    let n = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(n).map_err(|_| last())
}

pub fn write(fd: Fd, bytes: &[u8]) -> Result<usize> {
    // SAFETY: the pointer and length are a live slice's.
    let n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(n).map_err(|_| last())
}

pub fn pread(fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    // SAFETY: the pointer and length are a live slice's.
    let n = unsafe { libc::pread(fd, buffer.as_mut_ptr().cast(), buffer.len(), offset as i64) };
    usize::try_from(n).map_err(|_| last())
}

pub fn pwrite(fd: Fd, bytes: &[u8], offset: u64) -> Result<usize> {
    // SAFETY: the pointer and length are a live slice's.
    let n = unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), bytes.len(), offset as i64) };
    usize::try_from(n).map_err(|_| last())
}

pub fn seek(fd: Fd, offset: i64, whence: Whence) -> Result<u64> {
    // SAFETY: takes numbers.
    let position = unsafe { libc::lseek(fd, offset, whence as c_int) };
    u64::try_from(position).map_err(|_| last())
}

pub fn poll_read(fd: Fd, timeout: Option<Duration>) -> Result<bool> {
    poll(fd, libc::POLLIN, timeout)
}

pub fn poll_write(fd: Fd, timeout: Option<Duration>) -> Result<bool> {
    poll(fd, libc::POLLOUT, timeout)
}

fn poll(fd: Fd, events: i16, timeout: Option<Duration>) -> Result<bool> {
    let mut wanted = libc::pollfd { fd, events, revents: 0 };
    let millis = timeout.map_or(-1, |time| c_int::try_from(time.as_millis()).unwrap_or(c_int::MAX));
    let ready = call!(libc::poll(&mut wanted, 1, millis))?;
    if wanted.revents & libc::POLLNVAL != 0 { Err(Errno::BADF) } else { Ok(ready > 0) }
}

pub fn nonblocking(fd: Fd) -> Result<bool> {
    call!(libc::fcntl(fd, libc::F_GETFL)).map(|flags| flags & libc::O_NONBLOCK != 0)
}

pub fn set_nonblocking(fd: Fd, value: bool) -> Result<()> {
    let flags = call!(libc::fcntl(fd, libc::F_GETFL))? & !libc::O_NONBLOCK;
    let new = if value { flags | libc::O_NONBLOCK } else { flags };
    call!(libc::fcntl(fd, libc::F_SETFL, new)).map(drop)
}

pub fn truncate(fd: Fd, size: u64) -> Result<()> {
    call!(libc::ftruncate(fd, size as i64)).map(drop)
}

pub fn allocate(fd: Fd, offset: u64, len: u64) -> Result<()> {
    call!(libc::fallocate(fd, 0, offset as i64, len as i64)).map(drop)
}

pub fn sync(fd: Fd) -> Result<()> {
    call!(libc::fsync(fd)).map(drop)
}

fn stat_from(stat: &libc::stat) -> Stat {
    let nanos = |seconds: i64, nanos: i64| seconds.saturating_mul(1_000_000_000).saturating_add(nanos);
    Stat {
        dev: stat.st_dev,
        ino: stat.st_ino,
        size: stat.st_size as u64,
        blocks: stat.st_blocks as u64,
        rdev: stat.st_rdev,
        atime: nanos(stat.st_atime, stat.st_atime_nsec),
        mtime: nanos(stat.st_mtime, stat.st_mtime_nsec),
        ctime: nanos(stat.st_ctime, stat.st_ctime_nsec),
        mode: stat.st_mode,
        nlink: stat.st_nlink as u32,
        uid: stat.st_uid,
        gid: stat.st_gid,
        block_size: stat.st_blksize as u32,
        reserved: 0,
        version: stat.st_ctime_nsec as u64,
    }
}

fn no_follow(follow: bool) -> c_int {
    if follow { 0 } else { libc::AT_SYMLINK_NOFOLLOW }
}

pub fn stat(dir: Dir, path: &[u8], follow: bool) -> Result<Stat> {
    // SAFETY: an all-zero stat is a valid one.
    let mut out: libc::stat = unsafe { std::mem::zeroed() };
    let path = path_at(dir, path)?;
    call!(libc::fstatat(dirfd(dir), path.as_ptr(), &mut out, no_follow(follow)))?;
    Ok(stat_from(&out))
}

pub fn fstat(fd: Fd) -> Result<Stat> {
    // SAFETY: an all-zero stat is a valid one.
    let mut out: libc::stat = unsafe { std::mem::zeroed() };
    call!(libc::fstat(fd, &mut out))?;
    Ok(stat_from(&out))
}

pub fn chmod(dir: Dir, path: &[u8], follow: bool, mode: u32) -> Result<()> {
    let path = path_at(dir, path)?;
    call!(libc::fchmodat(dirfd(dir), path.as_ptr(), mode, no_follow(follow))).map(drop)
}

pub fn fchmod(fd: Fd, mode: u32) -> Result<()> {
    call!(libc::fchmod(fd, mode)).map(drop)
}

pub fn chown(dir: Dir, path: &[u8], follow: bool, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    let path = path_at(dir, path)?;
    let (uid, gid) = (uid.unwrap_or(u32::MAX), gid.unwrap_or(u32::MAX));
    call!(libc::fchownat(dirfd(dir), path.as_ptr(), uid, gid, no_follow(follow))).map(drop)
}

pub fn set_times(dir: Dir, path: &[u8], follow: bool, atime: Option<i64>, mtime: Option<i64>) -> Result<()> {
    let path = path_at(dir, path)?;
    let moment = |nanos: Option<i64>| match nanos {
        Some(nanos) => libc::timespec {
            tv_sec: nanos.div_euclid(1_000_000_000),
            tv_nsec: nanos.rem_euclid(1_000_000_000),
        },
        None => libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT },
    };
    let times = [moment(atime), moment(mtime)];
    call!(libc::utimensat(dirfd(dir), path.as_ptr(), times.as_ptr(), no_follow(follow))).map(drop)
}

pub fn access(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    let path = path_at(dir, path)?;
    call!(libc::faccessat(dirfd(dir), path.as_ptr(), mode as c_int, 0)).map(drop)
}

pub fn mkdir(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    let path = path_at(dir, path)?;
    call!(libc::mkdirat(dirfd(dir), path.as_ptr(), mode)).map(drop)
}

pub fn mkfifo(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    let path = path_at(dir, path)?;
    call!(libc::mkfifoat(dirfd(dir), path.as_ptr(), mode)).map(drop)
}

pub fn symlink(target: &[u8], dir: Dir, path: &[u8]) -> Result<()> {
    let (target, path) = (cstring(target)?, path_at(dir, path)?);
    call!(libc::symlinkat(target.as_ptr(), dirfd(dir), path.as_ptr())).map(drop)
}

pub fn readlink(dir: Dir, path: &[u8]) -> Result<Vec<u8>> {
    let path = path_at(dir, path)?;
    let mut target = vec![0; 4096];
    // SAFETY: the pointer and length are a live slice's.
    let n = unsafe { libc::readlinkat(dirfd(dir), path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
    target.truncate(usize::try_from(n).map_err(|_| last())?);
    Ok(target)
}

pub fn hard_link(from_dir: Dir, from: &[u8], to_dir: Dir, to: &[u8]) -> Result<()> {
    let (from, to) = (path_at(from_dir, from)?, path_at(to_dir, to)?);
    call!(libc::linkat(dirfd(from_dir), from.as_ptr(), dirfd(to_dir), to.as_ptr(), 0)).map(drop)
}

pub fn rename(from_dir: Dir, from: &[u8], to_dir: Dir, to: &[u8]) -> Result<()> {
    let (from, to) = (path_at(from_dir, from)?, path_at(to_dir, to)?);
    call!(libc::renameat(dirfd(from_dir), from.as_ptr(), dirfd(to_dir), to.as_ptr())).map(drop)
}

pub fn unlink(dir: Dir, path: &[u8]) -> Result<()> {
    let path = path_at(dir, path)?;
    call!(libc::unlinkat(dirfd(dir), path.as_ptr(), 0)).map(drop)
}

pub fn rmdir(dir: Dir, path: &[u8]) -> Result<()> {
    let path = path_at(dir, path)?;
    call!(libc::unlinkat(dirfd(dir), path.as_ptr(), libc::AT_REMOVEDIR)).map(drop)
}

pub fn open(dir: Dir, path: &[u8], flags: u32, mode: u32) -> Result<Fd> {
    let path = path_at(dir, path)?;
    call!(libc::openat(dirfd(dir), path.as_ptr(), flags as c_int, mode))
}

pub fn umask(mask: u32) -> u32 {
    // SAFETY: takes and answers a number.
    unsafe { libc::umask(mask) }
}

pub fn statfs(dir: Dir, path: &[u8]) -> Result<StatFs> {
    let path = path_at(dir, path)?;
    // SAFETY: an all-zero statfs is a valid one.
    let mut out: libc::statfs = unsafe { std::mem::zeroed() };
    call!(libc::statfs(path.as_ptr(), &mut out))?;
    Ok(StatFs {
        block_size: out.f_bsize as u64,
        blocks: out.f_blocks,
        free_blocks: out.f_bavail,
        files: out.f_files,
        free_files: out.f_ffree,
        name_length: out.f_namelen as u64,
    })
}

pub fn getcwd() -> Result<Vec<u8>> {
    Ok(std::env::current_dir()?.into_os_string().into_vec())
}

pub fn chdir(dir: Dir, path: &[u8]) -> Result<()> {
    if path.is_empty() && dir != Dir::CWD && dir != Dir::ROOT {
        return call!(libc::fchdir(dir.0)).map(drop);
    }
    let path = path_at(dir, if path.is_empty() { b"." } else { path })?;
    call!(libc::chdir(path.as_ptr())).map(drop)
}

pub fn args() -> Vec<Vec<u8>> {
    std::env::args_os().map(OsStringExt::into_vec).collect()
}

pub fn environ() -> Vec<Vec<u8>> {
    let pair = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        let mut pair = name.into_vec();
        pair.push(b'=');
        pair.extend(value.into_vec());
        pair
    };
    std::env::vars_os().map(pair).collect()
}

pub fn getuid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::getuid() }
}

pub fn getgid() -> u32 {
    // SAFETY: takes nothing.
    unsafe { libc::getgid() }
}

/// Nothing to construct: the loader did.
pub fn call_constructors() {}

/// Nothing to keep: libc's own path look-up is right here. But a program that is compiled without optimization needs
/// several times the stack: as much as Linux always leaves room for, where it may have it.
pub fn link() {
    const STACK: u64 = 120 << 20;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    let known = call!(libc::getrlimit(libc::RLIMIT_STACK, &mut limit)).is_ok();
    if known && limit.rlim_cur < STACK && limit.rlim_max >= STACK {
        limit.rlim_cur = STACK;
        let _ = call!(libc::setrlimit(libc::RLIMIT_STACK, &limit));
    }
}
