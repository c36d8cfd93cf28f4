//! A sandbox's turn on the processors: whether its processes run at all, and what share they get.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

use crate::schedule::{FamilyId, SandboxId};
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
    /// Creates the gate of a new sandbox of this family. Its share is divided by 1 + `nice`.
    pub(crate) fn new(family: FamilyId, nice: u8, turns: &Arc<Turns>) -> Gate {
        let sandbox = turns.add_sandbox(family, 1 + u64::from(nice));
        let (closed, changed) = (AtomicBool::new(false), watch::Sender::new(false));
        Gate { closed, changed, turns: turns.clone(), sandbox, haste: Haste::default() }
    }

    pub(crate) fn turns(&self) -> &Turns {
        &self.turns
    }

    /// Returns its sandbox's number, which is unique in the kernel.
    pub(crate) fn sandbox(&self) -> SandboxId {
        self.sandbox
    }

    /// Makes running guests yield immediately: one of its processes is to run, or to be killed.
    pub(crate) fn hurry(&self) {
        self.turns.ticker().hurry(&self.haste);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Closes or opens it. After opening it, the caller must wake the tasks.
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
