//! Taking down killed processes aside, so that nobody waits for all of it.
//!
//! Dropping a process's body unmaps its memory: a millisecond for a large one. Two hundred of them, one after the other,
//! made a killed command a quarter of a second late. So only the first are dropped by the killer; the others wait for one
//! thread that may block, and the sandbox's next command waits for them (`Machine::reaped`): what it may use must be free.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::task::Doomed;

/// How many bodies wait at most, of all sandboxes; beyond that the killer drops them.
const MOST: usize = 4096;

/// Bodies to be dropped.
#[derive(Clone, Default)]
pub(crate) struct Reaper(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    bodies: VecDeque<Doomed>,
    /// A thread is at it.
    busy: bool,
}

impl Reaper {
    /// Drops bodies soon, on a thread that may block.
    pub(crate) fn take(&self, bodies: Vec<Doomed>, runtime: &Handle) {
        let mut queue = self.0.lock();
        let room = MOST.saturating_sub(queue.bodies.len());
        let mut bodies = bodies.into_iter();
        queue.bodies.extend(bodies.by_ref().take(room));
        let start = !queue.busy && !queue.bodies.is_empty();
        queue.busy |= start;
        drop(queue);
        if start {
            let reaper = self.clone();
            runtime.spawn_blocking(move || reaper.work());
        }
        drop(bodies);
    }

    fn work(&self) {
        loop {
            let next = {
                let mut queue = self.0.lock();
                let next = queue.bodies.pop_front();
                queue.busy = next.is_some();
                next
            };
            // Not while the lock is held.
            let Some(body) = next else { return };
            drop(body);
        }
    }
}
