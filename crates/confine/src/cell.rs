//! Sealing a cell: a process that runs untrusted code in threads of its own.
//!
//! Unlike a process that only computes ([`seal`](crate::seal)), it starts threads, maps memory files, makes compiled code
//! executable and waits for events. It opens nothing: what it needs it has opened before. Call [`limit`] first, then open,
//! then [`seal`], then start threads, which inherit everything.

use std::io;

use rustix::process::Resource;

use crate::limits::lower;
use crate::seal::unless_missing;
use crate::{cell_calls, landlock, namespaces, privileges};

/// The resources of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of private memory that can be written (`RLIMIT_DATA`). Memory files are not part of it.
    pub memory: u64,
    /// Maximum number of open descriptors.
    pub files: u64,
    /// Maximum bytes of a memory file.
    pub file_size: u64,
    /// Maximum number of threads. In force only with namespaces: without, Linux counts all threads of the user.
    pub threads: u64,
}

/// Which parts of a cell's seal this kernel supports. Limits and dropped privileges always apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// It has namespaces of its own.
    pub namespaces: bool,
    /// Landlock: no path can be opened.
    pub landlock: bool,
    /// Seccomp: only the listed system calls work.
    pub seccomp: bool,
}

/// Sets the limits of this process, except for that on threads, and makes it the first to go when memory is short.
pub fn limit(budget: &Budget) -> io::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Nofile, budget.files),
        (Resource::Fsize, budget.file_size),
        (Resource::Data, budget.memory),
        (Resource::Memlock, 0),
    ];
    limits.into_iter().try_for_each(|(resource, limit)| lower(resource, limit))?;
    // Where there is no such file, memory is somebody else's to divide.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// Seals this process, which must have one thread. `before_calls` is the last that may do anything: it is called when all
/// but the filter of calls is in force.
///
/// What the kernel lacks is reported; what it has but refuses is an error.
pub fn seal(budget: &Budget, before_calls: impl FnOnce() -> io::Result<()>) -> io::Result<InForce> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be sealed"));
    }
    let namespaces = namespaces::enter()?;
    if namespaces {
        lower(Resource::Nproc, budget.threads)?;
    }
    privileges::no_new_privileges()?;
    privileges::keep(0)?;
    privileges::not_dumpable()?;
    let landlock = unless_missing(landlock::reach_nothing())?;
    before_calls()?;
    let seccomp = unless_missing(cell_calls::only_these())?;
    Ok(InForce { namespaces, landlock, seccomp })
}
