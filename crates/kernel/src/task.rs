//! A process's execution as something that can be taken away.
//!
//! Killing a process is dropping its future: wasmtime unwinds the guest's stack and frees its memory, and whatever
//! the guest was waiting for is cancelled. The future lives in a slot that the killer can empty even while the task
//! is queued behind other guests. Only while it is being polled must the killer wait, and then no longer than the
//! next epoch tick: the poller looks at `doomed` when it gets the thread back.
//!
//! A future is polled only while its task holds a slot of the scheduler (`schedule.rs`). Its waker is the kernel's: waking a task
//! asks the scheduler, and the scheduler wakes the runtime's task when it is its turn. Where a task is, is its *phase*:
//!
//! ```text
//!         wake                  the scheduler              the driver polls
//!  Idle ────────► Waiting ─────────────────────► Granted ──────────────────► Running ──┐
//!   ▲                ▲                              │ stopped, or suspended     │ wake │
//!   │                │ continued                    ▼                           ▼      │
//!   │                └──────────────────────────── Held                       Woken    │
//!   └───────────────────────── release ◄───────────────────────────────────────│───────┘
//!                    Waiting ◄────────────────────────── again ◄───────────────┘
//! ```
//!
//! No wake-up is lost, because every change out of a phase that others may change is an exchange, and the one that loses the
//! exchange acts on what it finds:
//! - A wake-up finds the task Idle (and asks), Running (and leaves Woken behind for the driver to find), or in a phase that
//!   leads to a poll anyway.
//! - The driver gives its slot back *before* it becomes Idle. A wake-up in between leaves Woken behind, and the driver asks
//!   again; one after it finds Idle, and the scheduler no longer counts the task as running.
//! - Held is entered first, and then the driver looks again whether it is still stopped. The one that continues it clears the
//!   flag first and then looks for Held. One of the two always sees the other.
//! - A grant is written down before the runtime's task is woken, and the driver leaves its waker before it looks for a grant.
//! - A doomed task needs no slot: the killer wakes the driver directly, in any phase. When the driver goes, the scheduler
//!   forgets the task wherever it is, its slot goes to the next, and a wake-up that comes later is ignored.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use parking_lot::Mutex;

use crate::footprint::Footprint;
use crate::gate::Gate;
use crate::kernel::KernelInner;
use crate::pause::pause;
use crate::run::{Alive, Run};

type Body = Pin<Box<dyn Future<Output = ()> + Send>>;

const IDLE: u8 = 0;
const WAITING: u8 = 1;
const GRANTED: u8 = 2;
const RUNNING: u8 = 3;
const WOKEN: u8 = 4;
const HELD: u8 = 5;
const GONE: u8 = 6;

/// The slot of one process's future.
pub(crate) struct Task {
    work: Mutex<Option<Work>>,
    gate: Arc<Gate>,
    run: Arc<Run>,
    footprint: Arc<Footprint>,
    doomed: AtomicBool,
    stopped: AtomicBool,
    /// What to do when it is stopped and its current turn is over.
    when_stopped: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    /// The tick in which its turn began.
    turn: AtomicU64,
    phase: AtomicU8,
    /// What the scheduler knows it by, once it is launched.
    seat: AtomicU64,
    /// Wakes the runtime's task.
    driver: Mutex<Option<Waker>>,
    cpu_nanos: AtomicU64,
}

/// A body, and the word to its run that it is gone: in this order.
struct Work {
    body: Body,
    _alive: Alive,
}

impl Task {
    /// An empty slot behind the sandbox's gate, for a process of this run.
    pub(crate) fn new(gate: Arc<Gate>, run: Arc<Run>, footprint: Arc<Footprint>) -> Task {
        Task {
            work: Mutex::new(None),
            gate,
            run,
            footprint,
            doomed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            when_stopped: Mutex::new(None),
            turn: AtomicU64::new(0),
            phase: AtomicU8::new(IDLE),
            seat: AtomicU64::new(0),
            driver: Mutex::new(None),
            cpu_nanos: AtomicU64::new(0),
        }
    }

    /// Time spent on a worker thread so far.
    pub(crate) fn cpu_nanos(&self) -> u64 {
        self.cpu_nanos.load(Ordering::Relaxed)
    }

    /// Ends the body. Returns it when this thread is to drop it; `None` when it is being polled (its poller drops
    /// it within a tick) or gone already.
    ///
    /// The body must not be dropped on a guest's own stack (that is, inside a host call): hand it to a task.
    #[must_use]
    pub(crate) fn doom(&self) -> Option<Doomed> {
        self.doomed.store(true, Ordering::SeqCst);
        let work = match self.work.try_lock() {
            Some(mut slot) => slot.take(),
            None => {
                self.gate.hurry();
                None
            }
        };
        self.wake_driver();
        work.map(Doomed)
    }

    /// Stops the body where it is. If it is being polled, that is when its turn is over, which is when `then` is called.
    pub(crate) fn stop(&self, then: impl FnOnce() + Send + 'static) {
        self.stopped.store(true, Ordering::SeqCst);
        *self.when_stopped.lock() = Some(Box::new(then));
        if self.is_in_its_turn() {
            self.gate.hurry();
        } else {
            self.say_stopped();
        }
    }

    /// Lets the body go on.
    pub(crate) fn resume(&self) {
        self.stopped.store(false, Ordering::SeqCst);
        self.when_stopped.lock().take();
        self.go_on();
    }

    /// Whether it is being polled: one that was stopped may still do something.
    pub(crate) fn is_in_its_turn(&self) -> bool {
        self.work.is_locked()
    }

    fn say_stopped(&self) {
        let then = self.when_stopped.lock().take();
        if let Some(then) = then {
            then();
        }
    }

    /// For a body that may just have stopped itself: it goes no further until it is continued.
    pub(crate) async fn pause_if_stopped(&self) {
        if self.stopped.load(Ordering::SeqCst) {
            pause().await;
        }
    }

    /// Lets others run if its turn has lasted for a tick. Compiled code looks for that only where it loops or enters a function:
    /// many calls of the kernel in a row come to neither.
    pub(crate) async fn pause_if_due(&self) {
        if self.gate.turns().ticker().now() != self.turn.load(Ordering::Relaxed) {
            pause().await;
        }
    }

    /// It may not be held any more: it was continued, or its sandbox resumed.
    pub(crate) fn go_on(&self) {
        if self.change(HELD, WAITING) {
            self.ask();
        }
    }

    /// Makes those who run now yield to it.
    pub(crate) fn hurry(&self) {
        self.gate.hurry();
    }

    /// It has a slot of the scheduler, and must be polled.
    pub(crate) fn grant(&self) {
        self.phase.store(GRANTED, Ordering::SeqCst);
        self.wake_driver();
    }

    fn wake_driver(&self) {
        let driver = self.driver.lock().clone();
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.phase.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    fn seat(&self) -> u64 {
        self.seat.load(Ordering::SeqCst)
    }

    fn ask(&self) {
        self.gate.turns().ask(self, self.seat());
    }

    /// Something that it waits for has happened.
    fn notice(&self) {
        loop {
            match self.phase.load(Ordering::SeqCst) {
                IDLE if self.change(IDLE, WAITING) => return self.ask(),
                RUNNING if self.change(RUNNING, WOKEN) => return,
                IDLE | RUNNING => {}
                _ => return,
            }
        }
    }

    /// Whether it must not run now.
    fn is_held(&self) -> bool {
        self.stopped.load(Ordering::SeqCst) || self.gate.is_closed()
    }

    /// Gives its slot back unused until it may go on.
    fn hold(&self) {
        self.gate.turns().release(self.seat(), 0);
        self.phase.store(HELD, Ordering::SeqCst);
        if !self.is_held() {
            self.go_on();
        }
    }

    /// Charges for what the body has written in its turn. Returns false if it must end because that is too much.
    fn can_pay(&self, spent: u64) -> bool {
        let can = self.footprint.spend(spent);
        if !can {
            self.run.hit("memoryBytes");
            self.run.cut_short();
        }
        can
    }

    /// Gives its slot back after a turn that did not end it.
    fn rest(&self, spent: u64) {
        let turns = self.gate.turns();
        if self.phase.load(Ordering::SeqCst) == WOKEN {
            self.phase.store(WAITING, Ordering::SeqCst);
            return turns.again(self.seat(), spent);
        }
        turns.release(self.seat(), spent);
        if !self.change(RUNNING, IDLE) {
            self.phase.store(WAITING, Ordering::SeqCst);
            self.ask();
        }
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.notice();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.notice();
    }
}

/// A future taken from its process, to be dropped.
pub(crate) struct Doomed(#[allow(dead_code)] Work);

/// Runs `body` as the task's future on the kernel's runtime.
pub(crate) fn launch(kernel: &Arc<KernelInner>, task: &Arc<Task>, body: Body) {
    *task.work.lock() = Some(Work { body, _alive: task.run.enter() });
    let gate = &task.gate;
    task.seat.store(gate.turns().add(gate.sandbox(), task), Ordering::SeqCst);
    let waker = Waker::from(task.clone());
    let driver = Driver { kernel: kernel.clone(), task: task.clone(), waker, owed: 0 };
    // Asked here: the runtime's workers may all be busy, and this makes one of them yield.
    task.notice();
    kernel.runtime().spawn(driver);
}

/// Polls the body from its slot.
struct Driver {
    kernel: Arc<KernelInner>,
    task: Arc<Task>,
    /// The body's.
    waker: Waker,
    /// What the last turn took, in nanoseconds.
    owed: u64,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let task = self.task.clone();
        {
            let mut driver = task.driver.lock();
            if driver.as_ref().is_none_or(|known| !known.will_wake(cx.waker())) {
                *driver = Some(cx.waker().clone());
            }
        }
        if !task.doomed.load(Ordering::SeqCst) {
            if task.phase.load(Ordering::SeqCst) != GRANTED {
                return Poll::Pending;
            }
            if task.is_held() {
                task.hold();
                return Poll::Pending;
            }
        }
        self.turn(&task)
    }
}

impl Driver {
    /// One turn of the body, or its end.
    fn turn(&mut self, task: &Task) -> Poll<()> {
        let start = Instant::now();
        let mut slot = task.work.lock();
        let Some(work) = slot.as_mut() else { return Poll::Ready(()) };
        let ended = task.doomed.load(Ordering::SeqCst) || {
            task.phase.store(RUNNING, Ordering::SeqCst);
            task.turn.store(self.kernel.turns().ticker().now(), Ordering::Relaxed);
            let _running = self.kernel.turns().ticker().enter();
            let mut cx = Context::from_waker(&self.waker);
            // A panic in a system call ends that process, not the worker, and nobody waits for it forever.
            let polled = catch_unwind(AssertUnwindSafe(|| work.body.as_mut().poll(&mut cx).is_ready()));
            polled.unwrap_or_else(|_| {
                tracing::error!("a system call panicked; its process is ended");
                true
            })
        };
        let ended = ended || !task.can_pay(nanos_since(start));
        let spent = nanos_since(start);
        task.cpu_nanos.fetch_add(spent, Ordering::Relaxed);
        if ended || task.doomed.load(Ordering::SeqCst) {
            let work = slot.take();
            drop(slot);
            drop(work);
            task.when_stopped.lock().take();
            self.owed = nanos_since(start);
            return Poll::Ready(());
        }
        drop(slot);
        if task.stopped.load(Ordering::SeqCst) {
            task.say_stopped();
        }
        task.rest(spent);
        Poll::Pending
    }
}

fn nanos_since(start: Instant) -> u64 {
    start.elapsed().as_nanos() as u64
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.task.phase.store(GONE, Ordering::SeqCst);
        self.task.gate.turns().remove(self.task.seat(), self.owed);
    }
}
