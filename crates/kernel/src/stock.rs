//! Instances that were used, wiped for the next process of the same program.
//!
//! Making an instance and taking it down is work on the memory map of the whole process, and its first writes are page
//! faults: for a small tool that is most of its life. One whose process is gone is therefore wiped where that is quick:
//! what it wrote is set back to what a fresh instance has there. That must be all of its state, so only programs that
//! ship with us are kept, which are known to have none beside their memory and their stack pointer.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::instance::Instance;
use crate::pages::{self, PAGE, Page, page};

/// How many idle instances of a program are kept.
const KEPT: usize = 16;
/// One that wrote more pages than this is quicker made anew, and would hold too much while it is idle.
const WORTH_WIPING: usize = 64;

/// Idle instances of one program.
pub(crate) struct Stock {
    /// None are kept of a program that may have state elsewhere.
    keeps: bool,
    idle: Mutex<Vec<Instance>>,
    /// What a fresh instance has in the pages that some process wrote.
    fresh: Mutex<HashMap<u32, Box<Page>>>,
}

impl Stock {
    /// None yet, and none ever unless it `keeps` them.
    pub(crate) fn new(keeps: bool) -> Stock {
        Stock { keeps, idle: Mutex::default(), fresh: Mutex::default() }
    }

    /// One that is as good as fresh.
    pub(crate) fn take(&self) -> Option<Instance> {
        self.idle.lock().pop()
    }

    pub(crate) fn len(&self) -> usize {
        self.idle.lock().len()
    }

    pub(crate) fn has_room(&self) -> bool {
        self.keeps && self.idle.lock().len() < KEPT
    }

    pub(crate) fn put(&self, instance: Instance) {
        let mut idle = self.idle.lock();
        if idle.len() < KEPT {
            idle.push(instance);
        } else {
            drop(idle);
            drop(instance);
        }
    }

    /// Sets `memory`, as large as a fresh instance's and mapped over nothing else, back to what a fresh one has.
    /// `None`, and nothing done, where too much was written.
    pub(crate) fn wipe(&self, memory: &mut [u8]) -> Option<()> {
        let written = pages::written(memory, 0);
        if written.len() > WORTH_WIPING {
            return None;
        }
        let mut fresh = self.fresh.lock();
        for number in written {
            let start = number as usize * PAGE;
            let bytes = &mut memory[start..start + PAGE];
            match fresh.get(&number) {
                Some(contents) => bytes.copy_from_slice(&contents[..]),
                None => {
                    pages::forget(bytes).ok()?;
                    fresh.insert(number, Box::new(*page(memory, number)));
                }
            }
        }
        Some(())
    }

    /// Takes from `written` the pages of `memory` that are as in a fresh instance: they count as written because an
    /// earlier process wrote them.
    pub(crate) fn leave_out_fresh(&self, written: &mut Vec<u32>, memory: &[u8]) {
        let fresh = self.fresh.lock();
        written
            .retain(|&number| fresh.get(&number).is_none_or(|contents| **contents != *page(memory, number)));
    }
}
