//! bashkit, another shell for agents: an interpreter inside the calling program whose commands are functions of its own.
//!
//! It is measured by a program of its own, which `cargo xtask bench` builds apart from this workspace.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What takes another shell longer than this is not waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// The numbers it prints, smallest first; `None` where it cannot do it, or is not built.
pub(crate) fn numbers<W: AsRef<std::ffi::OsStr>>(words: &[W], patience: Duration) -> Option<Vec<f64>> {
    let mut command = Command::new("timeout");
    command.arg(patience.as_secs().to_string()).arg(binary()?).args(words);
    let output = command.output().ok()?;
    if output.status.code() == Some(124) {
        return Some(vec![PATIENCE.as_secs_f64()]);
    }
    if !output.status.success() {
        eprintln!("bashkit: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut numbers: Vec<f64> = printed.lines().filter_map(|line| line.parse().ok()).collect();
    numbers.sort_by(f64::total_cmp);
    Some(numbers)
}

fn binary() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let target: &Path = own.parent()?.parent()?;
    Some(target.join("peers/release/wardian-bench-peers")).filter(|path| path.exists())
}
