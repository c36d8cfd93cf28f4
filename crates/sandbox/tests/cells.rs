//! Sandboxes in jailed processes: what they do, and what becomes of them.

use std::time::Duration;

use wardian::cell::{
    Cell, CellError, CellOptions, CellRun, CellStream, Collected, Event, RunEnd, RunSpec, SandboxId,
    SandboxSpec,
};
use wardian::{ErrorClass, Limit, Limits, RunResult};

/// A cell; none where this machine cannot hold one.
async fn cell() -> Option<Cell> {
    let options = CellOptions::new(vec![env!("CARGO_BIN_EXE_wardian-cell").into()]);
    match Cell::start(options.clone()).await {
        Ok(cell) => Some(cell),
        Err(CellError::NotHeld(what)) => {
            eprintln!("not tried: this machine has no {what}");
            None
        }
        Err(CellError::NotCompiled(_)) => {
            wardian::prepare(|_| ()).expect("prepared");
            Some(Cell::start(options).await.expect("a cell"))
        }
        Err(error) => panic!("{error}"),
    }
}

async fn sandbox(cell: &Cell, limits: Limits) -> SandboxId {
    let limits = wardian::cell::limits(&limits);
    cell.create(SandboxSpec { limits, ..SandboxSpec::default() }).await.expect("a sandbox")
}

fn script(text: &str) -> RunSpec {
    RunSpec {
        command: text.as_bytes().to_vec(),
        timeout: Some(Duration::from_secs(60)),
        ..RunSpec::default()
    }
}

async fn follow(mut run: CellRun, input: &[u8]) -> RunResult {
    let (mut collected, mut input) = (Collected::new(true), input);
    loop {
        match run.next().await {
            Event::Output(piece) => collected.add(&piece),
            Event::WantInput(most) => {
                let (now, later) = input.split_at(most.min(input.len()));
                run.input(now.to_vec());
                input = later;
            }
            Event::Ended(end) => return collected.ended(*end),
            Event::Refused(why) => panic!("{why}"),
            Event::Gone(why) => return collected.crashed(&why),
        }
    }
}

async fn run(cell: &Cell, sandbox: SandboxId, text: &str) -> RunResult {
    follow(cell.run(sandbox, script(text)).expect("a run"), b"").await
}

#[tokio::test]
async fn a_sandbox_in_a_cell_runs_scripts_and_keeps_its_state() {
    let Some(cell) = cell().await else { return };
    let one = sandbox(&cell, Limits::default()).await;
    let result = run(&cell, one, "x=1; echo $x; echo $x >&2; echo a > f; seq 3 | wc -l; exit 3").await;
    assert_eq!((result.exit_code, &result.stdout[..], &result.stderr[..]), (3, &b"1\n3\n"[..], &b"1\n"[..]));
    assert_eq!(result.output(), b"1\n1\n3\n", "in order");
    let two = cell.fork(one).await.expect("a fork");
    run(&cell, one, "x=2; echo b > f").await;
    assert_eq!(run(&cell, two, "echo $x $(cat f)").await.stdout, b"1 a\n");
    assert_eq!(run(&cell, one, "echo $x $(cat f)").await.stdout, b"2 b\n");
    cell.destroy(one).await.expect("destroyed");
    assert_eq!(run(&cell, two, "cd /tmp; pwd").await.stdout, b"/tmp\n");
}

#[tokio::test]
async fn input_limits_and_timeouts_are_as_without_a_cell() {
    let Some(cell) = cell().await else { return };
    let limits = Limits { stdout_bytes: 10, ..Limits::default() };
    let box_ = sandbox(&cell, limits).await;
    let reads = RunSpec { input: true, ..script("cat | wc -c") };
    let input = vec![b'x'; 300_000];
    assert_eq!(follow(cell.run(box_, reads).expect("a run"), &input).await.stdout, b"300000\n");
    let cut = run(&cell, box_, "seq 100").await;
    assert_eq!((cut.stdout.len(), cut.truncated.stdout, cut.limit), (10, true, Some(Limit::StdoutBytes)));
    let late = RunSpec { timeout: Some(Duration::from_millis(100)), ..script("while :; do :; done") };
    let late = follow(cell.run(box_, late).expect("a run"), b"").await;
    assert_eq!((late.exit_code, late.error_class), (124, Some(ErrorClass::Timeout)));
    assert_eq!(late.stderr, b"wardian: timed out after 100 ms\n");
    let cancelled = cell.run(box_, script("sleep 60")).expect("a run");
    cancelled.cancel();
    assert_eq!(follow(cancelled, b"").await.error_class, Some(ErrorClass::Cancelled));
    assert_eq!(run(&cell, box_, "echo still").await.stdout, b"still\n");
}

#[tokio::test]
async fn a_program_of_a_users_own_is_refused_by_name() {
    let Some(cell) = cell().await else { return };
    let box_ = sandbox(&cell, Limits::default()).await;
    // The smallest module there is, with the start that a program needs.
    let module = wat::parse_str(r#"(module (memory (export "memory") 1) (func (export "_start")))"#);
    let mut text = b"printf '".to_vec();
    for byte in module.expect("a module") {
        text.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
    }
    text.extend_from_slice(b"' > p; chmod +x p; ./p");
    let spec = RunSpec { command: text, ..RunSpec::default() };
    let result = follow(cell.run(box_, spec).expect("a run"), b"").await;
    let said = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(result.exit_code != 0 && said.contains("a cell starts no compiler"), "{result:?}");
}

#[test]
fn a_run_whose_cell_is_gone_ends_with_137_and_what_was_written() {
    let piece = |stream, text: &str| wardian::cell::Piece { stream, bytes: text.into(), cut: false };
    let mut collected = Collected::new(true);
    collected.add(&piece(CellStream::Stdout, "out"));
    collected.add(&piece(CellStream::Stderr, "err"));
    let result = collected.crashed("signal: 9");
    assert_eq!((result.exit_code, result.error_class), (137, Some(ErrorClass::WorkerCrashed)));
    let said = "err\nwardian: the sandbox is lost, its process has ended: signal: 9\n";
    assert_eq!((&result.stdout[..], &result.stderr[..]), (&b"out"[..], said.as_bytes()));
    assert_eq!(result.output(), format!("out{said}").as_bytes());
    let end = RunEnd { limit: Some("no such limit".to_owned()), ..RunEnd::default() };
    assert_eq!(Collected::new(true).ended(end).limit, None);
}
