//! Cells: the sandboxes of one tenant in a process of their own, which has given up everything but computing.
//!
//! ```text
//!  Cell ─── Orders ───►  worker::main            this process ends with its supervisor, or is killed by it
//!   │                      │ prepare: open what it will need
//!   │                      │ seal: no files, no network, no exec, few system calls
//!   │                      │ start threads
//!   ◄────── Reports ────   ▼ Tenant: create, run, fork, destroy
//! ```
//!
//! The supervisor trusts nothing that a cell sends after it is sealed. Whatever a report says is compared with what was
//! ordered ([`ledger`]), and a report that cannot be true ends the cell. A cell that dies, for whatever reason, is an
//! ordinary end of what ran in it.
//!
//! | file | is |
//! |---|---|
//! | `frame` | bytes into messages: lengths and sequence |
//! | `message` | what both sides say |
//! | `ledger` | what was ordered, and whether a report can be an answer |
//! | `supervisor` | starting a cell, its deadlines, its end |
//! | `worker` | the cell's own side |
//!
//! This crate knows neither WebAssembly nor what a sandbox is: whoever starts a worker says so, by a [`worker::Tenant`].

#![deny(missing_debug_implementations)]

pub mod frame;
pub mod ledger;
pub mod message;
mod supervisor;
pub mod worker;

pub use supervisor::{Cell, CellError, CellOptions, Event, Required, Run};
