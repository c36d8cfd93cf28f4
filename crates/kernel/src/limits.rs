//! A sandbox's limits, and the meter of its memory.
//!
//! Two things are metered: the memory of guests, charged where it grows (`instance.rs`), and what the kernel keeps for
//! them on the host (arguments, pipes, names, lists), each with a [`Charge`] that lives as long as the thing itself.
//! Buffers of at most [`SCRATCH`] bytes that live no longer than one system call are covered by the flat charge.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wardian_vfs::{Errno, Result};

use crate::run::Run;

/// Limits that the kernel enforces. Files have their own, in the tree's quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum memory of all processes together, beyond what their programs start with, in bytes.
    pub memory_bytes: u64,
    /// Maximum number of processes alive or not yet waited for, at most [`Limits::MOST_PROCESSES`].
    pub processes: usize,
    /// Maximum number of open descriptors per process, at most [`Limits::MOST_OPEN_FILES`].
    pub open_files: usize,
}

impl Limits {
    /// Higher limits on processes count as this: there must always be a number for the next one.
    pub const MOST_PROCESSES: usize = 32_000;
    /// Higher limits on descriptors count as this: a table of so many is what the flat charge of a process covers, and so long may
    /// lists of descriptors be that are passed to a system call.
    pub const MOST_OPEN_FILES: usize = 4_096;

    pub(crate) fn bounded(self) -> Limits {
        Limits {
            processes: self.processes.min(Limits::MOST_PROCESSES),
            open_files: self.open_files.min(Limits::MOST_OPEN_FILES),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { memory_bytes: 256 << 20, processes: 256, open_files: 256 }
    }
}

/// Charged for each process in addition to its instance and what it grows by: what the kernel knows of it, one buffer of
/// a system call, and the first pages that it writes.
pub(crate) const FLAT_CHARGE: u64 = (64 << 10) + SCRATCH as u64 + FLAT_PAGES;
/// The written pages that the flat charge covers (`footprint.rs` counts them).
pub(crate) const FLAT_PAGES: u64 = 64 << 10;
/// The name of the limit on the memory of all sandboxes together.
pub(crate) const ENGINE_MEMORY: &str = "engineMemoryBytes";
/// The largest buffer that a system call uses without a separate charge.
pub(crate) const SCRATCH: usize = 64 * 1024;

/// The part of a sandbox's memory that growing does not take, up to [`MOST_KEPT`]: one process that has taken what there is must
/// not keep the next command from starting.
const KEPT_PART: u64 = 32;
const MOST_KEPT: u64 = 32 << 20;

/// Counts the memory of a sandbox's processes.
pub(crate) struct Meter {
    used: AtomicU64,
    peak: AtomicU64,
    limit: u64,
    /// What all sandboxes of the kernel may use together, if that is limited.
    all: Option<Arc<Meter>>,
    /// Whether the last refusal was for the limit of all.
    refused_for_all: AtomicBool,
}

impl Meter {
    pub(crate) fn new(limit: u64) -> Meter {
        Meter::within(None, limit)
    }

    /// Creates a meter whose charges also count for `all`.
    pub(crate) fn within(all: Option<Arc<Meter>>, limit: u64) -> Meter {
        let (used, peak) = (AtomicU64::new(0), AtomicU64::new(0));
        Meter { used, peak, limit, all, refused_for_all: AtomicBool::new(false) }
    }

    /// Charges `bytes`, unless that would exceed the limit.
    pub(crate) fn charge(&self, bytes: u64) -> bool {
        self.charge_up_to(self.limit, bytes)
    }

    /// Charges for memory that grows: less than the whole limit, so that something is left to start other processes with.
    pub(crate) fn charge_growth(&self, bytes: u64) -> bool {
        let kept = (self.limit / KEPT_PART).min(MOST_KEPT);
        self.charge_up_to(self.limit - kept, bytes)
    }

    fn charge_up_to(&self, limit: u64, bytes: u64) -> bool {
        let charged = self.used.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |used| {
            used.checked_add(bytes).filter(|&total| total <= limit)
        });
        let Ok(before) = charged else {
            self.refused_for_all.store(false, Ordering::Relaxed);
            return false;
        };
        if self.all.as_ref().is_some_and(|all| !all.charge(bytes)) {
            self.used.fetch_sub(bytes, Ordering::SeqCst);
            self.refused_for_all.store(true, Ordering::Relaxed);
            return false;
        }
        self.peak.fetch_max(before + bytes, Ordering::SeqCst);
        true
    }

    pub(crate) fn release(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
        if let Some(all) = &self.all {
            all.release(bytes);
        }
    }

    /// Returns the name of the limit that the last refusal was for.
    pub(crate) fn refusing(&self) -> &'static str {
        if self.refused_for_all.load(Ordering::Relaxed) { ENGINE_MEMORY } else { "memoryBytes" }
    }

    /// Charges `bytes` until the returned value is dropped, unless that would exceed the limit.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Option<Charge> {
        let mut charge = Charge::nothing(self);
        charge.grow_to(bytes).then_some(charge)
    }

    /// Does the same for a process of `run`: returns ENOMEM past the limit, and reports the limit to the run's caller.
    pub(crate) fn hold_for(self: &Arc<Self>, run: &Run, bytes: usize) -> Result<Charge> {
        self.hold(bytes).ok_or_else(|| {
            run.hit("memoryBytes");
            Errno::ENOMEM
        })
    }

    /// Restarts the measurement of the peak.
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

/// Bytes on the host that a sandbox is charged for; returned when this is dropped.
pub(crate) struct Charge {
    meter: Arc<Meter>,
    bytes: u64,
}

impl Charge {
    /// A charge that can grow.
    pub(crate) fn nothing(meter: &Arc<Meter>) -> Charge {
        Charge { meter: meter.clone(), bytes: 0 }
    }

    /// Raises the charge to `bytes` in total, if that is more than now; returns false, without change, if it would
    /// exceed the limit.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = (bytes as u64).saturating_sub(self.bytes);
        if more > 0 && !self.meter.charge(more) {
            return false;
        }
        self.bytes += more;
        true
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.meter.release(self.bytes);
        }
    }
}

/// Memory that the host keeps for a sandbox, charged to it until this is dropped.
pub struct HeldMemory(#[allow(dead_code)] Charge);

impl HeldMemory {
    pub(crate) fn new(charge: Charge) -> HeldMemory {
        HeldMemory(charge)
    }
}

impl std::fmt::Debug for HeldMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldMemory").field("bytes", &self.0.bytes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_returned_when_it_is_dropped() {
        let meter = Arc::new(Meter::new(100));
        let mut charge = meter.hold(60).expect("fits");
        assert!(meter.hold(41).is_none());
        assert!(charge.grow_to(100) && !charge.grow_to(101));
        assert!(charge.grow_to(10), "less than it holds is no change");
        assert_eq!(meter.used(), 100);
        drop(charge);
        assert_eq!((meter.used(), meter.peak()), (0, 100));
    }

    #[test]
    fn what_grows_leaves_something_for_others() {
        let meter = Meter::new(320);
        assert!(meter.charge_growth(310) && !meter.charge_growth(1));
        assert!(meter.charge(10) && !meter.charge(1));
        assert!(Meter::new(u64::MAX).charge_growth(u64::MAX - MOST_KEPT));
    }

    #[test]
    fn the_total_of_all_sandboxes_is_limited_too() {
        let all = Arc::new(Meter::new(100));
        let [one, other] = [80, 80].map(|limit| Arc::new(Meter::within(Some(all.clone()), limit)));
        let charge = one.hold(70).expect("fits");
        assert!(other.hold(40).is_none());
        assert_eq!((other.used(), other.refusing()), (0, "engineMemoryBytes"));
        assert!(one.hold(20).is_none());
        assert_eq!(one.refusing(), "memoryBytes");
        drop(charge);
        assert_eq!(all.used(), 0);
        assert!(other.hold(40).is_some());
    }
}
