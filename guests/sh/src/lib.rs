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
mod completion;
mod contained;
mod dynamic;
mod exec;
mod expand;
mod histexpand;
mod history;
mod interactive;
mod jobs;
mod network;
mod options;
mod parser;
mod pattern;
mod prompt;
mod redirect;
mod restricted;
mod session;
mod shell;
mod startup;
mod time;
mod traps;
mod unparse;
mod vars;

pub use session::ShellSession;
pub use startup::run_command;

/// Parses a whole script without running anything, as `bash -n` does; answers how many complete commands it read and
/// whether it came to the end. For the fuzzers.
pub fn check_syntax(script: &[u8]) -> (usize, bool) {
    let shell = shell::Shell::new(b"bash", shell::Invocation::Command);
    let dialect = parser::Dialect { extglob: true, ..shell.dialect() };
    let mut parser = parser::Parser::new(script.to_vec(), 1);
    let mut commands = 0;
    loop {
        match parser.next_command(&dialect) {
            Ok(Some(_)) => commands += 1,
            Ok(None) => return (commands, true),
            Err(_) => return (commands, false),
        }
    }
}
