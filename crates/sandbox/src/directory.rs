//! Where relative paths start: the shell's directory, as its last command left it.

use std::sync::Arc;

use parking_lot::Mutex;
use wardian_kernel::Session;

/// The directory of a sandbox's shell. It is told after each command, so that nobody has to wait for the next.
pub(crate) struct Directory(Mutex<Arc<[u8]>>);

impl Directory {
    pub(crate) fn of(session: &Session) -> Directory {
        Directory(Mutex::new(session.directory()))
    }

    /// Takes note of where the shell is now.
    pub(crate) fn follow(&self, session: &Session) {
        *self.0.lock() = session.directory();
    }

    /// Returns an absolute path; `start` is where to begin if the shell's directory has no name any more.
    pub(crate) fn absolute(&self, path: &[u8], start: &str) -> Vec<u8> {
        // An empty path is nowhere, not here.
        if path.is_empty() || path.starts_with(b"/") {
            return path.to_vec();
        }
        let here = self.0.lock().clone();
        let here = if here.starts_with(b"/") { &here[..] } else { start.as_bytes() };
        [here.strip_suffix(b"/").unwrap_or(here), b"/", path].concat()
    }
}
