//! A program in memory: one wasmtime store with one instance, belonging to one process.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_vfs::Errno;
use wasmtime::{Global, Memory, ResourceLimiter, Store, Trap, Val};

use crate::limits::FLAT_CHARGE;
use crate::machine::Machine;
use crate::proc::{Process, Status};
use crate::program::Program;
use crate::room::Berth;
use crate::signal::{SIGABRT, SIGFPE, SIGKILL, SIGSEGV, Signal};
use crate::template::Ground;

/// What host calls find in their store.
pub(crate) struct Ctx {
    pub(crate) machine: Arc<Machine>,
    pub(crate) process: Arc<Process>,
    pub(crate) program: Arc<Program>,
    pub(crate) env: Arc<Vec<Vec<u8>>>,
    /// Set as soon as there is an instance.
    pub(crate) memory: Option<Memory>,
    pub(crate) stack_pointer: Option<Global>,
    /// What its memory is mapped over.
    pub(crate) ground: Ground,
    gauge: Gauge,
}

/// Charges the growth of a process's memory to its sandbox.
struct Gauge {
    machine: Arc<Machine>,
    process: Arc<Process>,
    /// What the program starts with is shared with all who run it; a flat charge stands for it.
    shared_start: bool,
}

impl Gauge {
    fn charge(&self, bytes: u64) -> bool {
        let meter = self.machine.meter();
        if !meter.charge(bytes) {
            self.process.run().hit("memoryBytes");
            return false;
        }
        self.process.charged.fetch_add(bytes, Ordering::SeqCst);
        if self.process.has_ended() {
            // It was killed meanwhile and its charge given back already.
            meter.release(self.process.charged.swap(0, Ordering::SeqCst));
        }
        true
    }
}

impl ResourceLimiter for Gauge {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growth = (desired - current) as u64;
        Ok(self.charge(match current {
            0 if self.shared_start => FLAT_CHARGE,
            0 => FLAT_CHARGE + growth,
            _ => growth,
        }))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let bytes = (desired - current) as u64 * 8;
        Ok((current == 0 && self.shared_start) || self.charge(bytes))
    }
}

/// Why guest code stopped other than by returning.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error("exit {0}")]
    Exit(u8),
    #[error("signal {0}")]
    Signal(Signal),
    #[error("exec")]
    Exec(Box<crate::spawn::Request>),
}

/// A store with its instance.
pub(crate) struct Instance {
    pub(crate) store: Store<Ctx>,
    pub(crate) instance: wasmtime::Instance,
    berth: Berth,
}

impl Instance {
    /// A fresh instance of `program` for `process`. ENOMEM where the sandbox's memory or the host's is used up.
    pub(crate) async fn new(
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        program: &Arc<Program>,
        env: Arc<Vec<Vec<u8>>>,
        berth: Berth,
    ) -> Result<Instance, Errno> {
        let ctx = Ctx {
            machine: machine.clone(),
            process: process.clone(),
            program: program.clone(),
            env,
            memory: None,
            stack_pointer: None,
            ground: Ground::default(),
            gauge: Gauge { machine: machine.clone(), process: process.clone(), shared_start: program.system },
        };
        let mut store = Store::new(machine.kernel().engine(), ctx);
        store.limiter(|ctx| &mut ctx.gauge);
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        let instance = program.pre.instantiate_async(&mut store).await.map_err(|error| {
            tracing::debug!(program = program.name(), error = %format!("{error:#}"), "cannot instantiate");
            Errno::ENOMEM
        })?;
        let memory = instance.get_memory(&mut store, "memory");
        let stack_pointer = instance.get_global(&mut store, "__stack_pointer");
        let fresh = memory.map_or(0, |memory| memory.data_size(&store));
        let ctx = store.data_mut();
        ctx.ground = Ground::fresh(fresh);
        ctx.memory = memory;
        ctx.stack_pointer = stack_pointer;
        Ok(Instance { store, instance, berth })
    }

    /// The same, one that lay ready if there is one.
    pub(crate) async fn ready_or_new(
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        program: &Arc<Program>,
        env: Arc<Vec<Vec<u8>>>,
        berth: Berth,
    ) -> Result<Instance, Errno> {
        match machine.rules().spares.as_ref().and_then(|spares| spares.take(program)) {
            Some(spare) => spare.given_to(machine, process, env, berth),
            None => Instance::new(machine, process, program, env, berth).await,
        }
    }

    /// A spare becomes a process's own, which is charged as if it had been made for it.
    fn given_to(
        mut self,
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        env: Arc<Vec<Vec<u8>>>,
        berth: Berth,
    ) -> Result<Instance, Errno> {
        let gauge = Gauge { machine: machine.clone(), process: process.clone(), shared_start: true };
        if !gauge.charge(FLAT_CHARGE) {
            return Err(Errno::ENOMEM);
        }
        let ctx = self.store.data_mut();
        ctx.machine = machine.clone();
        ctx.process = process.clone();
        ctx.env = env;
        ctx.gauge = gauge;
        self.berth = berth;
        Ok(self)
    }

    /// Takes it down; its place is for the program that comes instead.
    pub(crate) fn make_way(self) -> Berth {
        self.berth
    }

    /// Calls an export. A module without it is one the kernel cannot run.
    pub(crate) async fn call<P, R>(&mut self, export: &str, params: P) -> Result<R, Ending>
    where
        P: wasmtime::WasmParams + Sync,
        R: wasmtime::WasmResults + Sync,
    {
        let function = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, export)
            .map_err(|_| Ending::Status(Status::Signaled(SIGSEGV)))?;
        function.call_async(&mut self.store, params).await.map_err(ending)
    }

    /// The guest's stack pointer, 0 where the program does not export it.
    pub(crate) fn stack_pointer(&mut self) -> u32 {
        let global = self.store.data().stack_pointer;
        global.map_or(0, |global| global.get(&mut self.store).unwrap_i32() as u32)
    }

    pub(crate) fn set_stack_pointer(&mut self, to: u32) -> Result<(), Errno> {
        let global = self.store.data().stack_pointer.ok_or(Errno::ENOSYS)?;
        global.set(&mut self.store, Val::I32(to as i32)).map_err(|_| Errno::ENOSYS)
    }
}

/// How a call into a guest ended, when it did not return.
pub(crate) enum Ending {
    Status(Status),
    Exec(Box<crate::spawn::Request>),
}

fn ending(error: wasmtime::Error) -> Ending {
    let error = match error.downcast::<Stop>() {
        Ok(Stop::Exit(code)) => return Ending::Status(Status::Exited(code)),
        Ok(Stop::Signal(signal)) => return Ending::Status(Status::Signaled(signal)),
        Ok(Stop::Exec(request)) => return Ending::Exec(request),
        Err(error) => error,
    };
    tracing::debug!(error = %format!("{error:#}"), "guest trapped");
    Ending::Status(Status::Signaled(match error.downcast_ref::<Trap>() {
        Some(Trap::UnreachableCodeReached) => SIGABRT,
        Some(Trap::IntegerDivisionByZero | Trap::IntegerOverflow | Trap::BadConversionToInteger) => SIGFPE,
        Some(_) => SIGSEGV,
        None => SIGKILL,
    }))
}
