//! What all sandboxes of a host process share: the engine, the workers, the compiled programs.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use wardian_vfs::Tree;
use wasmtime::{Config, Engine, Linker, Module, WasmFeatures};

use crate::admit::{self, Admitted};
use crate::artifact::{self, ArtifactCache};
use crate::compiler::{CompileError, Compiler, Turn};
use crate::descriptors::{Share, Use};
use crate::family::Family;
use crate::imports::{Import, Imports};
use crate::instance::Ctx;
use crate::limits::Meter;
use crate::memory::pages;
use crate::memory::trim::Trimmer;
use crate::program::{Known, Later, Program, ProgramSource};
use crate::program_cache::ProgramCache;
use crate::reap::Reaper;
use crate::room::Room;
use crate::stack::{FIBER_STACK, StackPool};
use crate::start_image::Shipped;
use crate::task::Doomed;
use crate::tick::{Ticker, TickerGuard};
use crate::tree_lock::TreeLock;
use crate::turns::Turns;
use crate::{bulk, descriptors, sys, threads, wasi};

/// Space for deep recursion in a guest; a shell script can nest deeply.
const WASM_STACK: usize = 8 << 20;
/// What host calls need on the stack of the fiber, on top of the guest's own.
const _: () = assert!(FIBER_STACK >= WASM_STACK + (1 << 20));

/// An error of the kernel.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The engine refused its configuration or a program.
    #[error("WebAssembly engine: {0}")]
    Engine(wasmtime::Error),
    /// Threads or artifact files were unavailable.
    #[error("{0}: {1}")]
    Io(&'static str, std::io::Error),
    /// A program's bytes are not what they should be.
    #[error("program {0}: {1}")]
    Program(String, String),
    /// Other kernels of this process have taken all instances.
    #[error("no capacity for so many instances is left in this process")]
    NoRoom,
}

impl From<wasmtime::Error> for KernelError {
    fn from(error: wasmtime::Error) -> KernelError {
        KernelError::Engine(error)
    }
}

/// How to start a kernel.
#[derive(Debug, Clone, Default)]
pub struct KernelConfig {
    /// How many guests may run at once, each on its own thread; by default one per processor.
    pub workers: Option<usize>,
    /// Where compiled programs are kept between starts; by default a private directory of the user.
    pub artifacts: Option<PathBuf>,
    /// How many programs may be in memory at once, over all sandboxes; by default what the system has mappings for.
    /// They are taken out of what other kernels of this process have.
    pub instances: Option<usize>,
    /// The most memory that the processes of all sandboxes may use together; by default only each sandbox has a limit.
    pub memory_bytes: Option<u64>,
    /// Compiles users' own programs in this process instead of a helper process.
    ///
    /// This is for embedders whose executable is not Rust's (for example a shared library in Python), where no helper
    /// can be started and such programs are otherwise refused. The risk: a module of a few kilobytes can keep a compiler
    /// busy for minutes and use gigabytes, and in this process nothing stops it: not the timeout, not the end of the
    /// sandbox.
    pub compile_in_process: bool,
    /// The budget for compiling one user program; by default [`CompileBudget::default`].
    pub compile_budget: Option<CompileBudget>,
}

/// The budget for compiling one user program. A program that exceeds it is refused.
#[derive(Debug, Clone, Copy)]
pub struct CompileBudget {
    /// Bytes of address space of the compiler's process, including the executable.
    pub memory: u64,
    /// Seconds of processor time.
    pub seconds: u64,
    /// Bytes of resulting code.
    pub code: u64,
}

impl Default for CompileBudget {
    fn default() -> CompileBudget {
        CompileBudget { memory: 1280 << 20, seconds: 120, code: 256 << 20 }
    }
}

/// The engine, the workers and the compiled programs. One is enough for a whole process; cloning shares it.
#[derive(Clone)]
pub struct Kernel(Arc<KernelInner>);

pub(crate) struct KernelInner {
    engine: Engine,
    linker: Linker<Ctx>,
    imports: Vec<Import>,
    runtime: Option<Runtime>,
    turns: Arc<Turns>,
    _ticker: TickerGuard,
    artifacts: ArtifactCache,
    room: Room,
    memory: Option<Arc<Meter>>,
    trimmer: Trimmer,
    reaper: Reaper,
    /// Held while destroying an instance that no process runs any more.
    tidying: Semaphore,
    compiler: Compiler,
    compile_in_process: bool,
    programs: Mutex<ProgramCache>,
    /// The files that start images are made over.
    shipped: OnceLock<Shipped>,
}

/// A kernel that has no threads yet.
///
/// For a process that gives up opening files before it runs anything: it calls [`Unstarted::hold`], then seals itself, then
/// calls [`Unstarted::start`].
pub struct Unstarted {
    config: KernelConfig,
    workers: usize,
    engine: Engine,
    artifacts: ArtifactCache,
    room: Room,
}

impl Unstarted {
    /// Prepares the engine. Raises this process's limit of open files as far as the system allows.
    pub fn new(config: KernelConfig) -> Result<Unstarted, KernelError> {
        descriptors::raise_limit();
        let engine = Engine::new(&engine_config())?;
        let artifacts = ArtifactCache::new(config.artifacts.clone(), &engine);
        let workers = config.workers.unwrap_or_else(default_workers);
        let room = Room::new(config.instances).ok_or(KernelError::NoRoom)?;
        Ok(Unstarted { config, workers, engine, artifacts, room })
    }

    /// Loads all that the kernel will need: the compiled code of these programs, and their start images over the files that
    /// `files` stands for. It will open nothing else, and compile nothing.
    pub fn hold(&mut self, programs: &[ProgramSource], files: &str) -> Result<(), KernelError> {
        self.artifacts.hold(&self.engine, programs, files);
        pages::open();
        // An event loop also opens what all of them share.
        let first = tokio::runtime::Builder::new_current_thread().enable_all().build();
        first.map(drop).map_err(|e| KernelError::Io("preparing the event loop", e))
    }

    /// Returns whether the compiled code of a program is there.
    pub fn is_compiled(&self, source: &ProgramSource) -> bool {
        self.artifacts.has(source)
    }

    /// Starts the workers and the ticker.
    pub fn start(self) -> Result<Kernel, KernelError> {
        let Unstarted { config, workers, engine, artifacts, room } = self;
        let mut linker = Linker::new(&engine);
        let mut imports = Imports::new(&mut linker);
        wasi::add_to_linker(&mut imports)?;
        sys::add_to_linker(&mut imports)?;
        let imports = imports.list;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            // One more than guests run at once: deadlines, and whatever else is not a guest, never wait for one.
            .worker_threads(workers + 1)
            .thread_name("wardian-guest")
            .on_thread_start(threads::shorten_slices)
            // A timer or wake-up must be seen after every poll: guests use their whole tick (kill lateness).
            .event_interval(1)
            .enable_all()
            .build()
            .map_err(|e| KernelError::Io("starting worker threads", e))?;
        let ticker = Ticker::start(engine.clone()).map_err(|e| KernelError::Io("starting the ticker", e))?;
        Ok(Kernel(Arc::new(KernelInner {
            engine,
            linker,
            imports,
            runtime: Some(runtime),
            turns: Arc::new(Turns::new(workers, ticker.ticker())),
            _ticker: ticker,
            artifacts,
            room,
            memory: config.memory_bytes.map(|limit| Arc::new(Meter::new(limit))),
            trimmer: Trimmer::default(),
            reaper: Reaper::default(),
            tidying: Semaphore::new(1),
            compiler: Compiler::new(config.compile_budget.unwrap_or_default()),
            compile_in_process: config.compile_in_process,
            programs: Mutex::default(),
            shipped: OnceLock::new(),
        })))
    }
}

impl Kernel {
    /// Starts the workers and the ticker. Raises this process's limit of open files as far as the system allows.
    pub fn new(config: KernelConfig) -> Result<Kernel, KernelError> {
        Unstarted::new(config)?.start()
    }

    pub(crate) fn of(inner: &Arc<KernelInner>) -> Kernel {
        Kernel(inner.clone())
    }

    /// Says which files programs are prepared over: those that ship with Wardian, and nothing of a user's. `key` stands for
    /// all of them. Programs are not prepared without; only the first call counts.
    pub fn set_shipped_files(&self, tree: Tree, key: &str) {
        let _ = self.0.shipped.set(Shipped { tree, key: key.to_owned() });
    }

    pub(crate) fn inner(&self) -> &Arc<KernelInner> {
        &self.0
    }

    /// Compiles a program, or loads it from the artifacts of an earlier start. Calls `progress` if it must compile.
    pub fn load(&self, source: &ProgramSource, progress: &dyn Fn(&str)) -> Result<Arc<Program>, KernelError> {
        self.0.load(source, progress)
    }

    /// Returns whether an earlier start has compiled a program and its code was kept: loading it takes a moment only.
    pub fn is_compiled(&self, source: &ProgramSource) -> bool {
        self.0.artifacts.has(source)
    }

    /// Registers the file with this content version as `program`, so that starting it compiles nothing.
    pub fn register(&self, version: u64, program: Arc<Program>) {
        self.0.programs.lock().register(version, Known::Ready(program));
    }

    /// Registers the file with this content version as the program of `source`, to be loaded when it is first started:
    /// unused programs cost nothing.
    pub fn register_later(&self, version: u64, source: ProgramSource) {
        self.0.programs.lock().register(version, Known::Later(Arc::new(Later::new(source))));
    }

    /// Returns the program that was registered for this content version, loading it if necessary, and what its processes
    /// start from.
    pub async fn registered(&self, version: u64) -> Result<Arc<Program>, KernelError> {
        let failed = |why: String| KernelError::Program(format!("of version {version}"), why);
        let known = self.0.programs.lock().registered(version);
        let program = match known.ok_or_else(|| failed("it was not registered".to_owned()))? {
            Known::Ready(program) => program,
            Known::Later(later) => self.0.load_later(&later).await.map_err(failed)?,
        };
        if program.prepares {
            self.0.start_image(&program).await;
        }
        Ok(program)
    }

    /// Loads all of those now. Blocks.
    pub fn load_all(&self, progress: &dyn Fn(&str)) -> Result<(), KernelError> {
        let later = self.0.programs.lock().later();
        later.into_iter().try_for_each(|later| {
            let program = later.get(|source| self.load(source, progress))?;
            self.0.prepare(&program, progress);
            Ok(())
        })
    }

    /// Waits until programs are compiled that a command began to use, even if no one waits for them any more: the work is
    /// kept for the next start. Blocks.
    pub fn finish_loading(&self) {
        let later = self.0.programs.lock().later();
        later.iter().for_each(|later| later.finish());
    }

    /// Returns every function that guests can import.
    pub fn imports(&self) -> &[Import] {
        &self.0.imports
    }

    /// Returns the bytes that all sandboxes are charged for together, if they are limited together.
    pub fn memory_charged(&self) -> Option<u64> {
        self.0.memory.as_ref().map(|meter| meter.used())
    }

    /// Returns free memory of this process to the system, soon and once more some seconds later. For a program to call when
    /// something large has ended that is not a sandbox. Calls share the work, and none waits for it.
    pub fn return_memory(&self) {
        self.0.trimmer.soon_and_again(self.handle());
    }

    /// Returns the runtime that guests run on, for related work (deadlines, host files).
    pub fn handle(&self) -> &tokio::runtime::Handle {
        self.0.runtime().handle()
    }
}

impl KernelInner {
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("the runtime lives until the kernel is dropped")
    }

    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    /// The meter of all its sandboxes, if their memory is limited together.
    pub(crate) fn memory(&self) -> Option<&Arc<Meter>> {
        self.memory.as_ref()
    }

    /// Takes down the files of a sandbox that is gone.
    pub(crate) fn take_down(&self, tree: TreeLock) {
        if let Some(runtime) = &self.runtime {
            self.trimmer.take_down(tree, runtime.handle());
        }
    }

    /// Drops what is left of killed processes, aside.
    pub(crate) fn reap(&self, bodies: Vec<Doomed>) {
        match &self.runtime {
            Some(runtime) => self.reaper.take(bodies, runtime.handle()),
            None => drop(bodies),
        }
    }

    /// Notes that a sandbox is gone, and perhaps much memory with it.
    pub(crate) fn a_machine_is_gone(&self) {
        if let Some(runtime) = &self.runtime {
            self.trimmer.soon(runtime.handle());
        }
    }

    pub(crate) fn tidying(&self) -> &Semaphore {
        &self.tidying
    }

    pub(crate) fn turns(&self) -> &Arc<Turns> {
        &self.turns
    }

    pub(crate) fn artifacts(&self) -> &ArtifactCache {
        &self.artifacts
    }

    pub(crate) fn shipped(&self) -> Option<&Shipped> {
        self.shipped.get()
    }

    pub(crate) fn compiler(&self) -> &Compiler {
        &self.compiler
    }

    /// Returns the program in a file of this version, as far as this family knows.
    pub(crate) fn program(&self, family: &Family, version: u64) -> Option<Known> {
        self.programs.lock().by_version(family, version)
    }

    /// Returns the program of these bytes, if anyone's is kept.
    pub(crate) fn program_of(&self, family: &Family, hash: [u8; 32], version: u64) -> Option<Arc<Program>> {
        let (program, evicted) = self.programs.lock().user.by_hash(family, hash, version)?;
        drop(evicted);
        Some(program)
    }

    /// Keeps a program for the family's next start of it.
    pub(crate) fn keep_program(&self, family: &Family, hash: [u8; 32], version: u64, program: Arc<Program>) {
        let bytes = program.code_bytes();
        let evicted = self.programs.lock().user.keep(family, hash, version, program, bytes);
        drop(evicted);
    }

    /// Drops what is kept for a family that is gone.
    pub(crate) fn forget_programs_of(&self, family: &Family) {
        let evicted = self.programs.lock().user.forget(family);
        drop(evicted);
    }

    /// Loads one of Wardian's own programs that is started for the first time. The result is kept, even if no one waits
    /// for it.
    pub(crate) async fn load_later(self: &Arc<Self>, later: &Arc<Later>) -> Result<Arc<Program>, String> {
        let (kernel, noted) = (self.clone(), later.clone());
        let load = move |source: &ProgramSource| {
            kernel.load(source, &|step| {
                noted.is_compiled_now();
                tracing::info!("{step}");
            })
        };
        match later.load(self.runtime(), load).await {
            Some(loaded) => loaded.map_err(|error| error.to_string()),
            None => Err("the kernel is shutting down".to_owned()),
        }
    }

    fn load(&self, source: &ProgramSource, progress: &dyn Fn(&str)) -> Result<Arc<Program>, KernelError> {
        let module = self.artifacts.load(&self.engine, source, progress)?;
        Program::new(&source.name, module, &self.linker, &source.sha256, None)
    }

    /// Compiles a user's own program, which was admitted; returns nothing if it had to make room for others. `turn` and
    /// `held` are dropped when nothing of the compiler is left.
    pub(crate) async fn compile_user(
        self: &Arc<Self>,
        family: &Arc<Family>,
        wasm: Vec<u8>,
        admitted: Admitted,
        turn: Turn,
        held: impl Send + 'static,
    ) -> Result<Option<Arc<Program>>, CompileError> {
        if self.artifacts.is_sealed() {
            let why = "a cell starts no compiler, so users' own programs do not run in one yet";
            return Err(CompileError::Unavailable(why.to_owned()));
        }
        let (kernel, family) = (self.clone(), family.clone());
        let finish: Box<dyn FnOnce() -> Result<Arc<Program>, CompileError> + Send> = if self
            .compile_in_process
        {
            Box::new(move || {
                let module = Module::new(&kernel.engine, bulk::in_pieces(&wasm)).map_err(refused)?;
                drop((turn, held));
                kernel.user_program(&family, module, admitted)
            })
        } else {
            let code: Option<File> = self.compiler.compile(self.runtime(), &family, wasm, turn, held).await?;
            let Some(code) = code else { return Ok(None) };
            Box::new(move || {
                let module = artifact::from_compiler(&kernel.engine, code).map_err(refused)?;
                kernel.user_program(&family, module, admitted)
            })
        };
        let shutting_down = |_| CompileError::Unavailable("the kernel is shutting down".to_owned());
        self.runtime().spawn_blocking(finish).await.map_err(shutting_down)?.map(Some)
    }

    fn user_program(
        &self,
        family: &Family,
        module: Module,
        admitted: Admitted,
    ) -> Result<Arc<Program>, CompileError> {
        let image = module.image_range();
        let bytes = (image.end as usize).wrapping_sub(image.start as usize) as u64;
        let charge = family.charge(bytes).ok_or_else(|| {
            CompileError::TooMuch("is left to this sandbox and its forks for compiled programs".to_owned())
        })?;
        let descriptor = Share::take(Use::Code).map_err(|_| {
            CompileError::Unavailable("too many programs are running; try again later".to_owned())
        })?;
        Program::new("user program", module, &self.linker, "", Some((admitted, charge, descriptor)))
            .map_err(|error| CompileError::Refused(error.to_string()))
    }
}

fn refused(error: wasmtime::Error) -> CompileError {
    CompileError::Refused(format!("{error:#}"))
}

impl Drop for KernelInner {
    fn drop(&mut self) {
        // The last reference may go in async code or in a worker, where waiting for the workers is not allowed.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn default_workers() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).max(2)
}

/// The settings that determine the code: the same here and in the compiler's process.
pub(crate) fn engine_config() -> Config {
    let mut config = Config::new();
    // Nothing is on by default.
    config.wasm_features(WasmFeatures::all(), false);
    config.wasm_features(admit::FEATURES, true);
    config.epoch_interruption(true);
    config.max_wasm_stack(WASM_STACK);
    config.async_stack_size(FIBER_STACK);
    config.with_host_stack(Arc::new(StackPool::default()));
    // Never wasmtime's pool: templates are mapped over instances' memory, and a pool's slots would keep the mapping for
    // the next tenant. What is used again is wiped by us (stock.rs).
    config.allocation_strategy(wasmtime::InstanceAllocationStrategy::OnDemand);
    config.memory_init_cow(true);
    config.memory_guaranteed_dense_image_size(admit::IMAGE_BYTES);
    config.guard_before_linear_memory(false);
    config.wasm_backtrace_max_frames(None);
    config.generate_address_map(false);
    config
}
