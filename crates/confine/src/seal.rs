//! Sealing this process: from here on it computes on what it has, and reaches nothing else.
//!
//! It is for a process that is about to look at bytes it does not trust. It keeps its open descriptors, may allocate
//! memory and exit; it opens no file, no socket, starts no thread or program, makes no memory executable, signals
//! nobody. A call that is not on the list fails with EPERM, so that a library that tries one for a reason of its own
//! (a statistic, a hint to the kernel) goes on.

use std::io;

use crate::{landlock, limits, privileges, seccomp};

/// What a sealed process may take.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes of address space, what the program itself has mapped included.
    pub memory: u64,
    /// Seconds of processor time; the kernel kills the process that takes more.
    pub processor_seconds: u64,
    /// Bytes of a file it writes.
    pub file_size: u64,
}

/// Which parts of the seal this kernel has. Privileges and limits are always in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Landlock: no path can be opened.
    pub landlock: bool,
    /// Seccomp: only the listed system calls work.
    pub seccomp: bool,
}

/// Seals this thread and the limits of this process. To be called before there are other threads: landlock and seccomp
/// apply to the one that calls.
///
/// What the kernel does not have is reported, what it has and refuses is an error.
pub fn seal(budget: &Budget) -> io::Result<InForce> {
    privileges::no_new_privileges()?;
    privileges::keep(0)?;
    let landlock = unless_missing(landlock::reach_nothing())?;
    let limits = limits::Limits {
        memory: budget.memory,
        // The standard streams: no further descriptor has a number.
        files: 3,
        processes: 0,
        file_size: budget.file_size,
        processor_seconds: Some(budget.processor_seconds),
    };
    limits.set()?;
    let seccomp = unless_missing(seccomp::only_compute())?;
    Ok(InForce { landlock, seccomp })
}

/// An error without errno: this kernel does not have it.
fn unless_missing(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error().is_none() => Ok(false),
        Err(error) => Err(error),
    }
}
