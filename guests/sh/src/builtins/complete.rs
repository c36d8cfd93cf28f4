//! Programmable completion: `complete`, `compgen`, `compopt`; and `bind`.

use super::{Options, fail, invalid_option, output};
use crate::completion::{ACTIONS, Asked, DEFAULT, EMPTY, INITIAL, OPTIONS, Spec};
use crate::shell::{Exec, Shell};
use std::rc::Rc;

const COMPLETE: &str = "complete [-abcdefgjksuv] [-pr] [-DEI] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [name ...]";
const COMPGEN: &str = "compgen [-abcdefgjksuv] [-o option] [-A action] [-G globpat] [-W wordlist] [-F function] [-C command] [-X filterpat] [-P prefix] [-S suffix] [word]";

/// What the options of `complete` and `compgen` say.
#[derive(Default)]
struct Request {
    spec: Spec,
    print: bool,
    remove: bool,
    /// `-D`, `-E`, `-I`: names that no command has.
    special: Option<&'static [u8]>,
}

fn request(shell: &mut Shell, name: &[u8], options: &mut Options<'_>, usage: &str) -> Result<Request, i32> {
    let mut request = Request::default();
    while let Some(letter) = options.next() {
        let own = name == b"complete";
        match letter {
            b'p' if own => request.print = true,
            b'r' if own => request.remove = true,
            b'D' if own => request.special = Some(DEFAULT),
            b'E' if own => request.special = Some(EMPTY),
            b'I' if own => request.special = Some(INITIAL),
            b'A' | b'o' | b'G' | b'W' | b'F' | b'C' | b'X' | b'P' | b'S' => {
                let Some(value) = options.argument() else {
                    return Err(fail(shell, name, &[b"-", &[letter], b": option requires an argument"], 2));
                };
                set_value(shell, name, &mut request.spec, letter, value)?;
            }
            letter => match ACTIONS.iter().find(|(_, known)| *known == letter && letter != 0) {
                Some((action, _)) => request.spec.actions.push(action),
                None => return Err(invalid_option(shell, name, &[b'-', letter], usage)),
            },
        }
    }
    Ok(request)
}

fn set_value(shell: &mut Shell, name: &[u8], spec: &mut Spec, letter: u8, value: &[u8]) -> Result<(), i32> {
    let text = String::from_utf8_lossy(value);
    match letter {
        b'A' => match ACTIONS.iter().find(|(action, _)| *action == text) {
            Some((action, _)) => spec.actions.push(action),
            None => return Err(fail(shell, name, &[value, b": invalid action name"], 2)),
        },
        b'o' => match OPTIONS.iter().find(|option| **option == text) {
            Some(option) => spec.options.push(option),
            None => return Err(fail(shell, name, &[value, b": invalid option name"], 2)),
        },
        b'G' => spec.glob = Some(value.to_vec()),
        b'W' => spec.words = Some(value.to_vec()),
        b'F' => spec.function = Some(value.to_vec()),
        b'C' => spec.command = Some(value.to_vec()),
        b'X' => spec.filter = Some(value.to_vec()),
        b'P' => spec.prefix = Some(value.to_vec()),
        _ => spec.suffix = Some(value.to_vec()),
    }
    Ok(())
}

pub fn complete(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let request = match request(shell, b"complete", &mut options, COMPLETE) {
        Ok(request) => request,
        Err(status) => return Ok(status),
    };
    let names: Vec<Vec<u8>> = match request.special {
        Some(special) => vec![special.to_vec()],
        None => options.rest().to_vec(),
    };
    if request.remove {
        return Ok(remove(shell, &names));
    }
    if request.print || args.len() == 1 {
        return Ok(print(shell, &names));
    }
    if names.is_empty() {
        let text = [b"complete: usage: ", COMPLETE.as_bytes(), b"\n"].concat();
        let _ = wardian_abi::write_all(2, &text);
        return Ok(2);
    }
    let spec = Rc::new(request.spec);
    for name in names {
        shell.completions.declared = true;
        shell.completions.of.insert(name, spec.clone());
    }
    Ok(0)
}

fn remove(shell: &mut Shell, names: &[Vec<u8>]) -> i32 {
    if names.is_empty() {
        shell.completions.of.clear();
        return 0;
    }
    let mut status = 0;
    for name in names {
        if shell.completions.of.remove(name).is_none() && shell.completions.declared {
            status = fail(shell, b"complete", &[name, b": no completion specification"], 1);
        }
    }
    status
}

fn print(shell: &mut Shell, names: &[Vec<u8>]) -> i32 {
    let mut names: Vec<Vec<u8>> =
        if names.is_empty() { shell.completions.of.keys().cloned().collect() } else { names.to_vec() };
    // In the order of bash's table, which has this many lists.
    names.sort_by_key(|name| crate::vars::bash_hash(name) & 511);
    let (mut text, mut status) = (Vec::new(), 0);
    for name in &names {
        let Some(spec) = shell.completions.of.get(name) else {
            status = fail(shell, b"complete", &[name, b": no completion specification"], 1);
            continue;
        };
        let shown = match name.as_slice() {
            DEFAULT => b"-D".to_vec(),
            EMPTY => b"-E".to_vec(),
            INITIAL => b"-I".to_vec(),
            name => crate::expand::quote::if_needed(name),
        };
        text.extend([b"complete ", spec.arguments().as_slice(), &shown, b"\n"].concat());
    }
    status.max(output(shell, b"complete", &text))
}

pub fn compgen(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let request = match request(shell, b"compgen", &mut options, COMPGEN) {
        Ok(request) => request,
        Err(status) => return Ok(status),
    };
    let spec = request.spec;
    if spec.function.is_some() {
        shell.complain(b"compgen: warning: -F option may not work as you expect");
    }
    if spec.command.is_some() {
        shell.complain(b"compgen: warning: -C option may not work as you expect");
    }
    let word = options.rest().first().cloned().unwrap_or_default();
    let asked = Asked::default();
    let mut found = shell.generate(&spec, b"compgen", &word, &asked);
    if found.is_empty() && spec.has("default") {
        found = shell.of_action("file", &word);
    }
    let text: Vec<u8> = found.iter().flat_map(|word| [word.as_slice(), b"\n"].concat()).collect();
    let status = i32::from(found.is_empty());
    output(shell, b"compgen", &text);
    Ok(status)
}

pub fn compopt(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let (mut on, mut off, mut names, mut at) = (Vec::new(), Vec::new(), Vec::new(), 1);
    let mut special: Option<&[u8]> = None;
    while let Some(arg) = args.get(at) {
        at += 1;
        match arg.as_slice() {
            b"-D" => special = Some(DEFAULT),
            b"-E" => special = Some(EMPTY),
            b"-I" => special = Some(INITIAL),
            sign @ (b"-o" | b"+o") => {
                let name = args.get(at).cloned().unwrap_or_default();
                at += 1;
                let Some(option) = OPTIONS.iter().find(|option| option.as_bytes() == name) else {
                    return Ok(fail(shell, b"compopt", &[&name, b": invalid option name"], 2));
                };
                if sign[0] == b'-' { on.push(*option) } else { off.push(*option) }
            }
            _ => names.push(arg.clone()),
        }
    }
    names.extend(special.map(<[u8]>::to_vec));
    let change = |options: &mut Vec<&'static str>| {
        options.retain(|option| !off.contains(option) && !on.contains(option));
        options.extend(&on);
    };
    if names.is_empty() {
        return Ok(match &mut shell.completions.current {
            Some(options) => {
                change(options);
                0
            }
            None => fail(shell, b"compopt", &[b"not currently executing completion function"], 1),
        });
    }
    let mut status = 0;
    for name in names {
        match shell.completions.of.get(&name) {
            Some(spec) => {
                let mut spec = (**spec).clone();
                change(&mut spec.options);
                shell.completions.of.insert(name, Rc::new(spec));
            }
            None => status = fail(shell, b"compopt", &[&name, b": no completion specification"], 1),
        }
    }
    Ok(status)
}
