//! Admitting clients, up to a maximum number at once.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, getrlimit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many clients of one kind are served at once.
const CLIENTS: usize = 1024;

/// Returns how many clients of one kind are admitted: at most a quarter of this process's descriptor limit, so that
/// neither kind can take all descriptors from the other, or from sandboxes and tools.
pub(crate) fn clients() -> usize {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(descriptors / 4).map_or(CLIENTS, |quarter| quarter.clamp(1, CLIENTS))
}

/// The capacity for clients of one kind. Further clients wait.
pub(crate) struct Admission(Arc<Semaphore>);

/// Held while a client is served.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

impl Admission {
    pub(crate) fn new() -> Admission {
        Admission(Arc::new(Semaphore::new(clients())))
    }

    /// Waits for capacity and returns the next client.
    pub(crate) async fn next<S, At, Accepting, Accept>(&self, accept: Accept) -> (S, Place)
    where
        Accept: Fn() -> Accepting,
        Accepting: Future<Output = io::Result<(S, At)>>,
    {
        // Nobody closes it.
        let place = self.0.clone().acquire_owned().await.ok();
        loop {
            match accept().await {
                Ok((stream, _)) => return (stream, place),
                Err(error) => {
                    // Out of descriptors, most likely: some will be free again.
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}
