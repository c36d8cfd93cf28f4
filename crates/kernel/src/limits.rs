//! What a sandbox may use, and the meter on its memory.

use std::sync::atomic::{AtomicU64, Ordering};

/// Limits that the kernel enforces. Files have their own, in the tree's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all processes together, beyond what their programs start with, in bytes.
    pub memory_bytes: u64,
    /// Processes alive or not yet waited for.
    pub processes: usize,
    /// Descriptors a process may have open.
    pub open_files: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 256 << 20, processes: 64, open_files: 256 }
    }
}

/// Charged for each process besides what it grows by.
pub(crate) const FLAT_CHARGE: u64 = 1 << 20;

/// Counts the memory of a sandbox's processes.
pub(crate) struct Meter {
    used: AtomicU64,
    peak: AtomicU64,
    limit: u64,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Meter {
        Meter { used: AtomicU64::new(0), peak: AtomicU64::new(0), limit }
    }

    /// Charges `bytes`, unless that would pass the limit.
    pub(crate) fn charge(&self, bytes: u64) -> bool {
        let charged = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
            used.checked_add(bytes).filter(|&total| total <= self.limit)
        });
        if let Ok(before) = charged {
            self.peak.fetch_max(before + bytes, Ordering::SeqCst);
        }
        charged.is_ok()
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
    }

    /// Begins to look for the highest use anew.
    pub(crate) fn reset_peak(&self) {
        self.peak.store(self.used(), Ordering::SeqCst);
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::SeqCst)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::SeqCst)
    }
}
