//! `trap`

use super::{fail, invalid_option, output};
use crate::expand::quote;
use crate::shell::{Exec, Shell};
use crate::traps::{signal_name, signal_number};

const USAGE: &str = "trap [-lp] [[arg] signal_spec ...]";

pub fn trap(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut operands = &args[1..];
    match operands.first().map(Vec::as_slice) {
        None => return show(shell, &[]),
        Some(b"-p") => {
            if let Some([b'-', letter, ..]) = operands.get(1).map(Vec::as_slice).filter(|arg| *arg != b"--") {
                return Ok(invalid_option(shell, b"trap", &[b'-', *letter], USAGE));
            }
            return show(shell, &operands[1..]);
        }
        Some(b"-l") => {
            super::kill::list_signals(shell);
            return Ok(0);
        }
        Some(b"--") => operands = &operands[1..],
        Some([b'-', letter, ..]) => {
            return Ok(invalid_option(shell, b"trap", &[b'-', *letter], USAGE));
        }
        _ => {}
    }
    let Some(command) = operands.first() else { return show(shell, &[]) };
    // One operand, or a number first, resets.
    let resets = command == b"-"
        || operands.len() == 1
        || command.iter().all(u8::is_ascii_digit) && !command.is_empty();
    let signals = if resets && command != b"-" { operands } else { &operands[1..] };
    if signals.is_empty() || (operands.len() == 1 && signal_number(command).is_none()) {
        let _ = wardian_abi::write_all(2, [b"trap: usage: ", USAGE.as_bytes(), b"\n"].concat().as_slice());
        return Ok(2);
    }
    let mut status = 0;
    for name in signals {
        match signal_number(name) {
            Some(signal) if resets => shell.traps.reset(signal),
            Some(signal) => shell.traps.set(signal, command.clone()),
            None => status = fail(shell, b"trap", &[name, b": invalid signal specification"], 1),
        }
    }
    Ok(status)
}

fn show(shell: &mut Shell, names: &[Vec<u8>]) -> Exec {
    let mut wanted = Vec::new();
    let mut status = 0;
    for name in names {
        match signal_number(name) {
            Some(signal) => wanted.push(signal),
            None => status = fail(shell, b"trap", &[name, b": invalid signal specification"], 1),
        }
    }
    let listed: Vec<(i32, &Vec<u8>)> = shell.traps.listed().collect();
    let shown: Vec<(i32, &Vec<u8>)> = match names.is_empty() {
        true => listed,
        // In the order they are asked for.
        false => wanted
            .iter()
            .filter_map(|signal| listed.iter().find(|(listed, _)| listed == signal).copied())
            .collect(),
    };
    let mut text = Vec::new();
    for (signal, command) in shown {
        let (command, name) = (quote::single(command), signal_name(signal));
        text.extend([b"trap -- ", command.as_slice(), b" ", name.as_bytes(), b"\n"].concat());
    }
    let written = output(shell, b"trap", &text);
    Ok(status.max(written))
}
