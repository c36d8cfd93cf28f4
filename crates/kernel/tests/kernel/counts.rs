//! Lists as long as a guest can make them: whatever count or length a system call is given, no worker is held by it,
//! and what the host keeps for the guest stays within the sandbox's own limit on memory.
//!
//! `docs/abi.md` has the cap of each call. Both tests look at the whole process, so they run alone
//! (`cargo xtask test`), and compare with a control in the same run.

mod attacks;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wardian_kernel::{Kernel, KernelConfig, Limits, Machine, Output, Start, Started, Status, Stream};
use wardian_vfs::{Caller, OpenFlags};

use crate::hostile::Dice;
use crate::lengths;
use crate::support::{KERNEL, Programs, machine_with, put, run, settled};

pub use attacks::HUGE;
use attacks::{CONTROL, HOLDING, IDLE, KEEPING, SMALL, program, waiting};

/// Many small files, and the program that sleeps.
async fn furnish(machine: &Arc<Machine>) {
    put(machine, b"/tmp/idle", &wat::parse_str(IDLE).expect("a module")).await;
    put(machine, b"/tmp/waits", &waiting("(call $flock (global.get $fd) (i32.const 2))")).await;
    let range = "(call $lock (global.get $fd) (i32.const 2) (i32.const 8192))";
    put(machine, b"/tmp/locks", &waiting(range)).await;
    let mut tree = machine.tree().await;
    let root = tree.root();
    tree.mkdir(&Caller::USER, &root, b"/tmp/many", 0o755).expect("a directory");
    for n in 0..5_000 {
        let path = format!("/tmp/many/{n:0200}");
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        let file = tree.open(&Caller::USER, &root, path.as_bytes(), flags, 0o644).expect("a file");
        tree.close(file);
    }
}

async fn start(machine: &Arc<Machine>, program: &[u8]) -> Started {
    put(machine, b"/tmp/attack", program).await;
    let mut start = Start::new("/tmp/attack", &[]);
    // Within the limit, as many as there may be: some attacks read them back.
    start.argv.resize(400_000, Vec::new());
    machine.start(start).await.expect("it starts")
}

/// The processor time that this process has used. Unlike a clock on the wall it does not see what else the machine does.
fn process_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for the answer.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "a process has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What the files of a sandbox may take, and what a run of the same program differs by.
const UNCHARGED: usize = (64 << 20) + SLACK;
/// For what the tests themselves need, and what malloc keeps.
const SLACK: usize = 32 << 20;

/// What was seen while a program ran.
#[derive(Debug)]
struct Beside {
    /// How much is computed, as a rule, until a program in another sandbox has started and ended.
    wait: Duration,
    /// The most memory that this process took meanwhile, without the program's own and what its sandbox was charged.
    uncharged: usize,
    /// How the program ended, if it did.
    ended: Option<Status>,
}

/// How it has ended, if it has.
async fn ended(started: &Started) -> Option<Status> {
    tokio::select! {
        biased;
        status = started.wait() => Some(status),
        () = std::future::ready(()) => None,
    }
}

/// How much of the memories of programs such as `program` makes is resident: in `/proc/self/smaps` they have a size of
/// their own, but for the page or two that hold data from the beginning.
fn resident_in_guests() -> usize {
    const PAGES_KIB: usize = HUGE * 64;
    let (mut within, mut sum) = (false, 0);
    for line in std::fs::read_to_string("/proc/self/smaps").expect("mappings").lines() {
        let size = |name: &str| line.strip_prefix(name)?.trim().trim_end_matches(" kB").parse::<usize>().ok();
        if let Some(size) = size("Size:") {
            within = (PAGES_KIB - 256..=PAGES_KIB).contains(&size);
        } else if let Some(resident) = size("Rss:").filter(|_| within) {
            sum += resident << 10;
        }
    }
    sum
}

/// Runs a program, and short ones of a neighbour beside it.
async fn beside(neighbour: &Arc<Machine>, machine: &Arc<Machine>, program: &[u8]) -> Beside {
    let (_, before) = memory();
    let started = start(machine, program).await;
    // Its own memory is charged when it runs; before that it is compiled.
    for _ in 0..6_000 {
        if machine.census().memory_charged > 100 << 20 || ended(&started).await.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut waits = Vec::new();
    for _ in 0..15 {
        let before = process_time();
        run(neighbour, &["exit", "0"]).await;
        waits.push(process_time().saturating_sub(before));
    }
    let ended = ended(&started).await;
    let (peak, _) = memory();
    let kept = (machine.peak_memory() as usize).saturating_sub(HUGE << 16);
    let uncharged = peak.saturating_sub(before + resident_in_guests() + kept);
    started.kill();
    settled(machine).await;
    waits.sort();
    Beside { wait: waits[waits.len() / 2], uncharged, ended }
}

/// Runs each program beside a neighbour, on a kernel with one worker: a program that keeps it delays all others. Tells of those
/// that keep the neighbour waiting for much longer than a program that makes no calls at all, that have the host take
/// much more memory than it does without being charged, and that are no attack since they end.
async fn those_that_get_through(programs: impl Iterator<Item = (String, Vec<u8>)>) -> Vec<String> {
    let artifacts = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("artifacts"));
    let kernel = Kernel::new(KernelConfig { artifacts, workers: Some(1), ..KernelConfig::default() });
    let kernel = kernel.expect("a kernel starts");
    let tree = Programs::load(&kernel).tree(&kernel);
    let neighbour = Machine::new(&kernel, tree.clone(), Limits::default());
    let furnished = Machine::new(&kernel, tree, Limits::default());
    furnish(&furnished).await;
    let tree = furnished.tree().await.clone();
    // Each has a sandbox of its own, whose peak is that program's.
    let machine = || Machine::new(&kernel, tree.clone(), Limits::default());
    let control_program = program(&CONTROL, HUGE, None);
    let mut control = beside(&neighbour, &machine(), &control_program).await;
    let mut through = Vec::new();
    for (name, program) in programs {
        // A program that keeps a worker does so each time; what else the machine is busy with shows in some tries only.
        for tries_left in (0..5).rev() {
            let seen = beside(&neighbour, &machine(), &program).await;
            let told = seen.compared_with(&control);
            println!("{seen:?} (control {control:?}) {name}");
            match told {
                None => break,
                Some(told) if tries_left == 0 => through.push(format!("{name}: {told}")),
                Some(_) => control = beside(&neighbour, &machine(), &control_program).await,
            }
        }
    }
    through
}

impl Beside {
    /// What is worse than beside a program that makes no calls.
    fn compared_with(&self, control: &Beside) -> Option<String> {
        // A tick is a millisecond, and so is a piece of work without a pause, about.
        if self.wait > control.wait * 3 + Duration::from_millis(2) {
            return Some(format!("held a worker: {:.2?}, control {:.2?}", self.wait, control.wait));
        }
        if let Some(status) = self.ended {
            return Some(format!("is no attack: it has ended, {status:?}"));
        }
        let (ours, theirs) = (self.uncharged, control.uncharged);
        (ours > theirs + UNCHARGED).then(|| format!("{} MB uncharged, control {}", ours >> 20, theirs >> 20))
    }
}

#[tokio::test]
#[ignore = "measures how long workers are held; cargo xtask test runs it alone"]
async fn no_call_holds_a_worker_whatever_it_is_given() {
    let attacks = HOLDING.iter().map(|attack| (attack.name.to_owned(), program(attack, HUGE, None)));
    let through = those_that_get_through(attacks).await;
    assert!(through.is_empty(), "{through:#?}");
}

/// Numbers that are lengths, counts or pointers into a large memory.
pub const NUMBERS: [u32; 8] = [0, 1, 1024, 65_536, 1_000_000, 20_000_000, 170_000_000, 0x7fff_ffff];

/// Calls on sockets: a second program has sockets where the first has streams, at descriptors 0 and 1.
const ON_SOCKETS: &[&str] = &[
    "accept",
    "bind",
    "connect",
    "getpeername",
    "getsockname",
    "getsockopt",
    "listen",
    "recv",
    "send",
    "setsockopt",
    "shutdown",
    "fd_read",
    "fd_write",
    "poll_oneoff",
];

/// Connected sockets that do not wait, of this kind, as descriptors 0 and 1.
fn with_sockets(kind: u32) -> String {
    format!(
        "(drop (call $close (i32.const 0))) (drop (call $close (i32.const 1)))
         (drop (call $pair (i32.const 1) (i32.const {kind}) (i32.const 0) (i32.const 2) (i32.const 16)))"
    )
}

/// The calls above are chosen; this has all there are, those to come too.
#[tokio::test]
#[ignore = "measures how long workers are held; cargo xtask test runs it alone"]
async fn no_import_holds_a_worker_with_large_numbers() {
    let mut dice = Dice(0x5eed);
    // These end the program, or stop it.
    let ending = ["proc_exit", "proc_raise", "kill"];
    let imports = KERNEL.imports().iter().filter(|import| !ending.contains(&import.name));
    let mut programs = Vec::new();
    for import in imports {
        programs.push((import.name.to_owned(), lengths::with_any_numbers(import, &mut dice)));
        for kind in ON_SOCKETS.iter().filter(|name| **name == import.name).flat_map(|_| [1, 2]) {
            let setting = with_sockets(kind);
            let program = lengths::program(import, &setting, &mut dice, |_, _, dice| dice.roll(&NUMBERS));
            programs.push((format!("{} on sockets of kind {kind}", import.name), program));
        }
    }
    let through = those_that_get_through(programs.into_iter()).await;
    assert!(through.is_empty(), "{through:#?}");
}

/// Each count and length of each call, as large as can be, where everything else is as it should be.
#[tokio::test]
#[ignore = "measures how long workers are held; cargo xtask test runs it alone"]
async fn no_length_holds_a_worker_however_large() {
    let through = those_that_get_through(lengths::all(&mut Dice(0x5eed)).into_iter()).await;
    assert!(through.is_empty(), "{through:#?}");
}

/// The most memory the process had since the last time this was asked, and what it has now, in bytes.
fn memory() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let field = |name: &str| -> usize {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
    };
    let both = (field("VmHWM:"), field("VmRSS:"));
    std::fs::write("/proc/self/clear_refs", "5").expect("the peak can be reset");
    both
}

#[tokio::test]
#[ignore = "looks at the whole process; cargo xtask test runs it alone"]
async fn what_the_host_keeps_for_guests_is_charged_to_them() {
    let limits = Limits { memory_bytes: 128 << 20, ..Limits::default() };
    let mut beyond = Vec::new();
    for (processes, times, attack) in KEEPING {
        let machine = machine_with(limits);
        furnish(&machine).await;
        put(&machine, b"/tmp/attack", &program(attack, SMALL, Some(*times))).await;
        let (_, before) = memory();
        let begun = std::time::Instant::now();
        let mut all = Vec::new();
        for _ in 0..*processes {
            let mut start = Start::new("/tmp/attack", &[]);
            start.argv.resize(400_000, Vec::new());
            let told = start.output.clone();
            // The last ones may find no memory left to start in.
            let Ok(started) = machine.start(start).await else { break };
            tokio::select! {
                () = asleep(attack.name, &told) => {}
                _ = started.wait() => {}
            }
            all.push(started);
        }
        let (peak, _) = memory();
        let (used, charged) = (peak.saturating_sub(before), machine.peak_memory() as usize);
        all.iter().for_each(Started::kill);
        settled(&machine).await;
        println!(
            "{:>6} MB used, {:>6} MB charged, {:.1?}: {}",
            used >> 20,
            charged >> 20,
            begun.elapsed(),
            attack.name
        );
        if used > charged + SLACK {
            beyond.push((attack.name, used, charged));
        }
        drop(all);
        let left = Arc::downgrade(&machine);
        drop(machine);
        gone(attack.name, &left).await;
    }
    assert!(beyond.is_empty(), "{beyond:?}");
}

/// Waits until a process has told that it is done.
async fn asleep(name: &str, told: &Output) {
    for _ in 0..20_000 {
        if told.take(Stream::Stdout).1 > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{name} never ends");
}

/// A machine that is dropped goes, and all its tasks with it: a timer must not keep it until it goes off.
async fn gone(name: &str, machine: &std::sync::Weak<Machine>) {
    for _ in 0..2_000 {
        if machine.strong_count() == 0 && KERNEL.handle().metrics().num_alive_tasks() == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let tasks = KERNEL.handle().metrics().num_alive_tasks();
    panic!("{name}: {} still have the machine, {tasks} tasks are left", machine.strong_count());
}
