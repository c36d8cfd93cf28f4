//! How the system schedules the threads that guests run on.
//!
//! A guest uses its processor as long as it can. When everything is busy, a host thread that wakes, such as the one that
//! waits for a command's result, has to wait until the system takes the processor from a guest: by default about three
//! milliseconds, more than most commands take. Linux lets a thread ask for shorter slices (6.12 and later; that does not
//! make it faster, it is only interrupted more often). If the system does not support this, nothing changes.

use std::mem::size_of;

/// How long a guest's thread may run before another waiting one gets its turn, in nanoseconds.
const SLICE: u64 = 200_000;

/// `struct sched_attr` of Linux, in its first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// For ordinary threads: the length of a slice.
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short slices for the calling thread. Its priority does not change.
pub(crate) fn shorten_slices() {
    let size = size_of::<Attributes>() as u32;
    let mut attributes = Attributes::default();
    let own_thread = 0;
    // SAFETY: the system writes at most `size` bytes to a structure of that size, which lives across the call.
    let known = unsafe {
        libc::syscall(libc::SYS_sched_getattr, own_thread, std::ptr::from_mut(&mut attributes), size, 0)
    };
    if known != 0 || attributes.policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.size = size;
    attributes.runtime = SLICE;
    // SAFETY: the system reads the structure, whose size it is told, and keeps no reference to it.
    let set =
        unsafe { libc::syscall(libc::SYS_sched_setattr, own_thread, std::ptr::from_ref(&attributes), 0) };
    if set != 0 {
        tracing::debug!(error = %std::io::Error::last_os_error(), "guests' threads have the usual slices");
    }
}
