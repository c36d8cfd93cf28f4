//! A running sandbox: its files, its processes, its limits.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wardian_vfs::{Errno, Handle, Mount, Place, Result, Tree};

use crate::allowlist::Allowlist;
use crate::family::{Family, Membership};
use crate::fd::{Fd, OpenFile, ReleaseBin, TreeFile};
use crate::gate::Gate;
use crate::host_program::HostProgram;
use crate::kernel::{Kernel, KernelInner};
use crate::limits::{HeldMemory, Limits, Meter};
use crate::locks::{Locks, Owner};
use crate::net::{HostStream, Network, Outside};
use crate::pipe::Pipe;
use crate::proc::{Entry, Life, Pid, Process, Status, Table};
use crate::procfs::{self, ProcFs};
use crate::run::Run;
use crate::signal::{Effect, SIGCHLD, SIGCONT, SIGKILL, Signal};
use crate::spare::Spares;
use crate::strings::Strings;
use crate::task::Doomed;
use crate::tree_lock::{TreeGuard, TreeLock};

/// One sandbox as the kernel sees it.
///
/// Locks are taken in this order: tree, then a file's handle. The process table and a process's own locks are never held
/// while waiting for either.
pub struct Machine {
    kernel: Arc<KernelInner>,
    tree: TreeLock,
    released: Arc<ReleaseBin>,
    table: Mutex<Table>,
    meter: Arc<Meter>,
    limits: Limits,
    rules: Rules,
    gate: Arc<Gate>,
    /// Open FIFOs, by inode.
    fifos: Mutex<HashMap<u64, Weak<Pipe>>>,
    /// One program is compiled at a time.
    compiling: Arc<Semaphore>,
    network: Arc<Network>,
    locks: Arc<Locks>,
    membership: Mutex<Option<Membership>>,
    /// Runs that were killed and may not be gone yet.
    dying: Mutex<Vec<Arc<Run>>>,
}

/// For so long the killer drops processes itself; the rest is done in the background.
const TAKING_DOWN: Duration = Duration::from_millis(2);
/// Trees with more files than this are not dropped on a worker.
const FILES_AT_ONCE: u64 = 2_000;

/// Host programs, by the version of the file that stands for each in the tree.
pub type HostPrograms = BTreeMap<u64, Arc<dyn HostProgram>>;

/// What a machine's processes may do, in addition to its limits.
#[derive(Clone, Default)]
pub struct Rules {
    /// The only programs that can be started, unless all can.
    pub allowed: Option<Arc<Allowlist>>,
    /// Programs that are functions of the host.
    pub host_programs: Arc<HostPrograms>,
    /// From 0 to 19: when processors are scarce, its share is divided by 1 + `nice`.
    pub nice: u8,
    /// Instances kept ready for its processes.
    pub spares: Option<Arc<Spares>>,
    /// The owner of compiled programs: machines built with a clone of these rules share them.
    pub family: Arc<Family>,
    /// Where connections go that leave the sandbox; without one there are none.
    pub outside: Option<Arc<dyn Outside>>,
}

/// What is alive in a machine, for tests and statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Census {
    /// Entries of the process table, including the session's shell.
    pub processes: usize,
    /// Entries that have ended and wait for their parent.
    pub zombies: usize,
    /// Descriptors in all tables.
    pub descriptors: usize,
    /// Bytes charged to the memory limit.
    pub memory_charged: u64,
}

impl Machine {
    /// Creates a machine over `tree` without processes.
    pub fn new(kernel: &Kernel, tree: Tree, limits: Limits) -> Arc<Machine> {
        Machine::with_rules(kernel, tree, limits, Rules::default())
    }

    /// Does the same, with rules for its processes.
    pub fn with_rules(kernel: &Kernel, mut tree: Tree, limits: Limits, rules: Rules) -> Arc<Machine> {
        let limits = limits.bounded();
        Arc::new_cyclic(|machine| {
            let proc = Mount::Virtual(ProcFs::new(machine.clone()));
            // Over the one of the machine that this tree comes from, if any.
            let _ = tree.unmount(b"/proc");
            if let Err(error) = tree.mount(b"/proc", proc) {
                tracing::warn!(%error, "there will be no /proc");
            }
            let gate = Arc::new(Gate::new(rules.family.id(), rules.nice, kernel.inner().turns()));
            let membership = Membership::new(&rules.family, kernel.inner());
            let meter = Arc::new(Meter::within(kernel.inner().memory().cloned(), limits.memory_bytes));
            let runtime = kernel.inner().runtime().handle().clone();
            let network = Network::new(meter.clone(), rules.outside.clone(), runtime);
            Machine {
                kernel: kernel.inner().clone(),
                tree: TreeLock::new(tree),
                released: Arc::default(),
                table: Mutex::new(Table::new(limits.processes, gate.clone(), meter.clone())),
                meter,
                limits,
                rules,
                gate,
                fifos: Mutex::default(),
                compiling: Arc::new(Semaphore::new(1)),
                network,
                locks: Arc::default(),
                membership: Mutex::new(Some(membership)),
                dying: Mutex::default(),
            }
        })
    }

    pub(crate) fn kernel(&self) -> &Arc<KernelInner> {
        &self.kernel
    }

    /// Returns its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns its rules.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The locks on its files.
    pub(crate) fn locks(&self) -> &Arc<Locks> {
        &self.locks
    }

    /// A process has closed a descriptor: its locks on the file go, whichever descriptor they were set with.
    pub(crate) fn closed(&self, process: &Process, file: &OpenFile) {
        if let OpenFile::Tree(file) = file {
            self.locks.release(file.place(), Owner::Process(process.pid));
        }
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Pauses every process, including new ones, until [`Machine::resume`]. They cannot notice.
    pub fn suspend(&self) {
        self.gate.set_closed(true);
    }

    /// Resumes all processes.
    pub fn resume(&self) {
        self.gate.set_closed(false);
        let tasks: Vec<_> = self.table().iter().map(|(_, entry)| entry.process.task()).collect();
        tasks.iter().for_each(|task| task.go_on());
    }

    /// Returns whether it is suspended.
    pub fn is_suspended(&self) -> bool {
        self.gate.is_closed()
    }

    /// Waits for the sandbox's turn to compile a program.
    pub(crate) async fn compiling(&self) -> Result<OwnedSemaphorePermit> {
        self.compiling.clone().acquire_owned().await.map_err(|_| Errno::EIO)
    }

    pub(crate) fn meter(&self) -> &Arc<Meter> {
        &self.meter
    }

    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Connects to a TCP port that one of its processes listens at, as a client on its loopback network. Waits while the
    /// listener has too many connections to accept; returns ECONNREFUSED if no process listens.
    pub async fn connect(&self, port: u16) -> Result<HostStream> {
        self.network.connect_host(port).await
    }

    pub(crate) fn table(&self) -> parking_lot::MutexGuard<'_, Table> {
        self.table.lock()
    }

    /// Returns the peak memory of its processes since the last command began.
    pub fn peak_memory(&self) -> u64 {
        self.meter.peak()
    }

    /// Locks the files. Closes dropped handles first, so that counts are exact for every observer.
    pub async fn tree(&self) -> TreeGuard {
        let mut tree = self.tree.lock().await;
        for handle in self.released.drain() {
            tree.close(handle);
        }
        tree
    }

    /// Runs `work` on the files at `path`: here if that only touches memory, else on a thread that may block. Others in
    /// the same sandbox wait without holding a worker.
    pub async fn at_path<T, F>(&self, at: &Place, path: &[u8], work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree) -> Result<T> + Send + 'static,
    {
        self.at_paths(&[(at, path)], work).await
    }

    /// Does the same for work on several paths: it may block if any of them is on the host.
    pub async fn at_paths<T, F>(&self, paths: &[(&Place, &[u8])], work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree) -> Result<T> + Send + 'static,
    {
        let tree = self.tree().await;
        let blocking = paths.iter().any(|(at, path)| tree.touches_host(at, path));
        self.with_tree(tree, blocking, work).await
    }

    /// Runs `work` on the files on a thread that may block.
    pub async fn aside<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree) -> Result<T> + Send + 'static,
    {
        let tree = self.tree().await;
        self.with_tree(tree, true, work).await
    }

    /// Rolls back the files. Only what is in a descriptor table may be open.
    pub(crate) async fn go_back_to(&self, earlier: Tree) {
        let mut tree = self.tree().await;
        let processes: Vec<_> = self.table().iter().map(|(_, entry)| entry.process.clone()).collect();
        let mut known = HashSet::new();
        let mut open: Vec<Arc<OpenFile>> = Vec::new();
        for process in processes {
            let cwd = process.cwd.lock().hold().cloned();
            let files: Vec<_> = process.fds.lock().iter().map(|(_, fd)| fd.file.clone()).collect();
            for file in files.into_iter().chain(cwd) {
                if known.insert(Arc::as_ptr(&file)) {
                    open.push(file);
                }
            }
        }
        let handles: Vec<Handle> = open
            .iter()
            .filter_map(|file| match &**file {
                OpenFile::Tree(file) => file.with(|handle| Ok(handle.clone())).ok(),
                _ => None,
            })
            .collect();
        tree.go_back_to(earlier, handles.iter());
    }

    /// Returns which limit a full disk has hit.
    pub async fn which_is_full(&self) -> &'static str {
        if self.tree().await.is_out_of_files() { "fileCount" } else { "fsLimitBytes" }
    }

    /// Runs `work` on the files with an open file, like [`Machine::at_path`].
    pub(crate) async fn on_file<T, F>(&self, file: &Arc<OpenFile>, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &mut Handle) -> Result<T> + Send + 'static,
    {
        self.on_file_where(file, false, work).await
    }

    /// Does the same, on a thread that may block if `aside` says so.
    pub(crate) async fn on_file_where<T, F>(&self, file: &Arc<OpenFile>, aside: bool, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree, &mut Handle) -> Result<T> + Send + 'static,
    {
        let OpenFile::Tree(tree_file) = &**file else { return Err(Errno::ESPIPE) };
        let blocking = aside || tree_file.is_host();
        let (tree, file) = (self.tree().await, file.clone());
        let work = move |tree: &mut Tree| match &*file {
            OpenFile::Tree(tree_file) => tree_file.with(|handle| work(tree, handle)),
            _ => Err(Errno::ESPIPE),
        };
        self.with_tree(tree, blocking, work).await
    }

    async fn with_tree<T, F>(&self, mut tree: TreeGuard, blocking: bool, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Tree) -> Result<T> + Send + 'static,
    {
        if !blocking {
            return work(&mut tree);
        }
        self.kernel.runtime().spawn_blocking(move || work(&mut tree)).await.map_err(|_| Errno::EIO)?
    }

    pub(crate) fn released(&self) -> &Arc<ReleaseBin> {
        &self.released
    }

    /// Wraps a handle that a process of `run` opened for its descriptor table, and charges for what it keeps.
    pub(crate) fn charged_fd(&self, run: &Run, handle: Handle, name: Arc<[u8]>) -> Result<Fd> {
        self.charged(run, TreeFile::new(handle, name, self.released.clone()))
    }

    pub(crate) fn charged(&self, run: &Run, file: TreeFile) -> Result<Fd> {
        file.charge(&self.meter, run)?;
        Ok(Fd::new(OpenFile::Tree(file)))
    }

    /// Wraps a handle that the host opened, without a name.
    pub(crate) fn tree_fd(&self, handle: Handle) -> Fd {
        Fd::new(OpenFile::Tree(TreeFile::new(handle, Arc::default(), self.released.clone())))
    }

    /// Returns the pipe behind the FIFO with this inode; nothing if there is no memory for one.
    pub(crate) fn fifo(&self, ino: u64) -> Option<Arc<Pipe>> {
        let mut fifos = self.fifos.lock();
        if let Some(pipe) = fifos.get(&ino).and_then(Weak::upgrade) {
            return Some(pipe);
        }
        fifos.retain(|_, pipe| pipe.strong_count() > 0);
        let pipe = Pipe::unopened(&self.meter)?;
        fifos.insert(ino, Arc::downgrade(&pipe));
        Some(pipe)
    }

    /// Charges for memory that the host keeps for the sandbox, unless that would exceed its limit.
    pub fn hold_memory(&self, bytes: usize) -> Option<HeldMemory> {
        self.meter.hold(bytes).map(HeldMemory::new)
    }

    /// Counts what is alive.
    pub fn census(&self) -> Census {
        let table = self.table();
        Census {
            processes: table.len(),
            zombies: table.iter().filter(|(_, e)| matches!(e.life, Life::Zombie(_))).count(),
            descriptors: table.iter().map(|(_, e)| e.process.fds.lock().iter().count()).sum(),
            memory_charged: self.meter.used(),
        }
    }

    /// Ends a process: closes its descriptors, returns its memory to the limit, notifies its parent. The caller must
    /// also handle its task.
    pub(crate) fn end(&self, process: &Process, status: Status) {
        if !process.claim_end() {
            return;
        }
        // What a process does between the decision to kill its run and its own turn to be killed is not its answer: it may
        // have exited because its fork was refused or its child was killed first.
        let status = match status {
            Status::Exited(_) if process.run().is_over() => Status::Signaled(SIGKILL),
            status => status,
        };
        let fds = std::mem::take(&mut *process.fds.lock());
        drop(fds);
        self.locks.release_process(process.pid);
        process.cwd.lock().let_go();
        // Of its arguments only the name is left, for `ps`; its timer goes.
        *process.argv.lock() = Strings::one(procfs::command(process).as_bytes());
        process.alarm.stop();
        process.footprint.close();
        process.run().count_cpu(process.task().cpu_nanos());
        let parent = self.table().end(process.pid, status);
        process.ended.send_replace(Some(status));
        if let Some(parent) = parent {
            tell(&parent);
        }
    }

    /// Ends the process when the returned value is dropped, unless it has ended: however its body ends, its parent is
    /// notified.
    pub(crate) fn end_with_body(self: &Arc<Self>, process: &Arc<Process>) -> EndGuard {
        EndGuard { machine: self.clone(), process: process.clone() }
    }

    /// Sends a signal. Returns a body taken from its process for the caller to drop, but never on a guest's own stack.
    #[must_use]
    pub(crate) fn signal(&self, process: &Arc<Process>, signal: Signal) -> Option<Doomed> {
        let effect = process.signals.lock().receive(signal);
        if signal == SIGCONT || effect == Effect::Continue {
            self.set_stopped(process, None);
            let held = process.signals.lock().take_held();
            if let Some(held) = held {
                return self.terminate(process, held);
            }
        }
        match effect {
            Effect::Nothing | Effect::Continue => None,
            Effect::Flagged => {
                process.interrupted.notify_waiters();
                None
            }
            Effect::Stop => {
                self.set_stopped(process, Some(signal));
                None
            }
            Effect::Terminate => self.terminate(process, signal),
        }
    }

    /// Sends a signal to a whole group. Not for signals that kill a process on whose stack this may run: the terminal's
    /// SIGTTIN and SIGTTOU come from there, the others from outside.
    pub(crate) fn signal_group(&self, group: Pid, signal: Signal) {
        let in_group = |entry: &&Entry| entry.group == group && !matches!(entry.life, Life::Zombie(_));
        let members: Vec<Arc<Process>> =
            self.table().iter().map(|(_, entry)| entry).filter(in_group).map(|e| e.process.clone()).collect();
        for process in members {
            drop(self.signal(&process, signal));
        }
    }

    fn terminate(&self, process: &Arc<Process>, signal: Signal) -> Option<Doomed> {
        process.doom(signal);
        let body = process.task().doom();
        if !process.resident {
            self.end(process, Status::Signaled(signal));
        }
        body
    }

    fn set_stopped(&self, process: &Process, signal: Option<Signal>) {
        let parent = {
            let mut table = self.table();
            let Some(entry) = table.get_mut(process.pid) else { return };
            let was_stopped = matches!(entry.life, Life::Stopped { .. });
            if matches!(entry.life, Life::Zombie(_)) || was_stopped == signal.is_some() {
                return;
            }
            entry.life = match signal {
                Some(signal) => Life::Stopped { signal, reported: false },
                None => Life::Running,
            };
            let parent = entry.parent;
            table.get(parent).map(|e| e.process.clone())
        };
        match (signal, parent) {
            (None, parent) => {
                process.task().resume();
                parent.iter().for_each(|parent| tell(parent));
            }
            (Some(_), parent) => process.task().stop(move || parent.iter().for_each(|parent| tell(parent))),
        }
    }

    /// Kills every process of a run except `spare`. None can escape by forking: the run is marked first, and the table
    /// accepts no more of it.
    pub(crate) fn kill_run(&self, run: &Arc<Run>, spare: Option<Pid>) {
        run.set_over();
        {
            let mut dying = self.dying.lock();
            dying.retain(|run| !run.is_deserted());
            dying.push(run.clone());
        }
        self.kill_where(|process| Arc::ptr_eq(&process.run(), run) && Some(process.pid) != spare);
        // Their parent is gone, or restored to a state from before they existed.
        self.table().forget_ended(run);
    }

    /// Sets a separate deadline for what a command left running.
    pub(crate) fn limit_background(self: &Arc<Self>, run: &Arc<Run>, after: Option<Duration>) {
        let Some(after) = after else { return };
        if run.is_deserted() {
            return;
        }
        let (machine, run) = (Arc::downgrade(self), run.clone());
        self.kernel.runtime().spawn(async move {
            tokio::select! {
                () = run.deserted() => {}
                () = tokio::time::sleep(after) => {
                    if let Some(machine) = machine.upgrade() {
                        machine.kill_run(&run, None);
                    }
                }
            }
        });
    }

    /// Kills every process there is now.
    pub fn kill_all(&self) {
        self.kill_where(|_| true);
    }

    /// Kills everything, lets nothing start any more, and drops the programs that were compiled for it.
    pub fn close(&self) {
        self.table().close();
        self.kill_all();
        self.network.close();
        let membership = self.membership.lock().take();
        drop(membership);
    }

    fn kill_where(&self, condemned: impl Fn(&Process) -> bool) {
        let victims: Vec<Arc<Process>> =
            self.table().iter().map(|(_, e)| e.process.clone()).filter(|p| condemned(p)).collect();
        self.network.cut_off(|pid| victims.iter().any(|victim| victim.pid == pid));
        let start = Instant::now();
        let mut left = Vec::new();
        for process in victims {
            let body = self.signal(&process, SIGKILL);
            // The killer of a resident waits for it.
            if process.resident || start.elapsed() < TAKING_DOWN {
                drop(body);
            } else {
                left.extend(body);
            }
        }
        self.kernel.reap(left);
    }

    /// Waits until nothing is left of the runs that were killed: their memory is free again.
    pub(crate) async fn reaped(&self) {
        let dying = std::mem::take(&mut *self.dying.lock());
        for run in dying {
            run.deserted().await;
        }
    }
}

/// Dropping a tree of many files takes long, and freed memory is returned to the system.
impl Drop for Machine {
    fn drop(&mut self) {
        self.network.close();
        let many = self.tree.try_lock().is_none_or(|tree| tree.usage().inodes > FILES_AT_ONCE);
        if many {
            self.kernel.take_down(self.tree.clone());
        }
        self.kernel.a_machine_is_gone();
    }
}

/// Notifies a process that one of its children ended, stopped or continued.
fn tell(parent: &Process) {
    let effect = parent.signals.lock().receive(SIGCHLD);
    if effect == Effect::Flagged {
        parent.interrupted.notify_waiters();
    }
    parent.child_changed.notify_waiters();
}

/// Held by the code of a process.
pub(crate) struct EndGuard {
    machine: Arc<Machine>,
    process: Arc<Process>,
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.machine.end(&self.process, Status::Signaled(SIGKILL));
    }
}
