//! A file's metadata.

use std::time::{SystemTime, UNIX_EPOCH};

/// The kinds of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A named pipe. The tree keeps its name and inode; whatever runs processes makes it carry bytes.
    Fifo,
    /// One of the character devices of `/dev`.
    Device(Device),
    /// A socket: never created here, but a host directory may have one.
    Socket,
}

/// The character devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// `/dev/null`: accepts everything, reads as empty.
    Null,
    /// `/dev/zero`: accepts everything, reads as zeros.
    Zero,
    /// `/dev/full`: reads as zeros; every write returns `ENOSPC`.
    Full,
    /// `/dev/random`: reads as random bytes.
    Random,
    /// `/dev/urandom`: reads as random bytes.
    Urandom,
    /// `/dev/tty`: the process's terminal, which only the code that runs the process knows; here it is `ENXIO`.
    Tty,
}

impl Device {
    /// Returns Linux's number for the device, as `st_rdev` shows it.
    pub fn rdev(self) -> u64 {
        let (major, minor) = match self {
            Device::Null => (1, 3),
            Device::Zero => (1, 5),
            Device::Full => (1, 7),
            Device::Random => (1, 8),
            Device::Urandom => (1, 9),
            Device::Tty => (5, 0),
        };
        major << 8 | minor
    }
}

/// A file's metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The file system: the tree itself, or one of its mounts.
    pub dev: u64,
    /// Inode number, unique within `dev`.
    pub ino: u64,
    /// The kind of file.
    pub kind: FileKind,
    /// Permission bits with set-user-id, set-group-id and sticky, without the type bits.
    pub mode: u32,
    /// Number of hard links.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Length in bytes.
    pub size: u64,
    /// Blocks of 512 bytes in use: fewer than `size` needs if the file has holes.
    pub blocks: u64,
    /// The device, if it is one.
    pub rdev: u64,
    /// Last access, in nanoseconds since 1970. Reading does not change it (as with `noatime`).
    pub atime: i64,
    /// Last change of content, in nanoseconds since 1970.
    pub mtime: i64,
    /// Last change of content or metadata, in nanoseconds since 1970.
    pub ctime: i64,
    /// Identifies a regular file's content: unique in this process across all trees, new with every change. Zero if the
    /// tree does not own the content (host files, devices, `/proc`).
    pub version: u64,
}

/// A time for [`Tree::utimes`](crate::Tree::utimes) to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// Does not change it.
    Keep,
    /// Sets the current time.
    Now,
    /// Sets this time, in nanoseconds since 1970.
    At(i64),
}

impl SetTime {
    pub(crate) fn apply(self, time: &mut i64, now: i64) {
        match self {
            SetTime::Keep => {}
            SetTime::Now => *time = now,
            SetTime::At(given) => *time = given,
        }
    }
}

/// In the order of their numbers in records.
const DEVICES: [Device; 6] =
    [Device::Null, Device::Zero, Device::Full, Device::Random, Device::Urandom, Device::Tty];

impl Device {
    pub(crate) fn number(self) -> u64 {
        DEVICES.iter().position(|device| *device == self).unwrap_or(0) as u64
    }

    pub(crate) fn of(number: u64) -> Option<Device> {
        DEVICES.get(usize::try_from(number).ok()?).copied()
    }
}

impl FileKind {
    pub(crate) fn number(self) -> u64 {
        match self {
            FileKind::File => 0,
            FileKind::Dir => 1,
            FileKind::Symlink => 2,
            FileKind::Fifo => 3,
            FileKind::Socket => 4,
            FileKind::Device(device) => 5 + device.number(),
        }
    }

    pub(crate) fn of(number: u64) -> Option<FileKind> {
        Some(match number {
            0 => FileKind::File,
            1 => FileKind::Dir,
            2 => FileKind::Symlink,
            3 => FileKind::Fifo,
            4 => FileKind::Socket,
            number => FileKind::Device(Device::of(number - 5)?),
        })
    }
}

/// Returns the current time, in nanoseconds since 1970.
pub(crate) fn now() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_nanos()).unwrap_or(i64::MAX),
    }
}
