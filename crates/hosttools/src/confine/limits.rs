//! Limits (`setrlimit`). They hold each process by itself, except that on processes, which counts all of a user.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getuid, setrlimit};

/// What a program may take.
pub(crate) struct Limits {
    pub memory: u64,
    pub files: u64,
    pub processes: u64,
    pub file_size: u64,
}

/// How many processes and threads the user has besides: the kernel counts them along, so they are added to a limit.
#[derive(Default)]
pub(super) struct OtherProcesses {
    counted: Option<(Instant, u64)>,
}

/// Counting looks at every process there is, so it is done between jobs and not for each.
const GOOD_FOR: Duration = Duration::from_secs(1);

impl OtherProcesses {
    pub fn prepare(&mut self) {
        if self.counted.is_none() {
            self.refresh();
        }
    }

    pub fn refresh(&mut self) {
        // Root is not held to the limit, whatever it is.
        let fresh = self.counted.is_some_and(|(when, _)| when.elapsed() < GOOD_FOR);
        if !fresh && !getuid().is_root() {
            self.counted = Some((Instant::now(), threads_of_user(getuid().as_raw())));
        }
    }

    fn count(&self) -> u64 {
        self.counted.map_or(0, |(_, count)| count)
    }
}

fn threads_of_user(user: u32) -> u64 {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| entry.metadata().is_ok_and(|process| process.uid() == user))
        // A directory of `.`, `..` and one for each thread.
        .filter_map(|process| Some(fs::metadata(process.path().join("task")).ok()?.nlink().saturating_sub(2)))
        .sum()
}

pub(super) fn set(limits: &Limits, others: &OtherProcesses) -> io::Result<()> {
    let all = [
        (Resource::Core, 0),
        (Resource::Nproc, limits.processes.saturating_add(others.count())),
        (Resource::Nofile, limits.files),
        (Resource::Fsize, limits.file_size),
        // Last: from here on this process may be over it itself.
        (Resource::As, limits.memory),
    ];
    for (resource, limit) in all {
        // A lower one that is in force already stays.
        let most = rustix::process::getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
