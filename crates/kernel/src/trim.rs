//! What is left to do after a sandbox is gone: take down its files, and give free memory back to the system.
//!
//! Taking down many files takes its time, so it is not done on a worker. Waking another thread for each would cost more
//! than most forks do, which share their files with others that are still there: the files wait a moment for company.
//!
//! The allocator keeps what was freed for whoever asks next, in an arena for each thread, and pieces that are still in
//! use keep everything below them. After a sandbox with many small files, or many full pipes, that was hundreds of
//! megabytes that nobody used. So some time after a sandbox is gone the allocator is asked to return whole pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;

use crate::tree_lock::TreeLock;

/// How long files wait to be taken down, and how many sandboxes' at most.
const GATHERING: Duration = Duration::from_millis(5);
const MOST_TREES: usize = 64;
/// How long after a sandbox is gone: others that go at the same time share the work.
const DELAY: Duration = Duration::from_millis(500);

/// The files that wait, and whether somebody will return memory soon.
#[derive(Default)]
pub(crate) struct Trimmer {
    trees: Arc<Mutex<Vec<TreeLock>>>,
    pending: Arc<AtomicBool>,
}

impl Trimmer {
    /// Takes files down soon, on a thread that may take its time.
    pub(crate) fn take_down(&self, tree: TreeLock, runtime: &Handle) {
        let waiting = {
            let mut trees = self.trees.lock();
            trees.push(tree);
            trees.len()
        };
        let trees = self.trees.clone();
        let take_down = move || {
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

    /// Returns free memory soon, on a thread that may take its time.
    pub(crate) fn soon(&self, runtime: &Handle) {
        if self.pending.swap(true, Ordering::SeqCst) {
            return;
        }
        let pending = self.pending.clone();
        runtime.spawn(async move {
            tokio::time::sleep(DELAY).await;
            // What goes from here on asks again.
            pending.store(false, Ordering::SeqCst);
            let _ = tokio::task::spawn_blocking(return_free_memory).await;
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
