//! What a name means: `type`, `command -v`, `hash`, `alias`, `enable`.

use super::{Options, fail, invalid_option, output};
use crate::exec::{lookup, lookup_all, lookup_any};
use crate::expand::quote;
use crate::shell::{Exec, Shell};
use std::rc::Rc;

/// What a name may be.
enum Meaning {
    Alias(Vec<u8>),
    Keyword,
    Function,
    Builtin,
    Hashed(Vec<u8>),
    File(Vec<u8>),
}

fn meanings(shell: &mut Shell, name: &[u8], all: bool, no_functions: bool) -> Vec<Meaning> {
    let mut found = Vec::new();
    if (shell.shopt.get("expand_aliases") || shell.options.posix || shell.interactive)
        && let Some(text) = shell.aliases.get(name)
    {
        found.push(Meaning::Alias(text.clone()));
    }
    if crate::parser::is_keyword(name) {
        found.push(Meaning::Keyword);
    }
    if !no_functions && shell.functions.contains_key(name) {
        found.push(Meaning::Function);
    }
    if shell.enabled_builtin(name).is_some() {
        found.push(Meaning::Builtin);
    }
    if !all && !found.is_empty() {
        found.truncate(1);
        return found;
    }
    found.extend(files(shell, name, all));
    found
}

fn files(shell: &mut Shell, name: &[u8], all: bool) -> Vec<Meaning> {
    if name.contains(&b'/') {
        return match shell.program_path(name) {
            Ok(path) => vec![Meaning::File(path)],
            Err(_) => Vec::new(),
        };
    }
    let path = shell.vars.text(b"PATH").cloned().unwrap_or_default();
    if all {
        return lookup_all(&path, name).into_iter().map(Meaning::File).collect();
    }
    if shell.hash_version == shell.vars.path_version
        && let Some((path, hits)) = shell.hash.get_mut(name)
    {
        *hits += 1;
        return vec![Meaning::Hashed(path.clone())];
    }
    lookup_any(&path, name).map(Meaning::File).into_iter().collect()
}

pub fn type_(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut all, mut no_functions, mut kind_only, mut path_only, mut force) =
        (false, false, false, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'a' => all = true,
            b'f' => no_functions = true,
            b't' => kind_only = true,
            b'p' => path_only = true,
            b'P' => force = true,
            other => {
                return Ok(invalid_option(shell, b"type", &[b'-', other], "type [-afptP] name [name ...]"));
            }
        }
    }
    let mut status = 0;
    for name in options.rest() {
        let hashed = force && shell.hash_version == shell.vars.path_version && shell.hash.contains_key(name);
        let found =
            if force { files(shell, name, all && !hashed) } else { meanings(shell, name, all, no_functions) };
        if found.is_empty() {
            status = 1;
            if !kind_only && !path_only && !force {
                fail(shell, b"type", &[name, b": not found"], 1);
            }
            continue;
        }
        let mut text = Vec::new();
        for meaning in &found {
            text.extend(if kind_only {
                kind(meaning).to_vec()
            } else if path_only || force {
                path_line(meaning)
            } else {
                sentence(shell, name, meaning)
            });
        }
        output(shell, b"type", &text);
    }
    Ok(status)
}

fn kind(meaning: &Meaning) -> &'static [u8] {
    match meaning {
        Meaning::Alias(_) => b"alias\n",
        Meaning::Keyword => b"keyword\n",
        Meaning::Function => b"function\n",
        Meaning::Builtin => b"builtin\n",
        Meaning::Hashed(_) | Meaning::File(_) => b"file\n",
    }
}

fn path_line(meaning: &Meaning) -> Vec<u8> {
    match meaning {
        Meaning::Hashed(path) | Meaning::File(path) => [path.as_slice(), b"\n"].concat(),
        _ => Vec::new(),
    }
}

fn sentence(shell: &Shell, name: &[u8], meaning: &Meaning) -> Vec<u8> {
    match meaning {
        Meaning::Alias(text) => [name, b" is aliased to `", text, b"'\n"].concat(),
        Meaning::Keyword => [name, b" is a shell keyword\n"].concat(),
        Meaning::Function => {
            let text = shell.functions.get(name).map(|function| crate::unparse::function_text(function));
            [name, b" is a function\n", &text.unwrap_or_default()].concat()
        }
        Meaning::Builtin => [name, b" is a shell builtin\n"].concat(),
        Meaning::Hashed(path) => [name, b" is hashed (", path, b")\n"].concat(),
        Meaning::File(path) => [name, b" is ", path, b"\n"].concat(),
    }
}

/// `command -v` and `command -V`.
pub fn describe(shell: &mut Shell, names: &[Vec<u8>], verbose: bool) -> Exec {
    let mut status = 1;
    for name in names {
        let found = meanings(shell, name, false, false);
        let Some(meaning) = found.first() else {
            if verbose {
                fail(shell, b"command", &[name, b": not found"], 1);
            }
            continue;
        };
        status = 0;
        let text = match meaning {
            _ if verbose => sentence(shell, name, meaning),
            Meaning::Alias(text) => [b"alias ", name.as_slice(), b"=", &quote::single(text), b"\n"].concat(),
            Meaning::Hashed(path) | Meaning::File(path) => [path.as_slice(), b"\n"].concat(),
            _ => [name.as_slice(), b"\n"].concat(),
        };
        output(shell, b"command", &text);
    }
    Ok(status)
}

pub fn hash(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut delete, mut list, mut show, mut path, mut did) = (false, false, false, None, false);
    while let Some(letter) = options.next() {
        match letter {
            b'r' => {
                shell.hash.clear();
                did = true;
            }
            b'd' => delete = true,
            b'l' => list = true,
            b't' => show = true,
            b'p' => path = options.argument().map(<[u8]>::to_vec),
            other => {
                return Ok(invalid_option(
                    shell,
                    b"hash",
                    &[b'-', other],
                    "hash [-lr] [-p pathname] [-dt] [name ...]",
                ));
            }
        }
    }
    if !shell.options.hashall {
        return Ok(fail(shell, b"hash", &[b"hashing disabled"], 1));
    }
    if shell.hash_version != shell.vars.path_version {
        shell.hash.clear();
        shell.hash_version = shell.vars.path_version;
    }
    let names = options.rest();
    if names.is_empty() {
        if did {
            return Ok(0);
        }
        return list_hash(shell, list);
    }
    let mut status = 0;
    for name in names {
        if let Some(path) = &path {
            if path.contains(&b'/') && shell.refuses(b"hash", path) {
                status = 1;
                continue;
            }
            let search = shell.vars.text(b"PATH").cloned().unwrap_or_default();
            if shell.restricted && lookup(&search, path).is_err() {
                status = fail(shell, b"hash", &[path, b": not found"], 1);
                continue;
            }
            shell.hash.insert(name.clone(), (path.clone(), 0));
        } else if delete {
            if shell.hash.remove(name).is_none() {
                status = fail(shell, b"hash", &[name, b": not found"], 1);
            }
        } else if show {
            match shell.hash.get_mut(name) {
                Some((path, hits)) => {
                    *hits += 1;
                    let path = path.clone();
                    let text = if list {
                        [b"builtin hash -p ", path.as_slice(), b" ", name, b"\n"].concat()
                    } else if names.len() > 1 {
                        [name.as_slice(), b"\t", &path, b"\n"].concat()
                    } else {
                        [path.as_slice(), b"\n"].concat()
                    };
                    output(shell, b"hash", &text);
                }
                None => status = fail(shell, b"hash", &[name, b": not found"], 1),
            }
        } else {
            let search = shell.vars.text(b"PATH").cloned().unwrap_or_default();
            shell.hash.remove(name);
            match lookup(&search, name) {
                Ok(found) => drop(shell.hash.insert(name.clone(), (found, 0))),
                Err(_) if shell.enabled_builtin(name).is_some() || shell.functions.contains_key(name) => {}
                Err(_) => status = fail(shell, b"hash", &[name, b": not found"], 1),
            }
        }
    }
    Ok(status)
}

/// How many lists bash's table of remembered programs has, which it is printed in the order of.
const HASH_BUCKETS: u32 = 256;

fn list_hash(shell: &mut Shell, reusable: bool) -> Exec {
    if shell.hash.is_empty() {
        return Ok(output(shell, b"hash", b"hash: hash table empty\n"));
    }
    let mut entries: Vec<_> = shell.hash.iter().collect();
    entries.sort_by_key(|(name, _)| (crate::vars::bash_hash(name) & (HASH_BUCKETS - 1), *name));
    let mut text = if reusable { Vec::new() } else { b"hits\tcommand\n".to_vec() };
    for (name, (path, hits)) in entries {
        let line = if reusable {
            [b"builtin hash -p ", path.as_slice(), b" ", name, b"\n"].concat()
        } else {
            [format!("{hits:4}\t").as_bytes(), path, b"\n"].concat()
        };
        text.extend(line);
    }
    Ok(output(shell, b"hash", &text))
}

pub fn alias(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    while let Some(letter) = options.next() {
        if letter != b'p' {
            let usage = "alias [-p] [name[=value] ... ]";
            return Ok(invalid_option(shell, b"alias", &[b'-', letter], usage));
        }
    }
    let operands = options.rest();
    let line = |name: &[u8], text: &[u8]| [b"alias ", name, b"=", &quote::single(text), b"\n"].concat();
    if operands.is_empty() {
        let mut names: Vec<_> = shell.aliases.iter().collect();
        names.sort_unstable();
        let text: Vec<u8> = names.into_iter().flat_map(|(name, text)| line(name, text)).collect();
        return Ok(output(shell, b"alias", &text));
    }
    let mut status = 0;
    for operand in operands {
        match operand.iter().position(|&byte| byte == b'=').filter(|&at| at > 0) {
            Some(at) if operand[..at].iter().any(|byte| b" \t\n/$`=|&;()<>'\"\\".contains(byte)) => {
                status = fail(shell, b"alias", &[b"`", &operand[..at], b"': invalid alias name"], 1);
            }
            Some(at) => {
                let map = Rc::make_mut(&mut shell.aliases);
                map.insert(operand[..at].to_vec(), operand[at + 1..].to_vec());
            }
            None => match shell.aliases.get(operand).map(|text| line(operand, text)) {
                Some(text) => drop(output(shell, b"alias", &text)),
                None => status = fail(shell, b"alias", &[operand, b": not found"], 1),
            },
        }
    }
    Ok(status)
}

pub fn unalias(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if args.get(1).is_some_and(|arg| arg == b"-a") {
        shell.aliases = Rc::default();
        return Ok(0);
    }
    if let Some(option) = args.get(1).filter(|arg| arg.len() > 1 && arg.starts_with(b"-") && *arg != b"--") {
        return Ok(invalid_option(shell, b"unalias", &option[..2], "unalias [-a] name [name ...]"));
    }
    if args.len() == 1 {
        let _ = wardian_abi::write_all(2, b"unalias: usage: unalias [-a] name [name ...]\n");
        return Ok(2);
    }
    let mut status = 0;
    for name in &args[1..] {
        if Rc::make_mut(&mut shell.aliases).remove(name).is_none() {
            status = fail(shell, b"unalias", &[name, b": not found"], 1);
        }
    }
    Ok(status)
}

pub fn enable(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let (mut disable, mut all, mut special) = (false, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'n' => disable = true,
            b'a' => all = true,
            b's' => special = true,
            b'p' => {}
            other => {
                return Ok(invalid_option(
                    shell,
                    b"enable",
                    &[b'-', other],
                    "enable [-a] [-dnps] [-f filename] [name ...]",
                ));
            }
        }
    }
    let names = options.rest();
    if names.is_empty() {
        let mut text = String::new();
        for name in super::names() {
            let off = shell.disabled_builtins.iter().any(|disabled| disabled == name.as_bytes());
            let wanted = !special || super::is_special(name.as_bytes());
            if wanted && (all || off == disable) {
                text += &format!("enable {}{name}\n", if off { "-n " } else { "" });
            }
        }
        return Ok(output(shell, b"enable", text.as_bytes()));
    }
    let mut status = 0;
    for name in names {
        if super::find(name).is_none() {
            status = fail(shell, b"enable", &[name, b": not a shell builtin"], 1);
            continue;
        }
        shell.disabled_builtins.retain(|disabled| disabled != name);
        if disable {
            shell.disabled_builtins.push(name.clone());
        }
    }
    Ok(status)
}
