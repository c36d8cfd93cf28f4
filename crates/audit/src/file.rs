//! The log as a file: `FILE`, older parts `FILE.1`, `FILE.2`, …, and `FILE.head`.
//!
//! A record counts once it is in `FILE` and the head says so, in this order. Both are handed to the operating system
//! before that, so they survive the end of the process, however it happens. They are not synced to disk one by one: a
//! power failure can lose the last records, up to [`SYNC_EVERY`], and the next program that opens the log records which.
//! Everything else is synced: older parts before they become so, the head before a part is removed, names.

use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::disk::Disk;
use super::head::{self, Found, Head, head_path};
use super::recover::{self, By, Repaired};
use super::verify::{VerifyError, first_sequence};
use super::{AuditError, AuditRecord, with_suffix};

/// How many bytes may be in the newest file that are not known to survive a power failure.
const SYNC_EVERY: u64 = if cfg!(test) { 1000 } else { 1 << 20 };

/// When a file is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rotation {
    /// A file larger than this is rotated.
    pub max_bytes: u64,
    /// How many old files are kept; the oldest are removed.
    pub kept: usize,
}

impl Default for Rotation {
    fn default() -> Rotation {
        Rotation { max_bytes: 64 << 20, kept: 16 }
    }
}

pub(super) struct FileSink {
    path: PathBuf,
    rotation: Rotation,
    file: File,
    head_file: File,
    disk: Disk,
}

/// Returns the path of the older part with this number.
fn part(path: &Path, number: usize) -> PathBuf {
    with_suffix(path, &number.to_string())
}

/// Returns the older parts with their numbers, the newest first. An interrupted rotation leaves one number out.
pub(super) fn parts(path: &Path) -> Vec<(usize, PathBuf)> {
    let mut found = Vec::new();
    let mut number = 1;
    while number <= found.last().map_or(0, |(last, _)| *last) + 2 {
        let part = part(path, number);
        if part.exists() {
            found.push((number, part));
        }
        number += 1;
    }
    found
}

impl FileSink {
    /// Opens a log, new or existing, and completes what was interrupted.
    pub(super) fn open(
        path: &Path,
        rotation: Rotation,
        disk: Disk,
        by: By,
    ) -> Result<(FileSink, Head, Repaired), VerifyError> {
        let failed = |error| VerifyError::Io { file: path.to_owned(), error };
        let head_file = disk.open_to_overwrite(&head_path(path)).map_err(failed)?;
        head_file.lock().map_err(failed)?;
        let found = head::read(&head_file).map_err(failed)?;
        let begun = matches!(&found, Found::Written(head) if head.is_numbered() && head.boot == disk.boot());
        let (mut head, repaired) = recover::settle(path, &head_file, &disk, by)?;
        let file = disk.open_to_append(path).map_err(failed)?;
        let mut sink = FileSink { path: path.to_owned(), rotation, file, head_file, disk };
        sink.tell(&mut head, &repaired).map_err(failed)?;
        if !begun || !repaired.is_nothing() {
            sink.sync(&mut head).map_err(failed)?;
        }
        sink.head_file.unlock().map_err(failed)?;
        Ok((sink, head, repaired))
    }

    /// From here on, what is there now survives a power failure.
    fn sync(&mut self, head: &mut Head) -> io::Result<()> {
        self.disk.sync(&self.file)?;
        head.synced = head.size;
        head.write(&self.head_file, &self.disk)?;
        self.disk.sync(&self.head_file)?;
        self.disk.sync_names(&self.path)
    }

    /// Does something while no other program writes to the log, after catching up with what others have written.
    pub(super) fn in_turn(
        &mut self,
        head: &mut Head,
        write: impl FnOnce(&mut FileSink, &mut Head) -> io::Result<()>,
    ) -> Result<(), AuditError> {
        let turn = |sink: &mut FileSink, head: &mut Head| {
            sink.head_file.lock()?;
            let written = sink.catch_up(head).and_then(|()| write(sink, head));
            sink.head_file.unlock()?;
            written
        };
        turn(self, head).map_err(|error| AuditError(format!("{}: {error}", self.path.display())))
    }

    fn catch_up(&mut self, head: &mut Head) -> io::Result<()> {
        if self.head_file.metadata()?.nlink() == 0 {
            return Err(io::Error::other("the log's head was removed"));
        }
        let now = match head::read(&self.head_file)? {
            Found::Written(now) => Some(now),
            Found::Nothing => Some(Head::none()),
            Found::Damaged => None,
        };
        if let Some(now) = now {
            if now != *head && !self.is_named()? && self.path.exists() {
                // Others have rotated.
                self.file = self.disk.open_to_append(&self.path)?;
            }
            if self.is_named()? && self.file.metadata()?.len() == now.size {
                *head = now;
                return Ok(());
            }
        }
        // Somebody was interrupted.
        let settled = recover::settle(&self.path, &self.head_file, &self.disk, By::Writer);
        let (settled, repaired) = settled.map_err(io::Error::other)?;
        *head = settled;
        self.file = self.disk.open_to_append(&self.path)?;
        repaired.warn(&self.path);
        self.tell(head, &repaired)
    }

    /// Returns whether the open file is still the one with the log's name.
    fn is_named(&self) -> io::Result<bool> {
        let open = self.file.metadata()?;
        match self.path.metadata() {
            Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Records what was done to the log.
    fn tell(&mut self, head: &mut Head, repaired: &Repaired) -> io::Result<()> {
        if repaired.is_nothing() {
            return Ok(());
        }
        let (record, line) = AuditRecord::after(head, "", "log.recovered", repaired.data()?);
        // Not after a rotation, which would write the head before the record is there.
        self.add(head, &record, &line)
    }

    pub(super) fn write(&mut self, head: &mut Head, record: &AuditRecord, line: &str) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        if size > 0 && size + line.len() as u64 > self.rotation.max_bytes {
            self.rotate(head)?;
        }
        self.add(head, record, line)
    }

    fn add(&mut self, head: &mut Head, record: &AuditRecord, line: &str) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        let size = before + line.len() as u64;
        let mut after = Head { last: record.sequence, size, hash: record.hash.clone(), ..head.clone() };
        let is_first = !matches!(head::read(&self.head_file)?, Found::Written(_));
        let written = self.disk.append(&self.file, line.as_bytes()).and_then(|()| {
            if size.saturating_sub(after.synced) > SYNC_EVERY {
                self.disk.sync(&self.file)?;
                self.disk.sync_names(&self.path)?;
                after.synced = size;
            }
            after.write(&self.head_file, &self.disk)
        });
        // A head whose last bytes were there already is whole, also where they could not be written.
        if written.is_ok()
            || head::read(&self.head_file).is_ok_and(|head| head == Found::Written(after.clone()))
        {
            *head = after;
            return Ok(());
        }
        // It does not count, so it is taken back. If that fails as well, the next writer sets it aside.
        let _ = self.disk.set_len(&self.file, before);
        if is_first {
            let _ = self.disk.set_len(&self.head_file, 0);
        }
        written
    }

    /// If this is interrupted at any point, the parts hold all records, and the next rotation closes the gap in their numbers.
    fn rotate(&mut self, head: &mut Head) -> io::Result<()> {
        self.disk.sync(&self.file)?;
        // Of the next file nothing is synced.
        head.synced = 0;
        head.write(&self.head_file, &self.disk)?;
        self.disk.sync(&self.head_file)?;
        let free = (1..).find(|number| !part(&self.path, *number).exists()).unwrap_or(1);
        for number in (1..free).rev() {
            self.disk.rename(&part(&self.path, number), &part(&self.path, number + 1))?;
        }
        self.disk.rename(&self.path, &part(&self.path, 1))?;
        self.file = self.disk.open_to_append(&self.path)?;
        self.disk.sync_names(&self.path)?;
        self.let_go(head)
    }

    /// Removes the oldest parts, once the head says that they are no longer expected.
    fn let_go(&mut self, head: &mut Head) -> io::Result<()> {
        let kept = self.rotation.kept;
        let beyond: Vec<PathBuf> = parts(&self.path)
            .into_iter()
            .filter(|(number, _)| *number > kept)
            .map(|(_, part)| part)
            .collect();
        if beyond.is_empty() {
            return Ok(());
        }
        head.first = if kept == 0 { head.last + 1 } else { first_sequence(&part(&self.path, kept))? };
        head.write(&self.head_file, &self.disk)?;
        self.disk.sync(&self.head_file)?;
        beyond.iter().rev().try_for_each(|part| self.disk.remove(part))
    }
}
