//! `echo`

use super::output;
use crate::shell::{Exec, Shell};

pub fn echo(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let (mut newline, mut escapes) = (true, shell.shopt.get("xpg_echo"));
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let letters = arg.strip_prefix(b"-").unwrap_or_default();
        if letters.is_empty() || !letters.iter().all(|letter| b"neE".contains(letter)) {
            break;
        }
        for letter in letters {
            match letter {
                b'n' => newline = false,
                b'e' => escapes = true,
                _ => escapes = false,
            }
        }
        at += 1;
    }
    let mut text = Vec::with_capacity(64);
    for (index, arg) in args[at.min(args.len())..].iter().enumerate() {
        if index > 0 {
            text.push(b' ');
        }
        if escapes {
            let (resolved, cut) = crate::parser::ansi_c(&octal_kept(arg), false);
            text.extend_from_slice(&resolved);
            if cut {
                return Ok(output(shell, b"echo", &text));
            }
        } else {
            text.extend_from_slice(arg);
        }
    }
    if newline {
        text.push(b'\n');
    }
    if text.is_empty() {
        return Ok(0);
    }
    Ok(output(shell, b"echo", &text))
}

/// To `echo`, unlike `printf %b`, an octal number starts with 0: other digits after a backslash are text.
fn octal_kept(text: &[u8]) -> Vec<u8> {
    let mut kept = Vec::with_capacity(text.len());
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        kept.push(byte);
        if byte == b'\\'
            && let Some(next) = bytes.next()
        {
            if matches!(next, b'1'..=b'7') {
                kept.push(b'\\');
            }
            kept.push(next);
        }
    }
    kept
}
