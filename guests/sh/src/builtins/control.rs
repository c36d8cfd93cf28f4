//! Builtins that steer: loops, functions, `eval`, `source`, `exec`, `exit`, `command`.

use super::{Options, fail, invalid_option, number, run};
use crate::ast::Simple;
use crate::shell::{Exec, Flow, Shell};
use wardian_abi as abi;

/// How many loops to leave.
fn levels(shell: &mut Shell, args: &[Vec<u8>]) -> Exec<Option<u32>> {
    let name = &args[0];
    if shell.loops == 0 {
        fail(shell, name, &[b"only meaningful in a `for', `while', or `until' loop"], 0);
        return Ok(None);
    }
    let operands = args.iter().skip(1).skip_while(|arg| *arg == b"--").collect::<Vec<_>>();
    match operands.as_slice() {
        [] => Ok(Some(1)),
        [count] => match number(count) {
            Some(count) if count > 0 => Ok(Some(u32::try_from(count).unwrap_or(u32::MAX).min(shell.loops))),
            Some(_) => {
                fail(shell, name, &[count, b": loop count out of range"], 1);
                shell.break_status = 1;
                Err(Flow::Break(shell.loops))
            }
            None => {
                fail(shell, name, &[count, b": numeric argument required"], 128);
                Err(Flow::Exit(128))
            }
        },
        _ => {
            fail(shell, name, &[b"too many arguments"], 1);
            Err(Flow::Discard(1))
        }
    }
}

pub fn break_loop(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    match levels(shell, args)? {
        Some(count) => Err(Flow::Break(count)),
        None => Ok(0),
    }
}

pub fn continue_loop(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    match levels(shell, args)? {
        Some(count) => Err(Flow::Continue(count)),
        None => Ok(0),
    }
}

/// The status given as an argument, or the last one.
fn given_status(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let operands = args.iter().skip(1).skip_while(|arg| *arg == b"--").collect::<Vec<_>>();
    match operands.as_slice() {
        [] => Ok(shell.status_before_trap.unwrap_or(shell.status)),
        [code, rest @ ..] => match number(code) {
            Some(_) if !rest.is_empty() => {
                fail(shell, &args[0], &[b"too many arguments"], 1);
                Err(Flow::Discard(1))
            }
            Some(code) => Ok((code & 0xff) as i32),
            None => {
                fail(shell, &args[0], &[code, b": numeric argument required"], 2);
                Ok(2)
            }
        },
    }
}

pub fn return_(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    if shell.frames.is_empty() {
        fail(shell, &args[0], &[b"can only `return' from a function or sourced script"], 2);
        return Ok(2);
    }
    Err(Flow::Return(given_status(shell, args)?))
}

pub fn exit(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    Err(Flow::Exit(given_status(shell, args)?))
}

pub fn logout(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    Ok(fail(shell, &args[0], &[b"not login shell: use `exit'"], 1))
}

pub fn eval(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut words = &args[1..];
    if words.first().is_some_and(|word| word == b"--") {
        words = &words[1..];
    }
    if let Some(option) = args.get(1).filter(|word| word.len() > 1 && word[0] == b'-' && *word != b"--") {
        return Ok(invalid_option(shell, b"eval", &option[..2], "eval [arg ...]"));
    }
    let text = words.join(&b' ');
    shell.depth += 20;
    let line = shell.line;
    let result = if shell.depth > crate::exec::MAX_DEPTH {
        shell.complain(b"eval: maximum eval nesting level exceeded");
        Err(Flow::Discard(1))
    } else {
        shell.trace_depth += 1;
        let reading = std::mem::replace(&mut shell.reading, "eval: ");
        let command = shell.command_text.clone();
        let result = shell.run_text(text, line);
        shell.command_text = command;
        shell.reading = reading;
        shell.trace_depth -= 1;
        result
    };
    shell.depth -= 20;
    result
}

pub fn source(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut operands = &args[1..];
    if operands.first().is_some_and(|word| word == b"--") {
        operands = &operands[1..];
    }
    if let Some(option) = args.get(1).filter(|word| word.len() > 1 && word[0] == b'-' && *word != b"--") {
        let usage = format!("{} filename [arguments]", String::from_utf8_lossy(&args[0]));
        return Ok(invalid_option(shell, &args[0], &option[..2], &usage));
    }
    let Some(name) = operands.first() else {
        fail(shell, &args[0], &[b"filename argument required"], 2);
        let usage = [args[0].as_slice(), b": usage: ", &args[0], b" filename [arguments]\n"].concat();
        let _ = abi::write_all(2, &usage);
        return Ok(2);
    };
    if name.contains(&b'/') && shell.refuses(&args[0], name) {
        return Ok(1);
    }
    let path = find_source(shell, name);
    let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
    let fd = match abi::open(abi::Dir::CWD, &path, flags, 0) {
        Ok(fd) => fd,
        Err(errno) => {
            match shell.options.posix && !name.contains(&b'/') {
                true => drop(fail(shell, &args[0], &[name, b": file not found"], 1)),
                false => shell.complain_errno(name, errno),
            }
            let ends = shell.options.posix && !shell.by_command;
            return if ends { Err(Flow::Exit(1)) } else { Ok(1) };
        }
    };
    if abi::fstat(fd).is_ok_and(|stat| stat.is_dir()) {
        let _ = abi::close(fd);
        return Ok(fail(shell, &args[0], &[name, b": is a directory"], 1));
    }
    let text = read_file(fd);
    let given = (operands.len() > 1).then(|| operands[1..].to_vec());
    shell.source_text(&path, text, given)
}

/// A file's contents; closes it.
pub fn read_file(fd: abi::Fd) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = vec![0; 65536];
    while let Ok(n) = abi::read(fd, &mut buffer) {
        if n == 0 {
            break;
        }
        all.extend_from_slice(&buffer[..n]);
    }
    let _ = abi::close(fd);
    all
}

/// A name without a slash is looked for in PATH first.
fn find_source(shell: &Shell, name: &[u8]) -> Vec<u8> {
    if !name.contains(&b'/') && shell.shopt.get("sourcepath") {
        let path = shell.vars.text(b"PATH").cloned().unwrap_or_default();
        for directory in path.split(|&byte| byte == b':') {
            let candidate = [if directory.is_empty() { b"." } else { directory }, b"/", name].concat();
            if abi::stat(abi::Dir::CWD, &candidate, true).is_ok_and(|stat| stat.is_file()) {
                return candidate;
            }
        }
    }
    name.to_vec()
}

/// What `exec` was given.
pub struct ExecCommand<'a> {
    pub args: &'a [Vec<u8>],
    /// `-a name`
    pub name: Option<Vec<u8>>,
    /// `-c`
    pub clean: bool,
}

/// What `exec`'s arguments say, or the letter it does not know.
pub fn exec_command(args: &[Vec<u8>]) -> Result<ExecCommand<'_>, u8> {
    let mut options = Options::new(args);
    let (mut name, mut clean, mut login) = (None, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'a' => name = options.argument().map(<[u8]>::to_vec),
            b'c' => clean = true,
            b'l' => login = true,
            other => return Err(other),
        }
    }
    let args = options.rest();
    if login && let Some(first) = args.first() {
        let given = name.unwrap_or_else(|| first.clone());
        name = Some([b"-", given.as_slice()].concat());
    }
    Ok(ExecCommand { args, name, clean })
}

pub fn invalid_exec_option(shell: &Shell, letter: u8) -> i32 {
    let usage = "exec [-cl] [-a name] [command [argument ...]] [redirection ...]";
    invalid_option(shell, b"exec", &[b'-', letter], usage)
}

/// Reached through `builtin exec` and `command exec`; plain `exec` is handled with its redirections.
pub fn exec(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let command = match exec_command(args) {
        Ok(command) => command,
        Err(letter) => return Ok(invalid_exec_option(shell, letter)),
    };
    if command.args.is_empty() {
        return Ok(0);
    }
    let status = shell.become_program(command.args, &command.args[0], command.clean);
    Err(Flow::Exit(status))
}

pub fn builtin(shell: &mut Shell, args: &[Vec<u8>], simple: &Simple) -> Exec {
    let mut rest = &args[1..];
    if rest.first().is_some_and(|word| word == b"--") {
        rest = &rest[1..];
    }
    let Some(name) = rest.first() else { return Ok(0) };
    match super::find(name) {
        Some(found) => run(shell, found, rest, simple),
        None => Ok(fail(shell, b"builtin", &[name, b": not a shell builtin"], 1)),
    }
}

pub fn command(shell: &mut Shell, args: &[Vec<u8>], simple: &Simple) -> Exec {
    let mut options = Options::new(args);
    let (mut describe, mut verbose, mut standard) = (false, false, false);
    while let Some(letter) = options.next() {
        match letter {
            b'v' => describe = true,
            b'V' => verbose = true,
            b'p' => standard = true,
            other => {
                return Ok(invalid_option(
                    shell,
                    b"command",
                    &[b'-', other],
                    "command [-pVv] command [arg ...]",
                ));
            }
        }
    }
    let rest = options.rest();
    if standard && shell.refuses(b"command", b"-p") {
        return Ok(1);
    }
    if describe || verbose {
        return match standard {
            true => with_standard_path(shell, |shell| super::lookup::describe(shell, rest, verbose)),
            false => super::lookup::describe(shell, rest, verbose),
        };
    }
    let Some(name) = rest.first() else { return Ok(0) };
    if let Some(found) = shell.enabled_builtin(name) {
        let outer = std::mem::replace(&mut shell.by_command, true);
        let result = run(shell, found, rest, simple);
        shell.by_command = outer;
        return result;
    }
    match standard {
        true => with_standard_path(shell, |shell| shell.run_program_now(rest)),
        false => shell.run_program_now(rest),
    }
}

/// With the PATH that finds the system's own programs, whatever the script's is.
fn with_standard_path<T>(shell: &mut Shell, run: impl FnOnce(&mut Shell) -> T) -> T {
    let path = shell.vars.remove(b"PATH");
    shell.vars.set_raw(b"PATH", b"/bin:/usr/bin");
    let result = run(shell);
    match path {
        Some(path) => shell.vars.insert(b"PATH", path),
        None => drop(shell.vars.remove(b"PATH")),
    }
    result
}

/// `caller [n]`
pub fn caller(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let level = args.get(1).and_then(|text| number(text));
    if let (Some(given), None) = (args.get(1), level) {
        fail(shell, b"caller", &[given, b": invalid number"], 2);
        return Ok(super::usage(b"caller", "caller [expr]"));
    }
    let depth = level.unwrap_or(0);
    let count = shell.frames.len() as i64;
    if count == 0 && level.is_none() {
        return Ok(super::output(shell, b"caller", b"0 NULL\n"));
    }
    if depth < 0 || depth >= count {
        return Ok(1);
    }
    let frame = &shell.frames[(count - 1 - depth) as usize];
    let outer = if depth + 1 < count { shell.frames.get((count - 2 - depth) as usize) } else { None };
    // Outside all functions there is a frame for a script's file, and else none.
    let is_file = shell.invocation == crate::shell::Invocation::File;
    if outer.is_none() && !is_file && level.is_some() {
        return Ok(1);
    }
    let function = match outer {
        Some(outer) => outer.function.as_deref().unwrap_or(b"source"),
        None => b"main",
    };
    let source = match outer {
        Some(outer) => outer.source.to_vec(),
        None if is_file => shell.name.clone(),
        None => b"NULL".to_vec(),
    };
    let line = frame.call_line.to_string();
    let text = match level {
        None => [line.as_bytes(), b" ", &source, b"\n"].concat(),
        Some(_) => [line.as_bytes(), b" ", function, b" ", &source, b"\n"].concat(),
    };
    Ok(super::output(shell, b"caller", &text))
}
