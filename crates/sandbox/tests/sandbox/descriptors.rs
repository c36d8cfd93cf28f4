//! Idle sandboxes hold a bounded number of the host's descriptors.

use std::process::Command;

use wardian::{Limits, Sandbox};

use crate::support::{output, sandbox};

/// Descriptors that the whole program may have in the test.
const LIMIT: usize = 256;
/// Set where that is the limit.
const LOW: &str = "WARDIAN_TEST_LOW_LIMIT";
const SANDBOXES: usize = LIMIT + 44;

#[test]
fn more_large_sandboxes_than_descriptors_all_work() {
    at_a_low_limit("large_sandboxes_at_a_low_limit");
}

#[test]
fn more_programs_than_descriptors_all_work() {
    at_a_low_limit("programs_at_a_low_limit");
}

/// Runs a test in a process of its own, whose limit of descriptors is low and cannot be raised.
fn at_a_low_limit(test: &str) {
    let own = std::env::current_exe().expect("a path");
    let script = format!("ulimit -n {LIMIT}; exec \"$0\" --exact descriptors::{test} --ignored --nocapture");
    let done = Command::new("sh").args(["-c", &script]).arg(own).env(LOW, "1").output().expect("it runs");
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
}

/// Each shell's memory is large enough to be kept in a file, which takes a descriptor while there are any to spare.
#[tokio::test]
#[ignore = "more_large_sandboxes_than_descriptors_all_work runs it"]
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

/// The code of each program is in a file, which takes a descriptor while it is kept or runs.
#[tokio::test]
#[ignore = "more_programs_than_descriptors_all_work runs it"]
async fn programs_at_a_low_limit() {
    // It counts descriptors, so it means something at the low limit only.
    if std::env::var_os(LOW).is_none() {
        return;
    }
    let mut sandboxes = Vec::new();
    for owner in 0..4 {
        let sandbox = sandbox().await;
        for number in 0..20 {
            run_program(&sandbox, owner * 1_000 + number, "").await;
        }
        sandboxes.push(sandbox);
    }
    assert!(open_descriptors() < LIMIT / 2, "{} are open", open_descriptors());
    // Nor do programs that run take what others need.
    let limits = Limits { processes: 200, ..Limits::default() };
    let busy = Sandbox::builder().limits(limits).timeout(None).build().await.expect("a sandbox");
    for number in 0..60 {
        run_program(&busy, 10_000 + number, "&").await;
    }
    assert!(open_descriptors() < LIMIT / 2, "{} are open", open_descriptors());
    assert_eq!(output(&sandbox().await, "echo hi | cat").await, "hi\n");
    drop(busy);
    run_program(&sandboxes[0], 20_000, "").await;
}

/// Runs a program that no one has run before; one that is started with `&` never ends.
async fn run_program(sandbox: &Sandbox, number: usize, how: &str) {
    let work = if how.is_empty() { "" } else { "(loop (br 0))" };
    let text = format!(
        r#"(module (memory (export "memory") 1) (data (i32.const 8) "{number}") (func (export "_start") {work}))"#
    );
    sandbox.write_file("/tmp/program", wat::parse_str(text).expect("a module")).await.expect("a file");
    let result = sandbox.run(format!("chmod +x /tmp/program; /tmp/program {how}")).await.expect("a result");
    assert_eq!(result.exit_code, 0, "{}", String::from_utf8_lossy(&result.stderr));
}

fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").expect("descriptors").count()
}
