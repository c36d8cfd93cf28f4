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
//! The pipes in question are those that were opened for writing by the name of a descriptor, which is what `>(…)` is, and
//! that processes of this run opened or wrote to. Background jobs are not waited for, and neither is what they go on to
//! write, nor what is left over from an earlier run.

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
use crate::run::Run;
use crate::stream::Standard;

/// How long to wait before looking again, at first and at most.
const SOON: Duration = Duration::from_micros(200);
const LATER: Duration = Duration::from_millis(20);

/// The pipes of `>(…)` that a run has to do with.
#[derive(Default)]
pub(crate) struct Substitutions(Mutex<Vec<Weak<Pipe>>>);

impl Substitutions {
    /// Notes one. There are no more of them than pipes, which the sandbox is charged for.
    pub(crate) fn note(&self, pipe: &Arc<Pipe>) {
        let mut noted = self.0.lock();
        let is_it = |known: &Weak<Pipe>| std::ptr::eq(known.as_ptr(), Arc::as_ptr(pipe));
        if !noted.last().is_some_and(is_it) {
            noted.retain(|known| known.strong_count() > 0 && !is_it(known));
            noted.push(Arc::downgrade(pipe));
        }
    }

    fn live(&self) -> Vec<Arc<Pipe>> {
        self.0.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// Waits until everything a run has written to `>(…)` so far has come out at the other end. `shell` is the process that is
/// at rest, and not part of it.
pub(crate) async fn drained(machine: &Machine, run: &Run, shell: Pid) {
    let mut open: Vec<(Arc<Pipe>, u64)> = run.substitutions().live().into_iter().map(marked).collect();
    let mut followed: HashSet<u64> = HashSet::new();
    while let Some((pipe, mark)) = open.pop() {
        let mut wait = SOON;
        while !is_drained(machine, &pipe, mark) {
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

/// Whether the first `mark` bytes of `pipe` have been dealt with. One that only its own readers could write to is at its
/// end already: a child that was just forked has yet to close what it does not need.
fn is_drained(machine: &Machine, pipe: &Arc<Pipe>, mark: u64) -> bool {
    let writes_only = |process: &Process| {
        let fds = process.fds.lock();
        let writes = fds.iter().any(|(_, fd)| writes_to(&fd.file).is_some_and(|to| Arc::ptr_eq(to, pipe)));
        writes && !fds.iter().any(|(_, fd)| reads_from(&fd.file, pipe))
    };
    pipe.is_drained(mark) && (!pipe.has_readers() || processes(machine).iter().any(|p| writes_only(p)))
}

/// The pipes that readers of `pipe` write to.
fn downstream(machine: &Machine, pipe: &Arc<Pipe>, shell: Pid) -> Vec<Arc<Pipe>> {
    if !pipe.has_readers() {
        return Vec::new();
    }
    let mut found = Vec::new();
    for process in processes(machine).iter().filter(|process| process.pid != shell) {
        let fds = process.fds.lock();
        if fds.iter().any(|(_, fd)| reads_from(&fd.file, pipe)) {
            found.extend(fds.iter().filter_map(|(_, fd)| writes_to(&fd.file).cloned()));
        }
    }
    found
}

fn processes(machine: &Machine) -> Vec<Arc<Process>> {
    machine.table().iter().map(|(_, entry)| entry.process.clone()).collect()
}

fn reads_from(file: &OpenFile, pipe: &Arc<Pipe>) -> bool {
    matches!(file, OpenFile::Reader(reader) | OpenFile::Both(reader, _) if Arc::ptr_eq(reader.pipe(), pipe))
}

fn writes_to(file: &OpenFile) -> Option<&Arc<Pipe>> {
    match file {
        OpenFile::Writer(writer) => Some(writer.pipe()),
        _ => None,
    }
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
            0 => OpenFile::input(Input::empty()),
            1 => OpenFile::output(outlet.clone(), Standard::Output),
            2 => OpenFile::output(outlet.clone(), Standard::Error),
            _ => continue,
        };
        // The number was in the table before, so it is within the limit.
        let _ = fds.put(number, Fd::new(stream));
    }
    drop(fds);
    drop(closed);
}
