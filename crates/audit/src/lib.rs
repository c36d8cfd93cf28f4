//! A record of what was done: ordered, numbered, and chained so that no record can be changed unseen.
//!
//! ```text
//! {"hash":"9c1…","previous":"000…","sequence":1,"timeMs":…,"session":"5e0f…","event":"sandbox.create","data":{}}
//! {"hash":"e07…","previous":"9c1…","sequence":2,"timeMs":…,"session":"5e0f…","event":"command.start","data":{…}}
//! ```
//!
//! A record's hash is that of everything after it on its line, the hash of the record before among it. Beside the file
//! lies `FILE.head` with the number and hash of the last record: records missing at the end are noticed, too. Several
//! programs can write to one file; they take turns by locking its head.
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

mod file;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use file::{FileSink, Head};

pub use file::Rotation;
pub use verify::{Verified, VerifyError, verify_audit};

/// The hash before the first record.
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The log could not be written or continued.
#[derive(Clone, Debug, thiserror::Error)]
#[error("audit log: {0}")]
pub struct AuditError(String);

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditRecord {
    /// Its number in the log, from 1.
    pub sequence: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Which sandbox or session.
    pub session: String,
    /// What: `command.start` and so on.
    pub event: &'static str,
    /// More about it.
    pub data: Map<String, Value>,
    /// The hash of the record before.
    pub previous: String,
    /// Its own.
    pub hash: String,
}

/// A log that any number of writers share. Cloning it shares it.
#[derive(Clone)]
pub struct AuditLog(Arc<Mutex<Log>>);

struct Log {
    head: Head,
    sink: Sink,
    /// Why the last record could not be written: nothing more is done until that is looked into.
    failed: Option<AuditError>,
}

enum Sink {
    Callback(Box<dyn FnMut(&AuditRecord) + Send>),
    File(FileSink),
}

impl AuditLog {
    /// Every record goes to `callback`, in order, one at a time.
    pub fn to_callback(callback: impl FnMut(&AuditRecord) + Send + 'static) -> AuditLog {
        AuditLog::new(Head::none(), Sink::Callback(Box::new(callback)))
    }

    /// Every record becomes a line of JSON in `file`, which is continued if it is there.
    pub fn to_file(file: impl AsRef<Path>, rotation: Rotation) -> Result<AuditLog, AuditError> {
        let (sink, head) = FileSink::open(file.as_ref(), rotation)?;
        Ok(AuditLog::new(head, Sink::File(sink)))
    }

    fn new(head: Head, sink: Sink) -> AuditLog {
        AuditLog(Arc::new(Mutex::new(Log { head, sink, failed: None })))
    }

    /// Whether records can be written.
    pub fn check(&self) -> Result<(), AuditError> {
        self.0.lock().failed.clone().map_or(Ok(()), Err)
    }

    /// Writes a record. Once one was lost, no other is taken.
    pub fn record(
        &self,
        session: &str,
        event: &'static str,
        data: Map<String, Value>,
    ) -> Result<(), AuditError> {
        let mut log = self.0.lock();
        if let Some(error) = &log.failed {
            return Err(error.clone());
        }
        let written = log.record(session, event, data);
        if let Err(error) = &written {
            tracing::error!(%error, "a record is lost");
            log.failed = Some(error.clone());
        }
        written
    }
}

impl Log {
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
                head.advance(&record);
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
    /// The record that follows, and its line.
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

    /// All of its line but the hash.
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

/// SHA-256, in hexadecimal.
fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
