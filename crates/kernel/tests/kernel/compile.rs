//! Programs that users bring are compiled in a process of their own, which ends with the command that wants it.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};
use wardian_kernel::{
    CompileBudget, Kernel, KernelConfig, Limits, Machine, ProgramSource, Rules, Start, Status,
};
use wardian_vfs::Content;

use crate::support::{Done, Programs, finish, put};

/// A kernel of one's own: what it compiles is not in another test's cache, and its helpers are told apart by time.
struct Rig {
    kernel: Kernel,
    programs: Programs,
}

impl Rig {
    fn new() -> Rig {
        Rig::with(CompileBudget::default())
    }

    fn with(budget: CompileBudget) -> Rig {
        let artifacts = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("artifacts"));
        let config = KernelConfig { artifacts, compile_budget: Some(budget), ..KernelConfig::default() };
        let kernel = Kernel::new(config).expect("a kernel starts");
        let programs = Programs::load(&kernel);
        Rig { kernel, programs }
    }

    fn machine(&self) -> Arc<Machine> {
        Machine::new(&self.kernel, self.programs.tree(&self.kernel), Limits::default())
    }

    fn relative(&self, rules: &Rules) -> Arc<Machine> {
        let tree = self.programs.tree(&self.kernel);
        Machine::with_rules(&self.kernel, tree, Limits::default(), rules.clone())
    }
}

/// A program that exits with 7. `salt` makes it another one.
fn small(salt: usize) -> Vec<u8> {
    let text = format!(
        r#"(module (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
             (memory (export "memory") 1)
             (data (i32.const 0) "{salt}")
             (func (export "_start") (call $exit (i32.const 7))))"#
    );
    wat::parse_str(&text).expect("a module")
}

/// One function of so many blocks, each of which sets a local from another by its own way: what a compiler must keep
/// apart grows with the square of its size.
fn bomb(blocks: usize) -> Vec<u8> {
    let locals = 400;
    let mut text = String::from("(module (memory (export \"memory\") 1) (func (export \"_start\") (local");
    text.push_str(&" i32".repeat(locals));
    text.push_str(")\n");
    for at in 0..blocks {
        let (to, from, by) = (at * 7 % locals, at * 13 % locals, at * 31 % locals);
        let _ = writeln!(
            text,
            "(block (loop (br_if 1 (i32.load (local.get {from}))) \
             (local.set {to} (i32.add (local.get {from}) (local.get {by}))) (br_if 0 (local.get {to}))))"
        );
    }
    text.push_str("))");
    wat::parse_str(&text).expect("a module")
}

/// Takes far longer to compile than any test waits.
fn large_bomb() -> Vec<u8> {
    bomb(60_000)
}

/// The compilers that this process has started and not yet waited for: number and resident bytes.
///
/// Tests of one process run at the same time, so a test that counts takes its turn.
fn helpers() -> Vec<(u32, u64)> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter_map(|process| {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.split_whitespace().next().map(str::to_owned)
            };
            (field("PPid:")? == me).then_some(())?;
            let name = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
            // One that has ended has no words left.
            (name.is_empty() || name.starts_with(b"wardian-compiler")).then_some(())?;
            let resident = field("VmRSS:").and_then(|size| size.parse::<u64>().ok()).unwrap_or(0);
            Some((process, resident << 10))
        })
        .collect()
}

/// Those that are not paused.
fn at_work() -> usize {
    let is_paused = |process: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        status.lines().any(|line| line.starts_with("State:\tT"))
    };
    helpers().iter().filter(|(process, _)| !is_paused(process)).count()
}

static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(120);
    while !holds() {
        assert!(Instant::now() < patience, "{what} did not come");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn none_left() {
    until("the end of all compilers", || helpers().is_empty()).await;
}

async fn run_at(machine: &Arc<Machine>, path: &str) -> Done {
    finish(machine, Start::new(path, &[])).await
}

#[tokio::test]
async fn a_program_of_a_users_own_runs_and_is_compiled_once() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let machine = rig.machine();
    put(&machine, b"/tmp/own", &small(0)).await;
    assert_eq!(run_at(&machine, "/tmp/own").await.status, Status::Exited(7));
    // From here on no helper is started: a thread that looks all the time sees none.
    let stop = Arc::new(AtomicBool::new(false));
    let watcher = {
        let stop = stop.clone();
        std::thread::spawn(move || {
            let mut seen = 0;
            while !stop.load(Ordering::Relaxed) {
                seen = seen.max(helpers().len());
            }
            seen
        })
    };
    for _ in 0..20 {
        assert_eq!(run_at(&machine, "/tmp/own").await.status, Status::Exited(7));
    }
    // The same bytes in another file, and in a sandbox of the same kernel.
    put(&machine, b"/tmp/copy", &small(0)).await;
    assert_eq!(run_at(&machine, "/tmp/copy").await.status, Status::Exited(7));
    stop.store(true, Ordering::Relaxed);
    assert_eq!(watcher.join().expect("no panic"), 0);
}

#[tokio::test]
async fn a_refused_module_gives_a_reason() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let machine = rig.machine();
    put(&machine, b"/tmp/nonsense", b"\0asm\x01\0\0\0nonsense").await;
    let done = run_at(&machine, "/tmp/nonsense").await;
    assert_eq!(done.status, Status::Exited(126));
    assert!(done.stderr.starts_with("/tmp/nonsense: cannot run: "), "{}", done.stderr);
    let wanting = wat::parse_str("(module (import \"elsewhere\" \"f\" (func)) (func (export \"_start\")))")
        .expect("a module");
    put(&machine, b"/tmp/wanting", &wanting).await;
    let done = run_at(&machine, "/tmp/wanting").await;
    assert!(done.stderr.contains("elsewhere"), "{}", done.stderr);
    assert_eq!(done.status, Status::Exited(126));
}

#[tokio::test]
async fn a_bomb_ends_at_its_budget() {
    let _turn = TURN.lock().await;
    let budget = CompileBudget { seconds: 1, ..CompileBudget::default() };
    let rig = Rig::with(budget);
    let machine = rig.machine();
    put(&machine, b"/tmp/bomb", &large_bomb()).await;
    let done = run_at(&machine, "/tmp/bomb").await;
    assert_eq!((done.status, done.limit), (Status::Exited(126), Some("compile")), "{done:?}");
    assert!(done.stderr.contains("1 s of processor time"), "{}", done.stderr);
    let rig = Rig::with(CompileBudget { memory: 400 << 20, ..CompileBudget::default() });
    let machine = rig.machine();
    put(&machine, b"/tmp/bomb", &large_bomb()).await;
    let done = run_at(&machine, "/tmp/bomb").await;
    assert_eq!((done.status, done.limit), (Status::Exited(126), Some("compile")), "{done:?}");
    assert!(done.stderr.contains("400 MiB of memory"), "{}", done.stderr);
    assert_eq!(helpers(), []);
}

#[tokio::test]
async fn a_compile_bomb_ends_with_its_command() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let (machine, neighbour) = (rig.machine(), rig.machine());
    put(&machine, b"/tmp/bomb", &large_bomb()).await;
    put(&neighbour, b"/tmp/own", &small(1)).await;
    let mut start = Box::pin(machine.start(Start::new("/tmp/bomb", &[])));
    let busy = || helpers().iter().any(|(_, resident)| *resident > 64 << 20);
    tokio::select! {
        _ = &mut start => panic!("it cannot be compiled in that time"),
        () = until("a compiler at work", busy) => {}
    }
    // A neighbour's program is compiled beside it, and runs.
    assert_eq!(run_at(&neighbour, "/tmp/own").await.status, Status::Exited(7));
    drop(start);
    machine.kill_all();
    none_left().await;
}

#[tokio::test]
async fn wherever_a_command_is_killed_no_compiler_is_left() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let machine = rig.machine();
    put(&machine, b"/tmp/bomb", &large_bomb()).await;
    for round in 0..40_u64 {
        // From before the helper is started to when it is at work.
        let after = Duration::from_micros(round * round * 60);
        let start = machine.start(Start::new("/tmp/bomb", &[]));
        assert!(tokio::time::timeout(after, start).await.is_err(), "it was compiled");
        machine.kill_all();
    }
    none_left().await;
    put(&machine, b"/tmp/own", &small(2)).await;
    assert_eq!(run_at(&machine, "/tmp/own").await.status, Status::Exited(7));
}

#[tokio::test]
async fn many_bombs_wait_for_each_other() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let most = (std::thread::available_parallelism().map_or(1, usize::from) / 2).max(2);
    let machines: Vec<_> = (0..8).map(|_| rig.machine()).collect();
    let mut starts = tokio::task::JoinSet::new();
    for machine in machines {
        put(&machine, b"/tmp/bomb", &large_bomb()).await;
        // Two in each: a sandbox has one turn at a time.
        for _ in 0..2 {
            let machine = machine.clone();
            starts.spawn(async move { machine.start(Start::new("/tmp/bomb", &[])).await.map(drop) });
        }
    }
    until("as many compilers as may be", || at_work() == most).await;
    for _ in 0..50 {
        // One that takes over may be seen before the one that was paused.
        assert!(at_work() <= most + 1, "{:?}", helpers());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    starts.shutdown().await;
    none_left().await;
}

/// As many families as there are turns compile what takes minutes; another one's program is compiled all the same, and they go
/// on.
#[tokio::test]
async fn compilations_that_take_long_yield_to_others() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let most = (std::thread::available_parallelism().map_or(1, usize::from) / 2).max(2);
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..most {
        let machine = rig.machine();
        put(&machine, b"/tmp/bomb", &large_bomb()).await;
        starts.spawn(async move { machine.start(Start::new("/tmp/bomb", &[])).await.map(drop) });
    }
    until("as many compilers as may be", || at_work() == most).await;
    for salt in 30..33 {
        let neighbour = rig.machine();
        put(&neighbour, b"/tmp/own", &small(salt)).await;
        assert_eq!(run_at(&neighbour, "/tmp/own").await.status, Status::Exited(7));
        assert!(starts.try_join_next().is_none(), "a bomb is not compiled so soon");
    }
    until("those that were paused", || at_work() == most).await;
    assert_eq!(helpers().len(), most, "none was started again");
    starts.shutdown().await;
    none_left().await;
}

#[tokio::test]
async fn forks_of_one_sandbox_leave_a_turn_to_others() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let most = (std::thread::available_parallelism().map_or(1, usize::from) / 2).max(2);
    let (family, neighbour) = (Rules::default(), rig.machine());
    put(&neighbour, b"/tmp/own", &small(20)).await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..most + 4 {
        let machine = rig.relative(&family);
        put(&machine, b"/tmp/bomb", &large_bomb()).await;
        starts.spawn(async move { machine.start(Start::new("/tmp/bomb", &[])).await.map(drop) });
    }
    until("as many compilers as a family may have", || helpers().len() == most - 1).await;
    for _ in 0..50 {
        assert!(helpers().len() < most, "{:?}", helpers());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // None of them ends in the time that this takes.
    assert_eq!(run_at(&neighbour, "/tmp/own").await.status, Status::Exited(7));
    assert_eq!(helpers().len(), most - 1);
    starts.shutdown().await;
    none_left().await;
}

#[tokio::test]
async fn a_sandbox_compiles_one_at_a_time() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let machine = rig.machine();
    let mut starts = tokio::task::JoinSet::new();
    for salt in 0..4 {
        let path = format!("/tmp/bomb{salt}");
        put(&machine, path.as_bytes(), &bomb(30_000 + salt)).await;
        let machine = machine.clone();
        starts.spawn(async move { machine.start(Start::new(&path, &[])).await.map(drop) });
    }
    until("a compiler", || !helpers().is_empty()).await;
    for _ in 0..50 {
        assert!(helpers().len() <= 1, "{:?}", helpers());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    starts.shutdown().await;
    none_left().await;
}

/// What the kernel says of a helper while it compiles. What it means to be sealed is tried in `crates/confine`.
#[tokio::test]
async fn a_compiler_at_work_is_sealed() {
    let _turn = TURN.lock().await;
    let rig = Rig::new();
    let machine = rig.machine();
    put(&machine, b"/tmp/bomb", &large_bomb()).await;
    let mut start = Box::pin(machine.start(Start::new("/tmp/bomb", &[])));
    let busy = || helpers().iter().any(|(_, resident)| *resident > 64 << 20);
    tokio::select! {
        _ = &mut start => panic!("it cannot be compiled in that time"),
        () = until("a compiler at work", busy) => {}
    }
    let (process, _) = helpers()[0];
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).expect(file);
    let status = read("status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().to_owned()
    };
    assert_eq!((field("NoNewPrivs:"), field("Threads:")), ("1".to_owned(), "1".to_owned()));
    assert_eq!((field("CapEff:"), field("CapPrm:")), ("0".repeat(16), "0".repeat(16)));
    // 2 is a filter; a machine without seccomp has 0, or no such line.
    if Path::new("/proc/sys/kernel/seccomp").exists() {
        assert_eq!(field("Seccomp:"), "2");
    }
    let limits = read("limits");
    let limit = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect(name);
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    let budget = CompileBudget::default();
    for (name, most) in [
        ("Max cpu time", budget.seconds),
        ("Max address space", budget.memory),
        ("Max file size", budget.code),
        ("Max open files", 3),
        ("Max core file size", 0),
    ] {
        assert_eq!(limit(name), [most.to_string(), most.to_string()], "{name}");
    }
    let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).expect("descriptors");
    let mut names: Vec<_> = descriptors.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    assert!(names.iter().all(|name| ["0", "1", "2"].contains(&&*name.to_string_lossy())), "{names:?}");
    drop(start);
    none_left().await;
}

/// A program that ships with Wardian is prepared once, by the first that needs it, even if nobody waits for it to finish.
#[tokio::test]
async fn compiling_a_bundled_program_continues_and_is_kept() {
    let rig = Rig::new();
    let wasm = small(3);
    let sha256 = Sha256::digest(&wasm).iter().map(|byte| format!("{byte:02x}")).collect();
    let loads = Arc::new(AtomicUsize::new(0));
    let counted = loads.clone();
    let slow = move || {
        counted.fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(300));
        Ok(wasm.clone())
    };
    let mut tree = rig.programs.tree(&rig.kernel);
    let content = Content::Bytes(Arc::from(&b"\0asm"[..]));
    let version = tree.install(b"/bin/later", 0o755, content).expect("installs");
    let artifacts = tempfile::tempdir().expect("a directory");
    let config = KernelConfig { artifacts: Some(artifacts.path().to_owned()), ..KernelConfig::default() };
    let kernel = Kernel::new(config).expect("a kernel starts");
    kernel.register_later(version, ProgramSource { name: "later".to_owned(), sha256, wasm: Box::new(slow) });
    let machine = Machine::new(&kernel, tree, Limits::default());
    for _ in 0..10 {
        let start = machine.start(Start::new("/bin/later", &[]));
        assert!(tokio::time::timeout(Duration::from_millis(10), start).await.is_err(), "it took no time");
    }
    assert_eq!(run_at(&machine, "/bin/later").await.status, Status::Exited(7));
    assert_eq!(loads.load(Ordering::SeqCst), 1);
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// Not in parallel with anything: it looks at the whole process. Run by itself through `ignored` in `cargo xtask test`.
#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn compiled_code_is_freed_with_its_sandbox() {
    let rig = Rig::new();
    let use_up = async |salts: std::ops::Range<usize>| {
        let rules = Rules::default();
        let (machine, fork) = (rig.relative(&rules), rig.relative(&rules));
        for salt in salts {
            put(&machine, b"/tmp/own", &bomb(200 + salt)).await;
            let started = machine.start(Start::new("/tmp/own", &[])).await.expect("it starts");
            started.kill();
            started.wait().await;
        }
        machine.close();
        fork.close();
    };
    use_up(0..20).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let before = resident();
    use_up(100..200).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after = resident();
    assert!(after < before + (8 << 20), "{} -> {} KiB", before >> 10, after >> 10);
}
