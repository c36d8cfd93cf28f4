//! Hooks for tests: how often a host file was synced, and a crash at any step of an apply or a recovery. Costs one
//! atomic load when unused.

use std::sync::atomic::{AtomicU64, Ordering};

static STEPS_LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
static SYNCED: AtomicU64 = AtomicU64::new(0);

/// Kills this process, as the kernel or a power failure might, after `steps` more steps.
pub fn crash_after(steps: u64) {
    STEPS_LEFT.store(steps, Ordering::SeqCst);
}

/// Returns how many steps are left until the crash: what [`crash_after`] was given minus those taken since.
pub fn steps_left() -> u64 {
    STEPS_LEFT.load(Ordering::SeqCst)
}

/// Returns how often a guest had a host file or directory synced.
pub fn synced() -> u64 {
    SYNCED.load(Ordering::SeqCst)
}

/// Marks a step that is about to change something on disk.
pub(crate) fn step() {
    if STEPS_LEFT.load(Ordering::Relaxed) == u64::MAX {
        return;
    }
    if STEPS_LEFT.fetch_sub(1, Ordering::SeqCst) == 0 {
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
}

pub(crate) fn note_sync() {
    SYNCED.fetch_add(1, Ordering::SeqCst);
}
