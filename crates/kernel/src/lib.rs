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
//! A process is a task on the kernel's own runtime. A system call that must wait is an `await`; killing a process drops
//! its future. Guests use WASI preview 1 and, for what Unix has and WASI lacks, the import module `wardian`
//! (`docs/abi.md`).
//!
//! Reading order: `kernel`, `machine`, `proc`, `task`, `schedule`; then what a process does: `spawn`, `fork`, `wait`,
//! `signal`, `fd`, `pipe`, `net`, `tty`, `open`, `io`; where programs come from: `user_program`, `admit`, `compiler`, `reexec`,
//! `program_cache`; then `memory`, `at_rest` and `session`; `wasi` and `sys` are the system calls
//! themselves.

mod admit;
mod alarm;
mod allowlist;
mod artifact;
mod at_rest;
mod bulk;
mod call;
mod clock;
mod compiler;
mod cwd;
mod descriptors;
mod drain;
mod family;
mod fd;
mod footprint;
mod foreign;
mod fork;
mod gate;
mod host_program;
mod imports;
mod input;
mod instance;
mod io;
mod kernel;
mod limits;
mod locks;
mod machine;
mod memory;
mod net;
mod open;
mod order;
mod outlet;
mod pause;
mod pipe;
mod preparing;
mod proc;
mod procfs;
mod program;
mod program_cache;
mod quiet;
mod reap;
mod reexec;
mod room;
mod run;
mod schedule;
mod session;
mod signal;
mod spare;
mod spawn;
mod stack;
mod start;
mod start_image;
mod stock;
mod stream;
mod strings;
mod sys;
mod task;
mod threads;
mod tick;
mod tree_lock;
mod tty;
mod turns;
mod user_program;
mod wait;
mod wasi;

pub use admit::{Admitted, Refused, admit};
pub use allowlist::Allowlist;
pub use at_rest::{AtRest, Packed, PackedFd, PackedFile, PackedPlace};
pub use descriptors::raise_limit as raise_descriptor_limit;
pub use family::Family;
pub use host_program::{HostCall, HostInput, HostOutput, HostProcess, HostProgram, HostRun};
pub use imports::Import;
pub use input::{Input, Source, SourceRead};
pub use kernel::{CompileBudget, Kernel, KernelConfig, KernelError, Unstarted};
pub use limits::{HeldMemory, Limits};
pub use machine::{Census, HostPrograms, Machine, Rules};
pub use memory::image::Image;
pub use memory::pages::Page;
pub use memory::stored::{RestingMemory, RestingTemplate, StoredTemplate};
pub use memory::trim::tune_allocator;
pub use net::{Destination, HostStream, Outside, OutsideConnection, OutsideHost, Serve};
pub use order::{Order, Part, Stream};
pub use preparing::preparing;
pub use proc::{Pid, Status};
pub use program::{Program, ProgramSource};
pub use run::Usage;
pub use session::{Command, Finished, Session, Verdict};
pub use signal::{SIGKILL, Signal};
pub use spare::Spares;
pub use start::{Start, Started};
pub use stream::{Ended, Output, Piece, Sink, Standard};
pub use tree_lock::TreeGuard;
pub use tty::{Mode, Terminal};
