//! Running a command: what it is given, and how its end becomes a result.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};
use wardian_kernel::{Command, Ended, Input, Machine, Output, Piece, Sink, Stream, Terminal};
use wardian_vfs::{Caller, Errno, FileKind};

use crate::audit::Event;
use crate::checks::{check_length, check_variable};
use crate::env;
use crate::error::{Error, lost};
use crate::limit::Limit;
use crate::options::{ENVIRONMENT, OnKill};
use crate::output_file::{Copying, OutputFile};
use crate::result::{ErrorClass, Outcome, RunResult, Truncated, Usage, judge, note};
use crate::sandbox::{Sandbox, SessionGuard};

/// How many pieces of output may wait for a callback before the guest does.
const PIECES: usize = 4;

/// A command with everything one can say about it.
pub struct Run {
    command: Vec<u8>,
    stdin: Arc<Input>,
    terminal: Option<Arc<Terminal>>,
    timeout: Option<Option<Duration>>,
    on_stdout: Option<Listener<Vec<u8>>>,
    on_stderr: Option<Listener<Vec<u8>>>,
    on_output: Option<Listener<Piece>>,
    last: bool,
    contained: bool,
    env: Vec<(String, String)>,
    cwd: Option<String>,
    on_kill: Option<OnKill>,
    output_file: Option<String>,
    cancel: Arc<Notify>,
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = String::from_utf8_lossy(&self.command);
        f.debug_struct("Run")
            .field("command", &command)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Called with each piece of output.
type Callback = Box<dyn FnMut(Stream, &[u8]) + Send>;

/// Who gets output as it comes.
enum Listener<T> {
    Channel(mpsc::Sender<T>),
    Callback(Callback),
}

impl Run {
    /// This script, without input.
    pub fn new(command: impl Into<Vec<u8>>) -> Run {
        Run {
            command: command.into(),
            stdin: Input::empty(),
            terminal: None,
            timeout: None,
            on_stdout: None,
            on_stderr: None,
            on_output: None,
            last: false,
            contained: false,
            env: Vec::new(),
            cwd: None,
            on_kill: None,
            output_file: None,
            cancel: Arc::default(),
        }
    }

    /// Its standard input.
    pub fn stdin(mut self, input: Arc<Input>) -> Run {
        self.stdin = input;
        self
    }

    /// Runs it at a terminal, which is then its input and both its outputs.
    pub fn terminal(mut self, terminal: Arc<Terminal>) -> Run {
        self.terminal = Some(terminal);
        self
    }

    /// Overrides the sandbox's timeout; `None` for no limit.
    pub fn timeout(mut self, timeout: Option<Duration>) -> Run {
        self.timeout = Some(timeout);
        self
    }

    /// Overrides what happens to the files if it is killed.
    pub fn on_kill(mut self, on_kill: OnKill) -> Run {
        self.on_kill = Some(on_kill);
        self
    }

    /// Ends it when `cancel` is notified (`notify_one`), as [`Sandbox::cancel`] does, but this one and no other: also
    /// while it still waits for its turn.
    pub fn cancelled_by(mut self, cancel: Arc<Notify>) -> Run {
        self.cancel = cancel;
        self
    }

    /// Gets both streams as they come, up to their limits, in the order in which they are written and in pieces of whole
    /// characters; the result then holds neither. A full channel makes the guest wait. A stream that has a listener of
    /// its own goes to that instead.
    pub fn on_output(mut self, listener: mpsc::Sender<Piece>) -> Run {
        self.on_output = Some(Listener::Channel(listener));
        self
    }

    /// Calls `callback` with both streams as they come, in order, in the task that waits for the run. A slow callback
    /// makes the guest wait.
    pub fn on_output_call(mut self, callback: impl FnMut(Stream, &[u8]) + Send + 'static) -> Run {
        self.on_output = Some(Listener::Callback(Box::new(callback)));
        self
    }

    /// Gets standard output alone, with a queue of its own: how far another listener is does not matter, and what nobody
    /// listens to is in the result. A full channel blocks writers of this stream.
    pub fn on_stdout(mut self, listener: mpsc::Sender<Vec<u8>>) -> Run {
        self.on_stdout = Some(Listener::Channel(listener));
        self
    }

    /// Gets standard error as [`Run::on_stdout`] gets standard output.
    pub fn on_stderr(mut self, listener: mpsc::Sender<Vec<u8>>) -> Run {
        self.on_stderr = Some(Listener::Channel(listener));
        self
    }

    /// Calls `callback` with standard output as it comes, in the task that waits for the run. A slow callback makes the
    /// guest wait.
    pub fn on_stdout_call(mut self, mut callback: impl FnMut(&[u8]) + Send + 'static) -> Run {
        self.on_stdout = Some(Listener::Callback(Box::new(move |_, piece| callback(piece))));
        self
    }

    /// The same for standard error. Two callbacks are called in the order in which the streams are written.
    pub fn on_stderr_call(mut self, mut callback: impl FnMut(&[u8]) + Send + 'static) -> Run {
        self.on_stderr = Some(Listener::Callback(Box::new(move |_, piece| callback(piece))));
        self
    }

    /// Says that no other command follows: at the end the shell lets go of the pipes it still holds, as when it exits, so
    /// that what reads from them (`exec > >(sort)`) comes to its end and is waited for.
    pub fn last(mut self) -> Run {
        self.last = true;
        self
    }

    /// Keeps the shell options (`set`, `shopt`) and traps that it sets from outliving it. Variables, functions, aliases and
    /// the directory stay, as without this; so does an option that an uncontained command has set.
    pub fn contained(mut self, contained: bool) -> Run {
        self.contained = contained;
        self
    }

    /// Keeps all of its output, both streams in order, in a file of the sandbox as well, beyond all limits of the result. The file
    /// is created, or emptied, before the command begins, and counts against the sandbox's limits like any other; the result says
    /// whether it has everything: [`RunResult::output_file`]. A relative path starts where the shell is.
    pub fn output_file(mut self, path: impl Into<String>) -> Run {
        self.output_file = Some(path.into());
        self
    }

    /// An environment variable for this command alone.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Run {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The directory for this command alone.
    pub fn cwd(mut self, cwd: impl Into<String>) -> Run {
        self.cwd = Some(cwd.into());
        self
    }
}

/// Where each stream goes, and what must be done for it to arrive.
fn connect(
    stdout: Option<Listener<Vec<u8>>>,
    stderr: Option<Listener<Vec<u8>>>,
    both: Option<Listener<Piece>>,
) -> ([Sink; 2], impl Future<Output = ()> + Send) {
    let (sender, mut pieces) = mpsc::channel::<Piece>(PIECES);
    let (shared, mut call_both) = match both {
        None => (None, None),
        Some(Listener::Channel(channel)) => (Some(channel), None),
        Some(Listener::Callback(callback)) => (Some(sender.clone()), Some(callback)),
    };
    // All callbacks share one channel: they are called by one task, in order.
    let sink = |own| match own {
        None => (shared.clone().map_or(Sink::Keep, Sink::Shared), None),
        Some(Listener::Channel(channel)) => (Sink::Own(channel), None),
        Some(Listener::Callback(callback)) => (Sink::Shared(sender.clone()), Some(callback)),
    };
    let ((to_stdout, mut call_stdout), (to_stderr, mut call_stderr)) = (sink(stdout), sink(stderr));
    let pumping = async move {
        while let Some(Piece { stream, bytes, .. }) = pieces.recv().await {
            let own = if stream == Stream::Stdout { &mut call_stdout } else { &mut call_stderr };
            if let Some(callback) = own.as_mut().or(call_both.as_mut()).filter(|_| !bytes.is_empty()) {
                callback(stream, &bytes);
            }
        }
    };
    ([to_stdout, to_stderr], pumping)
}

/// A command on its way, and what its result needs to know.
struct InProgress {
    sandbox: Sandbox,
    machine: Arc<Machine>,
    output: Arc<Output>,
    /// Copies output to a file on its way there.
    copying: Option<Copying>,
    timeout: Option<Duration>,
    /// Which interpreter runs it, if not the shell.
    interpreter: Option<String>,
}

/// The most bytes of an answer of the shell.
const SHELL_ANSWER: usize = 16 << 20;

impl Sandbox {
    /// Runs a script.
    pub async fn run(&self, command: impl Into<Vec<u8>>) -> Result<RunResult, Error> {
        self.run_with(Run::new(command)).await
    }

    /// Runs a script with its input, timeout and listeners. Commands of one sandbox run one after the other, in the
    /// order in which they came; the clock starts when a command does. Dropping the future ends the command.
    pub async fn run_with(&self, run: Run) -> Result<RunResult, Error> {
        Ok(self.execute(run, None).await?.0)
    }

    /// Runs a script in the shell or, if one is named, code in an interpreter, whose answer comes with the result.
    pub(crate) async fn execute(
        &self,
        run: Run,
        interpreter: Option<String>,
    ) -> Result<(RunResult, Option<Vec<u8>>), Error> {
        let limits = *self.limits();
        if run.command.len() > limits.command_bytes {
            self.live()?;
            self.inner().record(Event::LimitExceeded { limit: "commandBytes" });
            return Ok((RunResult::too_long(run.command.len(), limits.command_bytes), None));
        }
        let given =
            run.env.iter().map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>());
        check_length("env", given.sum(), ENVIRONMENT)?;
        for (name, value) in &run.env {
            check_variable(name, value)?;
        }
        let session = self.session().await?;
        if run.contained && !session.can_contain() {
            return Err(Error::Unsupported("contained: the shell of this build cannot"));
        }
        if let Some(cwd) = &run.cwd {
            self.check_directory(cwd).await?;
        }
        self.check_audit()?;
        if let Some(name) = &interpreter {
            self.start_interpreter(&session, name).await?;
        }
        let (sinks, pumping) = connect(run.on_stdout, run.on_stderr, run.on_output);
        let output = Output::new([limits.stdout_bytes, limits.stderr_bytes], sinks);
        let (written_to, copying) = match &run.output_file {
            None => (output.clone(), None),
            Some(path) => {
                let (from, copying) = Copying::start(self, path, &output).await?;
                (from, Some(copying))
            }
        };
        let progress = InProgress {
            sandbox: self.clone(),
            machine: self.machine(),
            output,
            copying,
            timeout: run.timeout.unwrap_or(self.inner().setup.timeout),
            interpreter,
        };
        let cancel = run.cancel;
        let cwd = run.cwd.map(|cwd| String::from_utf8_lossy(&self.absolute(cwd)).into_owned());
        let command = Command {
            around: env::around(&run.env, cwd.as_deref()),
            script: run.command,
            input: run.stdin,
            output: written_to,
            terminal: run.terminal,
            timeout: progress.timeout,
            background: self.inner().setup.background_timeout,
            cancel: cancel.clone(),
            rolls_back: run.on_kill.unwrap_or(self.inner().setup.on_kill) == OnKill::Rollback,
            lets_go: run.last,
            contained: run.contained,
        };
        let running = self.begin(&cancel);
        let dropped = CancelOnDrop::new(&cancel);
        let task = self.kernel().spawn(progress.run(session, command, running));
        let (result, ()) = tokio::join!(task, pumping);
        dropped.disarm();
        let (result, answer, saved) = result.map_err(lost)?;
        saved?;
        Ok((result, answer))
    }

    /// Asks the shell something, at a terminal (`wardian_ask` in docs/abi.md). Waits for a command in progress.
    pub(crate) async fn ask(
        &self,
        question: Vec<u8>,
        terminal: &Arc<Terminal>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut session = self.session().await?;
        let cancel = Arc::new(Notify::new());
        let question = Command {
            script: question,
            around: None,
            input: Input::empty(),
            output: Output::kept(0),
            terminal: Some(terminal.clone()),
            timeout: None,
            background: None,
            cancel: cancel.clone(),
            rolls_back: false,
            lets_go: false,
            contained: false,
        };
        let running = self.begin(&cancel);
        let dropped = CancelOnDrop::new(&cancel);
        let task = self.kernel().spawn(async move {
            let _running = running;
            session.ask(question, SHELL_ANSWER).await
        });
        let (_, answer) = task.await.map_err(lost)?;
        dropped.disarm();
        Ok(answer)
    }

    /// Says that a command runs that `cancel` ends. Destroying the sandbox first says so and then looks for a command;
    /// here it is the other way round, so that one of the two always sees the other.
    pub(crate) fn begin(&self, cancel: &Arc<Notify>) -> Running {
        let running = Running::begin(&self.inner().running, cancel);
        if self.live().is_err() {
            cancel.notify_one();
        }
        running
    }

    async fn check_directory(&self, cwd: &str) -> Result<(), Error> {
        let path = self.absolute(cwd);
        let at = path.clone();
        let machine = self.live()?;
        let root = machine.tree().await.root();
        let looking =
            move |tree: &mut wardian_vfs::Tree| match tree.stat(&Caller::USER, &tree.root(), &at, true) {
                Ok(stat) if stat.kind == FileKind::Dir => Ok(()),
                Ok(_) => Err(Errno::ENOTDIR),
                Err(errno) => Err(errno),
            };
        machine.at_path(&root, &path, looking).await.map_err(|errno| Error::refused(errno, &path))
    }
}

impl InProgress {
    /// On the kernel's runtime, so that it comes to its end also when nobody waits for it any more.
    async fn run(
        mut self,
        mut session: SessionGuard,
        command: Command,
        running: Running,
    ) -> (RunResult, Option<Vec<u8>>, Result<(), Error>) {
        let copying = self.copying.take();
        let inner = self.sandbox.inner();
        let persists = inner.persist.lock().is_some();
        let command_line = if persists { command.script.clone() } else { Default::default() };
        if self.interpreter.is_none() {
            inner.history.lock().add(&command.script);
        }
        inner.record(Event::CommandStart { command: &command.script });
        let start = Instant::now();
        let (finished, answer) = match &self.interpreter {
            None => (session.run(command).await, None),
            Some(name) => self.sandbox.ask_interpreter(&session, name, command).await,
        };
        inner.directory.follow(&session);
        let duration = start.elapsed();
        let peak_memory_bytes = self.machine.peak_memory();
        drop(running);
        let outcome = Outcome { finished, unreachable: inner.way.take_denied() };
        self.record(&outcome, duration);
        // It is saved with everything else.
        let file = match copying {
            Some(copying) => copying.end(self.note(&outcome).as_deref()).await.ok(),
            None => None,
        };
        let exit_code = judge(&outcome).0;
        let saved = self.sandbox.committed(Some(&session), &command_line, Some(i32::from(exit_code))).await;
        drop(session);
        inner.system.pool.note_warm(inner);
        // Only now, since a listener may take its time and the next command need not wait for it.
        let result = self.report(outcome, duration, peak_memory_bytes).await;
        (with_file(result, file), answer, saved)
    }

    fn record(&self, outcome: &Outcome, duration: Duration) {
        let (inner, finished) = (self.sandbox.inner(), &outcome.finished);
        for tool in &finished.denied {
            inner.record(Event::CapabilityDenied { tool });
        }
        if let Some(limit) = finished.limit {
            inner.record(Event::LimitExceeded { limit });
        }
        let (exit_code, class) = judge(outcome);
        inner.record(match class {
            Some(ErrorClass::Timeout) => Event::CommandTimeout { timeout: self.timeout.unwrap_or_default() },
            Some(ErrorClass::Cancelled) => Event::CommandCancelled,
            class => Event::CommandComplete { exit_code, duration, class, limit: finished.limit },
        });
    }

    /// Returns what the kernel has to say of its end.
    fn note(&self, outcome: &Outcome) -> Option<String> {
        let who = if self.interpreter.is_some() { "the interpreter" } else { "the shell" };
        note(outcome, who, self.timeout, self.sandbox.limits())
    }

    async fn report(&self, outcome: Outcome, duration: Duration, peak_memory_bytes: u64) -> RunResult {
        let (exit_code, error_class) = judge(&outcome);
        let message = self.note(&outcome);
        let finished = outcome.finished;
        let Ended { stdout, stderr, cut, order } = self.output.end(message.as_deref()).await;
        let truncated = Truncated { stdout: cut[0], stderr: cut[1] };
        let cut = match truncated.stdout {
            true => Some(Limit::StdoutBytes),
            false => truncated.stderr.then_some(Limit::StderrBytes),
        };
        RunResult {
            exit_code,
            stdout,
            stderr,
            order,
            duration,
            waited: finished.waited,
            truncated,
            error_class,
            limit: finished.limit.and_then(Limit::named).or(cut),
            output_file: None,
            usage: Usage {
                cpu_ms: finished.usage.cpu_nanos / 1_000_000,
                peak_memory_bytes,
                processes: finished.usage.processes,
                bytes_read: finished.usage.bytes_read,
                bytes_written: finished.usage.bytes_written,
            },
        }
    }
}

/// Adds what became of the file. One for which there was no room has hit a limit.
fn with_file(mut result: RunResult, file: Option<OutputFile>) -> RunResult {
    if file.as_ref().is_some_and(|file| file.error == Some(Errno::ENOSPC)) {
        result.limit = result.limit.or(Some(Limit::FsBytes));
    }
    result.output_file = file;
    result
}

/// Says that a command runs, until it does not: also when nobody waits for it any more. Dropped before the session is, so
/// that it never speaks of the next command.
pub(crate) struct Running(Arc<Mutex<Option<Arc<Notify>>>>);

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
pub(crate) struct CancelOnDrop(Option<Arc<Notify>>);

impl CancelOnDrop {
    pub(crate) fn new(cancel: &Arc<Notify>) -> CancelOnDrop {
        CancelOnDrop(Some(cancel.clone()))
    }

    pub(crate) fn disarm(mut self) {
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
