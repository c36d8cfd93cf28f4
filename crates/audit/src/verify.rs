//! Checking a log: every record's hash, the chain, the numbers, and the end.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::disk::Disk;
use super::file::parts;
use super::head::{self, Found, Head, head_path};
use super::recover::Lost;
use super::{NO_HASH, hash};

/// The contents of an intact log.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The number of records.
    pub records: u64,
    /// The number of the first; more than 1 if rotation has removed the oldest.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// The number of files.
    pub files: usize,
    /// How many records were lost, to a full disk or a power failure, according to the log itself.
    pub lost: u64,
}

/// What is wrong with a log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// It could not be read or written.
    #[error("{}: {error}", .file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A line is not what was written.
    #[error("{}, line {line}: {what}", .file.display())]
    Record {
        /// The file.
        file: PathBuf,
        /// The line number, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// Records are missing at one end.
    #[error("{}: {what}", .file.display())]
    Missing {
        /// The log.
        file: PathBuf,
        /// What is missing.
        what: String,
    },
    /// The last write was interrupted. Every acknowledged record is there; the next program that opens the log, or
    /// [`repair_audit`](crate::repair_audit), completes it.
    #[error("{}: the last write was interrupted: {what}", .file.display())]
    Interrupted {
        /// The log.
        file: PathBuf,
        /// What the write left behind.
        what: String,
    },
}

/// Reads the log `file` with its older parts and reports any edit, gap or truncation.
pub fn verify_audit(file: impl AsRef<Path>) -> Result<Verified, VerifyError> {
    let path = file.as_ref();
    match verify(path) {
        Ok(verified) => Ok(verified),
        // A program may be in the middle of a record just now: what counts is what is there between two of them.
        Err(error) => {
            let Ok(head_file) = File::open(head_path(path)) else { return Err(error) };
            head_file.lock_shared().map_err(|error| VerifyError::Io { file: head_path(path), error })?;
            verify(path)
        }
    }
}

fn verify(path: &Path) -> Result<Verified, VerifyError> {
    let head_file = head_path(path);
    let failed = |error| VerifyError::Io { file: head_file.clone(), error };
    let found = File::open(&head_file).and_then(|file| head::read(&file)).map_err(failed)?;
    let Found::Written(head) = found else {
        Survey::of(path, None, false)?;
        return Err(VerifyError::Missing { file: head_file, what: "is not the head of a log".to_owned() });
    };
    let survey = Survey::of(path, Some(&head), head.is_of_another_boot(&Disk::default()))?;
    let interrupted = |what| VerifyError::Interrupted { file: path.to_owned(), what };
    match survey.compare(&head)? {
        End::More => Err(interrupted(format!("the head does not know of record {}", survey.last))),
        End::Lost { lost: Lost { first, last, .. }, .. } => Err(interrupted(format!(
            "records {first} to {last} did not reach the disk before the machine was restarted"
        ))),
        End::Same if survey.torn.is_some() => Err(interrupted("the last record is incomplete".to_owned())),
        End::Same => Ok(survey.verified()),
    }
}

/// What the files of a log contain, whatever its head says.
pub(super) struct Survey {
    path: PathBuf,
    /// The number of the first record, if there is one.
    pub(super) first: Option<u64>,
    /// The number of the last record, 0 if there is none.
    pub(super) last: u64,
    /// Its hash.
    pub(super) hash: String,
    /// The record that the head has for the last, and its hash as the log has it.
    mark: u64,
    marked: Option<String>,
    /// How much of the newest file must be there: all that was handed over, or after a power failure what was synced.
    durable: Option<u64>,
    /// The hash of the last record that was lost in a power failure, from the record that reports it.
    told_lost: Option<String>,
    /// How many records were lost, according to the log.
    lost: u64,
    /// How many bytes of complete records the newest file has.
    pub(super) size: u64,
    /// What follows them: an incomplete record, or whatever a power failure left.
    pub(super) torn: Option<Torn>,
    files: usize,
}

/// The beginning of an incomplete record.
pub(super) struct Torn {
    pub(super) bytes: Vec<u8>,
    line: u64,
}

/// Where a log ends, compared with its head.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum End {
    Same,
    /// It has records that the head does not list: one, or after a power failure any number.
    More,
    /// The head lists records that did not reach the disk; `left` is the head without them.
    Lost {
        lost: Lost,
        left: Head,
    },
}

impl Survey {
    /// Reads the whole log, with what its head says about it. An error is an edit or a gap, except where a power failure
    /// explains it.
    pub(super) fn of(path: &Path, head: Option<&Head>, after_power_cut: bool) -> Result<Survey, VerifyError> {
        let mut parts: Vec<PathBuf> = parts(path).into_iter().map(|(_, part)| part).collect();
        parts.reverse();
        let mut survey = Survey {
            path: path.to_owned(),
            first: None,
            last: 0,
            hash: NO_HASH.to_owned(),
            mark: head.map_or(0, |head| head.last),
            marked: head.filter(|head| head.last == 0).map(|_| NO_HASH.to_owned()),
            durable: head.filter(|_| after_power_cut).map(|head| head.synced),
            told_lost: None,
            lost: 0,
            size: 0,
            torn: None,
            files: parts.len() + 1,
        };
        for part in &parts {
            survey.follow(part, None)?;
            if let Some(torn) = &survey.torn {
                let what = "is truncated".to_owned();
                return Err(VerifyError::Record { file: part.clone(), line: torn.line, what });
            }
        }
        survey.size = 0;
        match survey.follow(path, survey.durable) {
            // The file was put aside for a new one, which is yet to be created; or nothing of it had to be there.
            Err(VerifyError::Io { error, .. })
                if error.kind() == io::ErrorKind::NotFound
                    && (!parts.is_empty() || survey.durable == Some(0)) => {}
            followed => followed?,
        }
        Ok(survey)
    }

    /// Reads one file. What is wrong after its first `durable` bytes is not an error but set aside, with all that follows.
    fn follow(&mut self, file: &Path, durable: Option<u64>) -> Result<(), VerifyError> {
        let io = |error| VerifyError::Io { file: file.to_owned(), error };
        let mut reader = BufReader::new(File::open(file).map_err(io)?);
        let (mut text, mut number) = (Vec::new(), 0);
        self.size = 0;
        loop {
            text.clear();
            if reader.read_until(b'\n', &mut text).map_err(io)? == 0 {
                return Ok(());
            }
            number += 1;
            let Some(whole) = text.strip_suffix(b"\n") else {
                self.torn = Some(Torn { bytes: text, line: number });
                return Ok(());
            };
            let wrong = |what: String| VerifyError::Record { file: file.to_owned(), line: number, what };
            match Line::parse(whole).map_err(str::to_owned).and_then(|line| self.add(line)) {
                Ok(()) => self.size += text.len() as u64,
                Err(_) if durable.is_some_and(|durable| self.size >= durable) => {
                    reader.read_to_end(&mut text).map_err(io)?;
                    self.torn = Some(Torn { bytes: text, line: number });
                    return Ok(());
                }
                Err(what) => return Err(wrong(what)),
            }
        }
    }

    fn add(&mut self, line: Line) -> Result<(), String> {
        if self.first.is_none() {
            // Rotation may have let older records go; the head says which is the first to expect.
            if line.sequence == 0 || (line.sequence == 1 && line.previous != NO_HASH) {
                return Err("has a predecessor, but is the first".to_owned());
            }
        } else if line.sequence != self.last + 1 {
            return Err(format!("is record {}, after record {}", line.sequence, self.last));
        } else if line.previous != self.hash {
            return Err("does not follow the record before it".to_owned());
        }
        self.first.get_or_insert(line.sequence);
        if line.sequence == self.mark {
            self.marked = Some(line.hash.clone());
        } else if line.sequence == self.mark + 1 {
            self.marked = Some(line.previous);
        }
        self.lost = self.lost.saturating_add(line.lost);
        self.told_lost = line.told_lost.or(self.told_lost.take());
        (self.last, self.hash) = (line.sequence, line.hash);
        Ok(())
    }

    /// Compares where the log ends with what its head says. An error is a truncation.
    pub(super) fn compare(&self, head: &Head) -> Result<End, VerifyError> {
        let missing = |what: String| VerifyError::Missing { file: self.path.clone(), what };
        // With no older parts kept, everything up to the head may be gone.
        let all_let_go = self.first.is_none() && head.first == head.last + 1;
        if let Some(first) = self.first.filter(|first| *first > head.first) {
            return Err(missing(format!("begins with record {first}, but should with {}", head.first)));
        }
        let agrees = self.marked.as_ref() == Some(&head.hash) || self.hash == head.hash;
        if all_let_go || (agrees && self.last == head.last) {
            return Ok(End::Same);
        }
        let any_number = self.durable.is_some();
        let after_it = agrees && (any_number || self.last == head.last + 1);
        // A recovery that was interrupted has told of the records that this head knows, and the head did not follow.
        let told = any_number && self.told_lost.as_ref() == Some(&head.hash);
        if (after_it && self.last > head.last) || told {
            return Ok(End::More);
        }
        if self.last < head.last && self.durable.is_some_and(|durable| self.size >= durable) {
            return Ok(self.without_lost(head));
        }
        Err(match &self.torn {
            Some(torn) => VerifyError::Record {
                file: self.path.clone(),
                line: torn.line,
                what: "is truncated".to_owned(),
            },
            None => missing(format!("ends with record {}, but should with {}", self.last, head.last)),
        })
    }

    fn without_lost(&self, head: &Head) -> End {
        // Where nothing is left of the only file, the hash before its first record is not known: it goes on after the last.
        let (first, last, hash) = match self.first {
            None if head.first > 1 => (head.last + 1, head.last, &head.hash),
            _ => (head.first, self.last, &self.hash),
        };
        let from = if last == head.last { head.first } else { last + 1 };
        let lost = Lost { first: from, last: head.last, hash: head.hash.clone() };
        End::Lost { lost, left: Head::at(first, last, self.size, hash.clone()) }
    }

    pub(super) fn verified(&self) -> Verified {
        let first = self.first.unwrap_or(self.last + 1);
        Verified {
            records: self.last + 1 - first,
            first,
            last: self.last,
            files: self.files,
            lost: self.lost,
        }
    }
}

/// The number of the first record in a part of a log.
pub(super) fn first_sequence(part: &Path) -> io::Result<u64> {
    let first = BufReader::new(File::open(part)?).split(b'\n').next();
    match first.transpose()?.as_deref().map(Line::parse) {
        Some(Ok(line)) => Ok(line.sequence),
        _ => Err(io::Error::other("the oldest part of the log is damaged")),
    }
}

/// The parts of a record that the chain uses.
struct Line {
    hash: String,
    previous: String,
    sequence: u64,
    /// How many records it says were lost.
    lost: u64,
    /// The hash of the last of them, if that was in a power failure.
    told_lost: Option<String>,
}

impl Line {
    fn parse(text: &[u8]) -> Result<Line, &'static str> {
        const NOT_A_RECORD: &str = "is not a record";
        let rest = text.strip_prefix(b"{\"hash\":\"").ok_or(NOT_A_RECORD)?;
        let (claimed, rest) = rest.split_at_checked(64).ok_or(NOT_A_RECORD)?;
        let rest = rest.strip_prefix(b"\",").ok_or(NOT_A_RECORD)?;
        let claimed = String::from_utf8(claimed.to_vec()).map_err(|_| NOT_A_RECORD)?;
        if hash(rest) != claimed {
            return Err("was changed");
        }
        let record: Value = serde_json::from_slice(text).map_err(|_| NOT_A_RECORD)?;
        let previous = record["previous"].as_str().ok_or(NOT_A_RECORD)?.to_owned();
        // No log gets to the last number, and adding to it must not overflow.
        let sequence = record["sequence"].as_u64().filter(|number| *number < u64::MAX).ok_or(NOT_A_RECORD)?;
        let (data, number) = (&record["data"], |value: &Value| value.as_u64().unwrap_or(0));
        let (lost, told_lost) = match record["event"].as_str() {
            Some("log.lost") => (number(&data["records"]), None),
            Some("log.recovered") if data["lost"].is_object() => {
                let lost = &data["lost"];
                let count = number(&lost["last"]).saturating_add(1).saturating_sub(number(&lost["first"]));
                (count, lost["hash"].as_str().map(str::to_owned))
            }
            _ => (0, None),
        };
        Ok(Line { hash: claimed, previous, sequence, lost, told_lost })
    }
}
