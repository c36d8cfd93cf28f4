//! `setsid`, `ionice`, `renice` and `stdbuf`: commands run with something about them changed.
//!
//! A sandbox has one session and no disks to queue for: a process group of its own is what `setsid` can give, and all
//! processes have the same priority.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input, processes, program, quote};
use wardian_abi as abi;

const SETSID: Tool = Tool {
    name: "setsid",
    short: "+fcwhV",
    long: &[("fork", 'f'), ("ctty", 'c'), ("wait", 'w')],
    help: "
Usage:
 setsid [options] <program> [arguments ...]

Run a program in a process group of its own, as a sandbox has one session.

Options:
 -f, --fork     always fork
 -w, --wait     wait program to exit, and use the same return
     --help     display this help and exit
     --version  output version information and exit
",
    misuse: 1,
};

pub fn setsid(arguments: Arguments) -> i32 {
    let parsed = match SETSID.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    if has('h') {
        return SETSID.answer(toolkit::args::Refusal::Help);
    }
    if has('V') {
        return SETSID.answer(toolkit::args::Refusal::Version);
    }
    if has('c') {
        complain("setsid", "--ctty is not supported: a sandbox has one terminal and one session");
        return 1;
    }
    if parsed.operands.is_empty() {
        return SETSID.wrong("no command specified");
    }
    let leads = abi::getpgid(0) == Ok(abi::getpid());
    if !leads && !has('f') {
        return lead(&parsed.operands);
    }
    match abi::fork(|| lead(&parsed.operands)) {
        Ok(child) if has('w') => program::wait_for(child).shell_code(),
        Ok(_) => 0,
        Err(error) => {
            complain("setsid", format_args!("fork: {error}"));
            1
        }
    }
}

/// Becomes the command, at the head of a process group.
fn lead(command: &[Vec<u8>]) -> i32 {
    if let Err(error) = abi::setpgid(0, 0) {
        complain("setsid", format_args!("setsid failed: {error}"));
        return 1;
    }
    cannot_start("setsid", command)
}

/// Becomes a command. What util-linux says if that fails, and its exit code.
fn cannot_start(name: &str, command: &[Vec<u8>]) -> i32 {
    let error = program::exec(command, &abi::environ(), b"");
    complain(name, format_args!("failed to execute {}: {error}", String::from_utf8_lossy(&command[0])));
    program::code_for(error)
}

const IONICE: Tool = Tool {
    name: "ionice",
    short: "+n:c:p:P:u:th",
    long: &[
        ("class=", 'c'),
        ("classdata=", 'n'),
        ("pid=", 'p'),
        ("pgid=", 'P'),
        ("uid=", 'u'),
        ("ignore", 't'),
    ],
    help: "
Usage:
 ionice [options] -p <pid>...
 ionice [options] -P <pgid>...
 ionice [options] -u <uid>...
 ionice [options] <command>

Show the I/O-scheduling class, which is none for every process here, or run a command.

Options:
 -c, --class <class>    name or number of scheduling class,
                          0: none, 1: realtime, 2: best-effort, 3: idle
 -n, --classdata <num>  priority (0..7) in the specified scheduling class
 -p, --pid <pid>...     act on these already running processes
 -P, --pgid <pgrp>...   act on already running processes in these groups
 -t, --ignore           ignore failures
 -u, --uid <uid>...     act on already running processes owned by these users
     --help     display this help and exit
     --version  output version information and exit
",
    misuse: 1,
};

pub fn ionice(arguments: Arguments) -> i32 {
    let parsed = match IONICE.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut shows = None;
    for (letter, argument) in &parsed.options {
        let text = argument.as_deref().unwrap_or_default();
        let shown = String::from_utf8_lossy(text);
        match letter {
            'c' => {
                let known: [&[u8]; 8] =
                    [b"0", b"1", b"2", b"3", b"none", b"realtime", b"best-effort", b"idle"];
                if !known.contains(&text.to_ascii_lowercase().as_slice()) {
                    complain("ionice", format_args!("unknown scheduling class: '{shown}'"));
                    return 1;
                }
            }
            'n' if input::number::<i32>(text).is_none() => {
                complain("ionice", format_args!("invalid class data argument: '{shown}'"));
                return 1;
            }
            'p' | 'P' | 'u' => match input::number::<i32>(text) {
                Some(number) => shows = Some(number),
                None => {
                    let what =
                        ["PID", "PGID", "UID"][['p', 'P', 'u'].iter().position(|l| l == letter).unwrap_or(0)];
                    complain("ionice", format_args!("invalid {what} argument: '{shown}'"));
                    return 1;
                }
            },
            'h' => return IONICE.answer(toolkit::args::Refusal::Help),
            _ => {}
        }
    }
    let sets = parsed.options.iter().any(|(letter, _)| matches!(letter, 'c' | 'n'));
    match shows {
        Some(_) if sets => 0,
        Some(_) => {
            Out::new("ionice").put("none: prio 0\n");
            0
        }
        None if parsed.operands.is_empty() => {
            Out::new("ionice").put("none: prio 0\n");
            0
        }
        None => cannot_start("ionice", &parsed.operands),
    }
}

const RENICE: Tool = Tool {
    name: "renice",
    short: "+n:pguh",
    long: &[("priority=", 'n'), ("pid", 'p'), ("pgrp", 'g'), ("user", 'u')],
    help: "
Usage:
 renice [-n] <priority> [-p|--pid] <pid>...
 renice [-n] <priority>  -g|--pgrp <pgid>...
 renice [-n] <priority>  -u|--user <user>...

Alter the priority of running processes. All processes of a sandbox have
priority 0; another is refused.

Options:
 -n, --priority <num>   specify the nice value
 -p, --pid              interpret arguments as process ID (default)
 -g, --pgrp             interpret arguments as process group ID
 -u, --user             interpret arguments as username or user ID
     --help     display this help and exit
     --version  output version information and exit
",
    misuse: 1,
};

pub fn renice(arguments: Arguments) -> i32 {
    let mut words = bytes_of(arguments);
    // The priority may come first, without its letter; it may be negative.
    if words.first().is_some_and(|word| input::number::<i32>(word).is_some()) {
        words.insert(0, b"-n".to_vec());
    }
    let (tail, head): (Vec<Vec<u8>>, Vec<Vec<u8>>) = words.into_iter().partition(|word| {
        word.first().is_some_and(u8::is_ascii_digit) || word.iter().all(u8::is_ascii_alphabetic)
    });
    let parsed = match RENICE.parse(head.into_iter().chain(tail).collect()) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if parsed.options.iter().any(|(letter, _)| *letter == 'h') {
        return RENICE.answer(toolkit::args::Refusal::Help);
    }
    let value = parsed.options.iter().rev().find(|(letter, _)| *letter == 'n');
    let Some(value) = value.and_then(|(_, text)| text.clone()) else {
        return RENICE.wrong("not enough arguments");
    };
    let Some(priority) = input::number::<i32>(&value) else {
        complain("renice", format_args!("invalid priority '{}'", String::from_utf8_lossy(&value)));
        return RENICE.misuse;
    };
    if parsed.operands.is_empty() {
        return RENICE.wrong("not enough arguments");
    }
    let kind = parsed.options.iter().rev().find(|(letter, _)| "pgu".contains(*letter));
    let kind = kind.map_or('p', |(letter, _)| *letter);
    let mut code = 0;
    for operand in &parsed.operands {
        code |= renice_one(kind, operand, priority);
    }
    code
}

fn renice_one(kind: char, operand: &[u8], priority: i32) -> i32 {
    let names = toolkit::names::Names::users();
    let number = input::number::<i32>(operand).or_else(|| {
        names.find(&String::from_utf8_lossy(operand)).filter(|_| kind == 'u').map(|id| id as i32)
    });
    let Some(number) = number else {
        complain("renice", format_args!("bad {kind} value: {}", String::from_utf8_lossy(operand)));
        return 1;
    };
    let what = match kind {
        'g' => "process group ID",
        'u' => "user ID",
        _ => "process ID",
    };
    let is_there = processes::all().iter().any(|process| match kind {
        'g' => process.group == number,
        'u' => process.uid == number as u32,
        _ => process.pid == number,
    });
    if !is_there {
        complain("renice", format_args!("failed to get priority for {number} ({what}): No such process"));
        return 1;
    }
    if priority != 0 {
        complain(
            "renice",
            format_args!(
                "failed to set priority for {number} ({what}): all processes of a sandbox have priority 0"
            ),
        );
        return 1;
    }
    Out::new("renice").put(format!("{number} ({what}) old priority 0, new priority 0\n"));
    0
}

const STDBUF: Tool = Tool {
    name: "stdbuf",
    short: "+i:o:e:",
    long: &[("input=", 'i'), ("output=", 'o'), ("error=", 'e')],
    help: "\
Usage: stdbuf OPTION... COMMAND
Run COMMAND, with modified buffering operations for its standard streams.

  -i, --input=MODE   adjust standard input stream buffering
  -o, --output=MODE  adjust standard output stream buffering
  -e, --error=MODE   adjust standard error stream buffering
      --help        display this help and exit
      --version     output version information and exit

If MODE is 'L' the corresponding stream will be line buffered.
This option is invalid with standard input.

If MODE is '0' the corresponding stream will be unbuffered.

Otherwise MODE is a number which may be followed by a unit; the stream is
fully buffered then. Tools here read as much as there is and write standard
error at once, whatever MODE says; standard output follows MODE L and 0.
",
    misuse: 125,
};

pub fn stdbuf(arguments: Arguments) -> i32 {
    let parsed = match STDBUF.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut environment = abi::environ();
    for (letter, argument) in &parsed.options {
        let mode = argument.as_deref().unwrap_or_default();
        if mode == b"L" && *letter == 'i' {
            return STDBUF.wrong("line buffering stdin is meaningless");
        }
        let size = toolkit::count::parse(mode, 0..=u64::MAX, "EGKkMPTYZ0");
        if mode != b"L" && size.is_err() {
            complain("stdbuf", format_args!("invalid mode {}", quote::word(mode)));
            return 125;
        }
        // The names that GNU's uses between its two halves; `toolkit::out` is our other half.
        let name = format!("_STDBUF_{}=", letter.to_ascii_uppercase()).into_bytes();
        environment.retain(|pair| !pair.starts_with(&name));
        environment.push([name, mode.to_vec()].concat());
    }
    if parsed.operands.is_empty() {
        return STDBUF.wrong("missing operand");
    }
    if parsed.options.is_empty() {
        return STDBUF.wrong("you must specify a buffering mode option");
    }
    let error = program::exec(&parsed.operands, &environment, b"");
    complain("stdbuf", format_args!("failed to run command {}: {error}", quote::word(&parsed.operands[0])));
    program::code_for(error)
}
