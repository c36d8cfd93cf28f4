//! How much a sandbox notices of its neighbours: a short pipeline alone, and beside sandboxes that never rest.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tokio::task::JoinHandle;
use wardian::{Limits, Run, RunResult, Sandbox};

use crate::table::{Table, show};

const TIMES: usize = 100;
const SETTLING: Duration = Duration::from_millis(300);
const SPIN: &str = "while :; do :; done";
const PIPELINE: &str = "x=$(cat f | tr a b)";
const DEADLINE: Duration = Duration::from_millis(20);

/// Sandboxes at work until they are told to stop.
struct Crowd(Vec<(Sandbox, JoinHandle<Result<RunResult, wardian::Error>>)>);

impl Crowd {
    async fn start(sandboxes: usize, script: &str) -> Result<Crowd> {
        let mut crowd = Vec::new();
        for _ in 0..sandboxes {
            let limits = Limits { processes: 128, memory_bytes: 1 << 30, ..Limits::default() };
            let sandbox = Sandbox::builder().limits(limits).timeout(None).build().await?;
            let (running, script) = (sandbox.clone(), script.to_owned());
            crowd.push((sandbox, tokio::spawn(async move { running.run(script).await })));
        }
        Ok(Crowd(crowd))
    }

    async fn stop(self) -> Result<()> {
        for (sandbox, task) in self.0 {
            sandbox.cancel();
            task.await??;
        }
        Ok(())
    }
}

pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for busy in [2, 8, 32] {
        let share = ((busy + 1) as f64 / cores as f64).max(1.0);
        let what = format!("a pipeline beside {busy} busy sandboxes");
        beside(table, &what, busy, SPIN, 2.0 * share).await?;
    }
    let many = format!("for i in {{1..60}}; do {SPIN} & done; wait");
    beside(table, "a pipeline beside a sandbox with 60 busy processes", 1, &many, 3.0).await?;
    starting(table).await?;
    storm(table).await
}

/// The median of a pipeline beside a crowd, as a ratio to the same alone.
async fn beside(table: &mut Table, what: &str, sandboxes: usize, script: &str, goal: f64) -> Result<()> {
    let sandbox = Sandbox::builder().build().await?;
    sandbox.run("echo banana > f").await?;
    let alone = pipelines(&sandbox).await?;
    let crowd = Crowd::start(sandboxes, script).await?;
    tokio::time::sleep(SETTLING).await;
    let beside = pipelines(&sandbox).await?;
    crowd.stop().await?;
    let ratio = beside[TIMES / 2].as_secs_f64() / alone[TIMES / 2].as_secs_f64();
    let figures = format!(
        "{ratio:.1}x: {} instead of {} (longest {} instead of {})",
        show(beside[TIMES / 2]),
        show(alone[TIMES / 2]),
        show(beside[TIMES - 1]),
        show(alone[TIMES - 1])
    );
    table.note(what, figures, &format!("{goal:.1}x"));
    Ok(())
}

async fn pipelines(sandbox: &Sandbox) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for _ in 0..TIMES {
        let start = Instant::now();
        ensure!(sandbox.run(PIPELINE).await?.exit_code == 0, "the pipeline failed");
        times.push(start.elapsed());
    }
    times.sort();
    Ok(times)
}

/// How late deadlines are while others are being started, a hundred at a time.
async fn starting(table: &mut Table) -> Result<()> {
    let sandbox = Sandbox::builder().build().await?;
    let mut late = Vec::new();
    for _ in 0..20 {
        let crowd = tokio::spawn(Crowd::start(100, "echo hi; sleep 1000"));
        for _ in 0..3 {
            let start = Instant::now();
            let result = sandbox.run_with(Run::new(SPIN).timeout(Some(DEADLINE))).await?;
            ensure!(result.exit_code == 124, "not ended by its deadline");
            late.push(start.elapsed().saturating_sub(DEADLINE));
        }
        crowd.await??.stop().await?;
    }
    late.sort();
    let (p50, p99) = (late[late.len() / 2], late[late.len() * 99 / 100]);
    table.note(
        "kill lateness p50 / p99, 100 neighbours being started",
        format!("{} / {}", show(p50), show(p99)),
        "10 ms",
    );
    Ok(())
}

/// A short command while four hundred forks of a large shell each run one, which copies part of it.
async fn storm(table: &mut Table) -> Result<()> {
    let sandbox = Sandbox::builder().build().await?;
    let large = Sandbox::builder().build().await?;
    ensure!(large.run("printf -v x '%4000000s' y").await?.exit_code == 0, "no large shell");
    for (what, script) in [("a short one", "y=1; echo $y"), ("one that copies 4 MB", "x=b$x")] {
        let alone = echoes(&sandbox, |count| count < TIMES).await?;
        let forks = large.fork_many(400).await?;
        let tasks: Vec<_> = forks
            .into_iter()
            .map(|fork| tokio::spawn(async move { fork.run(script).await.map(drop) }))
            .collect();
        let beside = echoes(&sandbox, |_| !tasks.iter().all(JoinHandle::is_finished)).await?;
        for task in tasks {
            task.await??;
        }
        let middle = |times: &[Duration]| times[times.len() / 2];
        table.note(
            &format!("`echo` beside 400 forks of a 4 MB shell, each running {what}"),
            format!(
                "{} instead of {} (longest {} instead of {})",
                show(middle(&beside)),
                show(middle(&alone)),
                show(beside[beside.len() - 1]),
                show(alone[alone.len() - 1])
            ),
            "",
        );
    }
    Ok(())
}

/// How long a command takes, measured again for as long as `goes_on` says.
async fn echoes(sandbox: &Sandbox, goes_on: impl Fn(usize) -> bool) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        ensure!(sandbox.run("echo hi").await?.exit_code == 0, "echo failed");
        times.push(start.elapsed());
        if !goes_on(times.len()) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    times.sort();
    Ok(times)
}
