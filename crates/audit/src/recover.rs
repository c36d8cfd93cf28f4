//! Completing an interrupted write: by the next program that opens the log, or by hand.
//!
//! A write can be interrupted at any byte. The result is one of these cases:
//!
//! ```text
//!  FILE ends inside a record         the rest is set aside in FILE.torn-N, where N is the record that reports it
//!  FILE has one record too many      it is complete and continues the chain: the head is moved
//!  the power failed meanwhile        what did not reach the disk is recorded as lost, and what follows it is set aside
//!  a rotation stopped                the parts have a gap in their numbers; the next rotation closes it
//!  FILE.head is missing or damaged   only by hand: it is unknown what followed the last record
//! ```
//!
//! That the power may have failed is known from the head: it is of another boot of the machine (`head.rs`). Then FILE can have
//! any number of records too many or too few, but only after what was synced.
//!
//! Anything else is an edit, a gap or a truncation and stays an error. What was done is recorded as `log.recovered`. All
//! of this happens under the writers' lock.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::disk::Disk;
use super::file::{FileSink, Rotation, parts};
use super::head::{self, Found, Head, UNSETTLED, head_path};
use super::verify::{End, Survey, VerifyError};
use super::{Verified, hash, verify_audit, with_suffix};

/// Who asks for the log to be completed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// A program that is about to write to it.
    Writer,
    /// A person.
    Hand,
}

/// What was done to a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// Where incomplete records, and a damaged head, were set aside.
    pub set_aside: Vec<PathBuf>,
    /// The number of the last complete record that the head did not list.
    pub adopted: Option<u64>,
    /// Records that the head lists but that did not reach the disk before the power failed.
    pub lost: Option<Lost>,
    /// Whether the head was rebuilt from the records. Then nothing proves that no records followed the last one.
    pub head_rebuilt: bool,
}

/// Acknowledged records that a power failure has taken. Their numbers are used again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The number of the first.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// The hash of the last.
    pub hash: String,
}

impl Repaired {
    /// Returns whether there was nothing to do.
    pub fn is_nothing(&self) -> bool {
        *self == Repaired::default()
    }

    /// Tells the user of the program that writes to the log.
    pub(super) fn warn(&self, log: &Path) {
        if !self.is_nothing() {
            tracing::warn!(log = %log.display(), repaired = ?self, "an audit log was recovered");
        }
    }

    /// Returns what the log says about it.
    pub(super) fn data(&self) -> io::Result<Map<String, Value>> {
        let mut data = Map::new();
        let mut aside = Vec::new();
        for file in &self.set_aside {
            let bytes = std::fs::read(file)?;
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            aside.push(json!({ "file": name, "bytes": bytes.len(), "sha256": hash(&bytes) }));
        }
        if !aside.is_empty() {
            data.insert("setAside".into(), aside.into());
        }
        if let Some(adopted) = self.adopted {
            data.insert("adopted".into(), adopted.into());
        }
        if let Some(Lost { first, last, hash }) = &self.lost {
            data.insert("lost".into(), json!({ "first": first, "last": last, "hash": hash }));
        }
        if self.head_rebuilt {
            data.insert("head".into(), "rebuilt".into());
        }
        Ok(data)
    }
}

/// Completes a log whose last write was interrupted, or whose head is missing or damaged, and records that in the log.
/// Refuses an edit, a gap or a truncation without changing anything.
pub fn repair_audit(file: impl AsRef<Path>) -> Result<(Repaired, Verified), VerifyError> {
    let path = file.as_ref();
    // No head for what is not a log.
    if parts(path).is_empty() {
        path.metadata().map_err(|error| VerifyError::Io { file: path.to_owned(), error })?;
    }
    let never = Rotation { max_bytes: u64::MAX, kept: usize::MAX };
    let (.., repaired) = FileSink::open(path, never, Disk::default(), By::Hand)?;
    Ok((repaired, verify_audit(path)?))
}

/// Finds where the log ends and makes its files agree on it. The caller records what was done, after the head that this
/// returns.
pub(super) fn settle(
    path: &Path,
    head_file: &File,
    disk: &Disk,
    by: By,
) -> Result<(Head, Repaired), VerifyError> {
    let failed = |error| VerifyError::Io { file: path.to_owned(), error };
    let found = head::read(head_file).map_err(failed)?;
    if found == Found::Nothing && !path.exists() && parts(path).is_empty() {
        return Ok((Head::none(), Repaired::default()));
    }
    let written = match &found {
        Found::Written(head) => Some(head),
        Found::Nothing | Found::Damaged => None,
    };
    let after_power_cut = written.is_some_and(|head| head.is_of_another_boot(disk));
    let survey = Survey::of(path, written, after_power_cut)?;
    let mut repaired = Repaired::default();
    let before = known_end(path, &found, &survey, by, &mut repaired)?;
    let mut head = before.clone();
    match survey.compare(&before)? {
        End::Same => {}
        End::More => {
            repaired.adopted = Some(survey.last);
            (head.last, head.hash) = (survey.last, survey.hash.clone());
        }
        End::Lost { lost, left } => {
            repaired.lost = Some(lost);
            head = left;
        }
    }
    let aside = Aside { path, record: head.last + 1, disk };
    let unsettled = before.size == UNSETTLED;
    if let Some(torn) = &survey.torn {
        aside.add(&torn.bytes, unsettled).map_err(failed)?;
    }
    if found == Found::Damaged {
        aside.add(&std::fs::read(head_path(path)).map_err(failed)?, unsettled).map_err(failed)?;
    }
    repaired.set_aside = aside.files();
    // Until the record that reports it is written, the next writer must look again.
    head.size = if repaired.is_nothing() { survey.size } else { UNSETTLED };
    head.synced = if after_power_cut { 0 } else { head.synced.min(survey.size) };
    if repaired.lost.is_some() {
        // The head that knows of the lost records is replaced with the record that reports them, not before.
        before.write_unsettled(head_file, disk).and_then(|()| disk.sync(head_file)).map_err(failed)?;
    } else if !repaired.head_rebuilt
        && found != Found::Written(head.clone())
        && (head.last > 0 || survey.torn.is_some())
    {
        // For the same reason not where it is rebuilt.
        head.write(head_file, disk).map_err(failed)?;
    }
    if survey.torn.is_some() {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        disk.set_len(&file, survey.size).map_err(failed)?;
    }
    Ok((head, repaired))
}

/// Returns where the log ends according to its head or, if the head must be rebuilt, its records.
fn known_end(
    path: &Path,
    found: &Found,
    survey: &Survey,
    by: By,
    repaired: &mut Repaired,
) -> Result<Head, VerifyError> {
    match (found, by) {
        (Found::Written(head), _) => Ok(head.clone()),
        // The first record was being written: there is no other.
        (Found::Nothing, _) if survey.last <= 1 && survey.first.unwrap_or(1) == 1 => Ok(Head::none()),
        (Found::Nothing | Found::Damaged, By::Hand) => {
            repaired.head_rebuilt = true;
            let (last, hash) = (survey.last, survey.hash.clone());
            Ok(Head::at(survey.first.unwrap_or(1), last, UNSETTLED, hash))
        }
        (found, By::Writer) => {
            let how = if *found == Found::Nothing { "is missing or empty" } else { "is damaged" };
            let what = format!("{how}, so records may be missing: see `wardian audit repair`");
            Err(VerifyError::Missing { file: head_path(path), what })
        }
    }
}

/// The files that hold what was set aside, named after the record that reports them.
struct Aside<'a> {
    path: &'a Path,
    record: u64,
    disk: &'a Disk,
}

impl Aside<'_> {
    fn file(&self, number: usize) -> PathBuf {
        match number {
            1 => with_suffix(self.path, &format!("torn-{}", self.record)),
            _ => with_suffix(self.path, &format!("torn-{}-{number}", self.record)),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        (1..).map(|number| self.file(number)).take_while(|file| file.exists()).collect()
    }

    /// Stores `bytes` in a separate file. Unless the existing files are known to be complete, one that holds only the
    /// beginning of `bytes` is from an interrupted attempt.
    fn add(&self, bytes: &[u8], others_are_whole: bool) -> io::Result<()> {
        let mut number = 1;
        loop {
            let file = self.file(number);
            match std::fs::read(&file) {
                Ok(there) if there == bytes => return Ok(()),
                Ok(there) if others_are_whole || !bytes.starts_with(&there) => number += 1,
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => return self.disk.write_file(&file, bytes),
            }
        }
    }
}
