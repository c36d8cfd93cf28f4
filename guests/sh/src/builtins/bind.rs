//! `bind`, in a shell that leaves line editing to whoever is at the other end: it says so, and answers what can be
//! answered without keys.

use super::{Options, fail, invalid_option, output};
use crate::shell::{Exec, Shell};
use wardian_abi as abi;

const USAGE: &str = "bind [-lpsvPSVX] [-m keymap] [-f filename] [-q name] [-u name] [-r keyseq] [-x keyseq:shell-command] [keyseq:readline-function or readline-command]";

/// What keys can be bound to, and the settings of line editing with their values.
const FUNCTIONS: &str = include_str!("editing-functions.txt");
const VARIABLES: &str = include_str!("editing-variables.txt");

const KEYMAPS: [&[u8]; 8] = [
    b"emacs",
    b"emacs-standard",
    b"emacs-meta",
    b"emacs-ctlx",
    b"vi",
    b"vi-move",
    b"vi-command",
    b"vi-insert",
];

pub fn bind(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    shell.complain(b"bind: warning: line editing not enabled");
    let mut options = Options::new(args);
    let mut status = 0;
    while let Some(letter) = options.next() {
        let operand = match letter {
            b'm' | b'f' | b'q' | b'u' | b'r' | b'x' => match options.argument() {
                Some(operand) => operand.to_vec(),
                None => {
                    let message = [b'-', letter, b':'];
                    fail(shell, b"bind", &[&message, b" option requires an argument"], 2);
                    let _ = abi::write_all(2, format!("bind: usage: {USAGE}\n").as_bytes());
                    return Ok(2);
                }
            },
            _ => Vec::new(),
        };
        status = match letter {
            b'l' => output(shell, b"bind", FUNCTIONS.as_bytes()),
            b'v' => settings(shell, |name, value| format!("set {name} {value}\n")),
            b'V' => settings(shell, |name, value| format!("{name} is set to `{value}'\n")),
            b'p' | b's' | b'P' | b'S' | b'X' | b'r' | b'x' => status,
            b'm' if KEYMAPS.contains(&operand.as_slice()) => status,
            b'm' => return Ok(fail(shell, b"bind", &[b"`", &operand, b"': invalid keymap name"], 1)),
            b'f' => match abi::stat(abi::Dir::CWD, &operand, true) {
                Ok(_) => status,
                Err(errno) => {
                    let reason = errno.message();
                    fail(shell, b"bind", &[&operand, b": cannot read: ", reason.as_bytes()], 1)
                }
            },
            b'q' | b'u' if !FUNCTIONS.lines().any(|name| name.as_bytes() == operand) => {
                fail(shell, b"bind", &[b"`", &operand, b"': unknown function name"], 1)
            }
            b'q' => {
                let text = [operand.as_slice(), b" is not bound to any keys.\n"].concat();
                output(shell, b"bind", &text);
                1
            }
            b'u' => status,
            other => return Ok(invalid_option(shell, b"bind", &[b'-', other], USAGE)),
        };
    }
    Ok(status)
}

fn settings(shell: &mut Shell, line: impl Fn(&str, &str) -> String) -> i32 {
    let lines = VARIABLES.lines().filter_map(|setting| setting.split_once(' '));
    let text: String = lines.map(|(name, value)| line(name, value)).collect();
    output(shell, b"bind", text.as_bytes())
}
