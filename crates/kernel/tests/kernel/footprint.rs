//! What a process writes without asking is charged, too: its stack, and the initial memory that it shared.

use std::sync::Arc;
use std::time::Duration;

use wardian_kernel::{Limits, Machine, Start, Status};

use crate::support::{machine, machine_with, put, settled, start};

/// Recurses, comes back, says so and sleeps: what it touched of its stack stays touched.
const DEEP: &str = r#"(module
(import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
(memory (export "memory") 1)
(func $deep (param $left i32) (result i32)
  (if (i32.eqz (local.get $left)) (then (return (i32.const 0))))
  (i32.add (local.get $left) (call $deep (i32.sub (local.get $left) (i32.const 1)))))
(func (export "_start")
  (drop (call $deep (i32.const 100000)))
  (i32.store (i32.const 16) (i32.const 1))
  (i64.store (i32.const 24) (i64.const 3600000000000))
  (drop (call $poll (i32.const 0) (i32.const 128) (i32.const 1) (i32.const 256)))))"#;

/// Waits until at least this much is charged; returns what is, then or at last.
async fn charged(machine: &Arc<Machine>, at_least: u64) -> u64 {
    for _ in 0..1_000 {
        if machine.census().memory_charged >= at_least {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    machine.census().memory_charged
}

#[tokio::test]
async fn a_stack_that_was_touched_is_charged() {
    const TOUCHED: u64 = 2 << 20;
    let machine = machine();
    put(&machine, b"/tmp/deep", &wat::parse_str(DEEP).expect("a module")).await;
    let started = machine.start(Start::new("/tmp/deep", &[])).await.expect("it starts");
    let charged = charged(&machine, TOUCHED).await;
    assert!(charged >= TOUCHED, "{charged} bytes");
    started.kill();
    settled(&machine).await;
}

#[tokio::test]
async fn stacks_stay_within_the_limit() {
    let machine = machine_with(Limits { memory_bytes: 8 << 20, ..Limits::default() });
    put(&machine, b"/tmp/deep", &wat::parse_str(DEEP).expect("a module")).await;
    let mut sleeping = Vec::new();
    let refused = loop {
        assert!(sleeping.len() < 8, "all of them fit");
        let started = machine.start(Start::new("/tmp/deep", &[])).await.expect("it is found");
        let before = machine.census().memory_charged;
        tokio::select! {
            status = started.wait() => break (status, started.limit_hit()),
            _ = charged(&machine, before + (2 << 20)) => sleeping.push(started),
        }
    };
    assert_eq!(refused, (Status::Signaled(9), Some("memoryBytes")));
    sleeping.iter().for_each(wardian_kernel::Started::kill);
    settled(&machine).await;
}

#[tokio::test]
async fn the_initial_memory_that_was_written_is_charged() {
    let machine = machine();
    let idle = start(&machine, &["sleep", "3600000"]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let flat = machine.census().memory_charged;
    assert!(flat <= 512 << 10, "one that has done nothing is charged {flat} bytes");
    // Eight mebibytes of heap, for which it asks, and half a mebibyte of its own stack, for which it does not.
    let busy = start(&machine, &["secret", concat!("5ec2e75ec2e7", "a11ce0"), "hang"]).await;
    let all = charged(&machine, flat + (8 << 20) + (512 << 10)).await;
    assert!(all >= flat + (8 << 20) + (512 << 10), "{all} bytes");
    idle.kill();
    busy.kill();
    settled(&machine).await;
}
