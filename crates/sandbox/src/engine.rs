//! An engine: the threads, compiled programs and instances that sandboxes are built from.
//!
//! Most programs need none: sandboxes are built from one that the process shares, started when it is first needed. An engine
//! of its own keeps a group of sandboxes apart: their threads, their memory, their instances.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use wardian_kernel::{CompileBudget, KernelConfig};

use crate::error::{Error, engine, lost};
use crate::options::Builder;
use crate::pool::PoolOptions;
use crate::sandbox::Sandbox;
use crate::system::System;

/// What sandboxes are built from. Cloning shares it; it ends with its last handle and sandbox.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), wardian::Error> {
/// let engine = wardian::Engine::builder().threads(2).memory_bytes(2 << 30).build().await?;
/// let sandbox = engine.sandbox().build().await?;
/// assert_eq!(sandbox.run("echo hello").await?.stdout, b"hello\n");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Engine(Arc<System>);

/// How to start an engine. Every option has a default.
#[derive(Clone, Debug, Default)]
pub struct EngineBuilder {
    config: KernelConfig,
    pool: PoolOptions,
    progress: Option<fn(&str)>,
}

/// What is alive in an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineUsage {
    /// The number of sandboxes.
    pub sandboxes: usize,
    /// The number of processes that run in them, and their other tasks.
    pub tasks: usize,
    /// Bytes that are charged to [`EngineBuilder::memory_bytes`], if that is set.
    pub memory_bytes: Option<u64>,
}

impl EngineBuilder {
    /// Sets how many guests may run at once, each on its own thread; by default one per processor.
    pub fn threads(mut self, threads: usize) -> EngineBuilder {
        self.config.workers = Some(threads);
        self
    }

    /// Sets the directory where compiled programs are kept between starts. Only this user may be able to write to it. The
    /// default is `$WARDIAN_CACHE_DIR`, or `wardian` in `$XDG_CACHE_HOME` or `~/.cache`.
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> EngineBuilder {
        self.config.artifacts = Some(directory.into());
        self
    }

    /// Limits the memory of all sandboxes together. By default each sandbox has its own limit alone.
    pub fn memory_bytes(mut self, bytes: u64) -> EngineBuilder {
        self.config.memory_bytes = Some(bytes);
        self
    }

    /// Reserves capacity for this many programs in memory at the same time, out of what the process has (Linux limits the mappings of
    /// a process). By default engines share what nobody has reserved.
    pub fn instances(mut self, instances: usize) -> EngineBuilder {
        self.config.instances = Some(instances);
        self
    }

    /// Sets how many shells are kept ready.
    pub fn pool(mut self, pool: PoolOptions) -> EngineBuilder {
        self.pool = pool;
        self
    }

    /// Compiles users' own programs in this process instead of a helper process: for programs that are not Rust's, where no
    /// helper can be started and such programs are otherwise refused. A module of a few kilobytes can then keep a
    /// compiler busy for minutes, and neither a timeout nor the end of the sandbox stops it.
    pub fn compile_in_process(mut self, yes: bool) -> EngineBuilder {
        self.config.compile_in_process = yes;
        self
    }

    /// Sets what compiling one of the users' own programs may take. One that takes more is refused, and the result's limit is
    /// [`Limit::Compile`](crate::Limit::Compile).
    pub fn compile_budget(mut self, budget: CompileBudget) -> EngineBuilder {
        self.config.compile_budget = Some(budget);
        self
    }

    /// Sets a callback that is called when a program must be compiled first.
    pub fn progress(mut self, progress: fn(&str)) -> EngineBuilder {
        self.progress = Some(progress);
        self
    }

    /// Starts the engine. The first time on a machine that takes seconds, to compile the shell and the tools.
    pub async fn build(self) -> Result<Engine, Error> {
        tokio::task::spawn_blocking(move || self.build_blocking()).await.map_err(lost)?
    }

    /// Does the same, and blocks the caller's thread.
    pub fn build_blocking(self) -> Result<Engine, Error> {
        if self.config.workers == Some(0) || self.config.instances == Some(0) {
            return Err(Error::Option("an engine needs at least one thread and one instance".to_owned()));
        }
        let system = System::start(self.config, self.progress.unwrap_or(|_| ()))?;
        system.pool.configure(self.pool)?;
        Ok(Engine(Arc::new(system)))
    }
}

impl Engine {
    /// Returns a builder for an engine of its own.
    pub fn builder() -> EngineBuilder {
        EngineBuilder::default()
    }

    /// Returns the engine that the process shares, and starts it if necessary. Blocks while it starts.
    pub fn shared() -> Result<Engine, Error> {
        Ok(Engine(System::shared(&|_| ())?))
    }

    /// Returns a builder for a sandbox of this engine.
    pub fn sandbox(&self) -> Builder {
        Sandbox::builder().engine(self)
    }

    /// Compiles whatever the first use of each program would otherwise wait for. Calls `progress` for each step. Blocks.
    pub fn prepare(&self, progress: impl Fn(&str)) -> Result<(), Error> {
        self.0.kernel.load_all(&progress).map_err(engine)
    }

    /// Sets how many shells are kept ready.
    pub fn set_pool(&self, pool: PoolOptions) -> Result<(), Error> {
        self.0.pool.configure(pool)
    }

    /// Returns this program's free memory to the system, soon and once more some seconds later: see
    /// [`return_memory`](crate::return_memory).
    pub fn return_memory(&self) {
        self.0.kernel.return_memory();
    }

    /// Returns what is alive in it.
    pub fn usage(&self) -> EngineUsage {
        EngineUsage {
            sandboxes: self.0.alive.load(Ordering::SeqCst),
            tasks: self.0.kernel.handle().metrics().num_alive_tasks(),
            memory_bytes: self.0.kernel.memory_charged(),
        }
    }

    pub(crate) fn of(system: &Arc<System>) -> Engine {
        Engine(system.clone())
    }

    pub(crate) fn system(&self) -> &Arc<System> {
        &self.0
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Engine").field(&self.usage()).finish()
    }
}
