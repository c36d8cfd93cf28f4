//! A sandbox's turn on the processors: whether its processes run at all, and what share they have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::schedule::SandboxId;
use crate::tick::Haste;
use crate::turns::Turns;

/// What every task of a sandbox passes before it runs.
pub(crate) struct Gate {
    closed: AtomicBool,
    /// The same, for those who wait for a change.
    changed: watch::Sender<bool>,
    turns: Arc<Turns>,
    sandbox: SandboxId,
    haste: Haste,
}

impl Gate {
    /// For a new sandbox. One that is `nice` has the share of one that is not, divided by one more than this.
    pub(crate) fn new(nice: u8, turns: &Arc<Turns>) -> Gate {
        let sandbox = turns.add_sandbox(1 + u64::from(nice));
        let (closed, changed) = (AtomicBool::new(false), watch::Sender::new(false));
        Gate { closed, changed, turns: turns.clone(), sandbox, haste: Haste::default() }
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Its sandbox's number, which no other sandbox of the kernel ever has.
    pub(crate) fn sandbox(&self) -> SandboxId {
        self.sandbox
    }

    /// Makes those who run now yield at once: one of its processes is to run, or to be ended.
    pub(crate) fn hurry(&self) {
        self.turns.ticker().hurry(&self.haste);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Closes or opens it. Whoever opens it must let the tasks go on.
    pub(crate) fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::SeqCst);
        self.changed.send_replace(closed);
    }

    /// Whether it is closed, for those who wait for a change.
    pub(crate) fn changes(&self) -> watch::Receiver<bool> {
        self.changed.subscribe()
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.turns.remove_sandbox(self.sandbox);
    }
}
