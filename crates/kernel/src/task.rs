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
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::gate::Gate;
use crate::kernel::KernelInner;
use crate::run::{Alive, Run};

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A turn this long was ended by the clock, not by the process.
const WHOLE_TICK: Duration = Duration::from_micros(800);

/// The slot of one process's future.
pub(crate) struct Task {
    work: Mutex<Option<Work>>,
    gate: Arc<Gate>,
    run: Arc<Run>,
    doomed: AtomicBool,
    stopped: AtomicBool,
    /// Turns still to be given away.
    yields: AtomicU8,
    waker: Mutex<Option<Waker>>,
    cpu_nanos: AtomicU64,
}

/// A body, and the word to its run that it is gone: in this order.
struct Work {
    body: Body,
    _alive: Alive,
}

impl Task {
    /// An empty slot behind the sandbox's gate, for a process of this run.
    pub(crate) fn new(gate: Arc<Gate>, run: Arc<Run>) -> Task {
        Task {
            work: Mutex::new(None),
            gate,
            run,
            doomed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            yields: AtomicU8::new(0),
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
        let work = self.work.try_lock().and_then(|mut slot| slot.take());
        self.wake();
        work.map(Doomed)
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

    fn count_turn(&self, time: Duration) {
        self.cpu_nanos.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
        if time >= WHOLE_TICK {
            self.yields.store(self.gate.nice(), Ordering::Relaxed);
        }
    }

    /// Whether those behind it in the queue go first, this time.
    fn gives_turn_away(&self) -> bool {
        let left = self.yields.load(Ordering::Relaxed);
        self.yields.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    /// Lets it look again whether it may run.
    pub(crate) fn wake(&self) {
        if let Some(waker) = self.waker.lock().take() {
            waker.wake();
        }
    }
}

/// A future taken from its process, to be dropped.
pub(crate) struct Doomed(#[allow(dead_code)] Work);

/// Runs `body` as the task's future on the kernel's runtime.
pub(crate) fn launch(kernel: &Arc<KernelInner>, task: &Arc<Task>, body: Body) {
    *task.work.lock() = Some(Work { body, _alive: task.run.enter() });
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
        if !task.doomed.load(Ordering::SeqCst) {
            if task.stopped.load(Ordering::SeqCst) || task.gate.is_closed() {
                return Poll::Pending;
            }
            if task.gives_turn_away() {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        let mut slot = task.work.lock();
        let Some(work) = slot.as_mut() else { return Poll::Ready(()) };
        let ready = if task.doomed.load(Ordering::SeqCst) {
            true
        } else {
            let _running = self.kernel.ticker().enter();
            let start = Instant::now();
            // A fault of ours in a system call ends that process, not the worker, and nobody waits for it in vain.
            let polled = catch_unwind(AssertUnwindSafe(|| work.body.as_mut().poll(cx).is_ready()));
            let ready = polled.unwrap_or_else(|_| {
                tracing::error!("a system call panicked; its process is ended");
                true
            });
            task.count_turn(start.elapsed());
            ready
        };
        if ready || task.doomed.load(Ordering::SeqCst) {
            let work = slot.take();
            drop(slot);
            drop(work);
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
