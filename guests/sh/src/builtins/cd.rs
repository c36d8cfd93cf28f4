//! The working directory and the stack of directories.

use super::{Options, fail, invalid_option, number, output};
use crate::shell::{Exec, Shell};
use crate::vars::Attrs;
use wardian_abi as abi;

/// `/a/./b/../c` without its dots, as `cd -L` sees it.
fn normalize(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut out = Vec::new();
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() {
        out.push(b'/');
    }
    // POSIX leaves a leading `//` alone.
    if path.starts_with(b"//") && !path.starts_with(b"///") {
        out.insert(0, b'/');
    }
    out
}

/// Whether a `..` of a path leads out of something that is no directory.
fn has_missing_before_dots(path: &[u8]) -> bool {
    let mut at = 0;
    for part in path.split(|&byte| byte == b'/') {
        let is_directory = || abi::stat(abi::Dir::CWD, &path[..at], true).is_ok_and(|stat| stat.is_dir());
        if part == b".." && at > 1 && !is_directory() {
            return true;
        }
        at += part.len() + 1;
    }
    false
}

/// The working directory by the name it was reached by, if that still is it.
pub fn logical_directory(shell: &Shell) -> Vec<u8> {
    let known = shell.directory.as_ref().or(shell.vars.text(b"PWD"));
    let Some(pwd) = known else { return abi::getcwd().unwrap_or_else(|_| b".".to_vec()) };
    // A directory that was removed has no other name than the one it had.
    let current = || abi::getcwd().unwrap_or_else(|_| pwd.clone());
    let place = |path: &[u8]| abi::stat(abi::Dir::CWD, path, true).map(|stat| (stat.dev, stat.ino));
    match (place(pwd), place(b".")) {
        (Ok(named), Ok(here)) if pwd.starts_with(b"/") && named == here => pwd.clone(),
        _ => current(),
    }
}

/// Goes somewhere, and keeps PWD and OLDPWD.
fn change(shell: &mut Shell, name: &[u8], target: &[u8], physical: bool) -> Exec {
    let absolute = if target.starts_with(b"/") {
        target.to_vec()
    } else {
        let here = logical_directory(shell);
        [here.strip_suffix(b"/").unwrap_or(&here), b"/", target].concat()
    };
    let logical = normalize(&absolute);
    // Where a `..` leads out of nothing, the dots are the kernel's to follow.
    let physical = physical || has_missing_before_dots(&absolute);
    let moved = if physical || target.is_empty() {
        abi::chdir(abi::Dir::CWD, if target.is_empty() { b"." } else { target })
    } else {
        abi::chdir(abi::Dir::CWD, &logical).or_else(|_| abi::chdir(abi::Dir::CWD, target))
    };
    if let Err(errno) = moved {
        let shown = crate::expand::quote::shown(target);
        return Ok(fail(shell, name, &[&shown, b": ", errno.message().as_bytes()], 1));
    }
    let new = if physical { abi::getcwd().unwrap_or(logical) } else { logical };
    match shell.vars.text(b"PWD").cloned() {
        Some(old) => shell.assign(b"OLDPWD", &old)?,
        None => drop(shell.vars.remove(b"OLDPWD")),
    }
    shell.assign(b"PWD", &new)?;
    shell.directory = Some(new);
    for name in [&b"OLDPWD"[..], b"PWD"] {
        if let Some(var) = shell.vars.raw_mut(name) {
            var.attrs.set(Attrs::EXPORT, true);
        }
    }
    Ok(0)
}

pub fn cd(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if shell.refuses(b"cd", b"") {
        return Ok(1);
    }
    let mut options = Options::new(args);
    let mut physical = shell.options.physical;
    let usage = "cd [-L|[-P [-e]] [-@]] [dir]";
    while let Some(letter) = options.next() {
        match letter {
            b'L' => physical = false,
            b'P' => physical = true,
            b'e' | b'@' => {}
            other => return Ok(invalid_option(shell, b"cd", &[b'-', other], usage)),
        }
    }
    let rest = options.rest();
    let mut show = false;
    let target = match rest {
        [] => match shell.vars.text(b"HOME").cloned() {
            Some(home) => home,
            None => return Ok(fail(shell, b"cd", &[b"HOME not set"], 1)),
        },
        [dash] if dash == b"-" => match shell.vars.text(b"OLDPWD").cloned() {
            Some(old) => {
                show = true;
                old
            }
            None => return Ok(fail(shell, b"cd", &[b"OLDPWD not set"], 1)),
        },
        [target] => target.clone(),
        _ => return Ok(fail(shell, b"cd", &[b"too many arguments"], 1)),
    };
    if let Some(found) = through_cdpath(shell, &target) {
        let status = change(shell, b"cd", &found, physical)?;
        if status == 0 {
            return Ok(print_directory(shell));
        }
    }
    if shell.shopt.get("cdable_vars")
        && !abi::stat(abi::Dir::CWD, &target, true).is_ok_and(|stat| stat.is_dir())
        && let Some(value) = shell.vars.text(&target).cloned()
    {
        let status = change(shell, b"cd", &value, physical)?;
        return Ok(if status == 0 { print_directory(shell) } else { status });
    }
    let status = change(shell, b"cd", &target, physical)?;
    if status == 0 && show { Ok(print_directory(shell)) } else { Ok(status) }
}

fn print_directory(shell: &mut Shell) -> i32 {
    let mut text = shell.vars.text(b"PWD").cloned().unwrap_or_default();
    text.push(b'\n');
    output(shell, b"cd", &text)
}

/// A directory found through CDPATH, other than here.
fn through_cdpath(shell: &Shell, target: &[u8]) -> Option<Vec<u8>> {
    let dotted = target.starts_with(b"/") || target.starts_with(b"./") || target.starts_with(b"../");
    if dotted || target == b"." || target == b".." || target.is_empty() {
        return None;
    }
    let paths = shell.vars.text(b"CDPATH")?;
    for directory in paths.split(|&byte| byte == b':') {
        if directory.is_empty() || directory == b"." {
            if abi::stat(abi::Dir::CWD, target, true).is_ok_and(|stat| stat.is_dir()) {
                return None;
            }
            continue;
        }
        let candidate = [directory, b"/", target].concat();
        if abi::stat(abi::Dir::CWD, &candidate, true).is_ok_and(|stat| stat.is_dir()) {
            return Some(candidate);
        }
    }
    None
}

pub fn pwd(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let mut physical = shell.options.physical;
    while let Some(letter) = options.next() {
        match letter {
            b'L' => physical = false,
            b'P' => physical = true,
            other => return Ok(invalid_option(shell, b"pwd", &[b'-', other], "pwd [-LP]")),
        }
    }
    // What the shell last went to keeps the name it had, even if it has another one by now.
    let mut text = match shell.directory.clone().filter(|_| !physical && !shell.options.posix) {
        Some(named) => named,
        None if physical => abi::getcwd().unwrap_or_default(),
        None => logical_directory(shell),
    };
    text.push(b'\n');
    Ok(output(shell, b"pwd", &text))
}

impl Shell {
    /// The stack, with the working directory on top.
    pub fn directories(&self) -> Vec<Vec<u8>> {
        let mut all = vec![self.vars.text(b"PWD").cloned().unwrap_or_default()];
        all.extend(self.directory_stack.iter().rev().cloned());
        all
    }
}

fn shorten(shell: &Shell, path: &[u8]) -> Vec<u8> {
    match shell.vars.text(b"HOME") {
        Some(home) if !home.is_empty() && path == home => b"~".to_vec(),
        Some(home) if !home.is_empty() && path.starts_with(&[home, b"/".as_slice()].concat()) => {
            [b"~", &path[home.len()..]].concat()
        }
        _ => path.to_vec(),
    }
}

pub fn dirs(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let (mut long, mut lines, mut numbered, mut one) = (false, false, false, None);
    let mut given: &[u8] = b"";
    for arg in &args[1..] {
        match arg.as_slice() {
            b"-c" => {
                shell.directory_stack.clear();
                return Ok(0);
            }
            b"-l" => long = true,
            b"-p" => lines = true,
            b"-v" => {
                lines = true;
                numbered = true;
            }
            other => match stack_index(shell, other) {
                Some(at) => (one, given) = (Some(at), other),
                None => return Ok(invalid_number(shell, b"dirs", other, "dirs [-clpv] [+N] [-N]")),
            },
        }
    }
    let all = shell.directories();
    let shown: Vec<Vec<u8>> =
        all.iter().map(|path| if long { path.clone() } else { shorten(shell, path) }).collect();
    let mut text = Vec::new();
    if let Some(at) = one {
        match shown.get(at) {
            Some(path) => {
                if numbered {
                    text.extend_from_slice(format!("{at:2}  ").as_bytes());
                }
                text.extend_from_slice(path);
            }
            None => {
                let shown = given.get(1..).unwrap_or_default();
                return Ok(fail(shell, b"dirs", &[shown, b": directory stack index out of range"], 1));
            }
        }
    } else if numbered {
        let rows: Vec<String> = shown
            .iter()
            .enumerate()
            .map(|(at, path)| format!("{at:2}  {}", String::from_utf8_lossy(path)))
            .collect();
        text.extend_from_slice(rows.join("\n").as_bytes());
    } else {
        text = shown.join(if lines { &b'\n' } else { &b' ' });
    }
    text.push(b'\n');
    Ok(output(shell, b"dirs", &text))
}

/// Something that was to say a place on the stack.
fn invalid_number(shell: &Shell, name: &[u8], arg: &[u8], usage: &str) -> i32 {
    fail(shell, name, &[arg, b": invalid number"], 2);
    let _ = abi::write_all(2, &[name, b": usage: ", usage.as_bytes(), b"\n"].concat());
    2
}

/// `+n` from the top, `-n` from the bottom.
fn stack_index(shell: &Shell, arg: &[u8]) -> Option<usize> {
    let count = shell.directory_stack.len() + 1;
    let digits = arg.get(1..)?;
    let n = usize::try_from(number(digits)?).ok()?;
    match arg.first()? {
        b'+' => Some(n),
        b'-' => Some(count.checked_sub(1 + n).unwrap_or(usize::MAX)),
        _ => None,
    }
}

pub fn pushd(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let stay = args.get(1).is_some_and(|arg| arg == b"-n");
    let skipped = 1 + usize::from(stay);
    let operands = &args[skipped + usize::from(args.get(skipped).is_some_and(|arg| arg == b"--"))..];
    let current = shell.directories()[0].clone();
    match operands.first() {
        None => {
            let Some(top) = shell.directory_stack.pop() else {
                return Ok(fail(shell, b"pushd", &[b"no other directory"], 1));
            };
            if change(shell, b"pushd", &top, false)? != 0 {
                shell.directory_stack.push(top);
                return Ok(1);
            }
            shell.directory_stack.push(current);
        }
        Some(arg) if matches!(arg.first(), Some(b'+' | b'-')) && arg.len() > 1 => {
            let mut all = shell.directories();
            let Some(at) = stack_index(shell, arg) else {
                return Ok(invalid_number(shell, b"pushd", arg, "pushd [-n] [+N | -N | dir]"));
            };
            if at >= all.len() {
                return Ok(fail(shell, b"pushd", &[arg, b": directory stack index out of range"], 1));
            }
            all.rotate_left(at);
            if change(shell, b"pushd", &all[0].clone(), false)? != 0 {
                return Ok(1);
            }
            shell.directory_stack = all[1..].iter().rev().cloned().collect();
        }
        Some(target) if stay => shell.directory_stack.push(target.clone()),
        Some(target) => {
            if change(shell, b"pushd", target, false)? != 0 {
                return Ok(1);
            }
            shell.directory_stack.push(current);
        }
    }
    dirs(shell, &[b"dirs".to_vec()])
}

pub fn popd(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let stay = args.get(1).is_some_and(|arg| arg == b"-n");
    if shell.directory_stack.is_empty() {
        return Ok(fail(shell, b"popd", &[b"directory stack empty"], 1));
    }
    match args.get(1 + usize::from(stay)).filter(|arg| *arg != b"--") {
        Some(arg) => {
            let mut all = shell.directories();
            let at = stack_index(shell, arg).unwrap_or(usize::MAX);
            if at >= all.len() {
                return Ok(fail(shell, b"popd", &[arg, b": directory stack index out of range"], 1));
            }
            all.remove(at);
            if at == 0 && change(shell, b"popd", &all[0].clone(), false)? != 0 {
                return Ok(1);
            }
            shell.directory_stack = all[1..].iter().rev().cloned().collect();
        }
        None if stay => drop(shell.directory_stack.pop()),
        None => {
            let top = shell.directory_stack.last().cloned().unwrap_or_default();
            if change(shell, b"popd", &top, false)? != 0 {
                return Ok(1);
            }
            shell.directory_stack.pop();
        }
    }
    dirs(shell, &[b"dirs".to_vec()])
}
