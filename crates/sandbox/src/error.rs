//! The errors of the library.

use wardian_audit::AuditError;
use wardian_kernel::KernelError;
use wardian_store::StoreError;
use wardian_vfs::Errno;

use crate::archive::ArchiveError;

/// An error of the library. A failing script is not an error: see [`RunResult`](crate::RunResult).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine could not start or prepare its programs.
    #[error("{0}")]
    Engine(String),
    /// Two values that do not belong to the same engine cannot be used together.
    #[error("the {0} belongs to another engine")]
    OtherEngine(&'static str),
    /// An operation in the sandbox failed.
    #[error("{}: {}: {path}", .errno.name(), .errno)]
    Refused {
        /// Which errno.
        errno: Errno,
        /// What it was about.
        path: String,
    },
    /// An option is invalid.
    #[error("{0}")]
    Option(String),
    /// This version does not support an option.
    #[error("not supported yet: {0}")]
    Unsupported(&'static str),
    /// The sandbox was destroyed.
    #[error("the sandbox was destroyed")]
    Destroyed,
    /// An archive could not be imported or written.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store refused, or what it has could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The audit log could not be written, so nothing was done that should be in it.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The blocking API was used inside an async runtime, which it would stall.
    #[error("wardian::blocking was called inside an asynchronous runtime: use wardian::Sandbox there")]
    InsideRuntime,
    /// An internal error lost the run; the sandbox is still usable.
    #[error("the run was lost: {0}")]
    Lost(String),
}

impl Error {
    pub(crate) fn refused(errno: Errno, path: &[u8]) -> Error {
        Error::Refused { errno, path: String::from_utf8_lossy(path).into_owned() }
    }

    /// Returns the error for a path where there is no space, because of a limit of the sandbox.
    pub(crate) fn limit_reached(path: &[u8], limit: &str, value: u64) -> Error {
        let reached = format!(": {limit} limit of {value} reached");
        Error::refused(Errno::ENOSPC, &[path, reached.as_bytes()].concat())
    }

    /// Returns the errno, if an operation in the sandbox failed.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            Error::Refused { errno, .. } => Some(*errno),
            _ => None,
        }
    }
}

/// The engine could not start. Not a `From`: that would make the kernel's error part of the interface.
pub(crate) fn engine(error: KernelError) -> Error {
    Error::Engine(error.to_string())
}

/// An internal task ended without a result.
pub(crate) fn lost(error: tokio::task::JoinError) -> Error {
    Error::Lost(error.to_string())
}
