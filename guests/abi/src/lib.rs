//! The system calls of a Wardian guest as safe Rust.
//!
//! A guest is a `wasm32-wasip1` program. What WASI has, `std` offers already; what Unix has beyond it
//! (`fork`, `spawn`, `wait`, `pipe`, `dup2`, `chdir`, modes, …) is here, one function for each row of
//! `docs/abi.md`:
//!
//! ```text
//! guest program ── wardian_abi ─┬─ wasm.rs    imports `wardian` and `wasi_snapshot_preview1`
//!                               └─ native.rs  libc, so that the same program is a Linux program too
//! ```
//!
//! A program that links this crate also gets its path look-up: `std::fs` and C's `open` take absolute and
//! relative paths to the kernel as they stand, and `std::env::set_current_dir` moves the process. A program
//! that calls nothing here still wants that: it says [`link()`] once.
//!
//! In a sandbox, a program that is refused memory ends with a message, except inside [`fallible`].
//!
//! ```
//! use wardian_abi as abi;
//!
//! let ends = abi::pipe(false)?;
//! let child = abi::fork(|| match abi::write_all(ends.write, b"hello") {
//!     Ok(()) => 7,
//!     Err(_) => 1,
//! })?;
//! abi::close(ends.write)?;
//! let mut text = [0; 16];
//! let n = abi::read(ends.read, &mut text)?;
//! assert_eq!(&text[..n], b"hello");
//! let (_, status) = abi::wait(abi::Who::Child(child), abi::WaitFlags::default())?.expect("it was waited for");
//! assert_eq!(status.code(), Some(7));
//! # Ok::<(), abi::Errno>(())
//! ```
#![deny(missing_docs)]

mod descriptor;
mod errno;
mod failure;
mod file;
mod memory;
pub mod net;
mod process;
mod program;
pub mod socket;
mod terminal;

#[cfg(not(target_os = "wasi"))]
#[path = "native.rs"]
mod sys;
#[cfg(target_os = "wasi")]
#[path = "wasm.rs"]
mod sys;

pub use descriptor::*;
pub use errno::Errno;
pub use file::*;
pub use memory::fallible;
pub use process::*;
pub use program::*;
pub use terminal::*;

/// The answer of a system call.
pub type Result<T> = std::result::Result<T, Errno>;

#[doc(hidden)]
pub use sys::call_constructors;
