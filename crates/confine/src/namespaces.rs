//! Namespaces: a network without interfaces, queues and names of the process's own, and a user without rights elsewhere.

use std::io;

/// Moves this process, which must have one thread, into namespaces of its own: user, network, IPC, host name. Returns
/// `false` where the kernel does not let this user, and changes nothing then.
///
/// Not the one for processes: it would need a fork, and there is nothing a process can do with the numbers of others if
/// it may not make the calls that take them. Not the one for mounts: nothing can be opened.
pub(crate) fn enter() -> io::Result<bool> {
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;
    // SAFETY: takes a number, and changes what this process can name; no memory and no descriptor.
    if unsafe { libc::unshare(flags) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        // Not for this user, not in this container, no more of them, not in this kernel.
        Some(libc::EPERM | libc::EACCES | libc::ENOSPC | libc::EUSERS | libc::ENOSYS | libc::EINVAL) => {
            Ok(false)
        }
        _ => Err(error),
    }
}
