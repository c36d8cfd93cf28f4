//! Cleans up after a sandbox: frees its files and returns free memory to the system.
//!
//! Freeing many files takes a while, so it does not happen on a worker. Waking another thread for each sandbox would cost
//! more than most forks do, because a fork shares its files with its parent; so files wait a few milliseconds and are
//! freed in batches.
//!
//! The allocator keeps freed memory for reuse, in an arena for each thread, and pieces that are still in use keep
//! everything below them. After a sandbox with many small files, or many full pipes, that was hundreds of megabytes of
//! unused memory. So some time after a sandbox is gone the allocator is asked to return whole pages. What a program keeps
//! in addition to its sandboxes (the requests of a connection, say) may be larger still, and only the program knows when it ends:
//! it asks, too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::tree_lock::TreeLock;

/// How long files wait to be freed together.
const GATHERING: Duration = Duration::from_millis(5);
/// How many sandboxes' files wait at most.
const MOST_TREES: usize = 64;
/// How long after a sandbox is gone: others that end at the same time share the work.
const DELAY: Duration = Duration::from_millis(500);
/// How long after that once more, where a program asked: for what took longer to end.
const AGAIN: Duration = Duration::from_secs(4);

/// Files that wait to be freed, and whether memory will be returned soon.
#[derive(Default)]
pub(crate) struct Trimmer {
    trees: Arc<Mutex<Vec<TreeLock>>>,
    pending: Arc<AtomicBool>,
    asked: Arc<Asked>,
}

/// What a program has asked for.
#[derive(Default)]
struct Asked {
    times: AtomicU64,
    /// Whether a task does what was asked.
    busy: AtomicBool,
}

impl Trimmer {
    /// Frees files soon, on a thread that may block.
    pub(crate) fn take_down(&self, tree: TreeLock, runtime: &Handle) {
        let waiting = {
            let mut trees = self.trees.lock();
            trees.push(tree);
            trees.len()
        };
        let trees = self.trees.clone();
        let take_down = move || {
            // Not freed while the lock is held.
            let gathered = std::mem::take(&mut *trees.lock());
            drop(gathered);
        };
        if waiting == MOST_TREES {
            runtime.spawn_blocking(take_down);
        } else if waiting == 1 {
            runtime.spawn(async move {
                tokio::time::sleep(GATHERING).await;
                let _ = tokio::task::spawn_blocking(take_down).await;
            });
        }
    }

    /// Returns free memory soon, on a thread that may block.
    pub(crate) fn soon(&self, runtime: &Handle) {
        if self.pending.swap(true, Ordering::SeqCst) {
            return;
        }
        let pending = self.pending.clone();
        runtime.spawn(async move {
            tokio::time::sleep(DELAY).await;
            // Whatever ends from here on asks again.
            pending.store(false, Ordering::SeqCst);
            let _ = tokio::task::spawn_blocking(return_free_memory).await;
        });
    }

    /// Does the same, and once more later. However often it is asked, one task does it.
    pub(crate) fn soon_and_again(&self, runtime: &Handle) {
        self.asked.times.fetch_add(1, Ordering::SeqCst);
        if self.asked.busy.swap(true, Ordering::SeqCst) {
            return;
        }
        let asked = self.asked.clone();
        runtime.spawn(async move {
            loop {
                let before = asked.times.load(Ordering::SeqCst);
                for delay in [DELAY, AGAIN] {
                    tokio::time::sleep(delay).await;
                    let _ = tokio::task::spawn_blocking(return_free_memory).await;
                }
                if asked.times.load(Ordering::SeqCst) != before {
                    continue;
                }
                asked.busy.store(false, Ordering::SeqCst);
                // Who asked in between has seen that it was busy.
                if asked.times.load(Ordering::SeqCst) == before || asked.busy.swap(true, Ordering::SeqCst) {
                    return;
                }
            }
        });
    }
}

#[cfg(target_env = "gnu")]
fn return_free_memory() {
    // SAFETY: it has no preconditions, takes the arenas' own locks, and touches only memory that nobody has allocated.
    unsafe { libc::malloc_trim(0) };
}

/// Other allocators return memory by themselves.
#[cfg(not(target_env = "gnu"))]
fn return_free_memory() {}

/// Makes this program's allocator return large and unused pieces of memory at once. For a program to call when it starts.
///
/// glibc raises its own thresholds to tens of megabytes when large pieces come and go, and `malloc_trim` never returns the
/// end of a thread's arena: a server kept 60 MB that way. Thresholds that are set do not move.
#[cfg(target_env = "gnu")]
pub fn tune_allocator() {
    const RETURN_FROM: libc::c_int = 128 << 10;
    const OWN_MAPPING_FROM: libc::c_int = 256 << 10;
    // SAFETY: both set a number of the allocator, under its own lock.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, RETURN_FROM);
        libc::mallopt(libc::M_MMAP_THRESHOLD, OWN_MAPPING_FROM);
    }
}

/// Other allocators return memory by themselves.
#[cfg(not(target_env = "gnu"))]
pub fn tune_allocator() {}
