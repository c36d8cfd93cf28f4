//! What a run says.

use std::time::Duration;

use wardian_kernel::{Finished, Order, Part, Verdict};

use crate::options::Limits;

/// What came of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// The script's exit code; 124 after a timeout, 125 when cancelled.
    pub exit_code: u8,
    /// What it wrote to standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// What it wrote to standard error, up to the limit, and what we had to say.
    pub stderr: Vec<u8>,
    /// The order in which the two were written; see [`RunResult::output`].
    pub order: Order,
    /// How long it took.
    pub duration: Duration,
    /// Which outputs are longer than what was kept or handed on.
    pub truncated: Truncated,
    /// What kept it from running as it was meant to.
    pub error_class: Option<ErrorClass>,
    /// The first limit that was hit, by its name in the protocol.
    pub limit: Option<&'static str>,
    /// What it used.
    pub usage: Usage,
}

/// Which outputs were cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Truncated {
    /// Standard output.
    pub stdout: bool,
    /// Standard error.
    pub stderr: bool,
}

/// Why a run did not go as it was meant to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// Its time was up.
    Timeout,
    /// Somebody cancelled it.
    Cancelled,
    /// A limit was passed and we had to end it, or it never ran.
    LimitExceeded,
    /// It tried something it may not do.
    CapabilityDenied,
}

impl ErrorClass {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::Timeout => "TIMEOUT",
            ErrorClass::Cancelled => "CANCELLED",
            ErrorClass::LimitExceeded => "LIMIT_EXCEEDED",
            ErrorClass::CapabilityDenied => "CAPABILITY_DENIED",
        }
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Milliseconds on a processor.
    pub cpu_ms: u64,
    /// The most memory the sandbox's processes had at once during the run, as the limit counts it.
    pub peak_memory_bytes: u64,
    /// Processes started.
    pub processes: u64,
    /// Bytes through `read` calls.
    pub bytes_read: u64,
    /// Bytes through `write` calls.
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

    /// A command that is too long to be run.
    pub(crate) fn too_long(len: usize, limit: usize) -> RunResult {
        RunResult {
            exit_code: 1,
            stdout: Vec::new(),
            stderr: format!("wardian: command too long ({len} bytes, limit {limit})\n").into_bytes(),
            order: Order::default(),
            duration: Duration::ZERO,
            truncated: Truncated::default(),
            error_class: Some(ErrorClass::LimitExceeded),
            limit: Some("commandBytes"),
            usage: Usage::default(),
        }
    }
}

/// The exit code and class that the end of a command comes to.
pub(crate) fn judge(finished: &Finished) -> (u8, Option<ErrorClass>) {
    let limited = finished.cut_short && finished.limit.is_some();
    let lesser = if limited {
        Some(ErrorClass::LimitExceeded)
    } else {
        (!finished.denied.is_empty()).then_some(ErrorClass::CapabilityDenied)
    };
    match finished.verdict {
        Verdict::Exited(code) => (code, lesser),
        Verdict::TimedOut => (124, Some(ErrorClass::Timeout)),
        Verdict::Cancelled => (125, Some(ErrorClass::Cancelled)),
        Verdict::Killed(_) if finished.limit.is_some() => (137, Some(ErrorClass::LimitExceeded)),
        Verdict::Killed(signal) => (128 + signal, lesser),
    }
}

/// What we have to say about a command at the end of its standard error.
pub(crate) fn note(finished: &Finished, timeout: Option<Duration>, limits: &Limits) -> Option<String> {
    let mut lines: Vec<String> = finished
        .denied
        .iter()
        .map(|tool| format!("wardian: tool not allowed: {}", String::from_utf8_lossy(tool)))
        .collect();
    let reached = |limit| format!("{limit} limit of {} reached", limits.value(limit));
    match (finished.verdict, finished.limit) {
        (Verdict::TimedOut, _) => {
            lines.push(format!("wardian: timed out after {} ms", timeout.unwrap_or_default().as_millis()));
        }
        (Verdict::Cancelled, _) => lines.push("wardian: cancelled".to_owned()),
        (Verdict::Killed(_), Some(limit)) => {
            lines.push(format!("wardian: the shell was ended: {}", reached(limit)));
        }
        (Verdict::Killed(signal), None) => {
            lines.push(format!("wardian: the shell was ended by signal {signal}"));
        }
        (Verdict::Exited(_), Some(limit)) if finished.cut_short => {
            lines.push(format!("wardian: a process was ended: {}", reached(limit)));
        }
        (Verdict::Exited(_), _) => {}
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
