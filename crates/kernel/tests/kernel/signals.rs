//! Signals and events as a program in C sees them.

use wardian_kernel::{Start, Status};

use crate::support::{finish, machine, put};

async fn run(text: &str) -> Status {
    let machine = machine();
    put(&machine, b"/tmp/program", &wat::parse_str(text).expect("a module")).await;
    finish(&machine, Start::new("/tmp/program", &[])).await.status
}

#[tokio::test]
async fn a_computing_program_sees_that_a_signal_waits_for_it() {
    // SIGALRM is flagged and due in a moment; nothing but the word ends the loop. The exit code is the signal's number.
    let status = run(r#"(module
        (import "wardian" "sigaction" (func $sigaction (param i32 i32 i32) (result i32)))
        (import "wardian" "sigword" (func $sigword (param i32) (result i32)))
        (import "wardian" "sigpending" (func $sigpending (param i32) (result i32)))
        (import "wardian" "alarm" (func $alarm (param i64 i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start")
          (drop (call $sigaction (i32.const 14) (i32.const 2) (i32.const 0)))
          (drop (call $sigword (i32.const 64)))
          (drop (call $alarm (i64.const 20000000) (i32.const 0)))
          (loop $l (br_if $l (i32.eqz (i32.load (i32.const 64)))))
          (drop (call $sigpending (i32.const 8)))
          (call $exit (i32.ctz (i32.load (i32.const 8))))))"#)
    .await;
    assert_eq!(status, Status::Exited(14));
}

#[tokio::test]
async fn a_word_outside_of_memory_is_refused() {
    let status = run(r#"(module
        (import "wardian" "sigword" (func $sigword (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start") (call $exit (call $sigword (i32.const 65534)))))"#)
    .await;
    assert_eq!(status, Status::Exited(21));
}

#[tokio::test]
async fn a_waiting_writer_is_told_that_the_readers_are_gone() {
    // A clock ends the first wait (its number is 2), the hang-up (1) the second: 2 * 10 + 1 + 100 for the hang-up's flag.
    let status = run(r#"(module
        (import "wardian" "pipe" (func $pipe (param i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_close" (func $close (param i32) (result i32)))
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func (export "_start") (local $first i32)
          (drop (call $pipe (i32.const 0) (i32.const 0)))
          (i32.store (i32.const 64) (i32.const 1))
          (i32.store8 (i32.const 72) (i32.const 3))
          (i32.store (i32.const 80) (i32.load (i32.const 4)))
          (i32.store (i32.const 112) (i32.const 2))
          (i32.store (i32.const 128) (i32.const 1))
          (i64.store (i32.const 136) (i64.const 20000000))
          (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 2) (i32.const 512)))
          (local.set $first (i32.load (i32.const 256)))
          (drop (call $close (i32.load (i32.const 0))))
          (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))
          (call $exit (i32.add (i32.mul (local.get $first) (i32.const 10))
            (i32.add (i32.load (i32.const 256)) (i32.mul (i32.load8_u (i32.const 280)) (i32.const 100)))))))"#)
    .await;
    assert_eq!(status, Status::Exited(121));
}
