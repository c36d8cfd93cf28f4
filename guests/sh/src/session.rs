//! How a shell starts and ends: as a command, and as a session that lives from run to run.

use crate::history::Taken;
use crate::parser::Parser;
use crate::shell::{Exec, Flow, Invocation, Shell, Startup};
use crate::vars::{Attrs, Value, Var};
use std::cell::RefCell;
use wardian_abi as abi;

impl Shell {
    /// Variables from the environment, and those every shell has.
    pub fn set_up(&mut self) {
        self.pid = abi::getpid();
        self.random.set((crate::dynamic::since_epoch().subsec_nanos()) ^ (self.pid as u32) << 8 | 1);
        self.define_dynamic();
        self.traps.note_ignored();
        for pair in abi::environ() {
            let Some(at) = pair.iter().position(|&byte| byte == b'=') else { continue };
            let (name, value) = (&pair[..at], &pair[at + 1..]);
            if self.import_function(name, value) || !crate::parser::is_assignment_name(name) {
                continue;
            }
            if self.vars.raw(name).is_some_and(|var| var.attrs.has(Attrs::DYNAMIC)) {
                self.import_dynamic(name, value);
                continue;
            }
            self.vars.insert(name, Var { value: Value::Scalar(value.to_vec()), attrs: Attrs::EXPORT });
        }
        self.set_defaults();
    }

    fn set_defaults(&mut self) {
        let uid = abi::getuid().to_string();
        let ppid = abi::getppid().to_string();
        self.vars.set_raw(b"IFS", b" \t\n");
        self.vars.set_raw(b"OPTIND", b"1");
        self.vars.entry(b"OPTIND").attrs.set(crate::vars::Attrs::WATCHED, true);
        self.vars.set_raw(b"OPTERR", b"1");
        self.vars.set_raw(b"PS4", b"+ ");
        self.vars.set_raw(b"BASH_VERSION", b"5.2.15(1)-release");
        self.vars.set_raw(b"HOSTTYPE", b"x86_64");
        self.vars.set_raw(b"OSTYPE", b"linux-gnu");
        self.vars.set_raw(b"MACHTYPE", b"x86_64-pc-linux-gnu");
        let defaults: [(&[u8], &[u8]); 5] = [
            (b"PATH", b"/bin:/usr/bin"),
            (b"HOSTNAME", b"wardian"),
            (b"BASH", b"/bin/bash"),
            (b"TERM", b"dumb"),
            (b"SHELL", b"/bin/bash"),
        ];
        for (name, value) in defaults {
            if self.vars.raw(name).is_none() {
                self.vars.set_raw(name, value);
            }
        }
        let version = [&b"5"[..], b"2", b"15", b"1", b"release", b"x86_64-pc-linux-gnu"];
        let version = version.iter().map(|part| part.to_vec()).collect();
        self.vars.insert(b"BASH_VERSINFO", Var { value: Value::Indexed(version), attrs: Attrs::READONLY });
        self.vars.insert(
            b"GROUPS",
            Var {
                value: Value::Indexed([abi::getgid().to_string().into_bytes()].into_iter().collect()),
                attrs: Attrs::default(),
            },
        );
        for (name, value) in [(&b"UID"[..], &uid), (b"EUID", &uid), (b"PPID", &ppid)] {
            let mut var = Var::scalar(value.as_bytes());
            var.attrs = Attrs(Attrs::READONLY.0 | Attrs::INTEGER.0);
            self.vars.insert(name, var);
        }
        let level =
            self.vars.text(b"SHLVL").and_then(|text| std::str::from_utf8(text).ok()?.parse::<i64>().ok());
        self.vars.set_raw(b"SHLVL", (level.unwrap_or(0) + 1).to_string().as_bytes());
        self.vars.entry(b"SHLVL").attrs.set(Attrs::EXPORT, true);
        let here = crate::builtins::logical_directory(self);
        self.vars.set_raw(b"PWD", &here);
        self.directory = Some(here);
        self.vars.entry(b"PWD").attrs.set(Attrs::EXPORT, true);
        if self.vars.raw(b"OLDPWD").is_none() {
            self.vars.insert(b"OLDPWD", Var { value: Value::Unset, attrs: Attrs::EXPORT });
        }
    }

    /// Options come down in variables; so does the name this shell was started by.
    fn import_dynamic(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"SHELLOPTS" => {
                for option in value.split(|&byte| byte == b':') {
                    if let Some(option) = self.options.by_name(option) {
                        *option = true;
                    }
                }
            }
            b"BASHOPTS" => {
                for option in value.split(|&byte| byte == b':') {
                    if let Some(option) = self.shopt.by_name(option) {
                        *option = true;
                    }
                }
            }
            b"_" => self.last_arg = value.to_vec(),
            _ => {}
        }
    }

    /// Functions exported by another shell travel as `BASH_FUNC_name%%=() { … }`.
    fn import_function(&mut self, name: &[u8], value: &[u8]) -> bool {
        let Some(function) = name.strip_prefix(b"BASH_FUNC_").and_then(|rest| rest.strip_suffix(b"%%"))
        else {
            return false;
        };
        if !value.starts_with(b"() {") {
            return true;
        }
        let text = [function, b" ", value].concat();
        let mut parser = Parser::new(text, 1);
        if let Ok(Some(list)) = parser.next_command(&self.dialect())
            && let [item] = list.items.as_slice()
            && let [crate::ast::Command::Function(parsed)] = item.first.stages.as_slice()
        {
            self.functions.insert(parsed.name.to_vec(), parsed.clone());
            self.function_attrs.entry(parsed.name.to_vec()).or_default().set(Attrs::EXPORT, true);
        }
        true
    }

    /// Runs a whole script and answers the exit code. After an error in an expansion it goes on with the next line.
    fn run_script(&mut self, parser: &mut Parser) -> i32 {
        let mut status = 0;
        loop {
            match self.next_list(parser) {
                Ok(Some(list)) => {
                    if self.options.noexec {
                        continue;
                    }
                    let result = self.run_list(&list);
                    self.depth = 0;
                    match self.after_command(result) {
                        Ok(code) => status = code,
                        Err(code) => return self.run_exit_trap(code),
                    }
                    // `set -t`: one command read, one command run.
                    if self.options.onecmd && matches!(self.invocation, Invocation::File | Invocation::Stdin)
                    {
                        break;
                    }
                    if self.options.history && self.invocation != Invocation::Session {
                        let (rest, line) = parser.take_rest();
                        return match self.run_recorded(&rest, line, status) {
                            Ok(code) | Err(code) => self.run_exit_trap(code),
                        };
                    }
                }
                Ok(None) => {
                    status = parser.given_up.unwrap_or(status);
                    break;
                }
                Err(code) => {
                    status = code;
                    break;
                }
            }
        }
        self.run_exit_trap(status)
    }

    /// One script of a session's; what it leaves unfinished ends with it.
    fn run_in_session(&mut self, script: &[u8]) -> i32 {
        if self.interactive {
            return self.run_at_prompt(script.to_vec());
        }
        self.reap_each();
        self.line = 1;
        self.depth = 0;
        self.unchecked = 0;
        let code = self.run_script(&mut Parser::script(script.to_vec(), 1));
        self.loops = 0;
        self.frames.clear();
        while self.vars.pop_scope().is_some() {}
        self.status = code;
        code & 0xff
    }

    /// With `set -o history` a script is taken line by line, each into the history before it is run.
    fn run_recorded(&mut self, text: &[u8], first: u32, mut status: i32) -> Result<i32, i32> {
        let (mut command, mut start) = (Vec::new(), first);
        for (number, line) in (first..).zip(text.split(|&byte| byte == b'\n')) {
            if command.is_empty() {
                start = number;
            }
            match self.take_line(&command, line) {
                Taken::Unfinished(more) => command = more,
                Taken::Refused => command.clear(),
                Taken::Whole { text, .. } => {
                    command.clear();
                    status = self.run_whole(text, start)?;
                }
            }
        }
        if command.is_empty() { Ok(status) } else { self.run_whole(command, start) }
    }

    fn run_whole(&mut self, text: Vec<u8>, line: u32) -> Result<i32, i32> {
        let mut parser = Parser::new(text, line);
        let mut status = self.status;
        loop {
            match self.next_list(&mut parser) {
                Ok(Some(list)) => {
                    let result = self.run_list(&list);
                    self.depth = 0;
                    status = self.after_command(result)?;
                }
                Ok(None) => return Ok(status),
                Err(code) => return Err(code),
            }
        }
    }

    /// What a command's end means for the script: `Err` ends it with that code.
    fn after_command(&mut self, result: Exec) -> Result<i32, i32> {
        match result {
            Ok(status) => Ok(status),
            Err(Flow::Exit(code)) => {
                self.leaves_by_error = false;
                Err(code & 0xff)
            }
            Err(Flow::Discard(status)) => {
                self.redirected_calls = 0;
                self.status = status;
                self.loops = 0;
                self.unchecked = 0;
                while self.vars.pop_scope().is_some() {}
                self.frames.clear();
                if self.options.errexit { Err(status) } else { Ok(status) }
            }
            Err(Flow::Return(status)) => Ok(status),
            Err(Flow::Break(_) | Flow::Continue(_)) => Ok(self.status),
        }
    }
}

/// `bash`, `sh`: with the arguments the program was started with. Answers the exit code.
pub fn run_command(args: Vec<Vec<u8>>) -> i32 {
    let called = args.first().cloned().unwrap_or_else(|| b"bash".to_vec());
    let mut shell = Shell::new(&called, Invocation::Stdin);
    shell.set_up();
    if called.rsplit(|&byte| byte == b'/').next() == Some(b"sh") {
        let _ = crate::builtins::set_named(&mut shell, b"posix", true);
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
        b"--noprofile" | b"--login" | b"--noediting" | b"--verbose" | b"--restricted" => {}
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
        b'l' | b'r' => {}
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
        shell.reading = "-c: ";
        return shell.run_script(&mut Parser::script(text.clone(), 1));
    }
    let Some(path) = operands.first().filter(|_| !shell.read_stdin) else {
        shell.params = operands.to_vec();
        if shell.interactive || (abi::isatty(0) && abi::isatty(2)) {
            return start_interactive(shell);
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
    let mut text = text;
    if text.ends_with(b"\\") {
        text.push(b'\n');
    }
    shell.run_script(&mut Parser::script(text, 1))
}

thread_local! {
    static SESSION: RefCell<Option<Shell>> = const { RefCell::new(None) };
}

/// The session's shell, made when it is first needed: only then has the program an environment.
fn with_session<R>(act: impl FnOnce(&mut Shell) -> R) -> Option<R> {
    SESSION.with(|session| {
        let mut session = session.try_borrow_mut().ok()?;
        let shell = session.get_or_insert_with(|| {
            let mut shell = Shell::new(b"bash", Invocation::Session);
            shell.set_up();
            shell
        });
        Some(act(shell))
    })
}

/// The shell as the kernel knows it.
pub struct ShellSession;

impl abi::Session for ShellSession {
    fn run(script: &[u8]) -> i32 {
        with_session(|shell| shell.run_in_session(script)).unwrap_or(125)
    }

    fn run_contained(script: &[u8]) -> i32 {
        let run = |shell: &mut Shell| {
            let kept = shell.keep_options_and_traps();
            let code = shell.run_in_session(script);
            shell.restore_options_and_traps(kept);
            code
        };
        with_session(run).unwrap_or(125)
    }

    fn getenv(name: &[u8]) -> Option<Vec<u8>> {
        with_session(|shell| shell.text(name).map(|text| text.to_vec())).flatten()
    }

    fn ask(question: &[u8]) -> Option<Vec<u8>> {
        let fields: Vec<Vec<u8>> = question.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect();
        let answer = with_session(|shell| shell.answer(&fields)).flatten()?;
        Some(answer.join(&0))
    }

    fn setenv(name: &[u8], value: &[u8]) {
        with_session(|shell| {
            if crate::parser::is_assignment_name(name) && shell.assign(name, value).is_ok() {
                shell.vars.entry(name).attrs.set(Attrs::EXPORT, true);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::ShellSession;
    use wardian_abi::Session;

    fn run(script: &str) -> i32 {
        ShellSession::run(script.as_bytes())
    }

    fn get(name: &str) -> Option<String> {
        ShellSession::getenv(name.as_bytes()).map(|value| String::from_utf8_lossy(&value).into_owned())
    }

    #[test]
    fn state_lives_from_run_to_run() {
        assert_eq!(run("x=1; f() { x=$((x + 1)); }; a=(p q); set -u; shopt -s extglob"), 0);
        assert_eq!(run("f; f; y=${a[1]}; [[ -o nounset ]] && shopt -q extglob"), 0);
        assert_eq!((get("x"), get("y")), (Some("3".into()), Some("q".into())));
    }

    #[test]
    fn exit_and_errors_end_only_the_run() {
        assert_eq!(run("before=1; exit 7; before=2"), 7);
        assert_eq!(run("status=$?"), 0);
        assert_eq!((get("before"), get("status")), (Some("1".into()), Some("7".into())));
        assert_eq!(run("ran=yes\nif then fi"), 2);
        assert_eq!(get("ran"), Some("yes".into()));
        assert_eq!(run("f() { local v=in; : ${nope?gone}; }; v=out; f"), 127);
        assert_eq!(run("[[ $v == out ]]"), 0);
        assert_eq!(run("set -e; false; after=1"), 1);
        assert_eq!(get("after"), None);
        assert_eq!(run("set +e; trap 'trapped=$?' EXIT; false; exit 4"), 4);
        assert_eq!(get("trapped"), Some("4".into()));
    }

    #[test]
    fn variables_are_set_and_exported_from_outside() {
        ShellSession::setenv(b"OUTSIDE", b"a b\xff");
        assert_eq!(ShellSession::getenv(b"OUTSIDE"), Some(b"a b\xff".to_vec()));
        assert_eq!(run("[[ ${OUTSIDE@a} == x ]]"), 0);
        assert_eq!(get("NEVER_SET"), None);
    }

    #[test]
    fn nesting_ends_in_a_message() {
        // The stack the kernel gives; a test's own thread has less.
        let deep = || {
            assert_eq!(run("f() { f; }; f"), 1);
            assert_eq!(run(&("{ ".repeat(10_000) + ":" + &"; }".repeat(10_000))), 2);
            assert_eq!(run(&format!(": $(({}1{}))", "(".repeat(10_000), ")".repeat(10_000))), 1);
            assert_eq!(run(":"), 0);
        };
        let thread = std::thread::Builder::new().stack_size(8 << 20).spawn(deep).expect("a thread starts");
        thread.join().expect("nothing panics");
    }
}
