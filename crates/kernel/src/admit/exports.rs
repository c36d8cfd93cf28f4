//! Checks that the exports the kernel uses have the expected types (docs/abi.md).

use engine_wasmparser::types::{EntityType, TypesRef};
use engine_wasmparser::{CompositeInnerType, ValType};

use super::Refused;

/// What an export must be.
enum Kind {
    Function(&'static [ValType], &'static [ValType]),
    Memory,
    StackPointer,
}

use Kind::Function;
use ValType::{I32, I64};

const KNOWN: [(&str, Kind, &str); 11] = [
    ("memory", Kind::Memory, "a memory"),
    ("__stack_pointer", Kind::StackPointer, "a mutable global of type i32"),
    (START, Function(&[], &[]), "a function () -> ()"),
    ("_initialize", Function(&[], &[]), "a function () -> ()"),
    ("__wardian_fork_entry", Function(&[I32, I32], &[I32]), "a function (i32, i32) -> i32"),
    ("wardian_run", Function(&[I32, I32], &[I32]), "a function (i32, i32) -> i32"),
    ("wardian_run_contained", Function(&[I32, I32], &[I32]), "a function (i32, i32) -> i32"),
    ("wardian_alloc", Function(&[I32], &[I32]), "a function (i32) -> i32"),
    ("wardian_getenv", Function(&[I32, I32], &[I64]), "a function (i32, i32) -> i64"),
    ("wardian_ask", Function(&[I32, I32], &[I64]), "a function (i32, i32) -> i64"),
    ("wardian_setenv", Function(&[I32, I32], &[]), "a function (i32, i32) -> ()"),
];

const START: &str = "_start";

pub(super) fn check(types: TypesRef<'_>) -> Result<(), Refused> {
    let mut starts = false;
    for (export, entity) in types.core_exports().into_iter().flatten() {
        let Some(&(name, ref kind, expected)) = KNOWN.iter().find(|(name, ..)| *name == export) else {
            continue;
        };
        if !kind.is(types, entity) {
            return Err(Refused::Export { name, expected });
        }
        starts |= name == START;
    }
    if starts { Ok(()) } else { Err(Refused::NoStart) }
}

impl Kind {
    fn is(&self, types: TypesRef<'_>, entity: EntityType) -> bool {
        match (self, entity) {
            (Kind::Memory, EntityType::Memory(_)) => true,
            (Kind::StackPointer, EntityType::Global(global)) => global.mutable && global.content_type == I32,
            (Function(params, results), EntityType::Func(id)) => {
                let CompositeInnerType::Func(function) = &types[id].composite_type.inner else {
                    return false;
                };
                function.params() == *params && function.results() == *results
            }
            _ => false,
        }
    }
}
