//! fork with memories large enough to be mapped over a template: relatives begin alike and never see each other after.

use std::time::Duration;

use wardian_kernel::{Limits, Start, Status};

use crate::support::{machine, machine_with, put, settled};

/// A program in 16 MiB of memory whose children, and theirs, check every byte of what they were given, write all of it,
/// and check after their own children that it is still as they wrote it. A wrong byte is a trap.
///
/// `expect(value, marks)`: all words are eight times `value`, but the first `marks` mebibytes begin with 100 + number.
const GENERATIONS: &str = r#"
(module
  (import "wardian" "fork" (func $fork (param i32 i32 i32) (result i32)))
  (import "wardian" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (global (export "__stack_pointer") (mut i32) (i32.const 1024))
  (func $end (result i32) (i32.shl (memory.size) (i32.const 16)))
  (func $fill (param $value i32)
    (memory.fill (i32.const 65536) (local.get $value) (i32.sub (call $end) (i32.const 65536))))
  (func $expect (param $value i32) (param $marks i32) (local $at i32) (local $want i64)
    (local.set $at (i32.const 65536))
    (loop $words
      (local.set $want (i64.mul (i64.extend_i32_u (local.get $value)) (i64.const 0x0101010101010101)))
      (if (i32.and (i32.eqz (i32.and (local.get $at) (i32.const 0xfffff)))
                   (i32.le_u (i32.shr_u (local.get $at) (i32.const 20)) (local.get $marks)))
        (then (local.set $want
          (i64.extend_i32_u (i32.add (i32.const 100) (i32.shr_u (local.get $at) (i32.const 20)))))))
      (if (i64.ne (i64.load (local.get $at)) (local.get $want)) (then unreachable))
      (local.set $at (i32.add (local.get $at) (i32.const 8)))
      (br_if $words (i32.lt_u (local.get $at) (call $end)))))
  (func $child_and_wait (param $value i32) (param $marks i32)
    (if (call $fork (local.get $value) (local.get $marks) (i32.const 2048)) (then unreachable))
    (if (call $wait (i32.load (i32.const 2048)) (i32.const 0) (i32.const 2052) (i32.const 2056)) (then unreachable))
    (if (i32.load (i32.const 2052)) (then unreachable)))
  (func (export "__wardian_fork_entry") (param $value i32) (param $marks i32) (result i32)
    (call $expect (local.get $value) (local.get $marks))
    (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1)) (then unreachable))
    (local.set $value (i32.add (local.get $value) (i32.const 1)))
    (call $fill (local.get $value))
    (if (i32.lt_u (local.get $value) (i32.const 10)) (then
      (call $child_and_wait (local.get $value) (i32.const 0))))
    (call $expect (local.get $value) (i32.const 0))
    (i32.const 0))
  (func (export "_start") (local $round i32)
    (if (i32.eq (memory.grow (i32.const 256)) (i32.const -1)) (then unreachable))
    (call $fill (i32.const 7))
    (loop $rounds
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (i64.store (i32.shl (local.get $round) (i32.const 20))
        (i64.extend_i32_u (i32.add (i32.const 100) (local.get $round))))
      (call $child_and_wait (i32.const 7) (local.get $round))
      (call $expect (i32.const 7) (local.get $round))
      (br_if $rounds (i32.lt_u (local.get $round) (i32.const 8))))))
"#;

#[tokio::test]
async fn generations_of_large_processes_never_see_each_others_memory() {
    let machine = machine();
    put(&machine, b"/tmp/generations", &wat::parse_str(GENERATIONS).expect("a module")).await;
    let started = machine.start(Start::new("/tmp/generations", &[])).await.expect("it starts");
    assert_eq!(started.wait().await, Status::Exited(0));
    settled(&machine).await;
    assert_eq!(machine.census().memory_charged, 0);
}

/// Writes 200 MiB and forks, again and again; the children end at once.
const LARGE_FORKS: &str = r#"
(module
  (import "wardian" "fork" (func $fork (param i32 i32 i32) (result i32)))
  (import "wardian" "wait" (func $wait (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 2)
  (global (export "__stack_pointer") (mut i32) (i32.const 1024))
  (func (export "__wardian_fork_entry") (param i32 i32) (result i32) (i32.const 0))
  (func (export "_start") (local $round i32)
    (if (i32.eq (memory.grow (i32.const 3200)) (i32.const -1)) (then unreachable))
    (loop $rounds
      (local.set $round (i32.add (local.get $round) (i32.const 1)))
      (memory.fill (i32.const 65536) (local.get $round) (i32.const 209715200))
      (if (call $fork (i32.const 0) (i32.const 0) (i32.const 2048)) (then unreachable))
      (if (call $wait (i32.load (i32.const 2048)) (i32.const 0) (i32.const 2052) (i32.const 2056)) (then unreachable))
      (br $rounds))))
"#;

/// A fork of so much takes a while and lets others run in between: it can be killed in the middle, and then neither the
/// child nor its memory is left.
#[tokio::test]
async fn a_large_fork_can_be_killed_at_any_point() {
    let machine = machine_with(Limits { memory_bytes: 1 << 30, ..Limits::default() });
    put(&machine, b"/tmp/forks", &wat::parse_str(LARGE_FORKS).expect("a module")).await;
    for round in 0..25 {
        let started = machine.start(Start::new("/tmp/forks", &[])).await.expect("it starts");
        tokio::time::sleep(Duration::from_millis(40 + 17 * round)).await;
        assert!(machine.census().processes > 0, "it ended by itself: {:?}", started.wait().await);
        started.kill();
        assert_eq!(started.wait().await, Status::Signaled(9));
        settled(&machine).await;
    }
}
