//! Deadlines, and cells that die.

use std::time::Duration;

use wardian_cell::message::{Class, RunSpec};
use wardian_cell::{Cell, CellError, CellOptions, Event, Required};

use crate::rig::{Outcome, alone, cell, command, follow, options, run, sandbox};

fn gone(outcome: &Outcome, why: &str) {
    assert!(matches!(outcome, Outcome::Gone(said) if said.contains(why)), "{outcome:?}");
}

fn limited(text: &str) -> RunSpec {
    RunSpec { timeout: Some(Duration::from_millis(20)), ..command(text) }
}

fn signal(cell: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(cell as i32).expect("a process");
    rustix::process::kill_process(pid, signal).expect("it is there");
}

async fn pid(cell: &Cell, sandbox: u64) -> u32 {
    run(cell, sandbox, "pid").await.parse().expect("a number")
}

#[tokio::test]
async fn a_cell_that_dies_is_an_end_for_all_that_waits() {
    let cell = cell().await;
    let (one, other) = (sandbox(&cell).await, sandbox(&cell).await);
    let waiting = cell.run(one, command("sleep")).expect("a run");
    gone(&follow(cell.run(other, command("die")).expect("a run")).await.1, "signal: 6");
    gone(&follow(waiting).await.1, "signal: 6");
    assert!(matches!(cell.create(Default::default()).await, Err(CellError::Gone(_))));
    assert!(matches!(cell.run(one, command("echo")), Err(CellError::Gone(_))));
}

#[tokio::test]
async fn a_cell_can_be_killed_in_the_middle_of_a_run() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    let pid = pid(&cell, sandbox).await;
    let waiting = cell.run(sandbox, command("sleep")).expect("a run");
    signal(pid, rustix::process::Signal::KILL);
    gone(&follow(waiting).await.1, "signal: 9");
}

#[tokio::test]
async fn deadlines_that_a_cell_misses_are_met() {
    // One that does nothing has a second; one that spins with its signals blocked has 50 ms of its own time.
    for text in ["hang", "spin"] {
        let cell = cell().await;
        let sandbox = sandbox(&cell).await;
        gone(&follow(cell.run(sandbox, limited(text)).expect("a run")).await.1, "deadline");
    }
}

#[tokio::test]
async fn a_stopped_cell_is_killed_at_its_deadline() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    let pid = pid(&cell, sandbox).await;
    signal(pid, rustix::process::Signal::STOP);
    gone(&follow(cell.run(sandbox, limited("echo")).expect("a run")).await.1, "deadline");
}

#[tokio::test]
async fn a_cell_that_does_not_cancel_is_killed() {
    let cell = cell().await;
    let (one, other) = (sandbox(&cell).await, sandbox(&cell).await);
    let obedient = cell.run(one, command("sleep")).expect("a run");
    obedient.cancel();
    let (_, outcome) = follow(obedient).await;
    assert!(matches!(&outcome, Outcome::Ended(end) if end.class == Some(Class::Cancelled)), "{outcome:?}");
    let stubborn = cell.run(other, command("hang")).expect("a run");
    stubborn.cancel();
    gone(&follow(stubborn).await.1, "deadline");
}

#[tokio::test]
async fn dropping_a_run_cancels_it() {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    drop(cell.run(sandbox, command("sleep")).expect("a run"));
    // It is over as soon as it says so; until then the sandbox is busy.
    while let Err(error) = cell.run(sandbox, command("echo")) {
        assert!(matches!(error, CellError::NotNow(_)), "{error}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn what_is_no_cell_does_not_start() {
    let start = |program: &str, word: &str| {
        let mut options = options(&[word]);
        options.program[0] = program.into();
        Cell::start(options)
    };
    let ours = env!("CARGO_BIN_EXE_cell-hostile");
    let said = |started: Result<Cell, CellError>| started.expect_err("no cell").to_string();
    assert!(said(start("/no/such/program", "").await).contains("No such file"));
    assert!(said(start("/bin/true", "").await).contains("exit status: 0"));
    assert!(said(start(ours, "says-nonsense").await).contains("cannot be started"));
    assert_eq!(start(ours, "not-compiled").await.err(), Some(CellError::NotCompiled("sh".to_owned())));
    let none = CellOptions { program: Vec::new(), ..options(&[]) };
    assert!(said(Cell::start(none).await).contains("no program"));
}

#[tokio::test]
async fn a_machine_that_cannot_hold_a_cell_is_told_by_name() {
    let needs = |required| Cell::start(CellOptions { required, ..options(&[]) });
    let all = Required { namespaces: true, landlock: true, seccomp: true };
    match needs(all).await {
        Ok(_) => {}
        Err(CellError::NotHeld(what)) => assert!(["namespaces", "landlock", "seccomp"].contains(&what)),
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_refusal_is_an_answer() {
    let cell = cell().await;
    let spec = wardian_cell::message::SandboxSpec { cwd: Some("/nowhere".to_owned()), ..Default::default() };
    assert!(matches!(cell.create(spec).await, Err(CellError::Refused(why)) if why.contains("/nowhere")));
    let (_, outcome) = alone("what").await;
    assert!(matches!(outcome, Outcome::Refused(why) if why.contains("not a word")));
}

#[tokio::test]
async fn who_does_not_read_makes_the_cell_wait_and_no_other() {
    let cell = cell().await;
    let (one, other) = (sandbox(&cell).await, sandbox(&cell).await);
    let mut slow = cell.run(one, command("much 8000000")).expect("a run");
    let first = slow.next().await;
    assert!(matches!(&first, Event::Output(_)), "{first:?}");
    assert_eq!(run(&cell, other, "echo past it").await, "past it");
    let (rest, outcome) = follow(slow).await;
    assert!(matches!(outcome, Outcome::Ended(_)));
    let Event::Output(first) = first else { return };
    assert_eq!(first.bytes.len() + rest.len(), 8_000_000);
}
