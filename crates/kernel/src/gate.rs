//! A sandbox's turn on the processors: whether its processes run at all, and how often others go first.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::watch;

/// What every task of a sandbox passes before it runs.
pub(crate) struct Gate {
    closed: AtomicBool,
    /// The same, for those who wait for a change.
    changed: watch::Sender<bool>,
    nice: u8,
}

impl Gate {
    pub(crate) fn new(nice: u8) -> Gate {
        Gate { closed: AtomicBool::new(false), changed: watch::Sender::new(false), nice }
    }

    /// How many turns a process gives away for each whole tick it has used.
    pub(crate) fn nice(&self) -> u8 {
        self.nice
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Closes or opens it. Whoever opens it must wake the tasks.
    pub(crate) fn set_closed(&self, closed: bool) {
        self.closed.store(closed, Ordering::SeqCst);
        self.changed.send_replace(closed);
    }

    /// Whether it is closed, for those who wait for a change.
    pub(crate) fn changes(&self) -> watch::Receiver<bool> {
        self.changed.subscribe()
    }
}
