//! Python: the command, the interpreter that stays, and the language; against native CPython of the same minor version
//! and, where they are installed, against pyeryx and pydantic-monty (`target/peers/python`, which `cargo xtask bench` makes).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wardian::{Limits, Sandbox};

use crate::peer::PATIENCE;
use crate::table::{Table, faster, show};

/// The programs of `bench/python`.
const PROGRAMS: &[(&str, &str)] = &[
    ("fib", include_str!("../python/fib.py")),
    ("nbody", include_str!("../python/nbody.py")),
    ("json", include_str!("../python/json_.py")),
    ("re", include_str!("../python/re_.py")),
    ("richards", include_str!("../python/richards.py")),
    ("generators", include_str!("../python/generators.py")),
    ("strings", include_str!("../python/strings.py")),
    ("dict", include_str!("../python/dict_.py")),
    ("sort", include_str!("../python/sort.py")),
];
/// Ten modules that programs often import.
const IMPORTS: &str = "import json, re, os, sys, math, datetime, collections, itertools, random, subprocess";
const SHA256: &str = "import hashlib; hashlib.sha256(bytes(100_000_000)).hexdigest()";
/// CPython's own code, where the machine's has OpenSSL's.
const OWN_SHA256: &str = "import _sha2; _sha2.sha256(bytes(100_000_000)).hexdigest()";
/// Some 50 MB of objects.
const OBJECTS: &str = "objects = [str(number) * 3 for number in range(600_000)]\nlen(objects)";
const COMMANDS: u32 = 100;
const CALLS: usize = 2_000;
const ROUNDS: usize = 3;
const FORKS: usize = 1_000;
const IDLE: usize = 100;

const PEERS: [&str; 2] = ["eryx", "monty"];

/// Measures all parts, or those named.
pub(crate) async fn measure(parts: &[String]) -> Result<Table> {
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|named| named == part);
    let native = Native::find()?;
    let about = format!(
        "\"faster\" is native's time divided by ours, in the same run. Native is CPython {}; the machine's load was {}.",
        native.version,
        load()
    );
    let columns = &["what", "ours", "native", "faster", "pyeryx", "pydantic-monty", "goal"];
    let mut table = Table::new("python", columns).about(about.leak());
    let sandbox = sandbox().await?;
    ensure!(sandbox.python("1").await?.is_ok());
    if wanted("commands") {
        commands(&mut table, &sandbox, &native).await?;
    }
    if wanted("cold") {
        cold(&mut table, &sandbox, &native).await?;
    }
    if wanted("calls") {
        calls(&mut table, &sandbox, &native).await?;
    }
    if wanted("language") {
        language(&mut table, &sandbox, &native).await?;
    }
    if wanted("digest") {
        digest(&mut table, &sandbox, &native).await?;
    }
    if wanted("idle") {
        idle(&mut table).await?;
    }
    if wanted("forks") {
        forks(&mut table).await?;
    }
    if wanted("sizes") {
        sizes(&mut table)?;
    }
    Ok(table)
}

async fn sandbox() -> Result<Sandbox> {
    let limits = Limits { memory_bytes: 2 << 30, ..Limits::default() };
    Ok(Sandbox::builder().limits(limits).timeout(None).build().await?)
}

/// A row without peers.
fn row(table: &mut Table, what: &str, ours: Duration, native: Option<Duration>, goal: &str) {
    let shown = native.map_or_else(|| "–".to_owned(), show);
    table.push(&[what, &show(ours), &shown, &faster(ours, native), "–", "–", goal]);
}

fn note(table: &mut Table, what: &str, ours: &str, goal: &str) {
    table.push(&[what, ours, "–", "–", "–", "–", goal]);
}

/// Starts that cannot use the start image: variables and options that are read when the interpreter is initialised.
async fn cold(table: &mut Table, sandbox: &Sandbox, native: &Native) -> Result<()> {
    const COLD: u32 = 20;
    for (what, variable, options) in [
        ("without the start image: `PYTHONHASHSEED=0 python3 -c 'print(1)'`", "PYTHONHASHSEED=0", ""),
        ("the same: `python3 -O -c 'print(1)'`", "", "-O"),
        ("the same: `python3 -S -c 'print(1)'`", "", "-S"),
        ("the same: `python3 -i -c 'print(1)'`, with an empty input", "", "-i"),
    ] {
        let command = format!("{variable} python3 {options} -c 'print(1)' < /dev/null");
        sandbox.run(command.as_str()).await?;
        let start = Instant::now();
        let result = sandbox.run(format!("for ((i=0;i<{COLD};i++)); do {command}; done")).await?;
        let ours = start.elapsed() / COLD;
        ensure!(result.exit_code == 0, "{what}: {}", String::from_utf8_lossy(&result.stderr));
        ensure!(result.stdout == "1\n".repeat(COLD as usize).as_bytes(), "{what}: {result:?}");
        let options = options.split_whitespace().chain(["-c", "print(1)"]);
        let mut theirs = Command::new(&native.python);
        theirs.args(options).envs(variable.split_once('=')).stdin(std::process::Stdio::null());
        let start = Instant::now();
        for _ in 0..10 {
            ensure!(theirs.output()?.status.success(), "{what}: natively");
        }
        row(table, what, ours, Some(start.elapsed() / 10), "60 ms");
    }
    Ok(())
}

async fn commands(table: &mut Table, sandbox: &Sandbox, native: &Native) -> Result<()> {
    let many = format!("{IMPORTS}; print(1)");
    for (what, code, goal) in [
        ("`python3 -c 'print(1)'` from the shell", "print(1)", "3 ms"),
        ("the same with ten common imports", &many, "4 ms"),
    ] {
        let script = format!("for ((i=0;i<{COMMANDS};i++)); do python3 -c '{code}'; done");
        sandbox.run(format!("python3 -c '{code}'")).await?;
        let start = Instant::now();
        let result = sandbox.run(script).await?;
        let ours = start.elapsed() / COMMANDS;
        ensure!(result.exit_code == 0, "{}", String::from_utf8_lossy(&result.stderr));
        let start = Instant::now();
        for _ in 0..10 {
            native.python(&["-c", code])?;
        }
        row(table, what, ours, Some(start.elapsed() / 10), goal);
    }
    Ok(())
}

async fn calls(table: &mut Table, sandbox: &Sandbox, native: &Native) -> Result<()> {
    let mut ours = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let start = Instant::now();
        let result = sandbox.python("x = 1 + 1\nx").await?;
        ours.push(start.elapsed());
        ensure!(result.value.is_some_and(|value| value.repr == "2"));
    }
    ours.sort();
    let middle = |mut all: Vec<Duration>| {
        all.sort();
        all.get(all.len() / 2).copied()
    };
    let peers = PEERS.map(|peer| native.measured(peer, &["call", "200"]).and_then(middle));
    let [eryx, monty] = peers.map(|peer| peer.map_or_else(|| "–".to_owned(), show));
    let what = "a call of the interpreter that stays, median";
    table.push(&[what, &show(ours[CALLS / 2]), "–", "–", &eryx, &monty, "150 µs"]);
    Ok(())
}

async fn language(table: &mut Table, sandbox: &Sandbox, native: &Native) -> Result<()> {
    let mut ratios = Vec::new();
    for (name, program) in PROGRAMS {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), program)?;
        let words = ["run", file.path().to_str().context("a path")?, "3"];
        let best = |all: Vec<Duration>| all.into_iter().min();
        let mut ours = Duration::MAX;
        for _ in 0..ROUNDS {
            // Without what the program before left in memory.
            let fresh = sandbox.fork().await?;
            let start = Instant::now();
            let result = fresh.python(*program).await?;
            ours = ours.min(start.elapsed());
            ensure!(result.is_ok(), "{name}: {:?}", result.error);
        }
        let theirs = native.measured("native", &words).and_then(best).context("native CPython runs it")?;
        let peers = PEERS.map(|peer| native.measured(peer, &words).and_then(best));
        let [eryx, monty] = peers.map(|peer| peer.map_or_else(|| "–".to_owned(), show));
        ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
        let over = faster(ours, Some(theirs));
        table.push(&[name, &show(ours), &show(theirs), &over, &eryx, &monty, "5x slower at most"]);
    }
    let mean = (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp();
    note(table, "geometric mean of these", &format!("{mean:.2}x slower"), "2.5x slower");
    Ok(())
}

async fn digest(table: &mut Table, sandbox: &Sandbox, native: &Native) -> Result<()> {
    let mut ours = Duration::MAX;
    for _ in 0..2 {
        let start = Instant::now();
        let result = sandbox.python(SHA256).await?;
        ours = ours.min(start.elapsed());
        ensure!(result.is_ok(), "{:?}", result.error);
    }
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), OWN_SHA256)?;
    let words = ["run", file.path().to_str().context("a path")?, "2"];
    let theirs = native.measured("native", &words).and_then(|all| all.into_iter().min());
    row(table, "SHA-256 of 100 MB, against CPython's own code", ours, theirs, "3x slower");
    Ok(())
}

async fn idle(table: &mut Table) -> Result<()> {
    let mut all = Vec::with_capacity(IDLE);
    let before = private()?;
    for _ in 0..IDLE {
        let sandbox = sandbox().await?;
        ensure!(sandbox.python("x = 1").await?.is_ok());
        all.push(sandbox);
    }
    let each = private()?.saturating_sub(before) as f64 / IDLE as f64 / 1024.0;
    note(table, "private memory of an idle interpreter", &format!("{each:.2} MiB"), "2 MB");
    Ok(())
}

async fn forks(table: &mut Table) -> Result<()> {
    let sandbox = sandbox().await?;
    let result = sandbox.python(OBJECTS).await?;
    ensure!(result.is_ok(), "{:?}", result.error);
    ensure!(sandbox.python("len(objects)").await?.is_ok());
    let start = Instant::now();
    let forks = sandbox.fork_many(FORKS).await?;
    let tasks: Vec<_> = forks
        .iter()
        .cloned()
        .map(|fork| tokio::spawn(async move { fork.python("len(objects) + 1").await }))
        .collect();
    for task in tasks {
        let value = task.await??.value.context("a value")?;
        ensure!(value.repr == "600001");
    }
    let what = "1,000 forks of an interpreter with 50 MB of objects, each with a call";
    row(table, what, start.elapsed(), None, "800 ms");
    Ok(())
}

fn sizes(table: &mut Table) -> Result<()> {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guests/dist");
    let size = |names: &[&str]| -> Result<String> {
        let mut bytes = 0;
        for name in names {
            bytes += std::fs::metadata(dist.join(name))?.len();
        }
        Ok(format!("{:.2} MB", bytes as f64 / 1e6))
    };
    note(table, "interpreter and standard library", &size(&["python3.wasm.zst", "python3.lib"])?, "10 MB");
    note(table, "ready packages", &size(&["python3-packages.lib"])?, "6 MB");
    note(table, "files of numpy and pandas", &size(&["python3-science.lib"])?, "5 MB");
    Ok(())
}

/// CPython of this machine.
struct Native {
    python: PathBuf,
    /// One that has the peers.
    with_peers: Option<PathBuf>,
    version: String,
}

impl Native {
    /// The first of 3.13, or else `python3`.
    fn find() -> Result<Native> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let with_peers = Some(root.join("target/peers/python/bin/python3")).filter(|path| path.exists());
        let built = root.join("guests/target/python/build-native/python");
        let mut candidates = vec![built];
        candidates.extend(with_peers.clone());
        candidates.extend(["python3.13", "python3"].map(PathBuf::from));
        let version = |python: &Path| {
            let asked = ["-c", "import sys; print(*sys.version_info[:3], sep='.')"];
            let output = Command::new(python).args(asked).output().ok()?;
            let printed = String::from_utf8(output.stdout).ok()?.trim().to_owned();
            (output.status.success() && !printed.is_empty()).then_some(printed)
        };
        let found: Vec<(PathBuf, String)> =
            candidates.into_iter().filter_map(|python| version(&python).map(|is| (python, is))).collect();
        let same = found.iter().find(|(_, version)| version.starts_with("3.13"));
        let (python, version) = same.or(found.last()).context("there is no python3 to compare with")?.clone();
        Ok(Native { python, with_peers, version })
    }

    fn python(&self, words: &[&str]) -> Result<()> {
        let output = Command::new(&self.python).args(words).output()?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    /// What `bench/peers/python.py` measures of a peer; nothing where it is not installed, or cannot do it.
    fn measured(&self, peer: &str, words: &[&str]) -> Option<Vec<Duration>> {
        let python = if peer == "native" { Some(&self.python) } else { self.with_peers.as_ref() }?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/python.py");
        let mut command = Command::new("timeout");
        command.arg((PATIENCE * 4).as_secs().to_string()).arg(python).arg(script).arg(peer).args(words);
        let output = command.output().ok().filter(|output| output.status.success())?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        Some(printed.lines().filter_map(|line| line.parse().ok()).map(Duration::from_secs_f64).collect())
    }
}

/// Kibibytes of memory that are this process's alone.
fn private() -> Result<u64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup")?;
    let field = |name: &str| {
        let line = rollup.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0");
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0)
    };
    Ok(field("Private_Dirty:") + field("Private_Clean:"))
}

/// The load of the machine when the benchmark begins.
fn load() -> String {
    let loads = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or("unknown").to_owned()
}
