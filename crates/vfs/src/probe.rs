//! Hooks for tests: how often a host file was synced, a crash at any step of an apply or a recovery, and a list of what those
//! did. Costs one atomic load for each step when unused, and one of the thread's own.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

static STEPS_LEFT: AtomicU64 = AtomicU64::new(u64::MAX);
static SYNCED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static DONE: RefCell<Option<Deeds>> = const { RefCell::new(None) };
}

/// What was done to which paths, in order.
pub type Deeds = Vec<(Did, Vec<u8>)>;

/// What was done to a path of a host directory, or to its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// Its permission bits were changed.
    Chmod,
    /// A directory was removed.
    RemoveDir,
    /// It was synced.
    Sync,
    /// Everything on the file system was.
    SyncAll,
    /// The journal was replaced, and synced.
    WriteJournal,
    /// The journal was removed.
    RemoveJournal,
}

/// From now on, remembers what is done on this thread.
pub fn record() {
    DONE.set(Some(Vec::new()));
}

/// Returns what was done since [`record`].
pub fn recorded() -> Deeds {
    DONE.take().unwrap_or_default()
}

pub(crate) fn note(did: Did, path: &[u8]) {
    DONE.with_borrow_mut(|done| done.iter_mut().for_each(|done| done.push((did, path.to_vec()))));
}

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
