//! What can go wrong outside a guest.

use wardian_kernel::KernelError;
use wardian_vfs::Errno;

/// An error of the library.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel could not start or prepare its programs.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// The sandbox said no.
    #[error("{}: {}: {path}", .errno.name(), .errno)]
    Refused {
        /// Which errno.
        errno: Errno,
        /// What it was about.
        path: String,
    },
    /// An option does not make sense.
    #[error("{0}")]
    Option(String),
    /// The run was lost to a fault of ours; the sandbox can be used again.
    #[error("the run was lost: {0}")]
    Lost(String),
}

impl Error {
    pub(crate) fn refused(errno: Errno, path: &[u8]) -> Error {
        Error::Refused { errno, path: String::from_utf8_lossy(path).into_owned() }
    }
}
