//! The cell's own side.
//!
//! ```text
//!  main ── limits ── Order::Start ── prepare ── seal ── threads ── Report::Ready
//!   │
//!   ▼ one order after the other          each in a task of the tenant's
//!  Tenant::create, fork, destroy, run ──► RunIo: output within a window, input on request, cancel
//!                                           │
//!                                           ▼ a thread that writes frames, in sequence
//! ```
//!
//! The process ends when the supervisor closes the socket, is gone, or sends what cannot be read.

mod io;

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::process::{getppid, set_parent_process_death_signal};
use wardian_confine::cell::{self, Budget};
use wardian_confine::fork_exec;

use crate::frame::{Decoder, LONGEST_ORDER};
use crate::message::{
    NotStarted, Order, Refusal, Report, RequestId, RunEnd, RunSpec, SandboxId, SandboxSpec, Seal, Settings,
    VERSION,
};
use io::{Outbox, Unstarted};

pub use io::{Gone, RunIo};

/// The descriptors of a cell: memory files and the event loop.
const FILES: u64 = 4096;
/// The largest memory file: the memory of one process, as WebAssembly has it, and what is stored with it.
const FILE_SIZE: u64 = 5 << 30;
/// The threads of a cell: guests' own, and those for what blocks.
const THREADS: u64 = 1024;

/// A task of a tenant.
pub type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a cell holds: sandboxes, by numbers that the supervisor gives. None of its calls blocks.
pub trait Tenant: Send + Sync + 'static {
    /// Runs a task to its end.
    fn spawn(&self, task: Task<()>);
    /// Creates a sandbox.
    fn create(&self, sandbox: SandboxId, spec: SandboxSpec) -> Task<Result<(), Refusal>>;
    /// Forks a sandbox as `child`.
    fn fork(&self, sandbox: SandboxId, child: SandboxId) -> Task<Result<(), Refusal>>;
    /// Destroys a sandbox.
    fn destroy(&self, sandbox: SandboxId) -> Task<Result<(), Refusal>>;
    /// Runs a command.
    fn run(&self, sandbox: SandboxId, run: RunSpec, io: RunIo) -> Task<Result<Box<RunEnd>, Refusal>>;
}

/// Seals this process, once. Before: open what will be needed, with one thread. After: threads, and nothing opened.
#[derive(Debug)]
pub struct Sealing {
    budget: Budget,
    supervisor: u32,
}

/// The proof that this process is sealed.
#[derive(Debug)]
pub struct Sealed(Seal);

impl Sealing {
    /// Seals it.
    pub fn seal(self) -> Result<Sealed, NotStarted> {
        let other = |error: std::io::Error| NotStarted::Other(format!("it cannot be sealed: {error}"));
        let in_force = cell::seal(&self.budget, || {
            // Not earlier: a change of privileges clears it.
            set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            let parent = getppid().map_or(0, |parent| parent.as_raw_nonzero().get());
            match u32::try_from(parent) {
                Ok(parent) if parent == self.supervisor => Ok(()),
                _ => Err(std::io::Error::other("the supervisor is gone")),
            }
        });
        let cell::InForce { namespaces, landlock, seccomp } = in_force.map_err(other)?;
        Ok(Sealed(Seal { version: VERSION, namespaces, landlock, seccomp }))
    }
}

/// Runs as a cell until the supervisor is done with it. Call it first of all, in a process that a supervisor has started:
/// its standard input is the socket. `prepare` opens what the tenant needs, seals, and then may start threads.
pub fn main<T: Tenant>(prepare: impl FnOnce(&Settings, Sealing) -> Result<(T, Sealed), NotStarted>) -> ! {
    let code = match work(prepare) {
        Ok(()) => 0,
        // Where the supervisor listens it was told, and otherwise there is nobody.
        Err(_) => 1,
    };
    fork_exec::exit_child(code)
}

fn work<T: Tenant>(
    prepare: impl FnOnce(&Settings, Sealing) -> Result<(T, Sealed), NotStarted>,
) -> std::io::Result<()> {
    // SAFETY: this process has just been started and has opened nothing.
    unsafe { fork_exec::close_the_rest() }?;
    let mut orders = Orders { socket: File::from(fork_exec::take_descriptor(0)?), decoder: decoder() };
    let Some(Order::Start(settings)) = orders.next()? else { return Ok(()) };
    let outbox = Unstarted::new(orders.socket.try_clone()?);
    let (tenant, Sealed(seal)) = match start(&settings, prepare) {
        Ok(started) => started,
        Err(why) => return outbox.write_now(&Report::NotStarted(why)),
    };
    let outbox = outbox.start(&Report::Ready(seal))?;
    let desk = Arc::new(Desk { tenant, outbox, runs: Mutex::default() });
    while let Some(order) = orders.next()? {
        desk.obey(order);
    }
    Ok(())
}

fn start<T: Tenant>(
    settings: &Settings,
    prepare: impl FnOnce(&Settings, Sealing) -> Result<(T, Sealed), NotStarted>,
) -> Result<(T, Sealed), NotStarted> {
    if settings.version != VERSION {
        return Err(NotStarted::Other("supervisor and cell are of different versions".to_owned()));
    }
    let budget = Budget { memory: settings.memory, files: FILES, file_size: FILE_SIZE, threads: THREADS };
    cell::limit(&budget).map_err(|error| NotStarted::Other(format!("it cannot be limited: {error}")))?;
    prepare(settings, Sealing { budget, supervisor: settings.supervisor })
}

fn decoder() -> Decoder {
    Decoder::new(LONGEST_ORDER)
}

/// What comes from the supervisor.
struct Orders {
    socket: File,
    decoder: Decoder,
}

impl Orders {
    /// Waits for the next; `None` when the supervisor has closed the socket.
    fn next(&mut self) -> std::io::Result<Option<Order>> {
        loop {
            if let Some(order) = self.decoder.decode().map_err(std::io::Error::other)? {
                return Ok(Some(order));
            }
            let mut bytes = [0; 64 << 10];
            match self.socket.read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(read) => self.decoder.push(&bytes[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Where orders become tasks.
struct Desk<T> {
    tenant: T,
    outbox: Outbox,
    runs: Mutex<HashMap<RequestId, RunIo>>,
}

impl<T: Tenant> Desk<T> {
    fn obey(self: &Arc<Self>, order: Order) {
        match order {
            // There is one, and it was the first.
            Order::Start(_) => {}
            Order::Create(request, sandbox, spec) => self.answer(request, self.tenant.create(sandbox, *spec)),
            Order::Fork(request, sandbox, child) => self.answer(request, self.tenant.fork(sandbox, child)),
            Order::Destroy(request, sandbox) => self.answer(request, self.tenant.destroy(sandbox)),
            Order::Run(request, sandbox, run) => self.run(request, sandbox, *run),
            // For a run that is over these are too late.
            Order::Input(request, bytes) => self.about(request, |io| io.came(Ok(bytes))),
            Order::InputFailed(request) => self.about(request, |io| io.came(Err(Gone))),
            Order::Credit(request, bytes) => self.about(request, |io| io.grant(bytes as usize)),
            Order::Cancel(request) => self.about(request, |io| io.cancelled().notify_one()),
        }
    }

    fn about(&self, request: RequestId, then: impl FnOnce(&RunIo)) {
        let io = self.runs.lock().get(&request).cloned();
        if let Some(io) = io {
            then(&io);
        }
    }

    fn answer(self: &Arc<Self>, request: RequestId, task: Task<Result<(), Refusal>>) {
        let desk = self.clone();
        self.tenant.spawn(Box::pin(async move {
            let outcome = task.await;
            desk.outbox.send(Report::Done(request, outcome)).await;
        }));
    }

    fn run(self: &Arc<Self>, request: RequestId, sandbox: SandboxId, run: RunSpec) {
        let io = RunIo::new(request, self.outbox.clone());
        self.runs.lock().insert(request, io.clone());
        let task = self.tenant.run(sandbox, run, io);
        let desk = self.clone();
        self.tenant.spawn(Box::pin(async move {
            let outcome = task.await;
            desk.runs.lock().remove(&request);
            desk.outbox.send(Report::Ended(request, outcome)).await;
        }));
    }
}

/// Returns the number of the descriptor of the socket, for tests that write to it past all this.
#[doc(hidden)]
pub fn socket_of(io: &RunIo) -> i32 {
    io.socket().as_raw_fd()
}
