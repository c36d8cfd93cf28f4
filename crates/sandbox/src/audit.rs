//! What is recorded about a sandbox. The log itself is in `wardian-audit`.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?; let file = directory.path().join("audit.jsonl");
//! let log = wardian::AuditLog::to_file(&file, wardian::AuditRotation::default())?;
//! let sandbox = wardian::Sandbox::builder().audit(&log).build().await?;
//! sandbox.run("echo hello").await?;
//! let checked = wardian::verify_audit(&file)?;
//! assert_eq!(checked.records, 3); // created, command started, command complete
//! # Ok(()) }
//! ```

use std::time::Duration;

use serde_json::{Map, Value, json};
use wardian_audit::AuditLog;

use crate::result::ErrorClass;

/// How much of a command is recorded.
const COMMAND_KEPT: usize = 4096;

/// What is recorded.
pub(crate) enum Event<'a> {
    Create,
    Fork { child: &'a str },
    Destroy,
    Hibernate,
    Wake,
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
            Event::Hibernate => "sandbox.hibernate",
            Event::Wake => "sandbox.wake",
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
            Event::Create | Event::Destroy | Event::Hibernate | Event::Wake | Event::CommandCancelled => {
                json!({})
            }
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

/// Records an event. A lost record is not lost silently: the log fails every `check` until it can be written again, and
/// then first records how many are missing.
pub(crate) fn record(log: &AuditLog, session: &str, event: &Event) {
    let data = match event.data() {
        Value::Object(data) => data,
        _ => Map::new(),
    };
    let _ = log.record(session, event.name(), data);
}
