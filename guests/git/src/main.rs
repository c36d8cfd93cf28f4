//! git: repositories that native git reads and writes too.
//!
//! ```text
//! run ─► commands/* ─► walk, revision, pretty      histories and how they are shown
//!                 ├──► change, rename, patch       differences
//!                 ├──► merge                       joining them
//!                 ├──► index, worktree, ignore     the next commit and the files
//!                 └──► refs, reflog, config ─► odb ─► loose, pack
//! ```
//!
//! The formats are read and written by own code, which needs neither mapped files nor threads.

// A program, not a library: names that speak for themselves need no more words.
#![allow(missing_docs)]

mod apply;
mod change;
mod combined;
mod commands;
mod config;
mod date;
mod diffing;
mod diffstat;
mod fail;
mod files;
mod graph;
mod grep;
mod hash;
mod http;
mod ident;
mod ignore;
mod index;
mod lines;
mod loose;
mod merge;
mod message;
mod object;
mod odb;
mod options;
mod out;
mod pack;
mod patch;
mod pathspec;
mod pattern;
mod pretty;
mod quote;
mod reflog;
mod refs;
mod remote;
mod rename;
mod repo;
mod revision;
mod run;
mod sequence;
mod status;
mod switch;
mod transport;
mod walk;
mod worktree;

fn main() {
    wardian_abi::link();
    let code = run::run();
    out::flush();
    wardian_abi::exit(code);
}
