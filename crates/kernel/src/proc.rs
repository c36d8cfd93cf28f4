//! Processes and the process table.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use wardian_vfs::{Caller, Errno, Place, Result};

use crate::alarm::Alarm;
use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable};
use crate::footprint::Footprint;
use crate::gate::Gate;
use crate::limits::{Limits, Meter};
use crate::run::Run;
use crate::signal::{Disposition, SIGCHLD, Signal, Signals};
use crate::strings::Strings;
use crate::task::Task;

/// A process id.
pub type Pid = u32;

/// The user that guests run as, unless the host starts them as another.
pub(crate) const UID: u32 = 1000;

/// How a process ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// It exited with this code.
    Exited(u8),
    /// It was killed by this signal.
    Signaled(Signal),
}

impl Status {
    /// Returns the status word of Unix's `wait`.
    pub(crate) fn word(self) -> u32 {
        match self {
            Status::Exited(code) => u32::from(code) << 8,
            Status::Signaled(signal) => u32::from(signal),
        }
    }

    /// Returns the exit code a shell reports for it.
    pub fn shell_code(self) -> u8 {
        match self {
            Status::Exited(code) => code,
            Status::Signaled(signal) => 128 + signal,
        }
    }
}

/// One process: what the kernel keeps for it in addition to its memory.
pub(crate) struct Process {
    pub(crate) pid: Pid,
    /// The user whose rights it has, and its group.
    pub(crate) uid: u32,
    pub(crate) run: Mutex<Arc<Run>>,
    pub(crate) fds: Mutex<FdTable>,
    pub(crate) cwd: Mutex<Cwd>,
    pub(crate) umask: AtomicU32,
    pub(crate) signals: Mutex<Signals>,
    /// The arguments, for `/proc` and `ps`.
    pub(crate) argv: Mutex<Strings>,
    /// The name of the program's file when it started, for `/proc`.
    pub(crate) exe: Mutex<Arc<[u8]>>,
    pub(crate) started: Instant,
    /// Notified when a process that this one may wait for changes state.
    pub(crate) child_changed: Notify,
    /// Notified when a flagged signal arrives.
    pub(crate) interrupted: Notify,
    task: Mutex<Arc<Task>>,
    gate: Arc<Gate>,
    /// When SIGALRM is due.
    pub(crate) alarm: Alarm,
    /// What the sandbox's meter is charged for it.
    pub(crate) footprint: Arc<Footprint>,
    /// CPU time of children that were waited for.
    pub(crate) children_cpu: AtomicU64,
    /// It runs a program it did not inherit from a fork: now only it may change its group.
    pub(crate) runs_own_program: AtomicBool,
    /// A WASI program that is given some directories and must not leave them.
    pub(crate) confined: AtomicBool,
    /// Resident across commands: killed commands are undone, the process stays.
    pub(crate) resident: bool,
    finished: AtomicBool,
    /// How it ended, for a host that waits for it.
    pub(crate) ended: watch::Sender<Option<Status>>,
    /// The signal that is killing it, 0 for none.
    doomed_by: AtomicU8,
}

/// What a new process starts with.
pub(crate) struct Seed {
    uid: u32,
    run: Arc<Run>,
    fds: FdTable,
    cwd: Cwd,
    umask: u32,
    signals: Signals,
    argv: Strings,
    exe: Arc<[u8]>,
}

impl Seed {
    /// Describes a process that the host starts.
    pub(crate) fn of_host(
        run: Arc<Run>,
        fds: FdTable,
        cwd: Cwd,
        argv: Strings,
        exe: impl Into<Arc<[u8]>>,
    ) -> Seed {
        let signals = Signals::default();
        Seed { uid: UID, run, fds, cwd, umask: 0o022, signals, argv, exe: exe.into() }
    }

    /// Describes the same process with the rights of this user.
    pub(crate) fn for_user(self, uid: u32) -> Seed {
        Seed { uid, ..self }
    }

    /// Describes a child that continues with its parent's program.
    pub(crate) fn of_parent(parent: &Process, fds: FdTable, cwd: Cwd) -> Seed {
        let (argv, exe) = (parent.argv.lock().clone(), parent.exe.lock().clone());
        Seed {
            uid: parent.uid,
            umask: parent.umask.load(Ordering::Relaxed),
            signals: parent.signals.lock().for_fork(),
            ..Seed::of_host(parent.run(), fds, cwd, argv, exe)
        }
    }

    /// Describes the same process with a program of its own.
    pub(crate) fn with_program(self, argv: Strings, exe: Arc<[u8]>) -> Seed {
        Seed { signals: self.signals.for_new_program(), argv, exe, ..self }
    }
}

impl Process {
    fn new(pid: Pid, seed: Seed, resident: bool, gate: Arc<Gate>, meter: Arc<Meter>) -> Process {
        let footprint = Arc::new(Footprint::new(meter));
        Process {
            pid,
            uid: seed.uid,
            task: Mutex::new(Arc::new(Task::new(gate.clone(), seed.run.clone(), footprint.clone()))),
            footprint,
            gate,
            run: Mutex::new(seed.run),
            fds: Mutex::new(seed.fds),
            cwd: Mutex::new(seed.cwd),
            umask: AtomicU32::new(seed.umask),
            signals: Mutex::new(seed.signals),
            argv: Mutex::new(seed.argv),
            exe: Mutex::new(seed.exe),
            started: Instant::now(),
            child_changed: Notify::new(),
            interrupted: Notify::new(),
            alarm: Alarm::default(),
            children_cpu: AtomicU64::new(0),
            runs_own_program: AtomicBool::new(false),
            confined: AtomicBool::new(false),
            resident,
            finished: AtomicBool::new(false),
            ended: watch::Sender::new(None),
            doomed_by: AtomicU8::new(0),
        }
    }

    /// Returns where its relative paths start.
    pub(crate) fn place(&self) -> Place {
        self.cwd.lock().place()
    }

    /// Returns the user it accesses files as.
    pub(crate) fn caller(&self) -> Caller {
        Caller { uid: self.uid, gid: self.uid, umask: self.umask.load(Ordering::Relaxed), pid: self.pid }
    }

    pub(crate) fn run(&self) -> Arc<Run> {
        self.run.lock().clone()
    }

    /// The entry of a descriptor.
    pub(crate) fn fd(&self, fd: u32) -> Result<Fd> {
        self.fds.lock().get(fd).cloned()
    }

    /// Waits for `event`, or returns EINTR if a flagged signal is pending or arrives.
    pub(crate) async fn interruptible<T>(&self, event: impl Future<Output = Result<T>>) -> Result<T> {
        let mut interrupted = std::pin::pin!(self.interrupted.notified());
        interrupted.as_mut().enable();
        if self.signals.lock().interrupts() {
            // What is ready at once still counts; only waiting is cut short.
            return tokio::select! { biased; done = event => done, () = std::future::ready(()) => Err(Errno::EINTR) };
        }
        tokio::select! { biased; done = event => done, () = interrupted => Err(Errno::EINTR) }
    }

    pub(crate) fn task(&self) -> Arc<Task> {
        self.task.lock().clone()
    }

    /// Creates a fresh slot for the next command of a resident process.
    pub(crate) fn new_task(&self) -> Arc<Task> {
        let task = Arc::new(Task::new(self.gate.clone(), self.run(), self.footprint.clone()));
        *self.task.lock() = task.clone();
        task
    }

    /// Marks it as killed by a signal, while its own code may still be on the stack.
    pub(crate) fn doom(&self, signal: Signal) {
        self.doomed_by.store(signal, Ordering::SeqCst);
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed_by.load(Ordering::Relaxed) != 0
    }

    /// Lets a resident process outlive what killed its command; returns the signal that did.
    pub(crate) fn survive(&self) -> Signal {
        match self.doomed_by.swap(0, Ordering::SeqCst) {
            0 => crate::signal::SIGKILL,
            signal => signal,
        }
    }

    /// Returns true once, for the caller that must end it.
    pub(crate) fn claim_end(&self) -> bool {
        !self.finished.swap(true, Ordering::SeqCst)
    }
}

/// The state of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Life {
    Running,
    /// Stopped by a signal; `reported` once the parent has been told.
    Stopped {
        signal: Signal,
        reported: bool,
    },
    Zombie(Status),
}

/// An entry of the table.
pub(crate) struct Entry {
    pub(crate) process: Arc<Process>,
    pub(crate) parent: Pid,
    pub(crate) group: Pid,
    pub(crate) session: Pid,
    pub(crate) life: Life,
}

/// A sandbox's processes.
pub(crate) struct Table {
    entries: BTreeMap<Pid, Entry>,
    next: Pid,
    limit: usize,
    gate: Arc<Gate>,
    meter: Arc<Meter>,
    /// The sandbox is being destroyed: nothing is added any more.
    closed: bool,
}

/// Numbers start again after this one.
const MAX_PID: Pid = 32_767;
// Looking for a free number comes to an end.
const _: () = assert!(Limits::MOST_PROCESSES + 2 < MAX_PID as usize);

impl Table {
    pub(crate) fn new(limit: usize, gate: Arc<Gate>, meter: Arc<Meter>) -> Table {
        Table { entries: BTreeMap::new(), next: 1, limit, gate, meter, closed: false }
    }

    /// Adds a process. Returns EAGAIN if the sandbox has as many as it may, or its run is being killed.
    pub(crate) fn add(&mut self, parent: Pid, group: Option<Pid>, seed: Seed) -> Result<Arc<Process>> {
        if self.entries.len() >= self.limit {
            seed.run.refuse("processes");
            return Err(Errno::EAGAIN);
        }
        if self.closed || seed.run.is_over() {
            return Err(Errno::EAGAIN);
        }
        seed.run.count_process();
        Ok(self.insert(parent, group, seed, false))
    }

    /// Adds a process that lives across commands.
    pub(crate) fn add_resident(&mut self, seed: Seed) -> Result<Arc<Process>> {
        if self.closed || self.entries.len() >= self.limit {
            return Err(Errno::EAGAIN);
        }
        Ok(self.insert(0, None, seed, true))
    }

    /// Adds nothing from here on, so that killing all processes leaves none.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    fn insert(&mut self, parent: Pid, group: Option<Pid>, seed: Seed, resident: bool) -> Arc<Process> {
        let pid = self.free_pid();
        let (gate, meter) = (self.gate.clone(), self.meter.clone());
        let process = Arc::new(Process::new(pid, seed, resident, gate, meter));
        let group = group.unwrap_or(pid);
        let session = self.entries.get(&parent).map_or(pid, |parent| parent.session);
        let entry = Entry { process: process.clone(), parent, group, session, life: Life::Running };
        self.entries.insert(pid, entry);
        process
    }

    fn free_pid(&mut self) -> Pid {
        while self.entries.contains_key(&self.next) {
            self.next = if self.next >= MAX_PID { 2 } else { self.next + 1 };
        }
        let pid = self.next;
        self.next = if pid >= MAX_PID { 2 } else { pid + 1 };
        pid
    }

    pub(crate) fn get(&self, pid: Pid) -> Option<&Entry> {
        self.entries.get(&pid)
    }

    pub(crate) fn get_mut(&mut self, pid: Pid) -> Option<&mut Entry> {
        self.entries.get_mut(&pid)
    }

    pub(crate) fn remove(&mut self, pid: Pid) -> Option<Entry> {
        self.entries.remove(&pid)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Pid, &Entry)> {
        self.entries.iter()
    }

    /// Makes it a zombie for its parent to find, or removes it if there is none. Its own children lose their parent.
    /// Returns the parent to notify.
    pub(crate) fn end(&mut self, pid: Pid, status: Status) -> Option<Arc<Process>> {
        let (parent, is_over) = self.entries.get(&pid).map(|e| (e.parent, e.process.run().is_over()))?;
        for entry in self.entries.values_mut().filter(|e| e.parent == pid) {
            entry.parent = 0;
        }
        self.entries.retain(|_, e| e.parent != 0 || !matches!(e.life, Life::Zombie(_)));
        let told = self.entries.get(&parent).map(|e| e.process.clone());
        // A parent that ignores the signal will not wait for it either, and a run that is being killed is forgotten
        // (`forget_ended`): also one of it that was just ending by itself.
        let wanted = !is_over
            && told
                .as_ref()
                .is_some_and(|parent| parent.signals.lock().disposition(SIGCHLD) != Disposition::Ignore);
        if !wanted {
            self.entries.remove(&pid);
        } else if let Some(entry) = self.entries.get_mut(&pid) {
            entry.life = Life::Zombie(status);
        }
        told
    }

    /// Removes the zombies of a run that was killed.
    pub(crate) fn forget_ended(&mut self, run: &Arc<Run>) {
        self.entries.retain(|_, e| !matches!(e.life, Life::Zombie(_)) || !Arc::ptr_eq(&e.process.run(), run));
    }

    /// Returns which processes a `kill` or `wait` with this number means, as seen from `from`.
    pub(crate) fn matching(&self, from: Pid, target: i32) -> impl Iterator<Item = (&Pid, &Entry)> {
        let own_group = self.get(from).map_or(0, |e| e.group);
        self.entries.iter().filter(move |(pid, entry)| match target {
            1.. => **pid == target as Pid,
            0 => entry.group == own_group,
            -1 => true,
            _ => entry.group == target.unsigned_abs(),
        })
    }
}
