//! A program has room for so many instances; then fork and spawn are refused and new programs wait.

use std::time::Duration;

use wardian_kernel::{Kernel, KernelConfig, Limits, Machine, Start, Status};

use crate::support::{Programs, finish, settled};

#[tokio::test]
async fn without_room_fork_is_refused_and_new_programs_wait() {
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
