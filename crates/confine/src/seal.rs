//! Sealing this process: from then on it computes on what it has, and can access nothing else.
//!
//! This is for a process that is about to read untrusted bytes. It keeps its open descriptors and may allocate memory
//! and exit; it cannot open files or sockets, start threads or programs, make memory executable or send signals. A call
//! that is not on the list fails with EPERM, so that a library that tries one for its own purposes (statistics, a hint
//! to the kernel) continues.

use std::io;

use crate::{landlock, limits, privileges, seccomp};

/// The resources a sealed process may use.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Bytes of address space, including what the program itself has mapped.
    pub memory: u64,
    /// Seconds of processor time; the kernel kills a process that uses more.
    pub processor_seconds: u64,
    /// Maximum bytes of a file it writes.
    pub file_size: u64,
}

/// Which parts of the seal this kernel supports. Privileges and limits always apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Landlock: no path can be opened.
    pub landlock: bool,
    /// Seccomp: only the listed system calls work.
    pub seccomp: bool,
}

/// Seals this thread and sets the limits of this process. Call it before there are other threads: landlock and seccomp
/// apply only to the calling one.
///
/// What the kernel lacks is reported; what it has but refuses is an error.
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
pub(crate) fn unless_missing(done: io::Result<()>) -> io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.raw_os_error().is_none() => Ok(false),
        Err(error) => Err(error),
    }
}
