//! A compiled program, ready to be instantiated.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use wasmtime::{InstancePre, Linker, Module};

use crate::admit::{Admitted, MAPPINGS};
use crate::image::Image;
use crate::instance::Ctx;
use crate::kernel::KernelError;
use crate::stock::Stock;

/// A program that ships with us, before it is compiled.
pub struct ProgramSource {
    /// What to call it in messages.
    pub name: String,
    /// SHA-256 of its WebAssembly, in hexadecimal: what an artifact is kept under.
    pub sha256: String,
    /// Gives the WebAssembly, when no artifact is there yet.
    pub wasm: Box<dyn Fn() -> std::io::Result<Vec<u8>> + Send + Sync>,
}

/// A compiled program.
pub struct Program {
    pub(crate) name: String,
    pub(crate) pre: InstancePre<Ctx>,
    /// It imports `wardian`: Unix descriptors, no preopens.
    pub(crate) native: bool,
    /// It ships with us: what it starts with is shared by all who run it.
    pub(crate) system: bool,
    /// Host memory that an instance takes beside its linear memory and its table. None is counted for one that ships
    /// with us: the flat charge stands for it.
    pub(crate) instance_bytes: u64,
    mappings: usize,
    /// It has what fork needs.
    pub(crate) forks: bool,
    /// Its memory after start-up, taken once: every session of it begins there.
    pub(crate) template: OnceCell<Arc<Image>>,
    /// Instances of it that were used and wiped.
    pub(crate) stock: Stock,
}

impl Program {
    /// `admitted` is what is known of a user's own program; one that ships with us is not checked.
    pub(crate) fn new(
        name: &str,
        module: Module,
        linker: &Linker<Ctx>,
        admitted: Option<Admitted>,
    ) -> Result<Arc<Program>, KernelError> {
        let native = module.imports().any(|import| import.module() == crate::sys::MODULE);
        let has = |export: &str| module.exports().any(|e| e.name() == export);
        let forks = has("__stack_pointer") && has("__wardian_fork_entry");
        let pre = linker
            .instantiate_pre(&module)
            .map_err(|e| KernelError::Program(name.to_owned(), format!("{e:#}")))?;
        let system = admitted.is_none();
        let Admitted { instance_bytes, mappings } =
            admitted.unwrap_or(Admitted { instance_bytes: 0, mappings: MAPPINGS });
        Ok(Arc::new(Program {
            name: name.to_owned(),
            pre,
            native,
            system,
            instance_bytes,
            mappings,
            forks,
            template: OnceCell::new(),
            stock: Stock::new(system),
        }))
    }

    /// How many mappings of the host's memory an instance of it takes at most.
    pub fn mappings(&self) -> usize {
        self.mappings
    }

    /// Whether a session of it was started before.
    pub fn is_known(&self) -> bool {
        self.template.initialized()
    }

    /// How many instances of it lie ready to be used again.
    pub fn idle(&self) -> usize {
        self.stock.len()
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// How many programs of users' own are kept compiled.
const KEPT: usize = 32;

/// Compiled programs, found without compiling them again.
#[derive(Default)]
pub(crate) struct ProgramCache {
    /// What ships with us, by the version of the file it is installed as.
    system: HashMap<u64, Known>,
    /// Users' own, the one used last at the back.
    user: VecDeque<UserProgram>,
}

/// A program that was seen before.
#[derive(Clone)]
pub(crate) enum Known {
    Ready(Arc<Program>),
    Later(Arc<Later>),
}

/// A program that ships with us and is loaded when somebody first starts it.
pub(crate) struct Later {
    source: ProgramSource,
    /// Locked while it is loaded: whoever else starts it meanwhile waits for the same code.
    loaded: Mutex<Option<Arc<Program>>>,
}

impl Later {
    pub(crate) fn new(source: ProgramSource) -> Later {
        Later { source, loaded: Mutex::default() }
    }

    /// The program, loaded by now. May take as long as compiling it.
    pub(crate) fn get(
        &self,
        load: impl FnOnce(&ProgramSource) -> Result<Arc<Program>, KernelError>,
    ) -> Result<Arc<Program>, KernelError> {
        let mut loaded = self.loaded.lock();
        if let Some(program) = &*loaded {
            return Ok(program.clone());
        }
        let program = load(&self.source)?;
        *loaded = Some(program.clone());
        Ok(program)
    }
}

struct UserProgram {
    hash: [u8; 32],
    /// The version of the file it was last started from; 0 for a host's file, which has none.
    version: u64,
    program: Arc<Program>,
}

impl ProgramCache {
    pub(crate) fn register(&mut self, version: u64, program: Known) {
        self.system.insert(version, program);
    }

    /// What ships with us and was not loaded when it was registered.
    pub(crate) fn later(&self) -> Vec<Arc<Later>> {
        let later = |known: &Known| if let Known::Later(later) = known { Some(later.clone()) } else { None };
        self.system.values().filter_map(later).collect()
    }

    /// The program a file of this version holds, if it was started before and not changed since.
    pub(crate) fn by_version(&mut self, version: u64) -> Option<Known> {
        if version == 0 {
            return None;
        }
        let system = self.system.get(&version).cloned();
        system.or_else(|| {
            let at = self.user.iter().position(|kept| kept.version == version)?;
            self.used(at).map(Known::Ready)
        })
    }

    /// The program of these bytes, now in a file of this version.
    pub(crate) fn by_hash(&mut self, hash: [u8; 32], version: u64) -> Option<Arc<Program>> {
        let at = self.user.iter().position(|kept| kept.hash == hash)?;
        self.user[at].version = version;
        self.used(at)
    }

    pub(crate) fn keep(&mut self, hash: [u8; 32], version: u64, program: Arc<Program>) {
        if self.user.len() >= KEPT {
            self.user.pop_front();
        }
        self.user.push_back(UserProgram { hash, version, program });
    }

    fn used(&mut self, at: usize) -> Option<Arc<Program>> {
        let kept = self.user.remove(at)?;
        let program = kept.program.clone();
        self.user.push_back(kept);
        Some(program)
    }
}
