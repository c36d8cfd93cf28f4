//! What can go wrong with a store.

use crate::Hash;

/// An error of the store. Nothing that was committed before is lost by any of them.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing has this name.
    #[error("{0}: no such name in the store")]
    Missing(String),
    /// Something already has this name.
    #[error("{0}: already in the store")]
    Exists(String),
    /// A name that cannot be one.
    #[error("{0:?} is not a name: use letters, digits, '.', '-' and '_', at most one '/' and 200 characters")]
    Name(String),
    /// Another process, or another handle of this one, has it open.
    #[error("{name} is in use by {holder}")]
    Busy {
        /// The name.
        name: String,
        /// Who has it.
        holder: String,
    },
    /// The lease was lost: it expired, and somebody else took it.
    #[error("{0} was taken over by somebody else: its lease had expired")]
    Lost(String),
    /// The head is not the expected commit.
    #[error("{0} has changed meanwhile: it is at another commit")]
    Conflict(String),
    /// An object is damaged or missing.
    #[error("damaged object {hash}: {why}")]
    Damaged {
        /// Its name.
        hash: Hash,
        /// What is wrong with it.
        why: String,
    },
    /// Something that was read is not what it should be.
    #[error("damaged: {0}")]
    Malformed(String),
    /// The disk is full.
    #[error("the store's disk is full; what was committed before is still there")]
    Full,
    /// The directory cannot be written.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// The store was written by another version.
    #[error("a store of format {found}; this version reads format {known}")]
    Version {
        /// Its format.
        found: i64,
        /// The format that this version knows.
        known: i64,
    },
    /// The key is missing, or not the one.
    #[error("{0}")]
    Key(String),
    /// What should name an object store does not, or names one that cannot be used.
    #[error("{url}: {why}")]
    Url {
        /// What was given.
        url: String,
        /// What is wrong with it.
        why: String,
    },
    /// The object store did not do what was asked of it. What was committed on this machine is still there.
    #[error("the object store {url}: {why}")]
    Remote {
        /// Its URL.
        url: String,
        /// What went wrong, and what to do.
        why: String,
    },
    /// Somebody on another machine has moved the head meanwhile.
    #[error("{name} was taken over by {holder}{}", kept_as(.aside.as_deref()))]
    Elsewhere {
        /// The name.
        name: String,
        /// Who has it.
        holder: String,
        /// The name that the commits have got that were not uploaded.
        aside: Option<String>,
    },
    /// Commits are not uploaded yet.
    #[error("{commits} commits wait to be uploaded to {url}: {why}")]
    Behind {
        /// The object store's URL.
        url: String,
        /// How many.
        commits: u64,
        /// Why they wait.
        why: String,
    },
    /// A file of the store could not be read or written.
    #[error("store: {0}")]
    Io(String),
    /// The database could not do its work.
    #[error("the store's index: {0}")]
    Index(String),
}

fn kept_as(aside: Option<&str>) -> String {
    aside.map_or(String::new(), |aside| format!("; the commits that were not uploaded are kept as {aside}"))
}

impl From<std::io::Error> for StoreError {
    fn from(error: std::io::Error) -> StoreError {
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => StoreError::Full,
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                StoreError::ReadOnly(error.to_string())
            }
            _ => StoreError::Io(error.to_string()),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> StoreError {
        use rusqlite::ErrorCode;
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => StoreError::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                StoreError::ReadOnly(error.to_string())
            }
            _ => StoreError::Index(error.to_string()),
        }
    }
}
