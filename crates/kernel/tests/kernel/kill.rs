//! Whatever a guest does, it can be ended.

use std::time::Duration;

use wardian_kernel::{Limits, Status};

use crate::support::{machine, machine_with, run, settled, start};

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
