//! Resource limits (`setrlimit`). They apply to each process separately, except the one on processes, which counts all
//! of a user's.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getuid, setrlimit};

/// The resources a process may use.
pub(crate) struct Limits {
    pub memory: u64,
    pub files: u64,
    pub processes: u64,
    pub file_size: u64,
    pub processor_seconds: Option<u64>,
}

/// How many other processes and threads the user has: the kernel counts them too, so they are added to a limit.
#[derive(Default)]
pub(crate) struct OtherProcesses {
    counted: Option<(Instant, u64)>,
}

/// Counting inspects every process on the machine, so it is done between jobs and not for each.
const GOOD_FOR: Duration = Duration::from_secs(1);

impl OtherProcesses {
    pub fn prepare(&mut self) {
        if self.counted.is_none() {
            self.refresh();
        }
    }

    pub fn refresh(&mut self) {
        // The limit does not apply to root, whatever it is.
        let fresh = self.counted.is_some_and(|(when, _)| when.elapsed() < GOOD_FOR);
        if !fresh && !getuid().is_root() {
            self.counted = Some((Instant::now(), threads_of_user(getuid().as_raw())));
        }
    }

    /// Returns the limit that allows this many more.
    pub fn beside(&self, processes: u64) -> u64 {
        processes.saturating_add(self.counted.map_or(0, |(_, count)| count))
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

impl Limits {
    /// Sets the limits, which cannot be raised afterwards.
    pub fn set(&self) -> io::Result<()> {
        let processor = self.processor_seconds.map(|seconds| (Resource::Cpu, seconds));
        let all = [
            (Resource::Core, 0),
            (Resource::Nproc, self.processes),
            (Resource::Nofile, self.files),
            (Resource::Fsize, self.file_size),
            // Last: from here on this process may be over it itself.
            (Resource::As, self.memory),
        ];
        processor.into_iter().chain(all).try_for_each(|(resource, limit)| lower(resource, limit))
    }
}

/// Sets a limit, which cannot be raised afterwards. A lower one that is in force already stays.
pub(crate) fn lower(resource: Resource, limit: u64) -> io::Result<()> {
    let most = rustix::process::getrlimit(resource).maximum.map_or(limit, |most| most.min(limit));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}
