//! Host files that sandboxes keep open, and how many there may be.
//!
//! Each holds a descriptor of the host process, which needs descriptors for everything else, too: connections, memory
//! files, helpers. So all mounts together hold at most a quarter of them, and one mount, whose sandbox and forks share the
//! count, half of that. Beyond it opening fails with ENFILE, as on a system whose file table is full.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cap_std::fs::File;
use rustix::process::{Resource, getrlimit};

use crate::{Errno, Result};

/// Held by all mounts of this process.
static ALL: AtomicUsize = AtomicUsize::new(0);

/// An open host file that is counted.
#[derive(Debug)]
pub(crate) struct Held {
    file: File,
    _slots: (Slot, Slot),
}

impl Deref for Held {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

/// How many files of one mount are held.
#[derive(Default)]
pub(crate) struct Holding(Arc<AtomicUsize>);

impl Holding {
    /// Opens a file if there is a slot for it.
    pub(crate) fn hold(&self, open: impl FnOnce() -> Result<File>) -> Result<Arc<Held>> {
        let most = most();
        let slots = (Slot::take(Count::All, most)?, Slot::take(Count::Mount(self.0.clone()), most / 2)?);
        Ok(Arc::new(Held { file: open()?, _slots: slots }))
    }
}

fn most() -> usize {
    let soft = getrlimit(Resource::Nofile).current;
    soft.map_or(usize::MAX, |soft| usize::try_from(soft).unwrap_or(usize::MAX)) / 4
}

#[derive(Debug)]
enum Count {
    All,
    Mount(Arc<AtomicUsize>),
}

impl Deref for Count {
    type Target = AtomicUsize;

    fn deref(&self) -> &AtomicUsize {
        match self {
            Count::All => &ALL,
            Count::Mount(count) => count,
        }
    }
}

/// One of the files that may be held, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct Slot(Count);

impl Slot {
    /// One for a mounted directory itself.
    pub(crate) fn of_directory() -> Result<Slot> {
        Slot::take(Count::All, most())
    }

    fn take(count: Count, most: usize) -> Result<Slot> {
        let more = |held: usize| (held < most).then_some(held + 1);
        match count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Slot(count)),
            Err(_) => Err(Errno::ENFILE),
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Result<File> {
        Ok(File::from_std(std::fs::File::open("/dev/null")?))
    }

    #[test]
    fn a_mount_keeps_a_limited_number_of_files_open() {
        let (holding, other) = (Holding::default(), Holding::default());
        let most = most() / 2;
        holding.0.store(most - 1, Ordering::Relaxed);
        let last = holding.hold(open).unwrap();
        assert!(matches!(holding.hold(open), Err(Errno::ENFILE)));
        // Only its own share is used up.
        assert!(other.hold(open).is_ok());
        drop(last);
        assert!(holding.hold(open).is_ok());
        // One that cannot be opened takes no slot.
        assert!(matches!(holding.hold(|| Err(Errno::EIO)), Err(Errno::EIO)));
        assert_eq!(holding.0.load(Ordering::Relaxed), most - 1);
    }
}
