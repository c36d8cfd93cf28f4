//! WASI preview 1, over the kernel's descriptors.

mod fd;
mod path;
mod poll;
mod process;

use wardian_vfs::{Errno, FileKind};

use crate::imports::Imports;

const MODULE: &str = "wasi_snapshot_preview1";

/// Defines every function.
pub(crate) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    process::add_to_linker(imports)?;
    fd::add_to_linker(imports)?;
    path::add_to_linker(imports)?;
    poll::add_to_linker(imports)
}

/// WASI's number of an errno.
pub(crate) fn errno_number(errno: Errno) -> u16 {
    use Errno::*;
    match errno {
        E2BIG => 1,
        EACCES => 2,
        EAGAIN => 6,
        EBADF => 8,
        EBUSY => 10,
        ECANCELED => 11,
        ECHILD => 12,
        EDOM => 18,
        EDQUOT => 19,
        EEXIST => 20,
        EFAULT => 21,
        EFBIG => 22,
        EINTR => 27,
        EINVAL => 28,
        EIO => 29,
        EISDIR => 31,
        ELOOP => 32,
        EMFILE => 33,
        EMLINK => 34,
        ENAMETOOLONG => 37,
        ENFILE => 41,
        ENODEV => 43,
        ENOENT => 44,
        ENOEXEC => 45,
        ENOMEM => 48,
        ENOSPC => 51,
        ENOSYS => 52,
        ENOTDIR => 54,
        ENOTEMPTY => 55,
        ENOTSUP => 58,
        ENOTTY => 59,
        ENXIO => 60,
        EOVERFLOW => 61,
        EPERM => 63,
        EPIPE => 64,
        ERANGE => 68,
        EROFS => 69,
        ESPIPE => 70,
        ESRCH => 71,
        ESTALE => 72,
        ETIMEDOUT => 73,
        ETXTBSY => 74,
        EXDEV => 75,
        ENOTCAPABLE => 76,
    }
}

/// WASI's number of a kind of file; a pipe has none.
fn filetype(kind: FileKind) -> u8 {
    match kind {
        FileKind::Device(_) => 2,
        FileKind::Dir => 3,
        FileKind::File => 4,
        FileKind::Symlink => 7,
        FileKind::Socket => 6,
        FileKind::Fifo => 0,
    }
}
