//! A program in memory: one wasmtime store with one instance, belonging to one process.

use std::ops::Deref;
use std::sync::Arc;

use wardian_vfs::Errno;
use wasmtime::{
    Global, Memory, Mutability, ResourceLimiter, Store, StoreContextMut, Trap, UpdateDeadline, Val,
};

use crate::admit::{TABLE_ELEMENT_BYTES, TABLE_ELEMENTS, TABLE_GROWTH};
use crate::machine::Machine;
use crate::memory::pages::PAGE;
use crate::memory::template::{Ground, Shared, Template};
use crate::proc::{Process, Status};
use crate::program::Program;
use crate::room::Berth;
use crate::signal::{SIGABRT, SIGFPE, SIGKILL, SIGSEGV, Signal};
use crate::strings::Strings;

/// What host calls find in their store.
pub(crate) struct Ctx {
    /// The process it belongs to; none between two processes.
    tenant: Option<Tenant>,
    /// Set as soon as there is an instance.
    pub(crate) memory: Option<Memory>,
    pub(crate) stack_pointer: Option<Global>,
    /// What its memory is mapped over.
    pub(crate) ground: Ground,
    /// Where the program wants to see that a signal waits for it.
    pub(crate) signal_word: Option<u32>,
}

/// The process that an instance runs.
pub(crate) struct Tenant {
    pub(crate) machine: Arc<Machine>,
    pub(crate) process: Arc<Process>,
    pub(crate) program: Arc<Program>,
    pub(crate) env: Strings,
    gauge: Gauge,
}

impl Tenant {
    /// `process` of `machine`, to run `program` with the variables of `env`.
    pub(crate) fn new(
        machine: &Arc<Machine>,
        process: &Arc<Process>,
        program: &Arc<Program>,
        env: Strings,
    ) -> Tenant {
        let gauge = Gauge { process: process.clone(), shared_start: program.system, mapped: 0 };
        Tenant { machine: machine.clone(), process: process.clone(), program: program.clone(), env, gauge }
    }
}

/// Every host call has a caller.
impl Deref for Ctx {
    type Target = Tenant;

    fn deref(&self) -> &Tenant {
        self.tenant.as_ref().expect("an instance that runs is somebody's")
    }
}

/// Charges the growth of a process's memory to its sandbox.
struct Gauge {
    process: Arc<Process>,
    /// The program's initial memory is shared by all who run it; what is written of it is counted (`footprint.rs`).
    shared_start: bool,
    /// Bytes of a start image: growing up to here is mapping it.
    mapped: usize,
}

impl Gauge {
    fn charge(&self, bytes: u64) -> bool {
        self.noted(self.process.footprint.charge(bytes))
    }

    /// Charges for a new instance.
    fn begin(&self, more: u64) -> bool {
        self.noted(self.process.footprint.begin(more))
    }

    fn noted(&self, charged: bool) -> bool {
        if !charged {
            self.process.run().hit("memoryBytes");
        }
        charged
    }
}

impl ResourceLimiter for Gauge {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let more = desired.saturating_sub(current.max(self.mapped)) as u64;
        if more == 0 || (current == 0 && self.shared_start) {
            return Ok(true);
        }
        Ok(if current == 0 {
            self.charge(more)
        } else {
            self.noted(self.process.footprint.charge_growth(more))
        })
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        let growth = (desired - current) as u64;
        if current == 0 && self.shared_start {
            return Ok(true);
        }
        if desired as u64 > TABLE_ELEMENTS || (current > 0 && growth > TABLE_GROWTH) {
            return Ok(false);
        }
        Ok(self.charge(growth * TABLE_ELEMENT_BYTES))
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
    /// None for an idle one.
    berth: Option<Berth>,
    /// Its initial stack pointer.
    stack_top: u32,
}

impl Instance {
    /// Returns an instance of the tenant's program in its initial state: a reused one if there is one. Returns ENOMEM if
    /// the sandbox's or the host's memory is used up.
    pub(crate) async fn start(tenant: Tenant, berth: Berth) -> Result<Instance, Errno> {
        let idle = tenant.program.stock.take();
        Instance::ready_or_new(idle, tenant, berth).await
    }

    /// Does the same, or else takes a spare: for callers that do not come in large numbers, as forks do.
    pub(crate) async fn start_at_once(tenant: Tenant, berth: Berth) -> Result<Instance, Errno> {
        let idle = tenant.program.stock.take();
        let ready = idle.or_else(|| tenant.machine.rules().spares.as_ref()?.take(&tenant.program));
        Instance::ready_or_new(ready, tenant, berth).await
    }

    async fn ready_or_new(ready: Option<Instance>, tenant: Tenant, berth: Berth) -> Result<Instance, Errno> {
        match ready {
            Some(instance) => instance.given_to(tenant, berth),
            None => Instance::new(tenant, berth).await,
        }
    }

    /// A fresh one.
    pub(crate) async fn new(tenant: Tenant, berth: Berth) -> Result<Instance, Errno> {
        if !tenant.gauge.begin(tenant.program.instance_bytes) {
            return Err(Errno::ENOMEM);
        }
        let (engine, program) = (tenant.machine.kernel().engine().clone(), tenant.program.clone());
        let ctx = Ctx {
            tenant: Some(tenant),
            memory: None,
            stack_pointer: None,
            ground: Ground::default(),
            signal_word: None,
        };
        let mut store = Store::new(&engine, ctx);
        store.limiter(|ctx| &mut ctx.tenant.as_mut().expect("what grows is somebody's").gauge);
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|store| {
            show_signals(store);
            Ok(UpdateDeadline::Yield(1))
        });
        let instance = program.pre.instantiate_async(&mut store).await.map_err(|error| {
            tracing::debug!(program = program.name(), error = %format!("{error:#}"), "cannot instantiate");
            Errno::ENOMEM
        })?;
        let memory = instance.get_memory(&mut store, "memory");
        let stack_pointer = instance.get_global(&mut store, "__stack_pointer").filter(|global| {
            let ty = global.ty(&store);
            ty.content().is_i32() && ty.mutability() == Mutability::Var
        });
        let fresh = memory.map_or(0, |memory| memory.data_size(&store));
        let ctx = store.data_mut();
        ctx.ground = Ground::fresh(fresh);
        ctx.memory = memory;
        ctx.stack_pointer = stack_pointer;
        let mut instance = Instance { store, instance, berth: Some(berth), stack_top: 0 };
        instance.stack_top = instance.stack_pointer();
        instance.share_start();
        Ok(instance)
    }

    /// Has what its process writes to the program's initial memory counted.
    fn share_start(&self) {
        let tenant = self.store.data();
        if let Some(memory) = tenant.memory.filter(|_| tenant.program.system) {
            let memory = memory.data(&self.store);
            // What an instance over a template has beyond is charged like growth.
            let fresh = tenant.ground.fresh_bytes().min(memory.len());
            tenant.process.footprint.shares(&memory[..fresh]);
        }
    }

    /// Charges for the pages it was given to start with. Returns ENOMEM past the limit.
    pub(crate) fn count_pages(&self) -> Result<(), Errno> {
        let process = &self.store.data().process;
        if process.footprint.count() {
            return Ok(());
        }
        process.run().hit("memoryBytes");
        Err(Errno::ENOMEM)
    }

    /// Assigns an idle instance to a process, which is charged as if it had been created for it.
    pub(crate) fn given_to(mut self, tenant: Tenant, berth: Berth) -> Result<Instance, Errno> {
        if !tenant.gauge.begin(tenant.program.instance_bytes) {
            return Err(Errno::ENOMEM);
        }
        let ctx = self.store.data_mut();
        ctx.tenant = Some(tenant);
        ctx.signal_word = None;
        self.store.set_epoch_deadline(1);
        self.berth = Some(berth);
        self.share_start();
        Ok(self)
    }

    /// For one whose process is gone, with no frame on its stack: it is wiped for the next process of the same program,
    /// or destroyed. Its place becomes free.
    pub(crate) fn retire(mut self) -> Option<Berth> {
        let berth = self.berth.take();
        let program = self.store.data_mut().tenant.take().map(|tenant| {
            tenant.process.footprint.give_back();
            tenant.program
        });
        if let Some(program) = program.filter(|program| program.stock.keeps()) {
            if program.stock.has_room() && self.wipe(&program).is_some() {
                program.stock.put(self);
            } else if let Some(template) = self.rewind() {
                template.keep(self);
            }
        }
        berth
    }

    /// Resets one that is mapped over a template to that.
    fn rewind(&mut self) -> Option<Arc<Template>> {
        let (memory, _) = self.store.data().memory.zip(self.store.data().stack_pointer)?;
        let (bytes, ctx) = memory.data_and_store_mut(&mut self.store);
        let template = ctx.ground.rewind(bytes)?;
        self.set_stack_pointer(self.stack_top).ok()?;
        Some(template)
    }

    /// Resets it to its initial state; returns `None` if that is not possible or not worth it.
    fn wipe(&mut self, program: &Program) -> Option<()> {
        let ctx = self.store.data();
        let (memory, _) = ctx.memory.zip(ctx.stack_pointer)?;
        let (bytes, ctx) = memory.data_and_store_mut(&mut self.store);
        ctx.ground.wipe(bytes, &program.stock)?;
        self.set_stack_pointer(self.stack_top).ok()
    }

    /// Calls an export. The kernel cannot run a module without it.
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

    /// Sets the stack back to where it begins, after a program has left in the middle.
    pub(crate) fn unwind_stack(&mut self) -> Result<(), Errno> {
        self.set_stack_pointer(self.stack_top)
    }

    /// Returns the guest's stack pointer, 0 if the program does not export it.
    pub(crate) fn stack_pointer(&mut self) -> u32 {
        let global = self.store.data().stack_pointer;
        global.and_then(|global| global.get(&mut self.store).i32()).unwrap_or(0) as u32
    }

    pub(crate) fn set_stack_pointer(&mut self, to: u32) -> Result<(), Errno> {
        let global = self.store.data().stack_pointer.ok_or(Errno::ENOSYS)?;
        global.set(&mut self.store, Val::I32(to as i32)).map_err(|_| Errno::ENOSYS)
    }
}

impl Ctx {
    /// Notes that the memory is going to be mapped over a start image, or over what became of one: that is not charged as
    /// growth.
    pub(crate) fn share_start(&mut self, shared: Shared) {
        if let Some(tenant) = &mut self.tenant {
            tenant.gauge.mapped = shared.bytes;
        }
    }

    /// Charges for the memory of an instance that was mapped over a template for another, as if it had grown. Returns
    /// ENOMEM past the limit.
    pub(crate) fn charge_mapped(&self, bytes: usize) -> Result<(), Errno> {
        let Some(tenant) = &self.tenant else { return Ok(()) };
        let more = bytes.saturating_sub(self.ground.fresh_bytes().max(tenant.gauge.mapped));
        if more == 0 || tenant.gauge.charge(more as u64) { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Has what its process writes to its start image counted, in addition to what its template has of its own. To be called
    /// whenever its memory was mapped.
    pub(crate) fn count_image(&self, memory: &[u8]) {
        let shared = self.ground.shared();
        if let Some(image) = memory.get(..shared.bytes).filter(|image| !image.is_empty()) {
            self.process.footprint.shares_image(image, (shared.own_pages * PAGE) as u64);
        }
    }
}

/// Sets the word that a computing program looks at when a signal waits for it.
fn show_signals(mut store: StoreContextMut<'_, Ctx>) {
    let ctx = store.data();
    ctx.process.footprint.runs_here();
    let Some((word, memory)) = ctx.signal_word.zip(ctx.memory) else { return };
    if ctx.process.signals.lock().has_pending()
        && let Some(word) = memory.data_mut(&mut store).get_mut(word as usize..).and_then(|m| m.get_mut(..4))
    {
        word.copy_from_slice(&1u32.to_le_bytes());
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
