//! Progress while a command runs, for a client that asks for it.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use wardian::OutputStream;

/// How much of the last line is told.
const SHOWN: usize = 200;

/// What has been written so far.
#[derive(Default)]
struct Seen {
    bytes: u64,
    /// The end of what was written, not much longer than what is told of it.
    tail: Vec<u8>,
}

/// Tells a client how far a call is.
pub(crate) struct Progress {
    token: Option<ProgressToken>,
    started: Instant,
    seen: Arc<Mutex<Seen>>,
}

impl Progress {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Progress {
        Progress { token: context.meta.get_progress_token(), started: Instant::now(), seen: Arc::default() }
    }

    /// Returns what takes note of output as it is written.
    pub(crate) fn listener(&self) -> impl FnMut(OutputStream, &[u8]) + Send + 'static {
        let seen = Arc::clone(&self.seen);
        move |_, bytes| {
            let mut seen = seen.lock();
            seen.bytes += bytes.len() as u64;
            seen.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(SHOWN)..]);
            let surplus = seen.tail.len().saturating_sub(SHOWN);
            seen.tail.drain(..surplus);
        }
    }

    /// Tells how long it has run, and the last line it wrote.
    pub(crate) async fn tell(&self, context: &RequestContext<RoleServer>) {
        let Some(token) = &self.token else { return };
        let seconds = self.started.elapsed().as_secs_f64();
        let message = {
            let seen = self.seen.lock();
            let text = String::from_utf8_lossy(&seen.tail);
            let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
            format!("{seconds:.0} s, {} bytes of output: {line}", seen.bytes)
        };
        let told = ProgressNotificationParam::new(token.clone(), seconds).with_message(message);
        // A client that is gone is noticed by whoever reads from it.
        let _ = context.peer.notify_progress(told).await;
    }
}
