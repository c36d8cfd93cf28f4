//! What all sandboxes of a program share: the engine, the workers, the compiled programs.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;
use wasmtime::{Config, Engine, Linker, WasmFeatures};

use crate::admit::{self, Refused, admit};
use crate::artifact::ArtifactCache;
use crate::imports::{Import, Imports};
use crate::instance::Ctx;
use crate::program::{Known, Later, Program, ProgramCache, ProgramSource};
use crate::room::Room;
use crate::stack::StackPool;
use crate::tick::{Ticker, TickerGuard};
use crate::{bulk, sys, wasi};

/// Room for deep recursion in a guest; a shell script can nest a long way.
const WASM_STACK: usize = 8 << 20;
/// The stack of the fiber a guest runs on: its own and what host calls need on top.
const FIBER_STACK: usize = WASM_STACK + (1 << 20);

/// Why the kernel could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum KernelError {
    /// The engine refused its configuration or a program.
    #[error("WebAssembly engine: {0}")]
    Engine(wasmtime::Error),
    /// Threads or artifact files could not be had.
    #[error("{0}: {1}")]
    Io(&'static str, std::io::Error),
    /// A program's bytes are not what they should be.
    #[error("program {0}: {1}")]
    Program(String, String),
    /// A user's own program has something in it that is not allowed.
    #[error(transparent)]
    Refused(#[from] Refused),
}

impl From<wasmtime::Error> for KernelError {
    fn from(error: wasmtime::Error) -> KernelError {
        KernelError::Engine(error)
    }
}

/// How to start a kernel.
#[derive(Debug, Clone, Default)]
pub struct KernelConfig {
    /// Worker threads for guests; by default one for each processor.
    pub workers: Option<usize>,
    /// Where compiled programs are kept between starts; by default a directory of the user's own.
    pub artifacts: Option<PathBuf>,
    /// How many programs may be in memory at once, over all sandboxes; by default what the system has mappings for.
    pub instances: Option<usize>,
}

/// The engine, the workers and the compiled programs. One is enough for a whole program; cloning shares it.
#[derive(Clone)]
pub struct Kernel(Arc<KernelInner>);

pub(crate) struct KernelInner {
    engine: Engine,
    linker: Linker<Ctx>,
    imports: Vec<Import>,
    runtime: Option<Runtime>,
    ticker: TickerGuard,
    artifacts: ArtifactCache,
    room: Room,
    programs: Mutex<ProgramCache>,
}

impl Kernel {
    /// Starts the workers and the ticker.
    pub fn new(config: KernelConfig) -> Result<Kernel, KernelError> {
        let engine = Engine::new(&engine_config())?;
        let mut linker = Linker::new(&engine);
        let mut imports = Imports::new(&mut linker);
        wasi::add_to_linker(&mut imports)?;
        sys::add_to_linker(&mut imports)?;
        let imports = imports.list;
        let workers = config.workers.unwrap_or_else(default_workers);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("wardian-guest")
            // A timer or wake-up must be seen after every poll: guests use their whole tick (kill lateness).
            .event_interval(1)
            .enable_all()
            .build()
            .map_err(|e| KernelError::Io("starting worker threads", e))?;
        let ticker = Ticker::start(engine.clone()).map_err(|e| KernelError::Io("starting the ticker", e))?;
        let artifacts = ArtifactCache::new(config.artifacts, &engine);
        let programs = Mutex::default();
        Ok(Kernel(Arc::new(KernelInner {
            engine,
            linker,
            imports,
            runtime: Some(runtime),
            ticker,
            artifacts,
            room: Room::new(config.instances),
            programs,
        })))
    }

    pub(crate) fn inner(&self) -> &Arc<KernelInner> {
        &self.0
    }

    /// Compiles a program, or takes it from the artifacts of an earlier start. `progress` is told when it must compile.
    pub fn load(&self, source: &ProgramSource, progress: &dyn Fn(&str)) -> Result<Arc<Program>, KernelError> {
        self.0.load(source, progress)
    }

    /// Says that the file with this content version is `program`, so that starting it compiles nothing.
    pub fn register(&self, version: u64, program: Arc<Program>) {
        self.0.programs.lock().register(version, Known::Ready(program));
    }

    /// Says that the file with this content version is the program of `source`, to be loaded when it is first started:
    /// nobody pays for a program that is not used.
    pub fn register_later(&self, version: u64, source: ProgramSource) {
        self.0.programs.lock().register(version, Known::Later(Arc::new(Later::new(source))));
    }

    /// Loads all of those now. Blocks.
    pub fn load_all(&self, progress: &dyn Fn(&str)) -> Result<(), KernelError> {
        let later = self.0.programs.lock().later();
        later.into_iter().try_for_each(|later| later.get(|source| self.load(source, progress)).map(drop))
    }

    /// Every function that guests can import.
    pub fn imports(&self) -> &[Import] {
        &self.0.imports
    }

    /// The runtime guests run on, for work that belongs beside them (deadlines, host files).
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

    pub(crate) fn ticker(&self) -> &Ticker {
        &self.ticker
    }

    pub(crate) fn program(&self, version: u64) -> Option<Known> {
        self.programs.lock().by_version(version)
    }

    /// Loads one of our own that is started for the first time. Blocks; call it off the workers.
    pub(crate) fn load_later(&self, later: &Later) -> Result<Arc<Program>, KernelError> {
        later.get(|source| self.load(source, &|step| tracing::info!("{step}")))
    }

    fn load(&self, source: &ProgramSource, progress: &dyn Fn(&str)) -> Result<Arc<Program>, KernelError> {
        let module = self.artifacts.load(&self.engine, source, progress)?;
        Program::new(&source.name, module, &self.linker, None)
    }

    /// Compiles a user's own program, unless the same bytes were compiled lately. Blocks; call it off the workers.
    pub(crate) fn compile_user(&self, version: u64, wasm: &[u8]) -> Result<Arc<Program>, KernelError> {
        let hash = Sha256::digest(wasm).into();
        if let Some(program) = self.programs.lock().by_hash(hash, version) {
            return Ok(program);
        }
        let admitted = admit(wasm)?;
        let module = wasmtime::Module::new(&self.engine, bulk::in_pieces(wasm))?;
        let program = Program::new("user program", module, &self.linker, Some(admitted))?;
        self.programs.lock().keep(hash, version, program.clone());
        Ok(program)
    }
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
