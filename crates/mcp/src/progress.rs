//! Progress while a command runs, for a client that asks for it.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use wardian::{OutputStream, RunResult};

/// How much of the last line is told.
const SHOWN: usize = 200;

/// Tells a client how far a call is, and keeps what it writes: a run that somebody listens to does not.
pub(crate) struct Progress {
    token: Option<ProgressToken>,
    started: Instant,
    /// What has been written so far, which the sandbox's limits bound.
    written: Arc<Mutex<Vec<u8>>>,
}

impl Progress {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Progress {
        Progress {
            token: context.meta.get_progress_token(),
            started: Instant::now(),
            written: Arc::default(),
        }
    }

    /// Returns what takes note of output as it is written.
    pub(crate) fn listener(&self) -> impl FnMut(OutputStream, &[u8]) + Send + 'static {
        let written = Arc::clone(&self.written);
        move |_, bytes| {
            written.lock().extend_from_slice(bytes);
        }
    }

    /// Takes what was written, and what the result adds to it: that it was cut, or why it ended.
    pub(crate) fn output(&self, result: &RunResult) -> String {
        let mut output = std::mem::take(&mut *self.written.lock());
        let rest = result.output();
        if !rest.is_empty() && output.last().is_some_and(|&last| last != b'\n') {
            output.push(b'\n');
        }
        output.extend_from_slice(&rest);
        String::from_utf8_lossy(&output).into_owned()
    }

    /// Tells how long it has run, and the last line it wrote.
    pub(crate) async fn tell(&self, context: &RequestContext<RoleServer>) {
        let Some(token) = &self.token else { return };
        let seconds = self.started.elapsed().as_secs_f64();
        let message = {
            let written = self.written.lock();
            let text = String::from_utf8_lossy(&written[written.len().saturating_sub(SHOWN)..]);
            let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{seconds:.0} s, {} bytes of output: {line}", written.len())
        };
        let told = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
        // The task that reads from a client notices that it is gone.
        let _ = context.peer.notify_progress(told).await;
    }
}
