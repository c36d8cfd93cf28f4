//! Large copies and fills in pieces.
//!
//! A guest yields at loops and calls, but `memory.copy` and `memory.fill` are one instruction each, however many bytes
//! they move: filling 200 MiB takes a quarter of a second in which nobody could end it. So before a program is
//! compiled, each of the two becomes a call of a function added to it that does the work a mebibyte at a time, in a
//! loop. What is out of bounds as a whole still traps before a byte is written, as WebAssembly has it.

use std::borrow::Cow;

use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{
    BlockType, CodeSection, Function, FunctionSection, InstructionSink, Module, TypeSection, ValType,
};
use wasmparser::{Operator, Parser, Payload, TypeRef};

/// Goes into the names of artifacts: raise it when the added functions change.
pub(crate) const VERSION: u32 = 1;

/// What is moved at once.
const PIECE: i32 = 1 << 20;

/// The program with its large copies and fills in pieces; as it was where it has none, or is not understood (then
/// whoever compiles it says why).
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
    let Some(mut shape) = Shape::of(wasm)? else { return Ok(None) };
    let mut module = Module::new();
    shape.parse_core_module(&mut module, Parser::new(0), wasm)?;
    Ok(Some(module.finish()))
}

/// How many types and functions a module has, so that what is added gets the numbers after.
#[derive(Default)]
struct Shape {
    types: u32,
    functions: u32,
}

impl Shape {
    /// `None` where nothing is to be done: no copy or fill, or not in a memory of 32 bits.
    fn of(wasm: &[u8]) -> Result<Option<Shape>, Error> {
        let mut shape = Shape::default();
        let (mut moves_bytes, mut small) = (false, true);
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(section) => {
                    for group in section {
                        shape.types += group?.types().len() as u32;
                    }
                }
                Payload::ImportSection(section) => {
                    for import in section.into_imports() {
                        match import?.ty {
                            TypeRef::Func(_) => shape.functions += 1,
                            TypeRef::Memory(memory) => small &= !memory.memory64,
                            _ => {}
                        }
                    }
                }
                Payload::FunctionSection(section) => shape.functions += section.count(),
                Payload::MemorySection(section) => {
                    for memory in section {
                        small &= !memory?.memory64;
                    }
                }
                Payload::CodeSectionEntry(body) if !moves_bytes => {
                    for operator in body.get_operators_reader()? {
                        moves_bytes |= matches!(
                            operator?,
                            Operator::MemoryFill { mem: 0 } | Operator::MemoryCopy { dst_mem: 0, src_mem: 0 }
                        );
                    }
                }
                _ => {}
            }
        }
        Ok((moves_bytes && small).then_some(shape))
    }

    fn fill(&self) -> u32 {
        self.functions
    }

    fn copy(&self) -> u32 {
        self.functions + 1
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
        Ok(())
    }

    fn parse_function_section(
        &mut self,
        functions: &mut FunctionSection,
        section: wasmparser::FunctionSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_function_section(self, functions, section)?;
        functions.function(self.types).function(self.types);
        Ok(())
    }

    fn parse_code_section(
        &mut self,
        code: &mut CodeSection,
        section: wasmparser::CodeSectionReader<'_>,
    ) -> Result<(), Error> {
        utils::parse_code_section(self, code, section)?;
        code.function(&fill_in_pieces()).function(&copy_in_pieces());
        Ok(())
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Result<wasm_encoder::Instruction<'a>, Error> {
        match operator {
            Operator::MemoryFill { mem: 0 } => Ok(wasm_encoder::Instruction::Call(self.fill())),
            Operator::MemoryCopy { dst_mem: 0, src_mem: 0 } => {
                Ok(wasm_encoder::Instruction::Call(self.copy()))
            }
            other => utils::instruction(self, other),
        }
    }
}

/// The parameters of both functions: destination, source address or byte value, count.
const TO: u32 = 0;
const FROM: u32 = 1;
const COUNT: u32 = 2;

fn fill_in_pieces() -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    let whole = |code: &mut InstructionSink<'_>| {
        code.local_get(TO).local_get(FROM).local_get(COUNT).memory_fill(0);
    };
    at_once_if_small(&mut code, whole);
    at_once_if_outside(&mut code, TO, whole);
    code.loop_(BlockType::Empty);
    code.local_get(TO).local_get(FROM).i32_const(PIECE).memory_fill(0);
    advance(&mut code, TO);
    repeat_while_large(&mut code);
    whole(&mut code);
    code.end();
    function
}

fn copy_in_pieces() -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    let whole = |code: &mut InstructionSink<'_>| {
        code.local_get(TO).local_get(FROM).local_get(COUNT).memory_copy(0, 0);
    };
    at_once_if_small(&mut code, whole);
    at_once_if_outside(&mut code, TO, whole);
    at_once_if_outside(&mut code, FROM, whole);
    // Upwards or downwards, so that a piece never overwrites what is still to be read.
    code.local_get(TO).local_get(FROM).i32_le_u().if_(BlockType::Empty);
    code.loop_(BlockType::Empty);
    code.local_get(TO).local_get(FROM).i32_const(PIECE).memory_copy(0, 0);
    code.local_get(FROM).i32_const(PIECE).i32_add().local_set(FROM);
    advance(&mut code, TO);
    repeat_while_large(&mut code);
    code.else_();
    code.loop_(BlockType::Empty);
    code.local_get(COUNT).i32_const(PIECE).i32_sub().local_set(COUNT);
    code.local_get(TO).local_get(COUNT).i32_add();
    code.local_get(FROM).local_get(COUNT).i32_add();
    code.i32_const(PIECE).memory_copy(0, 0);
    repeat_while_large(&mut code);
    code.end();
    whole(&mut code);
    code.end();
    function
}

fn at_once_if_small(code: &mut InstructionSink<'_>, whole: impl Fn(&mut InstructionSink<'_>)) {
    code.local_get(COUNT).i32_const(PIECE).i32_le_u().if_(BlockType::Empty);
    whole(code);
    code.return_().end();
}

/// Lets the one instruction trap, which then has written nothing.
fn at_once_if_outside(code: &mut InstructionSink<'_>, start: u32, whole: impl Fn(&mut InstructionSink<'_>)) {
    code.local_get(start).i64_extend_i32_u().local_get(COUNT).i64_extend_i32_u().i64_add();
    code.memory_size(0).i64_extend_i32_u().i64_const(16).i64_shl();
    code.i64_gt_u().if_(BlockType::Empty);
    whole(code);
    code.return_().end();
}

/// One piece is done: `to` goes on, less is left.
fn advance(code: &mut InstructionSink<'_>, to: u32) {
    code.local_get(to).i32_const(PIECE).i32_add().local_set(to);
    code.local_get(COUNT).i32_const(PIECE).i32_sub().local_set(COUNT);
}

/// Ends a loop.
fn repeat_while_large(code: &mut InstructionSink<'_>) {
    code.local_get(COUNT).i32_const(PIECE).i32_gt_u().br_if(0).end();
}

#[cfg(test)]
mod tests {
    use wasmtime::{Engine, Instance, Memory, Store, TypedFunc};

    use super::in_pieces;

    const PROGRAM: &str = r#"
        (module (memory (export "memory") 128)
          (func (export "fill") (param i32 i32 i32)
            (memory.fill (local.get 0) (local.get 1) (local.get 2)))
          (func (export "copy") (param i32 i32 i32)
            (memory.copy (local.get 0) (local.get 1) (local.get 2))))"#;

    /// One instance of the program, as it is or rewritten.
    struct Machine {
        store: Store<()>,
        memory: Memory,
        functions: [TypedFunc<(u32, u32, u32), ()>; 2],
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
            let functions =
                ["fill", "copy"].map(|name| instance.get_typed_func(&mut store, name).expect(name));
            Machine { store, memory, functions }
        }

        /// True if it trapped.
        fn call(&mut self, which: usize, to: u32, from: u32, count: u32) -> bool {
            self.functions[which].call(&mut self.store, (to, from, count)).is_err()
        }
    }

    #[test]
    fn pieces_do_what_the_one_instruction_does() {
        let wasm = wat::parse_str(PROGRAM).expect("a module");
        let rewritten = in_pieces(&wasm);
        assert_ne!(&*rewritten, &*wasm);
        let engine = Engine::default();
        let (mut whole, mut pieces) = (Machine::new(&engine, &wasm), Machine::new(&engine, &rewritten));
        let size = 8 << 20;
        let edges =
            [0, 1, 4096, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3 << 20, size - 1, size, size + 1, u32::MAX];
        let mut dice = 1_u64;
        let mut roll = || {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let rolled = (dice >> 33) as u32;
            if rolled.is_multiple_of(3) {
                edges[rolled as usize / 3 % edges.len()]
            } else {
                rolled % (5 << 20)
            }
        };
        for round in 0..400 {
            let (which, to, from, count) = (round % 2, roll(), roll(), roll());
            let what = format!("round {round}: {which} {to} {from} {count}");
            assert_eq!(pieces.call(which, to, from, count), whole.call(which, to, from, count), "{what}");
            let alike = pieces.memory.data(&pieces.store) == whole.memory.data(&whole.store);
            assert!(alike, "{what}");
        }
    }

    #[test]
    fn what_has_nothing_to_split_is_left_alone() {
        let plain = wat::parse_str("(module (memory 1) (func))").expect("a module");
        assert_eq!(&*in_pieces(&plain), &*plain);
        assert_eq!(&*in_pieces(b"\0asm nonsense"), b"\0asm nonsense");
    }
}
