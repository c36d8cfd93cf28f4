//! The result of a run.

use std::time::Duration;

use wardian_kernel::{Finished, Order, Part, Verdict};

use crate::limit::Limit;
use crate::options::Limits;

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunResult {
    /// The script's exit code; 124 after a timeout, 125 if cancelled.
    pub exit_code: u8,
    /// Its standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// Its standard error, up to the limit, followed by Wardian's own messages.
    pub stderr: Vec<u8>,
    /// The order in which the two were written; see [`RunResult::output`].
    pub order: Order,
    /// How long it took.
    pub duration: Duration,
    /// How long of that it waited for programs that ship with Wardian to be compiled, because it was the first on this
    /// machine to use them. Not part of its timeout.
    pub waited: Duration,
    /// Which outputs are longer than what was kept or passed on.
    pub truncated: Truncated,
    /// Why it did not run normally, if it did not.
    pub error_class: Option<ErrorClass>,
    /// The limit that ended a process, or else the first that was hit.
    pub limit: Option<Limit>,
    /// The resources it used.
    pub usage: Usage,
}

/// Which outputs were truncated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Truncated {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// Why a command did not run normally.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorClass {
    /// It timed out.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It exceeded a limit and was killed, or was not run at all.
    LimitExceeded,
    /// It tried something it is not allowed to do.
    CapabilityDenied,
    /// The process that held its sandbox ended: see [`crate::cell`].
    WorkerCrashed,
}

impl ErrorClass {
    /// Returns its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Timeout => "TIMEOUT",
            ErrorClass::Cancelled => "CANCELLED",
            ErrorClass::LimitExceeded => "LIMIT_EXCEEDED",
            ErrorClass::CapabilityDenied => "CAPABILITY_DENIED",
            ErrorClass::WorkerCrashed => "WORKER_CRASHED",
        }
    }
}

/// The resources a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Peak memory of the sandbox's processes during the run, as the limit counts it.
    pub peak_memory_bytes: u64,
    /// Number of processes started.
    pub processes: u64,
    /// Bytes read by `read` calls.
    pub bytes_read: u64,
    /// Bytes written by `write` calls.
    pub bytes_written: u64,
}

impl RunResult {
    /// What was kept of both streams, in the order in which it was written. Where one was cut, a line says so.
    pub fn output(&self) -> Vec<u8> {
        let mut output = Vec::with_capacity(self.stdout.len() + self.stderr.len());
        for part in self.parts() {
            match part {
                Part::Bytes(_, bytes) => output.extend_from_slice(bytes),
                Part::Cut(stream) => {
                    if output.last().is_some_and(|&last| last != b'\n') {
                        output.push(b'\n');
                    }
                    let mark =
                        format!("[wardian: {} is longer than its limit and was cut here]\n", stream.name());
                    output.extend_from_slice(mark.as_bytes());
                }
            }
        }
        output
    }

    /// The same in parts, each with its stream.
    pub fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        self.order.parts(&self.stdout, &self.stderr)
    }

    /// Returns the result of a command that was cancelled before it began.
    pub fn cancelled() -> RunResult {
        RunResult::not_run(125, ErrorClass::Cancelled, "wardian: cancelled\n".to_owned())
    }

    /// The result of a command that is too long to run.
    pub(crate) fn too_long(len: usize, limit: usize) -> RunResult {
        let message = format!("wardian: command too long ({len} bytes, limit {limit})\n");
        let result = RunResult::not_run(1, ErrorClass::LimitExceeded, message);
        RunResult { limit: Some(Limit::CommandBytes), ..result }
    }

    fn not_run(exit_code: u8, class: ErrorClass, message: String) -> RunResult {
        RunResult {
            exit_code,
            stdout: Vec::new(),
            stderr: message.into_bytes(),
            order: Order::default(),
            duration: Duration::ZERO,
            waited: Duration::ZERO,
            truncated: Truncated::default(),
            error_class: Some(class),
            limit: None,
            usage: Usage::default(),
        }
    }
}

/// How a command ended, and what it was refused.
pub(crate) struct Outcome {
    pub(crate) finished: Finished,
    /// What it was not allowed to reach, each as a line for people.
    pub(crate) unreachable: Vec<String>,
}

/// The exit code and class for the way a command ended.
pub(crate) fn judge(Outcome { finished, unreachable }: &Outcome) -> (u8, Option<ErrorClass>) {
    let limited = finished.cut_short && finished.limit.is_some();
    let lesser = if limited {
        Some(ErrorClass::LimitExceeded)
    } else {
        let denied = !finished.denied.is_empty() || !unreachable.is_empty();
        denied.then_some(ErrorClass::CapabilityDenied)
    };
    match finished.verdict {
        Verdict::Exited(code) => (code, lesser),
        Verdict::TimedOut => (124, Some(ErrorClass::Timeout)),
        Verdict::Cancelled => (125, Some(ErrorClass::Cancelled)),
        Verdict::Killed(_) if finished.limit.is_some() => (137, Some(ErrorClass::LimitExceeded)),
        Verdict::Killed(signal) => (128 + signal, lesser),
    }
}

/// Wardian's own message about a command, appended to its standard error.
pub(crate) fn note(
    Outcome { finished, unreachable }: &Outcome,
    who: &str,
    timeout: Option<Duration>,
    limits: &Limits,
) -> Option<String> {
    let tools = finished.denied.iter();
    let tools = tools.map(|tool| format!("wardian: tool not allowed: {}", String::from_utf8_lossy(tool)));
    let hosts = unreachable.iter().map(|line| format!("wardian: {line}"));
    let mut lines: Vec<String> = tools.chain(hosts).collect();
    let reached = |name| match Limit::named(name).and_then(|limit| limits.value(limit)) {
        Some(value) => format!("{name} limit of {value} reached"),
        None => format!("{name} limit reached"),
    };
    match (finished.verdict, finished.limit) {
        (Verdict::TimedOut, _) => {
            lines.push(format!("wardian: timed out after {} ms", timeout.unwrap_or_default().as_millis()));
        }
        (Verdict::Cancelled, _) => lines.push("wardian: cancelled".to_owned()),
        (Verdict::Killed(_), Some(limit)) => {
            lines.push(format!("wardian: {who} was killed: {}", reached(limit)));
        }
        (Verdict::Killed(signal), None) => {
            lines.push(format!("wardian: {who} was killed by signal {signal}"));
        }
        (Verdict::Exited(_), Some(limit)) if finished.cut_short => {
            lines.push(format!("wardian: a process was killed: {}", reached(limit)));
        }
        (Verdict::Exited(_), _) => {
            let refused = finished.refused.map(reached);
            lines.extend(refused.map(|limit| format!("wardian: a process could not be started: {limit}")));
        }
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
