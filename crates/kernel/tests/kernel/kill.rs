//! Whatever a guest does, it can be ended.

use std::time::Duration;

use wardian_kernel::{Limits, Start, Status};

use crate::support::{machine, machine_with, put, run, settled, start};

#[tokio::test]
async fn every_kind_of_program_can_be_killed() {
    let programs: [&[&str]; 6] = [
        &["spin"],
        &["sleep", "600000"],
        &["pipes", "100000000000", "2"],
        &["fork", "1000000"],
        &["secret", "deadbeefdeadbeef", "hang"],
        &["write", "100000000000"],
    ];
    for words in programs {
        let machine = machine();
        let started = start(&machine, words).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(machine.census().processes > 0, "{words:?} ended by itself: {:?}", started.wait().await);
        started.kill();
        assert_eq!(started.wait().await, Status::Signaled(9), "{words:?}");
        settled(&machine).await;
        assert_eq!(machine.census().memory_charged, 0, "{words:?}");
    }
}

#[tokio::test]
async fn endless_recursion_is_a_segmentation_fault_of_that_guest() {
    let machine = machine();
    assert_eq!(run(&machine, &["deep"]).await.status, Status::Signaled(11));
    assert_eq!(run(&machine, &["exit", "3"]).await.status, Status::Exited(3));
}

#[tokio::test]
async fn memory_is_refused_at_the_limit() {
    let machine = machine_with(Limits { memory_bytes: 32 << 20, ..Limits::default() });
    let done = run(&machine, &["grow"]).await;
    assert_eq!(done.status, Status::Exited(0), "{done:?}");
    let got: u64 = done.stdout.trim().split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
    assert!((16..=32).contains(&got), "{done:?}");
    assert_eq!(done.limit, Some("memoryBytes"));
    assert_eq!(machine.census().memory_charged, 0);
}

/// Loops that Rust cannot be trusted to keep as they are, in WebAssembly text: the body of `_start`, with a memory of
/// 16 MiB that may grow to 4 GiB.
async fn assert_can_be_killed(name: &str, imports: &str, body: &str) {
    let machine = machine();
    let text = format!(
        "(module {imports} (memory (export \"memory\") 256 65536) (table $t 1 funcref)
           (func (export \"_start\") (local $i i32) {body}))"
    );
    put(&machine, b"/tmp/loop", &wat::parse_str(text).expect("a module")).await;
    let started = machine.start(Start::new("/tmp/loop", &[])).await.expect("it starts");
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert!(machine.census().processes > 0, "{name} ended by itself: {:?}", started.wait().await);
    started.kill();
    assert_eq!(started.wait().await, Status::Signaled(9), "{name}");
    settled(&machine).await;
    assert_eq!(machine.census().memory_charged, 0, "{name}");
}

#[tokio::test]
async fn every_kind_of_loop_can_be_killed() {
    const POLL: &str = "(import \"wasi_snapshot_preview1\" \"poll_oneoff\" (func $poll (param i32 i32 i32 i32) (result i32)))";
    const CLOCK: &str = "(import \"wasi_snapshot_preview1\" \"clock_time_get\" (func $clock (param i32 i64 i32) (result i32)))";
    const YIELD: &str = "(import \"wasi_snapshot_preview1\" \"sched_yield\" (func $yield (result i32)))";
    const READ: &str =
        "(import \"wasi_snapshot_preview1\" \"random_get\" (func $random (param i32 i32) (result i32)))";
    let loops = [
        ("tight loop", "", "(loop $l (br $l))"),
        (
            "memory.fill",
            "",
            "(loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 16777216)) (br $l))",
        ),
        (
            // One instruction over all of a memory that was never touched: the slowest there is.
            "memory.fill over 200 MiB",
            "",
            "(drop (memory.grow (i32.const 3000)))
             (loop $l (memory.fill (i32.const 0) (i32.const 1) (i32.const 209715200)) (br $l))",
        ),
        (
            "memory.copy",
            "",
            "(loop $l (memory.copy (i32.const 1) (i32.const 0) (i32.const 16777215)) (br $l))",
        ),
        ("memory.grow", "", "(loop $l (drop (memory.grow (i32.const 1))) (br $l))"),
        ("memory.grow by nothing", "", "(loop $l (drop (memory.grow (i32.const 0))) (br $l))"),
        ("table.grow", "", "(loop $l (drop (table.grow $t (ref.null func) (i32.const 1))) (br $l))"),
        (
            "calls that answer at once",
            CLOCK,
            "(loop $l (drop (call $clock (i32.const 1) (i64.const 1) (i32.const 8))) (br $l))",
        ),
        ("yields", YIELD, "(loop $l (drop (call $yield)) (br $l))"),
        (
            "large random numbers",
            READ,
            "(loop $l (drop (call $random (i32.const 0) (i32.const 16777216))) (br $l))",
        ),
        (
            "a poll that is refused",
            POLL,
            "(loop $l (drop (call $poll (i32.const 0) (i32.const 4096) (i32.const 0) (i32.const 8))) (br $l))",
        ),
    ];
    for (name, imports, body) in loops {
        assert_can_be_killed(name, imports, body).await;
    }
}
