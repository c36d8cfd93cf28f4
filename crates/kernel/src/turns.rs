//! The scheduler as tasks see it: one lock, and the clock that makes others yield.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::schedule::{Answer, FamilyId, SandboxId, Scheduler, SeatId};
use crate::task::Task;
use crate::tick::Ticker;

/// The turns of all sandboxes of a kernel.
pub(crate) struct Turns {
    /// Never held while anything is woken or dropped.
    scheduler: Mutex<Scheduler<Arc<Task>>>,
    ticker: Arc<Ticker>,
}

impl Turns {
    /// For so many guests at once.
    pub(crate) fn new(slots: usize, ticker: Arc<Ticker>) -> Turns {
        Turns { scheduler: Mutex::new(Scheduler::new(slots)), ticker }
    }

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.ticker
    }

    pub(crate) fn add_sandbox(&self, family: FamilyId, cost: u64) -> SandboxId {
        self.scheduler.lock().add_sandbox(family, cost)
    }

    pub(crate) fn remove_sandbox(&self, sandbox: SandboxId) {
        self.scheduler.lock().remove_sandbox(sandbox);
    }

    pub(crate) fn add(&self, sandbox: SandboxId, task: &Arc<Task>) -> SeatId {
        self.scheduler.lock().add_seat(sandbox, task.clone())
    }

    /// The task is gone; a slot that it had goes to the next.
    pub(crate) fn remove(&self, seat: SeatId, spent: u64) {
        let (removed, next) = self.scheduler.lock().remove_seat(seat, spent);
        drop(removed);
        grant(next);
    }

    /// A task wants to run: it is granted a slot now or later.
    pub(crate) fn ask(&self, task: &Task, seat: SeatId) {
        let answer = self.scheduler.lock().ask(seat);
        match answer {
            Answer::Go => task.grant(),
            Answer::Wait { preempt: true } => task.hurry(),
            Answer::Wait { preempt: false } | Answer::Ignored => {}
        }
    }

    /// A task has used its slot for so long, in nanoseconds, and waits for an event.
    pub(crate) fn release(&self, seat: SeatId, spent: u64) {
        let next = self.scheduler.lock().release(seat, spent);
        grant(next);
    }

    /// The same, and it wants to go on.
    pub(crate) fn again(&self, seat: SeatId, spent: u64) {
        let next = self.scheduler.lock().again(seat, spent);
        grant(next);
    }
}

fn grant(next: Option<Arc<Task>>) {
    if let Some(task) = next {
        task.grant();
    }
}
