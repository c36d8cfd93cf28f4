//! Idle sandboxes hold a bounded number of the host's descriptors.

use std::process::Command;

use wardian::Sandbox;

use crate::support::{output, sandbox};

/// Descriptors that the whole program may have in the test.
const LIMIT: usize = 256;
const SANDBOXES: usize = LIMIT + 44;

/// In a process of its own, whose limit of descriptors is low and cannot be raised.
#[test]
fn more_large_sandboxes_than_descriptors_lock_nobody_out() {
    let own = std::env::current_exe().expect("a path");
    let script = format!(
        "ulimit -n {LIMIT}; exec \"$0\" --exact descriptors::large_sandboxes_at_a_low_limit --ignored --nocapture"
    );
    let done = Command::new("sh").args(["-c", &script]).arg(own).output().expect("it runs");
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Each shell's memory is large enough to be kept in a file, which takes a descriptor while there are any to spare.
#[tokio::test]
#[ignore = "more_large_sandboxes_than_descriptors_lock_nobody_out runs it"]
async fn large_sandboxes_at_a_low_limit() {
    let mut sandboxes: Vec<Sandbox> = Vec::new();
    for number in 0..SANDBOXES {
        let sandbox = sandbox().await;
        let fill = format!("printf -v x '%*s' 1300000 ''; y={number}");
        assert_eq!(output(&sandbox, &fill).await, "");
        sandboxes.push(sandbox);
    }
    let files: Vec<_> = (0..32).map(|_| std::fs::File::open("/dev/null")).collect();
    assert!(files.iter().all(Result::is_ok), "no descriptors are left: {files:?}");
    drop(files);
    assert_eq!(output(&sandbox().await, "echo hi | cat").await, "hi\n");
    // Those with a file and those without have kept what was in them, and so do their forks.
    for (number, sandbox) in sandboxes.iter().enumerate() {
        let expected = format!("1300000 {number}\n");
        assert_eq!(output(sandbox, "echo ${#x} $y").await, expected);
        let fork = sandbox.fork().await.expect("a fork");
        assert_eq!(output(&fork, "echo $(echo ${#x}) $y").await, expected);
    }
}
