//! What a cell that somebody has taken over can do: nothing.

use wardian_cell::message::Limits;

use crate::rig::{Outcome, alone, cell, command, follow, held, options, run, sandbox};

/// What must be among the attempts, whatever else is.
const NAMED: &[&str] = &[
    "openat-passwd",
    "openat-init-memory",
    "openat-own-memory",
    "connect",
    "socket-inet",
    "socket-unix",
    "execve",
    "execveat-memory",
    "fork",
    "clone3",
    "ptrace-attach",
    "kill-supervisor",
    "process_vm_readv",
    "mount",
    "unshare",
    "keyctl",
    "bpf",
    "io_uring_setup",
    "perf_event_open",
    "userfaultfd",
    "write-to-program",
    "map-program-shared",
    "mmap-all",
    "no-death-signal",
    "recvmsg",
];

#[tokio::test]
async fn no_system_call_of_a_cell_reaches_anything() {
    let Some(cell) = held().await else { return };
    let sandbox = sandbox(&cell).await;
    let tried = run(&cell, sandbox, "attempts").await;
    let tried: Vec<(&str, &str)> = tried.lines().filter_map(|line| line.split_once(' ')).collect();
    let done: Vec<_> = tried.iter().filter(|(_, errno)| *errno == "0").collect();
    assert!(done.is_empty(), "{done:?}");
    let missing: Vec<_> =
        NAMED.iter().filter(|name| !tried.iter().any(|(tried, _)| tried == *name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(tried.len() > 100, "{}", tried.len());
    let clone3 = tried.iter().find(|(name, _)| *name == "clone3").map(|(_, errno)| *errno);
    assert_eq!(clone3, Some(libc::ENOSYS.to_string().as_str()), "libraries then use clone");
    assert_eq!(run(&cell, sandbox, "echo still here").await, "still here");
}

#[tokio::test]
async fn a_cell_has_no_descriptors_but_its_own() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    let found = run(&cell, sandbox, "descriptors").await;
    let mut kinds: Vec<&str> = found.split(' ').collect();
    kinds.sort_unstable();
    // The streams, which are /dev/null; the socket, thrice; the program that it opened itself.
    assert_eq!(kinds, ["device", "device", "device", "file", "socket", "socket", "socket"]);
}

#[tokio::test]
async fn reports_that_cannot_be_true_end_the_cell() {
    let forged = [
        ("noise", "too long"),
        ("huge", "too long"),
        ("again", "out of sequence"),
        ("skipped", "out of sequence"),
        ("trailing", "cannot be read"),
        ("ready", "started twice"),
        ("other-run", "no such run"),
        ("wrong-kind", "no such request"),
        ("answered-request", "no such request"),
        ("other-output", "no such run"),
        ("long-piece", "piece of output is too long"),
        ("input-unasked", "asks for input"),
        ("long-text", "text is too long"),
        ("long-note", "text is too long"),
        ("half", "exit status: 0"),
    ];
    for (what, why) in forged {
        let (_, outcome) = alone(&format!("forge {what}")).await;
        let Outcome::Gone(said) = outcome else { panic!("{what}: {outcome:?}") };
        assert!(said.contains(why), "{what}: {said}");
    }
}

#[tokio::test]
async fn a_flood_ends_the_cell_and_little_of_it_is_kept() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    let run = cell.run(sandbox, command("forge flood")).expect("a run");
    // Nobody reads meanwhile.
    while cell.gone().is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (output, outcome) = follow(run).await;
    assert!(matches!(&outcome, Outcome::Gone(why) if why.contains("more output than it may")), "{outcome:?}");
    assert!(output.len() <= wardian_cell::message::WINDOW, "{}", output.len());
}

#[tokio::test]
async fn output_beyond_a_limit_ends_the_cell() {
    let cell = cell().await;
    let limits = Limits { stdout_bytes: 10, ..Limits::default() };
    let sandbox = cell.create(wardian_cell::message::SandboxSpec { limits, ..Default::default() }).await;
    // The limit, and what the sandbox itself may say of a run.
    let run = cell.run(sandbox.expect("a sandbox"), command("much 200000")).expect("a run");
    let (output, outcome) = follow(run).await;
    assert!(matches!(&outcome, Outcome::Gone(why) if why.contains("longer than its limit")), "{outcome:?}");
    assert!(output.len() <= 10 + wardian_cell::message::MOST_TEXT);
}

#[tokio::test]
async fn memory_is_limited() {
    let cell = wardian_cell::Cell::start(wardian_cell::CellOptions { memory: 512 << 20, ..options(&[]) });
    let cell = cell.await.expect("a cell");
    let sandbox = sandbox(&cell).await;
    let got = run(&cell, sandbox, "eat").await;
    let (errno, mebibytes) = got.split_once(' ').expect("two numbers");
    assert_eq!(errno, libc::ENOMEM.to_string());
    assert!(mebibytes.parse::<u64>().expect("a number") < 512, "{mebibytes}");
}
