//! One command's run, as far as its processes need it: who belongs to it, whether it is over, which limit it hit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::clock::Clock;
use crate::drain::Substitutions;
use crate::tty::Terminal;

/// How many refused programs are remembered by name.
const DENIED_KEPT: usize = 16;

/// Shared by the processes that one command started.
#[derive(Default)]
pub(crate) struct Run {
    over: AtomicBool,
    limits: Mutex<LimitsHit>,
    denied: Mutex<Vec<Vec<u8>>>,
    alive: AtomicUsize,
    deserted: Notify,
    processes: AtomicU64,
    cpu_nanos: AtomicU64,
    bytes_read: AtomicU64,
    bytes_written: AtomicU64,
    terminal: Option<Arc<Terminal>>,
    substitutions: Substitutions,
    clock: Clock,
}

/// Limits that changed what happened, by name. Not all are equal: many programs ignore a full disk, none a missing process.
#[derive(Clone, Copy, Default)]
struct LimitsHit {
    first: Option<&'static str>,
    last: Option<&'static str>,
    /// The first because of which a process could not continue.
    cut_short: Option<&'static str>,
    /// The first because of which a process could not be started.
    refused: Option<&'static str>,
}

impl Run {
    /// Creates a run on a terminal, or without one.
    pub(crate) fn at(terminal: Option<Arc<Terminal>>) -> Run {
        Run { terminal, ..Run::default() }
    }

    /// The terminal its processes were started at.
    pub(crate) fn terminal(&self) -> Option<Arc<Terminal>> {
        self.terminal.clone()
    }

    /// The pipes of `>(…)` that its processes have opened or written to.
    pub(crate) fn substitutions(&self) -> &Substitutions {
        &self.substitutions
    }

    /// The clock of its timeout.
    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// No process may join it any more: it is being killed.
    pub(crate) fn set_over(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// Notes that a limit changed what happened.
    pub(crate) fn hit(&self, limit: &'static str) {
        let mut limits = self.limits.lock();
        limits.first.get_or_insert(limit);
        limits.last = Some(limit);
    }

    /// Returns the limit that ended a process, or else the first that was hit.
    pub(crate) fn limit_hit(&self) -> Option<&'static str> {
        let limits = self.limits.lock();
        limits.cut_short.or(limits.first)
    }

    /// Notes that a process could not be started because of a limit.
    pub(crate) fn refuse(&self, limit: &'static str) {
        self.hit(limit);
        self.limits.lock().refused.get_or_insert(limit);
    }

    /// Returns the limit because of which a process could not be started.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        self.limits.lock().refused
    }

    /// Notes that a process was killed because of the limit that was hit just now.
    pub(crate) fn cut_short(&self) {
        let mut limits = self.limits.lock();
        limits.cut_short = limits.cut_short.or(limits.last);
    }

    pub(crate) fn was_cut_short(&self) -> bool {
        self.limits.lock().cut_short.is_some()
    }

    /// Notes a program that may not be started here.
    pub(crate) fn deny(&self, program: &[u8]) {
        let mut denied = self.denied.lock();
        if denied.len() < DENIED_KEPT && !denied.iter().any(|known| known == program) {
            denied.push(program.to_vec());
        }
    }

    pub(crate) fn denied(&self) -> Vec<Vec<u8>> {
        self.denied.lock().clone()
    }

    /// Counts a body of one of its processes, until the returned value is dropped.
    pub(crate) fn enter(self: &Arc<Run>) -> Alive {
        self.alive.fetch_add(1, Ordering::SeqCst);
        Alive(self.clone())
    }

    /// Waits until no body of its processes is left, not even one that is being dropped.
    pub(crate) async fn deserted(&self) {
        loop {
            let mut deserted = std::pin::pin!(self.deserted.notified());
            deserted.as_mut().enable();
            if self.alive.load(Ordering::SeqCst) == 0 {
                return;
            }
            deserted.await;
        }
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.alive.load(Ordering::SeqCst) == 0
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

/// A body of a process of a run.
pub(crate) struct Alive(Arc<Run>);

impl Drop for Alive {
    fn drop(&mut self) {
        if self.0.alive.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.0.deserted.notify_waiters();
        }
    }
}

/// The resources a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of processes that have ended and of the shell.
    pub cpu_nanos: u64,
    /// Number of processes started.
    pub processes: u64,
    /// Bytes read by `read` calls.
    pub bytes_read: u64,
    /// Bytes written by `write` calls.
    pub bytes_written: u64,
}
