//! Instances that are wiped and used again are like fresh ones.

use std::sync::Arc;
use std::time::Duration;

use wardian_kernel::{Kernel, KernelConfig, Limits, Machine, Status};

use crate::support::{Programs, run, settled, start};

const SECRET: &str = "0dd5ec2e70dd5ec2e70dd5ec2e70dd5ec2e7";

/// A kernel of its own: other tests would take the instances kept for reuse.
fn own() -> (Programs, Arc<Machine>) {
    let kernel = Kernel::new(KernelConfig::default()).expect("a kernel starts");
    let programs = Programs::load(&kernel);
    let machine = Machine::new(&kernel, programs.tree(&kernel), Limits::default());
    (programs, machine)
}

/// Waits until so many are kept for reuse: a process ends a moment before its instance is wiped.
async fn idle(programs: &Programs, wanted: usize) {
    for _ in 0..2_000 {
        if programs.testing().idle() == wanted {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{} are kept for reuse instead of {wanted}", programs.testing().idle());
}

#[tokio::test]
async fn a_reused_instance_starts_byte_for_byte_as_a_fresh_one() {
    let (programs, machine) = own();
    let fresh = run(&machine, &["digest"]).await;
    assert_eq!(fresh.status, Status::Exited(0));
    for _ in 0..50 {
        idle(&programs, 1).await;
        assert_eq!(run(&machine, &["secret", SECRET, "little"]).await.status, Status::Exited(0));
        idle(&programs, 1).await;
        assert_eq!(run(&machine, &["digest"]).await.stdout, fresh.stdout);
    }
}

#[tokio::test]
async fn reused_instances_hold_no_secret() {
    let (programs, machine) = own();
    for round in 0..200 {
        assert_eq!(run(&machine, &["secret", SECRET, "little"]).await.status, Status::Exited(0));
        let found = run(&machine, &["search", SECRET, "0"]).await;
        assert_eq!(found.status, Status::Exited(0), "round {round}: {found:?}");
        // Children use the instances kept for reuse, too, and leave them behind.
        assert_eq!(run(&machine, &["fork", "3"]).await.status, Status::Exited(0));
    }
    assert!(programs.testing().idle() > 0);
}

#[tokio::test]
async fn grown_or_killed_instances_are_not_reused() {
    let (programs, machine) = own();
    assert_eq!(run(&machine, &["secret", SECRET, "exit"]).await.status, Status::Exited(0));
    assert_eq!(run(&machine, &["secret", SECRET, "abort"]).await.status, Status::Signaled(6));
    let hanging = start(&machine, &["secret", SECRET, "hang"]).await;
    hanging.kill();
    hanging.wait().await;
    settled(&machine).await;
    assert_eq!(run(&machine, &["exit", "0"]).await.status, Status::Exited(0));
    idle(&programs, 1).await;
}

#[tokio::test]
async fn what_was_used_is_charged_like_a_fresh_one() {
    let (programs, machine) = own();
    assert_eq!(run(&machine, &["exit", "0"]).await.status, Status::Exited(0));
    let fresh = machine.peak_memory();
    idle(&programs, 1).await;
    assert_eq!(machine.census().memory_charged, 0);
    assert_eq!(run(&machine, &["exit", "0"]).await.status, Status::Exited(0));
    // The pages that the one before has written are its own now, and may have been counted.
    let reused = machine.peak_memory();
    assert!((fresh..=fresh + (512 << 10)).contains(&reused), "{reused} {fresh}");
}
