//! Processes beside the shell: started by the host, each with a handle, several at once.
//!
//! ```text
//!  write, type ──► at most INPUT bytes wait ──► descriptor 0, or a terminal's line discipline
//!  next_output ◄── a few pieces wait, then the guest does ◄── descriptors 1 and 2, or the terminal's screen
//!  wait        ◄── how it ended, once everything it wrote is there to be taken
//! ```
//!
//! Such a process is a program of its own over the sandbox's files. It does not wait for commands that run in the shell, nor do
//! they for it; it has the sandbox's environment and not the shell's variables. It counts against the sandbox's limits
//! and ends with it, with its last handle, and when the sandbox's files are replaced (`restore`, an import). Forks and
//! snapshots do not contain it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};
use wardian_kernel::{Output, Piece, Sink, Start, Started, Status, Stream, Terminal};
use wardian_vfs::{Access, Caller, Errno, NAME_MAX, PATH_MAX};

use crate::audit::Event;
use crate::checks::{check_length, check_variable};
use crate::env::{keep_last, name_of};
use crate::error::{Error, lost};
use crate::limit::Limit;
use crate::options::ENVIRONMENT;
use crate::process_input::Queue;
use crate::result::ErrorClass;
use crate::sandbox::Sandbox;

/// How many pieces of output may wait for the host before the guest does.
const PIECES: usize = 4;
/// How long names of programs, directories and arguments may be together.
const ARGUMENTS: usize = 2 << 20;

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct ProcessOptions {
    argv: Vec<Vec<u8>>,
    env: Vec<(String, String)>,
    cwd: Option<String>,
    stdin: bool,
    pty: Option<(u16, u16)>,
    timeout: Option<Duration>,
    root: bool,
}

impl ProcessOptions {
    /// A command for a fresh `bash`.
    pub fn command(command: impl Into<Vec<u8>>) -> ProcessOptions {
        ProcessOptions::program([b"/bin/bash".to_vec(), b"-c".to_vec(), command.into()])
    }

    /// A program and its arguments. A name without a slash is looked up in `PATH`.
    pub fn program<A: Into<Vec<u8>>>(argv: impl IntoIterator<Item = A>) -> ProcessOptions {
        let argv = argv.into_iter().map(Into::into).collect();
        ProcessOptions {
            argv,
            env: Vec::new(),
            cwd: None,
            stdin: false,
            pty: None,
            timeout: None,
            root: false,
        }
    }

    /// Sets a variable, in addition to those of the sandbox.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> ProcessOptions {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Where it starts, instead of where the sandbox's shell did.
    pub fn cwd(mut self, cwd: impl Into<String>) -> ProcessOptions {
        self.cwd = Some(cwd.into());
        self
    }

    /// Keeps its standard input open for [`Process::write`]; otherwise it is empty.
    pub fn stdin(mut self, stdin: bool) -> ProcessOptions {
        self.stdin = stdin;
        self
    }

    /// Starts it at a terminal of this size, which is then its input and both its outputs.
    pub fn pty(mut self, rows: u16, columns: u16) -> ProcessOptions {
        self.pty = Some((rows, columns));
        self
    }

    /// Kills it after so long. There is no timeout otherwise.
    pub fn timeout(mut self, timeout: Option<Duration>) -> ProcessOptions {
        self.timeout = timeout;
        self
    }

    /// Gives it root's rights to the sandbox's files. Nothing outside of the sandbox changes by it.
    pub fn root(mut self, root: bool) -> ProcessOptions {
        self.root = root;
        self
    }
}

/// A piece of what a process wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessOutput {
    /// Where it was written.
    pub stream: ProcessStream,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// Where a process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessStream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
    /// Its terminal.
    Pty,
}

impl ProcessStream {
    /// Returns its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            ProcessStream::Stdout => "stdout",
            ProcessStream::Stderr => "stderr",
            ProcessStream::Pty => "pty",
        }
    }
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProcessEnd {
    /// Its exit code; 128 and the signal if one ended it, 124 after its timeout.
    pub exit_code: u8,
    /// The signal that ended it.
    pub signal: Option<u8>,
    /// Why it did not run normally, if it did not.
    pub error_class: Option<ErrorClass>,
    /// The limit that ended one of its processes, or else the first it hit.
    pub limit: Option<Limit>,
    /// How long it took.
    pub duration: Duration,
}

/// A started process. Clones refer to the same process; dropping the last one kills it, unless it has ended.
#[derive(Clone)]
pub struct Process(Arc<Inner>);

struct Inner {
    started: Arc<Started>,
    /// What it was started with, for lists.
    argv: Vec<Vec<u8>>,
    input: Writing,
    output: tokio::sync::Mutex<Reading>,
    ended: watch::Receiver<Option<ProcessEnd>>,
    timed_out: Arc<AtomicBool>,
}

enum Writing {
    Closed,
    Pipe(Arc<Queue>),
    Terminal(Arc<Terminal>),
}

enum Reading {
    Pipes(mpsc::Receiver<Piece>),
    Terminal(Arc<Terminal>),
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("pid", &self.pid()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if self.ended.borrow().is_none() {
            self.started.kill();
        }
    }
}

impl Sandbox {
    /// Starts a process beside the shell. Acts immediately, whatever the shell does.
    pub async fn start_process(&self, options: ProcessOptions) -> Result<Process, Error> {
        let machine = self.live()?;
        self.check_audit()?;
        let env = self.process_environment(&options)?;
        let given: usize = options.argv.iter().map(|word| word.len() + size_of::<Vec<u8>>()).sum();
        check_length("argv", given, ARGUMENTS)?;
        let Some(name) = options.argv.first().filter(|name| !name.is_empty()) else {
            return Err(Error::Option("there is no program to start".to_owned()));
        };
        let cwd = self.absolute(options.cwd.as_deref().unwrap_or(&self.inner().setup.cwd));
        let path = self.program_path(name, &env, &cwd, options.root).await?;
        let terminal = options.pty.map(|(rows, columns)| Terminal::new(rows, columns));
        let (sender, pieces) = mpsc::channel(PIECES);
        let output = Output::new([usize::MAX; 2], [Sink::Shared(sender.clone()), Sink::Shared(sender)]);
        let queue = options.stdin.then(Queue::new);
        let start = Start {
            path,
            argv: options.argv.clone(),
            env,
            cwd: cwd.clone(),
            input: Queue::input(queue.as_ref()),
            output: output.clone(),
            terminal: terminal.clone(),
            uid: if options.root { Caller::ROOT.uid } else { Caller::USER.uid },
        };
        let input = match (&terminal, queue) {
            (Some(terminal), _) => Writing::Terminal(terminal.clone()),
            (None, Some(queue)) => Writing::Pipe(queue),
            (None, None) => Writing::Closed,
        };
        let reading = match &terminal {
            Some(terminal) => Reading::Terminal(terminal.clone()),
            None => Reading::Pipes(pieces),
        };
        let (sandbox, timeout) = (self.clone(), options.timeout);
        // On the kernel's runtime, and to its end even if nobody waits for it: then the handle is dropped, and kills it.
        let starting = self.kernel().spawn(async move {
            let started = Arc::new(machine.start(start).await?);
            let (end, ended) = watch::channel(None);
            let timed_out = Arc::new(AtomicBool::new(false));
            let watched = Watched {
                sandbox,
                started: started.clone(),
                output,
                terminal,
                timeout,
                timed_out: timed_out.clone(),
            };
            watched.record_start(&options.argv);
            tokio::spawn(watched.until_the_end(end));
            let output = tokio::sync::Mutex::new(reading);
            Ok(Process(Arc::new(Inner { started, argv: options.argv, input, output, ended, timed_out })))
        });
        let started = starting.await.map_err(lost)?;
        started.map_err(|errno| Error::refused(errno, &cwd))
    }

    fn process_environment(&self, options: &ProcessOptions) -> Result<Vec<Vec<u8>>, Error> {
        let given =
            options.env.iter().map(|(name, value)| name.len() + value.len() + size_of::<(String, String)>());
        check_length("env", given.sum(), ENVIRONMENT)?;
        let mut env = self.inner().setup.environment.clone();
        let mut set = |name: &str, value: &str| env.push(format!("{name}={value}").into_bytes());
        if options.pty.is_some() {
            set("TERM", "xterm-256color");
        }
        if options.root {
            for name in ["USER", "LOGNAME"] {
                set(name, "root");
            }
        }
        for (name, value) in &options.env {
            check_variable(name, value)?;
            set(name, value);
        }
        keep_last(&mut env, |variable| name_of(variable));
        Ok(env)
    }

    /// Finds a program by name, as `execvp` does.
    async fn program_path(
        &self,
        name: &[u8],
        env: &[Vec<u8>],
        cwd: &[u8],
        root: bool,
    ) -> Result<Vec<u8>, Error> {
        if name.contains(&b'/') {
            return Ok(name.to_vec());
        }
        // Before they are copied for each directory.
        for (part, most) in [(name, NAME_MAX), (cwd, PATH_MAX)] {
            if part.len() > most {
                return Err(Error::refused(Errno::ENAMETOOLONG, &part[..most]));
            }
        }
        let path = env.iter().find_map(|variable| variable.strip_prefix(b"PATH=")).unwrap_or_default();
        let candidates: Vec<Vec<u8>> = path
            .split(|&byte| byte == b':')
            .take(256)
            .map(|directory| match directory {
                [b'/', ..] => [directory, b"/", name].concat(),
                _ => [cwd, b"/", directory, b"/", name].concat(),
            })
            .collect();
        let caller = if root { Caller::ROOT } else { Caller::USER };
        let machine = self.live()?;
        let found = machine.aside(move |tree| {
            let runs = |candidate: &Vec<u8>, tree: &mut wardian_vfs::Tree| {
                let root = tree.root();
                let is_file = tree.stat(&caller, &root, candidate, true)?.kind == wardian_vfs::FileKind::File;
                if is_file { tree.access(&caller, &root, candidate, Access::X) } else { Err(Errno::EACCES) }
            };
            Ok(candidates.into_iter().find(|candidate| runs(candidate, tree).is_ok()))
        });
        let found = found.await.map_err(|errno| Error::refused(errno, name))?;
        found.ok_or_else(|| Error::refused(Errno::ENOENT, name))
    }
}

/// Supervises a process until it has ended.
struct Watched {
    sandbox: Sandbox,
    started: Arc<Started>,
    output: Arc<Output>,
    terminal: Option<Arc<Terminal>>,
    timeout: Option<Duration>,
    timed_out: Arc<AtomicBool>,
}

impl Watched {
    fn record_start(&self, argv: &[Vec<u8>]) {
        self.sandbox.inner().record(Event::CommandStart { command: &argv.join(&b' ') });
    }

    async fn until_the_end(self, end: watch::Sender<Option<ProcessEnd>>) {
        let begun = Instant::now();
        // A sandbox that nobody has any more ends, whatever is started in it.
        let Watched { sandbox, started, output, terminal, timeout, timed_out } = self;
        let (inner, setup) = (Arc::downgrade(sandbox.inner()), sandbox.inner().setup.clone());
        drop(sandbox);
        let too_long = async {
            match timeout {
                Some(timeout) => started.sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let status = tokio::select! {
            biased;
            status = started.wait() => status,
            () = too_long => {
                timed_out.store(true, Ordering::SeqCst);
                started.kill();
                started.wait().await
            }
        };
        if !timed_out.load(Ordering::SeqCst) {
            started.drained().await;
        }
        output.end(None).await;
        if let Some(terminal) = terminal {
            terminal.hang_up();
        }
        started.limit_background(setup.background_timeout);
        let ended = judge(&started, status, timed_out.load(Ordering::SeqCst), begun.elapsed());
        if let Some(inner) = inner.upgrade() {
            inner.record(match ended.error_class {
                Some(ErrorClass::Timeout) => Event::CommandTimeout { timeout: timeout.unwrap_or_default() },
                class => Event::CommandComplete {
                    exit_code: ended.exit_code,
                    duration: ended.duration,
                    class,
                    limit: ended.limit.map(Limit::name),
                },
            });
        }
        end.send_replace(Some(ended));
    }
}

fn judge(started: &Started, status: Status, timed_out: bool, duration: Duration) -> ProcessEnd {
    let limit = started.limit_hit().and_then(Limit::named);
    let error_class = if timed_out {
        Some(ErrorClass::Timeout)
    } else if started.was_cut_short() && limit.is_some() {
        Some(ErrorClass::LimitExceeded)
    } else {
        (!started.denied().is_empty()).then_some(ErrorClass::CapabilityDenied)
    };
    let signal = if let Status::Signaled(signal) = status { Some(signal) } else { None };
    let exit_code = if timed_out { 124 } else { status.shell_code() };
    ProcessEnd { exit_code, signal, error_class, limit, duration }
}

impl Process {
    /// Returns its process id in the sandbox.
    pub fn pid(&self) -> u32 {
        self.0.started.pid()
    }

    /// Returns its program and arguments.
    pub fn argv(&self) -> &[Vec<u8>] {
        &self.0.argv
    }

    /// Returns whether it has a terminal.
    pub fn has_pty(&self) -> bool {
        matches!(self.0.input, Writing::Terminal(_))
    }

    /// Returns the next piece of what it wrote, in order; `None` once it has ended and everything was taken. While nobody
    /// takes its output, it waits to write more. Of several callers each gets some of the pieces.
    pub async fn next_output(&self) -> Option<ProcessOutput> {
        let mut reading = self.0.output.lock().await;
        match &mut *reading {
            Reading::Pipes(pieces) => loop {
                let Piece { stream, bytes, .. } = pieces.recv().await?;
                let stream =
                    if stream == Stream::Stdout { ProcessStream::Stdout } else { ProcessStream::Stderr };
                if !bytes.is_empty() {
                    return Some(ProcessOutput { stream, bytes });
                }
            },
            Reading::Terminal(terminal) => {
                let bytes = terminal.shown().await?;
                Some(ProcessOutput { stream: ProcessStream::Pty, bytes })
            }
        }
    }

    /// Writes to its standard input, or types at its terminal. Waits while too much of it is unread. EPIPE if the input was
    /// not asked for or is closed, or it has ended.
    pub async fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        let gone = || Error::refused(Errno::EPIPE, b"standard input");
        let mut ended = self.0.ended.clone();
        let ended = async {
            // A sender that is gone has said so.
            let _ = ended.wait_for(Option::is_some).await;
        };
        let written = async {
            match &self.0.input {
                Writing::Closed => Err(gone()),
                Writing::Pipe(queue) => queue.write(bytes).await.map_err(|()| gone()),
                Writing::Terminal(terminal) => {
                    terminal.type_bytes(bytes).await;
                    Ok(())
                }
            }
        };
        tokio::select! {
            biased;
            () = ended => Err(gone()),
            written = written => written,
        }
    }

    /// Closes its standard input: it reads the end after what was written. At a terminal this types Ctrl-D.
    pub async fn close_stdin(&self) -> Result<(), Error> {
        match &self.0.input {
            Writing::Closed => Err(Error::refused(Errno::EPIPE, b"standard input")),
            Writing::Pipe(queue) => {
                queue.close();
                Ok(())
            }
            Writing::Terminal(_) => self.write(&[4]).await,
        }
    }

    /// Sends a signal, from 1 to 31, to it and to what it started in its group; KILL ends everything it started.
    pub fn signal(&self, signal: u8) -> Result<(), Error> {
        match signal {
            9 => self.kill(),
            1..=31 => self.0.started.signal_group(signal),
            _ => return Err(Error::refused(Errno::EINVAL, format!("signal {signal}").as_bytes())),
        }
        Ok(())
    }

    /// Kills it and everything it started.
    pub fn kill(&self) {
        self.0.started.kill();
    }

    /// Changes the size of its terminal.
    pub fn resize(&self, rows: u16, columns: u16) -> Result<(), Error> {
        match &self.0.input {
            Writing::Terminal(terminal) => {
                terminal.resize(rows, columns);
                Ok(())
            }
            _ => Err(Error::refused(Errno::ENOTTY, b"resize")),
        }
    }

    /// Returns how it ended, if it has.
    pub fn ended(&self) -> Option<ProcessEnd> {
        self.0.ended.borrow().clone()
    }

    /// Waits for it to end. What it wrote must be taken meanwhile ([`Process::next_output`]), or it may never end.
    pub async fn wait(&self) -> ProcessEnd {
        let mut ended = self.0.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(end) => end.clone(),
            Err(_) => None,
        }
        .unwrap_or_else(|| {
            judge(
                &self.0.started,
                Status::Signaled(9),
                self.0.timed_out.load(Ordering::SeqCst),
                Duration::ZERO,
            )
        })
    }
}
