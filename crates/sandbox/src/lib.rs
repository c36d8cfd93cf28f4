//! Sandboxes for AI agents: a bash-compatible shell and the Unix tools, as WebAssembly, over files in memory.
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

mod error;
mod interactive;
mod options;
mod programs;
mod result;
mod sandbox;
mod system;

pub use error::Error;
pub use interactive::{Completion, Interactive, Line, Prompt};
pub use options::{Builder, Limits, MountMode};
pub use result::{ErrorClass, RunResult, Truncated, Usage};
pub use sandbox::{Run, Sandbox};
pub use wardian_kernel::{Input, Mode, Source, SourceRead, Terminal};
