//! What sandboxes cost as values: making, forking, keeping many.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use wardian::{PoolOptions, Sandbox};

use crate::peer::{self, PATIENCE};
use crate::table::{Table, faster, show};

const TIMES: u32 = 500;
/// Enough that what is tidied up once in a while has its part in the mean.
const FORKS: u32 = 20_000;
const MANY: usize = 1_000;
const IDLE: usize = 10_000;

pub(crate) async fn measure() -> Result<Table> {
    let mut table = Table::new("sandbox", &["what", "ours", "bashkit", "faster", "goal"]);
    let first = Sandbox::builder().build().await?;
    first.run("echo hi").await?;
    create(&mut table).await?;
    fork(&mut table).await?;
    many(&mut table).await?;
    idle(&mut table).await?;
    Ok(table)
}

async fn create(table: &mut Table) -> Result<()> {
    // Some are prepared in advance, as in a server; afterwards none again, or the other rows would share the processors with refilling.
    let ready = PoolOptions { min_size: 8, max_size: 64 };
    let engine = Sandbox::builder().build().await?.engine();
    engine.set_pool(ready)?;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let start = Instant::now();
    for _ in 0..TIMES {
        let sandbox = Sandbox::builder().build().await?;
        ensure!(sandbox.run("echo hi").await?.stdout == b"hi\n");
    }
    let ours = start.elapsed() / TIMES;
    engine.set_pool(PoolOptions::default())?;
    let peer = peer::numbers(&["create", &TIMES.to_string()], PATIENCE);
    let peer = peer.and_then(|all| all.get(all.len() / 2).copied()).map(Duration::from_secs_f64);
    let shown = peer.map_or_else(|| "–".to_owned(), show);
    table.push(&["create and `echo`, with a pool of 8", &show(ours), &shown, &faster(ours, peer), "0.2 ms"]);
    Ok(())
}

async fn fork(table: &mut Table) -> Result<()> {
    let sandbox = Sandbox::builder().build().await?;
    sandbox.run("for i in {1..10000}; do echo > /tmp/$i; done").await?;
    let start = Instant::now();
    for _ in 0..FORKS {
        drop(sandbox.fork().await?);
    }
    table.note("fork of a sandbox with 10,000 files", show(start.elapsed() / FORKS), "20 µs");
    Ok(())
}

async fn many(table: &mut Table) -> Result<()> {
    let sandbox = Sandbox::builder().build().await?;
    sandbox.run("x=1; f() { echo $x; }").await?;
    let before = resident()?;
    let start = Instant::now();
    let forks = sandbox.fork_many(MANY).await?;
    let kept = resident()?;
    let tasks: Vec<_> =
        forks.iter().cloned().map(|fork| tokio::spawn(async move { fork.run("f").await })).collect();
    for task in tasks {
        ensure!(task.await??.stdout == b"1\n");
    }
    table.note("1,000 forks that each run a command", show(start.elapsed()), "300 ms");
    table.note(
        "memory of a fork before it writes",
        format!("{:.1} KiB", (kept - before) as f64 / MANY as f64),
        "100 KiB",
    );
    Ok(())
}

async fn idle(table: &mut Table) -> Result<()> {
    let before = resident()?;
    let mut all = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        let sandbox = Sandbox::builder().build().await?;
        sandbox.run("echo hi").await?;
        all.push(sandbox);
    }
    let mebibytes = resident()?.saturating_sub(before) as f64 / 1024.0;
    let peer = peer::numbers(&["idle", &IDLE.to_string()], PATIENCE).and_then(|all| all.first().copied());
    let (peer, less) = match peer {
        Some(kibibytes) => {
            (format!("{:.0} MiB", kibibytes / 1024.0), format!("{:.2}x", kibibytes / 1024.0 / mebibytes))
        }
        None => ("–".to_owned(), "–".to_owned()),
    };
    let ours = format!("{mebibytes:.0} MiB");
    table.push(&["10,000 idle sandboxes that have run a command", &ours, &peer, &less, "1 GiB"]);
    Ok(())
}

/// Kibibytes of this process that are in memory.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
