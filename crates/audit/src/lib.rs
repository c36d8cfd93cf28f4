//! An audit log: ordered, numbered, and hash-chained so that any change to a record is detected.
//!
//! ```text
//! {"hash":"9c1…","previous":"000…","sequence":1,"timeMs":…,"session":"5e0f…","event":"sandbox.create","data":{}}
//! {"hash":"e07…","previous":"9c1…","sequence":2,"timeMs":…,"session":"5e0f…","event":"command.start","data":{…}}
//! ```
//!
//! A record's hash covers everything after it on its line, including the hash of the previous record. Next to the file,
//! `FILE.head` has the number and hash of the last record, so records missing at the end are noticed as well. Several
//! programs can write to one file; they take turns by locking its head. If a write is interrupted, at whatever byte, the
//! next program that opens the log completes it or sets it aside, and the log says so. After a power failure it also says
//! which records did not reach the disk.
//!
//! Read `file.rs` first, then `head.rs`, `verify.rs` and `recover.rs`. `disk.rs` is where tests interrupt it.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?; let file = directory.path().join("audit.jsonl");
//! use wardian_audit::{AuditLog, Rotation, verify_audit};
//!
//! let log = AuditLog::to_file(&file, Rotation::default())?;
//! log.record("5e0f", "tool.start", serde_json::Map::new())?;
//! assert_eq!(verify_audit(&file)?.records, 1);
//! # Ok(()) }
//! ```

#![deny(missing_debug_implementations)]

#[cfg(test)]
mod crash_tests;
mod disk;
mod file;
mod head;
#[cfg(test)]
mod power_cut;
mod recover;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use disk::Disk;
use file::FileSink;
use head::Head;
use recover::By;

pub use file::Rotation;
pub use recover::{Lost, Repaired, repair_audit};
pub use verify::{Verified, VerifyError, verify_audit};

/// The hash before the first record.
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The log could not be written or continued.
#[derive(Clone, Debug, thiserror::Error)]
#[error("audit log: {0}")]
pub struct AuditError(String);

/// A record of the log.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AuditRecord {
    /// Its number in the log, from 1.
    pub sequence: u64,
    /// When it happened, in milliseconds since 1970.
    pub time_ms: u64,
    /// The sandbox or session.
    pub session: String,
    /// The event: `command.start` and so on.
    pub event: &'static str,
    /// The event's details.
    pub data: Map<String, Value>,
    /// The hash of the previous record.
    pub previous: String,
    /// Its own hash.
    pub hash: String,
}

/// A log shared by any number of writers. Cloning the handle shares the log.
#[derive(Clone)]
pub struct AuditLog(Arc<Mutex<Log>>);

impl std::fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuditLog").finish_non_exhaustive()
    }
}

struct Log {
    head: Head,
    sink: Sink,
    /// Why a record could not be written: no other is accepted until the log itself records that some are lost.
    failed: Option<AuditError>,
    /// How many were lost since.
    lost: u64,
}

enum Sink {
    Callback(Box<dyn FnMut(&AuditRecord) + Send>),
    File(FileSink),
}

impl AuditLog {
    /// Creates a log that passes every record to `callback`, in order, one at a time.
    pub fn to_callback(callback: impl FnMut(&AuditRecord) + Send + 'static) -> AuditLog {
        AuditLog::new(Head::none(), Sink::Callback(Box::new(callback)))
    }

    /// Creates a log that writes every record as a line of JSON to `file`, continuing an existing one.
    pub fn to_file(file: impl AsRef<Path>, rotation: Rotation) -> Result<AuditLog, AuditError> {
        AuditLog::on_disk(file.as_ref(), rotation, Disk::default())
    }

    fn on_disk(file: &Path, rotation: Rotation, disk: Disk) -> Result<AuditLog, AuditError> {
        let opened = FileSink::open(file, rotation, disk, By::Writer);
        let (sink, head, repaired) = opened.map_err(|error| AuditError(error.to_string()))?;
        repaired.warn(file);
        Ok(AuditLog::new(head, Sink::File(sink)))
    }

    fn new(head: Head, sink: Sink) -> AuditLog {
        AuditLog(Arc::new(Mutex::new(Log { head, sink, failed: None, lost: 0 })))
    }

    /// Checks that records can be written. Retries if the log could not be written before.
    pub fn check(&self) -> Result<(), AuditError> {
        self.0.lock().resume()
    }

    /// Writes a record. Once one was lost, no other is accepted until a `log.lost` record says how many were.
    pub fn record(
        &self,
        session: &str,
        event: &'static str,
        data: Map<String, Value>,
    ) -> Result<(), AuditError> {
        let mut log = self.0.lock();
        let written = log.resume().and_then(|()| log.record(session, event, data));
        if let Err(error) = &written {
            tracing::error!(%error, "a record is lost");
            log.lost += 1;
            log.failed.get_or_insert_with(|| error.clone());
        }
        written
    }
}

impl Log {
    /// Continues after a failure, if its cause is gone.
    fn resume(&mut self) -> Result<(), AuditError> {
        let Some(failed) = &self.failed else { return Ok(()) };
        let mut data = Map::new();
        data.insert("records".into(), self.lost.into());
        data.insert("why".into(), failed.to_string().into());
        self.record("", "log.lost", data)?;
        (self.failed, self.lost) = (None, 0);
        Ok(())
    }

    fn record(
        &mut self,
        session: &str,
        event: &'static str,
        data: Map<String, Value>,
    ) -> Result<(), AuditError> {
        let Log { head, sink, .. } = self;
        match sink {
            Sink::Callback(callback) => {
                let (record, _) = AuditRecord::after(head, session, event, data);
                callback(&record);
                (head.last, head.hash) = (record.sequence, record.hash);
                Ok(())
            }
            Sink::File(file) => file.in_turn(head, |file, head| {
                let (record, line) = AuditRecord::after(head, session, event, data);
                file.write(head, &record, &line)
            }),
        }
    }
}

impl AuditRecord {
    /// Returns the next record and its line.
    fn after(
        head: &Head,
        session: &str,
        event: &'static str,
        data: Map<String, Value>,
    ) -> (AuditRecord, String) {
        let mut record = AuditRecord {
            sequence: head.last + 1,
            time_ms: now_ms(),
            session: session.to_owned(),
            event,
            data,
            previous: head.hash.clone(),
            hash: String::new(),
        };
        let rest = record.rest_of_line();
        record.hash = hash(rest.as_bytes());
        let line = format!("{{\"hash\":\"{}\",{rest}\n", record.hash);
        (record, line)
    }

    /// Returns all of its line except the hash.
    fn rest_of_line(&self) -> String {
        format!(
            "\"previous\":\"{}\",\"sequence\":{},\"timeMs\":{},\"session\":{},\"event\":\"{}\",\"data\":{}}}",
            self.previous,
            self.sequence,
            self.time_ms,
            json!(self.session),
            self.event,
            Value::Object(self.data.clone())
        )
    }
}

/// Returns the path of a file next to `path`: its name, a dot and `suffix`.
fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    name.into()
}

/// SHA-256, in hexadecimal.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
