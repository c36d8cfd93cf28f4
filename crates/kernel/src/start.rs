//! A program started from outside, without a shell.

use std::sync::Arc;

use wardian_vfs::{Caller, Errno};

use crate::cwd::Cwd;
use crate::fd::{Fd, FdTable, OpenFile};
use crate::input::Input;
use crate::machine::Machine;
use crate::outlet::Outlet;
use crate::proc::{Pid, Process, Seed, Status};
use crate::run::{Run, Usage};
use crate::signal::{SIGKILL, Signal};
use crate::stream::{Output, Standard};
use crate::strings::Strings;
use crate::tty::Terminal;
use crate::{spawn, task};

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
            Cwd::enter(self, &mut tree, &Caller::USER, &root, &start.cwd)?
        };
        let mut fds = FdTable::new(self.limits().open_files);
        let outlet = Outlet::to(start.output);
        let streams = match &start.terminal {
            Some(terminal) => [Standard::Input, Standard::Output, Standard::Error]
                .map(|which| OpenFile::Terminal(terminal.clone(), which)),
            None => [
                OpenFile::Input(start.input),
                OpenFile::Output(outlet.clone(), Standard::Output),
                OpenFile::Output(outlet, Standard::Error),
            ],
        };
        for (number, stream) in (0..).zip(streams) {
            fds.put(number, Fd::new(stream))?;
        }
        let run = Arc::new(Run::at(start.terminal.clone()));
        let (argv, env) = (Strings::given(&start.argv)?, Strings::given(&start.env)?);
        let seed = Seed::of_host(run.clone(), fds, cwd, argv.clone(), &start.path);
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

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        drop(self.machine.signal(&self.process, signal));
    }

    /// Kills it and everything it started.
    pub fn kill(&self) {
        self.machine.kill_run(&self.run, None);
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
