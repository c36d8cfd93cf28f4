//! The errors of file operations, as Unix errnos.

use std::fmt;

/// The result of every file operation.
pub type Result<T> = std::result::Result<T, Errno>;

macro_rules! errnos {
    ($($name:ident = $number:literal, $text:literal;)*) => {
        /// An error number, as in `errno.h`. The upper-case names are those of every Unix manual.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
        #[allow(clippy::upper_case_acronyms)]
        pub enum Errno {
            $(#[doc = $text] $name,)*
        }

        impl Errno {
            /// Returns the symbolic name: `"ENOENT"`.
            pub fn name(self) -> &'static str {
                match self { $(Errno::$name => stringify!($name),)* }
            }

            /// Returns Linux's number for it.
            pub fn raw(self) -> i32 {
                match self { $(Errno::$name => $number,)* }
            }

            /// Returns the error with this Linux number; an unknown one becomes `EIO`.
            pub fn from_raw(linux: i32) -> Errno {
                match linux { $($number => Errno::$name,)* _ => Errno::EIO }
            }

            fn text(self) -> &'static str {
                match self { $(Errno::$name => $text,)* }
            }
        }
    };
}

errnos! {
    EPERM = 1, "operation not permitted";
    ENOENT = 2, "no such file or directory";
    ESRCH = 3, "no such process";
    EINTR = 4, "interrupted system call";
    EIO = 5, "input/output error";
    ENXIO = 6, "no such device or address";
    E2BIG = 7, "argument list too long";
    ENOEXEC = 8, "exec format error";
    EBADF = 9, "bad file descriptor";
    ECHILD = 10, "no child processes";
    EAGAIN = 11, "resource temporarily unavailable";
    ENOMEM = 12, "cannot allocate memory";
    EACCES = 13, "permission denied";
    EFAULT = 14, "bad address";
    EBUSY = 16, "device or resource busy";
    EEXIST = 17, "file exists";
    EXDEV = 18, "invalid cross-device link";
    ENODEV = 19, "no such device";
    ENOTDIR = 20, "not a directory";
    EISDIR = 21, "is a directory";
    EINVAL = 22, "invalid argument";
    ENFILE = 23, "too many open files in system";
    EMFILE = 24, "too many open files";
    ENOTTY = 25, "inappropriate ioctl for device";
    ETXTBSY = 26, "text file busy";
    EFBIG = 27, "file too large";
    ENOSPC = 28, "no space left on device";
    ESPIPE = 29, "illegal seek";
    EROFS = 30, "read-only file system";
    EMLINK = 31, "too many links";
    EPIPE = 32, "broken pipe";
    EDOM = 33, "numerical argument out of domain";
    ERANGE = 34, "numerical result out of range";
    EDEADLK = 35, "resource deadlock avoided";
    ENAMETOOLONG = 36, "file name too long";
    ENOSYS = 38, "function not implemented";
    ENOLCK = 37, "no locks available";
    ENOTEMPTY = 39, "directory not empty";
    ELOOP = 40, "too many levels of symbolic links";
    EOVERFLOW = 75, "value too large for defined data type";
    ENOTSOCK = 88, "socket operation on non-socket";
    EDESTADDRREQ = 89, "destination address required";
    EMSGSIZE = 90, "message too long";
    EPROTOTYPE = 91, "protocol wrong type for socket";
    ENOPROTOOPT = 92, "protocol not available";
    EPROTONOSUPPORT = 93, "protocol not supported";
    ENOTSUP = 95, "operation not supported";
    EAFNOSUPPORT = 97, "address family not supported by protocol";
    EADDRINUSE = 98, "address already in use";
    EADDRNOTAVAIL = 99, "cannot assign requested address";
    ENETUNREACH = 101, "network is unreachable";
    ECONNABORTED = 103, "software caused connection abort";
    ECONNRESET = 104, "connection reset by peer";
    ENOBUFS = 105, "no buffer space available";
    EISCONN = 106, "transport endpoint is already connected";
    ENOTCONN = 107, "transport endpoint is not connected";
    ETIMEDOUT = 110, "connection timed out";
    ECONNREFUSED = 111, "connection refused";
    EHOSTUNREACH = 113, "no route to host";
    EALREADY = 114, "operation already in progress";
    EINPROGRESS = 115, "operation now in progress";
    ESTALE = 116, "stale file handle";
    EDQUOT = 122, "disk quota exceeded";
    ECANCELED = 125, "operation canceled";
    // Linux has no such error; WASI does. The number is out of Linux's way.
    ENOTCAPABLE = 1076, "capabilities insufficient";
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl std::error::Error for Errno {}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        match error.raw_os_error() {
            Some(raw) => Errno::from_raw(raw),
            // What cap-std answers when a path would have left its directory.
            None if error.kind() == std::io::ErrorKind::PermissionDenied => Errno::EACCES,
            None => Errno::EIO,
        }
    }
}

impl From<rustix::io::Errno> for Errno {
    fn from(error: rustix::io::Errno) -> Errno {
        Errno::from_raw(error.raw_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_are_the_systems_own() {
        for raw in 1..=133 {
            let errno = Errno::from_raw(raw);
            if errno == Errno::EIO && raw != 5 {
                continue;
            }
            assert_eq!(errno.raw(), raw);
            let theirs = std::io::Error::from_raw_os_error(raw).to_string().to_lowercase();
            assert!(theirs.starts_with(errno.text()), "{theirs} / {errno}");
        }
    }
}
