//! `mkfifo`: makes named pipes.

use toolkit::args::{Tool, bytes_of};
use toolkit::mode::Change;
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::Dir;

const TOOL: Tool = Tool {
    name: "mkfifo",
    short: "m:Z",
    long: &[("mode=", 'm'), ("context[=", 'Z')],
    help: "\
Usage: mkfifo [OPTION]... NAME...
Create named pipes (FIFOs) with the given NAMEs.

  -m, --mode=MODE    set file permission bits to MODE, not a=rw - umask
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

pub fn main(arguments: Arguments) -> i32 {
    make_all(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn make_all(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    if parsed.operands.is_empty() {
        return Err(TOOL.wrong("missing operand"));
    }
    let mut exact = None;
    for (letter, text) in parsed.options {
        if let ('m', Some(text)) = (letter, text) {
            exact = Some(mode_from(&text)?);
        }
    }
    let mut code = 0;
    for name in &parsed.operands {
        let made = abi::mkfifo(Dir::CWD, name, exact.unwrap_or(0o666));
        if let Err(error) = made {
            complain("mkfifo", format_args!("cannot create fifo {}: {error}", quote::always(name)));
            code = 1;
        } else if let Some(Err(error)) = exact.map(|mode| abi::chmod(Dir::CWD, name, true, mode)) {
            complain("mkfifo", format_args!("cannot set permissions of {}: {error}", quote::always(name)));
            code = 1;
        }
    }
    Ok(code)
}

fn mode_from(text: &[u8]) -> Result<u32, i32> {
    let umask = abi::umask(0);
    abi::umask(umask);
    let refuse = |why| {
        complain("mkfifo", why);
        1
    };
    let change = Change::parse(text).ok_or_else(|| refuse("invalid mode"))?;
    let mode = change.apply(0o666, false, umask);
    if mode & !0o777 != 0 {
        return Err(refuse("mode must specify only file permission bits"));
    }
    Ok(mode)
}
