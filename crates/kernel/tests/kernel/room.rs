//! A program has room for so many instances; then fork and spawn are refused and new programs wait.

use std::time::Duration;

use wardian_kernel::{Kernel, KernelConfig, Limits, Machine, Start, Status};

use crate::support::{Programs, finish, machine_with, put, settled};

#[tokio::test]
async fn without_capacity_fork_is_refused_and_new_programs_wait() {
    let config = KernelConfig { instances: Some(3), ..KernelConfig::default() };
    let kernel = Kernel::new(config).expect("a kernel starts");
    let programs = Programs::load(&kernel);
    let machine = Machine::new(&kernel, programs.tree(&kernel), Limits::default());

    // One parent and its two children fit, a third child does not.
    let forks = finish(&machine, Start::new("/bin/testing", &["fork", "2"])).await;
    assert_eq!(forks.status, Status::Exited(0), "{forks:?}");
    let sleepers: Vec<_> = {
        let mut sleepers = Vec::new();
        for _ in 0..2 {
            let start = Start::new("/bin/testing", &["sleep", "600000"]);
            sleepers.push(machine.start(start).await.expect("there is room"));
        }
        sleepers
    };
    let refused = finish(&machine, Start::new("/bin/testing", &["fork", "1"])).await;
    assert_ne!(refused.status, Status::Exited(0), "{refused:?}");

    let spinner =
        machine.start(Start::new("/bin/testing", &["sleep", "600000"])).await.expect("there is room");
    let waiting = finish(&machine, Start::new("/bin/testing", &["exit", "3"]));
    tokio::pin!(waiting);
    let early = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(early.is_err(), "there was no room for {early:?}");
    spinner.kill();
    assert_eq!(waiting.await.status, Status::Exited(3));
    for sleeper in sleepers {
        sleeper.kill();
    }
    settled(&machine).await;
}

/// Forks children from 32 MiB that were written. Each grows, writes every third page and sleeps.
const SCATTERED: &str = r#"
(module
  (import "wardian" "fork" (func $fork (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (global (export "__stack_pointer") (mut i32) (i32.const 8192))
  (func $sleep
    (i64.store (i32.const 16384) (i64.const 0))
    (i64.store (i32.const 16392) (i64.const 0))
    (i64.store (i32.const 16400) (i64.const 1))
    (i64.store (i32.const 16408) (i64.const 600000000000))
    (i64.store (i32.const 16416) (i64.const 0))
    (i64.store (i32.const 16424) (i64.const 0))
    (drop (call $poll (i32.const 16384) (i32.const 20000) (i32.const 1) (i32.const 24000))))
  (func (export "__wardian_fork_entry") (param i32 i32) (result i32) (local $at i32)
    (if (i32.eq (memory.grow (i32.const 3)) (i32.const -1)) (then unreachable))
    (local.set $at (i32.const 65536))
    (loop $pages
      (i32.store (local.get $at) (i32.const 1))
      (local.set $at (i32.add (local.get $at) (i32.const 12288)))
      (br_if $pages (i32.lt_u (local.get $at) (i32.shl (memory.size) (i32.const 16)))))
    (call $sleep)
    (i32.const 0))
  (func (export "_start") (local $child i32)
    (if (i32.eq (memory.grow (i32.const 512)) (i32.const -1)) (then unreachable))
    (memory.fill (i32.const 65536) (i32.const 7) (i32.const 33554432))
    (loop $children
      (if (call $fork (i32.const 0) (i32.const 0) (i32.const 2048)) (then unreachable))
      (local.set $child (i32.add (local.get $child) (i32.const 1)))
      (br_if $children (i32.lt_u (local.get $child) (i32.const 30))))
    (call $sleep)))
"#;

/// The room is counted in mappings: no way of writing a memory may take more of them than is counted for an instance.
#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn an_instance_takes_no_more_mappings_than_are_counted() {
    const COUNTED: usize = 8;
    const CHILDREN: usize = 30;
    let mappings = || std::fs::read_to_string("/proc/self/maps").expect("maps").lines().count();
    let machine = machine_with(Limits { memory_bytes: 4 << 30, ..Limits::default() });
    put(&machine, b"/tmp/scattered", &wat::parse_str(SCATTERED).expect("a module")).await;
    // Whatever is made once is made.
    finish(&machine, Start::new("/bin/testing", &["exit", "0"])).await;
    let before = mappings();
    let started = machine.start(Start::new("/tmp/scattered", &[])).await.expect("it starts");
    while machine.census().processes < 1 + CHILDREN {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let grown = mappings() - before;
    println!("{grown} mappings for {} instances", 1 + CHILDREN);
    assert!(grown <= COUNTED * (1 + CHILDREN), "{grown} mappings for {} instances", 1 + CHILDREN);
    started.kill();
    settled(&machine).await;
}
