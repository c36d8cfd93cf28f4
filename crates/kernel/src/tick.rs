//! The epoch ticker: makes running WebAssembly yield once a millisecond, or earlier if requested.
//!
//! Compiled code checks the engine's epoch at loop heads and function entries, and yields to the scheduler when it has
//! moved. One thread moves it. It parks itself when no guest has run for a while, so that an idle process costs nothing.
//! Between two ticks the scheduler may move it a limited number of times.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use parking_lot::Mutex;

const TICK: Duration = Duration::from_millis(1);
/// How many idle ticks pass before the thread parks: long enough that a busy shell never wakes it.
const IDLE_TICKS: u32 = 64;
/// How often guests can be made to yield between two ticks. Each time costs them a few microseconds, which the scheduler
/// charges to the sandbox that wanted it.
const HURRIES: u32 = 256;
/// How often one sandbox can do so: none can exhaust what the others may need. Enough for a pipeline whose processes hand
/// each other the processor, several times over.
const HURRIES_EACH: u64 = 64;

/// Counts the guests that are on a worker thread right now and keeps the epoch moving while there are any.
pub(crate) struct Ticker {
    running: AtomicUsize,
    parked: AtomicBool,
    stop: AtomicBool,
    thread: Mutex<Option<Thread>>,
    engine: wasmtime::Engine,
    ticks: AtomicU64,
    /// How often the epoch was moved since the last tick.
    hurried: AtomicU32,
}

impl Ticker {
    /// Starts the thread; it ends with the last [`TickerGuard`].
    pub(crate) fn start(engine: wasmtime::Engine) -> std::io::Result<TickerGuard> {
        let ticker = Arc::new(Ticker {
            running: AtomicUsize::new(0),
            parked: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            thread: Mutex::new(None),
            engine,
            ticks: AtomicU64::new(0),
            hurried: AtomicU32::new(0),
        });
        let shared = ticker.clone();
        let handle = thread::Builder::new().name("wardian-tick".into()).spawn(move || shared.run())?;
        *ticker.thread.lock() = Some(handle.thread().clone());
        Ok(TickerGuard(ticker))
    }

    fn run(&self) {
        let mut idle = 0;
        while !self.stop.load(Ordering::Relaxed) {
            thread::sleep(TICK);
            self.engine.increment_epoch();
            self.ticks.fetch_add(1, Ordering::Relaxed);
            self.hurried.store(0, Ordering::Relaxed);
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

    /// Makes the running guests yield immediately, unless that was done often enough since the last tick. `haste` counts
    /// how often the requesting sandbox has done so.
    pub(crate) fn hurry(&self, haste: &Haste) {
        if haste.take(self.ticks.load(Ordering::Relaxed))
            && self.hurried.fetch_add(1, Ordering::Relaxed) < HURRIES
        {
            self.engine.increment_epoch();
        }
    }

    /// The number of the current tick.
    pub(crate) fn now(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Marks a guest as running until the returned value is dropped.
    pub(crate) fn enter(&self) -> Running<'_> {
        self.running.fetch_add(1, Ordering::SeqCst);
        if self.parked.load(Ordering::SeqCst) {
            self.wake();
        }
        Running(self)
    }
}

/// How often a sandbox has requested this since the last tick.
#[derive(Default)]
pub(crate) struct Haste(AtomicU64);

impl Haste {
    /// Whether it may be once more in this tick. The word is the tick's number, then the count.
    fn take(&self, tick: u64) -> bool {
        let next = |word: u64| match (word >> 8 == tick, word & 0xff) {
            (true, HURRIES_EACH..) => None,
            (true, _) => Some(word + 1),
            (false, _) => Some(tick << 8 | 1),
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
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

impl TickerGuard {
    /// The ticker, for others to use; after the guard is gone it no longer ticks.
    pub(crate) fn ticker(&self) -> Arc<Ticker> {
        self.0.clone()
    }
}

impl Drop for TickerGuard {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::SeqCst);
        self.0.wake();
    }
}
