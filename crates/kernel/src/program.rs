//! A compiled program, ready to be instantiated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tokio::sync::{OnceCell, watch};
use wasmtime::{InstancePre, Linker, Module};

use crate::admit::{self, Admitted};
use crate::descriptors::Share;
use crate::family::CodeCharge;
use crate::instance::Ctx;
use crate::kernel::KernelError;
use crate::memory::image::Image;
use crate::stock::Stock;

/// A program that ships with Wardian, before it is compiled.
pub struct ProgramSource {
    /// Its name in messages.
    pub name: String,
    /// SHA-256 of its WebAssembly, in hexadecimal: identifies its artifact.
    pub sha256: String,
    /// Returns the WebAssembly, if there is no artifact yet.
    pub wasm: Box<dyn Fn() -> std::io::Result<Vec<u8>> + Send + Sync>,
}

/// A compiled program.
pub struct Program {
    pub(crate) name: String,
    pub(crate) pre: InstancePre<Ctx>,
    /// It imports `wardian`: Unix descriptors, no preopens.
    pub(crate) native: bool,
    /// It ships with Wardian: its initial memory is shared by all who run it.
    pub(crate) system: bool,
    /// Host memory that an instance uses in addition to its linear memory and, if it is a user's, its table.
    pub(crate) instance_bytes: u64,
    mappings: usize,
    /// It has what fork needs.
    pub(crate) forks: bool,
    /// It has what a start image needs.
    pub(crate) prepares: bool,
    /// The hash of its WebAssembly, if it ships with Wardian.
    pub(crate) hash: String,
    /// What its processes start from, if it can be prepared.
    pub(crate) start: OnceCell<Option<Arc<Image>>>,
    /// As a session, it can run a script whose options and traps do not outlive it.
    pub(crate) contains: bool,
    /// Its memory after start-up, captured once: every session of it starts from there.
    pub(crate) template: OnceCell<Arc<Image>>,
    /// Instances of it that were used and wiped.
    pub(crate) stock: Stock,
    /// What its owner is charged for its code, if it is a user's.
    code: Option<CodeCharge>,
    /// The same for the file that its code is in.
    _descriptor: Option<Share>,
}

impl Program {
    /// Creates a program that ships with Wardian or, with what is known about it, a user's, who is charged for its code.
    pub(crate) fn new(
        name: &str,
        module: Module,
        linker: &Linker<Ctx>,
        hash: &str,
        user: Option<(Admitted, CodeCharge, Share)>,
    ) -> Result<Arc<Program>, KernelError> {
        let system = user.is_none();
        let native = module.imports().any(|import| import.module() == crate::sys::MODULE);
        let has = |export: &str| module.exports().any(|e| e.name() == export);
        let forks = has("__stack_pointer") && has("__wardian_fork_entry");
        let prepares = system && ["__stack_pointer", "wardian_prepare", "wardian_start"].into_iter().all(has);
        let pre = linker
            .instantiate_pre(&module)
            .map_err(|e| KernelError::Program(name.to_owned(), format!("{e:#}")))?;
        let (admitted, code, descriptor) = match user {
            Some((admitted, code, descriptor)) => (admitted, Some(code), Some(descriptor)),
            None => (admit::of_module(&module), None, None),
        };
        let Admitted { instance_bytes, mappings } = admitted;
        Ok(Arc::new(Program {
            name: name.to_owned(),
            pre,
            native,
            system,
            instance_bytes,
            mappings,
            forks,
            prepares,
            hash: hash.to_owned(),
            start: OnceCell::new(),
            contains: has(crate::session::CONTAINED),
            template: OnceCell::new(),
            stock: Stock::new(system),
            code,
            _descriptor: descriptor,
        }))
    }

    /// Returns the maximum number of mappings of an instance.
    pub fn mappings(&self) -> usize {
        self.mappings
    }

    /// Returns whether a session of it was started before.
    pub fn is_known(&self) -> bool {
        self.template.initialized()
    }

    /// Returns how many instances of it are ready for reuse.
    pub fn idle(&self) -> usize {
        self.stock.len()
    }

    /// Returns the bytes of code that a user is charged for.
    pub(crate) fn code_bytes(&self) -> u64 {
        self.code.as_ref().map_or(0, CodeCharge::bytes)
    }

    /// Returns its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A program that was seen before.
#[derive(Clone)]
pub(crate) enum Known {
    Ready(Arc<Program>),
    Later(Arc<Later>),
}

/// A program that ships with Wardian and is loaded when it is first started.
pub(crate) struct Later {
    source: ProgramSource,
    ready: OnceLock<Arc<Program>>,
    /// It was not found compiled.
    compiled: AtomicBool,
    /// Locked while it is loaded: others that block for it wait for the same code.
    one: Mutex<()>,
    /// The load in progress, for those who do not block.
    loading: Mutex<Option<watch::Receiver<Option<Loaded>>>>,
}

/// How often one who blocks looks whether a load is done.
const LOOK_AGAIN: std::time::Duration = std::time::Duration::from_millis(20);

/// The result of a load, for everyone who waits.
type Loaded = Result<Arc<Program>, Arc<KernelError>>;

impl Later {
    pub(crate) fn new(source: ProgramSource) -> Later {
        let (ready, compiled) = (OnceLock::new(), AtomicBool::new(false));
        Later { source, ready, compiled, one: Mutex::default(), loading: Mutex::default() }
    }

    /// Returns the program, if it is already loaded.
    pub(crate) fn ready(&self) -> Option<Arc<Program>> {
        self.ready.get().cloned()
    }

    /// Returns the program, loading it if necessary. May take as long as compiling it.
    pub(crate) fn get(
        &self,
        load: impl FnOnce(&ProgramSource) -> Result<Arc<Program>, KernelError>,
    ) -> Result<Arc<Program>, KernelError> {
        let _one = self.one.lock();
        if let Some(program) = self.ready() {
            return Ok(program);
        }
        let program = load(&self.source)?;
        Ok(self.ready.get_or_init(|| program).clone())
    }

    /// Does the same without blocking: one thread works, however many wait, and continues if they all leave.
    pub(crate) async fn load(
        self: &Arc<Self>,
        runtime: &Runtime,
        load: impl FnOnce(&ProgramSource) -> Result<Arc<Program>, KernelError> + Send + 'static,
    ) -> Option<Loaded> {
        let mut loading = self.loading.lock().get_or_insert_with(|| self.begin(runtime, load)).clone();
        let loaded = loading.wait_for(Option::is_some).await.ok().and_then(|loaded| loaded.clone());
        if loaded.is_none() {
            // It came to nothing: the next who wants it begins again.
            *self.loading.lock() = None;
        }
        loaded
    }

    /// Notes that loading it means compiling it.
    pub(crate) fn is_compiled_now(&self) {
        self.compiled.store(true, Ordering::Relaxed);
    }

    /// Returns whether it had to be compiled.
    pub(crate) fn was_compiled(&self) -> bool {
        self.compiled.load(Ordering::Relaxed)
    }

    /// Waits for a load in progress. Blocks.
    pub(crate) fn finish(&self) {
        let loading = self.loading.lock().clone();
        while let Some(loading) = &loading
            && loading.borrow().is_none()
            && loading.has_changed().is_ok()
        {
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    fn begin(
        self: &Arc<Self>,
        runtime: &Runtime,
        load: impl FnOnce(&ProgramSource) -> Result<Arc<Program>, KernelError> + Send + 'static,
    ) -> watch::Receiver<Option<Loaded>> {
        let (done, loading) = watch::channel(None);
        let later = self.clone();
        runtime.spawn_blocking(move || {
            let loaded = later.get(load).map_err(Arc::new);
            *later.loading.lock() = None;
            done.send_replace(Some(loaded));
        });
        loading
    }
}
