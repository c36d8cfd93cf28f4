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

#![deny(missing_debug_implementations)]

/// Tests the README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

mod archive;
mod audit;
pub mod blocking;
mod budget;
pub mod cell;
mod checks;
mod directory;
mod durable;
mod engine;
mod env;
mod error;
mod extension;
mod file_changes;
mod file_info;
mod file_parts;
mod files;
mod git_editor;
mod history;
mod host_tool;
mod interactive;
mod library;
mod limit;
mod mounts;
mod network;
mod options;
mod overlay_copy;
mod pool;
mod ports;
mod process;
mod process_input;
mod programs;
mod python;
mod result;
mod run;
mod sandbox;
mod snapshot;
mod suggest;
mod system;
mod usage;

pub use archive::ArchiveError;
pub use durable::{
    Dormant, Durability, FileChange, FileChangeKind, ImageInfo, Mode as PersistenceMode, SandboxInfo, Store,
    StoreOptions,
};
pub use engine::{Engine, EngineBuilder, EngineUsage};
pub use error::Error;
pub use extension::{
    Extension, ExtensionAnswer, ExtensionCall, ExtensionSpec, Invocation, PYTHON_PACKAGES, PythonPackage,
};
pub use file_changes::FileChanges;
pub use file_info::FileInfo;
pub use file_parts::WriteOptions;
pub use files::{DirectoryEntry, DirectoryListing, Metadata};
pub use history::HistoryEntry;
pub use interactive::{Completion, EnteredLine, Interactive, Prompt};
pub use limit::Limit;
pub use mounts::{MountEntry, MountMode};
pub use options::{Builder, Limits, OnKill};
pub use pool::PoolOptions;
pub use process::{Process, ProcessEnd, ProcessOptions, ProcessOutput, ProcessStream};
#[doc(hidden)]
pub use programs::program_names;
pub use python::{Python, PythonError, PythonResult, PythonValue};
pub use result::{ErrorClass, RunResult, Truncated, Usage};
pub use run::Run;
pub use sandbox::Sandbox;
#[doc(hidden)]
pub use sandbox::drop_aside;
pub use snapshot::Snapshot;
#[doc(hidden)]
pub use suggest::{did_you_mean, suggest};
#[doc(hidden)]
pub use system::{compiled_programs, finish_preparing, live_sandboxes, prepare};
pub use system::{return_memory, tune_process};
pub use usage::{HeldMemory, UsageNow};
pub use wardian_net::NetworkPolicy;
pub use wardian_store::{
    Collected, CommitId, CommitInfo, Damage, Key as StoreKey, Repaired, Retention, StoreError, Verified,
};
/// What a sandbox may reach outside: see [`Builder::network`].
pub mod net {
    pub use wardian_net::{
        Answer, BoxFuture, Decision, HttpRule, Mode, NetworkPolicy, OnRequest, ProxyPolicy, RequestInfo,
        Resolve, Roots, Secret, SecretPlace,
    };
}

pub use wardian_audit::{
    AuditError, AuditLog, AuditRecord, Lost as AuditLost, Repaired as AuditRepaired,
    Rotation as AuditRotation, Verified as AuditVerified, VerifyError as AuditVerifyError, repair_audit,
    verify_audit,
};
/// The host-tool gateway: native programs as commands, confined.
#[doc(inline)]
pub use wardian_hosttools as tools;
#[doc(hidden)]
pub use wardian_kernel::preparing;
pub use wardian_kernel::{
    HostInput, HostOutput, HostStream as PortStream, Input, Mode as TerminalMode, Order as OutputOrder,
    Part as OutputPart, Piece as OutputPiece, Source as InputSource, SourceRead as InputRead,
    Stream as OutputStream, Terminal,
};
pub use wardian_vfs::{Change as OverlayChange, Errno, FileKind, What as OverlayChangeKind, state_directory};

/// For Wardian's own tests and tools: not part of the interface, and may change at any time.
#[doc(hidden)]
pub mod internals {
    use std::sync::Arc;

    pub use wardian_kernel::Machine;

    /// Reaches what a sandbox consists of.
    pub trait Inside {
        /// Returns its machine.
        fn machine(&self) -> Arc<Machine>;
    }

    impl Inside for crate::Sandbox {
        fn machine(&self) -> Arc<Machine> {
            crate::Sandbox::machine(self)
        }
    }
}
