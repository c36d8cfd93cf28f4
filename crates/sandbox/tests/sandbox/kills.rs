//! A deadline ends everything a command started, whatever it is doing, and nothing of it is left.

use std::sync::Arc;
use std::time::{Duration, Instant};

use wardian::internals::Inside;
use wardian::{Limits, Run, Sandbox};
use wardian_kernel::{Census, Machine};
use wardian_vfs::{Caller, OpenFlags};

use crate::support::{output, sandbox};

/// Each does something that never ends, or would take far longer than its deadline.
const ENDLESS: &[&str] = &[
    // Loops of the shell's own, and of calls.
    "while :; do :; done",
    "for ((;;)); do x=$((x + 1)); done",
    "while :; do /bin/true; done",
    "while :; do echo x > /tmp/f; cat /tmp/f > /dev/null; done",
    "until false; do ( : ); done",
    // Blocked: in a read, a write, a sleep, a wait, on a FIFO that nobody else opens.
    "mkfifo /tmp/p; cat /tmp/p",
    "mkfifo /tmp/p; echo x > /tmp/p",
    "mkfifo /tmp/p; for i in 1 2 3 4 5 6; do cat /tmp/p & done; wait",
    "mkfifo /tmp/p; exec 3<>/tmp/p; read -r x <&3",
    "cat /dev/zero | sleep 1000",
    "sleep 1000",
    "sleep 1000 & wait",
    "sleep 1000 | sleep 1000 | sleep 1000",
    "coproc sleep 1000; read -r x <&${COPROC[0]}",
    "x=$(sleep 1000)",
    "cat <(sleep 1000)",
    "trap '' HUP INT TERM; sleep 1000; sleep 1000; sleep 1000",
    "trap 'echo no' TERM INT; while :; do sleep 0.01; done",
    "nohup sleep 1000",
    "timeout 1000 sleep 1000",
    "find / -exec sh -c 'sleep 1000' ';'",
    "yes | xargs -n 1 sleep",
    // Processes that make processes.
    "f() { f | f & }; f; wait; sleep 1000",
    "f() { ( f ); }; f; sleep 1000",
    "while :; do sleep 1000 & done",
    "exec sleep 1000",
    "kill -STOP $$",
    "sleep 1000 & kill -STOP $!; sleep 1000",
    // Floods.
    "yes",
    "cat /dev/zero",
    "yes >&2",
    "yes | cat | cat | cat > /dev/null",
    "cat /dev/urandom | sort | wc",
    // Long work inside one program.
    "yes abcdefghij | head -c 500M | sort | tail -1",
    "yes aaaaaaaaaaaaaaaaaaaaaaaaaaaa | grep -E '(a|aa)+(a|aa)+b'",
    "printf -v x '%50000s' ''; x=${x// /a}; while :; do [[ $x =~ ^(a*)*(a*)*(a*)*b$ ]]; done",
    "shopt -s extglob\nprintf -v x '%50000s' ''; x=${x// /a}; while :; do [[ ${x/+(a)+(a)b/} ]]; done",
    "seq 100000000 | tail -1",
];

#[tokio::test]
async fn a_deadline_ends_whatever_a_command_does() {
    let sandbox = sandbox().await;
    output(&sandbox, "kept=1; f() { echo $kept; }; cd /tmp").await;
    for script in ENDLESS {
        output(&sandbox, "rm -rf /tmp/*").await;
        let run = Run::new(*script).timeout(Some(Duration::from_millis(60)));
        let result = sandbox.run_with(run).await.unwrap();
        assert_eq!(result.exit_code, 124, "{script}: {result:?}");
        assert_eq!(output(&sandbox, "f; pwd").await, "1\n/tmp\n", "after {script}");
        settled(&sandbox.machine()).await;
    }
}

#[tokio::test]
async fn a_deadline_ends_work_on_a_directory_of_a_million() {
    let limits = Limits { fs_bytes: 4 << 30, file_count: 4_000_000, ..Limits::default() };
    let sandbox = Sandbox::builder().limits(limits).build().await.unwrap();
    {
        let mut tree = sandbox.machine().tree().await;
        let root = tree.root();
        tree.mkdir(&Caller::USER, &root, b"/tmp/many", 0o755).unwrap();
        let flags = OpenFlags::WRITE | OpenFlags::CREATE;
        for number in 0..1_000_000 {
            let path = format!("/tmp/many/{number}");
            let file = tree.open(&Caller::USER, &root, path.as_bytes(), flags, 0o644).unwrap();
            tree.close(file);
        }
    }
    for script in [
        "while :; do ls /tmp/many > /dev/null; done",
        "while :; do ls -lU /tmp/many > /dev/null; done",
        "while :; do echo /tmp/many/* > /dev/null; done",
        "while :; do find /tmp/many -name x; done",
        "while :; do cp -r /tmp/many /tmp/copy; rm -r /tmp/copy; done",
    ] {
        let run = Run::new(script).timeout(Some(Duration::from_millis(60)));
        let result = sandbox.run_with(run).await.unwrap();
        assert_eq!(result.exit_code, 124, "{script}: {result:?}");
        settled(&sandbox.machine()).await;
    }
    assert!(sandbox.machine().tree().await.usage().inodes > 1_000_000);
}

/// A fork bomb is ended about as soon as a command that is one process. In turn, so that whatever else the machine does
/// happens to both.
#[tokio::test]
#[ignore = "measures how late commands end; cargo xtask test runs it alone"]
async fn a_fork_bomb_is_killed_as_fast_as_a_single_process() {
    const DEADLINE: Duration = Duration::from_millis(100);
    let sandbox = sandbox().await;
    let mut late = [Vec::new(), Vec::new()];
    for round in 0..30 {
        let script = ["while :; do :; done", "f() { f | f & }; f; wait; sleep 1000"][round % 2];
        let start = Instant::now();
        let result = sandbox.run_with(Run::new(script).timeout(Some(DEADLINE))).await.unwrap();
        assert_eq!(result.exit_code, 124, "{script}: {result:?}");
        late[round % 2].push(start.elapsed().saturating_sub(DEADLINE));
        settled(&sandbox.machine()).await;
    }
    let [one, bomb] = late.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    });
    println!("one process ends {one:.1?} late, a fork bomb {bomb:.1?}");
    assert!(bomb <= one.max(Duration::from_millis(5)) * 8, "{bomb:?}, one process {one:?}");
}

/// Processes that only make other processes, in the background: the command itself is over.
#[tokio::test]
async fn nothing_of_a_fork_bomb_outlives_its_sandbox() {
    for round in 0..40 {
        let sandbox = sandbox().await;
        let machine = sandbox.machine();
        let bomb = sandbox.run("f() { f | f & }; f").await.unwrap();
        assert_eq!(bomb.exit_code, 0, "{bomb:?}");
        if round % 2 == 0 {
            sandbox.destroy().await;
        }
        drop(sandbox);
        for _ in 0..2_000 {
            if machine.census().processes == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        // Not even later.
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(machine.census().processes, 0, "round {round}: {:?}", machine.census());
    }
}

/// Waits until the shell is alone. What was killed goes within a tick, not at once.
async fn settled(machine: &Arc<Machine>) {
    let alone = |census: Census| census.processes == 1 && census.descriptors == 3;
    for _ in 0..2_000 {
        if alone(machine.census()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("something is left: {:?}", machine.census());
}

/// A module that takes minutes to compile: many loops over many variables, all of which matter at the end.
pub(crate) fn compile_bomb() -> Vec<u8> {
    let (locals, loops) = (400, 40_000);
    let mut text = String::from("(module (func (export \"_start\") (local");
    text.push_str(&" i32".repeat(locals));
    text.push(')');
    for at in 0..loops {
        let (to, from, by) = (at * 7 % locals, at * 13 % locals, at * 31 % locals);
        text.push_str(&format!(
            "(loop (local.set {to} (i32.add (local.get {from}) (local.get {by}))) (br_if 0 (local.get {to})))"
        ));
    }
    text.push_str("))");
    wat::parse_str(&text).expect("a module")
}

/// The compilers of this process.
fn compilers() -> usize {
    let parent = format!("PPid:\t{}\n", std::process::id());
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let ours = processes.filter(|entry| {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        read("cmdline").starts_with(b"wardian-compiler")
            && String::from_utf8_lossy(&read("status")).contains(&parent)
    });
    ours.count()
}

#[tokio::test]
async fn a_program_that_takes_too_long_to_compile_is_killed_at_the_deadline() {
    let sandbox = sandbox().await;
    sandbox.write_file("/tmp/bomb", compile_bomb()).await.expect("it fits");
    sandbox.run("chmod +x /tmp/bomb").await.expect("it runs");
    let run = Run::new("/tmp/bomb; echo not reached").timeout(Some(Duration::from_millis(1500)));
    let result = sandbox.run_with(run).await.expect("a result");
    assert_eq!((result.exit_code, result.stdout), (124, Vec::new()));
    for _ in 0..1_000 {
        if compilers() == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(compilers(), 0);
    assert_eq!(sandbox.run("echo well").await.expect("it runs").exit_code, 0);
}
