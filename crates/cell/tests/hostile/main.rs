//! A cell for the tests. What it runs is not a shell but the words below, and some of them do all that a cell could do
//! that somebody has taken over: it makes system calls of its own and writes to the socket what it likes.

mod attempts;
mod forged;

use std::future::pending;
use std::time::Duration;

use tokio::runtime::Runtime;
use wardian_cell::message::{
    Class, NotStarted, Refusal, RunEnd, RunSpec, SandboxId, SandboxSpec, Settings, Stream,
};
use wardian_cell::worker::{self, RunIo, Sealed, Sealing, Task, Tenant};

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("says-nonsense") => forged::before_it_starts(),
        _ => worker::main(prepare),
    }
}

fn prepare(_: &Settings, sealing: Sealing) -> Result<(Hostile, Sealed), NotStarted> {
    // As a cell has its compiled programs: open, and to be read only.
    let held = std::fs::File::open("/proc/self/exe").map_err(other)?;
    if std::env::args().nth(1).as_deref() == Some("not-compiled") {
        return Err(NotStarted::NotCompiled("sh".to_owned()));
    }
    let sealed = sealing.seal()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    Ok((Hostile { runtime: runtime.map_err(other)?, held: std::sync::Arc::new(held) }, sealed))
}

fn other(error: std::io::Error) -> NotStarted {
    NotStarted::Other(error.to_string())
}

struct Hostile {
    runtime: Runtime,
    held: std::sync::Arc<std::fs::File>,
}

impl Tenant for Hostile {
    fn spawn(&self, task: Task<()>) {
        self.runtime.spawn(task);
    }

    fn create(&self, _: SandboxId, spec: SandboxSpec) -> Task<Result<(), Refusal>> {
        let refused = spec.cwd.is_some_and(|cwd| cwd == "/nowhere");
        Box::pin(
            async move { if refused { Err(Refusal("there is no /nowhere".to_owned())) } else { Ok(()) } },
        )
    }

    fn fork(&self, _: SandboxId, _: SandboxId) -> Task<Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }

    fn destroy(&self, _: SandboxId) -> Task<Result<(), Refusal>> {
        Box::pin(async { Ok(()) })
    }

    fn run(&self, _: SandboxId, run: RunSpec, io: RunIo) -> Task<Result<Box<RunEnd>, Refusal>> {
        let held = self.held.clone();
        Box::pin(async move {
            let text = String::from_utf8_lossy(&run.command).into_owned();
            let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
            if word == "forge" {
                forged::send(worker::socket_of(&io), rest);
                return pending().await;
            }
            io.began().await;
            obey(word, rest, &io, &held).await
        })
    }
}

async fn obey(word: &str, rest: &str, io: &RunIo, held: &std::fs::File) -> Result<Box<RunEnd>, Refusal> {
    match word {
        "echo" => io.write(Stream::Stdout, rest.as_bytes(), false).await,
        "turns" => {
            for turn in 0..100 {
                let stream = if turn % 2 == 0 { Stream::Stdout } else { Stream::Stderr };
                io.write(stream, format!("{turn} ").as_bytes(), false).await;
            }
        }
        "cat" => {
            while let Ok(bytes) = io.read(1000).await
                && !bytes.is_empty()
            {
                io.write(Stream::Stdout, &bytes, false).await;
            }
        }
        "much" => io.write(Stream::Stdout, &vec![b'x'; rest.parse().unwrap_or(0)], false).await,
        "sleep" => {
            io.cancelled().notified().await;
            return Ok(Box::new(RunEnd {
                exit_code: 125,
                class: Some(Class::Cancelled),
                ..RunEnd::default()
            }));
        }
        "hang" => return pending().await,
        "spin" => attempts::spin(),
        "die" => attempts::die(),
        "pid" => io.write(Stream::Stdout, std::process::id().to_string().as_bytes(), false).await,
        "attempts" => {
            let lines: Vec<String> = attempts::all(held, worker::socket_of(io));
            io.write(Stream::Stdout, lines.join("\n").as_bytes(), false).await;
        }
        "descriptors" => io.write(Stream::Stdout, attempts::descriptors().as_bytes(), false).await,
        "eat" => io.write(Stream::Stdout, attempts::eat().as_bytes(), false).await,
        "slowly" => {
            tokio::time::sleep(Duration::from_millis(50)).await;
            io.write(Stream::Stdout, b"done", false).await;
        }
        _ => return Err(Refusal(format!("{word}: not a word of this cell"))),
    }
    Ok(Box::default())
}
