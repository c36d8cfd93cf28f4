//! `wasi`: runs a WASI program with the directories and the environment named, and nothing else.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, program, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Preopen, Spawn, StringList, open_flags};

const TOOL: Tool = Tool {
    name: "wasi",
    short: "+d:e:",
    long: &[("dir=", 'd'), ("env=", 'e')],
    help: "\
Usage: wasi [--dir=PATH[::NAME]]... [--env=NAME=VALUE]... PROGRAM [ARG]...
Run PROGRAM, a WASI module, with the directories and the environment given here
and nothing else.  PROGRAM is a file, or else a command in PATH.

  -d, --dir=PATH[::NAME]   let it use the directory PATH, as NAME if given
  -e, --env=NAME=VALUE     set a variable in its environment; NAME alone takes
                             the value it has here
      --help        display this help and exit
      --version     output version information and exit

It reads and writes standard input, output and error as any command does.
No path and no symbolic link leads out of the directories.
",
    misuse: CANCELED,
};

const CANCELED: i32 = 125;

/// A directory to give, open, and its name there.
type Given = (Fd, Vec<u8>);

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let here = abi::environ();
    let (mut directories, mut environment) = (Vec::new(), Vec::new());
    for (letter, text) in parsed.options {
        match (letter, text) {
            ('d', Some(text)) => directories.push(open(&text)?),
            ('e', Some(pair)) => environment.extend(variable(pair, &here)),
            _ => {}
        }
    }
    match parsed.operands.first() {
        None => Err(TOOL.wrong("missing operand")),
        Some(command) => {
            let error = become_program(command, &parsed.operands, &environment, &directories, &here);
            Err(explain(command, error))
        }
    }
}

/// Opens the directory of a `PATH[::NAME]`.
fn open(text: &[u8]) -> Result<Given, i32> {
    let cut = text.windows(2).rposition(|pair| pair == b"::").filter(|&at| at > 0 && at + 2 < text.len());
    let (path, name) = cut.map_or((text, text), |at| (&text[..at], &text[at + 2..]));
    let flags = open_flags::RDONLY | open_flags::DIRECTORY | open_flags::CLOEXEC;
    let opened = abi::open(Dir::CWD, path, flags, 0).map_err(|error| {
        complain("wasi", format_args!("cannot open directory {}: {error}", quote::always(path)));
        CANCELED
    });
    Ok((opened?, name.to_vec()))
}

/// A variable as it was given, or with the value it has here; one that has none is left out.
fn variable(pair: Vec<u8>, here: &[Vec<u8>]) -> Option<Vec<u8>> {
    if pair.contains(&b'=') {
        return Some(pair);
    }
    let value = program::value_of(here, &pair)?;
    Some([&pair[..], b"=", value].concat())
}

fn become_program(
    command: &[u8],
    words: &[Vec<u8>],
    environment: &[Vec<u8>],
    directories: &[Given],
    here: &[Vec<u8>],
) -> Errno {
    let path = match abi::stat(Dir::CWD, command, true) {
        Ok(stat) if stat.is_file() => Ok(command.to_vec()),
        _ => program::find(command, &program::search_path(here)),
    };
    let path = match path {
        Ok(path) => path,
        Err(error) => return error,
    };
    let (argv, env): (StringList, StringList) = (words.iter().collect(), environment.iter().collect());
    let request = Spawn { path: &path, argv: argv.as_bytes(), env: env.as_bytes(), ..Spawn::default() };
    let preopens: Vec<Preopen<'_>> = directories.iter().map(|(fd, name)| Preopen { fd: *fd, name }).collect();
    abi::exec_wasi(&request, &preopens)
}

fn explain(command: &[u8], error: Errno) -> i32 {
    match error {
        Errno::INVAL => complain(
            "wasi",
            format_args!("{}: not a plain WASI program: it calls the kernel itself", quote::always(command)),
        ),
        error => complain("wasi", format_args!("{}: {error}", quote::always(command))),
    }
    program::code_for(error)
}
