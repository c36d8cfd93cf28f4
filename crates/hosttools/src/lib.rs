//! The host-tool gateway: native programs for an agent, without a shell and without trusting the agent.
//!
//! There are nine stages, in this order; each can only reject a call, and every rejection is recorded.
//!
//! ```text
//!  "git log -3" ─► gate ─► tokenize ─► policy ─► subcommand ─► flags ─► jail ─► ExecSpec
//!                                                                                  │
//!   what it wrote, without secrets ◄─ redact, audit ◄─ execute in the pool ◄─ audit ◄┘
//! ```

#![deny(missing_debug_implementations)]

mod arguments;
mod audit;
mod config;
mod doctor;
mod door;
mod environment;
mod error;
mod flags;
mod gate;
pub mod git_sync;
mod jail;
mod output;
mod policy;
mod pool;
mod redact;
mod request;
mod spec;
mod subcommand;
mod tokenize;
pub mod worker;

pub use config::{Config, ConfigError, Mode, PoolConfig, ProgramLimits};
pub use doctor::{Check, State, doctor};
pub use door::{OpenError, ToolSandbox};
pub use error::{Stage, ToolError};
pub use policy::{FlagRules, LeadingFlags, Notation, Policy, ProgramPolicy};
pub use pool::{Backoff, LaneStats, Stats, Totals, WorkerPool};
pub use redact::{REDACTED, Redactor, StreamRedactor};
pub use request::Request;
pub use spec::{
    Confinement, Ended, ExecSpec, Finished, HeldDirectory, Lane, OutputChunk, OutputSink, Required, Stream,
};
