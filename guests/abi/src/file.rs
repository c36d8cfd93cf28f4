//! Files and the place a process is at.

use crate::{Fd, Result, sys};

/// The directory a relative path starts from: a descriptor, or [`Dir::ROOT`] or [`Dir::CWD`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dir(pub Fd);

impl Dir {
    /// The root directory.
    pub const ROOT: Dir = Dir(0x7fff_ff00);
    /// The process's working directory.
    pub const CWD: Dir = Dir(0x7fff_ff01);
}

/// What `stat` tells of a file.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct Stat {
    pub dev: u64,
    pub ino: u64,
    pub size: u64,
    /// Blocks of 512 bytes.
    pub blocks: u64,
    pub rdev: u64,
    /// Nanoseconds since 1970, like the other two.
    pub atime: i64,
    pub mtime: i64,
    pub ctime: i64,
    /// Permission bits and the type bits of Linux (`S_IFMT`).
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub block_size: u32,
    pub reserved: u32,
    /// Changes with every change of the contents.
    pub version: u64,
}

#[allow(missing_docs)]
impl Stat {
    /// The type bits alone.
    pub fn kind(&self) -> u32 {
        self.mode & 0o170_000
    }
    pub fn is_dir(&self) -> bool {
        self.kind() == 0o040_000
    }
    pub fn is_file(&self) -> bool {
        self.kind() == 0o100_000
    }
    pub fn is_symlink(&self) -> bool {
        self.kind() == 0o120_000
    }
    pub fn is_fifo(&self) -> bool {
        self.kind() == 0o010_000
    }
    pub fn is_socket(&self) -> bool {
        self.kind() == 0o140_000
    }
    pub fn is_char(&self) -> bool {
        self.kind() == 0o020_000
    }
    pub fn is_block(&self) -> bool {
        self.kind() == 0o060_000
    }
}

/// Describes the file at a path; `follow` says whether a final symbolic link is looked through.
pub fn stat(dir: Dir, path: &[u8], follow: bool) -> Result<Stat> {
    sys::stat(dir, path, follow)
}

/// Describes an open file.
pub fn fstat(fd: Fd) -> Result<Stat> {
    sys::fstat(fd)
}

/// Sets permission bits.
pub fn chmod(dir: Dir, path: &[u8], follow: bool, mode: u32) -> Result<()> {
    sys::chmod(dir, path, follow, mode)
}

/// Sets the permission bits of an open file.
pub fn fchmod(fd: Fd, mode: u32) -> Result<()> {
    sys::fchmod(fd, mode)
}

/// Sets owner and group; `None` leaves one as it is.
pub fn chown(dir: Dir, path: &[u8], follow: bool, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
    sys::chown(dir, path, follow, uid, gid)
}

/// Sets the times of last access and change, in nanoseconds since 1970; `None` leaves one as it is.
pub fn set_times(dir: Dir, path: &[u8], follow: bool, atime: Option<i64>, mtime: Option<i64>) -> Result<()> {
    sys::set_times(dir, path, follow, atime, mtime)
}

/// Whether the process may do something with a file: bits 4 read, 2 write, 1 execute; 0 asks if it exists.
pub fn access(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    sys::access(dir, path, mode)
}

/// Makes a directory.
pub fn mkdir(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    sys::mkdir(dir, path, mode)
}

/// Makes a named pipe.
pub fn mkfifo(dir: Dir, path: &[u8], mode: u32) -> Result<()> {
    sys::mkfifo(dir, path, mode)
}

/// Makes a symbolic link at `path` that says `target`.
pub fn symlink(target: &[u8], dir: Dir, path: &[u8]) -> Result<()> {
    sys::symlink(target, dir, path)
}

/// What a symbolic link says.
pub fn readlink(dir: Dir, path: &[u8]) -> Result<Vec<u8>> {
    sys::readlink(dir, path)
}

/// Gives a file another name. A symbolic link is linked itself.
pub fn hard_link(from_dir: Dir, from: &[u8], to_dir: Dir, to: &[u8]) -> Result<()> {
    sys::hard_link(from_dir, from, to_dir, to)
}

/// Renames a file, replacing what has the new name.
pub fn rename(from_dir: Dir, from: &[u8], to_dir: Dir, to: &[u8]) -> Result<()> {
    sys::rename(from_dir, from, to_dir, to)
}

/// Removes a name of a file.
pub fn unlink(dir: Dir, path: &[u8]) -> Result<()> {
    sys::unlink(dir, path)
}

/// Removes an empty directory.
pub fn rmdir(dir: Dir, path: &[u8]) -> Result<()> {
    sys::rmdir(dir, path)
}

/// Linux's flags for [`open`].
#[allow(missing_docs)]
pub mod open_flags {
    pub const RDONLY: u32 = 0;
    pub const WRONLY: u32 = 1;
    pub const RDWR: u32 = 2;
    pub const CREAT: u32 = 0o100;
    pub const EXCL: u32 = 0o200;
    pub const TRUNC: u32 = 0o1000;
    pub const APPEND: u32 = 0o2000;
    pub const NONBLOCK: u32 = 0o4000;
    pub const DIRECTORY: u32 = 0o200_000;
    pub const NOFOLLOW: u32 = 0o400_000;
    pub const CLOEXEC: u32 = 0o2_000_000;
}

/// Opens a file with the flags of [`open_flags`]; `mode` counts when it is made.
pub fn open(dir: Dir, path: &[u8], flags: u32, mode: u32) -> Result<Fd> {
    sys::open(dir, path, flags, mode)
}

/// Sets the permission bits that new files do not get; answers the old ones.
pub fn umask(mask: u32) -> u32 {
    sys::umask(mask)
}

/// What `statfs` tells of a file system.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[repr(C)]
#[allow(missing_docs)]
pub struct StatFs {
    pub block_size: u64,
    pub blocks: u64,
    pub free_blocks: u64,
    pub files: u64,
    pub free_files: u64,
    pub name_length: u64,
}

/// Describes the file system a path is on.
pub fn statfs(dir: Dir, path: &[u8]) -> Result<StatFs> {
    sys::statfs(dir, path)
}

/// The working directory. `ENOENT` when it was removed.
pub fn getcwd() -> Result<Vec<u8>> {
    sys::getcwd()
}

/// Moves the process to another directory; an empty path means `dir` itself.
pub fn chdir(dir: Dir, path: &[u8]) -> Result<()> {
    sys::chdir(dir, path)
}
