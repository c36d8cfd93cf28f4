//! `unset`

use crate::builtins::{Options, fail, invalid_option};
use crate::shell::{Exec, Shell};
use crate::vars::{Attrs, Indexed, Value, Var};

pub fn unset(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut functions, mut variables, mut nameref) = (false, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'f' => functions = true,
            b'v' => variables = true,
            b'n' => nameref = true,
            other => {
                return Ok(invalid_option(
                    shell,
                    b"unset",
                    &[b'-', other],
                    "unset [-f] [-v] [-n] [name ...]",
                ));
            }
        }
    }
    let mut status = 0;
    if functions && variables {
        let message = b"cannot simultaneously unset a function and a variable";
        return Ok(fail(shell, b"unset", &[message], 1));
    }
    for name in options.rest() {
        if functions {
            status = status.max(unset_function(shell, name));
            continue;
        }
        status = status.max(unset_variable(shell, name, nameref, !variables)?);
    }
    Ok(status)
}

fn unset_function(shell: &mut Shell, name: &[u8]) -> i32 {
    if shell.function_attrs.get(name).is_some_and(|attrs| attrs.has(Attrs::READONLY)) {
        return fail(shell, b"unset", &[name, b": cannot unset: readonly function"], 1);
    }
    shell.functions.remove(name);
    shell.function_attrs.remove(name);
    0
}

fn unset_variable(shell: &mut Shell, name: &[u8], nameref: bool, or_function: bool) -> Exec {
    let resolved = if nameref { name.to_vec() } else { shell.vars.resolve(name).into_owned() };
    if let Some(open) = resolved.iter().position(|&byte| byte == b'[') {
        return unset_element(shell, &resolved, open);
    }
    match shell.vars.raw(&resolved) {
        Some(var) if var.attrs.has(Attrs::READONLY) => {
            Ok(fail(shell, b"unset", &[&resolved, b": cannot unset: readonly variable"], 1))
        }
        Some(_) if shell.vars.is_local(&resolved) && !shell.vars.is_temporary(&resolved) => {
            // A local stays local: unset, it still hides the one outside.
            shell.vars.insert(&resolved, Var::default());
            Ok(0)
        }
        Some(_) => {
            if shell.shopt.get("localvar_unset") || !shell.vars.reveal(&resolved) {
                shell.vars.hide(&resolved);
            }
            shell.follow_variable(&resolved, false);
            Ok(0)
        }
        None if or_function => Ok(unset_function(shell, &resolved)),
        None => Ok(0),
    }
}

fn unset_element(shell: &mut Shell, target: &[u8], open: usize) -> Exec {
    let name = shell.vars.resolve(&target[..open]).into_owned();
    let subscript = target[open + 1..].strip_suffix(b"]").unwrap_or(b"").to_vec();
    if shell.vars.raw(&name).is_some_and(|var| var.attrs.has(Attrs::READONLY)) {
        return Ok(fail(shell, b"unset", &[&name, b": cannot unset: readonly variable"], 1));
    }
    if matches!(subscript.as_slice(), b"@" | b"*") && !shell.is_assoc(&name) {
        match shell.vars.raw_mut(&name) {
            Some(Var { value: Value::Indexed(array), .. }) => *array = Indexed::default(),
            _ => drop(shell.vars.remove(&name)),
        }
        return Ok(0);
    }
    let subscript = shell.expand_subscript(&subscript)?;
    if shell.is_assoc(&name) {
        let key = subscript;
        if let Some(Var { value: Value::Assoc(array), .. }) = shell.vars.raw_mut(&name) {
            array.remove(&key);
        }
        return Ok(0);
    }
    let index = shell.arith_text(&subscript).map_err(|error| shell.arith_discard(b"unset: ", error))?;
    match shell.vars.raw_mut(&name) {
        Some(Var { value: Value::Indexed(array), .. }) => {
            let at = if index < 0 { array.end().wrapping_add(index) } else { index };
            if at < 0 {
                return Ok(fail(shell, b"unset", &[b"[", &subscript, b"]: bad array subscript"], 1));
            }
            array.remove(at);
            Ok(0)
        }
        Some(Var { value: Value::Scalar(_), .. }) if index == 0 => {
            shell.vars.remove(&name);
            Ok(0)
        }
        Some(_) => Ok(fail(shell, b"unset", &[&name, b": not an array variable"], 1)),
        None => Ok(0),
    }
}
