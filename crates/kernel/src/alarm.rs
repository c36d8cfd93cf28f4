//! alarm: a SIGALRM after a while.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use crate::machine::Machine;
use crate::proc::Process;
use crate::signal::SIGALRM;

/// A timer that has not gone off.
pub(crate) struct Alarm {
    due: Instant,
    timer: AbortHandle,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.timer.abort();
    }
}

impl Machine {
    /// Sets or clears a process's alarm; answers how long the last one still had.
    pub(crate) fn set_alarm(self: &Arc<Self>, process: &Arc<Process>, after: Option<Duration>) -> Duration {
        let new = after.map(|after| {
            let (machine, target) = (Arc::downgrade(self), Arc::downgrade(process));
            let timer = self.kernel().runtime().spawn(async move {
                tokio::time::sleep(after).await;
                if let (Some(machine), Some(process)) = (machine.upgrade(), target.upgrade()) {
                    drop(machine.signal(&process, SIGALRM));
                }
            });
            Alarm { due: Instant::now() + after, timer: timer.abort_handle() }
        });
        let old = std::mem::replace(&mut *process.alarm.lock(), new);
        old.map_or(Duration::ZERO, |alarm| alarm.due.saturating_duration_since(Instant::now()))
    }
}
