//! Admitting clients, up to a maximum number at once. A client beyond that is told so and may try again.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::Metrics;
use crate::rpc::{self, RpcError};

/// How many clients of one kind are served at once, unless something else is asked for.
const CLIENTS: usize = 1024;
/// How often the log says that clients are turned away: a flood of them must not become one of lines.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns how many clients of one kind can be admitted: a quarter of this process's descriptor limit, so that neither
/// kind can take all descriptors from the other, or from sandboxes and tools.
pub fn max_clients() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / 4).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS)
}

/// Returns how many clients of one kind are admitted by default.
pub(crate) fn clients() -> usize {
    max_clients().min(CLIENTS)
}

/// The capacity for clients.
pub(crate) struct Admission {
    room: Arc<Semaphore>,
    most: usize,
    metrics: Arc<Metrics>,
    told: Mutex<Told>,
}

/// What the log has been told of clients that were turned away.
#[derive(Default)]
struct Told {
    last: Option<Instant>,
    since: u64,
}

/// Held while a client is served.
pub(crate) type Place = OwnedSemaphorePermit;

impl Admission {
    pub(crate) fn new(most: usize, metrics: Arc<Metrics>) -> Admission {
        Admission { room: Arc::new(Semaphore::new(most)), most, metrics, told: Mutex::default() }
    }

    /// Returns the next client that there is capacity for. All others are told at once that there is none.
    pub(crate) async fn next<At, Accepting, Accept>(&self, accept: Accept) -> (UnixStream, Place)
    where
        Accept: Fn() -> Accepting,
        Accepting: Future<Output = io::Result<(UnixStream, At)>>,
    {
        loop {
            match accept().await {
                Ok((stream, _)) => match self.room.clone().try_acquire_owned() {
                    Ok(place) => return (stream, place),
                    Err(_) => self.turn_away(stream),
                },
                Err(error) => {
                    // Out of descriptors, most likely: some will be free again.
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    /// Says why and hangs up. One line always fits into a new socket, so nobody has to wait.
    fn turn_away(&self, stream: UnixStream) {
        let most = self.most;
        let why = format!("EAGAIN: too many clients: this server has at most {most} at once (--max-clients)");
        let line = rpc::response(Value::Null, Err(RpcError::refused("EAGAIN", why)));
        // Past the runtime, which does not know yet whether it can be written.
        if let Ok(mut stream) = stream.into_std() {
            let _ = stream.write_all(&line);
        }
        self.metrics.turned_away();
        let mut told = self.told.lock();
        told.since += 1;
        if told.last.is_none_or(|last| last.elapsed() >= PAUSE) {
            tracing::warn!(clients = told.since, max_clients = most, "clients were turned away: too many");
            *told = Told { last: Some(Instant::now()), since: 0 };
        }
    }
}
