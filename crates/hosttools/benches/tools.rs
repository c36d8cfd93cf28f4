//! What the pool adds to starting a program: `cargo xtask bench tools`. Everything is confined as the door confines it,
//! and compared with the same program started without anything, in turns, so that a busy machine is as busy for both.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use wardian_hosttools::{
    Confinement, ExecSpec, HeldDirectory, Lane, Mode as ToolsMode, PoolConfig, Required, WorkerPool,
};

const CALLS: usize = 1000;
const ABREAST: usize = 2;

#[tokio::main]
async fn main() {
    let jail = tempfile::tempdir().expect("a directory");
    let config = PoolConfig {
        worker: vec![PathBuf::from(env!("CARGO_BIN_EXE_wardian-worker"))],
        interactive: Some(ABREAST),
        ..PoolConfig::default()
    };
    let pool = WorkerPool::start(ToolsMode::Worker, &config).expect("a pool");
    let single = WorkerPool::start(ToolsMode::ChildProcess, &config).expect("a pool");
    let spec = spec(jail.path());

    println!("# Benchmarks: tools\n");
    println!("Written by `cargo xtask bench tools` on {} cores. The program is `/bin/true`.\n", cores());
    println!("| what | ours | bare spawn | added | goal |\n|---|---|---|---|---|");
    let (ours, bare) = latencies(&pool, &spec).await;
    for (name, part) in [("median", 0.5), ("99th percentile", 0.99)] {
        let (ours, bare) = (at(&ours, part), at(&bare, part));
        let goal = if part == 0.5 { "1 ms added" } else { "" };
        println!("| one call, {name} | {} | {} | {} | {goal} |", show(ours), show(bare), added(ours, bare));
    }
    let (alone, bare) = latencies(&single, &spec).await;
    let (alone, bare) = (at(&alone, 0.5), at(&bare, 0.5));
    println!(
        "| one call without a pool, median | {} | {} | {} | |",
        show(alone),
        show(bare),
        added(alone, bare)
    );
    let (ours, bare) = (rate(|| in_pool(&pool, &spec)).await, rate(bare_spawn).await);
    println!("| calls per second, {ABREAST} abreast | {ours:.0} | {bare:.0} | – | |");
    pool.shutdown().await;
}

fn spec(jail: &Path) -> ExecSpec {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = HeldDirectory::new(jail.to_owned(), open(jail, flags, Mode::empty()).expect("a directory"));
    ExecSpec {
        program: Path::new("/bin/true").canonicalize().expect("true"),
        name: "true".into(),
        args: vec![],
        cwd: held.clone(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        timeout: Duration::from_secs(30),
        max_output: 1 << 20,
        confinement: Confinement {
            jail: held,
            readable: vec![],
            writable: vec![],
            write: false,
            attributes: false,
            network: false,
            memory: 2 << 30,
            files: 256,
            processes: 256,
            file_size: 256 << 20,
            required: Required::default(),
        },
    }
}

async fn in_pool(pool: &WorkerPool, spec: &ExecSpec) {
    pool.run(spec.clone(), Lane::Interactive, "bench", None).await.expect("it runs");
}

/// As a program would without us: its output read, nothing confined.
async fn bare_spawn() {
    let mut command = tokio::process::Command::new("/bin/true");
    command.stdin(Stdio::null()).env_clear();
    command.output().await.expect("it runs");
}

async fn latencies(pool: &WorkerPool, spec: &ExecSpec) -> (Vec<Duration>, Vec<Duration>) {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let begun = Instant::now();
        in_pool(pool, spec).await;
        ours.push(begun.elapsed());
        let begun = Instant::now();
        bare_spawn().await;
        bare.push(begun.elapsed());
    }
    ours.sort();
    bare.sort();
    (ours, bare)
}

async fn rate<F: Future<Output = ()>>(call: impl Fn() -> F) -> f64 {
    let many = || async {
        for _ in 0..CALLS / ABREAST {
            call().await;
        }
    };
    let begun = Instant::now();
    tokio::join!(many(), many());
    CALLS as f64 / begun.elapsed().as_secs_f64()
}

fn at(sorted: &[Duration], part: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

fn added(ours: Duration, bare: Duration) -> String {
    format!("{:.2} ms", ours.as_secs_f64() * 1e3 - bare.as_secs_f64() * 1e3)
}

fn show(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
