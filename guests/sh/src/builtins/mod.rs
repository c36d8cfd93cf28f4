//! The commands that are part of the shell.

mod bind;
mod cd;
mod complete;
mod control;
mod declare;
mod echo;
mod float;
mod getopts;
mod help;
mod history;
mod job;
mod kill;
mod lookup;
mod printf;
mod read;
mod set;
mod test;
mod trap;
mod various;

pub use cd::logical_directory;
pub use control::{ExecCommand, exec_command, invalid_exec_option, read_file};
pub use declare::{attribute_letters, declaration};
pub use read::{read_line, read_line_raw};
pub use set::set_named;
pub use test::{compare_files, compare_numbers};

use crate::ast::Simple;
use crate::shell::{Exec, Flow, Shell};
use wardian_abi as abi;

type Plain = fn(&mut Shell, &[Vec<u8>]) -> Exec;
type Declaring = fn(&mut Shell, &[Vec<u8>], &Simple) -> Exec;

/// A builtin's code. Those that declare also want the command as it was written, for its arrays.
#[derive(Clone, Copy)]
pub enum Builtin {
    Plain(Plain),
    Declaring(Declaring),
}

/// Every builtin by name, sorted.
const TABLE: &[(&str, Builtin)] = &[
    (".", Builtin::Plain(control::source)),
    (":", Builtin::Plain(|_, _| Ok(0))),
    ("[", Builtin::Plain(test::bracket)),
    ("alias", Builtin::Plain(lookup::alias)),
    ("bg", Builtin::Plain(job::bg)),
    ("bind", Builtin::Plain(bind::bind)),
    ("break", Builtin::Plain(control::break_loop)),
    ("builtin", Builtin::Declaring(control::builtin)),
    ("caller", Builtin::Plain(control::caller)),
    ("cd", Builtin::Plain(cd::cd)),
    ("command", Builtin::Declaring(control::command)),
    ("compgen", Builtin::Plain(complete::compgen)),
    ("complete", Builtin::Plain(complete::complete)),
    ("compopt", Builtin::Plain(complete::compopt)),
    ("continue", Builtin::Plain(control::continue_loop)),
    ("declare", Builtin::Declaring(declare::declare)),
    ("dirs", Builtin::Plain(cd::dirs)),
    ("disown", Builtin::Plain(job::disown)),
    ("echo", Builtin::Plain(echo::echo)),
    ("enable", Builtin::Plain(lookup::enable)),
    ("eval", Builtin::Plain(control::eval)),
    ("exec", Builtin::Plain(control::exec)),
    ("exit", Builtin::Plain(control::exit)),
    ("export", Builtin::Declaring(declare::export)),
    ("false", Builtin::Plain(|_, _| Ok(1))),
    ("fc", Builtin::Plain(history::fc)),
    ("fg", Builtin::Plain(job::fg)),
    ("getopts", Builtin::Plain(getopts::getopts)),
    ("hash", Builtin::Plain(lookup::hash)),
    ("help", Builtin::Plain(help::help)),
    ("history", Builtin::Plain(history::history)),
    ("jobs", Builtin::Plain(job::jobs)),
    ("kill", Builtin::Plain(kill::kill)),
    ("let", Builtin::Plain(various::let_)),
    ("local", Builtin::Declaring(declare::local)),
    ("logout", Builtin::Plain(control::logout)),
    ("mapfile", Builtin::Plain(read::mapfile)),
    ("popd", Builtin::Plain(cd::popd)),
    ("printf", Builtin::Plain(printf::printf)),
    ("pushd", Builtin::Plain(cd::pushd)),
    ("pwd", Builtin::Plain(cd::pwd)),
    ("read", Builtin::Plain(read::read)),
    ("readarray", Builtin::Plain(read::mapfile)),
    ("readonly", Builtin::Declaring(declare::readonly)),
    ("return", Builtin::Plain(control::return_)),
    ("set", Builtin::Plain(set::set)),
    ("shift", Builtin::Plain(set::shift)),
    ("shopt", Builtin::Plain(set::shopt)),
    ("source", Builtin::Plain(control::source)),
    ("suspend", Builtin::Plain(job::suspend)),
    ("test", Builtin::Plain(test::test)),
    ("times", Builtin::Plain(various::times)),
    ("trap", Builtin::Plain(trap::trap)),
    ("true", Builtin::Plain(|_, _| Ok(0))),
    ("type", Builtin::Plain(lookup::type_)),
    ("typeset", Builtin::Declaring(declare::declare)),
    ("ulimit", Builtin::Plain(various::ulimit)),
    ("umask", Builtin::Plain(various::umask)),
    ("unalias", Builtin::Plain(lookup::unalias)),
    ("unset", Builtin::Plain(declare::unset)),
    ("wait", Builtin::Plain(job::wait)),
];

pub fn find(name: &[u8]) -> Option<Builtin> {
    let at = TABLE.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    TABLE.get(at).map(|(_, builtin)| *builtin)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// POSIX's special builtins, which come before functions in that mode.
pub fn is_special(name: &[u8]) -> bool {
    matches!(
        name,
        b"." | b":"
            | b"break"
            | b"continue"
            | b"eval"
            | b"exec"
            | b"exit"
            | b"export"
            | b"readonly"
            | b"return"
            | b"set"
            | b"shift"
            | b"source"
            | b"times"
            | b"trap"
            | b"unset"
    )
}

pub fn run(shell: &mut Shell, builtin: Builtin, args: &[Vec<u8>], simple: &Simple) -> Exec {
    match builtin {
        Builtin::Plain(run) => match run(shell, args) {
            // These fail where an assignment by itself would end the command.
            Err(Flow::Discard(status)) if assigns(&args[0]) => Ok(status),
            other => other,
        },
        Builtin::Declaring(run) => run(shell, args, simple),
    }
}

fn assigns(name: &[u8]) -> bool {
    matches!(name, b"read" | b"printf" | b"getopts" | b"mapfile" | b"readarray" | b"cd")
}

/// Writes a builtin's output; its status says whether that went well.
fn output(shell: &mut Shell, name: &[u8], text: &[u8]) -> i32 {
    if let Some(captured) = &mut shell.captured {
        captured.extend_from_slice(text);
        return 0;
    }
    match abi::write_all(1, text) {
        Ok(()) => 0,
        Err(errno) => {
            shell.complain_parts(&[name, b": write error: ", errno.message().as_bytes()]);
            1
        }
    }
}

/// Complains in a builtin's name, and answers a status.
fn fail(shell: &Shell, name: &[u8], message: &[&[u8]], status: i32) -> i32 {
    let mut parts: Vec<&[u8]> = vec![name, b": "];
    parts.extend_from_slice(message);
    shell.complain_parts(&parts);
    status
}

/// An option a builtin does not have.
fn invalid_option(shell: &Shell, name: &[u8], option: &[u8], usage: &str) -> i32 {
    fail(shell, name, &[option, b": invalid option"], 2);
    self::usage(name, usage)
}

/// How a builtin is called, told to one who called it wrongly.
fn usage(name: &[u8], usage: &str) -> i32 {
    let text = [name, b": usage: ", usage.as_bytes(), b"\n"].concat();
    let _ = abi::write_all(2, &text);
    2
}

/// A number given to a builtin.
fn number(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

/// Single-letter options with arguments, as most builtins take them.
struct Options<'a> {
    args: &'a [Vec<u8>],
    at: usize,
    inside: usize,
}

impl<'a> Options<'a> {
    fn new(args: &'a [Vec<u8>]) -> Options<'a> {
        Options { args, at: 1, inside: 0 }
    }

    /// The next option letter; none at the first operand.
    fn next(&mut self) -> Option<u8> {
        let arg = self.args.get(self.at)?;
        if self.inside == 0 {
            if arg == b"--" {
                self.at += 1;
                return None;
            }
            if arg.len() < 2 || arg[0] != b'-' {
                return None;
            }
            self.inside = 1;
        }
        let letter = arg[self.inside];
        self.inside += 1;
        if self.inside == arg.len() {
            self.at += 1;
            self.inside = 0;
        }
        Some(letter)
    }

    /// The argument of the option just read.
    fn argument(&mut self) -> Option<&'a [u8]> {
        let arg = self.args.get(self.at)?;
        let text = if self.inside > 0 { &arg[self.inside..] } else { arg.as_slice() };
        self.at += 1;
        self.inside = 0;
        Some(text)
    }

    fn rest(&self) -> &'a [Vec<u8>] {
        &self.args[self.at.min(self.args.len())..]
    }
}
