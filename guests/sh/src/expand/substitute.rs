//! Command and process substitution.

use crate::ast::{List, Substitution};
use crate::jobs::ChildWatch;
use crate::shell::{Exec, Flow, Shell};
use wardian_abi as abi;

impl Shell {
    /// The output of commands, without the newlines at its end.
    pub(super) fn substitute_command(&mut self, substitution: &Substitution) -> Exec<Vec<u8>> {
        let mut output = match &substitution.file {
            Some(word) => self.substitute_file(word)?,
            None => self.output_of(substitution)?,
        };
        while output.last() == Some(&b'\n') {
            output.pop();
        }
        if output.contains(&0) {
            self.complain(b"warning: command substitution: ignored null byte in input");
            output.retain(|&byte| byte != 0);
        }
        Ok(output)
    }

    /// `$(<file)`
    fn substitute_file(&mut self, word: &crate::ast::Word) -> Exec<Vec<u8>> {
        let Some(path) = self.target(word)? else {
            self.finish_substitution(1);
            return if self.options.errexit { Err(Flow::Exit(1)) } else { Ok(Vec::new()) };
        };
        let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
        let status = match abi::open(abi::Dir::CWD, &path, flags, 0) {
            Ok(fd) => {
                let output = read_all(fd);
                let _ = abi::close(fd);
                self.finish_substitution(0);
                return Ok(output);
            }
            Err(errno) => {
                self.complain_errno(&path, errno);
                1
            }
        };
        self.finish_substitution(status);
        // As in bash, `set -e` looks at it wherever it stands.
        if self.options.errexit { Err(Flow::Exit(status)) } else { Ok(Vec::new()) }
    }

    fn finish_substitution(&mut self, status: i32) {
        self.substitution_status = Some(status);
        self.status = status;
    }

    fn output_of(&mut self, substitution: &Substitution) -> Exec<Vec<u8>> {
        let list = &substitution.list;
        if list.items.is_empty() && substitution.unread.is_none() {
            self.finish_substitution(0);
            return Ok(Vec::new());
        }
        if let Some(output) = self.output_in_place(list, substitution.lines.is_none()) {
            return Ok(output);
        }
        let pipe = match abi::pipe(true) {
            Ok(pipe) => pipe,
            Err(errno) => {
                self.complain_errno(b"cannot make pipe for command substitution", errno);
                return Err(Flow::Discard(1));
            }
        };
        let child = self.start_substitution(substitution, pipe);
        let _ = abi::close(pipe.write);
        let output = self.read_substitution(pipe.read);
        let _ = abi::close(pipe.read);
        let status = match child? {
            Some(pid) => self.wait_for(pid),
            None => 127,
        };
        self.finish_substitution(status);
        Ok(output)
    }

    /// All that comes through a pipe. Background jobs that end meanwhile are noted: somebody may be watching.
    fn read_substitution(&mut self, fd: abi::Fd) -> Vec<u8> {
        let Some(_watch) = ChildWatch::over(&self.jobs) else { return read_all(fd) };
        let mut output = Vec::new();
        while let Err(abi::Errno::INTR) = read_more(fd, &mut output) {
            crate::traps::collect();
            self.reap_ended();
        }
        output
    }

    /// The output of a builtin that does nothing but print, without a process for it.
    fn output_in_place(&mut self, list: &List, in_one_line: bool) -> Option<Vec<u8>> {
        let (builtin, simple) = self.only_printing(list)?;
        let line = self.line;
        if in_one_line {
            self.line = simple.line;
        }
        let result = match self.expand_args(&simple.words) {
            Ok(args) if args[0] == b"printf" && args.get(1).is_some_and(|arg| arg.starts_with(b"-")) => None,
            Ok(args) => {
                self.captured = Some(Vec::new());
                Some(crate::builtins::run(self, builtin, &args, simple))
            }
            Err(flow) => Some(Err(flow)),
        };
        self.line = line;
        let output = self.captured.take().unwrap_or_default();
        let status = self.exit_code(result?);
        self.finish_substitution(status);
        Some(output)
    }

    /// Starts the commands with their output into the pipe. One plain program needs no copy of the shell.
    fn start_substitution(&mut self, substitution: &Substitution, pipe: abi::Pipe) -> Exec<Option<abi::Pid>> {
        // Part of the command it stands in, whichever job that is: its processes stay in the shell's own group.
        let launch = std::mem::take(&mut self.launch);
        let started = self.start_inside(substitution, pipe);
        self.launch = launch;
        started
    }

    fn start_inside(&mut self, substitution: &Substitution, pipe: abi::Pipe) -> Exec<Option<abi::Pid>> {
        if let Some(simple) = self.only_program(&substitution.list)
            && self.starts_at_once(simple)
        {
            let map = [abi::FdMap { to: 1, from: pipe.write }];
            let line = if substitution.lines.is_some() { self.line } else { simple.line };
            return Ok(self.spawn_simple_at(line, simple, &map)?.ok());
        }
        let forked = self.start_child(|shell| {
            abi::fork(|| {
                let _ = abi::dup2(pipe.write, 1, false);
                let _ = abi::close(pipe.read);
                let _ = abi::close(pipe.write);
                shell.enter_child();
                shell.trace_depth += 1;
                if !shell.options.posix && !shell.shopt.get("inherit_errexit") {
                    shell.options.errexit = false;
                }
                match (&substitution.unread, &substitution.lines) {
                    (Some(text), _) if substitution.unclosed => shell.complain_of_no_end(text),
                    (Some(text), _) => shell.run_unread(text),
                    (None, Some(text)) => shell.run_child_lines(text, &substitution.list),
                    (None, None) => shell.run_child_list(&substitution.list),
                }
            })
        });
        match forked {
            Ok(pid) => Ok(Some(pid)),
            Err(errno) => {
                self.complain_errno(b"fork", errno);
                Err(Flow::Discard(254))
            }
        }
    }

    /// Runs a substitution of several lines, which are counted from the line of the command around it.
    fn run_child_lines(&mut self, text: &[u8], list: &List) -> i32 {
        let counted = crate::parser::parse_again(text, self.line, &self.dialect());
        self.run_child_list(counted.as_ref().unwrap_or(list))
    }

    /// What is said of a substitution in a here-document that nothing closes.
    fn complain_of_no_end(&mut self, text: &[u8]) -> i32 {
        let lines = text.iter().filter(|&&byte| byte == b'\n').count() as u32;
        let message = b"unexpected EOF while looking for matching `)'";
        self.complain_within("command substitution: ", self.line + lines + 1, message);
        2
    }

    /// Runs as much of a text between backquotes as can be read.
    fn run_unread(&mut self, text: &[u8]) -> i32 {
        self.reading = "command substitution: ";
        let result = self.run_text(text.to_vec(), self.line);
        let code = self.exit_code(result);
        self.run_exit_trap(code)
    }

    /// Starts commands at the other end of a pipe, and names this end as a file.
    pub(super) fn substitute_process(&mut self, reads: bool, body: &List) -> Exec<Vec<u8>> {
        let Ok(pipe) = abi::pipe(true) else {
            self.complain(b"cannot make pipe for process substitution");
            return Err(Flow::Discard(1));
        };
        let (ours, theirs, target) =
            if reads { (pipe.read, pipe.write, 1) } else { (pipe.write, pipe.read, 0) };
        let forked = self.start_child(|shell| {
            abi::fork(|| {
                let _ = abi::dup2(theirs, target, false);
                let _ = abi::close(pipe.read);
                let _ = abi::close(pipe.write);
                for fd in std::mem::take(&mut shell.process_fds) {
                    let _ = abi::close(fd);
                }
                shell.enter_child();
                shell.run_child_list(body)
            })
        });
        let _ = abi::close(theirs);
        let Ok(pid) = forked else {
            let _ = abi::close(ours);
            self.complain(b"fork: Resource temporarily unavailable");
            return Err(Flow::Discard(254));
        };
        self.last_background = Some(pid);
        let fd = high_up(ours);
        self.jobs.add_stray(pid);
        self.process_fds.push(fd);
        Ok(format!("/dev/fd/{fd}").into_bytes())
    }

    /// Closes the process substitutions made since `mark`.
    pub fn close_process_fds(&mut self, mark: usize) {
        for fd in self.process_fds.drain(mark..) {
            let _ = abi::close(fd);
        }
    }
}

/// Moves a descriptor high up, where no script has its own: to the first free number from 63 down. It stays open in
/// the programs that get its name.
fn high_up(fd: abi::Fd) -> abi::Fd {
    let free = (10..64).rev().find(|number| abi::cloexec(*number).is_err());
    let moved = match free {
        Some(free) => abi::dup2(fd, free, false).map(|_| free),
        None => abi::dup(fd, 64, false),
    };
    match moved {
        Ok(moved) => {
            let _ = abi::close(fd);
            moved
        }
        Err(_) => fd,
    }
}

/// All there is to read.
pub fn read_all(fd: abi::Fd) -> Vec<u8> {
    let mut all = Vec::new();
    while let Err(abi::Errno::INTR) = read_more(fd, &mut all) {
        crate::traps::collect();
    }
    all
}

/// Reads to the end, or until something is in the way.
fn read_more(fd: abi::Fd, all: &mut Vec<u8>) -> abi::Result<()> {
    let mut buffer = [0; 8192];
    loop {
        match abi::read(fd, &mut buffer)? {
            0 => return Ok(()),
            n => all.extend_from_slice(&buffer[..n]),
        }
    }
}
