//! `set`, `shopt`, `shift`.

use super::{Options, fail, invalid_option, number, output};
use crate::options::{Options as SetOptions, SHOPT};
use crate::shell::{Exec, Flow, Shell};

const USAGE: &str = "set [-abefhkmnptuvxBCEHPT] [-o option-name] [--] [-] [arg ...]";

pub fn set(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if args.len() == 1 {
        return list_variables(shell);
    }
    let mut at = 1;
    let mut params = None;
    while let Some(arg) = args.get(at) {
        at += 1;
        match arg.as_slice() {
            b"--" => {
                params = Some(args[at..].to_vec());
                break;
            }
            b"-" => {
                shell.options.xtrace = false;
                shell.options.verbose = false;
                if at < args.len() {
                    params = Some(args[at..].to_vec());
                }
                break;
            }
            [sign @ (b'-' | b'+'), letters @ ..] if !letters.is_empty() => {
                let on = *sign == b'-';
                for &letter in letters {
                    if letter == b'o' {
                        match args.get(at) {
                            Some(name) => {
                                at += 1;
                                if let Err(status) = set_named(shell, name, on) {
                                    return Ok(status);
                                }
                            }
                            None => list_options(shell, on),
                        }
                        continue;
                    }
                    match shell.options.by_letter(letter) {
                        Some(option) => *option = on,
                        None if letter == b'r' && on => shell.restrict(),
                        None => return Ok(invalid_option(shell, b"set", &[*sign, letter], USAGE)),
                    }
                }
            }
            _ => {
                params = Some(args[at - 1..].to_vec());
                break;
            }
        }
    }
    if let Some(params) = params {
        shell.params_set = true;
        shell.params = params;
    }
    Ok(0)
}

/// `set -o name`
pub fn set_named(shell: &mut Shell, name: &[u8], on: bool) -> Result<(), i32> {
    match shell.options.by_name(name) {
        Some(option) => *option = on,
        None => return Err(fail(shell, b"set", &[name, b": invalid option name"], 2)),
    }
    // Options that a variable stands for, and what it then says.
    let followed: Option<(&[u8], &[u8])> = match name {
        b"posix" => Some((b"POSIXLY_CORRECT", b"y")),
        b"ignoreeof" => Some((b"IGNOREEOF", b"10")),
        _ => None,
    };
    match followed {
        Some((variable, value)) if on && shell.vars.raw(variable).is_none() => {
            shell.vars.set_raw(variable, value)
        }
        Some((variable, _)) if !on => drop(shell.vars.remove(variable)),
        _ => {}
    }
    if name == b"history" && on {
        shell.load_history();
    }
    if name == b"posix" {
        let sets = [&b"inherit_errexit"[..], b"expand_aliases"];
        for name in sets {
            if on && let Some(option) = shell.shopt.by_name(name) {
                *option = true;
            }
        }
    }
    Ok(())
}

fn list_options(shell: &mut Shell, table: bool) {
    let mut text = String::new();
    for name in SetOptions::NAMES {
        let on = shell.options.by_name(name.as_bytes()).is_some_and(|on| *on);
        text += &match (table, on) {
            (true, _) => format!("{name:<15}\t{}\n", if on { "on" } else { "off" }),
            (false, true) => format!("set -o {name}\n"),
            (false, false) => format!("set +o {name}\n"),
        };
    }
    output(shell, b"set", text.as_bytes());
}

fn list_variables(shell: &mut Shell) -> Exec {
    let mut text = Vec::new();
    for name in shell.vars.names() {
        if let Some(var) = shell.var(name)
            && let Some(line) = super::declare::assignment_line(name, &var)
        {
            text.extend(line);
        }
    }
    let mut functions: Vec<_> = shell.functions.keys().cloned().collect();
    functions.sort_unstable();
    for name in functions {
        if let Some(function) = shell.functions.get(&name) {
            text.extend(crate::unparse::function_text(function));
        }
    }
    Ok(output(shell, b"set", &text))
}

pub fn shift(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let operands = &args[1 + usize::from(args.get(1).is_some_and(|arg| arg == b"--"))..];
    if operands.len() > 1 {
        fail(shell, b"shift", &[b"too many arguments"], 1);
        return Err(Flow::Discard(1));
    }
    let count = match operands.first() {
        None => 1,
        Some(text) => match number(text) {
            Some(count) if count >= 0 => count as usize,
            Some(_) => return Ok(fail(shell, b"shift", &[text, b": shift count out of range"], 1)),
            None => return Ok(fail(shell, b"shift", &[text, b": numeric argument required"], 1)),
        },
    };
    if count > shell.params.len() {
        if shell.shopt.get("shift_verbose") || shell.options.posix {
            fail(shell, b"shift", &[count.to_string().as_bytes(), b": shift count out of range"], 1);
        }
        return Ok(1);
    }
    shell.params.drain(..count);
    Ok(0)
}

pub fn shopt(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut on, mut off, mut quiet, mut print, mut of_set) = (false, false, false, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b's' => on = true,
            b'u' => off = true,
            b'q' => quiet = true,
            b'p' => print = true,
            b'o' => of_set = true,
            other => {
                return Ok(invalid_option(
                    shell,
                    b"shopt",
                    &[b'-', other],
                    "shopt [-pqsu] [-o] [optname ...]",
                ));
            }
        }
    }
    let names = options.rest();
    if on && off {
        return Ok(fail(shell, b"shopt", &[b"cannot set and unset shell options simultaneously"], 1));
    }
    if names.is_empty() {
        return list_shopt(shell, on, off, print, of_set);
    }
    let mut status = 0;
    for name in names {
        let value = if of_set { shell.options.by_name(name) } else { shell.shopt.by_name(name) };
        let Some(value) = value else {
            let what: &[u8] = if of_set { b": invalid option name" } else { b": invalid shell option name" };
            status = fail(shell, b"shopt", &[name, what], 1);
            continue;
        };
        if on || off {
            // What kind of shell it is cannot be set.
            if of_set || !matches!(name.as_slice(), b"login_shell" | b"restricted_shell") {
                *value = on;
            }
            if !of_set {
                note_compatibility(shell, name, on)?;
            }
            continue;
        }
        let value = *value;
        if !value {
            status = 1;
        }
        if !quiet {
            let line = shopt_line(&String::from_utf8_lossy(name), value, print, of_set);
            output(shell, b"shopt", line.as_bytes());
        }
    }
    Ok(status)
}

/// `shopt -s compat44` is another way to write `BASH_COMPAT=44`, and only one level is in force.
fn note_compatibility(shell: &mut Shell, name: &[u8], on: bool) -> Exec<()> {
    if name == b"extdebug" && on && shell.debugged_params.is_none() {
        shell.debugged_params = Some(shell.params.clone());
    }
    let Some(level) = name.strip_prefix(b"compat") else { return Ok(()) };
    if !on {
        return Ok(());
    }
    for (other, _) in SHOPT.iter().filter(|(other, _)| other.starts_with("compat")) {
        if let Some(value) = shell.shopt.by_name(other.as_bytes()) {
            *value = other.as_bytes() == name;
        }
    }
    shell.assign(b"BASH_COMPAT", level)
}

fn shopt_line(name: &str, on: bool, print: bool, of_set: bool) -> String {
    match (print, of_set) {
        (true, true) => format!("set {}o {name}\n", if on { '-' } else { '+' }),
        (true, false) => format!("shopt -{} {name}\n", if on { 's' } else { 'u' }),
        (false, _) => format!("{name:<15}\t{}\n", if on { "on" } else { "off" }),
    }
}

fn list_shopt(shell: &mut Shell, on: bool, off: bool, print: bool, of_set: bool) -> Exec {
    let mut text = String::new();
    let names: Vec<&str> =
        if of_set { SetOptions::NAMES.to_vec() } else { SHOPT.iter().map(|(name, _)| *name).collect() };
    for name in names {
        let value = if of_set {
            shell.options.by_name(name.as_bytes())
        } else {
            shell.shopt.by_name(name.as_bytes())
        };
        let value = value.is_some_and(|value| *value);
        if (on && !value) || (off && value) {
            continue;
        }
        text += &shopt_line(name, value, print, of_set);
    }
    Ok(output(shell, b"shopt", text.as_bytes()))
}
