//! What a process costs the host, charged to its sandbox.
//!
//! There are three parts: a flat amount when it starts; what its memory grows by, charged in full before it grows
//! (`instance.rs`); and the pages it writes without having to ask. Those are the stack it runs on and, for a program that
//! ships with Wardian, its initial memory or start image, which is shared with all who run it until it is written. They are
//! counted when
//! the process gives up its processor, so what is not charged yet is at most what it wrote in one short turn.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::limits::{FLAT_CHARGE, FLAT_PAGES, Meter};
use crate::memory::pages;
use crate::stack;

/// How much processor time a process may use before its pages are counted again: time to write a few dozen pages.
const COUNT_AFTER_NANOS: u64 = 50_000;
/// The same for a large start image, where counting takes tens of microseconds.
const COUNT_LARGE_AFTER_NANOS: u64 = 500_000;
const LARGE: usize = 4 << 20;
/// What a process with a large start image is charged for before it writes it.
const RESERVE: u64 = 2 << 20;
/// What the pages of a process are taken for on a Linux that does not tell which were written.
const UNKNOWN: u64 = 1 << 20;

/// A process's account with its sandbox's meter.
pub(crate) struct Footprint {
    meter: Arc<Meter>,
    state: Mutex<State>,
    /// An address in the stack it runs on; 0 before its first system call.
    stack: AtomicUsize,
    /// Processor time since its pages were counted.
    uncounted_nanos: AtomicU64,
    /// How much of that there may be.
    count_after: AtomicU64,
}

#[derive(Default)]
struct State {
    charged: u64,
    /// What of that is for pages that were counted.
    pages: u64,
    /// The initial memory, or start image, that it shares until it writes it.
    shared: Range<usize>,
    /// What it has written of that before, and has in a template by now.
    own: u64,
    /// It is gone, and nothing is charged to it any more.
    closed: bool,
}

impl Footprint {
    pub(crate) fn new(meter: Arc<Meter>) -> Footprint {
        let (stack, uncounted_nanos) = (AtomicUsize::new(0), AtomicU64::new(0));
        let count_after = AtomicU64::new(COUNT_AFTER_NANOS);
        Footprint { meter, state: Mutex::default(), stack, uncounted_nanos, count_after }
    }

    /// Returns the bytes it is charged for.
    pub(crate) fn charged(&self) -> u64 {
        self.state.lock().charged
    }

    /// Charges for an instance at its start, and for this much in addition.
    pub(crate) fn begin(&self, more: u64) -> bool {
        self.charge(FLAT_CHARGE + more)
    }

    /// Charges `bytes` until everything is given back, unless that would exceed the limit.
    pub(crate) fn charge(&self, bytes: u64) -> bool {
        self.charge_by(Meter::charge, bytes)
    }

    /// Does the same for memory that grows, which leaves something for other processes.
    pub(crate) fn charge_growth(&self, bytes: u64) -> bool {
        self.charge_by(Meter::charge_growth, bytes)
    }

    fn charge_by(&self, charge: fn(&Meter, u64) -> bool, bytes: u64) -> bool {
        let mut state = self.state.lock();
        if state.closed {
            return true;
        }
        let charged = charge(&self.meter, bytes);
        state.charged += if charged { bytes } else { 0 };
        charged
    }

    /// Notes where the initial memory is that it has not been charged for.
    pub(crate) fn shares(&self, memory: &[u8]) {
        let start = memory.as_ptr() as usize;
        self.state.lock().shared = start..start + memory.len();
    }

    /// Does the same for a start image, of which it has `own` bytes for itself already.
    pub(crate) fn shares_image(&self, image: &[u8], own: u64) {
        self.shares(image);
        self.state.lock().own = own;
        let after = if image.len() > LARGE { COUNT_LARGE_AFTER_NANOS } else { COUNT_AFTER_NANOS };
        self.count_after.store(after, Ordering::Relaxed);
    }

    /// Notes the stack that the caller runs on as the process's.
    pub(crate) fn runs_here(&self) {
        self.stack.store(stack::here(), Ordering::Relaxed);
    }

    /// Counts its pages, if it has used this much more processor time and that is enough to have written some. Returns
    /// false if they exceed the limit.
    pub(crate) fn spend(&self, nanos: u64) -> bool {
        let before = self.uncounted_nanos.fetch_add(nanos, Ordering::Relaxed);
        before + nanos < self.count_after.load(Ordering::Relaxed) || self.count()
    }

    /// Charges for the pages it has written without asking. Returns false if that exceeds the limit.
    pub(crate) fn count(&self) -> bool {
        self.uncounted_nanos.store(0, Ordering::Relaxed);
        let mut state = self.state.lock();
        if state.closed || state.charged == 0 {
            return true;
        }
        let stack = stack::around(self.stack.load(Ordering::Relaxed));
        let written = pages::bytes_written(state.shared.clone()).zip(pages::bytes_written(stack));
        let written = written.map_or(UNKNOWN, |(memory, stack)| memory + stack) + state.own;
        let written = written.saturating_sub(FLAT_PAGES);
        // With some in reserve, where there is memory for it: a program that is told that there is none must be able to go on.
        let wanted = if state.shared.len() > LARGE { written + RESERVE } else { written };
        if wanted > state.pages && self.meter.charge(wanted - state.pages) {
            state.charged += wanted - state.pages;
            state.pages = wanted;
        } else if written > state.pages {
            if !self.meter.charge(written - state.pages) {
                return false;
            }
            state.charged += written - state.pages;
            state.pages = written;
        } else if wanted < state.pages {
            let less = state.pages - wanted;
            self.meter.release(less);
            state.charged -= less;
            state.pages = wanted;
        }
        true
    }

    /// Returns everything that was charged: its instance is gone, because it has ended or runs another program.
    pub(crate) fn give_back(&self) {
        let mut state = self.state.lock();
        self.meter.release(state.charged);
        *state = State { closed: state.closed, ..State::default() };
    }

    /// Does the same for good.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.give_back();
    }
}
