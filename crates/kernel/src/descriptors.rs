//! How many of the host's descriptors guests' memories may use.
//!
//! A memory kept in a file (`template.rs`) holds a descriptor as long as a sandbox may need it, even while that sandbox
//! is idle. Everything else in the process needs descriptors too: connections, mounted files, helpers. So such files use
//! at most half of the process's descriptors, and beyond that memories are stored differently.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Used if the system does not say how many there may be.
const USUAL: usize = 1_024;
/// More are of no use, and programs that are started here may look at each of them.
const PLENTY: u64 = 1 << 20;

/// Files that are open now.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// How many there may be.
static MOST: OnceLock<usize> = OnceLock::new();

/// Raises this process's soft limit of open files (`ulimit -Sn`) as far as it is useful and allowed, once. If that fails the limit does not
/// change.
pub fn raise_limit() {
    MOST.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap_or(u64::MAX).min(PLENTY);
        if limit.current.is_some_and(|current| current < most) {
            let raised = Rlimit { current: Some(most), maximum: limit.maximum };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::debug!(%error, "the limit of open files stays as it is");
            }
        }
        let now = getrlimit(Resource::Nofile).current;
        now.map_or(USUAL, |limit| usize::try_from(limit).unwrap_or(usize::MAX)) / 2
    });
}

/// One of the descriptors that memories may use, returned when it is dropped.
pub(crate) struct Share(());

impl Share {
    /// Takes one more, if there are any left.
    pub(crate) fn take() -> io::Result<Share> {
        let most = *MOST.get().unwrap_or(&(USUAL / 2));
        let taken =
            OPEN.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |open| (open < most).then_some(open + 1));
        taken.map(|_| Share(())).map_err(|_| io::Error::from_raw_os_error(libc::EMFILE))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}
