//! `wardian doctor`: whether everything works on this machine, found out by trying it.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;
use wardian::{RunResult, Sandbox};
use wardian_hosttools::{Config, State, doctor};

use crate::out::say;

/// Check what works on this machine, by trying it; exits with 1 if something is broken.
#[derive(clap::Args)]
#[command(after_help = "\
Each line is a thing that was tried: ok, limited (Wardian works, with less), or broken.
Compiling the programs first takes a while on a new machine: see wardian prepare.")]
pub(crate) struct Arguments {
    /// Print a JSON object instead of lines.
    #[arg(long)]
    json: bool,
}

/// How it went.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Ok,
    /// Something is missing that Wardian does without.
    Limited,
    Broken,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Outcome::Ok => "ok",
            Outcome::Limited => "limited",
            Outcome::Broken => "broken",
        })
    }
}

/// What was tried, and what came of it.
struct Row {
    what: String,
    outcome: Outcome,
    detail: String,
}

impl Row {
    fn new(what: &str, outcome: Outcome, detail: impl Into<String>) -> Row {
        Row { what: what.to_owned(), outcome, detail: detail.into() }
    }

    /// What was tried worked, or failed with a reason.
    fn of(what: &str, tried: Result<String>) -> Row {
        match tried {
            Ok(detail) => Row::new(what, Outcome::Ok, detail),
            Err(error) => Row::new(what, Outcome::Broken, format!("{error:#}")),
        }
    }
}

/// Tries everything; returns the exit code.
pub(crate) fn main(arguments: Arguments) -> Result<u8> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let rows = runtime.block_on(examine());
    if arguments.json {
        let checks = rows
            .iter()
            .map(|row| json!({ "name": row.what, "outcome": row.outcome.to_string(), "detail": row.detail }));
        say!("{}", json!({ "version": env!("CARGO_PKG_VERSION"), "checks": checks.collect::<Vec<_>>() }))?;
    } else {
        for Row { what, outcome, detail } in &rows {
            say!("{what:24} {outcome:8} {detail}")?;
        }
    }
    Ok(u8::from(rows.iter().any(|row| row.outcome == Outcome::Broken)))
}

async fn examine() -> Vec<Row> {
    let mut rows = vec![machine(), descriptors(), mappings()];
    rows.push(Row::of("programs", programs().await));
    match sandbox().await {
        Ok((sandbox, took)) => {
            rows.push(Row::new("sandbox", Outcome::Ok, format!("created, and ran a command, in {took:.1?}")));
            rows.push(Row::of("timeout", timeout(&sandbox).await));
            rows.push(Row::of("fork", fork(&sandbox).await));
            rows.push(Row::of("python", python(&sandbox).await));
            rows.push(Row::of("own programs", own_program(&sandbox).await));
        }
        Err(error) => rows.push(Row::new("sandbox", Outcome::Broken, format!("{error:#}"))),
    }
    rows.push(store());
    rows.extend(host_tools().await);
    rows
}

fn first_line(path: &str) -> String {
    fs::read_to_string(path).ok().and_then(|text| Some(text.lines().next()?.to_owned())).unwrap_or_default()
}

fn machine() -> Row {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let release = first_line("/proc/sys/kernel/osrelease");
    let memory = first_line("/proc/meminfo");
    let kib: u64 = memory.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
    let detail = format!("Linux {release}, {cpus} processors, {} MiB of memory", kib >> 10);
    Row::new("machine", Outcome::Ok, detail)
}

/// A server needs a descriptor for each client, and some for what its sandboxes keep in memory files.
fn descriptors() -> Row {
    const FEW: u64 = 4096;
    match nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE) {
        Ok((_, hard)) if hard < FEW => {
            let detail = format!("{hard} open files: a server holds fewer clients (ulimit -Hn)");
            Row::new("open files", Outcome::Limited, detail)
        }
        Ok((_, hard)) => Row::new("open files", Outcome::Ok, format!("at most {hard}")),
        Err(error) => Row::new("open files", Outcome::Broken, error.to_string()),
    }
}

/// Each running process of a sandbox has a few mappings.
fn mappings() -> Row {
    const USUAL: u64 = 65_530;
    match first_line("/proc/sys/vm/max_map_count").parse::<u64>() {
        Ok(count) if count < USUAL => {
            let detail = format!("{count}: fewer processes run at once (vm.max_map_count)");
            Row::new("mappings", Outcome::Limited, detail)
        }
        Ok(count) => Row::new("mappings", Outcome::Ok, format!("at most {count}")),
        Err(_) => Row::new("mappings", Outcome::Limited, "/proc/sys/vm/max_map_count cannot be read"),
    }
}

/// Compiles what is missing.
async fn programs() -> Result<String> {
    let names = wardian::program_names().len();
    let compiled = tokio::task::spawn_blocking(wardian::compiled_programs).await??;
    Ok(match names - compiled {
        0 => format!("all {names} are compiled for this machine"),
        missing => {
            format!("{compiled} of {names} are compiled, {missing} will be when first used (wardian prepare)")
        }
    })
}

async fn sandbox() -> Result<(Sandbox, Duration)> {
    let begun = Instant::now();
    let sandbox = Sandbox::builder().build().await?;
    expect(&sandbox.run("echo ready | cat").await?, "ready\n")?;
    Ok((sandbox, begun.elapsed()))
}

fn expect(result: &RunResult, output: &str) -> Result<()> {
    let (stdout, stderr) = (String::from_utf8_lossy(&result.stdout), String::from_utf8_lossy(&result.stderr));
    ensure!(
        result.exit_code == 0 && stdout == output,
        "exit code {}: {}",
        result.exit_code,
        stderr.trim_end()
    );
    Ok(())
}

async fn timeout(sandbox: &Sandbox) -> Result<String> {
    let limit = Duration::from_millis(100);
    let begun = Instant::now();
    let result = sandbox.run_with(wardian::Run::new("while :; do :; done").timeout(Some(limit))).await?;
    ensure!(result.exit_code == 124, "an endless loop ended with {}", result.exit_code);
    Ok(format!("an endless loop ended {:.1?} after its time", begun.elapsed().saturating_sub(limit)))
}

async fn fork(sandbox: &Sandbox) -> Result<String> {
    sandbox.run("x=1").await?;
    let begun = Instant::now();
    let fork = sandbox.fork().await?;
    let took = begun.elapsed();
    expect(&fork.run("x=$((x + 1)); echo $x").await?, "2\n")?;
    expect(&sandbox.run("echo $x").await?, "1\n")?;
    Ok(format!("a running session was cloned in {took:.1?}"))
}

async fn python(sandbox: &Sandbox) -> Result<String> {
    let script = "python3 -c 'import numpy, sys; print(int(numpy.arange(4).sum()), sys.version.split()[0])'";
    let result = sandbox.run(script).await?;
    let stdout = String::from_utf8_lossy(&result.stdout).into_owned();
    let version = stdout.strip_prefix("6 ").map(str::trim_end);
    match version {
        Some(version) if result.exit_code == 0 => Ok(format!("CPython {version} with numpy")),
        _ => anyhow::bail!("{}", String::from_utf8_lossy(&result.stderr).trim_end()),
    }
}

/// `(module (func (export "_start")) (memory (export "memory") 1))`
const SMALLEST: &[u8] = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x02\x01\0\x05\x03\x01\0\x01\
\x07\x13\x02\x06_start\0\0\x06memory\x02\0\x0a\x04\x01\x02\0\x0b";

/// A program that users bring is compiled in a sealed process, which must be able to start.
async fn own_program(sandbox: &Sandbox) -> Result<String> {
    sandbox.write_file("/tmp/smallest", SMALLEST).await?;
    expect(&sandbox.run("chmod +x /tmp/smallest && /tmp/smallest && echo ran").await?, "ran\n")?;
    Ok("a WebAssembly file was compiled in a sealed process, and ran".to_owned())
}

/// Where named sandboxes and journals are kept must be this user's own.
fn store() -> Row {
    match crate::state::state_directory() {
        Some(directory) => {
            Row::new("saved sandboxes", Outcome::Ok, directory.join("store").display().to_string())
        }
        None => Row::new("saved sandboxes", Outcome::Limited, "no directory: set WARDIAN_STORE, or HOME"),
    }
}

/// What confines native programs; the same mechanisms seal the process that compiles users' programs.
async fn host_tools() -> Vec<Row> {
    match doctor(&Config::default()).await {
        Ok(checks) => checks
            .iter()
            .map(|check| {
                let outcome = if check.state == State::On { Outcome::Ok } else { Outcome::Limited };
                Row::new(&format!("host tools: {}", check.name), outcome, check.detail)
            })
            .collect(),
        Err(error) => vec![Row::new("host tools", Outcome::Limited, format!("{error}"))],
    }
}
