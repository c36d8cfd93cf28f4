//! Benchmarks of the whole path, each row against native bash in the same run: `cargo xtask bench`.
//!
//! Figures depend on the machine; the ratios are what we promise (SPECIFICATION.md). Nothing here passes or fails.

mod kill;
mod processes;
mod shell;
mod start;
mod table;

use anyhow::Result;

use crate::table::Table;

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let mut table = Table::default();
    runtime.block_on(async {
        shell::measure(&mut table).await?;
        processes::measure(&mut table).await?;
        start::measure(&mut table).await?;
        kill::measure(&mut table).await
    })?;
    table.print();
    Ok(())
}
