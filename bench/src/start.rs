//! How long it takes to begin: a new sandbox, a fork, the command itself.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wardian::Sandbox;

use crate::table::{Table, show};

const TIMES: u32 = 200;

pub(crate) async fn measure(table: &mut Table) -> Result<()> {
    let native = average(20, || spawn(Command::new("bash").args(["-c", "echo hi"])))?;
    let start = Instant::now();
    for _ in 0..TIMES {
        let sandbox = Sandbox::builder().build().await?;
        ensure!(sandbox.run("echo hi").await?.stdout == b"hi\n");
    }
    table.compare("new sandbox and first `echo`", start.elapsed() / TIMES, native, "");

    let sandbox = Sandbox::builder().build().await?;
    let start = Instant::now();
    for _ in 0..TIMES {
        ensure!(sandbox.run("echo hi").await?.stdout == b"hi\n");
    }
    table.compare("`echo` in a sandbox that is there", start.elapsed() / TIMES, native, "");

    let start = Instant::now();
    for _ in 0..TIMES {
        drop(sandbox.fork().await?);
    }
    table.note("fork of a sandbox", show(start.elapsed() / TIMES), "");

    let start = Instant::now();
    for _ in 0..TIMES {
        ensure!(sandbox.fork().await?.run("echo hi").await?.stdout == b"hi\n");
    }
    table.note("fork of a sandbox and `echo` in it", show(start.elapsed() / TIMES), "");

    let wardian = wardian_binary()?;
    let cold = average(20, || spawn(Command::new(&wardian).args(["run", "echo hi"])))?;
    table.compare("`wardian run 'echo hi'`, whole process", cold, native, "30 ms");
    Ok(())
}

/// The command built beside this program.
fn wardian_binary() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let path = own.with_file_name("wardian");
    ensure!(path.exists(), "{} is not built: cargo build --release", path.display());
    Ok(path)
}

fn spawn(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().context("cannot start")?;
    ensure!(status.success(), "{status}");
    Ok(())
}

fn average(times: u32, mut what: impl FnMut() -> Result<()>) -> Result<Duration> {
    what()?;
    let start = Instant::now();
    for _ in 0..times {
        what()?;
    }
    Ok(start.elapsed() / times)
}
