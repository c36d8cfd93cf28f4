//! Benchmarks of the whole path, each row against native bash in the same run: `cargo xtask bench`.
//!
//! Figures depend on the machine; the ratios are what we promise (SPECIFICATION.md). Nothing here passes or fails.

mod fair;
mod inputs;
mod kill;
mod language;
mod net;
mod peer;
mod processes;
mod python;
mod sandbox;
mod shell;
mod start;
mod store;
mod table;
mod userland;

use anyhow::{Result, bail};

use crate::table::Table;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let suite = std::env::args().nth(1);
    if let (Some(userland::NATIVE), Some(line)) = (suite.as_deref(), std::env::args().nth(2)) {
        return userland::run_native(&line);
    }
    if suite.as_deref() == Some(net::SERVER) {
        return runtime.block_on(net::serve());
    }
    let table = match suite.as_deref() {
        None | Some("core") => runtime.block_on(core())?,
        Some("net") => runtime.block_on(net::measure())?,
        Some("python") => {
            let parts: Vec<String> = std::env::args().skip(2).collect();
            runtime.block_on(python::measure(&parts))?
        }
        Some("fair") => runtime.block_on(fair())?,
        Some("shell") => runtime.block_on(language::measure())?,
        Some("sandbox") => runtime.block_on(sandbox::measure())?,
        Some("store") => runtime.block_on(store::measure())?,
        Some("userland") => runtime.block_on(userland::measure())?,
        Some(other) => bail!("no benchmarks are called '{other}'"),
    };
    table.print();
    Ok(())
}

async fn core() -> Result<Table> {
    let mut table = Table::new("core", &["what", "ours", "native bash", "faster", "goal"]);
    shell::measure(&mut table).await?;
    processes::measure(&mut table).await?;
    start::measure(&mut table).await?;
    kill::measure(&mut table).await?;
    fair::measure(&mut table).await?;
    Ok(table)
}

/// The part of `core` that is about neighbours, on its own.
async fn fair() -> Result<Table> {
    let mut table = Table::new("fair", &["what", "ours", "native bash", "faster", "goal"]);
    kill::measure(&mut table).await?;
    fair::measure(&mut table).await?;
    Ok(table)
}
