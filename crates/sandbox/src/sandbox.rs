//! A sandbox: a current value and, while a command runs, the machine that turns it into the next.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};
use wardian_kernel::{Command, Finished, Input, Machine, Output, Session, Terminal, Verdict};
use wardian_vfs::Tree;

use crate::error::Error;
use crate::options::{Builder, Limits};
use crate::result::{ErrorClass, RunResult, Truncated, Usage, cut_at_character};
use crate::system::System;

/// A command with everything one can say about it.
pub struct Run {
    command: Vec<u8>,
    stdin: Arc<Input>,
    timeout: Option<Option<Duration>>,
    on_stdout: Option<mpsc::Sender<Vec<u8>>>,
    on_stderr: Option<mpsc::Sender<Vec<u8>>>,
    terminal: Option<Arc<Terminal>>,
}

impl Run {
    /// This script, without input.
    pub fn new(command: impl Into<Vec<u8>>) -> Run {
        Run {
            command: command.into(),
            stdin: Input::empty(),
            timeout: None,
            on_stdout: None,
            on_stderr: None,
            terminal: None,
        }
    }

    /// Its standard input.
    pub fn stdin(mut self, input: Arc<Input>) -> Run {
        self.stdin = input;
        self
    }

    /// How long it may take, instead of what the sandbox was made with; `None` for ever.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Run {
        self.timeout = Some(timeout);
        self
    }

    /// Gets standard output as it comes; a full channel makes the guest wait.
    pub fn on_stdout(mut self, listener: mpsc::Sender<Vec<u8>>) -> Run {
        self.on_stdout = Some(listener);
        self
    }

    /// Gets standard error as it comes; a full channel makes the guest wait.
    pub fn on_stderr(mut self, listener: mpsc::Sender<Vec<u8>>) -> Run {
        self.on_stderr = Some(listener);
        self
    }

    /// Runs it at a terminal, which is then its input and both its outputs.
    pub fn terminal(mut self, terminal: Arc<Terminal>) -> Run {
        self.terminal = Some(terminal);
        self
    }
}

/// A sandbox. Cloning the handle shares it; [`Sandbox::fork`] makes another.
#[derive(Clone)]
pub struct Sandbox(Arc<Inner>);

struct Inner {
    system: Arc<System>,
    machine: Arc<Machine>,
    limits: Limits,
    timeout: Option<Duration>,
    /// Locked by whoever runs or forks: commands queue here, in order.
    session: Arc<AsyncMutex<Session>>,
    /// How to end the command that runs.
    running: Arc<Mutex<Option<Arc<Notify>>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.machine.kill_all();
    }
}

impl Sandbox {
    /// Options, each with a default.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn start(system: Arc<System>, tree: Tree, builder: &Builder) -> Result<Sandbox, Error> {
        let machine = Machine::new(&system.kernel, tree, builder.limits.kernel());
        let (env, cwd) = (builder.environment()?, builder.cwd_bytes().to_vec());
        let starting = {
            let (machine, shell, cwd) = (machine.clone(), system.shell.clone(), cwd.clone());
            system.kernel.handle().spawn(async move { Session::start(&machine, &shell, env, &cwd).await })
        };
        let session = starting.await.map_err(lost)?.map_err(|errno| Error::refused(errno, &cwd))?;
        Ok(Sandbox::over(system, machine, session, builder.limits, builder.timeout))
    }

    fn over(
        system: Arc<System>,
        machine: Arc<Machine>,
        session: Session,
        limits: Limits,
        timeout: Option<Duration>,
    ) -> Sandbox {
        let session = Arc::new(AsyncMutex::new(session));
        Sandbox(Arc::new(Inner { system, machine, limits, timeout, session, running: Arc::default() }))
    }

    /// Runs a script.
    pub async fn run(&self, command: impl Into<Vec<u8>>) -> Result<RunResult, Error> {
        self.run_with(Run::new(command)).await
    }

    /// Runs a script with its input, timeout and listeners. Dropping the future ends the command.
    pub async fn run_with(&self, run: Run) -> Result<RunResult, Error> {
        let inner = &self.0;
        if run.command.len() > inner.limits.command_bytes {
            return Ok(too_long(run.command.len(), inner.limits.command_bytes));
        }
        let mut session = inner.session.clone().lock_owned().await;
        let stdout = Output::new(keep(&run.on_stdout, inner.limits.stdout_bytes), run.on_stdout);
        let stderr = Output::new(keep(&run.on_stderr, inner.limits.stderr_bytes), run.on_stderr);
        let timeout = run.timeout.unwrap_or(inner.timeout);
        let cancel = Arc::new(Notify::new());
        let running = Running::begin(&inner.running, &cancel);
        let dropped = CancelOnDrop(Some(cancel.clone()));
        let command = Command {
            script: run.command,
            input: run.stdin,
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            terminal: run.terminal,
            timeout,
            cancel,
        };
        let start = Instant::now();
        let task = inner.system.kernel.handle().spawn(async move {
            let _running = running;
            session.run(command).await
        });
        let finished = task.await.map_err(lost)?;
        dropped.disarm();
        let result = self.report(finished, &stdout, &stderr, timeout, start.elapsed()).await;
        stdout.hang_up();
        stderr.hang_up();
        Ok(result)
    }

    /// Asks the shell something, at a terminal (`wardian_ask` in docs/abi.md). Waits for a command in progress.
    pub(crate) async fn ask(
        &self,
        question: Vec<u8>,
        terminal: &Arc<Terminal>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let inner = &self.0;
        let mut session = inner.session.clone().lock_owned().await;
        let cancel = Arc::new(Notify::new());
        let running = Running::begin(&inner.running, &cancel);
        let dropped = CancelOnDrop(Some(cancel.clone()));
        let question = Command {
            script: question,
            input: Input::empty(),
            stdout: Output::new(0, None),
            stderr: Output::new(0, None),
            terminal: Some(terminal.clone()),
            timeout: None,
            cancel,
        };
        let task = inner.system.kernel.handle().spawn(async move {
            let _running = running;
            session.ask(question).await
        });
        let (_, answer) = task.await.map_err(lost)?;
        dropped.disarm();
        Ok(answer)
    }

    async fn report(
        &self,
        finished: Finished,
        stdout: &Output,
        stderr: &Output,
        timeout: Option<Duration>,
        duration: Duration,
    ) -> RunResult {
        let (exit_code, error_class) = judge(&finished);
        let (mut out, out_total) = stdout.take();
        let out_cut = out_total > out.len() as u64 && !stdout.is_streamed();
        if out_cut {
            cut_at_character(&mut out);
        }
        let (mut err, err_total) = stderr.take();
        let err_cut = err_total > err.len() as u64 && !stderr.is_streamed();
        if err_cut {
            cut_at_character(&mut err);
        }
        if let Some(message) = message(&finished, timeout) {
            stderr.note(&message).await;
            err.extend(stderr.take().0);
        }
        let cut_limit = if out_cut { Some("stdoutBytes") } else { err_cut.then_some("stderrBytes") };
        RunResult {
            exit_code,
            stdout: out,
            stderr: err,
            duration,
            truncated: Truncated { stdout: out_cut, stderr: err_cut },
            error_class,
            limit: finished.limit.or(cut_limit),
            usage: Usage {
                cpu_ms: finished.usage.cpu_nanos / 1_000_000,
                peak_memory_bytes: self.0.machine.peak_memory(),
                processes: finished.usage.processes,
                bytes_read: finished.usage.bytes_read,
                bytes_written: finished.usage.bytes_written,
            },
        }
    }

    /// Ends the command that runs; `false` when none does.
    pub fn cancel(&self) -> bool {
        match &*self.0.running.lock() {
            Some(running) => {
                running.notify_one();
                true
            }
            None => false,
        }
    }

    /// A second sandbox that is as this one is now. Waits for a command in progress; background processes stay
    /// behind.
    pub async fn fork(&self) -> Result<Sandbox, Error> {
        let inner = &self.0;
        let session = inner.session.lock().await;
        let mut tree = inner.machine.tree().await.clone();
        session.at_rest().take_along(&mut tree);
        let machine = Machine::new(&inner.system.kernel, tree, inner.limits.kernel());
        let copy = Session::restore(&machine, &inner.system.shell, session.at_rest())
            .map_err(|errno| Error::refused(errno, b"fork"))?;
        Ok(Sandbox::over(inner.system.clone(), machine, copy, inner.limits, inner.timeout))
    }

    /// The machine it runs on, for those who want to count what is alive in it.
    pub fn machine(&self) -> &Arc<Machine> {
        &self.0.machine
    }
}

/// Says that a command runs, until it does not: also when nobody waits for it any more.
struct Running(Arc<Mutex<Option<Arc<Notify>>>>);

impl Running {
    fn begin(slot: &Arc<Mutex<Option<Arc<Notify>>>>, cancel: &Arc<Notify>) -> Running {
        *slot.lock() = Some(cancel.clone());
        Running(slot.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().take();
    }
}

/// Ends the command when its caller stops waiting for it.
struct CancelOnDrop(Option<Arc<Notify>>);

impl CancelOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(cancel) = &self.0 {
            cancel.notify_one();
        }
    }
}

/// A run whose output is handed on as it comes keeps none of it.
fn keep(listener: &Option<mpsc::Sender<Vec<u8>>>, cap: usize) -> usize {
    if listener.is_some() { 0 } else { cap }
}

fn lost(error: tokio::task::JoinError) -> Error {
    Error::Lost(error.to_string())
}

fn too_long(len: usize, limit: usize) -> RunResult {
    RunResult {
        exit_code: 1,
        stdout: Vec::new(),
        stderr: format!("wardian: command too long ({len} bytes, limit {limit})\n").into_bytes(),
        duration: Duration::ZERO,
        truncated: Truncated::default(),
        error_class: Some(ErrorClass::LimitExceeded),
        limit: Some("commandBytes"),
        usage: Usage::default(),
    }
}

fn judge(finished: &Finished) -> (u8, Option<ErrorClass>) {
    match finished.verdict {
        Verdict::Exited(code) => (code, None),
        Verdict::TimedOut => (124, Some(ErrorClass::Timeout)),
        Verdict::Cancelled => (125, Some(ErrorClass::Cancelled)),
        Verdict::Killed(_) if finished.limit.is_some() => (137, Some(ErrorClass::LimitExceeded)),
        Verdict::Killed(signal) => (128 + signal, None),
    }
}

fn message(finished: &Finished, timeout: Option<Duration>) -> Option<String> {
    match finished.verdict {
        Verdict::Exited(_) => None,
        Verdict::TimedOut => {
            Some(format!("wardian: timed out after {} ms", timeout.unwrap_or_default().as_millis()))
        }
        Verdict::Cancelled => Some("wardian: cancelled".to_owned()),
        Verdict::Killed(signal) => Some(match finished.limit {
            Some(limit) => format!("wardian: the shell was ended: {limit} used up"),
            None => format!("wardian: the shell was ended by signal {signal}"),
        }),
    }
}
