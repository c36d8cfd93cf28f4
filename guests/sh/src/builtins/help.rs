//! `help`: what the shell's own commands are called with.

use super::{Options, fail, invalid_option, output};
use crate::pattern::{Pattern, Style};
use crate::shell::{Exec, Shell};

/// A line for every topic: its name, a colon, and how it is written.
const SYNOPSES: &str = include_str!("synopses.txt");

/// How much is shown of a topic.
#[derive(Clone, Copy)]
enum Form {
    Long,
    /// `-s`
    Synopsis,
    /// `-d`
    Description,
    /// `-m`
    Manual,
}

pub fn help(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut form = Form::Long;
    let mut options = Options::new(args);
    while let Some(letter) = options.next() {
        form = match (letter, form) {
            (b'd', _) | (b's', Form::Description) => Form::Description,
            (b's', _) => Form::Synopsis,
            (b'm', _) => Form::Manual,
            (other, _) => {
                return Ok(invalid_option(shell, b"help", &[b'-', other], "help [-dms] [pattern ...]"));
            }
        };
    }
    let patterns = options.rest();
    if patterns.is_empty() {
        let topics = topics().map(|(_, synopsis)| format!(" {synopsis}\n"));
        let text =
            "These shell commands are defined internally. The tools are programs: `ls /bin' lists them, and\n\
             `NAME --help' says what one does.\n\n"
                .to_owned() + &topics.collect::<String>();
        // As in bash, it is no error that nobody can read it.
        let _ = wardian_abi::write_all(1, text.as_bytes());
        return Ok(0);
    }
    let mut found = false;
    for pattern in patterns {
        let text = matching(pattern).iter().map(|topic| describe(*topic, form)).collect::<String>();
        found = !text.is_empty();
        let special = pattern.iter().any(|byte| b"*?[".contains(byte)) && pattern.as_slice() != b"[";
        if special && found {
            let head = [b"Shell commands matching keyword `", pattern.as_slice(), b"'\n\n"].concat();
            output(shell, b"help", &head);
        }
        output(shell, b"help", text.as_bytes());
    }
    match patterns.last().filter(|_| !found) {
        Some(name) => Ok(no_topic(shell, name)),
        None => Ok(0),
    }
}

/// Every topic with its synopsis.
fn topics() -> impl Iterator<Item = (&'static str, &'static str)> {
    SYNOPSES.lines().filter_map(|line| match line.strip_prefix(":: ") {
        Some(synopsis) => Some((":", synopsis)),
        None => line.split_once(": "),
    })
}

/// The topics a pattern names: by their name, else by how it begins.
fn matching(pattern: &[u8]) -> Vec<(&'static str, &'static str)> {
    let glob = Pattern::new(pattern, Style { extended: false, fold: false, utf8: true });
    let named = |name: &str| name.as_bytes() == pattern || glob.matches(name.as_bytes());
    let found: Vec<_> = topics().filter(|(name, _)| named(name)).collect();
    if !found.is_empty() {
        return found;
    }
    topics().filter(|(name, _)| name.as_bytes().starts_with(pattern)).collect()
}

fn describe((name, synopsis): (&str, &str), form: Form) -> String {
    match form {
        Form::Synopsis => format!("{name}: {synopsis}\n"),
        Form::Description => format!("{name} - A command of the shell.\n"),
        Form::Long => format!("{name}: {synopsis}\n    A command of the shell; see bash's manual.\n"),
        Form::Manual => format!(
            "NAME\n    {name} - A command of the shell.\n\nSYNOPSIS\n    {synopsis}\n\nSEE ALSO\n    bash(1)\n\n"
        ),
    }
}

fn no_topic(shell: &Shell, name: &[u8]) -> i32 {
    let parts: [&[u8]; 7] = [
        b"no help topics match `",
        name,
        b"'.  Try `help help' or `man -k ",
        name,
        b"' or `info ",
        name,
        b"'.",
    ];
    fail(shell, b"help", &parts, 1)
}
