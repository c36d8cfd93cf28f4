//! Whether standard output could be written when this process started: `wardian … >&-` closes it.
//!
//! Rust's start-up opens `/dev/null` in place of each standard stream that is closed, and its standard output takes a
//! descriptor that is not open for writing for one that nobody reads. Either way everything written would be lost, and the
//! command would succeed. An initialiser that the C library runs before all that sees what was there.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::libc;

static STDOUT_CLOSED: AtomicBool = AtomicBool::new(false);

#[used]
// SAFETY: the section is a list of functions that the C library calls once each before `main`; what it passes to them need
// not be taken.
#[unsafe(link_section = ".init_array")]
static HOOK: extern "C" fn() = hook;

extern "C" fn hook() {
    // SAFETY: the call only asks about a descriptor, which need not be open.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    let closed = flags < 0 || flags & libc::O_ACCMODE == libc::O_RDONLY;
    STDOUT_CLOSED.store(closed, Ordering::Relaxed);
}

/// Returns what a write to standard output would, if it was not open for writing.
pub(crate) fn stdout() -> io::Result<()> {
    if STDOUT_CLOSED.load(Ordering::Relaxed) { Err(Errno::EBADF.into()) } else { Ok(()) }
}
