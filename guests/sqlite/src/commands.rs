//! The commands of the shell: lines that begin with a dot.

mod arguments;
mod copies;
mod dump;
mod files;
mod help;
mod import;
mod limits;
mod mode;
mod parameter;
mod schema;
mod settings;

pub use mode::set as set_mode;

use crate::output::complain;
use crate::shell::Shell;

/// What comes of a command.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Outcome {
    Done,
    Failed,
    /// The shell shall end, with this code if nothing failed before.
    Quit(i32),
}

/// A command's name and arguments.
type Words = Vec<Vec<u8>>;

/// A command: its name, how many letters of it are enough, and what it does.
struct Command {
    name: &'static str,
    least: usize,
    run: fn(&mut Shell, &Words) -> Outcome,
    /// Whether it reaches beyond the database, which safe mode forbids.
    reaches_out: bool,
}

const fn command(name: &'static str, least: usize, run: fn(&mut Shell, &Words) -> Outcome) -> Command {
    Command { name, least, run, reaches_out: false }
}

const fn unsafe_command(name: &'static str, least: usize, run: fn(&mut Shell, &Words) -> Outcome) -> Command {
    Command { name, least, run, reaches_out: true }
}

/// In the order in which an abbreviation finds them.
const COMMANDS: &[Command] = &[
    unsafe_command("archive", 1, unavailable),
    command("auth", 2, unavailable),
    unsafe_command("backup", 3, copies::backup),
    unsafe_command("save", 3, copies::backup),
    command("bail", 3, settings::bail),
    command("binary", 3, settings::binary),
    unsafe_command("cd", 2, files::cd),
    command("changes", 3, settings::changes),
    unsafe_command("check", 3, unavailable),
    unsafe_command("clone", 2, copies::clone),
    command("connection", 2, unavailable),
    command("databases", 2, schema::databases),
    command("dbconfig", 3, limits::dbconfig),
    command("dbinfo", 3, unavailable),
    command("dump", 1, dump::run),
    command("echo", 1, settings::echo),
    command("eqp", 1, settings::eqp),
    unsafe_command("excel", 3, unavailable),
    command("exit", 2, quit),
    command("expert", 3, unavailable),
    command("explain", 2, settings::explain),
    command("filectrl", 1, unavailable),
    command("fullschema", 1, schema::full),
    command("headers", 1, settings::headers),
    command("help", 1, help::run),
    unsafe_command("import", 2, import::run),
    command("imposter", 3, unavailable),
    command("indexes", 2, schema::indexes),
    command("indices", 2, schema::indexes),
    command("limits", 3, limits::limit),
    command("lint", 3, unavailable),
    unsafe_command("load", 1, unavailable),
    unsafe_command("log", 1, unavailable),
    command("mode", 1, mode::run),
    command("nullvalue", 2, settings::nullvalue),
    command("once", 2, files::once),
    command("open", 1, files::open),
    command("output", 1, files::output),
    command("parameter", 2, parameter::run),
    command("print", 3, settings::print),
    command("progress", 3, unavailable),
    command("prompt", 1, settings::prompt),
    command("quit", 1, quit),
    unsafe_command("read", 3, files::read),
    command("recover", 3, unavailable),
    unsafe_command("restore", 3, copies::restore),
    command("scanstats", 2, unavailable),
    command("schema", 2, schema::run),
    command("selftest", 4, unavailable),
    command("separator", 2, settings::separator),
    command("session", 2, unavailable),
    command("sha3sum", 4, unavailable),
    unsafe_command("shell", 2, shell_out),
    command("show", 2, settings::show),
    command("stats", 2, settings::stats),
    unsafe_command("system", 2, shell_out),
    command("tables", 2, schema::tables),
    command("timeout", 4, settings::timeout),
    command("timer", 4, settings::timer),
    command("trace", 2, unavailable),
    command("version", 1, settings::version),
    command("vfsname", 1, unavailable),
    command("width", 1, settings::width),
    unsafe_command("www", 2, unavailable),
];

/// Runs a line that begins with a dot.
pub fn run(shell: &mut Shell, line: &[u8]) -> Outcome {
    let words = arguments::split(&line[1..]);
    let Some(name) = words.first() else { return Outcome::Done };
    let fits = |command: &&Command| {
        command.name.as_bytes().starts_with(name)
            && (name.len() >= command.least || name == command.name.as_bytes())
    };
    let Some(command) = COMMANDS.iter().find(fits) else {
        let text: [&[u8]; 3] =
            [b"Error: unknown command or invalid arguments:  \"", name, b"\". Enter \".help\" for help\n"];
        complain(text.concat());
        return after(shell, Outcome::Failed);
    };
    if command.reaches_out {
        shell.refuse_if_safe(format_args!("cannot run .{} in safe mode", command.name));
    }
    let outcome = (command.run)(shell, &words);
    after(shell, outcome)
}

/// A command that was not `.once` itself uses its file up.
fn after(shell: &mut Shell, outcome: Outcome) -> Outcome {
    if shell.once > 0 {
        shell.once -= 1;
        if shell.once == 0 {
            shell.out.reset();
        }
    }
    outcome
}

fn quit(_: &mut Shell, words: &Words) -> Outcome {
    let is_exit = words[0].starts_with(b"e");
    let code = words.get(1).filter(|_| is_exit).map_or(0, |word| arguments::number(word));
    Outcome::Quit(code as i32)
}

/// Says how a command is used.
fn usage(text: &str) -> Outcome {
    complain(format!("Usage: {text}\n"));
    Outcome::Failed
}

fn failed(parts: &[&[u8]]) -> Outcome {
    complain([&parts.concat()[..], b"\n"].concat());
    Outcome::Failed
}

fn unavailable(_: &mut Shell, words: &Words) -> Outcome {
    failed(&[b"Error: .", &words[0], b" is not available in this sqlite3"])
}

fn shell_out(_: &mut Shell, words: &Words) -> Outcome {
    if words.len() < 2 {
        return usage(".system COMMAND");
    }
    failed(&[
        b"Error: .",
        &words[0],
        b" is not available: sqlite3 starts no programs here; quit it and run them from the shell",
    ])
}
