//! `wardian run --isolation process`: the sandbox in a jailed process of its own.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::sync::mpsc;
use wardian::cell::{
    Cell, CellError, CellOptions, CellRun, CellStream, Collected, Event, RunSpec, SandboxSpec,
};
use wardian::{Engine, InputRead, InputSource, Limits, OutputStream, RunResult};

use crate::streams::{Stdin, copy_in_order};

/// The word that makes this program a cell.
pub(crate) const COMMAND: &str = "__cell";
/// How many pieces of output may wait for a slow terminal before the guest does.
const PIECES: usize = 16;

/// What separates a sandbox from this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Isolation {
    /// WebAssembly.
    #[default]
    Thread,
    /// WebAssembly, in a process of its own that can open no file, no socket and no program.
    Process,
}

/// A script for a cell.
pub(crate) struct Script {
    pub(crate) command: Vec<u8>,
    pub(crate) timeout: Option<Duration>,
    /// Whether this process's standard input is left for it.
    pub(crate) input: bool,
}

/// Runs a script in a new sandbox of a new cell. The result has the output if it `keeps` it; else it was passed on.
pub(crate) async fn run(
    script: Script,
    env: Vec<(String, String)>,
    cwd: Option<String>,
    limits: &Limits,
    keeps: bool,
) -> Result<RunResult> {
    let cell = start().await?;
    let spec = SandboxSpec { env, cwd, limits: wardian::cell::limits(limits) };
    let sandbox = cell.create(spec).await?;
    let Script { command, timeout, input } = script;
    let run = RunSpec { command, timeout, input, last: true, ..RunSpec::default() };
    let run = cell.run(sandbox, run)?;
    if keeps {
        return follow(run, Collected::new(true), None).await;
    }
    let (sender, copying) = copy_in_order(PIECES);
    let result = follow(run, Collected::new(false), Some(sender)).await;
    // The sender is gone, so the thread ends when it has written what there was.
    copying.end()?;
    result
}

/// Starts a cell: this program once more. The programs that every sandbox needs are compiled first, if nobody has.
async fn start() -> Result<Cell> {
    let this = std::env::current_exe().context("where this program is cannot be found out")?;
    let options = CellOptions::new(vec![this, PathBuf::from(COMMAND)]);
    match Cell::start(options.clone()).await {
        Err(CellError::NotCompiled(_)) => {
            tokio::task::spawn_blocking(Engine::shared).await??;
            Ok(Cell::start(options).await?)
        }
        started => Ok(started?),
    }
}

type Output = mpsc::Sender<(OutputStream, Vec<u8>)>;

/// Follows a run to its end, and gives it what it wants of this process's input.
async fn follow(mut run: CellRun, mut collected: Collected, output: Option<Output>) -> Result<RunResult> {
    let mut reading: Option<InputRead<'static>> = None;
    loop {
        let event = tokio::select! {
            event = run.next() => event,
            read = input(&mut reading) => {
                reading = None;
                match read {
                    Ok(bytes) => run.input(bytes),
                    Err(_) => run.input_failed(),
                }
                continue;
            }
        };
        match event {
            Event::WantInput(most) => reading = Some(Stdin.read(most)),
            Event::Output(piece) => {
                collected.add(&piece);
                let stream = match piece.stream {
                    CellStream::Stdout => OutputStream::Stdout,
                    CellStream::Stderr => OutputStream::Stderr,
                };
                if let Some(output) = &output
                    && output.send((stream, piece.bytes)).await.is_err()
                {
                    // Nobody reads it any more, as with a broken pipe: the thread that writes says why.
                    run.cancel();
                }
            }
            Event::Ended(end) => return Ok(collected.ended(*end)),
            Event::Refused(why) => return Err(anyhow::anyhow!(why)),
            Event::Gone(why) => {
                let result = collected.crashed(&why);
                if let Some(output) = output {
                    let _ = output.send((OutputStream::Stderr, result.stderr.clone())).await;
                }
                return Ok(result);
            }
        }
    }
}

/// Waits for input that is being read; for ever if there is none.
async fn input(reading: &mut Option<InputRead<'static>>) -> std::io::Result<Vec<u8>> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}
