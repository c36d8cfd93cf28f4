//! How many of the host's descriptors guests' memories and programs may use.
//!
//! A memory kept in a file (`memory/template.rs`) holds a descriptor as long as a sandbox may need it, even while that sandbox
//! is idle; so does the code of a user's own program. Everything else in the process needs descriptors too: connections,
//! mounted files, helpers. So memories use at most half of the process's descriptors, and beyond that are stored
//! differently; programs use at most an eighth, and half of that while nobody runs them.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Used if the system does not say how many there may be.
const USUAL: usize = 1_024;
/// More are of no use, and programs that are started here may look at each of them.
const PLENTY: u64 = 1 << 20;

/// How many this process may have open.
static ALL: OnceLock<usize> = OnceLock::new();

/// Raises this process's soft limit of open files (`ulimit -Sn`) as far as it is useful and allowed, once. If that fails
/// the limit does not change.
pub fn raise_limit() {
    ALL.get_or_init(|| {
        let limit = getrlimit(Resource::Nofile);
        let most = limit.maximum.unwrap_or(u64::MAX).min(PLENTY);
        if limit.current.is_some_and(|current| current < most) {
            let raised = Rlimit { current: Some(most), maximum: limit.maximum };
            if let Err(error) = setrlimit(Resource::Nofile, raised) {
                tracing::debug!(%error, "the limit of open files stays as it is");
            }
        }
        let now = getrlimit(Resource::Nofile).current;
        now.map_or(PLENTY as usize, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    });
}

fn all() -> usize {
    *ALL.get().unwrap_or(&USUAL)
}

/// What a descriptor is used for.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    /// A memory in a file.
    Memory,
    /// The code of a user's program.
    Code,
}

impl Use {
    /// Those that are open now.
    fn open(self) -> &'static AtomicUsize {
        static MEMORIES: AtomicUsize = AtomicUsize::new(0);
        static PROGRAMS: AtomicUsize = AtomicUsize::new(0);
        match self {
            Use::Memory => &MEMORIES,
            Use::Code => &PROGRAMS,
        }
    }

    fn most(self) -> usize {
        match self {
            Use::Memory => all() / 2,
            Use::Code => all() / 8,
        }
    }
}

/// Returns how many programs may be kept that nobody runs.
pub(crate) fn most_idle_programs() -> usize {
    (Use::Code.most() / 2).max(1)
}

/// One of the descriptors for such a use, returned when it is dropped.
pub(crate) struct Share(Use);

impl Share {
    /// Takes one more, if there are any left.
    pub(crate) fn take(what: Use) -> io::Result<Share> {
        let more = |open: usize| (open < what.most()).then_some(open + 1);
        let taken = what.open().fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        taken.map(|_| Share(what)).map_err(|_| io::Error::from_raw_os_error(libc::EMFILE))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.open().fetch_sub(1, Ordering::SeqCst);
    }
}
