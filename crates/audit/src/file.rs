//! The log as a file: `FILE`, older parts `FILE.1`, `FILE.2`, …, and `FILE.head`.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::{AuditError, AuditRecord, NO_HASH, verify};

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
    /// That of a log without records.
    pub(super) fn none() -> Head {
        Head { first: 1, last: 0, hash: NO_HASH.to_owned() }
    }

    pub(super) fn advance(&mut self, record: &AuditRecord) {
        (self.last, self.hash) = (record.sequence, record.hash.clone());
    }

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
    pub(super) fn open(path: &Path, rotation: Rotation) -> Result<(FileSink, Head), AuditError> {
        let failed = |error: &dyn std::fmt::Display| AuditError(format!("{}: {error}", path.display()));
        let head_file = head_file(path).map_err(|error| failed(&error))?;
        head_file.lock().map_err(|error| failed(&error))?;
        let begun =
            [path, &head_path(path)].iter().any(|file| file.metadata().is_ok_and(|file| file.len() > 0));
        let head = match begun {
            true => verify::verified_head(path).map_err(|error| failed(&error))?,
            false => Head::none(),
        };
        let file = append(path).map_err(|error| failed(&error))?;
        head_file.unlock().map_err(|error| failed(&error))?;
        Ok((FileSink { path: path.to_owned(), rotation, file, head_file }, head))
    }

    /// Does something while no other program writes to the log, having caught up with what others have written.
    pub(super) fn in_turn(
        &mut self,
        head: &mut Head,
        write: impl FnOnce(&mut FileSink, &mut Head) -> std::io::Result<()>,
    ) -> Result<(), AuditError> {
        let turn = |sink: &mut FileSink, head: &mut Head| {
            sink.head_file.lock()?;
            let written = sink.catch_up(head).and_then(|()| write(sink, head));
            sink.head_file.unlock()?;
            written
        };
        turn(self, head).map_err(|error| AuditError(format!("{}: {error}", self.path.display())))
    }

    fn catch_up(&mut self, head: &mut Head) -> std::io::Result<()> {
        let mut text = String::new();
        self.head_file.seek(SeekFrom::Start(0))?;
        self.head_file.read_to_string(&mut text)?;
        let now = match text.is_empty() && head.last == 0 {
            true => Head::none(),
            false => Head::parse(&text).ok_or_else(|| std::io::Error::other("the log's head is damaged"))?,
        };
        if now != *head {
            *head = now;
            let (named, open) = (self.path.metadata()?, self.file.metadata()?);
            if (named.dev(), named.ino()) != (open.dev(), open.ino()) {
                self.file = append(&self.path)?;
            }
        }
        Ok(())
    }

    pub(super) fn write(&mut self, head: &mut Head, record: &AuditRecord, line: &str) -> std::io::Result<()> {
        let metadata = self.file.metadata()?;
        if metadata.nlink() == 0 {
            return Err(std::io::Error::other("the log was removed"));
        }
        let size = metadata.len();
        if size > 0 && size + line.len() as u64 > self.rotation.max_bytes {
            self.rotate(head)?;
        }
        // One write for a line: whoever reads along never sees half of one.
        self.file.write_all(line.as_bytes())?;
        head.advance(record);
        self.head_file.seek(SeekFrom::Start(0))?;
        self.head_file.write_all(head.line().as_bytes())
    }

    fn rotate(&mut self, head: &mut Head) -> std::io::Result<()> {
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
            head.first = verify::last_sequence(&oldest)? + 1;
            std::fs::remove_file(oldest)?;
        }
        self.file = append(&self.path)?;
        Ok(())
    }
}

fn head_file(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).read(true).write(true).open(head_path(path))
}

fn append(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}
