//! The guarded door: native programs for an agent, without a shell and without trusting the agent.
//!
//! Nine stages, in this order; each can only say no, and whatever it says is on record.
//!
//! ```text
//!  "git log -3" ─► gate ─► tokenize ─► policy ─► subcommand ─► flags ─► jail ─► ExecSpec
//!                                                                                  │
//!   what it wrote, without secrets ◄─ redact, audit ◄─ execute in the pool ◄─ audit ◄┘
//! ```

mod config;
mod confine;
mod doctor;
mod error;
pub mod git_sync;
mod pool;
mod spec;
pub mod worker;

pub use config::{Config, ConfigError, Mode, PoolConfig, ProgramLimits};
pub use doctor::{Check, State, doctor};
pub use error::{Stage, ToolError};
pub use pool::{Backoff, LaneStats, Stats, Totals, WorkerPool};
pub use spec::{
    Confinement, Ended, ExecSpec, Finished, HeldDirectory, Lane, OutputChunk, OutputSink, Required, Stream,
};
