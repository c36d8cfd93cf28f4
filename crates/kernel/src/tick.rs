//! The epoch ticker: makes running WebAssembly yield once a millisecond.
//!
//! Compiled code checks the engine's epoch at loop heads and function entries, and yields to the scheduler when it
//! has moved. One thread moves it. It parks itself when no guest has run for a while, so that an idle program
//! costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::Mutex;

const TICK: Duration = Duration::from_millis(1);
/// How many idle ticks pass before the thread parks: long enough that a busy shell never wakes it.
const IDLE_TICKS: u32 = 64;

/// Counts the guests that are on a worker thread right now and keeps the epoch moving while there are any.
pub(crate) struct Ticker {
    running: AtomicUsize,
    parked: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<Thread>>,
}

impl Ticker {
    /// Starts the thread; it ends with the last [`TickerGuard`].
    pub(crate) fn start(engine: wasmtime::Engine) -> std::io::Result<TickerGuard> {
        let ticker = Arc::new(Ticker {
            running: AtomicUsize::new(0),
            parked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: Mutex::new(None),
        });
        let shared = ticker.clone();
        let handle = thread::Builder::new().name("wardian-tick".into()).spawn(move || shared.run(&engine))?;
        *ticker.thread.lock() = Some(handle.thread().clone());
        Ok(TickerGuard(ticker))
    }

    fn run(&self, engine: &wasmtime::Engine) {
        let mut idle = 0;
        while !self.stop.load(Ordering::Relaxed) {
            thread::sleep(TICK);
            engine.increment_epoch();
            idle = if self.running.load(Ordering::Relaxed) == 0 { idle + 1 } else { 0 };
            if idle > IDLE_TICKS {
                self.park();
                idle = 0;
            }
        }
    }

    /// Parks unless a guest started in the meantime: the flag is raised first, then the count is read again, in the
    /// opposite order of [`Ticker::enter`], so one of the two always sees the other.
    fn park(&self) {
        self.parked.store(true, Ordering::SeqCst);
        while self.parked.load(Ordering::SeqCst)
            && self.running.load(Ordering::SeqCst) == 0
            && !self.stop.load(Ordering::Relaxed)
        {
            thread::park();
        }
        self.parked.store(false, Ordering::SeqCst);
    }

    fn wake(&self) {
        self.parked.store(false, Ordering::SeqCst);
        if let Some(thread) = self.thread.lock().as_ref() {
            thread.unpark();
        }
    }

    /// Marks a guest as running until the answer is dropped.
    pub(crate) fn enter(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) {
            self.wake();
        }
        Running(self)
    }
}

/// A guest on a worker thread.
pub(crate) struct Running<'a>(&'a Ticker);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Owns the ticker's thread.
pub(crate) struct TickerGuard(Arc<Ticker>);

impl std::ops::Deref for TickerGuard {
    type Target = Ticker;
    fn deref(&self) -> &Ticker {
        &self.0
    }
}

impl Drop for TickerGuard {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}
