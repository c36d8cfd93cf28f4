//! `nohup`: runs a command that outlives its terminal.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, files, program, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Disposition, Fd, open_flags};

const TOOL: Tool = Tool {
    name: "nohup",
    short: "+",
    long: &[],
    help: "\
Usage: nohup COMMAND [ARG]...
  or:  nohup OPTION
Run COMMAND, ignoring hangup signals.

      --help        display this help and exit
      --version     output version information and exit

If standard input is a terminal, redirect it from an unreadable file.
If standard output is a terminal, append output to 'nohup.out' if possible,
'$HOME/nohup.out' otherwise.
If standard error is a terminal, redirect it to standard output.
",
    misuse: CANCELED,
};

const CANCELED: i32 = 125;
const HUP: i32 = 1;

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if parsed.operands.is_empty() {
        return TOOL.wrong("missing operand");
    }
    if let Err(code) = leave_terminal() {
        return code;
    }
    let _ = abi::sigaction(HUP, Disposition::Ignore);
    let error = program::exec(&parsed.operands, &abi::environ(), b"");
    program::complain_of("nohup", &parsed.operands[0], error)
}

/// Takes input, output and errors off a terminal, and says so.
fn leave_terminal() -> Result<(), i32> {
    let (input, output, errors) = (abi::isatty(0), abi::isatty(1), abi::isatty(2));
    if input {
        let null = abi::open(Dir::CWD, b"/dev/null", open_flags::WRONLY, 0).map_err(|error| {
            complain("nohup", format_args!("failed to render standard input unusable: {error}"));
            CANCELED
        })?;
        put(null, 0)?;
        if !output {
            complain(
                "nohup",
                if errors { "ignoring input and redirecting stderr to stdout" } else { "ignoring input" },
            );
        }
    }
    if output {
        let (file, name) = open_output()?;
        let what = if input { "ignoring input and appending output to" } else { "appending output to" };
        complain("nohup", format_args!("{what} {}", quote::always(&name)));
        put(file, 1)?;
    }
    if errors {
        if !input && !output {
            complain("nohup", "redirecting stderr to stdout");
        }
        put(1, 2)?;
    }
    Ok(())
}

fn put(from: Fd, to: Fd) -> Result<(), i32> {
    abi::dup2(from, to, false).map_err(|error| {
        complain("nohup", format_args!("failed to redirect: {error}"));
        CANCELED
    })
}

fn open_output() -> Result<(Fd, Vec<u8>), i32> {
    let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::APPEND;
    let here = b"nohup.out".to_vec();
    let error = match abi::open(Dir::CWD, &here, flags, 0o600) {
        Ok(file) => return Ok((file, here)),
        Err(error) => error,
    };
    let home = program::value_of(&abi::environ(), b"HOME").map(|home| files::join(home, &here));
    if let Some(name) = home
        && let Ok(file) = abi::open(Dir::CWD, &name, flags, 0o600)
    {
        return Ok((file, name));
    }
    complain("nohup", format_args!("failed to open 'nohup.out': {error}"));
    Err(CANCELED)
}
