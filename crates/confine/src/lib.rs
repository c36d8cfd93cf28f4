//! Restricting what a process may do, by means of the operating system.
//!
//! A process gives up rights and never gets them back. Linux has five mechanisms for this, and each covers what the
//! others cannot:
//!
//! | what | file | restricts |
//! |---|---|---|
//! | privileges | `privileges` | no new ones through exec (`no_new_privs`), and of root's only those over files |
//! | files | `landlock` | which paths can be opened, and for what |
//! | namespaces | `namespaces` | which networks, users, queues and names there are |
//! | limits | `limits` | address space, processor time, descriptors, processes, file size; no core dumps |
//! | calls | `seccomp` | which system calls work |
//!
//! There are three ways to use them:
//!
//! - [`Prepared`] confines **a native program** between fork and exec, by a [`Confinement`] with its directory and
//!   its limits. Everything works except what is listed: there are many such programs, and no one knows all their calls.
//! - [`seal`] confines **this process**, which knows exactly what it still has to do: read and write the
//!   descriptors it has, allocate memory, exit. Nothing works except what is listed.
//! - [`cell::seal`] confines **this process**, which then runs untrusted code in threads: it may do what `cell_calls` lists,
//!   each call with its reason.
//!
//! Order matters: a limit or filter that is in force also applies to the steps after it. `program`, `seal` and
//! `cell` have the orders. `fork_exec` has the unsafe calls between fork and exec.

pub mod cell;
mod cell_calls;
pub mod fork_exec;
mod landlock;
mod limits;
mod namespaces;
mod privileges;
mod program;
mod seal;
mod seccomp;

pub use privileges::KEPT_CAPABILITIES;
pub use program::{Confinement, Files, Prepared, Required};
pub use seal::{Budget, InForce, seal};
