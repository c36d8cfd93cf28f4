//! A process's execution as something that can be taken away.
//!
//! Killing a process is dropping its future: wasmtime unwinds the guest's stack and frees its memory, and whatever
//! the guest was waiting for is cancelled. The future lives in a slot that the killer can empty even while the task
//! is queued behind other guests. Only while it is being polled must the killer wait, and then no longer than the
//! next epoch tick: the poller looks at `doomed` when it gets the thread back.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use parking_lot::Mutex;

use crate::kernel::KernelInner;

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The slot of one process's future.
pub(crate) struct Task {
    body: Mutex<Option<Body>>,
    doomed: AtomicBool,
    stopped: AtomicBool,
    waker: Mutex<Option<Waker>>,
    cpu_nanos: AtomicU64,
}

impl Task {
    pub(crate) fn new() -> Task {
        Task {
            body: Mutex::new(None),
            doomed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            waker: Mutex::new(None),
            cpu_nanos: AtomicU64::new(0),
        }
    }

    /// Time spent on a worker thread so far.
    pub(crate) fn cpu_nanos(&self) -> u64 {
        self.cpu_nanos.load(Ordering::Relaxed)
    }

    /// Ends the body. Answers it when this thread is to drop it; `None` when it is being polled (its poller drops
    /// it within a tick) or gone already.
    ///
    /// The body must not be dropped on a guest's own stack (that is, inside a host call): hand it to a task.
    #[must_use]
    pub(crate) fn doom(&self) -> Option<Doomed> {
        self.doomed.store(true, Ordering::SeqCst);
        let body = self.body.try_lock().and_then(|mut slot| slot.take());
        self.wake();
        body.map(Doomed)
    }

    /// Stops the body where it is, or lets it go on.
    pub(crate) fn set_stopped(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::SeqCst);
        if !stopped {
            self.wake();
        }
    }

    /// For a body that may just have stopped itself: it goes no further until it is continued.
    pub(crate) async fn pause_if_stopped(&self) {
        if self.stopped.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }
}

/// A future taken from its process, to be dropped.
pub(crate) struct Doomed(#[allow(dead_code)] Body);

/// Runs `body` as the task's future on the kernel's runtime.
pub(crate) fn launch(kernel: &Arc<KernelInner>, task: &Arc<Task>, body: Body) {
    *task.body.lock() = Some(body);
    let driver = Driver { kernel: kernel.clone(), task: task.clone() };
    kernel.runtime().spawn(driver);
}

/// Polls the body from its slot.
struct Driver {
    kernel: Arc<KernelInner>,
    task: Arc<Task>,
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = &self.task;
        // Left before anything is looked at, so that whoever dooms or continues the task afterwards finds it.
        *task.waker.lock() = Some(cx.waker().clone());
        if task.stopped.load(Ordering::SeqCst) && !task.doomed.load(Ordering::SeqCst) {
            return Poll::Pending;
        }
        let mut slot = task.body.lock();
        let Some(body) = slot.as_mut() else { return Poll::Ready(()) };
        let ready = if task.doomed.load(Ordering::SeqCst) {
            true
        } else {
            let _running = self.kernel.ticker().enter();
            let start = Instant::now();
            // A fault of ours in a system call ends that process, not the worker, and nobody waits for it in vain.
            let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll(cx).is_ready()));
            let ready = polled.unwrap_or_else(|_| {
                tracing::error!("a system call panicked; its process is ended");
                true
            });
            task.cpu_nanos.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
            ready
        };
        if ready || task.doomed.load(Ordering::SeqCst) {
            let body = slot.take();
            drop(slot);
            drop(body);
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
