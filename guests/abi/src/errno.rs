//! Error numbers: WASI's, on both backends.

use std::fmt;

/// Why a system call failed. The number is WASI's, also on the native backend.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Errno(pub u16);

/// One line per error: name, WASI's number, Linux's number, and the words of `strerror`.
macro_rules! errnos {
    ($($name:ident $wasi:literal $linux:literal $text:literal)*) => {
        impl Errno {
            $(#[doc = $text] pub const $name: Errno = Errno($wasi);)*

            /// The words `strerror` has for it, as shells print them.
            pub fn message(self) -> &'static str {
                match self.0 { $($wasi => $text,)* _ => "Unknown error" }
            }

            /// The error with this Linux number; an unknown one becomes `EIO`.
            pub fn from_linux(number: i32) -> Errno {
                #[allow(unreachable_patterns, reason = "EPERM and ENOTCAPABLE share a number on Linux")]
                match number { $($linux => Errno($wasi),)* _ => Errno::IO }
            }

            /// Linux's number for it.
            pub fn to_linux(self) -> i32 {
                match self.0 { $($wasi => $linux,)* _ => 5 }
            }
        }
    };
}

errnos! {
    TOOBIG 1 7 "Argument list too long"
    ACCES 2 13 "Permission denied"
    ADDRINUSE 3 98 "Address already in use"
    ADDRNOTAVAIL 4 99 "Cannot assign requested address"
    AFNOSUPPORT 5 97 "Address family not supported by protocol"
    AGAIN 6 11 "Resource temporarily unavailable"
    ALREADY 7 114 "Operation already in progress"
    BADF 8 9 "Bad file descriptor"
    BUSY 10 16 "Device or resource busy"
    CHILD 12 10 "No child processes"
    CONNABORTED 13 103 "Software caused connection abort"
    CONNREFUSED 14 111 "Connection refused"
    CONNRESET 15 104 "Connection reset by peer"
    DEADLK 16 35 "Resource deadlock avoided"
    DESTADDRREQ 17 89 "Destination address required"
    DOM 18 33 "Numerical argument out of domain"
    DQUOT 19 122 "Disk quota exceeded"
    EXIST 20 17 "File exists"
    FAULT 21 14 "Bad address"
    FBIG 22 27 "File too large"
    HOSTUNREACH 23 113 "No route to host"
    ILSEQ 25 84 "Invalid or incomplete multibyte or wide character"
    INPROGRESS 26 115 "Operation now in progress"
    INTR 27 4 "Interrupted system call"
    INVAL 28 22 "Invalid argument"
    IO 29 5 "Input/output error"
    ISCONN 30 106 "Transport endpoint is already connected"
    ISDIR 31 21 "Is a directory"
    LOOP 32 40 "Too many levels of symbolic links"
    MFILE 33 24 "Too many open files"
    MLINK 34 31 "Too many links"
    MSGSIZE 35 90 "Message too long"
    NAMETOOLONG 37 36 "File name too long"
    NETUNREACH 40 101 "Network is unreachable"
    NFILE 41 23 "Too many open files in system"
    NOBUFS 42 105 "No buffer space available"
    NODEV 43 19 "No such device"
    NOENT 44 2 "No such file or directory"
    NOEXEC 45 8 "Exec format error"
    NOLCK 46 37 "No locks available"
    NOMEM 48 12 "Cannot allocate memory"
    NOPROTOOPT 50 92 "Protocol not available"
    NOSPC 51 28 "No space left on device"
    NOSYS 52 38 "Function not implemented"
    NOTCONN 53 107 "Transport endpoint is not connected"
    NOTDIR 54 20 "Not a directory"
    NOTEMPTY 55 39 "Directory not empty"
    NOTSOCK 57 88 "Socket operation on non-socket"
    NOTSUP 58 95 "Operation not supported"
    NOTTY 59 25 "Inappropriate ioctl for device"
    NXIO 60 6 "No such device or address"
    OVERFLOW 61 75 "Value too large for defined data type"
    PERM 63 1 "Operation not permitted"
    PIPE 64 32 "Broken pipe"
    PROTONOSUPPORT 66 93 "Protocol not supported"
    PROTOTYPE 67 91 "Protocol wrong type for socket"
    RANGE 68 34 "Numerical result out of range"
    ROFS 69 30 "Read-only file system"
    SPIPE 70 29 "Illegal seek"
    SRCH 71 3 "No such process"
    TIMEDOUT 73 110 "Connection timed out"
    TXTBSY 74 26 "Text file busy"
    XDEV 75 18 "Invalid cross-device link"
    NOTCAPABLE 76 1 "Operation not permitted"
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Errno {}

impl From<Errno> for std::io::Error {
    fn from(errno: Errno) -> Self {
        let number = if cfg!(target_os = "wasi") { i32::from(errno.0) } else { errno.to_linux() };
        std::io::Error::from_raw_os_error(number)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Self {
        match error.raw_os_error() {
            Some(number) if cfg!(target_os = "wasi") => Errno(u16::try_from(number).unwrap_or(Errno::IO.0)),
            Some(number) => Errno::from_linux(number),
            None => Errno::IO,
        }
    }
}
