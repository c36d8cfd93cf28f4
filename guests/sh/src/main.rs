//! The shell: bash's language, run as a Unix shell runs it.
//!
//! ```text
//! bytes ─ parser ─> ast ─ exec ─> fork, spawn, pipe, dup2, wait (wardian-abi)
//!                          │
//!                          ├─ expand    words to strings: parameters, substitutions, splitting, file names
//!                          ├─ arith     `$(( ))`, compiled once
//!                          ├─ redirect  descriptors
//!                          └─ builtins  commands of the shell's own
//! ```
//!
//! A script is parsed one complete command at a time into [`ast`], whose words are cut into pieces once, so
//! that a loop's body is never scanned again. The program is a command (`bash`, `sh`) and a session whose
//! state lives from run to run ([`session`]).

mod arith;
mod assign;
mod ast;
mod builtins;
mod dynamic;
mod exec;
mod expand;
mod jobs;
mod options;
mod parser;
mod pattern;
mod prompt;
mod redirect;
mod regex;
mod session;
mod shell;
mod time;
mod traps;
mod unparse;
mod vars;

use session::ShellSession;

wardian_abi::session!(ShellSession);

fn main() {
    wardian_abi::link();
    // A writer whose reader is gone ends quietly, as any Unix program does.
    let _ = wardian_abi::sigaction(13, wardian_abi::Disposition::Default);
    let code = session::run_command(wardian_abi::args());
    wardian_abi::exit(code);
}
