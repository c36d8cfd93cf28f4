//! The worker pool: runs native programs for many callers, without blocking any of them.
//!
//! ```text
//!             ┌ interactive: queue ─► slot ══ helper ─► program
//!  run(…) ──► ┤                   └─► slot ══ helper
//!             └ system:      queue ─► slot ══ helper      never serves the others
//! ```
//!
//! A slot is a task of the caller's runtime with one helper process (see [`crate::worker`]) that runs one program at a
//! time. The pool owns the timeouts: SIGTERM at the timeout, SIGKILL after a grace period, and a helper that then does
//! not confirm that everything is gone is replaced. A call ends when its program and all descendants have ended: what is
//! left when the program itself exits is killed immediately, so nothing runs unwatched and no one waits for it.
//!
//! Read `queue` (who is next), `slot` (a helper and its calls), `call` (one program from start to end), `helper`,
//! `output`, then this file, which connects them.

mod call;
mod helper;
mod output;
mod queue;
mod retry;
mod slot;
mod stats;

pub use retry::Backoff;
pub use stats::{LaneStats, Stats, Totals};

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use crate::config::{Mode, PoolConfig};
use crate::error::ToolError;
use crate::spec::{ExecSpec, Finished, Lane, OutputSink};
use helper::{Command, Helper};
use queue::Queue;
use stats::Counters;

/// Runs native programs. Cheap to clone: all clones are one pool, which is closed with the last of them.
///
/// Its helpers are this same program, called with `__worker`. A program that does not support that argument names
/// another in [`PoolConfig::worker`] (`wardian-worker` is built with this crate), or calls [`crate::worker::main`]
/// itself:
///
/// ```no_run
/// // First of all in `main`, before there is any thread or runtime.
/// if std::env::args_os().nth(1).is_some_and(|word| word == "__worker") {
///     wardian_hosttools::worker::main();
/// }
/// ```
#[derive(Clone)]
pub struct WorkerPool {
    shared: Arc<Shared>,
    _last_one_ends_it: Arc<EndOnDrop>,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool").field("mode", &self.shared.mode).finish_non_exhaustive()
    }
}

/// What the slots and the callers share.
pub(crate) struct Shared {
    mode: Mode,
    command: Command,
    patience: Patience,
    interactive: LaneQueue,
    system: LaneQueue,
    counters: Counters,
    helpers: Mutex<Vec<u32>>,
    next_worker: AtomicU32,
    phase: watch::Sender<Phase>,
}

/// The phases of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Open,
    /// Accepts nothing new; running programs are asked to end.
    Closing,
    /// All helpers are stopped, with whatever they run.
    Closed,
}

/// Waits until the pool has reached this phase.
pub(crate) async fn reached(phase: &mut watch::Receiver<Phase>, far: Phase) {
    // Without a sender there is no pool.
    let _ = phase.wait_for(|phase| *phase >= far).await;
}

/// How long the pool waits for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub kill: Duration,
    pub confirm: Duration,
    pub shutdown: Duration,
}

/// A day is long enough for any of them, and can be added to any time.
fn patience(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds).min(Duration::from_secs(24 * 3600))
}

/// How long helpers may take to end once all of them must.
const LAST_MOMENTS: Duration = Duration::from_secs(5);

/// One lane: the waiting calls, and what wakes a slot.
struct LaneQueue {
    slots: usize,
    queue: Mutex<Queue<Call>>,
    arrived: Notify,
}

/// A call that waits for a slot.
pub(crate) struct Call {
    pub spec: ExecSpec,
    pub lane: Lane,
    pub output: Option<OutputSink>,
    pub answer: Answer,
}

/// Where the caller waits; closed when the caller has gone away.
pub(crate) type Answer = oneshot::Sender<Result<Finished, ToolError>>;

struct EndOnDrop(Arc<Shared>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.phase.send_replace(Phase::Closed);
    }
}

impl WorkerPool {
    /// Starts a pool on the current runtime.
    pub fn start(mode: Mode, config: &PoolConfig) -> Result<WorkerPool, ToolError> {
        let shared = Arc::new(Shared {
            mode,
            command: Command::of(config)?,
            patience: Patience {
                kill: patience(config.kill_grace_ms),
                confirm: patience(config.confirm_grace_ms),
                shutdown: patience(config.shutdown_grace_ms),
            },
            interactive: LaneQueue::new(config.interactive_workers(), config.queue_depth),
            system: LaneQueue::new(config.system.max(1), config.queue_depth),
            counters: Counters::default(),
            helpers: Mutex::default(),
            next_worker: AtomicU32::new(1),
            phase: watch::Sender::new(Phase::Open),
        });
        if mode == Mode::Worker {
            for lane in [Lane::Interactive, Lane::System] {
                for _ in 0..shared.lane(lane).slots {
                    tokio::spawn(slot::serve(shared.clone(), lane, shared.phase.subscribe()));
                }
            }
        }
        Ok(WorkerPool { _last_one_ends_it: Arc::new(EndOnDrop(shared.clone())), shared })
    }

    /// Runs a program in its lane and returns when it and all its descendants have ended. `session` identifies the
    /// caller: when many calls wait, sessions take turns. Dropping the future kills the program.
    pub async fn run(
        &self,
        spec: ExecSpec,
        lane: Lane,
        session: &str,
        output: Option<OutputSink>,
    ) -> Result<Finished, ToolError> {
        let (answer, answered) = oneshot::channel();
        let call = Call { spec, lane, output, answer };
        match self.shared.mode {
            Mode::Disabled => return Err(ToolError::Disabled("the mode is 'disabled'".to_owned())),
            Mode::Worker => self.shared.lane(lane).enqueue(&self.shared, session, call)?,
            Mode::ChildProcess if *self.shared.phase.borrow() > Phase::Open => {
                return Err(ToolError::ShuttingDown);
            }
            Mode::ChildProcess => {
                drop(tokio::spawn(slot::serve_one(self.shared.clone(), call, self.shared.phase.subscribe())));
            }
        }
        answered.await.unwrap_or(Err(ToolError::ShuttingDown))
    }

    /// Accepts nothing new, rejects queued calls, stops running ones; returns when all helpers are gone, by force if
    /// necessary.
    pub async fn shutdown(&self) {
        let shared = &self.shared;
        shared
            .phase
            .send_if_modified(|phase| std::mem::replace(phase, (*phase).max(Phase::Closing)) < *phase);
        for lane in [&shared.interactive, &shared.system] {
            for call in lane.queue.lock().drain() {
                let _ = call.answer.send(Err(ToolError::ShuttingDown));
            }
        }
        // The phase has a listener for as long as a slot serves.
        let _ = tokio::time::timeout(shared.patience.shutdown, shared.phase.closed()).await;
        shared.phase.send_replace(Phase::Closed);
        // Helpers go in moments now; a kernel that does not let one go must not keep the caller as well.
        let _ = tokio::time::timeout(LAST_MOMENTS, shared.phase.closed()).await;
    }

    /// Returns the pool's statistics. Counting its processes reads `/proc`.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }
}

impl Shared {
    fn lane(&self, lane: Lane) -> &LaneQueue {
        match lane {
            Lane::Interactive => &self.interactive,
            Lane::System => &self.system,
        }
    }

    /// Starts a new helper, identified by its number and counted until it ends.
    async fn start_helper(self: &Arc<Shared>) -> std::io::Result<Helper> {
        let number = self.next_worker.fetch_add(1, Ordering::Relaxed);
        Helper::start(self.clone(), number).await
    }
}

impl LaneQueue {
    fn new(slots: usize, depth: usize) -> LaneQueue {
        LaneQueue { slots, queue: Mutex::new(Queue::new(depth)), arrived: Notify::new() }
    }

    fn enqueue(&self, shared: &Shared, session: &str, call: Call) -> Result<(), ToolError> {
        let mut queue = self.queue.lock();
        // Looked at under the lock, so that a shutdown sees every call that came before it.
        if *shared.phase.borrow() > Phase::Open {
            return Err(ToolError::ShuttingDown);
        }
        let idle = self.slots.saturating_sub(shared.counters.active(call.lane));
        // Who has gone away again does not keep others out.
        queue.retain(|waiting| !waiting.answer.is_closed());
        let gave_way =
            queue.push(session, call, idle).map_err(|queued| ToolError::WorkerUnavailable { queued })?;
        let queued = queue.len();
        drop(queue);
        if let Some(gave_way) = gave_way {
            let _ = gave_way.answer.send(Err(ToolError::WorkerUnavailable { queued }));
        }
        self.arrived.notify_one();
        Ok(())
    }

    /// Returns how many calls wait, excluding those whose callers have gone away.
    fn waiting(&self) -> usize {
        let mut queue = self.queue.lock();
        queue.retain(|waiting| !waiting.answer.is_closed());
        queue.len()
    }

    /// Returns the next call, as soon as there is one. From then on its slot counts as busy.
    async fn next(&self, shared: &Shared) -> Call {
        loop {
            let arrived = self.arrived.notified();
            {
                let mut queue = self.queue.lock();
                // Who has gone away again wants nothing run.
                queue.retain(|waiting| !waiting.answer.is_closed());
                if let Some(call) = queue.pop() {
                    shared.counters.begin(call.lane);
                    if queue.len() > 0 {
                        // One wake-up may have stood for two arrivals.
                        self.arrived.notify_one();
                    }
                    return call;
                }
            }
            arrived.await;
        }
    }
}
