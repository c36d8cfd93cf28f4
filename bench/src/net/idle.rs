//! What connections cost on which nothing moves.

use std::time::Duration;

use anyhow::{Result, ensure};
use wardian::Sandbox;

use crate::table::Table;

const CONNECTIONS: usize = 1_000;

/// Measures this process: the server is another one.
pub(super) async fn measure(table: &mut Table, port: u16) -> Result<()> {
    let sandbox = super::sandbox(port).await?;
    super::said(
        &sandbox,
        &format!("python3 /tmp/idle.py server.test {port} {CONNECTIONS} > /tmp/out 2>&1 &"),
    )
    .await?;
    until(&sandbox, "/tmp/started").await?;
    let before = resident()?;
    sandbox.write_file("/tmp/go", "").await?;
    until(&sandbox, "/tmp/connected").await?;
    // Whatever was in progress has come to rest.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mebibytes = resident()?.saturating_sub(before) as f64 / 1024.0;
    sandbox.write_file("/tmp/end", "").await?;
    let what = "1,000 idle connections through the gateway";
    table.push(&[what, &format!("{mebibytes:.1} MiB"), "–", "–", "20 MB"]);
    Ok(())
}

async fn until(sandbox: &Sandbox, path: &str) -> Result<()> {
    for _ in 0..600 {
        if sandbox.read_file(path).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let said = sandbox.read_file("/tmp/out").await?;
    ensure!(false, "it does not get there: {}", String::from_utf8_lossy(&said));
    Ok(())
}

/// Kibibytes of this process that are in memory.
fn resident() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}
