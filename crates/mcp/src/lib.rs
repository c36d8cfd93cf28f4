//! Wardian as an MCP server: sandboxes as tools for language models.
//!
//! A model's mistake (an argument of the wrong type, a sandbox that does not exist, a file that is not there) is answered
//! with a sentence that says what to do instead, as a result that is an error. Protocol errors are left to clients' mistakes.
//!
//! The wire is `rmcp`'s. [`serve`] serves one client by lines, an [`Owner`] many by HTTP.

#![deny(missing_debug_implementations)]

mod answer;
mod arguments;
mod boxes;
mod catalog;
mod changes;
mod files;
mod gate;
mod http;
mod options;
mod progress;
mod resources;
mod run;
mod server;
mod states;
mod values;

pub use gate::{Admission, Gate, Place};
pub use http::{Answer, LONGEST_REQUEST, Owner};
pub use options::{Mount, Options};
pub use server::{ServeError, serve};
