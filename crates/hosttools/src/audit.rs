//! Stages 7 and 9: recording what was requested, what ran and how it ended. A call that cannot be recorded does not run.

use serde_json::{Map, Value, json};
use uuid::Uuid;
use wardian_audit::{AuditError, AuditLog};

use crate::error::ToolError;
use crate::redact::Redactor;
use crate::request::Request;
use crate::spec::{Ended, ExecSpec, Finished, Lane};

/// The maximum recorded length of an argument or message.
const TEXT_KEPT: usize = 4096;
/// The maximum recorded length of a session's name.
const SESSION_KEPT: usize = 128;

/// Writes records, without secrets.
#[derive(Clone)]
pub(crate) struct Recorder {
    log: AuditLog,
    redactor: Redactor,
}

impl Recorder {
    pub(crate) fn new(log: AuditLog, redactor: Redactor) -> Recorder {
        Recorder { log, redactor }
    }

    /// Records that a call was refused before anything ran.
    pub(crate) fn refused(&self, request: &Request, error: &ToolError) -> Result<(), AuditError> {
        let data = json!({
            "command": self.words(&request.shown()),
            "stage": error.stage().name(),
            "code": error.code(),
            "why": self.text(&error.to_string()),
        });
        self.record(&self.session(request), "tool.refused", data)
    }

    /// Stage 7: records that a call is about to run. From here on, a record of its end is due.
    pub(crate) fn start(&self, request: &Request, spec: &ExecSpec) -> Result<Owed, AuditError> {
        let call = Uuid::new_v4();
        let mut command = vec![spec.name.to_string_lossy().into_owned()];
        command.extend(spec.args.iter().map(|word| word.to_string_lossy().into_owned()));
        let data = json!({
            "call": call.to_string(),
            "program": spec.program.to_string_lossy(),
            "command": self.words(&command),
            "cwd": self.text(&spec.cwd.path().to_string_lossy()),
            "jail": spec.confinement.jail.path().to_string_lossy(),
            "write": spec.confinement.write,
            "network": spec.confinement.network,
            "timeoutMs": spec.timeout.as_millis() as u64,
            "lane": request.lane.name(),
        });
        let session = self.session(request);
        self.record(&session, "tool.start", data)?;
        Ok(Owed { recorder: Some(self.clone()), session, call, lane: request.lane })
    }

    fn record(&self, session: &str, event: &'static str, data: Value) -> Result<(), AuditError> {
        let data = match data {
            Value::Object(data) => data,
            _ => Map::new(),
        };
        self.log.record(session, event, data)
    }

    /// Shortens a session's name: callers may claim anything about who they are.
    fn session(&self, request: &Request) -> String {
        shortened(&self.redactor.recorded(&request.session), SESSION_KEPT)
    }

    fn words(&self, words: &[String]) -> Vec<String> {
        self.redactor.words(words).iter().map(|word| shortened(word, TEXT_KEPT)).collect()
    }

    fn text(&self, text: &str) -> String {
        shortened(&self.redactor.recorded(text), TEXT_KEPT)
    }
}

/// The record of a call's end, which is written whatever happens.
pub(crate) struct Owed {
    recorder: Option<Recorder>,
    session: String,
    call: Uuid,
    lane: Lane,
}

impl Owed {
    /// Records that it ran to its end.
    pub(crate) fn complete(mut self, finished: &Finished) -> Result<(), AuditError> {
        let (exit, signal) = match finished.status {
            Ended::Exit(code) => (Some(code), None),
            Ended::Signal(signal) => (None, Some(signal)),
        };
        let data = json!({
            "call": self.call.to_string(),
            "worker": finished.worker,
            "lane": finished.lane.name(),
            "durationMs": finished.duration.as_millis() as u64,
            "exit": exit,
            "signal": signal,
            "truncated": finished.truncated,
            "timedOut": finished.timed_out,
        });
        self.pay("tool.complete", data)
    }

    /// Records that it did not.
    pub(crate) fn failed(mut self, error: &ToolError) -> Result<(), AuditError> {
        let why = self.recorder.as_ref().map(|recorder| recorder.text(&error.to_string()));
        let data = json!({
            "call": self.call.to_string(),
            "lane": self.lane.name(),
            "code": error.code(),
            "why": why,
        });
        self.pay("tool.failed", data)
    }

    fn pay(&mut self, event: &'static str, data: Value) -> Result<(), AuditError> {
        match self.recorder.take() {
            Some(recorder) => recorder.record(&self.session, event, data),
            None => Ok(()),
        }
    }
}

impl Drop for Owed {
    /// Records that the caller stopped waiting for it.
    fn drop(&mut self) {
        let data = json!({ "call": self.call.to_string(), "lane": self.lane.name() });
        // A record that is lost here shows at the next call, which is refused.
        let _ = self.pay("tool.cancelled", data);
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
