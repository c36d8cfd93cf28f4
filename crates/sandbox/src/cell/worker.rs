//! A cell from inside: sandboxes of an engine of its own, by the numbers that the supervisor gives them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use wardian_cell::message::{
    Class, MOST_TEXT, NotStarted, Refusal, RunEnd, RunSpec, SandboxId, SandboxSpec, Settings,
    Stream as ToStream,
};
use wardian_cell::worker::{self, RunIo, Sealed, Sealing, Task, Tenant};
use wardian_kernel::{Input, KernelConfig, Piece, Source, SourceRead, Stream, Unstarted};

use crate::engine::Engine;
use crate::options::Limits;
use crate::programs::{self, LATER, SHELL, TOOLS};
use crate::result::{ErrorClass, RunResult};
use crate::run::Run;
use crate::sandbox::Sandbox;
use crate::system::System;

/// How many pieces of output may wait for the supervisor before the guest does.
const PIECES: usize = 2;

/// Runs as a cell until the supervisor is done with it. Call it first of all, in a program that
/// [`CellOptions`](crate::cell::CellOptions) names.
pub fn main() -> ! {
    worker::main(prepare)
}

/// Opens the compiled programs, seals this process, and starts an engine.
fn prepare(settings: &Settings, sealing: Sealing) -> Result<(Boxes, Sealed), NotStarted> {
    let config = KernelConfig {
        workers: settings.threads.map(|threads| threads.max(1) as usize),
        artifacts: settings.cache.as_ref().map(Into::into),
        ..KernelConfig::default()
    };
    let mut kernel = Unstarted::new(config).map_err(other)?;
    let shipped = [&SHELL, &TOOLS].into_iter().chain(LATER);
    let sources = shipped.map(|program| program.source()).collect::<Result<Vec<_>, _>>().map_err(other)?;
    kernel.hold(&sources, &programs::key()).map_err(other)?;
    // These every sandbox needs. Another one is missed by whoever starts it.
    if let Some(missing) = sources.iter().take(2).find(|source| !kernel.is_compiled(source)) {
        return Err(NotStarted::NotCompiled(missing.name.clone()));
    }
    wardian_kernel::tune_allocator();
    let sealed = sealing.seal()?;
    let kernel = kernel.start().map_err(other)?;
    let system = System::over(kernel, &|_| ()).map_err(other)?;
    Ok((Boxes { engine: Engine::of(&Arc::new(system)), sandboxes: Arc::default() }, sealed))
}

fn other(error: impl std::fmt::Display) -> NotStarted {
    NotStarted::Other(error.to_string())
}

/// The sandboxes of a cell.
struct Boxes {
    engine: Engine,
    sandboxes: Arc<Mutex<HashMap<SandboxId, Sandbox>>>,
}

impl Boxes {
    fn sandbox(&self, sandbox: SandboxId) -> Result<Sandbox, Refusal> {
        self.sandboxes.lock().get(&sandbox).cloned().ok_or_else(|| refusal("there is no such sandbox"))
    }
}

impl Tenant for Boxes {
    fn spawn(&self, task: Task<()>) {
        self.engine.system().kernel.handle().spawn(task);
    }

    fn create(&self, sandbox: SandboxId, spec: SandboxSpec) -> Task<Result<(), Refusal>> {
        let (mut builder, sandboxes) = (self.engine.sandbox(), self.sandboxes.clone());
        Box::pin(async move {
            builder = builder.limits(limits(&spec.limits)).timeout(None);
            if let Some(cwd) = spec.cwd {
                builder = builder.cwd(cwd);
            }
            for (name, value) in spec.env {
                builder = builder.env(name, value);
            }
            let built = builder.build().await.map_err(refusal)?;
            sandboxes.lock().insert(sandbox, built);
            Ok(())
        })
    }

    fn fork(&self, sandbox: SandboxId, child: SandboxId) -> Task<Result<(), Refusal>> {
        let (parent, sandboxes) = (self.sandbox(sandbox), self.sandboxes.clone());
        Box::pin(async move {
            let forked = parent?.fork().await.map_err(refusal)?;
            sandboxes.lock().insert(child, forked);
            Ok(())
        })
    }

    fn destroy(&self, sandbox: SandboxId) -> Task<Result<(), Refusal>> {
        let gone = self.sandboxes.lock().remove(&sandbox);
        Box::pin(async move {
            if let Some(gone) = gone {
                gone.destroy().await;
            }
            Ok(())
        })
    }

    fn run(&self, sandbox: SandboxId, spec: RunSpec, io: RunIo) -> Task<Result<Box<RunEnd>, Refusal>> {
        let sandbox = self.sandbox(sandbox);
        Box::pin(async move {
            let sandbox = sandbox?;
            let (sender, mut pieces) = mpsc::channel::<Piece>(PIECES);
            let input = if spec.input { Input::source(Supervisor(io.clone())) } else { Input::empty() };
            let mut run = Run::new(spec.command)
                .stdin(input)
                .timeout(spec.timeout)
                .on_output(sender)
                .cancelled_by(io.cancelled().clone());
            if spec.last {
                run = run.last();
            }
            if let Some(cwd) = spec.cwd {
                run = run.cwd(cwd);
            }
            for (name, value) in spec.env {
                run = run.env(name, value);
            }
            let sending = async {
                while let Some(Piece { stream, bytes, cut, .. }) = pieces.recv().await {
                    let stream = if stream == Stream::Stdout { ToStream::Stdout } else { ToStream::Stderr };
                    io.write(stream, &bytes, cut).await;
                }
            };
            io.began().await;
            let (result, ()) = tokio::join!(sandbox.run_with(run), sending);
            result.map(|result| Box::new(end(result))).map_err(refusal)
        })
    }
}

fn refusal(error: impl std::fmt::Display) -> Refusal {
    let mut text = error.to_string();
    text.truncate(text.floor_char_boundary(MOST_TEXT));
    Refusal(text)
}

/// Standard input, which the supervisor has.
struct Supervisor(RunIo);

impl Source for Supervisor {
    fn read(&self, max: usize) -> SourceRead<'_> {
        let gone = |_| std::io::Error::other("the supervisor cannot read it");
        Box::pin(async move { self.0.read(max).await.map_err(gone) })
    }
}

fn limits(told: &wardian_cell::message::Limits) -> Limits {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    Limits {
        stdout_bytes: size(told.stdout_bytes),
        stderr_bytes: size(told.stderr_bytes),
        command_bytes: size(told.command_bytes),
        fs_bytes: told.fs_bytes,
        file_count: told.file_count,
        memory_bytes: told.memory_bytes,
        processes: size(told.processes),
        open_files: size(told.open_files),
    }
}

fn end(result: RunResult) -> RunEnd {
    let class = result.error_class.and_then(|class| match class {
        ErrorClass::Timeout => Some(Class::Timeout),
        ErrorClass::Cancelled => Some(Class::Cancelled),
        ErrorClass::LimitExceeded => Some(Class::LimitExceeded),
        ErrorClass::CapabilityDenied => Some(Class::CapabilityDenied),
        // What a supervisor says, and no sandbox.
        ErrorClass::WorkerCrashed => None,
    });
    let mut note = result.stderr;
    note.truncate(MOST_TEXT);
    RunEnd {
        exit_code: result.exit_code,
        duration: result.duration,
        waited: result.waited,
        class,
        limit: result.limit.map(|limit| limit.name().to_owned()),
        note,
        cpu_ms: result.usage.cpu_ms,
        peak_memory_bytes: result.usage.peak_memory_bytes,
        processes: result.usage.processes,
        bytes_read: result.usage.bytes_read,
        bytes_written: result.usage.bytes_written,
    }
}
