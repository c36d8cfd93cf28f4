//! What processes cost: forks of small and large ones, many at once, talking through a pipe, memory for each.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use wardian::{Limits, Sandbox};

use crate::table::Table;

/// The best of several is the least disturbed by whatever else the machine does.
const ROUNDS: usize = 3;

pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    for megabytes in [1, 16, 64] {
        let fill = format!("printf -v x '%*s' {} ''", megabytes << 20);
        let what = format!("fork of a shell with {megabytes} MB");
        compare(table, &what, 100, &fill, "for i in {1..100}; do ( : ); done", "").await?;
    }
    let at_once = "for i in {1..1000}; do sleep 1000 & done; kill $(jobs -p); wait";
    compare(table, "1,000 processes at once, each started and ended", 1000, ":", at_once, "").await?;
    let echo = "coproc C { while read -r x; do echo \"$x\"; done; }";
    let ping = "for i in {1..2000}; do echo $i >&${C[1]}; read -r y <&${C[0]}; done";
    compare(table, "a line through a pipe and back", 2000, echo, ping, "").await?;
    memory(table, "memory of an idle process", 500, "sleep 1000").await?;
    memory(table, "memory of a running process", 100, "while :; do :; done").await
}

/// Times `script` after `before`, in a sandbox and in bash, by the shell's own clock.
async fn compare(
    table: &mut Table,
    what: &str,
    each: u32,
    before: &str,
    script: &str,
    goal: &str,
) -> Result<()> {
    let timed = format!(
        "{{ {before}; }} 2>/dev/null; s=${{EPOCHREALTIME/./}}; {{ {script}; }} 2>/dev/null; \
         e=${{EPOCHREALTIME/./}}; echo $((e - s))"
    );
    let (mut ours, mut native) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        ours = ours.min(in_sandbox(&timed).await?);
        native = native.min(in_bash(&timed)?);
    }
    table.compare(what, ours / each, native / each, goal);
    Ok(())
}

async fn roomy() -> Result<Sandbox> {
    let limits = Limits { processes: 1_100, memory_bytes: 4 << 30, ..Limits::default() };
    Ok(Sandbox::builder().limits(limits).timeout(None).build().await?)
}

async fn in_sandbox(script: &str) -> Result<Duration> {
    let result = roomy().await?.run(script).await?;
    ensure!(result.exit_code == 0, "{script}: {}", String::from_utf8_lossy(&result.stderr));
    micros(&result.stdout)
}

fn in_bash(script: &str) -> Result<Duration> {
    let output = Command::new("bash").args(["-c", script]).output()?;
    ensure!(output.status.success(), "bash: {script}: {}", output.status);
    micros(&output.stdout)
}

fn micros(printed: &[u8]) -> Result<Duration> {
    let text = std::str::from_utf8(printed)?.trim();
    Ok(Duration::from_micros(text.parse().with_context(|| format!("not a number: {text}"))?))
}

/// How much larger this program is for each of `count` processes that do `body`.
async fn memory(table: &mut Table, what: &str, count: usize, body: &str) -> Result<()> {
    let sandbox = roomy().await?;
    sandbox.run("sleep 0 & wait").await?;
    let before = resident()?;
    let result = sandbox.run(format!("for ((i = 0; i < {count}; i++)); do {body} & done")).await?;
    ensure!(result.exit_code == 0, "{}", String::from_utf8_lossy(&result.stderr));
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = resident()?.saturating_sub(before) / count;
    table.note(what, format!("{:.0} KiB", each as f64 / 1024.0), "");
    Ok(())
}

/// Memory of this program's own: what processes share (their program's image) is there once for all.
fn resident() -> Result<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).context("RssAnon")?;
    let kibibytes: usize = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kibibytes << 10)
}
