//! Finding and starting programs.

use super::complain;
use super::quote;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Spawn, StringList};

/// The exit codes of a tool that could not start what it was to start.
pub const CANNOT_RUN: i32 = 126;
pub const NOT_FOUND: i32 = 127;

/// Whether a path is a program that may be run.
pub fn is_program(path: &[u8]) -> bool {
    abi::stat(Dir::CWD, path, true).is_ok_and(|stat| stat.is_file()) && abi::access(Dir::CWD, path, 1).is_ok()
}

/// The file for a command, looked for in the directories of `search`. A command with a slash is its own file.
pub fn find(command: &[u8], search: &[u8]) -> Result<Vec<u8>, Errno> {
    if command.contains(&b'/') {
        return Ok(command.to_vec());
    }
    let mut error = Errno::NOENT;
    for directory in search.split(|&byte| byte == b':').filter(|_| !command.is_empty()) {
        let directory = if directory.is_empty() { b"." } else { directory };
        let path = super::files::join(directory, command);
        if is_program(&path) {
            return Ok(path);
        }
        if abi::stat(Dir::CWD, &path, true).is_ok_and(|stat| !stat.is_dir()) {
            error = Errno::ACCES;
        }
    }
    Err(error)
}

/// The value of a variable in a list of `NAME=VALUE`.
pub fn value_of<'a>(environment: &'a [Vec<u8>], name: &[u8]) -> Option<&'a [u8]> {
    environment.iter().find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// The directories commands are looked for in.
pub fn search_path(environment: &[Vec<u8>]) -> Vec<u8> {
    value_of(environment, b"PATH").unwrap_or(b"/bin:/usr/bin").to_vec()
}

/// Starts a command as a child, looking for it in `PATH`.
pub fn spawn(command: &[Vec<u8>], environment: &[Vec<u8>], request: Spawn<'_>) -> Result<abi::Pid, Errno> {
    let path = find(command.first().map_or(b"", Vec::as_slice), &search_path(environment))?;
    let (argv, env): (StringList, StringList) = (command.iter().collect(), environment.iter().collect());
    let started = abi::spawn(&Spawn { path: &path, argv: argv.as_bytes(), env: env.as_bytes(), ..request });
    match started {
        Err(Errno::NOEXEC) => {
            let (argv, shell) = as_script(command, &path);
            abi::spawn(&Spawn { path: shell, argv: argv.as_bytes(), env: env.as_bytes(), ..request })
        }
        started => started,
    }
}

/// Becomes a command, looking for it in `PATH`; returns only on failure.
pub fn exec(command: &[Vec<u8>], environment: &[Vec<u8>], cwd: &[u8]) -> Errno {
    let found = find(command.first().map_or(b"", Vec::as_slice), &search_path(environment));
    let path = match found {
        Ok(path) => path,
        Err(error) => return error,
    };
    let (argv, env): (StringList, StringList) = (command.iter().collect(), environment.iter().collect());
    let request = Spawn { path: &path, argv: argv.as_bytes(), env: env.as_bytes(), cwd, ..Spawn::default() };
    match abi::exec(&request) {
        Errno::NOEXEC => {
            let (argv, shell) = as_script(command, &path);
            abi::exec(&Spawn { path: shell, argv: argv.as_bytes(), ..request })
        }
        error => error,
    }
}

/// A file that is no program is a script for the shell, as in `execvp`.
fn as_script(command: &[Vec<u8>], path: &[u8]) -> (StringList, &'static [u8]) {
    let mut argv = StringList::new();
    argv.push(b"sh");
    argv.push(path);
    command.iter().skip(1).for_each(|argument| argv.push(argument));
    (argv, b"/bin/sh")
}

/// Says that a command could not be started, and answers the exit code that says the same.
pub fn complain_of(name: &str, command: &[u8], error: Errno) -> i32 {
    let verb = if name == "timeout" || name == "nohup" { "failed to run command " } else { "" };
    complain(name, format_args!("{verb}{}: {error}", quote::word(command)));
    code_for(error)
}

/// 127 when a command is not there, 126 when it cannot be run.
pub fn code_for(error: Errno) -> i32 {
    if error == Errno::NOENT { NOT_FOUND } else { CANNOT_RUN }
}

/// Waits for a child to end, whatever signals come.
pub fn wait_for(child: abi::Pid) -> abi::Status {
    loop {
        match abi::wait(abi::Who::Child(child), abi::WaitFlags::default()) {
            Ok(Some((_, status))) => return status,
            Err(Errno::INTR) | Ok(None) => {}
            Err(_) => return abi::Status(NOT_FOUND << 8),
        }
    }
}

/// A signal by number or name, with or without `SIG`, in any case.
pub fn signal_number(text: &[u8]) -> Option<i32> {
    let text = std::str::from_utf8(text).ok()?.to_ascii_uppercase();
    if let Ok(number) = text.parse::<i32>() {
        return (0..=64).contains(&number).then_some(number);
    }
    let name = text.strip_prefix("SIG").unwrap_or(&text);
    match name {
        "EXIT" => Some(0),
        "CLD" => Some(17),
        "POLL" => Some(29),
        "IOT" => Some(6),
        _ => abi::SIGNALS.iter().find(|(_, known)| *known == name).map(|(number, _)| *number),
    }
}

/// A time such as `1.5`, `2m` or `infinity`, in nanoseconds.
pub fn duration(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (number, unit) = match text.as_bytes().last()? {
        b's' => (&text[..text.len() - 1], 1.0),
        b'm' => (&text[..text.len() - 1], 60.0),
        b'h' => (&text[..text.len() - 1], 3600.0),
        b'd' => (&text[..text.len() - 1], 86400.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.trim_start().parse().ok().filter(|number| *number >= 0.0)?;
    let nanos = (number * unit * 1e9).ceil();
    // The conversion ends at the greatest number there is: about 300 years.
    Some(nanos as i64)
}
