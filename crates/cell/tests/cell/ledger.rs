//! What was ordered, and what is due.

use std::time::{Duration, Instant};

use wardian_cell::ledger::{Ledger, MOST_LATE, MOST_OPEN, NotNow, PATIENCE, TO_BEGIN};
use wardian_cell::message::{
    Limits, Piece, Report, RunSpec, SandboxId, SandboxSpec, Seal, Stream, VERSION, WINDOW, cost,
};

type Simple = Ledger<(), ()>;

fn ready(ledger: &mut Simple, now: Instant) {
    let seal = Seal { version: VERSION, namespaces: false, landlock: true, seccomp: true };
    ledger.receive(Report::Ready(seal), now).expect("ready");
}

fn with_sandbox(now: Instant) -> (Simple, SandboxId) {
    let mut ledger = Simple::default();
    ready(&mut ledger, now);
    let limits = Limits { stdout_bytes: u64::MAX, stderr_bytes: u64::MAX, ..Limits::default() };
    let (request, sandbox) =
        ledger.create((), &SandboxSpec { limits, ..SandboxSpec::default() }, now).expect("a request");
    ledger.receive(Report::Done(request, Ok(())), now).expect("done");
    (ledger, sandbox)
}

#[test]
fn a_run_is_due_after_its_timeout_from_when_it_began() {
    let now = Instant::now();
    let (mut ledger, sandbox) = with_sandbox(now);
    let spec = RunSpec { timeout: Some(Duration::from_secs(5)), ..RunSpec::default() };
    let run = ledger.run((), sandbox, &spec, now).expect("a run");
    assert_eq!(ledger.due(), Some(now + TO_BEGIN + Duration::from_secs(5)));
    let later = now + Duration::from_millis(3);
    ledger.receive(Report::Began(run), later).expect("it began");
    assert_eq!(ledger.due(), Some(later + Duration::from_secs(5)));
    assert!(ledger.receive(Report::Began(run), later).is_err());
    assert!(ledger.cancel(run, later) && !ledger.cancel(run, later), "once");
    assert_eq!(ledger.due(), Some(later));
}

#[test]
fn a_cell_that_says_late_that_a_run_began_gains_nothing() {
    let now = Instant::now();
    let (mut ledger, sandbox) = with_sandbox(now);
    let spec = RunSpec { timeout: Some(Duration::from_secs(1)), ..RunSpec::default() };
    let run = ledger.run((), sandbox, &spec, now).expect("a run");
    ledger.receive(Report::Began(run), now + Duration::from_secs(60)).expect("it began");
    assert_eq!(ledger.due(), Some(now + TO_BEGIN + Duration::from_secs(1)));
}

#[test]
fn a_window_is_granted_again_as_it_is_read() {
    let now = Instant::now();
    let (mut ledger, sandbox) = with_sandbox(now);
    let run = ledger.run((), sandbox, &RunSpec::default(), now).expect("a run");
    let piece = |length| Piece { stream: Stream::Stdout, bytes: vec![0; length], cut: false };
    let (length, mut sent) = (1000, 0);
    while ledger.receive(Report::Output(run, piece(length)), now).is_ok() {
        sent += 1;
        assert!(sent * length <= WINDOW);
    }
    assert_eq!(sent, WINDOW / cost(length), "all of the window, and no more");
    let (mut ledger, sandbox) = with_sandbox(now);
    let run = ledger.run((), sandbox, &RunSpec::default(), now).expect("a run");
    for _ in 0..10 * sent {
        ledger.receive(Report::Output(run, piece(length)), now).expect("what was read is granted again");
        ledger.took(run, length, now);
    }
    // Empty pieces are not free.
    let empty = (0..WINDOW).take_while(|_| ledger.receive(Report::Output(run, piece(0)), now).is_ok());
    assert!(empty.count() <= WINDOW / cost(0));
}

#[test]
fn requests_that_cannot_be_are_refused() {
    let now = Instant::now();
    let (mut ledger, sandbox) = with_sandbox(now);
    assert_eq!(ledger.run((), 99, &RunSpec::default(), now), Err(NotNow::NoSandbox));
    let run = ledger.run((), sandbox, &RunSpec::default(), now).expect("a run");
    assert_eq!(ledger.run((), sandbox, &RunSpec::default(), now), Err(NotNow::Busy));
    assert_eq!(ledger.fork((), sandbox, now), Err(NotNow::Busy));
    assert!(!ledger.answer(run), "it has asked for no input");
    for _ in 1..MOST_OPEN {
        ledger.create((), &SandboxSpec::default(), now).expect("a request");
    }
    assert_eq!(ledger.create((), &SandboxSpec::default(), now), Err(NotNow::TooMany));
    assert_eq!(ledger.due(), Some(now + PATIENCE));
    let (runs, others) = ledger.drain();
    assert_eq!((runs.len(), others.len()), (1, MOST_OPEN - 1));
}

#[test]
fn nothing_is_believed_of_a_cell_that_has_not_started_or_is_of_another_version() {
    let now = Instant::now();
    let mut ledger = Simple::default();
    let (request, _) = ledger.create((), &SandboxSpec::default(), now).expect("a request");
    assert!(ledger.receive(Report::Done(request, Ok(())), now).is_err());
    let other = Seal { version: VERSION + 1, namespaces: false, landlock: true, seccomp: true };
    assert!(ledger.receive(Report::Ready(other), now).is_err());
    ready(&mut ledger, now);
    assert!(ledger.receive(Report::Done(request, Ok(())), now).is_ok());
    assert!(ledger.receive(Report::Done(request, Ok(())), now).is_err(), "once");
}

#[test]
fn a_run_whose_reader_is_slow_is_not_due_and_gains_little_by_it() {
    let now = Instant::now();
    let (mut ledger, sandbox) = with_sandbox(now);
    let spec = RunSpec { timeout: Some(Duration::from_secs(1)), ..RunSpec::default() };
    let run = ledger.run((), sandbox, &spec, now).expect("a run");
    let piece = || Report::Output(run, Piece { stream: Stream::Stdout, bytes: vec![0; 60_000], cut: false });
    let full = WINDOW / cost(60_000);
    for _ in 0..full {
        ledger.receive(piece(), now).expect("it fits");
    }
    assert_eq!(ledger.due(), None);
    let later = now + Duration::from_secs(60);
    for _ in 0..full {
        ledger.took(run, 60_000, later);
    }
    assert_eq!(ledger.due(), Some(later));
    // What was on its way may come, but not for ever.
    let more = (0..1000).take_while(|_| {
        let came = ledger.receive(piece(), later).is_ok();
        ledger.took(run, 60_000, later);
        came
    });
    assert_eq!(more.count(), MOST_LATE / cost(60_000));
}
