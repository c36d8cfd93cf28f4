//! `usertests` as an ordinary program: what the tests expect of the kernel is what Linux does.

use std::process::{Command, Stdio};

#[test]
fn linux_passes_usertests() {
    let done = Command::new(env!("CARGO_BIN_EXE_usertests")).stdin(Stdio::null()).output().expect("it runs");
    let printed = String::from_utf8_lossy(&done.stdout);
    let failed: Vec<&str> = printed.lines().filter(|line| !line.ends_with(": ok")).collect();
    assert!(done.status.success(), "{}\n{}", failed.join("\n"), String::from_utf8_lossy(&done.stderr));
}
