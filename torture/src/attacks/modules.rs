//! WebAssembly that is not what a compiler makes.

use std::fmt::Write;
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use wardian_kernel::{Import, Kernel, KernelConfig, KernelError};

use super::{Attacker, unharmed};
use crate::client::Client;
use crate::dice::Dice;

/// What each of these does is in its text.
const MODULES: &[&str] = &[
    r#"(module (memory (export "memory") 1) (func (export "_start") (loop (br 0))))"#,
    r#"(module (memory (export "memory") 1) (func $f (export "_start") (call $f)))"#,
    r#"(module (memory (export "memory") 1)
        (func (export "_start") (loop (drop (memory.grow (i32.const 16))) (br 0))))"#,
    r#"(module (memory (export "memory") 900)
        (func (export "_start") (loop (memory.fill (i32.const 0) (i32.const 7) (i32.const 58000000)) (br 0))))"#,
    r#"(module (memory (export "memory") 900)
        (func (export "_start")
          (loop (memory.copy (i32.const 1) (i32.const 0) (i32.const 58000000)) (br 0))))"#,
    r#"(module (table 6000000 funcref) (memory (export "memory") 1)
        (func (export "_start")
          (loop (table.copy (i32.const 1) (i32.const 0) (i32.const 5999999)) (br 0))))"#,
    r#"(module (table 1 funcref) (memory (export "memory") 1)
        (func (export "_start") (loop (drop (table.grow (ref.null func) (i32.const 100000))) (br 0))))"#,
    r#"(module (memory (export "memory") i64 900)
        (func (export "_start") (loop (memory.fill (i64.const 0) (i32.const 7) (i64.const 58000000)) (br 0))))"#,
    r#"(module (memory (export "memory") 1) (memory 900)
        (func (export "_start") (loop (memory.fill 1 (i32.const 0) (i32.const 7) (i32.const 58000000)) (br 0))))"#,
    r#"(module (memory (export "memory") 1) (global (export "__stack_pointer") i64 (i64.const 0))
        (func (export "__wardian_fork_entry")) (func (export "_start")))"#,
    r#"(module (func (export "memory")) (func (export "_start") (param i32)))"#,
    r#"(module (import "wardian" "no_such_call" (func)) (memory (export "memory") 1) (func (export "_start")))"#,
];

/// Uploads a program and runs it a few times at once; returns how that ended.
fn run(client: &mut Client, wasm: &[u8]) -> Result<Value> {
    client.ask("files.write", json!({ "path": "/tmp/m", "data": STANDARD.encode(wasm) }))?;
    let script = "chmod +x /tmp/m; for i in 1 2 3; do /tmp/m & done; /tmp/m; wait";
    client.ask("run", json!({ "command": script }))
}

/// Modules that spin, grow, fill or lie about themselves.
pub(super) fn hostile(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..2 {
        let wasm = match attacker.dice.below(MODULES.len() + 4) {
            0 => many_globals(attacker.dice.below(200_000)),
            1 => many_memories(attacker.dice.below(100)),
            2 | 3 => compile_bomb(&mut attacker.dice),
            _ => (*attacker.dice.pick(MODULES)).to_owned(),
        };
        run(&mut client, &wat::parse_str(&wasm).context("an attack is not WebAssembly")?)?;
    }
    unharmed(client, attacker.socket)
}

fn many_globals(count: usize) -> String {
    let globals = "(global (mut i64) (i64.const 0))".repeat(count);
    format!(r#"(module (memory (export "memory") 1) {globals} (func (export "_start") (loop (br 0))))"#)
}

fn many_memories(count: usize) -> String {
    let memories = "(memory 1)".repeat(count);
    format!(r#"(module (memory (export "memory") 1) {memories} (func (export "_start") (loop (br 0))))"#)
}

/// Small to send, long to compile: nested blocks that all branch to each other, with many live variables.
fn compile_bomb(dice: &mut Dice) -> String {
    let (locals, depth) = (50 + dice.below(2_000), 50 + dice.below(900));
    let mut text = format!(
        "(module (memory (export \"memory\") 1) (func (export \"_start\") (local{})",
        " i64".repeat(locals)
    );
    for level in 0..depth {
        let (a, b, c) = (dice.below(locals), dice.below(locals), dice.below(locals));
        let _ = write!(text, "(block (local.set {a} (i64.mul (local.get {b}) (local.get {c})))");
        let _ = write!(text, "(br_if {} (i64.eqz (local.get {a})))", dice.below(level + 1));
    }
    text.push_str(&")".repeat(depth));
    text.push_str("))");
    text
}

/// A good module with a few bytes changed.
pub(super) fn garbled(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let mut client = attacker.client()?;
    for _ in 0..6 {
        let mut wasm = wat::parse_str(attacker.dice.pick(&MODULES[..6]))?;
        for _ in 0..1 + attacker.dice.below(3) {
            let at = 8 + attacker.dice.below(wasm.len() - 8);
            wasm[at] = attacker.dice.next() as u8;
        }
        run(&mut client, &wasm)?;
    }
    unharmed(client, attacker.socket)
}

/// The kernel's list of imports. Starting a kernel to ask for it takes threads and an engine, so it is asked once.
static IMPORTS: LazyLock<Result<Vec<Import>, KernelError>> = LazyLock::new(|| {
    let kernel = Kernel::new(KernelConfig { workers: Some(1), ..KernelConfig::default() })?;
    Ok(kernel.imports().to_vec())
});

/// Every import there is, called with pointers, lengths and counts of all sizes.
pub(super) fn calls(attacker: &mut Attacker<'_>) -> Result<Vec<String>> {
    let imports = IMPORTS.as_ref().map_err(|error| anyhow!("{error}"))?;
    let mut client = attacker.client()?;
    for _ in 0..4 {
        let import = attacker.dice.pick(imports);
        let ended = run(&mut client, &wat::parse_str(calling(import, &mut attacker.dice))?)?;
        // An attack that never starts finds nothing.
        if ended["result"]["stderr"].as_str().is_some_and(|text| text.contains("cannot run")) {
            return Ok(vec![format!("a module that calls {} was refused: {ended}", import.name)]);
        }
    }
    unharmed(client, attacker.socket)
}

const NUMBERS: &[u64] = &[
    0,
    1,
    3,
    8,
    64,
    1024,
    4096,
    65_535,
    65_536,
    1 << 20,
    20_000_000,
    50_000_000,
    0x7fff_ffff,
    0x8000_0000,
    u64::MAX,
];

/// A module with 50 MB of memory that calls an import with such numbers, again and again.
fn calling(import: &Import, dice: &mut Dice) -> String {
    let Import { module, name, params, answers, .. } = import;
    let types: String = params.chars().map(|kind| if kind == 'l' { " i64" } else { " i32" }).collect();
    let result = if *answers { "(result i32)" } else { "" };
    let mut text = format!("(module (import \"{module}\" \"{name}\" (func $f (param{types}) {result}))\n");
    text.push_str("(import \"wardian\" \"getppid\" (func (result i32)))\n");
    text.push_str(
        "(memory (export \"memory\") 800)\n(data (i32.const 1024) \"/tmp/x\\00\\01\\00\\00\\00\")\n",
    );
    text.push_str("(func (export \"_start\") (loop\n");
    for _ in 0..20 {
        for kind in params.chars() {
            let number = *dice.pick(NUMBERS);
            let _ = match kind {
                'l' => writeln!(text, "(i64.const {})", number as i64),
                _ => writeln!(text, "(i32.const {})", number as u32 as i32),
            };
        }
        text.push_str(if *answers { "call $f drop\n" } else { "call $f\n" });
    }
    text.push_str("(br 0))))");
    text
}
