//! Instances that were prepared in advance are like any other, whichever process gets them.

use std::sync::Arc;
use std::time::Duration;

use wardian_kernel::{Kernel, KernelConfig, Limits, Machine, Rules, Spares, Status};

use crate::support::{KERNEL, PROGRAMS, Programs, run, settled};

const SECRET: &str = "a11ce0b0bca201ddeadbeef05ec2e75ec2e7";

fn machine_with(spares: &Arc<Spares>, limits: Limits) -> Arc<Machine> {
    let rules = Rules { spares: Some(spares.clone()), ..Rules::default() };
    Machine::with_rules(&KERNEL, PROGRAMS.tree(&KERNEL), limits, rules)
}

fn spares() -> Arc<Spares> {
    Spares::new(&KERNEL, PROGRAMS.testing())
}

async fn full(spares: &Spares, wanted: usize) {
    while spares.ready() != wanted {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_is_taken_is_replaced_and_what_is_too_much_goes() {
    let spares = spares();
    let machine = machine_with(&spares, Limits::default());
    assert_eq!(run(&machine, &["fork", "2"]).await.status, Status::Exited(0), "none is prepared yet");
    for wanted in [3, 1, 5, 0] {
        spares.keep(wanted);
        full(&spares, wanted).await;
        assert_eq!(run(&machine, &["fork", "4"]).await.status, Status::Exited(0));
        full(&spares, wanted).await;
    }
    settled(&machine).await;
}

#[tokio::test]
async fn a_spare_is_charged_like_any_other() {
    let spares = spares();
    spares.keep(2);
    full(&spares, 2).await;
    let charged = |machine: Arc<Machine>| async move {
        assert_eq!(run(&machine, &["exit", "0"]).await.status, Status::Exited(0));
        machine.peak_memory()
    };
    let with = charged(machine_with(&spares, Limits::default())).await;
    let without = charged(crate::support::machine()).await;
    // The pages that it has written may have been counted or not.
    assert!(with.abs_diff(without) <= 512 << 10, "{with} {without}");
    full(&spares, 2).await;
    let poor = machine_with(&spares, Limits { memory_bytes: 128 << 10, ..Limits::default() });
    let refused = run(&poor, &["exit", "0"]).await;
    assert_eq!((refused.status, refused.limit), (Status::Signaled(9), Some("memoryBytes")));
}

#[tokio::test]
async fn a_spare_never_holds_a_secret() {
    let spares = spares();
    spares.keep(4);
    let machine = machine_with(&spares, Limits::default());
    for round in 0..200 {
        assert_eq!(run(&machine, &["secret", SECRET, "exit"]).await.status, Status::Exited(0));
        let found = run(&machine, &["search", SECRET, "4"]).await;
        assert_eq!(found.status, Status::Exited(0), "round {round}: {found:?}");
    }
}

#[tokio::test]
async fn spares_leave_capacity_for_those_that_need_it() {
    let config = KernelConfig { instances: Some(8), ..KernelConfig::default() };
    let kernel = Kernel::new(config).expect("a kernel starts");
    let programs = Programs::load(&kernel);
    let spares = Spares::new(&kernel, programs.testing());
    spares.keep(100);
    full(&spares, 4).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(spares.ready(), 4, "half of the room is not for spares");
    let rules = Rules { spares: Some(spares.clone()), ..Rules::default() };
    let machine = Machine::with_rules(&kernel, programs.tree(&kernel), Limits::default(), rules);
    assert_eq!(run(&machine, &["fork", "3"]).await.status, Status::Exited(0));
}
