//! Which programs are admitted.
//!
//! A user's own program is hostile until shown otherwise. Before it is compiled, its bytes are checked against a named
//! set of WebAssembly features and against caps on everything in it that costs the host something: time to validate and
//! compile, memory in addition to its linear memory, mappings. The check is a pure function of the bytes, takes time in
//! proportion to them, and names what it refuses.
//!
//! | file | is |
//! |---|---|
//! | `caps.rs` | how much of each thing there may be, and what real programs have |
//! | `count.rs` | counts them |
//! | `exports.rs` | the types of the exports that the kernel calls or reads |

mod caps;
mod count;
mod exports;

use engine_wasmparser::{
    Encoding, FuncValidatorAllocations, Parser, Payload, ValidPayload, Validator, WasmFeatures,
};

pub(crate) use caps::{BYTES, IMAGE_BYTES, MAPPINGS, TABLE_ELEMENT_BYTES, TABLE_ELEMENTS, TABLE_GROWTH};
use count::Count;
pub(crate) use count::of_module;

/// The WebAssembly features that programs may use: the engine is configured from this list, and has nothing else
/// enabled.
///
/// These are what today's compilers emit for WASI. The rest is left out because it costs something and is not needed: a
/// second memory and 64-bit memories escape the splitting of long copies (`bulk.rs`) and use mappings, shared memory needs
/// threads.
///
/// `EXCEPTIONS` and `GC_TYPES` (`externref`) are decided against. No program that ships needs them: the guests abort
/// where they would unwind, and the C++ in Python's packages is built without. To enable exceptions, these would have to
/// change: wasmtime's cargo feature `gc` would be built in, as exceptions are objects on its heap; that heap, which each
/// instance has beside its memory, would be capped, charged to the sandbox, collected in pieces with a pause between them,
/// and counted in `MAPPINGS`; `Count` would cap tags, and `catch` clauses like targets of a `br_table`; reuse, forks and
/// images (`stock.rs`, `fork.rs`, `memory/image.rs`) would refuse or reset an instance in which an exception is held, since
/// they know of memory and the stack pointer alone; `bulk.rs` would have to keep the clauses where they are.
pub(crate) const FEATURES: WasmFeatures = WasmFeatures::FLOATS
    .union(WasmFeatures::MUTABLE_GLOBAL)
    .union(WasmFeatures::SIGN_EXTENSION)
    .union(WasmFeatures::SATURATING_FLOAT_TO_INT)
    .union(WasmFeatures::MULTI_VALUE)
    .union(WasmFeatures::BULK_MEMORY)
    .union(WasmFeatures::REFERENCE_TYPES)
    .union(WasmFeatures::SIMD)
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::EXTENDED_CONST);

/// What is known about a program that may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Maximum host memory of each instance, in addition to its linear memory, its table and its stack.
    pub instance_bytes: u64,
    /// Maximum number of mappings of each instance.
    pub mappings: usize,
}

/// Why a program may not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not valid WebAssembly, or uses a feature that is not on the list.
    #[error("{0}")]
    Invalid(String),
    /// It is a component, which is another format.
    #[error("components are not supported, only modules")]
    Component,
    /// It exceeds a cap.
    #[error("{count} {what}, and {most} are allowed")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much there is, or how much was found before counting stopped.
        count: u64,
        /// The cap.
        most: u64,
    },
    /// Its initial contents do not fit where they belong: it could never start.
    #[error("{0}")]
    Outside(&'static str),
    /// It imports something other than a function.
    #[error("it imports a {0}: only functions can be imported")]
    Import(&'static str),
    /// An export that the kernel uses has the wrong type.
    #[error("its export {name} must be {expected}")]
    Export {
        /// The export.
        name: &'static str,
        /// Its required type.
        expected: &'static str,
    },
    /// It cannot be started.
    #[error("it exports no function _start: it is a library, not a program")]
    NoStart,
}

impl Refused {
    /// For a file that is not even read.
    pub(crate) fn too_large(count: u64) -> Refused {
        Refused::TooMany { what: "bytes", count, most: BYTES }
    }
}

impl From<engine_wasmparser::BinaryReaderError> for Refused {
    fn from(error: engine_wasmparser::BinaryReaderError) -> Refused {
        Refused::Invalid(format!("{} (at byte {})", error.message(), error.offset()))
    }
}

/// Checks a program. Takes about ten milliseconds per megabyte: call it off the workers.
pub fn admit(wasm: &[u8]) -> Result<Admitted, Refused> {
    caps::cap("bytes", wasm.len() as u64, BYTES)?;
    of_any_size(wasm)
}

/// Checks everything but the size.
fn of_any_size(wasm: &[u8]) -> Result<Admitted, Refused> {
    let mut parser = Parser::new(0);
    parser.set_features(FEATURES);
    let mut validator = Validator::new_with_features(FEATURES);
    let mut count = Count::default();
    let mut allocations = FuncValidatorAllocations::default();
    for payload in parser.parse_all(wasm) {
        let payload = payload?;
        if matches!(payload, Payload::Version { encoding: Encoding::Component, .. }) {
            return Err(Refused::Component);
        }
        count.before(&payload)?;
        match validator.payload(&payload)? {
            ValidPayload::Ok | ValidPayload::Parser(_) => count.after(payload)?,
            ValidPayload::Func(function, body) => {
                let mut checked = function.into_validator(allocations);
                count.body(&mut checked, &body)?;
                allocations = checked.into_allocations();
            }
            ValidPayload::End(types) => exports::check(types.as_ref())?,
        }
    }
    Ok(count.admitted())
}

#[cfg(test)]
mod large;
#[cfg(test)]
mod tests;
