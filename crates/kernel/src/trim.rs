//! Returns free memory to the system.
//!
//! The allocator keeps freed memory for reuse, in an arena for each thread, and pieces that are still in use keep
//! everything below them. After a sandbox with many small files, or many full pipes, that was hundreds of megabytes of
//! unused memory. So some time after a sandbox is gone the allocator is asked to return whole pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;

/// How long after a sandbox is gone: others that end at the same time share the work.
const DELAY: Duration = Duration::from_millis(500);

/// Whether memory will be returned soon.
#[derive(Default)]
pub(crate) struct Trimmer {
    pending: Arc<AtomicBool>,
}

impl Trimmer {
    /// Returns free memory soon, on a thread that may block.
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
