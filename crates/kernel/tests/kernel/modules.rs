//! Programs whose WebAssembly itself is the attack: they are refused, or charged and killed as any other.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use wardian_kernel::{Kernel, KernelConfig, Limits, Machine, Start, Started, Status, admit};
use wardian_vfs::Errno;

use crate::support::{Programs, finish, machine, machine_with, put, run, settled};

fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).expect("a module")
}

/// A program that never ends, with this in it.
fn endless(text: &str) -> Vec<u8> {
    wasm(&format!("(module {text} (func (export \"_start\") (loop $l (br $l))))"))
}

async fn start(machine: &Arc<Machine>, wasm: &[u8]) -> Result<Started, Errno> {
    put(machine, b"/tmp/program", wasm).await;
    machine.start(Start::new("/tmp/program", &[])).await
}

#[tokio::test]
async fn a_program_whose_limits_cannot_be_enforced_is_not_started() {
    let attacks = [
        ("a fill of a 64-bit memory, which would not be split", "memory64", endless("(memory i64 4000)")),
        ("a fill of another memory", "multi", endless("(memory 1) (memory 4000)")),
        ("a hundred memories, each with mappings of its own", "multi", endless(&"(memory 1)".repeat(100))),
        ("memory that other threads could change", "threads", endless("(memory 1 1 shared)")),
        ("a copy of nine million table elements", "table elements", endless("(table 9000000 funcref)")),
        ("a hundred tables", "tables", endless(&"(table 100000 funcref)".repeat(100))),
        ("a million globals", "globals", endless(&"(global i32 (i32.const 0))".repeat(1_000_000))),
        (
            "a stack pointer that is not a number of 32 bits",
            "__stack_pointer",
            endless("(global (export \"__stack_pointer\") (mut i64) (i64.const 0))"),
        ),
        (
            "a stack pointer that cannot be set",
            "__stack_pointer",
            endless("(global (export \"__stack_pointer\") i32 (i32.const 0))"),
        ),
        ("no beginning", "_start", wasm("(module (memory 1))")),
        ("half a module", "unexpected end", endless("")[..20].to_vec()),
    ];
    let machine = machine();
    for (attack, named, wasm) in attacks {
        let refused = admit(&wasm).expect_err(attack).to_string();
        assert!(refused.contains(named), "{attack}: {refused}");
        put(&machine, b"/tmp/program", &wasm).await;
        let done = finish(&machine, Start::new("/tmp/program", &[])).await;
        assert_eq!(done.status, Status::Exited(126), "{attack}");
        assert!(done.stderr.contains(&refused), "{attack}: {}", done.stderr);
        settled(&machine).await;
    }
    assert_eq!(run(&machine, &["exit", "5"]).await.status, Status::Exited(5));
}

/// How long a program takes beside `attack`, both on one worker: the median of several runs.
async fn beside(machine: &Arc<Machine>, attack: &[u8]) -> Duration {
    let started = start(machine, attack).await.expect("it starts");
    tokio::time::sleep(Duration::from_millis(20)).await;
    let mut times = Vec::new();
    for _ in 0..15 {
        let begin = Instant::now();
        let done = finish(machine, Start::new("/bin/testing", &["exit", "0"])).await;
        times.push(begin.elapsed());
        assert_eq!(done.status, Status::Exited(0));
    }
    assert!(machine.census().processes > 0, "it ended by itself: {:?}", started.wait().await);
    started.kill();
    settled(machine).await;
    times.sort();
    times[times.len() / 2]
}

#[tokio::test]
async fn no_instruction_keeps_others_waiting() {
    let looping = |parts: &str, body: &str| {
        wasm(&format!(
            "(module {parts} (func $f) (func (export \"_start\") (local $i i32) (loop $l {body} (br $l))))"
        ))
    };
    let segment = "a".repeat(24 << 20);
    let attacks = [
        (
            "table.copy",
            looping("(table 1000000 funcref)", "(table.copy (i32.const 0) (i32.const 1) (i32.const 999999))"),
        ),
        (
            "table.copy downwards",
            looping("(table 1000000 funcref)", "(table.copy (i32.const 1) (i32.const 0) (i32.const 999999))"),
        ),
        (
            "table.fill",
            looping(
                "(table 1000000 funcref)",
                "(table.fill (i32.const 0) (ref.null func) (i32.const 1000000))",
            ),
        ),
        (
            "memory.init",
            looping(
                &format!("(memory 1000) (data $d \"{segment}\")"),
                "(memory.init $d (i32.add (local.get $i) (i32.const 1)) (i32.const 0) (i32.const 25165824))",
            ),
        ),
    ];
    let artifacts = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("artifacts"));
    let config = KernelConfig { workers: Some(1), artifacts, ..KernelConfig::default() };
    let kernel = Kernel::new(config).expect("a kernel");
    let programs = Programs::load(&kernel);
    let machine = Machine::new(&kernel, programs.tree(&kernel), Limits::default());
    let control = beside(&machine, &looping("", "")).await;
    for (name, attack) in attacks {
        let waited = beside(&machine, &attack).await;
        println!("beside {name}: {waited:?}, beside an empty loop: {control:?}");
        assert!(waited < control * 5, "beside {name}: {waited:?}, beside an empty loop: {control:?}");
    }
}

#[tokio::test]
async fn a_table_grows_by_little_at_once_and_to_an_end() {
    let machine = machine();
    let text = |body: &str| {
        wasm(&format!(
            "(module (table $t 1 funcref) (func $grow (param i32) (result i32) (table.grow $t (ref.null func) (local.get 0)))
               (func (export \"_start\") (local $i i32) {body}))"
        ))
    };
    // What is refused is -1, as WebAssembly has it; what must not be is a trap.
    for (what, body) in [
        ("far", "(if (i32.ne (call $grow (i32.const 65537)) (i32.const -1)) (then unreachable))"),
        ("a little", "(if (i32.ne (call $grow (i32.const 65536)) (i32.const 1)) (then unreachable))"),
        (
            "to the end",
            "(loop $l (br_if $l (i32.ne (call $grow (i32.const 1000)) (i32.const -1))))
             (if (i32.gt_u (table.size $t) (i32.const 1000000)) (then unreachable))
             (if (i32.lt_u (table.size $t) (i32.const 999000)) (then unreachable))",
        ),
    ] {
        let started = start(&machine, &text(body)).await.expect("it starts");
        assert_eq!(started.wait().await, Status::Exited(0), "{what}");
    }
}

/// What an instance of this program is charged for once it runs.
async fn charged(wasm: Vec<u8>) -> u64 {
    let machine = machine();
    let started = start(&machine, &wasm).await.expect("it starts");
    // It is charged before its first instruction.
    while started.usage().cpu_nanos == 0 && machine.census().memory_charged == 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let charged = machine.census().memory_charged;
    started.kill();
    settled(&machine).await;
    charged
}

#[tokio::test]
async fn all_that_an_instance_takes_is_charged() {
    let plain = charged(endless("")).await;
    assert!(plain >= 128 << 10, "a program without a memory costs something, too: {plain}");
    let globals = charged(endless(&"(global i32 (i32.const 0))".repeat(32_000))).await;
    assert!(globals >= plain + 32_000 * 16, "{globals} {plain}");
    let table = charged(endless("(table 1000000 funcref)")).await;
    assert!(table >= plain + 1_000_000 * 8, "{table} {plain}");
    let functions = "(func)".repeat(100_000);
    let referred: String = (0..100_000).map(|n| format!("{n} ")).collect();
    let functions = format!("{functions} (table 1 funcref) (elem declare func {referred})");
    let functions = charged(endless(&functions)).await;
    assert!(functions >= plain + 100_000 * 32, "{functions} {plain}");
}

#[tokio::test]
async fn instances_that_do_not_fit_are_not_created() {
    let large = endless(&"(global i32 (i32.const 0))".repeat(32_768));
    let one = charged(large.clone()).await;
    let machine = machine_with(Limits { memory_bytes: one + one / 4 * 3, ..Limits::default() });
    let first = start(&machine, &large).await.expect("it starts");
    let second = machine.start(Start::new("/tmp/program", &[])).await.expect("it is found");
    assert_eq!(second.wait().await, Status::Signaled(9));
    assert_eq!(second.limit_hit(), Some("memoryBytes"));
    first.kill();
    settled(&machine).await;
}

/// A program that takes as many mappings as one can: data that begins and ends inside its memory, a stack pointer amid
/// it, so that a template covers half of it, memory that grew since, a large table and a large record of itself.
fn most_mappings() -> Vec<u8> {
    let globals = "(global (mut i32) (i32.const 0))".repeat(32_000);
    let data = "x".repeat(2 << 20);
    wasm(&format!(
        "(module
           (import \"wardian\" \"fork\" (func $fork (param i32 i32 i32) (result i32)))
           (memory (export \"memory\") 64 128)
           (table $t 100000 funcref)
           (global $sp (export \"__stack_pointer\") (mut i32) (i32.const 1048576))
           {globals}
           (data (i32.const 131072) \"{data}\")
           (func (export \"__wardian_fork_entry\") (param i32 i32) (result i32)
             (drop (memory.grow (i32.const 8))) (loop $l (br $l)) unreachable)
           (func (export \"_start\")
             (memory.fill (i32.const 1048576) (i32.const 7) (i32.const 3000000))
             (if (call $fork (i32.const 0) (i32.const 0) (i32.const 0)) (then unreachable))
             (drop (memory.grow (i32.const 8)))
             (drop (table.grow $t (ref.null func) (i32.const 50000)))
             (loop $l (br $l))))"
    ))
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count()
}

#[tokio::test]
#[ignore = "counts the mappings of the whole process, so it must run alone"]
async fn an_instance_takes_no_more_mappings_than_it_is_counted_for() {
    const PAIRS: usize = 25;
    let program = most_mappings();
    let counted = admit(&program).expect("it is admitted").mappings;
    let machine = machine_with(Limits { memory_bytes: 4 << 30, ..Limits::default() });
    // What the first one leaves behind in heaps and threads is not an instance's.
    let first = start(&machine, &program).await.expect("it starts");
    while machine.census().processes < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.kill();
    settled(&machine).await;
    let before = mappings();
    let mut running = Vec::new();
    for _ in 0..PAIRS {
        running.push(machine.start(Start::new("/tmp/program", &[])).await.expect("it starts"));
    }
    while machine.census().processes < 2 * PAIRS {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = (mappings() - before) as f64 / (2 * PAIRS) as f64;
    println!("{each} mappings for each instance");
    assert!(each <= counted as f64, "{each} mappings for each instance, counted as {counted}");
    running.iter().for_each(Started::kill);
    settled(&machine).await;
}

/// Replaces itself by itself, each time with one more argument, until there are 400.
const EXECS: &str = r#"
    (module
      (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
      (import "wardian" "exec" (func $exec (param i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 16) "/tmp/program")
      (func (export "_start") (local $end i32)
        (if (i32.or (call $sizes (i32.const 0) (i32.const 4)) (call $args (i32.const 1024) (i32.const 8192)))
          (then unreachable))
        (if (i32.gt_u (i32.load (i32.const 0)) (i32.const 400)) (then return))
        (local.set $end (i32.load (i32.const 4)))
        (i32.store8 offset=8192 (local.get $end) (i32.const 97))
        (i32.store8 offset=8193 (local.get $end) (i32.const 0))
        (i32.store (i32.const 64) (i32.const 16)) (i32.store (i32.const 68) (i32.const 12))
        (i32.store (i32.const 72) (i32.const 8192))
        (i32.store (i32.const 76) (i32.add (local.get $end) (i32.const 2)))
        (i32.store (i32.const 104) (i32.const -1))
        (drop (call $exec (i32.const 64)))
        unreachable))"#;

#[tokio::test]
async fn a_program_that_replaces_itself_is_charged_once() {
    let machine = machine();
    let started = start(&machine, &wasm(EXECS)).await.expect("it starts");
    assert_eq!(started.wait().await, Status::Exited(0), "{:?}", started.limit_hit());
    settled(&machine).await;
}
