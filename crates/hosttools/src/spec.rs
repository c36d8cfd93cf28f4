//! What to run, and its result: the types that the gateway and the pool share.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use wardian_confine::Required;

/// A program to run, fully decided and not changed any more.
#[derive(Clone, Debug)]
pub struct ExecSpec {
    /// The program: an absolute path, without symbolic links.
    pub program: PathBuf,
    /// Its `argv[0]`: one file may be many programs, distinguished by this name.
    pub name: OsString,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// Its working directory.
    pub cwd: HeldDirectory,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its timeout.
    pub timeout: Duration,
    /// How many bytes of each stream are kept.
    pub max_output: usize,
    /// What the operating system lets it do.
    pub confinement: Confinement,
}

/// A directory that was opened (`O_PATH`) when it was checked: what its name leads to later does not matter.
#[derive(Clone, Debug)]
pub struct HeldDirectory {
    path: PathBuf,
    descriptor: Arc<OwnedFd>,
}

impl HeldDirectory {
    /// Holds the directory `descriptor`, known as `path`.
    pub fn new(path: PathBuf, descriptor: OwnedFd) -> HeldDirectory {
        HeldDirectory { path, descriptor: Arc::new(descriptor) }
    }

    /// Returns its path when it was opened: for messages and `PWD`, not for opening it again.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for HeldDirectory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What the operating system lets a program do.
pub type Confinement = wardian_confine::Confinement<HeldDirectory>;

/// The result of a program.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finished {
    /// How it ended.
    pub status: Ended,
    /// What it wrote, up to `max_output` bytes; if there was more, a marker follows.
    pub stdout: Vec<u8>,
    /// The same for standard error.
    pub stderr: Vec<u8>,
    /// Whether one of the two was truncated at `max_output`.
    pub truncated: bool,
    /// Whether it timed out.
    pub timed_out: bool,
    /// How long it ran.
    pub duration: Duration,
    /// The worker that ran it; 0 if there is no pool.
    pub worker: u32,
    /// The lane it ran in.
    pub lane: Lane,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited, with this code.
    Exit(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl Ended {
    /// Returns its exit code as a shell shows it: the code, or 128 plus the signal.
    pub fn code(self) -> i32 {
        match self {
            Ended::Exit(code) => code,
            Ended::Signal(signal) => 128 + signal,
        }
    }
}

/// The lane of a call: which workers serve it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Calls of agents and people.
    Interactive,
    /// Wardian's own housekeeping, with a separate worker.
    System,
}

impl Lane {
    /// Returns its name in records and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Interactive => "interactive",
            Lane::System => "system",
        }
    }
}

/// A piece of output.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputChunk {
    /// Its stream.
    pub stream: Stream,
    /// What was written.
    pub bytes: Vec<u8>,
}

/// Standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Receives output while a program runs. At most `max_output` bytes of each stream are sent, so it is not bounded
/// otherwise; if the listener has gone away, the program continues.
pub type OutputSink = tokio::sync::mpsc::UnboundedSender<OutputChunk>;
