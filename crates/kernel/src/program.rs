//! A compiled program, ready to be instantiated.

use std::sync::Arc;

use tokio::sync::OnceCell;
use wasmtime::{InstancePre, Linker, Module};

use crate::image::Image;
use crate::instance::Ctx;
use crate::kernel::KernelError;

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
    /// It has what fork needs.
    pub(crate) forks: bool,
    /// Its memory after start-up, taken once: every session of it begins there.
    pub(crate) template: OnceCell<Arc<Image>>,
}

impl Program {
    pub(crate) fn new(
        name: &str,
        module: Module,
        linker: &Linker<Ctx>,
        system: bool,
    ) -> Result<Arc<Program>, KernelError> {
        let native = module.imports().any(|import| import.module() == crate::sys::MODULE);
        let has = |export: &str| module.exports().any(|e| e.name() == export);
        let forks = has("__stack_pointer") && has("__wardian_fork_entry");
        let pre = linker
            .instantiate_pre(&module)
            .map_err(|e| KernelError::Program(name.to_owned(), format!("{e:#}")))?;
        Ok(Arc::new(Program { name: name.to_owned(), pre, native, system, forks, template: OnceCell::new() }))
    }

    /// What it is called in messages.
    pub fn name(&self) -> &str {
        &self.name
    }
}
