//! What the operating system lets a process do.
//!
//! A process gives up rights; it never gets them back. Linux has four mechanisms for it, and each covers what the
//! others cannot:
//!
//! | what | file | restricts |
//! |---|---|---|
//! | privileges | `privileges` | no new ones through exec (`no_new_privs`), and of root's only those over files |
//! | files | `landlock` | which paths can be opened, and for what |
//! | limits | `limits` | address space, processor time, descriptors, processes, file size; no core dumps |
//! | calls | `seccomp` | which system calls work |
//!
//! There are two ways to use them:
//!
//! - [`Prepared`] confines **a native program** between fork and exec, by a [`Confinement`] that names its directory
//!   and its limits. Everything works but what is listed: such programs are many, and nobody knows all their calls.
//! - [`seal`] confines **this process**, which knows exactly what it still has to do: read and write the
//!   descriptors it has, allocate memory, exit. Nothing works but what is listed.
//!
//! Order matters: a limit or a filter that is in force also applies to the steps after it. `program` and `seal` have
//! the two orders. `fork_exec` has the unsafe calls between fork and exec.

pub mod fork_exec;
mod landlock;
mod limits;
mod privileges;
mod program;
mod seal;
mod seccomp;

pub use privileges::KEPT_CAPABILITIES;
pub use program::{Confinement, Files, Prepared, Required};
pub use seal::{Budget, InForce, seal};
