//! Used instances, wiped for the next process of the same program.
//!
//! Creating and destroying an instance changes the memory map of the whole process, and its first writes are page
//! faults: for a small tool that is most of its life. So an instance whose process is gone is wiped if that is fast:
//! what it wrote is reset to its initial contents. That must be all of its state, so only Wardian's own programs are
//! kept, which are known to have none except their memory and their stack pointer.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::instance::Instance;
use crate::memory::pages::{self, PAGE, Page, page};

/// How many idle instances of a program are kept.
const KEPT: usize = 16;
/// An instance that wrote more pages than this is faster to create again, and would hold too much while idle.
const WORTH_WIPING: usize = 64;

/// Idle instances of one program.
pub(crate) struct Stock {
    /// None are kept of a program that may have state elsewhere.
    keeps: bool,
    idle: Mutex<Vec<Instance>>,
    /// The initial contents of the pages that some process wrote.
    fresh: Mutex<HashMap<u32, Box<Page>>>,
}

impl Stock {
    /// Creates an empty stock, which stays empty unless it `keeps` instances.
    pub(crate) fn new(keeps: bool) -> Stock {
        Stock { keeps, idle: Mutex::default(), fresh: Mutex::default() }
    }

    /// Returns a wiped instance, if there is one.
    pub(crate) fn take(&self) -> Option<Instance> {
        self.idle.lock().pop()
    }

    pub(crate) fn len(&self) -> usize {
        self.idle.lock().len()
    }

    /// Whether instances of this program have no state except what can be reset.
    pub(crate) fn keeps(&self) -> bool {
        self.keeps
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

    /// Resets `memory`, as large as a fresh instance's and mapped over nothing else, to its initial contents. Returns
    /// `None`, without doing anything, if too much was written.
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

    /// Splits `written` into the pages of `memory` that differ from a fresh instance's, and those that do not: they count as
    /// written because an earlier process wrote them.
    pub(crate) fn leave_out_fresh(&self, written: Vec<u32>, memory: &[u8]) -> (Vec<u32>, Vec<u32>) {
        let fresh = self.fresh.lock();
        written.into_iter().partition(|&number| {
            fresh.get(&number).is_none_or(|contents| **contents != *page(memory, number))
        })
    }
}
