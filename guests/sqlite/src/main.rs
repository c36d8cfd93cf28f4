//! `sqlite3`: the command-line shell of SQLite, as Debian 12 has it, over the library that rusqlite brings.
//!
//! ```text
//! options ── shell ─┬─ input ──── commands   lines that begin with a dot
//!                   └─ database ─ render     SQL, and how its rows look
//! ```

mod commands;
mod database;
mod extended;
mod functions;
mod input;
mod locks;
mod options;
mod output;
mod plan;
mod render;
mod sha3;
mod shell;
mod statistics;

use commands::Outcome;
use input::Lines;
use options::{Request, Step};
use output::complain;
use shell::Shell;
use std::ffi::OsString;
use std::process::ExitCode;
use toolkit::files;
use wardian_abi as abi;

fn main() -> ExitCode {
    // Keeps the crate that takes absolute and relative paths to the kernel.
    abi::link();
    let arguments: Vec<Vec<u8>> = std::env::args_os().skip(1).map(OsString::into_encoded_bytes).collect();
    let mut shell = Shell::new();
    let request = match options::parse(&mut shell, arguments) {
        Ok(request) => request,
        Err(code) => return ExitCode::from(code),
    };
    let code = run(&mut shell, request);
    shell.out.reset();
    ExitCode::from(code as u8)
}

fn run(shell: &mut Shell, request: Request) -> i32 {
    if shell.file != b":memory:" && files::path(&shell.file).exists() {
        shell.database();
    }
    if let Some(code) = read_settings(shell, &request) {
        return code;
    }
    for step in request.steps {
        if let Some(code) = take_step(shell, step) {
            return code;
        }
    }
    if !request.commands.is_empty() {
        for word in &request.commands {
            if let Some(code) = run_word(shell, word) {
                return code;
            }
        }
        return 0;
    }
    shell.database();
    if shell.interactive {
        greet(shell);
    }
    let ended = input::run(shell, &mut Lines::of(0));
    match ended.quit {
        Some(code) if code != 0 => code,
        _ => i32::from(ended.errors > 0),
    }
}

/// Acts on an option; answers an exit code if that is the end.
fn take_step(shell: &mut Shell, step: Step) -> Option<i32> {
    match step {
        Step::Separator(text) => shell.style.column_separator = text,
        Step::Newline(text) => shell.style.row_separator = text,
        Step::Null(text) => shell.style.null = text,
        Step::Command(word) => return run_word(shell, &word).filter(|_| shell.bail),
        Step::Switch(word) => return options::switch(shell, &word).err().map(i32::from),
    }
    None
}

/// Runs the file of `-init`, or the one in the home directory; answers an exit code if it ends the shell.
fn read_settings(shell: &mut Shell, request: &Request) -> Option<i32> {
    let home = || std::env::var_os("HOME").map(|home| files::join(home.as_encoded_bytes(), b".sqliterc"));
    let file = request.init.clone().or_else(home)?;
    let is_named = request.init.is_some();
    if !files::path(&file).exists() {
        if is_named {
            complain([b"cannot open: \"", &file[..], b"\"\n"].concat());
            return shell.bail.then_some(1);
        }
        return None;
    }
    if shell.interactive {
        complain([b"-- Loading resources from ", &file[..], b"\n"].concat());
    }
    let line = [b".read \"", &file[..], b"\""].concat();
    match commands::run(shell, &line) {
        Outcome::Quit(code) => Some(code),
        Outcome::Failed if shell.bail => Some(1),
        _ => None,
    }
}

/// Runs a command or SQL of the command line; answers an exit code if that is the end.
fn run_word(shell: &mut Shell, word: &[u8]) -> Option<i32> {
    if word.starts_with(b".") {
        return match commands::run(shell, word) {
            Outcome::Done => None,
            Outcome::Failed => Some(1),
            Outcome::Quit(code) => Some(code),
        };
    }
    let error = shell.execute(word).err()?;
    complain([b"Error: ", &error.message[..], b"\n"].concat());
    Some(if error.code == 0 { 1 } else { error.code })
}

fn greet(shell: &mut Shell) {
    let (version, source) = database::version();
    let date = source.get(..19).unwrap_or(&source).to_owned();
    shell.out.put(format!("SQLite version {version} {date}\nEnter \".help\" for usage hints.\n"));
    if shell.file == b":memory:" {
        shell.out.put(
            "Connected to a transient in-memory database.\nUse \".open FILENAME\" to reopen on a persistent database.\n",
        );
    }
    // Where signals do nothing of the kind, Ctrl-C ends the shell.
    let _ = abi::sigaction(2, abi::Disposition::Flag);
}
