//! What the tests share.

use std::path::PathBuf;

use wardian_cell::message::{Limits, RunEnd, RunSpec, SandboxId, SandboxSpec};
use wardian_cell::{Cell, CellError, CellOptions, Event, Required, Run};

/// A hostile cell, on whatever machine.
pub fn options(words: &[&str]) -> CellOptions {
    let program = [env!("CARGO_BIN_EXE_cell-hostile")].iter().chain(words).map(PathBuf::from).collect();
    let required = Required { namespaces: false, landlock: false, seccomp: false };
    CellOptions { required, memory: 2 << 30, ..CellOptions::new(program) }
}

pub async fn cell() -> Cell {
    Cell::start(options(&[])).await.expect("a cell")
}

/// A cell that is held by all that cells are to be held by; none where this machine cannot.
pub async fn held() -> Option<Cell> {
    match Cell::start(CellOptions { required: Required::default(), ..options(&[]) }).await {
        Ok(cell) => Some(cell),
        Err(CellError::NotHeld(what)) => {
            eprintln!("not tried: this machine has no {what}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn spec() -> SandboxSpec {
    let limits = Limits { stdout_bytes: 16 << 20, stderr_bytes: 16 << 20, ..Limits::default() };
    SandboxSpec { limits, ..SandboxSpec::default() }
}

pub async fn sandbox(cell: &Cell) -> SandboxId {
    cell.create(spec()).await.expect("a sandbox")
}

pub fn command(text: &str) -> RunSpec {
    RunSpec { command: text.as_bytes().to_vec(), ..RunSpec::default() }
}

/// How a run ended.
#[derive(Debug, PartialEq)]
pub enum Outcome {
    Ended(Box<RunEnd>),
    Refused(String),
    Gone(String),
}

/// Follows a run to its end; returns its standard output, too.
pub async fn follow(mut run: Run) -> (String, Outcome) {
    let mut output = Vec::new();
    let outcome = loop {
        match run.next().await {
            Event::Output(piece) => output.extend(piece.bytes),
            Event::WantInput(_) => run.input(Vec::new()),
            Event::Ended(end) => break Outcome::Ended(end),
            Event::Refused(why) => break Outcome::Refused(why),
            Event::Gone(why) => break Outcome::Gone(why),
        }
    };
    (String::from_utf8(output).expect("text"), outcome)
}

/// Runs something in a new cell.
pub async fn alone(text: &str) -> (String, Outcome) {
    let cell = cell().await;
    let sandbox = sandbox(&cell).await;
    follow(cell.run(sandbox, command(text)).expect("a run")).await
}

/// Runs something that ends by itself; returns what it wrote.
pub async fn run(cell: &Cell, sandbox: SandboxId, text: &str) -> String {
    let (output, outcome) = follow(cell.run(sandbox, command(text)).expect("a run")).await;
    assert!(matches!(outcome, Outcome::Ended(_)), "{text}: {outcome:?}");
    output
}
