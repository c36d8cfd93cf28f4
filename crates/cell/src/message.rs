//! What supervisor and cell say to each other.
//!
//! Requests and sandboxes have numbers that the supervisor gives and never uses twice. Each request is answered once: by
//! [`Report::Done`], or if it is a run, by [`Report::Ended`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Increase it with every change of the messages: the two sides may be different files.
pub const VERSION: u32 = 1;
/// The most bytes of a run's output in one message.
pub const PIECE: usize = 64 << 10;
/// The most bytes of input that are asked for at once.
pub const MOST_INPUT: usize = 64 << 10;
/// The most bytes of text in an answer: an error, or what the sandbox itself says of a run.
pub const MOST_TEXT: usize = 64 << 10;
/// The output of a run that may be on its way, in bytes as [`cost`] counts them.
pub const WINDOW: usize = 512 << 10;

/// What a piece of output uses of the window: its bytes, and a little so that empty ones are not free.
pub fn cost(bytes: usize) -> usize {
    bytes + 64
}

/// The number of a request.
pub type RequestId = u64;
/// The number of a sandbox in its cell.
pub type SandboxId = u64;

/// From the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Order {
    /// The first: prepare, seal, and report that.
    Start(Settings),
    /// Creates a sandbox.
    Create(RequestId, SandboxId, Box<SandboxSpec>),
    /// Forks the first sandbox as the second.
    Fork(RequestId, SandboxId, SandboxId),
    /// Destroys a sandbox.
    Destroy(RequestId, SandboxId),
    /// Runs a command.
    Run(RequestId, SandboxId, Box<RunSpec>),
    /// What a run asked for of its input; nothing at the end.
    Input(RequestId, Vec<u8>),
    /// The input cannot be read.
    InputFailed(RequestId),
    /// So much more of a run's output may be sent.
    Credit(RequestId, u32),
    /// Ends a run.
    Cancel(RequestId),
}

/// How a cell is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// [`VERSION`].
    pub version: u32,
    /// The supervisor's process: the cell ends with it.
    pub supervisor: u32,
    /// Where compiled programs are kept, if not where they usually are.
    pub cache: Option<String>,
    /// How many guests may run at once; by default one per processor.
    pub threads: Option<u32>,
    /// `RLIMIT_DATA` in bytes.
    pub memory: u64,
}

/// A sandbox to create.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxSpec {
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Where its shell starts.
    pub cwd: Option<String>,
    /// Its limits.
    pub limits: Limits,
}

/// The limits of a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of standard output of a run.
    pub stdout_bytes: u64,
    /// Bytes of standard error of a run.
    pub stderr_bytes: u64,
    /// Bytes of a command.
    pub command_bytes: u64,
    /// Bytes of files.
    pub fs_bytes: u64,
    /// Number of files.
    pub file_count: u64,
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Number of processes.
    pub processes: u64,
    /// Number of descriptors of a process.
    pub open_files: u64,
}

/// A command to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The script.
    pub command: Vec<u8>,
    /// Variables for this command alone.
    pub env: Vec<(String, String)>,
    /// Its directory, if not the shell's.
    pub cwd: Option<String>,
    /// How long it may take; forever if there is none.
    pub timeout: Option<Duration>,
    /// Whether it may ask for input.
    pub input: bool,
    /// No other command follows.
    pub last: bool,
}

/// From the cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Report {
    /// The first: it is sealed.
    Ready(Seal),
    /// The first and last: it is not.
    NotStarted(NotStarted),
    /// A request that is no run is done, or refused.
    Done(RequestId, Result<(), Refusal>),
    /// The command of a run begins: its clock starts.
    Began(RequestId),
    /// A run wants at most this many bytes of input.
    WantInput(RequestId, u32),
    /// A run has written.
    Output(RequestId, Piece),
    /// A run is over, or was refused.
    Ended(RequestId, Result<Box<RunEnd>, Refusal>),
}

/// What holds a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal {
    /// [`VERSION`].
    pub version: u32,
    /// It has namespaces of its own.
    pub namespaces: bool,
    /// It can open no file.
    pub landlock: bool,
    /// Only listed system calls work.
    pub seccomp: bool,
}

/// Why a cell did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NotStarted {
    /// This program has not been compiled on this machine yet, and a cell does not.
    NotCompiled(String),
    /// Something else.
    Other(String),
}

/// One of a run's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// A piece of a run's output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Where it was written.
    pub stream: Stream,
    /// At most [`PIECE`] of them.
    pub bytes: Vec<u8>,
    /// More was written than the limit of this stream: nothing of the guest's follows on it.
    pub cut: bool,
}

/// A request that was not carried out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal(
    /// Why.
    pub String,
);

/// How a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Its exit code.
    pub exit_code: u8,
    /// How long it took.
    pub duration: Duration,
    /// How long of that it waited for programs to be prepared.
    pub waited: Duration,
    /// Why it did not run normally.
    pub class: Option<Class>,
    /// The limit that was hit, by its name.
    pub limit: Option<String>,
    /// What the sandbox says of the run, which is also the end of standard error.
    pub note: Vec<u8>,
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Peak memory in bytes.
    pub peak_memory_bytes: u64,
    /// Processes started.
    pub processes: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// Why a run did not run normally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Class {
    /// It timed out.
    Timeout,
    /// It was cancelled.
    Cancelled,
    /// It exceeded a limit.
    LimitExceeded,
    /// It tried something it is not allowed to do.
    CapabilityDenied,
}
