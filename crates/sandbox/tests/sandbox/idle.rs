//! Sandboxes at rest are data, and a caller is never blocked by a guest.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wardian::{Engine, PoolOptions, Sandbox};

use crate::support::{output, run, sandbox};

fn status(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn forks_by_the_thousand() {
    let sandbox = sandbox().await;
    output(&sandbox, "x=1; f() { echo f$x; }; echo file > /tmp/f").await;
    let forks = sandbox.fork_many(1000).await.unwrap();
    let ids: std::collections::BTreeSet<&str> = forks.iter().map(Sandbox::id).collect();
    assert_eq!(ids.len(), 1000);
    for (number, fork) in forks.iter().enumerate().step_by(50) {
        assert_eq!(
            output(fork, &format!("x={number}; f; cat /tmp/f; rm /tmp/f")).await,
            format!("f{number}\nfile\n")
        );
    }
    assert_eq!(output(&forks[1], "f; cat /tmp/f").await, "f1\nfile\n");
    assert_eq!(output(&sandbox, "f; cat /tmp/f").await, "f1\nfile\n");
}

/// These look at the whole process, so nothing else may run in it: `cargo xtask test` runs them alone.
#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn ten_thousand_idle_sandboxes_fit_into_a_gibibyte() {
    let first = sandbox().await;
    run(&first, "echo warm").await;
    let (memory, threads) = (status("VmRSS:"), status("Threads:"));
    let mut all = Vec::new();
    for number in 0..10_000 {
        let sandbox = sandbox().await;
        assert_eq!(run(&sandbox, "echo hi").await.stdout, b"hi\n", "{number}");
        all.push(sandbox);
    }
    let grown = status("VmRSS:") - memory;
    println!("10,000 idle sandboxes: {grown} KiB, {} threads", status("Threads:"));
    assert!(grown < 1 << 20, "{grown} KiB");
    assert!(status("Threads:") <= threads + 8, "no thread for an idle sandbox");
    let mappings = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    assert!(mappings < 20_000, "no instance for an idle sandbox but the few kept warm: {mappings} mappings");
    for sandbox in all.iter().step_by(997) {
        assert_eq!(output(sandbox, "echo still here").await, "still here\n");
    }
}

#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn ten_thousand_forks_share_what_they_do_not_write() {
    let sandbox = sandbox().await;
    output(&sandbox, "for i in $(seq 1000); do echo $i > /tmp/$i; done").await;
    let memory = status("VmRSS:");
    let forks = sandbox.fork_many(10_000).await.unwrap();
    let grown = status("VmRSS:") - memory;
    println!("10,000 forks: {grown} KiB");
    assert!(grown < 10_000 * 100, "{grown} KiB");
    assert_eq!(output(&forks[9_999], "ls /tmp | wc -l; cat /tmp/77").await, "1000\n77\n");
}

#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn a_hundred_spinning_sandboxes_leave_a_timer_on_time() {
    let ticks = Arc::new(AtomicU64::new(0));
    let counter = ticks.clone();
    let mut spinning = Vec::new();
    for _ in 0..100 {
        let sandbox = Sandbox::builder().timeout(None).build().await.unwrap();
        let running = sandbox.clone();
        spinning.push((sandbox, tokio::spawn(async move { running.run("while :; do :; done").await })));
    }
    while spinning.iter().any(|(sandbox, _)| !sandbox.is_running()) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let timer = tokio::spawn(async move {
        let mut interval = tokio::time::interval(Duration::from_millis(10));
        loop {
            interval.tick().await;
            counter.fetch_add(1, Ordering::Relaxed);
        }
    });
    let start = Instant::now();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let (counted, due) = (ticks.load(Ordering::Relaxed), start.elapsed().as_millis() as u64 / 10);
    timer.abort();
    // On the same single thread as everything else here: if a guest ran on it, or held it, few would be counted.
    assert!(counted >= due * 3 / 4, "{counted} ticks of {due}");
    for (sandbox, task) in spinning {
        sandbox.cancel();
        assert_eq!(task.await.unwrap().unwrap().exit_code, 125);
    }
}

#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn a_program_can_have_its_free_memory_returned() {
    let sandbox = sandbox().await;
    output(&sandbox, ":").await;
    // What the end of another sandbox asked for is done.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut pieces: Vec<Option<Box<[u8; 1024]>>> = (0..200_000).map(|_| Some(Box::new([1; 1024]))).collect();
    // Some pieces stay, up to the end of the heap: the allocator keeps what is below them.
    for (number, piece) in pieces.iter_mut().enumerate() {
        piece.take_if(|_| number % 100 != 99);
    }
    let before = status("VmRSS:");
    for _ in 0..1000 {
        wardian::return_memory();
    }
    let patience = Instant::now() + Duration::from_secs(60);
    while status("VmRSS:") + (100 << 10) > before {
        assert!(Instant::now() < patience, "{before} KiB, and still {} KiB", status("VmRSS:"));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    std::hint::black_box(&pieces);
}

#[tokio::test]
async fn a_pool_must_make_sense() {
    let options = PoolOptions { min_size: 5, max_size: 4 };
    assert!(Engine::builder().pool(options).build().await.is_err());
    let engine = Sandbox::builder().build().await.unwrap().engine();
    assert!(engine.set_pool(options).is_err());
}
