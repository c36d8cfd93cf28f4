//! When what a command wrote has come through.
//!
//! A command that writes to `>(…)` ends before what is in there does, and its last lines are then still in a pipe or in the
//! memory of `tee`. So a run is over only when those have been dealt with:
//!
//! ```text
//!  the shell ──pipe──► tee ──pipe──► cat ──► the run's output
//!              │                │
//!              │                └ then this, and all it had been given when the one before was drained
//!              └ first this: everything written has been read, and its reader has come back for more; or, if
//!                nobody can write any more, all readers have ended
//! ```
//!
//! Background jobs are not waited for, and neither is what they go on to write. The pipes in question are those that
//! were opened for writing by the name of a descriptor, which is what `>(…)` is.

use std::collections::HashSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::fd::{Fd, OpenFile};
use crate::input::Input;
use crate::machine::Machine;
use crate::outlet::Outlet;
use crate::pause::pause;
use crate::pipe::Pipe;
use crate::proc::{Pid, Process};
use crate::stream::Standard;

/// How long to wait before looking again, at first and at most.
const SOON: Duration = Duration::from_micros(200);
const LATER: Duration = Duration::from_millis(20);

/// The pipes of `>(…)` that somebody has opened.
#[derive(Default)]
pub(crate) struct Substitutions(Mutex<Vec<Weak<Pipe>>>);

impl Substitutions {
    /// Notes one. There are no more of them than pipes, which the sandbox is charged for.
    pub(crate) fn note(&self, pipe: &Arc<Pipe>) {
        let mut noted = self.0.lock();
        noted.retain(|known| known.strong_count() > 0 && !std::ptr::eq(known.as_ptr(), Arc::as_ptr(pipe)));
        noted.push(Arc::downgrade(pipe));
    }

    fn live(&self) -> Vec<Arc<Pipe>> {
        let mut noted = self.0.lock();
        noted.retain(|known| known.strong_count() > 0);
        noted.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Waits until everything written so far to the pipes of `>(…)` has come out at the other end. `shell` is the process
/// that is at rest, and not part of it.
pub(crate) async fn drained(machine: &Machine, shell: Pid) {
    let mut open: Vec<(Arc<Pipe>, u64)> = machine.substitutions().live().into_iter().map(marked).collect();
    let mut followed: HashSet<u64> = HashSet::new();
    while let Some((pipe, mark)) = open.pop() {
        let mut wait = SOON;
        while !pipe.is_drained(mark) {
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LATER);
        }
        for next in downstream(machine, &pipe, shell) {
            if followed.insert(next.id()) {
                open.push(marked(next));
            }
        }
        pause().await;
    }
}

fn marked(pipe: Arc<Pipe>) -> (Arc<Pipe>, u64) {
    let mark = pipe.written();
    (pipe, mark)
}

/// The pipes that readers of `pipe` write to.
fn downstream(machine: &Machine, pipe: &Arc<Pipe>, shell: Pid) -> Vec<Arc<Pipe>> {
    if !pipe.has_readers() {
        return Vec::new();
    }
    let processes: Vec<_> = machine.table().iter().map(|(_, entry)| entry.process.clone()).collect();
    let mut found = Vec::new();
    for process in processes.iter().filter(|process| process.pid != shell) {
        let fds = process.fds.lock();
        let reads = |file: &OpenFile| matches!(file, OpenFile::Reader(reader) | OpenFile::Both(reader, _) if Arc::ptr_eq(reader.pipe(), pipe));
        if fds.iter().any(|(_, fd)| reads(&fd.file)) {
            found.extend(fds.iter().filter_map(|(_, fd)| match &*fd.file {
                OpenFile::Writer(writer) => Some(writer.pipe().clone()),
                _ => None,
            }));
        }
    }
    found
}

/// Closes the pipes that a shell holds; those that are its own streams become the run's again.
pub(crate) fn let_go_of_pipes(process: &Process, outlet: &Arc<Outlet>) {
    let mut fds = process.fds.lock();
    let pipes: Vec<u32> =
        fds.iter().filter(|(_, fd)| fd.file.pipe().is_some()).map(|(number, _)| number).collect();
    let mut closed = Vec::with_capacity(pipes.len());
    for number in pipes {
        closed.extend(fds.remove(number));
        let stream = match number {
            0 => OpenFile::Input(Input::empty()),
            1 => OpenFile::Output(outlet.clone(), Standard::Output),
            2 => OpenFile::Output(outlet.clone(), Standard::Error),
            _ => continue,
        };
        // The number was in the table before, so it is within the limit.
        let _ = fds.put(number, Fd::new(stream));
    }
    drop(fds);
    drop(closed);
}
