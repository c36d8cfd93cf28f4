//! What `declare`, `export` and `readonly` list.

use super::{Request, set_function_attrs};
use crate::builtins::{fail, output};
use crate::expand::quote;
use crate::shell::{Exec, Shell};
use crate::vars::{Attrs, Value, Var};

/// The letters of a variable's attributes, in bash's order.
pub fn attribute_letters(var: &Var) -> Vec<u8> {
    let mut letters = Vec::new();
    match var.value {
        Value::Indexed(_) => letters.push(b'a'),
        Value::Assoc(_) => letters.push(b'A'),
        _ => {}
    }
    let order = [
        (Attrs::INTEGER, b'i'),
        (Attrs::NAMEREF, b'n'),
        (Attrs::READONLY, b'r'),
        (Attrs::TRACE, b't'),
        (Attrs::EXPORT, b'x'),
        (Attrs::CAPITAL, b'c'),
        (Attrs::LOWER, b'l'),
        (Attrs::UPPER, b'u'),
    ];
    letters.extend(order.iter().filter(|(attrs, _)| var.attrs.has(*attrs)).map(|(_, letter)| *letter));
    letters
}

/// A value as `declare -p` writes it.
fn value_text(value: &Value) -> Option<Vec<u8>> {
    let pair = |key: &[u8], text: &[u8]| [b"[", key, b"]=", &quote::double(text)].concat();
    match value {
        Value::Unset => None,
        Value::Scalar(text) => Some(quote::double(text)),
        Value::Indexed(array) => {
            let pairs: Vec<Vec<u8>> =
                array.iter().map(|(at, text)| pair(at.to_string().as_bytes(), text)).collect();
            Some([b"(".as_slice(), &pairs.join(&b' '), b")"].concat())
        }
        Value::Assoc(array) => {
            let mut text = b"(".to_vec();
            for (name, value) in array.walk() {
                text.extend(pair(&quote::key(name), value));
                text.push(b' ');
            }
            text.push(b')');
            Some(text)
        }
    }
}

/// `declare -x name="value"`
pub fn declaration(name: &[u8], var: &Var) -> Vec<u8> {
    let letters = attribute_letters(var);
    let letters: &[u8] = if letters.is_empty() { b"-" } else { &letters };
    let mut text = [b"declare -", letters, b" ", name].concat();
    let unassigned = var.attrs.has(Attrs::UNASSIGNED) && crate::expand::values(&var.value).is_empty();
    if let Some(value) = value_text(&var.value).filter(|_| !unassigned) {
        text.push(b'=');
        text.extend(value);
    }
    text
}

pub(super) fn list_variables(
    shell: &mut Shell,
    command: &[u8],
    request: &Request,
    operands: &[Vec<u8>],
) -> Exec {
    let mut text = Vec::new();
    let mut status = 0;
    if operands.is_empty() {
        for name in shell.vars.names() {
            let dynamic = |var: &&Var| var.attrs.has(Attrs::DYNAMIC);
            let var = match shell.vars.raw(name) {
                raw if raw.as_ref().is_some_and(dynamic) => shell.var_listed(name),
                raw => raw.map(std::borrow::Cow::Borrowed),
            };
            let Some(var) = var else { continue };
            let wanted = request.on.0 == 0 || var.attrs.0 & request.on.0 == request.on.0;
            if !wanted || !request.wants_kind(&var) {
                continue;
            }
            if request.print || request.on.0 != 0 || request.indexed || request.assoc {
                text.extend(declaration(name, &var));
                text.push(b'\n');
            } else if let Some(line) = assignment_line(name, &var) {
                text.extend(line);
            }
        }
    }
    for operand in operands {
        match shell.vars.raw(operand) {
            Some(var) => {
                let shown = if var.attrs.has(Attrs::DYNAMIC) {
                    let mut var = shell.dynamic(operand);
                    if matches!(operand.as_slice(), b"RANDOM" | b"SECONDS" | b"LINENO" | b"BASHPID") {
                        var.attrs.set(Attrs::INTEGER, true);
                    }
                    declaration(operand, &var)
                } else {
                    declaration(operand, var)
                };
                // Each at once: between them there may be complaints.
                let written = output(shell, command, &[shown, b"\n".to_vec()].concat());
                status = status.max(written);
            }
            None => status = fail(shell, command, &[operand, b": not found"], 1),
        }
    }
    let written = output(shell, command, &text);
    Ok(status.max(written))
}

/// `name=value` as `set` lists it.
pub fn assignment_line(name: &[u8], var: &Var) -> Option<Vec<u8>> {
    let value = match &var.value {
        Value::Unset => return None,
        Value::Scalar(text) if text.is_empty() => Vec::new(),
        Value::Scalar(text) => quote::if_needed(text),
        other => value_text(other)?,
    };
    Some([name, b"=", &value, b"\n"].concat())
}

/// What `export` and `readonly` list; to POSIX in the form of their own commands.
pub(super) fn list_with(shell: &mut Shell, command: &[u8], attrs: Attrs, request: &Request) -> Exec {
    let mut text = Vec::new();
    for name in shell.vars.names() {
        let Some(var) = shell.vars.raw(name).filter(|var| var.attrs.has(attrs)) else { continue };
        if !request.wants_kind(var) {
            continue;
        }
        let line = match var.attrs.has(Attrs::DYNAMIC) {
            true => declaration(name, &shell.dynamic(name)),
            false => declaration(name, var),
        };
        text.extend(match shell.options.posix {
            true => [command, posix_kind(var), &line[name_at(&line)..]].concat(),
            false => line,
        });
        text.push(b'\n');
    }
    Ok(output(shell, command, &text))
}

pub(super) fn list_functions(shell: &mut Shell, request: &Request, operands: &[Vec<u8>]) -> Exec {
    if let Some(status) = unfit_for_functions(shell, request, operands) {
        return Ok(status);
    }
    if request.on.0 != 0 && !operands.is_empty() {
        let mut status = 0;
        for attrs in [Attrs::EXPORT, Attrs::READONLY, Attrs::TRACE] {
            if request.on.has(attrs) {
                status = set_function_attrs(shell, b"declare", attrs, true, operands)?;
            }
        }
        return Ok(status);
    }
    let mut names: Vec<Vec<u8>> = operands.to_vec();
    if operands.is_empty() {
        names = shell.functions.keys().cloned().collect();
        let attrs = |name: &Vec<u8>| shell.function_attrs.get(name.as_slice()).copied().unwrap_or_default();
        names.retain(|name| request.on.0 == 0 || attrs(name).has(request.on));
        names.sort_unstable();
    }
    let (mut text, mut status) = (Vec::new(), 0);
    for name in names {
        let Some(function) = shell.functions.get(&name).cloned() else {
            status = 1;
            if request.print {
                fail(shell, b"declare", &[&name, b": not found"], 1);
            }
            continue;
        };
        if request.function_names {
            if operands.is_empty() || request.print {
                text.extend_from_slice(b"declare -f");
                let attrs = shell.function_attrs.get(name.as_slice()).copied().unwrap_or_default();
                let letters = [(Attrs::READONLY, b'r'), (Attrs::TRACE, b't'), (Attrs::EXPORT, b'x')];
                text.extend(letters.iter().filter(|(attr, _)| attrs.has(*attr)).map(|(_, letter)| *letter));
                text.push(b' ');
            }
            text.extend_from_slice(&name);
            if !operands.is_empty() && shell.shopt.get("extdebug") {
                text.extend_from_slice(format!(" {} ", function.body.line).as_bytes());
                text.extend_from_slice(function.source.get().map_or(&b"environment"[..], |source| source));
            }
            text.push(b'\n');
        } else {
            text.extend(crate::unparse::function_text(&function));
        }
    }
    let written = output(shell, b"declare", &text);
    Ok(status.max(written))
}

/// What cannot be said of functions: that they are arrays or numbers, their text, and that they are not read-only.
fn unfit_for_functions(shell: &Shell, request: &Request, operands: &[Vec<u8>]) -> Option<i32> {
    if operands.is_empty() {
        return None;
    }
    let letters = [
        (b"-a", request.indexed),
        (b"-A", request.assoc),
        (b"-i", request.on.has(Attrs::INTEGER)),
        (b"-n", request.on.has(Attrs::NAMEREF)),
    ];
    if let Some((letter, _)) = letters.iter().find(|(_, asked)| *asked) {
        return Some(fail(shell, b"declare", &[*letter, b": invalid option"], 1));
    }
    if operands.iter().any(|operand| operand.contains(&b'=')) {
        return Some(fail(shell, b"declare", &[b"cannot use `-f' to make functions"], 1));
    }
    if request.off.has(Attrs::READONLY) {
        let frozen = |name: &&Vec<u8>| {
            shell.function_attrs.get(name.as_slice()).is_some_and(|attrs| attrs.has(Attrs::READONLY))
        };
        let name = operands.iter().find(frozen)?;
        return Some(fail(shell, b"declare", &[name, b": readonly function"], 1));
    }
    None
}

/// The kind of a variable, as options of `readonly` and `export`.
fn posix_kind(var: &Var) -> &'static [u8] {
    match var.value {
        Value::Indexed(_) => b" -a",
        Value::Assoc(_) => b" -A",
        _ => b"",
    }
}

/// Where the name begins in `declare -x name=…`, its blank included.
fn name_at(declaration: &[u8]) -> usize {
    let option = declaration.iter().position(|&byte| byte == b' ').map_or(0, |at| at + 1);
    option + declaration[option..].iter().position(|&byte| byte == b' ').unwrap_or(0)
}
