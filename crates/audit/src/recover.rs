//! Completing an interrupted write: by the next program that opens the log, or by hand.
//!
//! A write can be interrupted at any byte. The result is one of these cases:
//!
//! ```text
//!  FILE ends inside a record         the rest is set aside in FILE.torn-N, where N is the record that reports it
//!  FILE has one record too many      it is complete and continues the chain: the head is moved
//!  a rotation stopped                the parts have a gap in their numbers; the next rotation closes it
//!  FILE.head is missing or damaged   only by hand: it is unknown what followed the last record
//! ```
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
pub struct Repaired {
    /// Where incomplete records, and a damaged head, were set aside.
    pub set_aside: Vec<PathBuf>,
    /// The number of a complete record that the head did not list.
    pub adopted: Option<u64>,
    /// Whether the head was rebuilt from the records. Then nothing proves that no records followed the last one.
    pub head_rebuilt: bool,
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
    let survey = Survey::of(path)?;
    let mut repaired = Repaired::default();
    let before = known_end(path, &found, &survey, by, &mut repaired)?;
    let mut head = before.clone();
    if survey.compare(&head)? == End::OneMore {
        repaired.adopted = Some(survey.last);
        (head.last, head.hash) = (survey.last, survey.hash.clone());
    }
    let aside = Aside { path, record: head.last + 1, disk };
    let unsettled = matches!(&found, Found::Written(head) if head.size == UNSETTLED);
    if let Some(torn) = &survey.torn {
        aside.add(&torn.bytes, unsettled).map_err(failed)?;
    }
    if found == Found::Damaged {
        aside.add(&std::fs::read(head_path(path)).map_err(failed)?, unsettled).map_err(failed)?;
    }
    repaired.set_aside = aside.files();
    // Until the record that tells of it is written, whoever comes next must look again.
    head.size = if repaired.is_nothing() { survey.size } else { UNSETTLED };
    // A head that is rebuilt is written with that record, not before: else the record could be missing for good.
    if !repaired.head_rebuilt
        && found != Found::Written(head.clone())
        && (head.last > 0 || survey.torn.is_some())
    {
        head.write(&before, head_file, disk).map_err(failed)?;
    }
    if survey.torn.is_some() {
        let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        disk.set_len(&file, survey.size).map_err(failed)?;
    }
    Ok((head, repaired))
}

/// Returns where the log ends according to its head or, if the head is to be rebuilt, its records.
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
            Ok(Head { first: survey.first.unwrap_or(1), last, size: UNSETTLED, hash })
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
