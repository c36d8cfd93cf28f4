//! What every shell has at its start, and the session that lives from run to run.

use crate::history::Taken;
use crate::parser::Parser;
use crate::shell::{Exec, Flow, Invocation, Shell};
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

    /// What the shell of a script reads first: the file that `BASH_ENV` names. An exit code if it ended the shell.
    pub fn read_script_startup(&mut self) -> Option<i32> {
        let named = self.text(b"BASH_ENV").map(|text| text.to_vec()).filter(|text| !text.is_empty())?;
        if self.options.posix || self.interactive {
            return None;
        }
        let word = crate::parser::parse_quoted(named, &self.dialect()).ok()?;
        let path = self.expand_string(&word).ok()?;
        let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
        let fd = abi::open(abi::Dir::CWD, &path, flags, 0).ok()?;
        let text = crate::builtins::read_file(fd);
        match self.source_text(&path, text, None) {
            Err(Flow::Exit(code)) => Some(self.run_exit_trap(code)),
            _ => None,
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
            && parsed.name.as_ref() == function
        {
            self.functions.insert(parsed.name.to_vec(), parsed.clone());
            self.function_attrs.entry(parsed.name.to_vec()).or_default().set(Attrs::EXPORT, true);
        }
        true
    }

    /// Runs a whole script and answers the exit code. After an error in an expansion it goes on with the next line.
    pub fn run_script(&mut self, parser: &mut Parser) -> i32 {
        let mut status = 0;
        loop {
            if self.options.history && self.invocation != Invocation::Session {
                return match self.run_recorded(parser, status) {
                    Ok(code) | Err(code) => self.run_exit_trap(code),
                };
            }
            match self.next_list(parser) {
                Ok(Some(list)) => {
                    if self.options.noexec {
                        continue;
                    }
                    let result = self.run_list(&list);
                    self.depth = 0;
                    // Bash counts on from the line that was being run when a command was given up.
                    if matches!(result, Err(Flow::Discard(_))) && self.invocation == Invocation::File {
                        parser.line = parser.line.min(self.line + 1);
                    }
                    match self.after_command(result) {
                        Ok(code) => status = code,
                        Err(code) => return self.run_exit_trap(code),
                    }
                    // `set -t`: one command read, one command run.
                    if self.options.onecmd && matches!(self.invocation, Invocation::File | Invocation::Stdin)
                    {
                        break;
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
    fn run_recorded(&mut self, parser: &mut Parser, mut status: i32) -> Result<i32, i32> {
        let (text, first) = parser.take_rest();
        let mut refill = parser.take_refill();
        let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>().into_iter();
        // A line that is still to come stands after what was read already, which ends with a line's end.
        let mut following = move || {
            let line = lines.next();
            match &mut refill {
                None => line,
                Some(more) => line.filter(|line| !line.is_empty() || lines.len() > 0).or_else(|| {
                    let line = more()?;
                    Some(line.strip_suffix(b"\n").map_or(line.clone(), <[u8]>::to_vec))
                }),
            }
        };
        let (mut command, mut start) = (Vec::new(), first);
        for number in first.. {
            let Some(line) = following() else { break };
            let line = line.as_slice();
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
