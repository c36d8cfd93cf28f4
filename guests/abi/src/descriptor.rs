//! Descriptors: pipes, copies, and reading and writing without a buffer.

use crate::{Result, sys};
use std::time::Duration;

/// A descriptor: an index into the process's table of open files.
pub type Fd = i32;

/// The two ends of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pipe {
    /// Where bytes come out.
    pub read: Fd,
    /// Where bytes go in.
    pub write: Fd,
}

/// Makes a pipe, with both ends marked close-on-exec if asked.
pub fn pipe(cloexec: bool) -> Result<Pipe> {
    sys::pipe(cloexec)
}

/// Copies a descriptor to the lowest free number not below `min`.
pub fn dup(fd: Fd, min: Fd, cloexec: bool) -> Result<Fd> {
    sys::dup(fd, min, cloexec)
}

/// Makes `to` a copy of `from`, closing what it was.
pub fn dup2(from: Fd, to: Fd, cloexec: bool) -> Result<()> {
    sys::dup2(from, to, cloexec)
}

/// Sets whether a new program loses the descriptor; answers what it was.
pub fn set_cloexec(fd: Fd, value: bool) -> Result<bool> {
    sys::cloexec(fd, Some(value))
}

/// Whether a new program loses the descriptor. `EBADF` when it is not open.
pub fn cloexec(fd: Fd) -> Result<bool> {
    sys::cloexec(fd, None)
}

/// Closes a descriptor.
pub fn close(fd: Fd) -> Result<()> {
    sys::close(fd)
}

/// Reads once, without a buffer; 0 is the end.
pub fn read(fd: Fd, buffer: &mut [u8]) -> Result<usize> {
    sys::read(fd, buffer)
}

/// Writes once, without a buffer; answers how much was taken.
pub fn write(fd: Fd, bytes: &[u8]) -> Result<usize> {
    sys::write(fd, bytes)
}

/// Writes all of it, going on after a short write.
pub fn write_all(fd: Fd, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match write(fd, bytes)? {
            0 => return Err(crate::Errno::IO),
            n => bytes = &bytes[n.min(bytes.len())..],
        }
    }
    Ok(())
}

/// Reads at a place in a file, leaving its position alone. `ESPIPE` on what has none.
pub fn pread(fd: Fd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    sys::pread(fd, buffer, offset)
}

/// Writes at a place in a file, leaving its position alone.
pub fn pwrite(fd: Fd, bytes: &[u8], offset: u64) -> Result<usize> {
    sys::pwrite(fd, bytes, offset)
}

/// From where a [`seek`] counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whence {
    /// The start of the file.
    Start,
    /// The current position.
    Current,
    /// The end of the file.
    End,
}

/// Moves the position in a file; answers the new one. `ESPIPE` on what has none.
pub fn seek(fd: Fd, offset: i64, whence: Whence) -> Result<u64> {
    sys::seek(fd, offset, whence)
}

/// Waits until a read would not wait, at most so long (`None`: for ever). Answers whether it came to that.
pub fn poll_read(fd: Fd, timeout: Option<Duration>) -> Result<bool> {
    sys::poll_read(fd, timeout)
}

/// Waits until a write would not wait, at most so long (`None`: for ever). Answers whether it came to that.
pub fn poll_write(fd: Fd, timeout: Option<Duration>) -> Result<bool> {
    sys::poll_write(fd, timeout)
}

/// Whether reads and writes answer `EAGAIN` where they would have to wait.
pub fn nonblocking(fd: Fd) -> Result<bool> {
    sys::nonblocking(fd)
}

/// Sets whether reads and writes answer `EAGAIN` where they would have to wait. Copies of the descriptor follow.
pub fn set_nonblocking(fd: Fd, value: bool) -> Result<()> {
    sys::set_nonblocking(fd, value)
}

/// Sets the size of an open file.
pub fn truncate(fd: Fd, size: u64) -> Result<()> {
    sys::truncate(fd, size)
}

/// Makes sure that a part of a file has its room, growing the file if it ends before.
pub fn allocate(fd: Fd, offset: u64, len: u64) -> Result<()> {
    sys::allocate(fd, offset, len)
}

/// Waits until what was written is safe. `EINVAL` on what keeps nothing.
pub fn sync(fd: Fd) -> Result<()> {
    sys::sync(fd)
}

/// Who shares a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lock {
    /// All who want to share it.
    Shared,
    /// Nobody.
    Exclusive,
}

/// Bytes of a file, to be locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockRange {
    /// Where they begin.
    pub start: i64,
    /// How many they are; 0 for all that follow.
    pub length: i64,
}

/// A lock that is in the way of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LockHeld {
    /// Its kind.
    pub lock: Lock,
    /// The process that holds it.
    pub pid: crate::Pid,
    /// What it holds.
    pub range: LockRange,
}

/// Locks a file as a whole for all copies of the descriptor, or unlocks it. Without `wait`, `EAGAIN` if it is locked.
pub fn flock(fd: Fd, lock: Option<Lock>, wait: bool) -> Result<()> {
    sys::flock(fd, lock, wait)
}

/// Locks bytes of a file for this process, or unlocks them. Without `wait`, `EAGAIN` if some are locked.
pub fn lock(fd: Fd, lock: Option<Lock>, range: LockRange, wait: bool) -> Result<()> {
    sys::lock(fd, lock, range, wait)
}

/// A lock of another process that keeps these bytes from being locked.
pub fn lock_in_the_way(fd: Fd, lock: Lock, range: LockRange) -> Result<Option<LockHeld>> {
    sys::lock_in_the_way(fd, lock, range)
}
