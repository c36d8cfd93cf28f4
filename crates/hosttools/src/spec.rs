//! What is to be run, and what came of it: the words the door and the pool share.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// One program to run, decided once and not changed any more.
#[derive(Clone, Debug)]
pub struct ExecSpec {
    /// The program: absolute, without symbolic links.
    pub program: PathBuf,
    /// What it is called (`argv[0]`): one file may be many programs, told apart by this.
    pub name: OsString,
    /// Its arguments, without its name.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub cwd: HeldDirectory,
    /// All of its environment.
    pub env: Vec<(OsString, OsString)>,
    /// How long it may take.
    pub timeout: Duration,
    /// How many bytes of each stream are kept.
    pub max_output: usize,
    /// What the operating system lets it do.
    pub confinement: Confinement,
}

/// A directory that was opened (`O_PATH`) when it was checked: what its name leads to later changes nothing.
#[derive(Clone, Debug)]
pub struct HeldDirectory {
    path: PathBuf,
    descriptor: Arc<OwnedFd>,
}

impl HeldDirectory {
    /// The directory `descriptor`, known as `path`.
    pub fn new(path: PathBuf, descriptor: OwnedFd) -> HeldDirectory {
        HeldDirectory { path, descriptor: Arc::new(descriptor) }
    }

    /// What it was called when it was opened: for messages and `PWD`, not for opening it again.
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
#[derive(Clone, Debug)]
pub struct Confinement {
    /// The one directory whose files it may reach, besides the system's programs and libraries.
    pub jail: HeldDirectory,
    /// More files and directories it may read.
    pub readable: Vec<PathBuf>,
    /// More directories it may read and change.
    pub writable: Vec<PathBuf>,
    /// Whether it may change files in the jail.
    pub write: bool,
    /// Whether it may, besides, change mode, owner, times and attributes of files by their path: of any the user owns,
    /// since landlock does not hold these. Of a file it has open it may without.
    pub attributes: bool,
    /// Whether it may open sockets.
    pub network: bool,
    /// Whether it may start other programs.
    pub children: bool,
    /// Bytes of address space.
    pub memory: u64,
    /// Open descriptors.
    pub files: u64,
    /// Processes of its user.
    pub processes: u64,
    /// Bytes of a file it writes.
    pub file_size: u64,
    /// What must be in force, or nothing runs.
    pub required: Required,
}

/// What must be in force before a program runs. Opting out is the caller's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Required {
    /// Landlock: files beyond the jail cannot be reached.
    pub landlock: bool,
    /// Seccomp: system calls it has no use for do not work.
    pub seccomp: bool,
}

impl Default for Required {
    fn default() -> Required {
        Required { landlock: true, seccomp: true }
    }
}

/// What came of a program.
#[derive(Clone, Debug)]
pub struct Finished {
    /// How it ended.
    pub status: Ended,
    /// What it wrote, up to `max_output` bytes; if there was more, a marker behind them says so.
    pub stdout: Vec<u8>,
    /// The same for standard error.
    pub stderr: Vec<u8>,
    /// Whether one of the two was cut at `max_output`.
    pub truncated: bool,
    /// Whether it was ended at its deadline.
    pub timed_out: bool,
    /// How long it ran.
    pub duration: Duration,
    /// The worker that ran it; 0 where there is no pool.
    pub worker: u32,
    /// The lane it ran in.
    pub lane: Lane,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// As a shell shows it: the code, or 128 and the signal.
    pub fn code(self) -> i32 {
        match self {
            Ended::Exit(code) => code,
            Ended::Signal(signal) => 128 + signal,
        }
    }
}

/// Who is served by whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Calls of agents and people.
    Interactive,
    /// Our own housekeeping, with a worker of its own.
    System,
}

impl Lane {
    /// Its name in records and statistics.
    pub fn name(self) -> &'static str {
        match self {
            Lane::Interactive => "interactive",
            Lane::System => "system",
        }
    }
}

/// A piece of output, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputChunk {
    /// Of which stream.
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

/// Takes output while a program runs. No more than `max_output` bytes of a stream come, so it is not bounded besides;
/// a listener that has gone away stops nothing.
pub type OutputSink = tokio::sync::mpsc::UnboundedSender<OutputChunk>;
