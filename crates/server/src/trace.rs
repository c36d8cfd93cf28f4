//! One line of the log, and a few numbers, for each request.
//!
//! Requests that create, run or end something are logged at `info`, and so is every refusal; all others at `debug`. The
//! commands and contents that a client sends are not in the log, only what it calls things and how long they took.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::methods::Answer;
use crate::metrics::Metrics;
use crate::rpc::RpcError;

/// A request that is being served.
pub(crate) struct Trace {
    metrics: Arc<Metrics>,
    client: u64,
    request: String,
    method: String,
    sandbox: String,
    since: Instant,
}

/// How much of a name from a client is logged.
const SHOWN: usize = 64;

impl Trace {
    pub(crate) fn new(
        metrics: Arc<Metrics>,
        client: u64,
        id: Option<&Value>,
        method: &str,
        sandbox: Option<&str>,
    ) -> Trace {
        metrics.request();
        let request = id.map_or_else(String::new, |id| shown(&id.to_string()));
        let (method, sandbox) = (shown(method), shown(sandbox.unwrap_or("root")));
        Trace { metrics, client, request, method, sandbox, since: Instant::now() }
    }

    /// It was answered with this.
    pub(crate) fn end(self, outcome: &Result<Answer, RpcError>) {
        match outcome {
            Err(error) => self.refused(error),
            Ok(answer) => self.done(answer),
        }
    }

    /// It was refused.
    pub(crate) fn refused(self, error: &RpcError) {
        self.metrics.refused(error.code);
        if self.method == "run" {
            self.metrics.outcome("refused");
        }
        let Trace { client, request, method, sandbox, .. } = &self;
        let (ms, code, why) = (self.milliseconds(), error.code, shown(&error.message));
        tracing::info!(client, %request, %method, %sandbox, ms, code, why, "refused");
    }

    fn done(self, answer: &Answer) {
        let ms = self.milliseconds();
        let Trace { client, request, method, sandbox, .. } = &self;
        match (method.as_str(), answer) {
            ("run", Answer::Value(result)) => self.ran(result),
            ("create" | "kill" | "sandbox.create" | "sandbox.destroy" | "sandbox.remove", _) => {
                tracing::info!(client, %request, %method, %sandbox, ms, "done");
            }
            ("sandbox.fork", Answer::Value(result)) => {
                let forks = result["sandboxIds"].as_array().map_or(1, Vec::len);
                let first = result["sandboxId"].as_str().unwrap_or_default();
                tracing::info!(client, %request, %method, %sandbox, ms, forks, first, "done");
            }
            _ => tracing::debug!(client, %request, %method, %sandbox, ms, "done"),
        }
    }

    fn ran(&self, result: &Value) {
        let seconds = result["executionTimeMs"].as_f64().unwrap_or_default() / 1000.0;
        let ran = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let waited = self.since.elapsed().saturating_sub(ran);
        let exit_code = result["exitCode"].as_i64().unwrap_or_default();
        let (class, limit) = (result["errorClass"].as_str(), result["limit"].as_str());
        let outcome = match class {
            Some("TIMEOUT") => "timeout",
            Some("CANCELLED") => "cancelled",
            Some("CAPABILITY_DENIED") => "denied",
            Some(_) => "limit",
            None if exit_code == 0 => "success",
            None => "failure",
        };
        self.metrics.outcome(outcome);
        self.metrics.ran.add(ran);
        self.metrics.waited.add(waited);
        if let Some(limit) = limit {
            self.metrics.limit(limit);
        }
        let Trace { client, request, method, sandbox, .. } = self;
        let (ms, waited_ms) = (ran.as_millis(), waited.as_millis());
        let limit = limit.unwrap_or("none");
        tracing::info!(client, %request, %method, %sandbox, ms, waited_ms, exit_code, outcome, limit, "done");
    }

    fn milliseconds(&self) -> u128 {
        self.since.elapsed().as_millis()
    }
}

/// The beginning of a text, on one line.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
}
