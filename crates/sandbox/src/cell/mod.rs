//! Sandboxes in jailed processes: the second wall around hostile tenants (docs/security.md).
//!
//! [`Cell::start`] starts one, from a program that calls [`main`] first of all. This is the first slice of it: sandboxes in a
//! cell are created, forked, destroyed, and run commands. They have no mounts, extensions, network, audit or store.

mod worker;

use std::time::{Duration, Instant};

use wardian_cell::message::Class;
use wardian_kernel::{Order, Stream};

pub use wardian_cell::message::{Piece, RunEnd, RunSpec, SandboxId, SandboxSpec, Stream as CellStream};
pub use wardian_cell::{Cell, CellError, CellOptions, Event, Required, Run as CellRun};
pub use worker::main;

use crate::limit::Limit;
use crate::options::Limits;
use crate::result::{ErrorClass, RunResult, Truncated, Usage};

/// Returns limits as a cell is told them.
pub fn limits(limits: &Limits) -> wardian_cell::message::Limits {
    wardian_cell::message::Limits {
        stdout_bytes: limits.stdout_bytes as u64,
        stderr_bytes: limits.stderr_bytes as u64,
        command_bytes: limits.command_bytes as u64,
        fs_bytes: limits.fs_bytes,
        file_count: limits.file_count,
        memory_bytes: limits.memory_bytes,
        processes: limits.processes as u64,
        open_files: limits.open_files as u64,
    }
}

/// What a run in a cell has reported so far, to become a result like any other.
#[derive(Debug)]
pub struct Collected {
    keeps: bool,
    started: Instant,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    order: Order,
    truncated: Truncated,
}

impl Collected {
    /// Keeps the output for the result, or leaves it to whoever follows the run.
    pub fn new(keeps: bool) -> Collected {
        Collected {
            keeps,
            started: Instant::now(),
            stdout: Vec::new(),
            stderr: Vec::new(),
            order: Order::default(),
            truncated: Truncated::default(),
        }
    }

    /// Adds a piece of output.
    pub fn add(&mut self, piece: &Piece) {
        let (stream, kept, cut) = match piece.stream {
            CellStream::Stdout => (Stream::Stdout, &mut self.stdout, &mut self.truncated.stdout),
            CellStream::Stderr => (Stream::Stderr, &mut self.stderr, &mut self.truncated.stderr),
        };
        *cut |= piece.cut;
        if self.keeps {
            kept.extend_from_slice(&piece.bytes);
            self.order.add(stream, piece.bytes.len());
            if piece.cut {
                self.order.cut(stream);
            }
        }
    }

    /// Returns the result of a run that ended. A limit that does not exist is not believed.
    pub fn ended(self, end: RunEnd) -> RunResult {
        let error_class = end.class.map(|class| match class {
            Class::Timeout => ErrorClass::Timeout,
            Class::Cancelled => ErrorClass::Cancelled,
            Class::LimitExceeded => ErrorClass::LimitExceeded,
            Class::CapabilityDenied => ErrorClass::CapabilityDenied,
        });
        RunResult {
            exit_code: end.exit_code,
            stdout: self.stdout,
            stderr: if self.keeps { self.stderr } else { end.note },
            order: self.order,
            duration: end.duration,
            waited: end.waited,
            truncated: self.truncated,
            error_class,
            limit: end.limit.as_deref().and_then(Limit::named),
            usage: Usage {
                cpu_ms: end.cpu_ms,
                peak_memory_bytes: end.peak_memory_bytes,
                processes: end.processes,
                bytes_read: end.bytes_read,
                bytes_written: end.bytes_written,
            },
        }
    }

    /// Returns the result of a run whose cell is gone: exit code 137, and what was written before. The sandbox is gone as
    /// well, and standard error says why.
    pub fn crashed(mut self, why: &str) -> RunResult {
        let apart = if self.stderr.last().is_some_and(|&last| last != b'\n') { "\n" } else { "" };
        let note = format!("{apart}wardian: the sandbox is lost, its process has ended: {why}\n");
        self.order.add(Stream::Stderr, note.len());
        self.stderr.extend_from_slice(note.as_bytes());
        RunResult {
            exit_code: 137,
            stdout: self.stdout,
            stderr: self.stderr,
            order: self.order,
            duration: self.started.elapsed(),
            waited: Duration::ZERO,
            truncated: self.truncated,
            error_class: Some(ErrorClass::WorkerCrashed),
            limit: None,
            usage: Usage::default(),
        }
    }
}
