//! The shell as a command: its options, and where its script comes from.

use crate::parser::Parser;
use crate::shell::{Invocation, Shell, Startup};
use wardian_abi as abi;

/// `bash`, `sh`: with the arguments the program was started with. Answers the exit code.
pub fn run_command(args: Vec<Vec<u8>>) -> i32 {
    let called = args.first().cloned().unwrap_or_else(|| b"bash".to_vec());
    let mut shell = Shell::new(&called, Invocation::Stdin);
    shell.set_up();
    match called.rsplit(|&byte| byte == b'/').next() {
        Some(b"sh") => drop(crate::builtins::set_named(&mut shell, b"posix", true)),
        Some(b"rbash") => shell.restrict(),
        _ => {}
    }
    let mut at = 1;
    let mut command = false;
    while let Some(arg) = args.get(at).cloned() {
        if arg == b"--" || arg == b"-" {
            at += 1;
            break;
        }
        let on = match arg.first() {
            Some(b'-') if arg.len() > 1 => true,
            Some(b'+') if arg.len() > 1 => false,
            _ => break,
        };
        at += 1;
        if arg.starts_with(b"--") {
            match long_option(&mut shell, &arg, &args, &mut at) {
                Ok(()) => continue,
                Err(code) => return code,
            }
        }
        for &letter in &arg[1..] {
            if let Err(code) = short_option(&mut shell, letter, on, &args, &mut at, &mut command) {
                return code;
            }
        }
    }
    start(shell, &args[at.min(args.len())..], command)
}

const HELP: &str = "\
Usage: bash [OPTION]... [FILE [ARGUMENT]...]
       bash [OPTION]... -c COMMAND [NAME [ARGUMENT]...]
Run a script, a command, or what is typed.

  -c          run COMMAND; NAME is $0
  -i          be interactive
  -s          read commands from standard input
  -o NAME     set an option, as `set -o NAME' does; also -e, -u, -x, ...
  -O NAME     set an option, as `shopt -s NAME' does
      --norc, --rcfile FILE   read no start-up file, or FILE
      --posix                 keep to the standard
      --help                  display this help and exit
      --version               output version information and exit

`help' lists the commands that the shell has built in.
";

fn long_option(shell: &mut Shell, arg: &[u8], args: &[Vec<u8>], at: &mut usize) -> Result<(), i32> {
    match arg {
        b"--posix" => drop(crate::builtins::set_named(shell, b"posix", true)),
        b"--version" => {
            let _ = abi::write_all(1, b"GNU bash, version 5.2.15(1)-release (x86_64-pc-linux-gnu)\n");
            return Err(0);
        }
        b"--help" => {
            let _ = abi::write_all(1, HELP.as_bytes());
            return Err(0);
        }
        b"--rcfile" | b"--init-file" => {
            shell.startup = Startup::Read(args.get(*at).cloned());
            *at += 1;
        }
        b"--norc" => shell.startup = Startup::None,
        b"--restricted" => shell.restrict(),
        b"--verbose" => shell.options.verbose = true,
        b"--noprofile" | b"--login" | b"--noediting" => {}
        other => {
            let _ = args;
            let text = [shell.name.as_slice(), b": ", other, b": invalid option\n"].concat();
            let _ = abi::write_all(2, &text);
            return Err(2);
        }
    }
    Ok(())
}

fn short_option(
    shell: &mut Shell,
    letter: u8,
    on: bool,
    args: &[Vec<u8>],
    at: &mut usize,
    command: &mut bool,
) -> Result<(), i32> {
    match letter {
        b'c' => *command = true,
        b's' => shell.read_stdin = true,
        b'l' => {}
        b'r' if on => shell.restrict(),
        b'i' => shell.interactive = true,
        b'o' => {
            let name = args.get(*at).cloned().unwrap_or_default();
            *at += 1;
            if shell.options.by_name(&name).is_none() {
                let text = [shell.name.as_slice(), b": line 0: ", &shell.name, b": ", &name].concat();
                let _ = abi::write_all(2, &[&text, b": invalid option name\n".as_slice()].concat());
                return Err(2);
            }
            crate::builtins::set_named(shell, &name, on).map_err(|_| 2)?;
        }
        b'O' => {
            let name = args.get(*at).cloned().unwrap_or_default();
            *at += 1;
            match shell.shopt.by_name(&name) {
                Some(option) => *option = on,
                None => {
                    let text =
                        [shell.name.as_slice(), b": ", &name, b": invalid shell option name\n"].concat();
                    let _ = abi::write_all(2, &text);
                    return Err(2);
                }
            }
        }
        letter => match shell.options.by_letter(letter) {
            Some(option) => *option = on,
            None => {
                let text = [shell.name.as_slice(), b": -", &[letter], b": invalid option\n"].concat();
                let _ = abi::write_all(2, &text);
                return Err(2);
            }
        },
    }
    Ok(())
}

fn start(mut shell: Shell, operands: &[Vec<u8>], command: bool) -> i32 {
    if command {
        let Some(text) = operands.first() else {
            let text = [shell.name.as_slice(), b": -c: option requires an argument\n"].concat();
            let _ = abi::write_all(2, &text);
            return 2;
        };
        shell.invocation = Invocation::Command;
        if shell.interactive {
            let _ = crate::builtins::set_named(&mut shell, b"histexpand", true);
        }
        if let Some(name) = operands.get(1) {
            shell.name.clone_from(name);
            shell.params = operands[2..].to_vec();
        }
        shell.source = shell.name.as_slice().into();
        if let Some(code) = shell.read_script_startup() {
            return code;
        }
        shell.reading = "-c: ";
        return shell.run_script(&mut Parser::script(text.clone(), 1));
    }
    let Some(path) = operands.first().filter(|_| !shell.read_stdin) else {
        shell.params = operands.to_vec();
        if shell.interactive || (abi::isatty(0) && abi::isatty(2)) {
            return start_interactive(shell);
        }
        if let Some(code) = shell.read_script_startup() {
            return code;
        }
        let mut parser = Parser::with_refill(Box::new(|| {
            let mut line = crate::builtins::read_line_raw(0)?;
            if !line.ends_with(b"\n") {
                line.push(b'\n');
            }
            Some(line)
        }));
        return shell.run_script(&mut parser);
    };
    shell.params = operands[1..].to_vec();
    run_file(shell, path)
}

/// A script in PATH: it is read, so it need not be executable.
fn readable_in(path: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let candidates = path.split(|&byte| byte == b':').map(|directory| [directory, b"/", name].concat());
    candidates
        .filter(|candidate| abi::stat(abi::Dir::CWD, candidate, true).is_ok_and(|stat| stat.is_file()))
        .find(|candidate| abi::access(abi::Dir::CWD, candidate, 4).is_ok())
}

/// `bash` at a terminal, or with `-i`.
fn start_interactive(mut shell: Shell) -> i32 {
    let startup = std::mem::take(&mut shell.startup);
    shell.become_interactive();
    if let Startup::Read(file) = startup {
        shell.read_startup_files(file.as_deref());
    }
    if let Some(file) = shell.text(b"HISTFILE").map(|file| file.to_vec()) {
        let _ = shell.history.read_file(&file, false);
    }
    let code = shell.interact();
    shell.save_history();
    code
}

fn run_file(mut shell: Shell, name: &[u8]) -> i32 {
    let mut path = name.to_vec();
    let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
    if !name.contains(&b'/')
        && abi::stat(abi::Dir::CWD, name, true).is_err()
        && let Some(search) = shell.vars.text(b"PATH")
        && let Some(found) = readable_in(search, name)
    {
        path = found;
    }
    let complain = |what: &str| {
        let text = [shell.name.as_slice(), b": ", name, b": ", what.as_bytes(), b"\n"].concat();
        let _ = abi::write_all(2, &text);
    };
    let fd = match abi::open(abi::Dir::CWD, &path, flags, 0) {
        Ok(fd) => fd,
        Err(errno) => {
            complain(errno.message());
            return if errno == abi::Errno::NOENT { 127 } else { 126 };
        }
    };
    if abi::fstat(fd).is_ok_and(|stat| stat.is_dir()) {
        let _ = abi::write_all(2, &[name, b": ", name, b": Is a directory\n"].concat());
        return 126;
    }
    let text = crate::builtins::read_file(fd);
    let first_line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
    if first_line.contains(&0) {
        complain("cannot execute binary file");
        return 126;
    }
    shell.name = name.to_vec();
    shell.source = name.into();
    shell.invocation = Invocation::File;
    if let Some(code) = shell.read_script_startup() {
        return code;
    }
    let mut text = text;
    if text.ends_with(b"\\") {
        text.push(b'\n');
    }
    shell.run_script(&mut Parser::script(text, 1))
}
