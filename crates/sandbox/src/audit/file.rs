//! The log as a file: `FILE`, older parts `FILE.1`, `FILE.2`, …, and `FILE.head`.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{AuditError, AuditRecord, verify};

/// When a file is put aside for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file that has grown beyond this is put aside.
    pub max_bytes: u64,
    /// How many are kept besides the one being written; the oldest go.
    pub kept: usize,
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation { max_bytes: 64 << 20, kept: 16 }
    }
}

/// What `FILE.head` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The oldest record that is kept.
    pub(super) first: u64,
    /// The last one, 0 if there is none yet.
    pub(super) last: u64,
    /// Its hash.
    pub(super) hash: String,
}

impl Head {
    pub(super) fn parse(text: &str) -> Option<Head> {
        let mut words = text.split_whitespace();
        let head = Head {
            first: words.next()?.parse().ok()?,
            last: words.next()?.parse().ok()?,
            hash: words.next()?.to_owned(),
        };
        (words.next().is_none() && head.hash.len() == 64).then_some(head)
    }

    /// Always as long, so that one write replaces it.
    fn line(&self) -> String {
        format!("{:020} {:020} {}\n", self.first, self.last, self.hash)
    }
}

pub(super) struct FileSink {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    head_file: File,
    first: u64,
    size: u64,
}

/// The older part with this number.
pub(super) fn part(path: &Path, number: usize) -> PathBuf {
    with_suffix(path, &number.to_string())
}

pub(super) fn head_path(path: &Path) -> PathBuf {
    with_suffix(path, "head")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

impl FileSink {
    /// Opens a log, a new one or one to go on with; the latter must be whole.
    pub(super) fn open(path: &Path, rotation: Rotation) -> Result<(FileSink, Option<Head>), AuditError> {
        let failed = |error: &dyn std::fmt::Display| AuditError(format!("{}: {error}", path.display()));
        let head = if path.exists() || head_path(path).exists() {
            Some(verify::verified_head(path).map_err(|error| failed(&error))?)
        } else {
            None
        };
        let file = append(path).map_err(|error| failed(&error))?;
        let size = file.metadata().map_err(|error| failed(&error))?.len();
        let head_file = OpenOptions::new().create(true).truncate(false).write(true).open(head_path(path));
        let head_file = head_file.map_err(|error| failed(&error))?;
        let first = head.as_ref().map_or(1, |head| head.first);
        Ok((FileSink { path: path.to_owned(), rotation, file, head_file, first, size }, head))
    }

    pub(super) fn write(&mut self, record: &AuditRecord, line: &str) -> Result<(), AuditError> {
        self.try_write(record, line).map_err(|error| AuditError(format!("{}: {error}", self.path.display())))
    }

    fn try_write(&mut self, record: &AuditRecord, line: &str) -> std::io::Result<()> {
        if self.size > 0 && self.size + line.len() as u64 > self.rotation.max_bytes {
            self.rotate()?;
        }
        // One write for a line: whoever reads along never sees half of one.
        self.file.write_all(line.as_bytes())?;
        self.size += line.len() as u64;
        let head = Head { first: self.first, last: record.sequence, hash: record.hash.clone() };
        self.head_file.seek(SeekFrom::Start(0))?;
        self.head_file.write_all(head.line().as_bytes())
    }

    fn rotate(&mut self) -> std::io::Result<()> {
        let oldest = part(&self.path, self.rotation.kept + 1);
        for number in (1..=self.rotation.kept).rev() {
            let from = part(&self.path, number);
            if from.exists() {
                std::fs::rename(from, part(&self.path, number + 1))?;
            }
        }
        std::fs::rename(&self.path, part(&self.path, 1))?;
        if oldest.exists() {
            // What is left begins after the last record of what goes.
            self.first = verify::last_sequence(&oldest)? + 1;
            std::fs::remove_file(oldest)?;
        }
        self.file = append(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
