//! What the gateway and its pool add to starting a program: `cargo xtask bench tools`. Everything is confined as the gateway
//! confines it, and compared with the same program started without anything, in turns, so that a busy machine is as busy
//! for both.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use wardian_audit::{AuditLog, Rotation};
use wardian_hosttools::{
    Config, Confinement, ExecSpec, HeldDirectory, Lane, Mode as ToolsMode, Policy, PoolConfig, Request,
    Required, ToolSandbox, WorkerPool,
};

const CALLS: usize = 1000;
const ABREAST: usize = 2;
/// Calls per second are measured in so many turns.
const ROUNDS: usize = 10;

#[tokio::main]
async fn main() {
    let place = tempfile::tempdir().expect("a directory");
    let jail = place.path().join("jail");
    std::fs::create_dir(&jail).expect("a jail");
    let config = PoolConfig {
        worker: vec![PathBuf::from(env!("CARGO_BIN_EXE_wardian-worker"))],
        interactive: Some(ABREAST),
        ..PoolConfig::default()
    };
    let door = door(&jail, place.path(), &config);
    let pool = WorkerPool::start(ToolsMode::Worker, &config).expect("a pool");
    let single = WorkerPool::start(ToolsMode::ChildProcess, &config).expect("a pool");
    let spec = spec(&jail);

    println!("# Benchmarks: tools\n");
    println!("Written by `cargo xtask bench tools` on {} cores. The program is `/bin/true`.\n", cores());
    println!("| what | ours | bare spawn | added | times | goal |\n|---|---|---|---|---|---|");
    let (ours, bare) = latencies(|| in_pool(&pool, &spec)).await;
    row("one call in the pool, median", at(&ours, 0.5), at(&bare, 0.5), "1 ms added");
    row("one call in the pool, 99th percentile", at(&ours, 0.99), at(&bare, 0.99), "");
    let (ours, bare) = latencies(|| through(&door)).await;
    row("one call through all nine stages, two records on disk, median", at(&ours, 0.5), at(&bare, 0.5), "");
    let (ours, bare) = latencies(|| in_pool(&single, &spec)).await;
    row("one call without a pool, median", at(&ours, 0.5), at(&bare, 0.5), "");
    let (ours, bare) = rates(|| in_pool(&pool, &spec)).await;
    println!("| calls per second, {ABREAST} abreast | {ours:.0} | {bare:.0} | – | {:.2} | |", ours / bare);
    pool.shutdown().await;
    door.shutdown().await;
}

/// A gateway that knows one program, with a log in a file.
fn door(jail: &Path, place: &Path, pool: &PoolConfig) -> ToolSandbox {
    let config =
        Config { enabled: true, jail: Some(jail.to_owned()), pool: pool.clone(), ..Config::default() };
    let policy = Policy::parse("[programs.true]").expect("a policy");
    let log = AuditLog::to_file(place.join("tools.jsonl"), Rotation::default()).expect("a log");
    ToolSandbox::with(config, policy, log).expect("a door")
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
            children: false,
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

async fn through(door: &ToolSandbox) {
    door.run(Request::line("true").session("bench")).await.expect("it runs");
}

/// How long each call took, and each bare spawn between two of them; both in order.
async fn latencies<F: Future<Output = ()>>(call: impl Fn() -> F) -> (Vec<Duration>, Vec<Duration>) {
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..CALLS {
        let begun = Instant::now();
        call().await;
        ours.push(begun.elapsed());
        let begun = Instant::now();
        bare_spawn().await;
        bare.push(begun.elapsed());
    }
    ours.sort();
    bare.sort();
    (ours, bare)
}

/// Calls per second, and bare spawns, in turns.
async fn rates<F: Future<Output = ()>>(call: impl Fn() -> F) -> (f64, f64) {
    let (mut ours, mut bare) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..ROUNDS {
        ours += abreast(&call).await;
        bare += abreast(&bare_spawn).await;
    }
    (CALLS as f64 / ours.as_secs_f64(), CALLS as f64 / bare.as_secs_f64())
}

/// How long one round takes.
async fn abreast<F: Future<Output = ()>>(call: &impl Fn() -> F) -> Duration {
    let many = || async {
        for _ in 0..CALLS / ABREAST / ROUNDS {
            call().await;
        }
    };
    let begun = Instant::now();
    tokio::join!(many(), many());
    begun.elapsed()
}

fn row(what: &str, ours: Duration, bare: Duration, goal: &str) {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    let (ours, bare) = (ms(ours), ms(bare));
    println!(
        "| {what} | {ours:.2} ms | {bare:.2} ms | {:.2} ms | {:.2} | {goal} |",
        ours - bare,
        ours / bare
    );
}

fn at(sorted: &[Duration], part: f64) -> Duration {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
