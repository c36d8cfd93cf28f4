//! What can go wrong outside a guest.

use wardian_audit::AuditError;
use wardian_kernel::KernelError;
use wardian_vfs::Errno;

use crate::archive::ArchiveError;

/// An error of the library. What a script does wrong is not among them: that is in its
/// [`RunResult`](crate::RunResult).
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
    /// An option of the protocol that this version does not have.
    #[error("not supported yet: {0}")]
    Unsupported(&'static str),
    /// The sandbox was destroyed.
    #[error("the sandbox was destroyed")]
    Destroyed,
    /// An archive was not taken, or not written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The audit log could not be written, so nothing was done that ought to be in it.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The blocking interface was used inside an asynchronous runtime, which it would stall.
    #[error("wardian::blocking was called inside an asynchronous runtime: use wardian::Sandbox there")]
    InsideRuntime,
    /// The run was lost to a fault of ours; the sandbox can be used again.
    #[error("the run was lost: {0}")]
    Lost(String),
}

impl Error {
    pub(crate) fn refused(errno: Errno, path: &[u8]) -> Error {
        Error::Refused { errno, path: String::from_utf8_lossy(path).into_owned() }
    }

    /// The errno, where the sandbox itself said no.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Error::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// A task of ours ended without an answer.
pub(crate) fn lost(error: tokio::task::JoinError) -> Error {
    Error::Lost(error.to_string())
}
