//! What scripts do: external programs, subshells, pipes.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use wardian::Sandbox;

use crate::table::Table;

/// The best of several is the least disturbed by whatever else the machine does.
const ROUNDS: usize = 5;

pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    let sandbox = Sandbox::builder().timeout(None).build().await?;
    let loops = |body: &str| format!("i=0; while [ $i -lt 1000 ]; do {body}; i=$((i+1)); done");
    for (what, script, each, goal) in [
        ("external `true`, each of 1,000", loops("/bin/true"), 1000, "5x"),
        ("subshell `( : )`, each of 1,000", loops("( : )"), 1000, "3x"),
        ("`$(echo x)`, each of 1,000", loops("x=$(echo x)"), 1000, ""),
        ("`true | true`, each of 200", loops("/bin/true | /bin/true").replace("1000", "200"), 200, ""),
        ("empty loop, each of 1,000", loops(":"), 1000, ""),
        ("`yes | head -c 1G | wc -c`", "yes | head -c 1G | wc -c".to_owned(), 1, "0.5x"),
    ] {
        let rounds = if each == 1 { 2 } else { ROUNDS };
        let (mut ours, mut native) = (Duration::MAX, Duration::MAX);
        for _ in 0..rounds {
            ours = ours.min(in_sandbox(&sandbox, &script).await?);
            native = native.min(in_bash(&script)?);
        }
        table.compare(what, ours / each, native / each, goal);
    }
    Ok(())
}

async fn in_sandbox(sandbox: &Sandbox, script: &str) -> Result<Duration> {
    let start = Instant::now();
    let result = sandbox.run(script).await?;
    let elapsed = start.elapsed();
    ensure!(result.exit_code == 0, "{script}: {}", String::from_utf8_lossy(&result.stderr));
    Ok(elapsed)
}

fn in_bash(script: &str) -> Result<Duration> {
    let start = Instant::now();
    let status = Command::new("bash").args(["-c", script]).stdout(Stdio::null()).status()?;
    let elapsed = start.elapsed();
    ensure!(status.success(), "bash: {script}: {status}");
    Ok(elapsed)
}
