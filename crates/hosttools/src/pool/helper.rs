//! A helper process, as seen by the pool.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::process::Child;
use tokio::sync::watch;

use super::{Phase, Shared};
use crate::config::PoolConfig;
use crate::error::ToolError;
use crate::worker::end_tree;
use crate::worker::wire::{self, Descriptors, Order, Report};

/// The command that starts a helper.
#[derive(Clone, Debug)]
pub(super) struct Command {
    program: PathBuf,
    args: Vec<OsString>,
}

impl Command {
    pub fn of(config: &PoolConfig) -> Result<Command, ToolError> {
        let mut words = config.worker.iter().cloned();
        if let Some(program) = words.next() {
            return Ok(Command { program, args: words.map(PathBuf::into_os_string).collect() });
        }
        let program = std::env::current_exe().map_err(|error| {
            ToolError::WorkerLost(format!("where this program is cannot be found out: {error}"))
        })?;
        Ok(Command { program, args: vec!["__worker".into()] })
    }
}

/// A helper that is ready for a job. Dropping it stops it and everything it has started.
pub(super) struct Helper {
    pub number: u32,
    socket: UnixStream,
    received: Vec<u8>,
    shared: Arc<Shared>,
    process: Option<Process>,
}

/// The keeper's process, and the lifeline: closing it stops the keeper.
struct Process {
    child: Child,
    lifeline: OwnedFd,
    /// A shutdown waits for all listeners.
    _listens: watch::Receiver<Phase>,
}

impl Helper {
    pub async fn start(shared: Arc<Shared>, number: u32) -> io::Result<Helper> {
        let (ours, theirs) = StdUnixStream::pair()?;
        let (read, lifeline) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        ours.set_nonblocking(true)?;
        let child = tokio::process::Command::new(&shared.command.program)
            .args(&shared.command.args)
            // Nothing of its own environment: what programs may know is in each job.
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(read))
            .spawn()?;
        let patience = shared.patience.confirm;
        shared.helpers.lock().extend(child.id());
        let process = Some(Process { child, lifeline, _listens: shared.phase.subscribe() });
        let mut helper =
            Helper { number, socket: UnixStream::from_std(ours)?, received: vec![], shared, process };
        match tokio::time::timeout(patience, helper.report()).await {
            Ok(Ok(Report::Ready(wire::VERSION))) => Ok(helper),
            Ok(Ok(Report::Ready(_))) => {
                Err(io::Error::other("the worker is of another version than this program"))
            }
            Ok(Err(error)) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            Ok(_) => Err(io::Error::other("the configured worker program is not a Wardian worker")),
            Err(_) => Err(io::Error::other("the worker did not start in time")),
        }
    }

    /// Sends it a job, with the descriptors the job needs.
    pub async fn send_job(&mut self, order: &Order, descriptors: &Descriptors<OwnedFd>) -> io::Result<()> {
        let frame = wire::frame(order)?;
        let send = || wire::send_with(&self.socket, &frame, descriptors);
        let sent = self.socket.async_io(Interest::WRITABLE, send).await?;
        self.socket.write_all(&frame[sent..]).await
    }

    pub async fn send(&mut self, order: &Order) -> io::Result<()> {
        self.socket.write_all(&wire::frame(order)?).await
    }

    /// Returns its next report. End of file means that the helper ended. Cancellation-safe: nothing is lost.
    pub async fn report(&mut self) -> io::Result<Report> {
        loop {
            if let Some(report) = wire::unframe(&mut self.received)? {
                return Ok(report);
            }
            if self.socket.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        if let (Some(process), Ok(runtime)) = (self.process.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(see_off(process, self.shared.clone()));
        }
    }
}

/// How long a keeper may take to stop everything, before it is killed itself with everything below it.
const PARTING: Duration = Duration::from_secs(2);

/// Closes the lifeline and waits for the helper's end; one that is stopped or stuck is killed, and everything below it.
async fn see_off(process: Process, shared: Arc<Shared>) {
    let Process { mut child, lifeline, _listens } = process;
    let id = child.id();
    drop(lifeline);
    if tokio::time::timeout(PARTING, child.wait()).await.is_err() {
        if let Some(keeper) = id.and_then(|id| Pid::from_raw(id as i32)) {
            let _ = end_tree(keeper);
        }
        let _ = child.wait().await;
    }
    shared.helpers.lock().retain(|helper| Some(*helper) != id);
}
