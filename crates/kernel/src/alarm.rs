//! alarm: SIGALRM after some time.
//!
//! A process has one timer, a task that is started with its first alarm, told about every later one and stopped with the
//! process. However often the alarm is set, there is nothing else to clean up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use crate::machine::Machine;
use crate::proc::Process;
use crate::signal::SIGALRM;

/// A process's alarm.
#[derive(Default)]
pub(crate) struct Alarm(Mutex<Option<Timer>>);

/// The task that waits for it.
struct Timer {
    set: Arc<Set>,
    task: AbortHandle,
}

/// What the alarm is set to.
struct Set {
    due: Mutex<Option<Instant>>,
    changed: Notify,
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Alarm {
    /// Returns whether it is set.
    pub(crate) fn is_set(&self) -> bool {
        self.0.lock().as_ref().is_some_and(|timer| timer.set.due.lock().is_some())
    }

    /// Stops the timer, if there is one.
    pub(crate) fn stop(&self) {
        let timer = self.0.lock().take();
        drop(timer);
    }
}

impl Machine {
    /// Sets or clears a process's alarm; returns the time left of the previous one.
    pub(crate) fn set_alarm(self: &Arc<Self>, process: &Arc<Process>, after: Option<Duration>) -> Duration {
        let now = Instant::now();
        let mut timer = process.alarm.0.lock();
        let timer = match &*timer {
            Some(timer) => timer,
            None if after.is_none() => return Duration::ZERO,
            None => timer.insert(self.start_timer(process)),
        };
        let due = after.map(|after| now + after);
        let old = std::mem::replace(&mut *timer.set.due.lock(), due);
        // A timer that wakes too early looks again by itself.
        if due.is_some_and(|due| old.is_none_or(|old| due < old)) {
            timer.set.changed.notify_one();
        }
        old.map_or(Duration::ZERO, |due| due.saturating_duration_since(now))
    }

    fn start_timer(self: &Arc<Self>, process: &Arc<Process>) -> Timer {
        let set = Arc::new(Set { due: Mutex::new(None), changed: Notify::new() });
        let (machine, target) = (Arc::downgrade(self), Arc::downgrade(process));
        let shared = set.clone();
        let task = self.kernel().runtime().spawn(async move {
            loop {
                shared.ring().await;
                let (Some(machine), Some(process)) = (machine.upgrade(), target.upgrade()) else { return };
                drop(machine.signal(&process, SIGALRM));
            }
        });
        Timer { set, task: task.abort_handle() }
    }
}

impl Set {
    /// Waits until the alarm is due, whatever it is set to meanwhile, and clears it.
    async fn ring(&self) {
        loop {
            let due = *self.due.lock();
            let Some(due) = due else {
                self.changed.notified().await;
                continue;
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(due.into()) => {
                    let mut current = self.due.lock();
                    if *current == Some(due) {
                        *current = None;
                        return;
                    }
                }
            }
        }
    }
}
