//! The keeper: the process that briefly outlives a worker to kill what the worker no longer can.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::family;

/// Waits until the lifeline is closed or the worker has ended; then kills everything that is left.
pub(super) fn keep(lifeline: &OwnedFd, worker: Pid) -> io::Result<()> {
    let worker = pidfd_open(worker, PidfdFlags::empty())?;
    let mut ends =
        [PollFd::new(lifeline.as_fd(), PollFlags::POLLIN), PollFd::new(worker.as_fd(), PollFlags::POLLIN)];
    // Whatever else goes wrong with waiting, the programs must not live on unwatched.
    while poll(&mut ends, PollTimeout::NONE) == Err(Errno::EINTR) {}
    family::end_all(|_, _| {});
    Ok(())
}
