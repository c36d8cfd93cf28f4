//! The `wardian` command. Thin: it reads flags, calls the library and shows what came of it.

mod audit;
mod cell;
mod closed;
mod completions;
mod doctor;
mod durable;
mod duration;
mod man;
mod mcp;
mod mount;
mod network;
mod out;
mod panic;
mod preparing;
mod run;
mod sandbox;
mod serve;
mod shell;
mod size;
mod state;
mod streams;
mod tools;

use std::io::IsTerminal;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};
use tracing::level_filters::LevelFilter;

use out::remark;

/// Bad flags, unreadable files and mounts: the exit code of every command for what is not the script's fault.
const USAGE_ERROR: u8 = 2;

/// A sandbox for AI agents: a shell, Unix tools and files, all of it in memory.
#[derive(Parser)]
#[command(name = "wardian", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run a script in a new sandbox and exit with its code.
    ///
    /// Background jobs end with the script.
    Run(Box<run::Arguments>),
    /// Open an interactive shell in a new sandbox.
    Shell(shell::Arguments),
    /// Compile all programs now, so that no command has to wait for it.
    Prepare(preparing::Arguments),
    /// Serve sandboxes to other programs over JSON-RPC.
    Serve(serve::Arguments),
    /// Offer sandboxes to a language model as MCP tools.
    Mcp(mcp::Arguments),
    /// Run host programs under a policy.
    Tools(tools::Arguments),
    /// Print a completion script for your shell.
    Completions(completions::Arguments),
    /// Print or write manual pages.
    Man(man::Arguments),
    /// Check what works on this machine, by trying it.
    Doctor(doctor::Arguments),
    /// Check and repair audit logs.
    Audit(audit::Arguments),
    /// Sandboxes with names: saved after every command, there tomorrow.
    Sandbox(Box<durable::named::Arguments>),
    /// Make and list images: sandboxes to start others from.
    Image(durable::image::Arguments),
    /// Check, repair and tidy up a store.
    Store(durable::store::Arguments),
}

/// Shows what clap has to say, and returns the exit code for it. Help goes to standard output; a mistake is one line, not
/// a page.
fn explain(error: &clap::Error) -> Result<u8> {
    if !error.use_stderr() {
        let help = error.render();
        let text = if std::io::stdout().is_terminal() { help.ansi().to_string() } else { help.to_string() };
        out::write(text.as_bytes())?;
        return Ok(0);
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        out::write_remark(error.render().to_string().as_bytes());
        return Ok(USAGE_ERROR);
    }
    let text = error.to_string();
    let first: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = first.join(" ");
    // What clap thinks was meant is on a line of its own.
    let tip = text.lines().find_map(|line| line.trim().strip_prefix("tip: "));
    let tip = tip.map_or_else(|| similar_command(error), |tip| format!("; {tip}"));
    remark!("wardian: {}{tip} (see --help)", message.trim_start_matches("error: "));
    Ok(USAGE_ERROR)
}

/// The command that may have been meant, where clap has no idea.
fn similar_command(error: &clap::Error) -> String {
    match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(given)) => {
            let command = Arguments::command();
            wardian::did_you_mean(given, command.get_subcommands().map(clap::Command::get_name))
        }
        _ => String::new(),
    }
}

fn execute(command: Command) -> Result<u8> {
    match command {
        Command::Run(arguments) => run::main(*arguments),
        Command::Shell(arguments) => shell::main(arguments),
        Command::Prepare(arguments) => preparing::main(arguments),
        Command::Serve(arguments) => serve::main(arguments),
        Command::Mcp(arguments) => mcp::main(arguments),
        Command::Tools(arguments) => tools::main(arguments),
        Command::Completions(arguments) => completions::main(arguments, Arguments::command()),
        Command::Man(arguments) => man::main(arguments, Arguments::command()),
        Command::Doctor(arguments) => doctor::main(arguments),
        Command::Audit(arguments) => audit::main(arguments),
        Command::Sandbox(arguments) => durable::named::main(*arguments),
        Command::Image(arguments) => durable::image::main(arguments),
        Command::Store(arguments) => durable::store::main(arguments),
    }
}

/// How much is logged: `WARDIAN_LOG`, by default `warn`.
fn log_level() -> LevelFilter {
    const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
    let Some(text) = std::env::var_os("WARDIAN_LOG").filter(|text| !text.is_empty()) else {
        return LevelFilter::WARN;
    };
    let text = text.to_string_lossy();
    text.parse().unwrap_or_else(|_| {
        let hint = wardian::did_you_mean(&text, LEVELS);
        remark!("wardian: WARDIAN_LOG={text} is not one of {}{hint}", LEVELS.join(", "));
        LevelFilter::WARN
    })
}

fn main() -> ExitCode {
    panic::install();
    // First of all: a worker has neither threads nor a log, and nor has a cell.
    match std::env::args_os().nth(1) {
        Some(command) if command == "__worker" => wardian_hosttools::worker::main(),
        Some(command) if command == cell::COMMAND => wardian::cell::main(),
        _ => {}
    }
    let level = log_level();
    tracing_subscriber::fmt().with_max_level(level).with_writer(|| out::Remarks).init();
    // Before anything counts descriptors: each client needs one.
    wardian::tune_process();
    let outcome = match Arguments::try_parse() {
        Ok(arguments) => execute(arguments.command),
        Err(error) => explain(&error),
    };
    let code = outcome.unwrap_or_else(|error| out::report(&error));
    // Not by returning: a thread may be waiting in a read of standard input that nobody will answer.
    std::process::exit(i32::from(code))
}
