//! The `wardian` import module: the Unix calls that WASI lacks. They are documented in `docs/abi.md`.

mod descriptor;
mod file;
mod lock;
mod message;
mod process;
mod socket;

use crate::imports::Imports;

/// The import module's name.
pub(crate) const MODULE: &str = "wardian";

/// Defines every call.
pub(crate) fn add_to_linker(imports: &mut Imports<'_>) -> wasmtime::Result<()> {
    process::add_to_linker(imports)?;
    descriptor::add_to_linker(imports)?;
    file::add_to_linker(imports)?;
    lock::add_to_linker(imports)?;
    socket::add_to_linker(imports)
}
