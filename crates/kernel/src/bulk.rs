//! Splitting long copies and fills into pieces.
//!
//! A guest yields at loops and calls, but each bulk instruction is a single one, however much it moves: filling 200 MiB
//! takes a quarter of a second during which nothing could stop it. So before a program is compiled, each of them is
//! replaced by a call of an added function that does the work in pieces, in a loop. What is out of bounds as a whole
//! still traps before anything is written, as WebAssembly requires.
//!
//! | instruction | is split |
//! |---|---|
//! | `memory.fill`, `memory.copy`, `table.fill`, `table.copy` | always |
//! | `memory.init` | where the segment is longer than a piece |
//! | `table.init`, `table.grow` | no: `admit` has a cap on the elements that can be copied or grown by at once |
//!
//! Programs have one memory and one table, both of 32 bits (`admit`).

use std::borrow::Cow;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, Function, FunctionSection, Instruction, InstructionSink, Module, RefType,
    TypeSection, ValType,
};
use wasmparser::{DataKind, Operator, Parser, Payload, TypeRef};

/// Part of the names of artifacts: increase it when the added functions change.
pub(crate) const VERSION: u32 = 2;

/// Bytes that are moved at once.
const BYTES: u32 = 1 << 20;
/// Table elements that are moved at once: each takes about thirty times as long as a byte.
const ELEMENTS: u32 = 1 << 12;

/// Returns the program with its long copies and fills split; unchanged if it has none, or is not understood (then the
/// compiler says why).
pub(crate) fn in_pieces(wasm: &[u8]) -> Cow<'_, [u8]> {
    match rewrite(wasm) {
        Ok(Some(rewritten)) => Cow::Owned(rewritten),
        Ok(None) => Cow::Borrowed(wasm),
        Err(error) => {
            tracing::debug!(%error, "left as it is");
            Cow::Borrowed(wasm)
        }
    }
}

fn rewrite(wasm: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    let mut shape = Shape::of(wasm)?;
    if shape.bulk.is_empty() {
        return Ok(None);
    }
    let mut module = Module::new();
    shape.parse_core_module(&mut module, Parser::new(0), wasm)?;
    Ok(Some(module.finish()))
}

/// An instruction that moves any number of bytes or elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bulk {
    Fill,
    Copy,
    /// From this data segment.
    Init(u32),
    TableFill,
    TableCopy,
}

impl Bulk {
    fn of(operator: &Operator<'_>) -> Option<Bulk> {
        match *operator {
            Operator::MemoryFill { mem: 0 } => Some(Bulk::Fill),
            Operator::MemoryCopy { dst_mem: 0, src_mem: 0 } => Some(Bulk::Copy),
            Operator::MemoryInit { mem: 0, data_index } => Some(Bulk::Init(data_index)),
            Operator::TableFill { table: 0 } => Some(Bulk::TableFill),
            Operator::TableCopy { dst_table: 0, src_table: 0 } => Some(Bulk::TableCopy),
            _ => None,
        }
    }

    fn emit(self, code: &mut InstructionSink<'_>) {
        match self {
            Bulk::Fill => code.memory_fill(0),
            Bulk::Copy => code.memory_copy(0, 0),
            Bulk::Init(data) => code.memory_init(0, data),
            Bulk::TableFill => code.table_fill(0),
            Bulk::TableCopy => code.table_copy(0, 0),
        };
    }

    fn in_table(self) -> bool {
        matches!(self, Bulk::TableFill | Bulk::TableCopy)
    }

    /// How much is moved at once.
    fn piece(self) -> u32 {
        if self.in_table() { ELEMENTS } else { BYTES }
    }
}

/// The parts of a module that matter here.
#[derive(Default)]
struct Shape {
    /// The number of types and functions, so that added ones get the numbers after.
    types: u32,
    functions: u32,
    /// The length of each data segment that a program can copy from.
    data: Vec<u32>,
    /// What to split, each in its own function.
    bulk: Vec<Bulk>,
}

impl Shape {
    fn of(wasm: &[u8]) -> Result<Shape, Error> {
        let mut shape = Shape::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        shape.types += group?.types().len() as u32;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        shape.functions += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                    }
                }
                Payload::FunctionSection(section) => shape.functions += section.count(),
                Payload::CodeSectionEntry(body) => {
                    for operator in body.get_operators_reader()? {
                        shape.bulk.extend(Bulk::of(&operator?).filter(|bulk| !shape.bulk.contains(bulk)));
                    }
                }
                Payload::DataSection(section) => {
                    for data in section {
                        let data = data?;
                        let passive = matches!(data.kind, DataKind::Passive);
                        shape.data.push(if passive { data.data.len() as u32 } else { 0 });
                    }
                }
                _ => {}
            }
        }
        let mut bulk = std::mem::take(&mut shape.bulk);
        bulk.retain(|bulk| shape.source(*bulk).is_none_or(|length| length > bulk.piece()));
        shape.bulk = bulk;
        Ok(shape)
    }

    /// How long the segment is that an instruction copies from.
    fn source(&self, bulk: Bulk) -> Option<u32> {
        match bulk {
            Bulk::Init(data) => Some(self.data.get(data as usize).copied().unwrap_or(0)),
            _ => None,
        }
    }
}

impl Reencode for Shape {
    type Error = std::convert::Infallible;

    fn parse_type_section(
        &mut self,
        types: &mut TypeSection,
        section: wasmparser::TypeSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_type_section(self, types, section)?;
        types.ty().function([ValType::I32; 3], []);
        types.ty().function([ValType::I32, ValType::Ref(RefType::FUNCREF), ValType::I32], []);
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_function_section(self, functions, section)?;
        for bulk in &self.bulk {
            functions.function(self.types + u32::from(*bulk == Bulk::TableFill));
        }
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_code_section(self, code, section)?;
        for &bulk in &self.bulk {
            code.function(&split(bulk, self.source(bulk)));
        }
        Ok(())
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Result<Instruction<'a>, Error> {
        let at = Bulk::of(&operator).and_then(|bulk| self.bulk.iter().position(|known| *known == bulk));
        match at {
            Some(at) => Ok(Instruction::Call(self.functions + at as u32)),
            None => utils::instruction(self, operator),
        }
    }
}

/// The parameters of the functions: destination, source or value, count.
const TO: u32 = 0;
const FROM: u32 = 1;
const COUNT: u32 = 2;

/// Returns the function that does what `bulk` does, in pieces. `source` is the length of the segment it copies from.
fn split(bulk: Bulk, source: Option<u32>) -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    let whole = |code: &mut InstructionSink<'_>| {
        code.local_get(TO).local_get(FROM).local_get(COUNT);
        bulk.emit(code);
    };
    at_once_if_small(&mut code, bulk, whole);
    let room = |code: &mut InstructionSink<'_>| room(code, bulk);
    at_once_if_outside(&mut code, TO, room, whole);
    match bulk {
        Bulk::Fill | Bulk::TableFill => upwards(&mut code, bulk, false),
        Bulk::Init(_) => {
            let length = |code: &mut InstructionSink<'_>| {
                code.i64_const(source.unwrap_or(0).into());
            };
            at_once_if_outside(&mut code, FROM, length, whole);
            upwards(&mut code, bulk, true);
        }
        Bulk::Copy | Bulk::TableCopy => {
            at_once_if_outside(&mut code, FROM, room, whole);
            // Upwards or downwards, so that a piece never overwrites what is still to be read.
            code.local_get(TO).local_get(FROM).i32_le_u().if_(BlockType::Empty);
            upwards(&mut code, bulk, true);
            code.else_();
            downwards(&mut code, bulk);
            code.end();
        }
    }
    whole(&mut code);
    code.end();
    function
}

/// How much the memory or the table holds.
fn room(code: &mut InstructionSink<'_>, bulk: Bulk) {
    match bulk.in_table() {
        true => code.table_size(0).i64_extend_i32_u(),
        false => code.memory_size(0).i64_extend_i32_u().i64_const(16).i64_shl(),
    };
}

fn at_once_if_small(code: &mut InstructionSink<'_>, bulk: Bulk, whole: impl Fn(&mut InstructionSink<'_>)) {
    code.local_get(COUNT).i32_const(bulk.piece() as i32).i32_le_u().if_(BlockType::Empty);
    whole(code);
    code.return_().end();
}

/// Makes the single instruction trap, which then has written nothing.
fn at_once_if_outside(
    code: &mut InstructionSink<'_>,
    start: u32,
    room: impl Fn(&mut InstructionSink<'_>),
    whole: impl Fn(&mut InstructionSink<'_>),
) {
    code.local_get(start).i64_extend_i32_u().local_get(COUNT).i64_extend_i32_u().i64_add();
    room(code);
    code.i64_gt_u().if_(BlockType::Empty);
    whole(code);
    code.return_().end();
}

/// All but the last piece, the lowest first.
fn upwards(code: &mut InstructionSink<'_>, bulk: Bulk, from_advances: bool) {
    let piece = bulk.piece() as i32;
    code.loop_(BlockType::Empty);
    code.local_get(TO).local_get(FROM).i32_const(piece);
    bulk.emit(code);
    if from_advances {
        code.local_get(FROM).i32_const(piece).i32_add().local_set(FROM);
    }
    code.local_get(TO).i32_const(piece).i32_add().local_set(TO);
    code.local_get(COUNT).i32_const(piece).i32_sub().local_set(COUNT);
    repeat_while_large(code, bulk);
}

/// All but the last piece, the highest first.
fn downwards(code: &mut InstructionSink<'_>, bulk: Bulk) {
    let piece = bulk.piece() as i32;
    code.loop_(BlockType::Empty);
    code.local_get(COUNT).i32_const(piece).i32_sub().local_set(COUNT);
    code.local_get(TO).local_get(COUNT).i32_add();
    code.local_get(FROM).local_get(COUNT).i32_add();
    code.i32_const(piece);
    bulk.emit(code);
    repeat_while_large(code, bulk);
}

/// Ends a loop.
fn repeat_while_large(code: &mut InstructionSink<'_>, bulk: Bulk) {
    code.local_get(COUNT).i32_const(bulk.piece() as i32).i32_gt_u().br_if(0).end();
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use wasmtime::{Engine, Instance, Memory, Store, TypedFunc};

    use super::in_pieces;

    /// Every bulk instruction as a function of its own, and one that sums up what the table holds.
    fn program() -> Vec<u8> {
        let mut text = String::from(
            r#"(module (memory (export "memory") 128) (table 50000 funcref)
              (type $number (func (result i32)))
              (func $one (result i32) i32.const 1) (func $two (result i32) i32.const 2)
              (func $three (result i32) i32.const 3)
              (func (export "fill") (param i32 i32 i32)
                (memory.fill (local.get 0) (local.get 1) (local.get 2)))
              (func (export "copy") (param i32 i32 i32)
                (memory.copy (local.get 0) (local.get 1) (local.get 2)))
              (func (export "init") (param i32 i32 i32)
                (memory.init $bytes (local.get 0) (local.get 1) (local.get 2)))
              (func (export "table_fill") (param i32 i32 i32)
                (table.fill (local.get 0) (table.get (i32.rem_u (local.get 1) (i32.const 50000))) (local.get 2)))
              (func (export "table_copy") (param i32 i32 i32)
                (table.copy (local.get 0) (local.get 1) (local.get 2)))
              (func (export "drop") (param i32 i32 i32) data.drop $bytes)
              (func (export "sum") (result i64) (local $at i32) (local $sum i64)
                (loop $next
                  (local.set $sum (i64.add (i64.mul (local.get $sum) (i64.const 31))
                    (if (result i64) (ref.is_null (table.get (local.get $at)))
                      (then (i64.const 0))
                      (else (i64.extend_i32_u (call_indirect (type $number) (local.get $at)))))))
                  (local.set $at (i32.add (local.get $at) (i32.const 1)))
                  (br_if $next (i32.lt_u (local.get $at) (i32.const 50000))))
                (local.get $sum))"#,
        );
        let functions: String =
            (0..30_000).map(|at| [" $one", " $two", " $three"][at * at % 7 % 3]).collect();
        let bytes: String =
            (0..3 << 20).map(|at: u32| char::from(b'a' + (at % 1009 * (at % 769) % 23) as u8)).collect();
        write!(text, "(elem (i32.const 7) func {functions}) (data $bytes \"{bytes}\"))").expect("a string");
        wat::parse_str(text).expect("a module")
    }

    const FUNCTIONS: [&str; 6] = ["fill", "copy", "init", "table_fill", "table_copy", "drop"];

    /// One instance of the program, as it is or rewritten.
    struct Machine {
        store: Store<()>,
        memory: Memory,
        functions: [TypedFunc<(u32, u32, u32), ()>; 6],
        sum: TypedFunc<(), u64>,
    }

    impl Machine {
        fn new(engine: &Engine, wasm: &[u8]) -> Machine {
            let module = wasmtime::Module::new(engine, wasm).expect("a module");
            let mut store = Store::new(engine, ());
            let instance = Instance::new(&mut store, &module, &[]).expect("an instance");
            let memory = instance.get_memory(&mut store, "memory").expect("a memory");
            for (at, byte) in memory.data_mut(&mut store).iter_mut().enumerate() {
                *byte = (at >> 8) as u8 ^ at as u8;
            }
            let functions = FUNCTIONS.map(|name| instance.get_typed_func(&mut store, name).expect(name));
            let sum = instance.get_typed_func(&mut store, "sum").expect("sum");
            Machine { store, memory, functions, sum }
        }

        /// True if it trapped.
        fn call(&mut self, which: usize, to: u32, from: u32, count: u32) -> bool {
            self.functions[which].call(&mut self.store, (to, from, count)).is_err()
        }

        fn table(&mut self) -> u64 {
            self.sum.call(&mut self.store, ()).expect("a sum")
        }
    }

    #[test]
    fn pieces_do_what_the_one_instruction_does() {
        let wasm = program();
        let rewritten = in_pieces(&wasm);
        assert_ne!(&*rewritten, &*wasm);
        let engine = Engine::default();
        let (mut whole, mut pieces) = (Machine::new(&engine, &wasm), Machine::new(&engine, &rewritten));
        let mut dice = 1_u64;
        let mut roll = |piece: u32, size: u32| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rolled = (dice >> 33) as u32;
            let edges =
                [0, 1, 99, piece - 1, piece, piece + 1, 3 * piece, size - 1, size, size + 1, u32::MAX];
            match rolled.is_multiple_of(3) {
                true => edges[rolled as usize / 3 % edges.len()],
                false => rolled % (size / 2),
            }
        };
        let mut done = [0; FUNCTIONS.len()];
        for round in 0..900 {
            // Near the end the segment is dropped: from then on only nothing can be copied from it.
            let which = if round == 840 { 5 } else { round % 5 };
            let (piece, size) = if which < 3 { (1 << 20, 8 << 20) } else { (1 << 12, 50_000) };
            let (to, from, count) = (roll(piece, size), roll(piece, size), roll(piece, size));
            let what = format!("round {round}: {} {to} {from} {count}", FUNCTIONS[which]);
            let trapped = whole.call(which, to, from, count);
            assert_eq!(pieces.call(which, to, from, count), trapped, "{what}");
            done[which] += usize::from(!trapped && count > piece);
            if which < 3 {
                assert!(pieces.memory.data(&pieces.store) == whole.memory.data(&whole.store), "{what}");
            } else {
                assert_eq!(pieces.table(), whole.table(), "{what}");
            }
        }
        assert!(done[..5].iter().all(|&done| done > 5), "too few of these were in bounds and long: {done:?}");
    }

    #[test]
    fn what_has_nothing_to_split_is_left_alone() {
        let plain = "(module (memory 1) (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))) (data $d \"a\"))";
        let plain = wat::parse_str(plain).expect("a module");
        assert_eq!(&*in_pieces(&plain), &*plain);
        assert_eq!(&*in_pieces(b"\0asm nonsense"), b"\0asm nonsense");
    }
}
