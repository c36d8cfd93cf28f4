//! The budget for reading an archive: nothing is allocated that it does not cover.
//!
//! ```text
//! shell    memory, environment, descriptors, history         bounds the memory: memoryBytes and a constant
//! open     contents of removed files that are still open     fsLimitBytes, like all files
//! ```
//! The files themselves go into a tree that has the sandbox's quota. So the peak is at most `memoryBytes` +
//! `fsLimitBytes` (once more for removed files that are open) + [`ALLOWANCE`], whatever an archive claims.
//!
//! The time is limited in the same way: every item is charged, however short it is, and so is every entry of the tar, with
//! what its headers are longer than they need to be (`Tree::import_tar`). And it can be stopped at any time.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::archive::ArchiveError;
use crate::options::Limits;

/// What a shell may use beyond the sandbox's limits: its program's initial memory, environment and history.
pub(crate) const ALLOWANCE: u64 = 128 << 20;
/// The overhead of an item.
const ITEM: u64 = 64;

/// The remaining budget.
pub(crate) struct Budget {
    pub(crate) shell: u64,
    pub(crate) open: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Budget {
        // Pages have numbers and headers.
        let shell = limits.memory_bytes.saturating_add(limits.memory_bytes / 32).saturating_add(ALLOWANCE);
        Budget { shell, open: limits.fs_bytes }
    }

    /// Charges an item of so many bytes to the shell's part, before it is read.
    pub(crate) fn take_shell(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        take(&mut self.shell, bytes, "its shell takes more memory than this sandbox may")
    }

    /// Does the same for the content of a file that is open but removed.
    pub(crate) fn take_open(&mut self, bytes: u64) -> Result<(), ArchiveError> {
        take(&mut self.open, bytes, "there is no space for a file the shell has open")
    }
}

fn take(left: &mut u64, bytes: u64, why: &str) -> Result<(), ArchiveError> {
    match left.checked_sub(bytes.saturating_add(ITEM)) {
        Some(rest) => *left = rest,
        None => return Err(ArchiveError::TooLarge(why.to_owned())),
    }
    Ok(())
}

/// Tells work on another thread to stop: when it is asked to, and when it is dropped.
#[derive(Default)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    /// What the work looks at.
    pub(crate) fn flag(&self) -> StopFlag {
        StopFlag(self.0.clone())
    }

    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for Stop {
    fn drop(&mut self) {
        self.now();
    }
}

/// Whether to stop.
pub(crate) struct StopFlag(Arc<AtomicBool>);

impl StopFlag {
    pub(crate) fn check(&self) -> std::io::Result<()> {
        if self.0.load(Ordering::Relaxed) { Err(std::io::Error::other("cancelled")) } else { Ok(()) }
    }
}

/// A stream that fails once it should stop.
pub(crate) struct Stoppable<R> {
    inner: R,
    stop: StopFlag,
}

impl<R: Read> Stoppable<R> {
    pub(crate) fn new(inner: R, stop: StopFlag) -> Stoppable<R> {
        Stoppable { inner, stop }
    }
}

impl<R: Read> Read for Stoppable<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        self.stop.check()?;
        self.inner.read(buf)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_when_it_should_stop_or_nobody_waits() {
        for end in [(|stop: Stop| stop.now()) as fn(Stop), drop] {
            let stop = Stop::default();
            let mut stream = Stoppable::new(std::io::repeat(7), stop.flag());
            let mut buf = [0; 8];
            stream.read_exact(&mut buf).unwrap();
            end(stop);
            assert_eq!(stream.read(&mut buf).unwrap_err().to_string(), "cancelled");
        }
    }
}
