//! Running a compiled program.

mod direct;
mod env;
mod errors;
mod frame;
mod machine;
pub mod ops;
pub mod paths;
mod trail;

pub use errors::{Error, Outcome, raise};
pub use machine::Machine;
