//! The budget for reading an archive: nothing is allocated that it does not cover.
//!
//! ```text
//! stream   bytes that come out of the decompressor           bounds the time
//! shell    memory, environment, descriptors, history         bounds the memory: memoryBytes and a constant
//! open     contents of removed files that are still open     fsLimitBytes, like all files
//! ```
//! The files themselves go into a tree that has the sandbox's quota. So the peak is at most `memoryBytes` +
//! `fsLimitBytes` (once more for removed files that are open) + [`ALLOWANCE`], whatever an archive claims.

use std::io::Read;

use crate::archive::ArchiveError;
use crate::options::Limits;

/// What a shell may use beyond the sandbox's limits: its program's initial memory, environment and history.
pub(crate) const ALLOWANCE: u64 = 128 << 20;
/// The overhead of an item.
const ITEM: u64 = 64;
/// The maximum size of a file's header in a tar: names of the longest kind, records and padding.
const HEADERS: u64 = 12 << 10;
/// The minimum the quota charges for a file or a name.
const LEAST_CHARGE: u64 = 128;

/// The remaining budget.
pub(crate) struct Budget {
    pub(crate) shell: u64,
    pub(crate) open: u64,
    stream: u64,
}

impl Budget {
    pub(crate) fn new(limits: &Limits) -> Budget {
        // Pages have numbers and headers.
        let shell = limits.memory_bytes.saturating_add(limits.memory_bytes / 32).saturating_add(ALLOWANCE);
        // As many files as there can be names for, each with the longest path there is.
        let names =
            (limits.fs_bytes / LEAST_CHARGE).min(limits.file_count.saturating_mul(2)).saturating_add(1024);
        let files = limits.fs_bytes.saturating_mul(2).saturating_add(names.saturating_mul(HEADERS));
        Budget { shell, open: limits.fs_bytes, stream: shell.saturating_add(files) }
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

/// A stream that fails once it has delivered too much.
pub(crate) struct Metered<R> {
    inner: R,
    left: u64,
}

impl<R: Read> Metered<R> {
    pub(crate) fn new(inner: R, budget: &Budget) -> Metered<R> {
        Metered { inner, left: budget.stream }
    }
}

impl<R: Read> Read for Metered<R> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if self.left == 0 && !buf.is_empty() {
            return Err(std::io::Error::other("it unpacks to more than this sandbox can hold"));
        }
        let wanted = usize::try_from(self.left).map_or(buf.len(), |left| left.min(buf.len()));
        let count = self.inner.read(&mut buf[..wanted])?;
        self.left -= count as u64;
        Ok(count)
    }
}
