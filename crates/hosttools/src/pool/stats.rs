//! The pool's statistics.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use rustix::process::Pid;
use serde::Serialize;

use super::Shared;
use crate::error::ToolError;
use crate::spec::{Finished, Lane};
use crate::worker::descendants_of_each;

/// More processes than this at once are unusual, and worth a warning.
const MANY_CHILDREN: usize = 50;

/// The state of the pool at one moment.
///
/// In JSON, as in `/health`: `{"interactive": {"active", "idle", "queued"}, "system": {…}, "totals": {"completed",
/// "failed", "timedOut", "cancelled", "avgExecMs"}, "children"}`, and `"warning"` if there is one.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Stats {
    /// The lane for agents and people.
    pub interactive: LaneStats,
    /// The lane for Wardian's own housekeeping.
    pub system: LaneStats,
    /// Totals since the pool was started.
    pub totals: Totals,
    /// Processes of programs and what they have started, alive now.
    pub children: usize,
    /// A warning, if something needs attention.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The state of one lane at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LaneStats {
    /// Workers with a running program.
    pub active: usize,
    /// Idle workers.
    pub idle: usize,
    /// Calls that wait for a worker.
    pub queued: usize,
}

/// The outcomes of all calls that got a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Totals {
    /// Programs that exited by themselves, whatever their exit code.
    pub completed: u64,
    /// Programs that were not started, or whose worker was lost.
    pub failed: u64,
    /// Programs that timed out.
    pub timed_out: u64,
    /// Programs that were killed because no one waited for them any more.
    pub cancelled: u64,
    /// Average run time of those that completed.
    pub avg_exec_ms: f64,
}

#[derive(Default)]
pub(super) struct Counters {
    active: [AtomicUsize; 2],
    completed: AtomicU64,
    failed: AtomicU64,
    timed_out: AtomicU64,
    cancelled: AtomicU64,
    microseconds: AtomicU64,
}

impl Counters {
    pub fn active(&self, lane: Lane) -> usize {
        self.active[index(lane)].load(Relaxed)
    }

    pub fn begin(&self, lane: Lane) {
        self.active[index(lane)].fetch_add(1, Relaxed);
    }

    /// Counts a call that has ended, or whose caller has gone away (`cancelled`).
    pub fn end(&self, lane: Lane, result: &Result<Finished, ToolError>, cancelled: bool) {
        self.active[index(lane)].fetch_sub(1, Relaxed);
        match result {
            _ if cancelled => self.cancelled.fetch_add(1, Relaxed),
            Ok(finished) if finished.timed_out => self.timed_out.fetch_add(1, Relaxed),
            Ok(finished) => {
                self.microseconds.fetch_add(microseconds(finished.duration), Relaxed);
                self.completed.fetch_add(1, Relaxed)
            }
            Err(_) => self.failed.fetch_add(1, Relaxed),
        };
    }

    fn totals(&self) -> Totals {
        let completed = self.completed.load(Relaxed);
        let milliseconds = self.microseconds.load(Relaxed) as f64 / 1000.0;
        Totals {
            completed,
            failed: self.failed.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            cancelled: self.cancelled.load(Relaxed),
            avg_exec_ms: if completed == 0 { 0.0 } else { milliseconds / completed as f64 },
        }
    }
}

fn index(lane: Lane) -> usize {
    match lane {
        Lane::Interactive => 0,
        Lane::System => 1,
    }
}

fn microseconds(duration: Duration) -> u64 {
    duration.as_micros().try_into().unwrap_or(u64::MAX)
}

impl Shared {
    pub(super) fn stats(&self) -> Stats {
        let children = self.children();
        let warning =
            (children > MANY_CHILDREN).then(|| format!("{children} processes of programs are alive"));
        if let Some(warning) = &warning {
            tracing::warn!("{warning}");
        }
        Stats {
            interactive: self.lane_stats(Lane::Interactive),
            system: self.lane_stats(Lane::System),
            totals: self.counters.totals(),
            children,
            warning,
        }
    }

    fn lane_stats(&self, lane: Lane) -> LaneStats {
        let (slots, active) = (self.lane(lane).slots, self.counters.active(lane));
        LaneStats { active, idle: slots.saturating_sub(active), queued: self.lane(lane).waiting() }
    }

    /// Below each keeper is one worker, and below that what it has started.
    fn children(&self) -> usize {
        let helpers = self.helpers.lock().clone();
        let keepers: Vec<Pid> =
            helpers.into_iter().filter_map(|keeper| Pid::from_raw(keeper as i32)).collect();
        let workers_and_below = descendants_of_each(&keepers);
        workers_and_below.iter().map(|below| below.len().saturating_sub(1)).sum()
    }
}
