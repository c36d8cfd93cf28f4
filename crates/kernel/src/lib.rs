//! A small Unix whose processes are WebAssembly.
//!
//! ```text
//!  Kernel   engine, worker threads, ticker, compiled programs (one per program)
//!    │
//!    ├─ Machine   one sandbox: files, process table, limits
//!    │    ├─ Session   the shell, resident: at rest between commands
//!    │    ├─ Process   descriptors, directory, signals ── Task: its future, in a slot the killer can empty
//!    │    └─ …                                             └─ Instance: a wasmtime store
//!    └─ Machine …
//! ```
//!
//! A process is a task on the kernel's own runtime. A system call that must wait is an `await`; killing a process is
//! dropping its future. Guests speak WASI preview 1 and, for what Unix has and WASI lacks, the import module `wardian`
//! (`docs/abi.md`).
//!
//! Reading order: `kernel`, `machine`, `proc`, `task`; then what a process does: `spawn`, `fork`, `wait`, `signal`,
//! `fd`, `pipe`, `tty`, `open`, `io`; then `pages`, `template`, `image`, `at_rest` and `session`; `wasi` and `sys` are the
//! system calls themselves.

mod alarm;
mod allowlist;
mod artifact;
mod at_rest;
mod bulk;
mod call;
mod cwd;
mod fd;
mod foreign;
mod fork;
mod gate;
mod host_program;
mod image;
mod imports;
mod instance;
mod io;
mod kernel;
mod limits;
mod machine;
mod open;
mod pages;
mod pause;
mod pipe;
mod proc;
mod procfs;
mod program;
mod room;
mod run;
mod session;
mod signal;
mod spare;
mod spawn;
mod stack;
mod start;
mod stock;
mod stream;
mod strings;
mod sys;
mod task;
mod template;
mod tick;
mod tree_lock;
mod tty;
mod wait;
mod wasi;

pub use allowlist::Allowlist;
pub use at_rest::{AtRest, Packed, PackedFd, PackedFile, PackedPlace};
pub use host_program::{HostCall, HostInput, HostOutput, HostProgram, HostRun};
pub use image::Image;
pub use imports::Import;
pub use kernel::{Kernel, KernelConfig, KernelError};
pub use limits::Limits;
pub use machine::{Census, HostPrograms, Machine, Rules};
pub use pages::Page;
pub use proc::{Pid, Status};
pub use program::{Program, ProgramSource};
pub use run::Usage;
pub use session::{Command, Finished, Session, Verdict};
pub use signal::{SIGKILL, Signal};
pub use spare::Spares;
pub use start::{Start, Started};
pub use stream::{Ended, Input, Output, Source, SourceRead, Standard};
pub use tree_lock::TreeGuard;
pub use tty::{Mode, Terminal};
