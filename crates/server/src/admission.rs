//! Letting clients in, no more at once than there is room for.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many clients of one kind are served at once. Others wait to be let in.
const CLIENTS: usize = 1024;

/// Room for clients of one kind.
pub(crate) struct Admission(Arc<Semaphore>);

/// Held while a client is served.
pub(crate) type Place = Option<OwnedSemaphorePermit>;

impl Admission {
    pub(crate) fn new() -> Admission {
        Admission(Arc::new(Semaphore::new(CLIENTS)))
    }

    /// The next client, when there is room for one.
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
                    tracing::warn!(%error, "a client could not be let in");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}
