//! The `wardian` command. Thin: it reads flags, calls the library and shows what came of it.

mod audit;
mod completions;
mod duration;
mod mount;
mod run;
mod serve;
mod shell;
mod state;
mod streams;
mod tools;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

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
    Run(run::Arguments),
    /// Type at a shell in a new sandbox.
    Shell(shell::Arguments),
    /// Serve sandboxes to other programs, by JSON-RPC.
    Serve(serve::Arguments),
    /// Run native programs through the guarded door.
    Tools(tools::Arguments),
    /// Print completions for your own shell.
    Completions(completions::Arguments),
    /// Look after audit logs.
    Audit(audit::Arguments),
}

/// What was typed. Help goes to standard output; a mistake is one line, not a page.
fn arguments() -> Arguments {
    let error = match Arguments::try_parse() {
        Ok(arguments) => return arguments,
        Err(error) => error,
    };
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let text = error.to_string();
    let first: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect();
    let message = first.join(" ");
    eprintln!("wardian: {} (see --help)", message.trim_start_matches("error: "));
    std::process::exit(i32::from(USAGE_ERROR))
}

fn main() -> ExitCode {
    // First of all: a worker has neither threads nor a log.
    if std::env::args_os().nth(1).is_some_and(|command| command == "__worker") {
        wardian_hosttools::worker::main();
    }
    let level = std::env::var("WARDIAN_LOG").ok().and_then(|level| level.parse().ok());
    let level: tracing::Level = level.unwrap_or(tracing::Level::WARN);
    tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init();
    let outcome = match arguments().command {
        Command::Run(arguments) => run::main(arguments),
        Command::Shell(arguments) => shell::main(arguments),
        Command::Serve(arguments) => serve::main(arguments),
        Command::Tools(arguments) => tools::main(arguments),
        Command::Completions(arguments) => completions::main(arguments, Arguments::command()),
        Command::Audit(arguments) => audit::main(arguments),
    };
    let code = outcome.unwrap_or_else(|error| {
        eprintln!("wardian: {error:#}");
        USAGE_ERROR
    });
    // Not by returning: a thread may be waiting in a read of standard input that nobody will answer.
    std::process::exit(i32::from(code))
}
