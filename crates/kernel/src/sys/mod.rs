//! The `wardian` import module: the Unix calls that WASI lacks. `docs/abi.md` is the table of them.

mod descriptor;
mod file;
mod process;

use wasmtime::Linker;

use crate::instance::Ctx;

/// The import module's name.
pub(crate) const MODULE: &str = "wardian";

/// Defines every call.
pub(crate) fn add_to_linker(linker: &mut Linker<Ctx>) -> wasmtime::Result<()> {
    process::add_to_linker(linker)?;
    descriptor::add_to_linker(linker)?;
    file::add_to_linker(linker)
}
