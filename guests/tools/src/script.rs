//! `script`: a record of what a command printed. A sandbox has no terminals to give away, so the command writes to a
//! pipe.

use toolkit::args::{Tool, bytes_of};
use toolkit::clock::{self, Clock};
use toolkit::{Arguments, complain, program};
use wardian_abi as abi;
use wardian_abi::{Dir, FdMap, Spawn, open_flags};

const TOOL: Tool = Tool {
    name: "script",
    short: "+ac:eE:fqO:hV",
    long: &[
        ("append", 'a'),
        ("command=", 'c'),
        ("return", 'e'),
        ("echo=", 'E'),
        ("flush", 'f'),
        ("log-out=", 'O'),
        ("quiet", 'q'),
    ],
    help: "
Usage:
 script [options] [file]

Make a record of what a command prints.

Options:
 -c, --command <command>  run command rather than an interactive shell
 -O, --log-out <file>     log to file (default: typescript)
 -a, --append             append to the log file
 -e, --return             return exit code of the child process
 -f, --flush              run flush after each write
 -q, --quiet              be quiet
     --help     display this help and exit
     --version  output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |letter: char| parsed.options.iter().any(|(given, _)| *given == letter);
    let value = |letter: char| {
        let found = parsed.options.iter().rev().find(|(given, _)| *given == letter);
        found.and_then(|(_, text)| text.clone())
    };
    if has('h') {
        return Err(TOOL.answer(toolkit::args::Refusal::Help));
    }
    if has('V') {
        return Err(TOOL.answer(toolkit::args::Refusal::Version));
    }
    if let Some(extra) = parsed.operands.get(1) {
        return Err(
            TOOL.wrong(format_args!("unexpected number of arguments: {}", String::from_utf8_lossy(extra)))
        );
    }
    let file =
        value('O').or_else(|| parsed.operands.first().cloned()).unwrap_or_else(|| b"typescript".to_vec());
    let shown = String::from_utf8_lossy(&file).into_owned();
    let how = if has('a') { open_flags::APPEND } else { open_flags::TRUNC };
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::CLOEXEC | how;
    let log = abi::open(Dir::CWD, &file, flags, 0o666).map_err(|error| {
        complain("script", format_args!("cannot open {shown}: {error}"));
        1
    })?;
    let command = value('c');
    let words = match &command {
        Some(command) => vec![b"sh".to_vec(), b"-c".to_vec(), command.clone()],
        None => vec![b"bash".to_vec(), b"-i".to_vec()],
    };
    let quiet = has('q');
    if !quiet {
        let _ = abi::write_all(1, format!("Script started, output log file is '{shown}'.\n").as_bytes());
    }
    let told = command.map(|command| format!("COMMAND=\"{}\" ", String::from_utf8_lossy(&command)));
    let told = format!("[{}<not executed on terminal>]", told.unwrap_or_default());
    let _ = abi::write_all(log, format!("Script started on {} {told}\n", now()).as_bytes());
    let code = record(&words, log)?;
    let _ = abi::write_all(
        log,
        format!("\nScript done on {} [COMMAND_EXIT_CODE=\"{code}\"]\n", now()).as_bytes(),
    );
    if !quiet {
        let _ = abi::write_all(1, b"Script done.\n");
    }
    Ok(if has('e') { code } else { 0 })
}

fn now() -> String {
    Clock::new().format(clock::now(), "%Y-%m-%d %H:%M:%S%:z")
}

/// Runs a command; what it prints goes on and into the log.
fn record(words: &[Vec<u8>], log: abi::Fd) -> Result<i32, i32> {
    let fail = |error: abi::Errno| {
        complain("script", error);
        1
    };
    let pipe = abi::pipe(true).map_err(fail)?;
    let fds = [FdMap { to: 1, from: pipe.write }, FdMap { to: 2, from: pipe.write }];
    let started = program::spawn(words, &abi::environ(), Spawn { fds: &fds, ..Spawn::default() });
    let _ = abi::close(pipe.write);
    let child = started.map_err(fail)?;
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = toolkit::source::read(pipe.read, &mut buffer) {
        abi::write_all(log, &buffer[..count]).map_err(fail)?;
        abi::write_all(1, &buffer[..count]).map_err(fail)?;
    }
    Ok(program::wait_for(child).shell_code())
}
