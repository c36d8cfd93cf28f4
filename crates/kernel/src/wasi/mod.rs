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
        EADDRINUSE => 3,
        EADDRNOTAVAIL => 4,
        EAFNOSUPPORT => 5,
        EAGAIN => 6,
        EALREADY => 7,
        EBADF => 8,
        EBUSY => 10,
        ECANCELED => 11,
        ECHILD => 12,
        ECONNABORTED => 13,
        ECONNREFUSED => 14,
        ECONNRESET => 15,
        EDEADLK => 16,
        EDESTADDRREQ => 17,
        EDOM => 18,
        EDQUOT => 19,
        EEXIST => 20,
        EFAULT => 21,
        EFBIG => 22,
        EHOSTUNREACH => 23,
        EINPROGRESS => 26,
        EINTR => 27,
        EINVAL => 28,
        EIO => 29,
        EISCONN => 30,
        EISDIR => 31,
        ELOOP => 32,
        EMFILE => 33,
        EMLINK => 34,
        EMSGSIZE => 35,
        ENAMETOOLONG => 37,
        ENETUNREACH => 40,
        ENFILE => 41,
        ENOBUFS => 42,
        ENODEV => 43,
        ENOENT => 44,
        ENOEXEC => 45,
        ENOLCK => 46,
        ENOMEM => 48,
        ENOPROTOOPT => 50,
        ENOSPC => 51,
        ENOSYS => 52,
        ENOTCONN => 53,
        ENOTDIR => 54,
        ENOTEMPTY => 55,
        ENOTSOCK => 57,
        ENOTSUP => 58,
        ENOTTY => 59,
        ENXIO => 60,
        EOVERFLOW => 61,
        EPERM => 63,
        EPIPE => 64,
        EPROTONOSUPPORT => 66,
        EPROTOTYPE => 67,
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
