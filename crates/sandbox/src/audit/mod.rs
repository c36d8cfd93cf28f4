//! A record of what sandboxes did: ordered, numbered, and chained so that no record can be changed unseen.
//!
//! ```text
//! {"hash":"9c1…","previous":"000…","sequence":1,"timeMs":…,"session":"5e0f…","event":"sandbox.create","data":{}}
//! {"hash":"e07…","previous":"9c1…","sequence":2,"timeMs":…,"session":"5e0f…","event":"command.start","data":{…}}
//! ```
//!
//! A record's hash is that of everything after it on its line, the hash of the record before among it. Beside the file
//! lies `FILE.head` with the number and hash of the last record: records missing at the end are noticed, too.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?; let file = directory.path().join("audit.jsonl");
//! let log = wardian::AuditLog::to_file(&file, wardian::Rotation::default())?;
//! let sandbox = wardian::Sandbox::builder().audit(&log).build().await?;
//! sandbox.run("echo hello").await?;
//! let checked = wardian::verify_audit(&file)?;
//! assert_eq!(checked.records, 3); // created, command started, command complete
//! # Ok(()) }
//! ```

mod file;
mod verify;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::history::now_ms;
use crate::result::ErrorClass;
use file::FileSink;

pub use file::Rotation;
pub use verify::{Verified, VerifyError, verify_audit};

/// The hash before the first record.
const NO_HASH: &str = "0000000000000000000000000000000000000000000000000000000000000000";
/// How much of a command is recorded.
const COMMAND_KEPT: usize = 4096;

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
    /// Which sandbox: its [`id`](crate::Sandbox::id).
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

/// What is recorded.
pub(crate) enum Event<'a> {
    Create,
    Fork { child: &'a str },
    Destroy,
    CommandStart { command: &'a [u8] },
    CommandComplete { exit_code: u8, duration: Duration, class: Option<ErrorClass>, limit: Option<&'a str> },
    CommandTimeout { timeout: Duration },
    CommandCancelled,
    LimitExceeded { limit: &'a str },
    CapabilityDenied { tool: &'a [u8] },
    Import { bytes: usize, shell: bool },
    Export { bytes: usize },
}

impl Event<'_> {
    fn name(&self) -> &'static str {
        match self {
            Event::Create => "sandbox.create",
            Event::Fork { .. } => "sandbox.fork",
            Event::Destroy => "sandbox.destroy",
            Event::CommandStart { .. } => "command.start",
            Event::CommandComplete { .. } => "command.complete",
            Event::CommandTimeout { .. } => "command.timeout",
            Event::CommandCancelled => "command.cancelled",
            Event::LimitExceeded { .. } => "limit.exceeded",
            Event::CapabilityDenied { .. } => "capability.denied",
            Event::Import { .. } => "state.import",
            Event::Export { .. } => "state.export",
        }
    }

    fn data(&self) -> Value {
        match self {
            Event::Create | Event::Destroy | Event::CommandCancelled => json!({}),
            Event::Fork { child } => json!({ "child": child }),
            Event::CommandStart { command } => {
                let kept = &command[..command.len().min(COMMAND_KEPT)];
                json!({ "command": String::from_utf8_lossy(kept), "bytes": command.len() })
            }
            Event::CommandComplete { exit_code, duration, class, limit } => json!({
                "exitCode": exit_code,
                "durationMs": duration.as_millis() as u64,
                "errorClass": class.map(ErrorClass::name),
                "limit": limit,
            }),
            Event::CommandTimeout { timeout } => json!({ "timeoutMs": timeout.as_millis() as u64 }),
            Event::LimitExceeded { limit } => json!({ "limit": limit }),
            Event::CapabilityDenied { tool } => json!({ "tool": String::from_utf8_lossy(tool) }),
            Event::Import { bytes, shell } => json!({ "bytes": bytes, "shell": shell }),
            Event::Export { bytes } => json!({ "bytes": bytes }),
        }
    }
}

/// A log that any number of sandboxes write to. Cloning it shares it.
#[derive(Clone)]
pub struct AuditLog(Arc<Mutex<Log>>);

struct Log {
    sequence: u64,
    hash: String,
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
        AuditLog::new(0, NO_HASH.to_owned(), Sink::Callback(Box::new(callback)))
    }

    /// Every record becomes a line of JSON in `file`, which is continued if it is there.
    pub fn to_file(file: impl AsRef<Path>, rotation: Rotation) -> Result<AuditLog, AuditError> {
        let (sink, head) = FileSink::open(file.as_ref(), rotation)?;
        let (sequence, hash) = head.map_or((0, NO_HASH.to_owned()), |head| (head.last, head.hash));
        Ok(AuditLog::new(sequence, hash, Sink::File(sink)))
    }

    fn new(sequence: u64, hash: String, sink: Sink) -> AuditLog {
        AuditLog(Arc::new(Mutex::new(Log { sequence, hash, sink, failed: None })))
    }

    /// Whether records can be written.
    pub(crate) fn check(&self) -> Result<(), AuditError> {
        self.0.lock().failed.clone().map_or(Ok(()), Err)
    }

    pub(crate) fn record(&self, session: &str, event: Event) {
        self.0.lock().record(session, &event);
    }
}

impl Log {
    fn record(&mut self, session: &str, event: &Event) {
        let mut record = AuditRecord {
            sequence: self.sequence + 1,
            time_ms: now_ms(),
            session: session.to_owned(),
            event: event.name(),
            data: match event.data() {
                Value::Object(data) => data,
                _ => Map::new(),
            },
            previous: self.hash.clone(),
            hash: String::new(),
        };
        let rest = record.rest_of_line();
        record.hash = hash(rest.as_bytes());
        let written = match &mut self.sink {
            Sink::Callback(callback) => {
                callback(&record);
                Ok(())
            }
            Sink::File(file) => file.write(&record, &format!("{{\"hash\":\"{}\",{rest}\n", record.hash)),
        };
        match written {
            Ok(()) => (self.sequence, self.hash) = (record.sequence, record.hash),
            Err(error) => {
                tracing::error!(%error, "a record is lost");
                self.failed = Some(error);
            }
        }
    }
}

impl AuditRecord {
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
pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
