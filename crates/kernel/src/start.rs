//! A program started from outside, without a shell.

use std::sync::Arc;
use std::time::Duration;

use wardian_vfs::{Caller, Errno};

use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable, OpenFile};
use crate::input::Input;
use crate::machine::Machine;
use crate::outlet::Outlet;
use crate::proc::{Pid, Process, Seed, Status, UID};
use crate::run::{Run, Usage};
use crate::signal::{SIGKILL, Signal};
use crate::stream::{Output, Standard};
use crate::strings::Strings;
use crate::tty::Terminal;
use crate::{drain, spawn, task};

/// A program to start, and its parameters.
pub struct Start {
    /// Its path in the sandbox.
    pub path: Vec<u8>,
    /// Its arguments, starting with its name.
    pub argv: Vec<Vec<u8>>,
    /// Its environment, as `NAME=VALUE`.
    pub env: Vec<Vec<u8>>,
    /// Its working directory.
    pub cwd: Vec<u8>,
    /// Descriptor 0.
    pub input: Arc<Input>,
    /// Descriptors 1 and 2.
    pub output: Arc<Output>,
    /// What replaces all three, if it runs on a terminal.
    pub terminal: Option<Arc<Terminal>>,
    /// The user whose rights it has; 0 may write and read every file.
    pub uid: u32,
}

impl Start {
    /// Creates a program with arguments, in the root directory, with no input and outputs that keep a mebibyte each.
    pub fn new(path: &str, arguments: &[&str]) -> Start {
        let argv = std::iter::once(path).chain(arguments.iter().copied());
        Start {
            path: path.as_bytes().to_vec(),
            argv: argv.map(|a| a.as_bytes().to_vec()).collect(),
            env: Vec::new(),
            cwd: b"/".to_vec(),
            input: Input::empty(),
            output: Output::kept(1 << 20),
            terminal: None,
            uid: UID,
        }
    }
}

/// A started program. Dropping this leaves it running.
pub struct Started {
    machine: Arc<Machine>,
    process: Arc<Process>,
    run: Arc<Run>,
}

impl Machine {
    /// Starts a program in a separate run, as soon as there is capacity for it.
    pub async fn start(self: &Arc<Self>, start: Start) -> Result<Started, Errno> {
        let berth = self.kernel().room().wait(self.gate().sandbox()).await?;
        let cwd = {
            let mut tree = self.tree().await;
            let root = tree.root();
            let caller = Caller { uid: start.uid, gid: start.uid, ..Caller::USER };
            Cwd::enter(self, &mut tree, &caller, &root, &start.cwd)?
        };
        let mut fds = FdTable::new(self.limits().open_files);
        let outlet = Outlet::to(start.output);
        let streams = match &start.terminal {
            Some(terminal) => [Standard::Input, Standard::Output, Standard::Error]
                .map(|which| OpenFile::terminal(terminal.clone(), which)),
            None => [
                OpenFile::input(start.input),
                OpenFile::output(outlet.clone(), Standard::Output),
                OpenFile::output(outlet, Standard::Error),
            ],
        };
        for (number, stream) in (0..).zip(streams) {
            fds.put(number, Fd::new(stream))?;
        }
        let run = Arc::new(Run::at(start.terminal.clone()));
        let (argv, env) = (Strings::given(&start.argv)?, Strings::given(&start.env)?);
        let seed = Seed::of_host(run.clone(), fds, cwd, argv.clone(), &*start.path).for_user(start.uid);
        let process = self.table().add(0, None, seed)?;
        if let Some(terminal) = &start.terminal {
            terminal.attach(self, process.pid);
        }
        let request = match spawn::find(self, &process, start.path, argv, env).await {
            Ok(request) => request,
            Err(errno) => {
                self.end(&process, Status::Exited(127));
                return Err(errno);
            }
        };
        let body = spawn::run_program(self.clone(), process.clone(), request, berth);
        task::launch(self.kernel(), &process.task(), Box::pin(body));
        Ok(Started { machine: self.clone(), process, run })
    }
}

impl Started {
    /// Returns its process id.
    pub fn pid(&self) -> Pid {
        self.process.pid
    }

    /// Waits for it to end.
    pub async fn wait(&self) -> Status {
        let mut ended = self.process.ended.subscribe();
        match ended.wait_for(Option::is_some).await {
            Ok(status) => status.unwrap_or(Status::Signaled(SIGKILL)),
            Err(_) => Status::Signaled(SIGKILL),
        }
    }

    /// Waits until everything it wrote to `>(…)` has come through. To be called when it has ended.
    pub async fn drained(&self) {
        drain::drained(&self.machine, &self.run, self.process.pid).await;
    }

    /// Waits for so long, by the clock of its timeout: that stands while the machine is suspended, and while programs that
    /// ship with Wardian are compiled.
    pub async fn sleep(&self, timeout: Duration) {
        self.run.clock().sleep(self.machine.gate(), timeout).await;
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        drop(self.machine.signal(&self.process, signal));
    }

    /// Sends a signal to it and to those it started that are in its group, as a terminal does.
    pub fn signal_group(&self, signal: Signal) {
        self.machine.signal_group(self.process.pid, signal);
    }

    /// Sets a deadline for what it has left running.
    pub fn limit_background(&self, after: Option<Duration>) {
        self.machine.limit_background(&self.run, after);
    }

    /// Kills it and everything it started.
    pub fn kill(&self) {
        self.machine.kill_run(&self.run, None);
    }

    /// Returns whether one of its processes could not continue because of a limit.
    pub fn was_cut_short(&self) -> bool {
        self.run.was_cut_short()
    }

    /// Returns programs that it was not allowed to start.
    pub fn denied(&self) -> Vec<Vec<u8>> {
        self.run.denied()
    }

    /// Returns the first limit it hit.
    pub fn limit_hit(&self) -> Option<&'static str> {
        self.run.limit_hit()
    }

    /// Returns what it and its children used so far.
    pub fn usage(&self) -> Usage {
        self.run.usage()
    }
}
