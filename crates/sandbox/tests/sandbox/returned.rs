//! What sandboxes took of the host's memory goes back to the system when they are destroyed.

use std::process::Command;
use std::time::{Duration, Instant};

use wardian::{Engine, Limits, ProcessOptions, Run, Sandbox};

use crate::archives::{BOMBS, armed};
use crate::support::output;

/// How far from where it was the process may be.
const BAND_KIB: u64 = 8 << 10;
/// Set where a test is the child of another.
const CHILD: &str = "WARDIAN_TEST_RETURNED";
/// How many sandboxes of each kind there are at once.
const AT_ONCE: usize = 4;

/// Scripts that have the host keep something, and what that is. They end by their deadline, if not before.
const KINDS: &[(&str, &str)] = &[
    ("empty files", "for i in {1..30000}; do : > /tmp/f$i; done"),
    ("full pipes", "for i in {1..50}; do yes | sleep 1000 & done; wait"),
    ("alarms", "while :; do read -t 1000 x < /dev/null; done & while :; do timeout 1000 true; done"),
    (
        "sockets",
        "python3 -c 'import socket\ns = []\nwhile 1: s.append(socket.socketpair()); s[-1][0].setblocking(0); s[-1][0].send(bytes(1 << 20))'",
    ),
    (
        "locks",
        "for n in 0 1; do python3 -c 'import fcntl, time\nf = open(\"/tmp/l\", \"a+\")\n\
         for i in range(4000): fcntl.lockf(f, 6, 1, 4 * i + '$n')\ntime.sleep(9)' & done; wait",
    ),
    ("processes", "f() { f | f & }; f; wait; sleep 1000"),
    ("variables", "x=xxxxxxxx; while :; do x=$x$x; done"),
    ("large files", "head -c 20000000 /dev/urandom > /tmp/r; cp /tmp/r /tmp/s"),
];

/// Memory of the process's own in KiB: private pages and memory files.
fn memory_kib() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let own: u64 = own.trim().trim_end_matches(" kB").parse().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    let memory = open
        .filter(|path| std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("/memfd:")));
    own + memory.filter_map(|path| std::fs::metadata(path).ok()).map(|file| file.blocks() / 2).sum::<u64>()
}

async fn sandboxes() -> Vec<Sandbox> {
    let limits = Limits { memory_bytes: 96 << 20, fs_bytes: 64 << 20, ..Limits::default() };
    let mut all = Vec::new();
    for _ in 0..AT_ONCE {
        all.push(Sandbox::builder().limits(limits).build().await.unwrap());
    }
    all
}

/// Runs a script in some sandboxes at once, and destroys them.
async fn run_and_destroy(script: &'static str) {
    let all = sandboxes().await;
    let run = |sandbox: &Sandbox| {
        let sandbox = sandbox.clone();
        tokio::spawn(async move {
            let run = Run::new(script).timeout(Some(Duration::from_secs(2)));
            sandbox.run_with(run).await.unwrap();
        })
    };
    for task in all.iter().map(run).collect::<Vec<_>>() {
        task.await.unwrap();
    }
    for sandbox in all {
        sandbox.destroy().await;
    }
}

/// Archives that are written and read.
async fn archives() {
    let all = sandboxes().await;
    output(&all[0], "head -c 20000000 /dev/urandom > /tmp/r; for i in {1..5000}; do : > /tmp/f$i; done; x=1")
        .await;
    let archive = all[0].export().await.unwrap();
    for sandbox in &all[1..] {
        sandbox.import(archive.clone()).await.unwrap();
        assert_eq!(output(sandbox, "echo $x").await, "1\n");
    }
    for sandbox in all {
        sandbox.destroy().await;
    }
}

/// Archives that come to much more than they are, refused or taken in part.
async fn bombs(all_bombs: &[Vec<u8>]) {
    let all = sandboxes().await;
    for archive in all_bombs {
        let tasks = all.iter().map(|sandbox| {
            let (sandbox, archive) = (sandbox.clone(), archive.clone());
            tokio::spawn(async move { sandbox.import(archive).await.expect_err("it is refused") })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    }
    for sandbox in all {
        sandbox.destroy().await;
    }
}

/// One of each kind that is made fast: of files, of what a shell has, of memory.
async fn armed_bombs() -> Vec<Vec<u8>> {
    let sandbox = sandboxes().await.remove(0);
    let mut made = Vec::new();
    for bomb in BOMBS.iter().filter(|(what, _)| ["an environment", "empty files", "memory"].contains(what)) {
        made.push(armed(&sandbox, *bomb).await);
    }
    assert_eq!(made.len(), 3);
    sandbox.destroy().await;
    made
}

/// Forks of a sandbox with much in its memory and its files, which each change it, and forks of those.
async fn forks() {
    for sandbox in sandboxes().await {
        output(&sandbox, "printf -v x %8000000s y; head -c 8000000 /dev/urandom > /tmp/r").await;
        let mut forks = sandbox.fork_many(12).await.unwrap();
        forks.push(forks[0].fork().await.unwrap());
        let run = |fork: &Sandbox| {
            let fork = fork.clone();
            tokio::spawn(async move { output(&fork, "x=b${x:1}; echo >> /tmp/r; echo ${#x}").await })
        };
        for task in forks.iter().map(run).collect::<Vec<_>>() {
            assert_eq!(task.await.unwrap(), "8000000\n");
        }
        sandbox.destroy().await;
        for fork in forks {
            fork.destroy().await;
        }
    }
}

/// Snapshots between which all is replaced.
async fn snapshots() {
    for sandbox in sandboxes().await {
        let mut kept = Vec::new();
        for _ in 0..8 {
            output(&sandbox, "printf -v x %4000000s $RANDOM; head -c 4000000 /dev/urandom > /tmp/r").await;
            kept.push(sandbox.snapshot().await.unwrap());
        }
        sandbox.restore(&kept[0]).await.unwrap();
        assert_eq!(output(&sandbox, "echo ${#x}").await, "4000000\n");
        sandbox.destroy().await;
    }
}

/// Processes beside the shell, which write and are never read.
async fn processes() {
    let all = sandboxes().await;
    let mut started = Vec::new();
    for sandbox in &all {
        for _ in 0..12 {
            let argv = ["sh", "-c", "yes"].map(str::to_owned).to_vec();
            started.extend(sandbox.start_process(ProcessOptions::program(argv)).await);
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    for sandbox in all {
        sandbox.destroy().await;
    }
    drop(started);
}

/// Waits until the process has at most this much, as long as that may take; returns what it has then.
async fn settled(most: u64) -> u64 {
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let (now, tasks) = (memory_kib(), Engine::shared().unwrap().usage().tasks);
        if tasks == 0 && now <= most || Instant::now() > patience {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// One round of everything, after each of which something else may have been made once and for all.
async fn round(all_bombs: &[Vec<u8>], most: u64) -> Vec<(&'static str, u64)> {
    let mut stands = Vec::new();
    for (kind, script) in KINDS {
        run_and_destroy(script).await;
        stands.push((*kind, settled(most).await));
    }
    archives().await;
    stands.push(("archives", settled(most).await));
    processes().await;
    stands.push(("processes beside the shell", settled(most).await));
    bombs(all_bombs).await;
    stands.push(("archive bombs", settled(most).await));
    forks().await;
    stands.push(("forks", settled(most).await));
    snapshots().await;
    stands.push(("snapshots", settled(most).await));
    stands
}

#[tokio::test]
#[ignore = "destroyed_sandboxes_leave_the_process_where_it_was runs it"]
async fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    wardian::tune_process();
    // Programs are loaded, threads are started, instances are kept for reuse.
    let bombs = armed_bombs().await;
    for _ in 0..2 {
        round(&bombs, u64::MAX).await;
    }
    let before = settled(0).await;
    let rounds = std::env::var("WARDIAN_SOAK_RETURNS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    for _ in 0..rounds {
        let stands = round(&bombs, before + BAND_KIB).await;
        println!("before: {before} KiB, then {stands:?}");
        let beyond: Vec<_> = stands.iter().filter(|(_, now)| *now > before + BAND_KIB).collect();
        assert!(beyond.is_empty(), "before: {before} KiB, then {beyond:?}");
    }
}

/// In a process of its own: other tests have memory, too.
#[test]
#[ignore = "takes a minute; cargo xtask test runs it"]
fn destroyed_sandboxes_leave_the_process_where_it_was() {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["returned::child", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let said = [done.stdout, done.stderr].concat();
    println!("{}", String::from_utf8_lossy(&said));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
}
