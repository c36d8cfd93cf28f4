//! Room for instances in the whole program.
//!
//! Every instance takes mappings and address space, and Linux gives a process a fixed number of mappings. Running into
//! that wall would fail in odd places; instead a process is made only when there is room: fork and spawn answer EAGAIN,
//! and a command that is to start waits.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wardian_vfs::Errno;

/// Mappings that one instance takes at most, whatever it is made of.
const MAPPINGS_EACH: usize = crate::admit::MAPPINGS;
/// Mappings left to the rest of the program.
const MAPPINGS_KEPT: usize = 8_000;
/// Each reserves four gibibytes and a little of the 128 TiB that a process can address; half of that is enough.
const MOST: usize = 16_000;

/// How many instances there may be.
pub(crate) struct Room {
    free: Arc<Semaphore>,
    all: usize,
}

/// Room for one instance, given back when it is dropped.
pub(crate) struct Berth(#[allow(dead_code)] OwnedSemaphorePermit);

impl Room {
    /// Room for `instances`, by default for what this Linux allows.
    pub(crate) fn new(instances: Option<usize>) -> Room {
        let instances = instances.unwrap_or_else(|| {
            let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
            let mappings = mappings.and_then(|text| text.trim().parse().ok()).unwrap_or(65_530_usize);
            (mappings.saturating_sub(MAPPINGS_KEPT) / MAPPINGS_EACH).clamp(64, MOST)
        });
        Room { free: Arc::new(Semaphore::new(instances)), all: instances }
    }

    /// Room for one more. EAGAIN when there is none.
    pub(crate) fn take(&self) -> Result<Berth, Errno> {
        self.free.clone().try_acquire_owned().map(Berth).map_err(|_| Errno::EAGAIN)
    }

    /// Room for one that nobody needs yet: only while there is plenty.
    pub(crate) fn spare(&self) -> Result<Berth, Errno> {
        match self.free.available_permits() > self.all / 2 {
            true => self.take(),
            false => Err(Errno::EAGAIN),
        }
    }

    /// Waits for room, first come, first served.
    pub(crate) async fn wait(&self) -> Result<Berth, Errno> {
        self.free.clone().acquire_owned().await.map(Berth).map_err(|_| Errno::EAGAIN)
    }
}
