//! Turns for long work: a few pieces at a time for the whole server, and one at a time for each client, so that clients
//! with much work do not keep the others waiting.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;

use crate::rpc::RpcError;

/// Turns for one kind of work.
#[derive(Clone)]
pub(crate) struct Turns {
    /// What all clients share.
    shared: Arc<Semaphore>,
    /// The client's own turn; None for work that is nobody's in particular.
    own: Option<Arc<Semaphore>>,
}

/// A turn. It ends when this, all its clones, and the work that was begun with it are gone.
#[derive(Clone)]
pub(crate) struct Held {
    _own: Option<Arc<OwnedSemaphorePermit>>,
    _shared: Arc<OwnedSemaphorePermit>,
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

    /// Refuses the client's further turns, those it waits for included: it is gone.
    pub(crate) fn close(&self) {
        if let Some(own) = &self.own {
            own.close();
        }
    }

    /// Waits for a turn.
    pub(crate) async fn take(&self) -> Result<Held, RpcError> {
        let gone = |_| RpcError::internal("cancelled before it began: the client is gone");
        let _own = match &self.own {
            Some(own) => Some(Arc::new(own.clone().acquire_owned().await.map_err(gone)?)),
            None => None,
        };
        let shared = self.shared.clone().acquire_owned().await.map_err(gone)?;
        // It may have been closed while the other was waited for.
        if self.own.as_ref().is_some_and(|own| own.is_closed()) {
            return Err(RpcError::internal("cancelled before it began: the client is gone"));
        }
        Ok(Held { _own, _shared: Arc::new(shared) })
    }

    /// Waits for a turn and does the work on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        self.take().await?.run(work).await
    }
}

impl Held {
    /// Does the work on a thread that may block. If nobody waits for it any more, it is not begun; once it has begun, it goes on to
    /// its end, and the turn with it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, RpcError> {
        let held = self.clone();
        let mut doing = NotBegun(tokio::task::spawn_blocking(move || {
            let done = work();
            drop(held);
            done
        }));
        let done = (&mut doing.0).await;
        done.map_err(|_| RpcError::internal("the request failed: see the server's log"))
    }
}

/// Work that is not begun if this is dropped first.
struct NotBegun<T>(JoinHandle<T>);

impl<T> Drop for NotBegun<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::{Context, Waker};

    use super::*;

    /// Lets a future do what it can.
    fn poll(future: std::pin::Pin<&mut impl Future>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[tokio::test]
    async fn started_work_keeps_its_turn_without_a_client() {
        let server = Turns { shared: Arc::new(Semaphore::new(1)), own: None };
        let ((begun, is_begun), (go, may_go)) = (mpsc::channel(), mpsc::channel::<()>());
        let first = server.of_client();
        let mut work = Box::pin(first.run(move || {
            let _ = begun.send(());
            let _ = may_go.recv();
        }));
        assert!(!poll(work.as_mut()));
        is_begun.recv().expect("it begins");
        drop(work);
        let second = server.of_client();
        let mut next = pin!(second.run(|| 2));
        assert!(!poll(next.as_mut()), "two at once");
        drop(go);
        assert_eq!(next.await.ok(), Some(2));
    }

    #[tokio::test]
    async fn queued_work_is_dropped_with_its_client() {
        let server = Turns { shared: Arc::new(Semaphore::new(1)), own: None };
        let (other, gone) = (server.of_client(), server.of_client());
        let held = other.take().await.expect("a turn");
        let (done, was_done) = mpsc::channel();
        let more = done.clone();
        let mut first = pin!(gone.run(move || done.send(1)));
        let mut second = pin!(gone.run(move || more.send(2)));
        assert!(!poll(first.as_mut()) && !poll(second.as_mut()));
        gone.close();
        drop(held);
        for outcome in [first.await.map(drop), second.await.map(drop)] {
            let message = outcome.expect_err("it was refused").message;
            assert_eq!(message, "cancelled before it began: the client is gone");
        }
        assert!(was_done.try_recv().is_err());
        assert!(other.take().await.is_ok(), "the turn is free again");
    }
}
