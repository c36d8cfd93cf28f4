//! How late a deadline ends a command that never would, and how late this machine wakes a thread that merely sleeps: the
//! least that any deadline can be late, and on a shared machine most of it.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use wardian::{Run, Sandbox};

use crate::table::{Table, show};

const TIMES: usize = 100;
const SETTLING: Duration = Duration::from_millis(500);
const SPIN: &str = "while :; do :; done";

pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    for (neighbours, goal) in [(0, "10 ms"), (8, "10 ms"), (100, "50 ms")] {
        let mut others = Vec::new();
        for _ in 0..neighbours {
            let sandbox = Sandbox::builder().timeout(None).build().await?;
            let running = sandbox.clone();
            others.push((sandbox, tokio::spawn(async move { running.run(SPIN).await })));
        }
        // They are to spin, and no longer to start.
        tokio::time::sleep(SETTLING).await;
        let mut late = lateness().await?;
        late.sort();
        let (p50, p99) = (late[TIMES / 2], late[TIMES * 99 / 100]);
        let what = format!("kill lateness p50 / p99, {neighbours} spinning neighbours");
        let mut sleeps = tokio::task::spawn_blocking(sleeps).await?;
        sleeps.sort();
        let bare = format!("a plain sleep: {} / {}", show(sleeps[TIMES / 2]), show(sleeps[TIMES * 99 / 100]));
        table.push(&[&what, &format!("{} / {}", show(p50), show(p99)), &bare, "–", goal]);
        for (sandbox, task) in others {
            sandbox.cancel();
            task.await??;
        }
    }
    Ok(())
}

async fn lateness() -> Result<Vec<Duration>> {
    let sandbox = Sandbox::builder().build().await?;
    let mut late = Vec::new();
    for round in 0..TIMES {
        let timeout = timeout(round);
        let start = Instant::now();
        let result = sandbox.run_with(Run::new(SPIN).timeout(Some(timeout))).await?;
        ensure!(result.exit_code == 124, "not ended by its deadline");
        late.push(start.elapsed().saturating_sub(timeout));
    }
    Ok(late)
}

/// How late a thread of its own wakes from the same times.
fn sleeps() -> Vec<Duration> {
    let late = |round: usize| {
        let (time, start) = (timeout(round), Instant::now());
        std::thread::sleep(time);
        start.elapsed().saturating_sub(time)
    };
    (0..TIMES).map(late).collect()
}

fn timeout(round: usize) -> Duration {
    Duration::from_micros(20_000 + 137 * round as u64)
}
