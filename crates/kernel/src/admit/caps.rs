//! The caps on what a program may contain.
//!
//! The caps are well above what large programs need, measured on these (megabytes of WebAssembly): `yosys` (69) and
//! `clang` with `lld` (76) as built by YoWASP, CPython 3 with its extension modules for WASI (99), Ruby 3.4 for WASI
//! (31), PHP 8.3 (23), Pyodide (10), R (18), DuckDB (39), FFmpeg (32), Typst (28), OpenCASCADE (66). The last ones
//! regardless of what else they would need to run here, and all of them regardless of their size: `BYTES` refuses those above
//! 32 MiB, clang included, because compiling takes memory and time in proportion. `cargo xtask caps` counts clang again (`large.rs`).
//!
//! | | most measured | in | cap |
//! |---|---|---|---|
//! | types | 1,255 | OpenCASCADE | 10,000 |
//! | parameters of a function | 91 | DuckDB | 400 |
//! | results | 4 | a Rust SDK | 16 |
//! | parameters or results of a block | 2 | yosys | 16 |
//! | imports | 834 | OpenCASCADE | 4,000 |
//! | functions | 133,398 | clang | 600,000 |
//! | bytes of a function | 4,452,260 | OpenCASCADE | 7,654,321, the engine's own |
//! | locals of a function | 2,441 | PHP 8.0 | 10,000 |
//! | locals of all functions | 510,335 | CPython | 4,000,000 |
//! | blocks inside each other | 4,248 | clang | 20,000 |
//! | targets of a `br_table` | 3,662 | clang | 20,000 |
//! | tables (of functions) | 1 | all | 1 |
//! | table elements | 246,782 | OpenCASCADE | 1,000,000 |
//! | globals | 389; 31,003 where all is linked while it runs | yosys; DuckDB | 32,768 |
//! | exports | 75,111 | DuckDB | 300,000 |
//! | element segments | 1 | all | 1,000 |
//! | elements that are not put into a table at the start | 0 | all | 1,000 |
//! | data segments | 77,823 | PHP 8.3 | 100,000, the engine's own |
//! | bytes of a constant expression | 6 | all | 64 |
//! | constant expressions, elements and data that must be computed or copied at the start | 0 | all | 1,000, and 1 MiB of data |
//! | custom sections | 12 | Ruby with debug information | 1,000 |
//! | bytes of a name | 701 | DuckDB | 4,096 |
//!
//! What `cargo xtask caps` counted in clang 22 (`@yowasp/clang` 22.0.0-git20542-10, 75,532,134 bytes): 542 types, 28 parameters,
//! 29 imports, 133,398 functions of at most 318,398 bytes, 456,491 locals, 4,249 blocks inside each other, 3,662 targets of a
//! `br_table`, 37,270 table elements, 2,581,084 operands of the 46,343,078 that its code may move.

use super::Refused;

/// The largest program.
pub(crate) const BYTES: u64 = 32 << 20;
pub(super) const TYPES: u64 = 10_000;
pub(super) const PARAMETERS: u64 = 400;
pub(super) const RESULTS: u64 = 16;
/// Every branch to a block moves these, so that without a cap a few bytes would take long to validate.
pub(super) const BLOCK_VALUES: u64 = 16;
pub(super) const IMPORTS: u64 = 4_000;
pub(super) const FUNCTIONS: u64 = 600_000;
pub(super) const FUNCTION_BYTES: u64 = 7_654_321;
pub(super) const LOCALS: u64 = 10_000;
/// Seven bytes can declare 50,000 locals, and each costs the compiler work.
pub(super) const ALL_LOCALS: u64 = 4_000_000;
pub(super) const NESTING: u64 = 20_000;
pub(super) const TARGETS: u64 = 20_000;
/// Operands that calls, blocks and branches move for each byte of code: validating them is what takes time. Compiled
/// code pushes each operand with a separate instruction and branches with one value or none, which is not counted; after
/// an `unreachable`, a call of three bytes can take four hundred.
pub(super) const OPERANDS_PER_BYTE: u64 = 1;
/// This many more are free, for programs of a few bytes.
pub(super) const OPERANDS_FREE: u64 = 10_000;
/// With one memory and one table, an instance uses a known number of mappings.
pub(super) const TABLES: u64 = 1;
/// Maximum number of elements of a table, initially or grown.
pub(crate) const TABLE_ELEMENTS: u64 = 1_000_000;
/// Maximum number of elements a table may grow by at once: that is one instruction, which cannot be interrupted.
pub(crate) const TABLE_GROWTH: u64 = 65_536;
/// Host memory for each element of a table, which grows by doubling what it has allocated.
pub(crate) const TABLE_ELEMENT_BYTES: u64 = 16;
/// They are set whenever an instance is created, without a pause.
pub(super) const GLOBALS: u64 = 32_768;
pub(super) const EXPORTS: u64 = 300_000;
pub(super) const ELEMENT_SEGMENTS: u64 = 1_000;
pub(super) const ELEMENTS: u64 = TABLE_ELEMENTS;
/// Each instance has a copy of these, small enough to need no mapping of its own.
pub(super) const KEPT_ELEMENTS: u64 = 1_000;
pub(super) const DATA_SEGMENTS: u64 = 100_000;
pub(super) const EXPRESSION_BYTES: u64 = 64;
/// An instance's initial contents are mapped or looked up if they are plain numbers. The engine compiles anything else
/// into one function that runs whenever an instance is created: compiling it took 20 s for 65,536 elements.
pub(super) const COMPUTED: u64 = 1_000;
/// Data that is copied when an instance is created, without a pause.
pub(super) const COPIED_BYTES: u64 = 1 << 20;
/// Data that is spread out this far is copied and not mapped, unless half of it is data.
pub(crate) const IMAGE_BYTES: u64 = 16 << 20;
pub(super) const CUSTOM_SECTIONS: u64 = 1_000;
pub(super) const NAME_BYTES: u64 = 4_096;

/// Mappings that an instance of any admitted program uses at most. Its memory is five: zeros, what is left of its image
/// below a template, the template, zeros it grew by, the reservation. Its stack is two, with the guard. The engine's
/// record of it and its table are one each if they are large.
pub(crate) const MAPPINGS: usize = 9;

/// Refuses more than `most` of `what`.
pub(super) fn cap(what: &'static str, count: u64, most: u64) -> Result<(), Refused> {
    #[cfg(test)]
    super::large::note(what, count, most);
    if count > most { Err(Refused::TooMany { what, count, most }) } else { Ok(()) }
}
