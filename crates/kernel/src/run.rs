//! One command's run, as far as its processes must know: who belongs to it, whether it is over, which limit it hit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::tty::Terminal;

/// Shared by the processes that one command started.
#[derive(Default)]
pub(crate) struct Run {
    over: AtomicBool,
    limit: Mutex<Option<&'static str>>,
    processes: AtomicU64,
    cpu_nanos: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    terminal: Option<Arc<Terminal>>,
}

impl Run {
    /// A run at a terminal, or at none.
    pub(crate) fn at(terminal: Option<Arc<Terminal>>) -> Run {
        Run { terminal, ..Run::default() }
    }

    /// The terminal its processes were started at.
    pub(crate) fn terminal(&self) -> Option<Arc<Terminal>> {
        self.terminal.clone()
    }

    /// No process may join it any more: it is being ended.
    pub(crate) fn set_over(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Notes that a limit changed what happened; the first one is reported.
    pub(crate) fn hit(&self, limit: &'static str) {
        self.limit.lock().get_or_insert(limit);
    }

    pub(crate) fn limit_hit(&self) -> Option<&'static str> {
        *self.limit.lock()
    }

    pub(crate) fn count_process(&self) {
        self.processes.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_cpu(&self, nanos: u64) {
        self.cpu_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn count_read(&self, bytes: usize) {
        self.bytes_read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_written(&self, bytes: usize) {
        self.bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn usage(&self) -> Usage {
        Usage {
            cpu_nanos: self.cpu_nanos.load(Ordering::Relaxed),
            processes: self.processes.load(Ordering::Relaxed),
            bytes_read: self.bytes_read.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
        }
    }
}

/// What a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Time on a processor, of processes that have ended and of the shell.
    pub cpu_nanos: u64,
    /// Processes started.
    pub processes: u64,
    /// Bytes that went through `read` calls.
    pub bytes_read: u64,
    /// Bytes that went through `write` calls.
    pub bytes_written: u64,
}
