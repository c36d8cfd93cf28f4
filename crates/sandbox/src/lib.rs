//! Sandboxes for AI agents: a bash-compatible shell and the Unix tools, as WebAssembly programs over in-memory files.
//!
//! ```text
//!   Sandbox::run("…") ──► Session (the shell, at rest) ──► processes ──► files
//!        │                       │                                        │
//!        └─ RunResult            └────────── State: a value ──────────────┘
//!                                   fork = clone · kill = drop what runs
//! ```
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), wardian::Error> {
//! let sandbox = wardian::Sandbox::builder().build().await?;
//! sandbox.run("greeting=hello").await?;
//! let result = sandbox.run("echo $greeting | wc -c").await?;
//! assert_eq!(result.stdout, b"6\n");
//! # Ok(()) }
//! ```

/// Tests the README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod archive;
mod audit;
pub mod blocking;
mod budget;
mod env;
mod error;
mod extension;
mod file_changes;
mod files;
mod history;
mod host_tool;
mod interactive;
mod library;
mod mounts;
mod options;
mod overlay_copy;
mod pool;
mod programs;
mod result;
mod run;
mod sandbox;
mod snapshot;
mod system;

pub use archive::ArchiveError;
pub use error::Error;
pub use extension::{
    Answer, Extension, ExtensionCall, ExtensionSpec, Invocation, PYTHON_PACKAGES, PythonPackage,
};
pub use file_changes::FileChanges;
pub use files::{Entry, Listing, Metadata};
pub use history::HistoryEntry;
pub use interactive::{Completion, Interactive, Line, Prompt};
pub use mounts::MountMode;
pub use options::{Builder, Limits, Network, OnKill};
pub use pool::PoolOptions;
pub use result::{ErrorClass, RunResult, Truncated, Usage};
pub use run::Run;
pub use sandbox::Sandbox;
#[doc(hidden)]
pub use sandbox::drop_aside;
pub use snapshot::Snapshot;
pub use system::tune_process;
#[doc(hidden)]
pub use system::{finish_preparing, guest_tasks, live_sandboxes, prepare};
pub use wardian_audit::{
    AuditError, AuditLog, AuditRecord, Repaired, Rotation, Verified, VerifyError, repair_audit, verify_audit,
};
pub use wardian_kernel::{
    HostInput, HostOutput, Input, Mode, Order, Part, Piece, Source, SourceRead, Stream, Terminal,
};
pub use wardian_vfs::{Change, Errno, FileKind, What, state_directory};
