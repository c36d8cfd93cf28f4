//! Turns for long work: a few pieces at a time for the whole server, and one at a time for each client, so that clients
//! with much work do not keep the others waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::rpc::RpcError;

/// Turns for one kind of work.
#[derive(Clone)]
pub(crate) struct Turns {
    /// What all clients share.
    shared: Arc<Semaphore>,
    /// The client's own turn; None for work that is nobody's in particular.
    own: Option<Arc<Semaphore>>,
}

/// A turn. It ends when this is dropped.
pub(crate) struct Held {
    _own: Option<OwnedSemaphorePermit>,
    _shared: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Lets half of the processors do work of this kind; the other half is for everything else.
    pub(crate) fn of_server() -> Turns {
        let half = std::thread::available_parallelism().map_or(1, |cores| cores.get().div_ceil(2));
        Turns { shared: Arc::new(Semaphore::new(half)), own: None }
    }

    /// Returns the turns of one client, who has one at a time.
    pub(crate) fn of_client(&self) -> Turns {
        Turns { shared: self.shared.clone(), own: Some(Arc::new(Semaphore::new(1))) }
    }

    /// Waits for a turn. Nobody closes the semaphores, so there always is one.
    pub(crate) async fn take(&self) -> Held {
        let own = match &self.own {
            Some(own) => own.clone().acquire_owned().await.ok(),
            None => None,
        };
        Held { _own: own, _shared: self.shared.clone().acquire_owned().await.ok() }
    }

    /// Waits for a turn and does the work on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let _turn = self.take().await;
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|_| RpcError::internal("the request failed: see the server's log"))
    }
}
