//! The descendants of a process: finding and killing all of them.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// Returns the descendants of `root`, without itself.
///
/// The kernel has no call for this. A process that forks meanwhile may be missed: to kill all of them, repeat until
/// there are none.
fn descendants(root: Pid) -> Vec<Pid> {
    descendants_of_each(&[root]).pop().unwrap_or_default()
}

/// Does the same for several processes, none of which descends from another, with one scan of all processes.
pub(crate) fn descendants_of_each(roots: &[Pid]) -> Vec<Vec<Pid>> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    for (process, parent) in every_process() {
        children.entry(parent).or_default().push(process);
    }
    let below = |root: &Pid| {
        let mut found = children.remove(&root.as_raw_nonzero().get()).unwrap_or_default();
        let mut next = 0;
        while next < found.len() {
            let more = children.remove(&found[next]).unwrap_or_default();
            found.extend(more);
            next += 1;
        }
        found.into_iter().filter_map(Pid::from_raw).collect()
    };
    roots.iter().map(below).collect()
}

/// Every process and its parent.
fn every_process() -> impl Iterator<Item = (i32, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        // What is needed is at the beginning, and comes in one read.
        let mut stat = [0; 256];
        let read =
            fs::File::open(entry.path().join("stat")).and_then(|mut file| file.read(&mut stat)).ok()?;
        let stat = &stat[..read];
        // The second field is the program's name in parentheses, and may hold anything but its own end.
        let name_ends = stat.iter().rposition(|&byte| byte == b')')?;
        let mut after = str::from_utf8(&stat[name_ends + 1..]).ok()?.split_ascii_whitespace();
        let state = after.next()?;
        let parent = after.next()?.parse().ok()?;
        (state != "Z").then_some((process, parent))
    })
}

/// Sends a signal to everything this process has started.
pub(super) fn signal_all(signal: Signal) {
    for process in descendants(getpid()) {
        // One that is gone already needs none.
        let _ = kill_process(process, signal);
    }
}

/// Kills everything this process has started, and returns when nothing of it is left. Calls `reaped` with how each
/// ended.
pub(super) fn end_all(mut reaped: impl FnMut(Pid, rustix::process::WaitStatus)) {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((process, status))) => reaped(process, status),
            Ok(None) => {
                // Killing a parent makes its children this process's, so that there is always one to wait for.
                signal_all(Signal::KILL);
                if let Ok(Some((process, status))) = wait(WaitOptions::empty()) {
                    reaped(process, status);
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Kills `root` and all its descendants, as far as they can be seen from outside.
pub(crate) fn end_tree(root: Pid) -> io::Result<()> {
    for process in descendants(root) {
        let _ = kill_process(process, Signal::KILL);
    }
    Ok(kill_process(root, Signal::KILL)?)
}
