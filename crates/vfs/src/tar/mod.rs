//! Exporting and importing files as tar archives.
//!
//! Both common dialects, GNU and POSIX pax, are read and written, including sparse files. Archives come from anywhere,
//! so the reader trusts nothing: an archive that is damaged, that names anything outside the directory it is unpacked
//! in, or that does not fit the quota is an error, and nothing of it is imported.
//!
//! ```text
//! ┌────────┬────────┬──────────────────┬────────┬ ─ ─ ─ ┬──────────┐
//! │ header │ header │ content, padded  │ header │       │ 2 x 512  │
//! │ of d/  │ of d/f │ to 512 bytes     │ of d/g │       │ of zeros │
//! └────────┴────────┴──────────────────┴────────┴ ─ ─ ─ ┴──────────┘
//! ```

mod export;
mod header;
mod import;
mod read;

pub use export::{TarFormat, TarOptions};
pub use import::Imported;

use crate::Errno;
use std::fmt;

/// Why an archive could not be imported or written.
#[derive(Debug)]
pub enum TarError {
    /// Reading or writing the archive failed.
    Io(std::io::Error),
    /// It is not a tar archive, or is incomplete. The text says what is wrong.
    Damaged(String),
    /// An entry that is not allowed: a name outside the directory, a device, a link to elsewhere.
    Refused {
        /// The entry's name.
        name: Vec<u8>,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The tree rejected an entry, for example for lack of space.
    File {
        /// The entry's name.
        name: Vec<u8>,
        /// The tree's error.
        errno: Errno,
    },
}

impl fmt::Display for TarError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TarError::Io(error) => write!(f, "archive: {error}"),
            TarError::Damaged(what) => write!(f, "damaged archive: {what}"),
            TarError::Refused { name, why } => write!(f, "{}: {why}", String::from_utf8_lossy(name)),
            TarError::File { name, errno } => write!(f, "{}: {errno}", String::from_utf8_lossy(name)),
        }
    }
}

impl std::error::Error for TarError {}

impl From<std::io::Error> for TarError {
    fn from(error: std::io::Error) -> TarError {
        TarError::Io(error)
    }
}

fn damaged<T>(what: impl Into<String>) -> Result<T, TarError> {
    Err(TarError::Damaged(what.into()))
}
