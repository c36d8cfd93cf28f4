//! Checking a log: every record's hash, the chain, the numbers, and the end.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use super::file::{Head, head_path, part};
use super::{NO_HASH, hash};

/// What a whole log holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// How many records.
    pub records: u64,
    /// The number of the first; more than 1 where rotation has let the oldest go.
    pub first: u64,
    /// The number of the last.
    pub last: u64,
    /// How many files they are in.
    pub files: usize,
}

/// What is wrong with a log.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// It could not be read.
    #[error("{}: {error}", .file.display())]
    Io {
        /// Which file.
        file: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// A line is not what was written.
    #[error("{}, line {line}: {what}", .file.display())]
    Record {
        /// In which file.
        file: PathBuf,
        /// In which line, from 1.
        line: u64,
        /// What is wrong with it.
        what: String,
    },
    /// Records are missing at one end.
    #[error("{}: {what}", .file.display())]
    Missing {
        /// Which log.
        file: PathBuf,
        /// What is missing.
        what: String,
    },
}

/// Reads the log `file` with its older parts and finds any edit, gap or truncation.
pub fn verify_audit(file: impl AsRef<Path>) -> Result<Verified, VerifyError> {
    let path = file.as_ref();
    let head = read_head(path)?;
    let older = (1..).map(|number| part(path, number)).take_while(|part| part.exists());
    let mut parts: Vec<PathBuf> = older.collect();
    parts.reverse();
    parts.push(path.to_owned());
    let mut chain = Chain { first: None, last: 0, hash: NO_HASH.to_owned() };
    for part in &parts {
        chain.follow(part)?;
    }
    let missing = |what: String| VerifyError::Missing { file: path.to_owned(), what };
    let first = chain.first.unwrap_or(1);
    if first != head.first {
        return Err(missing(format!("begins with record {first}, but should with {}", head.first)));
    }
    if (chain.last, &chain.hash) != (head.last, &head.hash) {
        return Err(missing(format!("ends with record {}, but should with {}", chain.last, head.last)));
    }
    Ok(Verified {
        records: (chain.last + 1).saturating_sub(first),
        first,
        last: chain.last,
        files: parts.len(),
    })
}

/// The head of a log that is whole.
pub(super) fn verified_head(path: &Path) -> Result<Head, VerifyError> {
    verify_audit(path)?;
    read_head(path)
}

fn read_head(path: &Path) -> Result<Head, VerifyError> {
    let file = head_path(path);
    let text =
        std::fs::read_to_string(&file).map_err(|error| VerifyError::Io { file: file.clone(), error })?;
    Head::parse(&text).ok_or(VerifyError::Missing { file, what: "is not the head of a log".to_owned() })
}

/// The number of the last record in a part of a log.
pub(super) fn last_sequence(part: &Path) -> std::io::Result<u64> {
    let last = BufReader::new(File::open(part)?).split(b'\n').last();
    let parsed = last.transpose()?.as_deref().map(Line::parse);
    match parsed {
        Some(Ok(line)) => Ok(line.sequence),
        _ => Err(std::io::Error::other("the oldest part of the log is damaged")),
    }
}

struct Chain {
    first: Option<u64>,
    last: u64,
    hash: String,
}

impl Chain {
    fn follow(&mut self, file: &Path) -> Result<(), VerifyError> {
        let io = |error| VerifyError::Io { file: file.to_owned(), error };
        let mut reader = BufReader::new(File::open(file).map_err(io)?);
        let (mut text, mut number) = (Vec::new(), 0);
        loop {
            text.clear();
            if reader.read_until(b'\n', &mut text).map_err(io)? == 0 {
                return Ok(());
            }
            number += 1;
            let wrong = |what: String| VerifyError::Record { file: file.to_owned(), line: number, what };
            let whole = text.strip_suffix(b"\n").ok_or_else(|| wrong("is cut short".to_owned()))?;
            let line = Line::parse(whole).map_err(|what| wrong(what.to_owned()))?;
            self.add(line).map_err(wrong)?;
        }
    }

    fn add(&mut self, line: Line) -> Result<(), String> {
        if self.first.is_none() {
            // Rotation may have let older records go; the head says which is the first to expect.
            self.first = Some(line.sequence);
            if line.sequence == 1 && line.previous != NO_HASH {
                return Err("has a predecessor, but is the first".to_owned());
            }
        } else if line.sequence != self.last + 1 {
            return Err(format!("is record {}, after record {}", line.sequence, self.last));
        } else if line.previous != self.hash {
            return Err("does not follow the record before it".to_owned());
        }
        (self.last, self.hash) = (line.sequence, line.hash);
        Ok(())
    }
}

/// A record as far as the chain goes.
struct Line {
    hash: String,
    previous: String,
    sequence: u64,
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
        let record: serde_json::Value = serde_json::from_slice(text).map_err(|_| NOT_A_RECORD)?;
        let previous = record["previous"].as_str().ok_or(NOT_A_RECORD)?.to_owned();
        Ok(Line { hash: claimed, previous, sequence: record["sequence"].as_u64().ok_or(NOT_A_RECORD)? })
    }
}
