//! Recipes that run: starting their lines one after the other, and learning how they ended.

use std::collections::VecDeque;

use toolkit::program;
use wardian_abi::{self as abi, Dir, Errno, FdMap, Pid, Spawn, Status, Who, open_flags};

use crate::make::{Make, Res};
use crate::recipe::Command;
use crate::rules::{FileId, State};
use crate::text;
use crate::times::now;

/// A recipe that is being run.
pub struct Job {
    file: FileId,
    waiting: VecDeque<Command>,
    running: Option<(Pid, Command)>,
    environment: Vec<Vec<u8>>,
}

/// The recipes that run at this moment.
#[derive(Default)]
pub struct Jobs {
    running: Vec<Job>,
    /// It was said that unfinished ones are waited for.
    waited: bool,
}

/// What asks for a shell; everything else is started without one.
const SHELL_BYTES: &[u8] = b"#;\"*?[]&|<>(){}$`^~!'\\\n";

/// Words that are commands of the shell itself.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "echo", "eval", "exec", "exit",
    "export", "false", "fc", "fg", "for", "getopts", "hash", "if", "jobs", "kill", "printf", "pwd", "read",
    "readonly", "return", "set", "shift", "test", "times", "trap", "true", "type", "ulimit", "umask",
    "unalias", "unset", "wait", "while",
];

impl Make {
    /// Starts a file's recipe, when there is room for it.
    pub fn start(&mut self, id: FileId) -> Res<()> {
        let limit = match self.special.not_parallel {
            true => 1,
            false => self.options.jobs.unwrap_or(usize::MAX),
        };
        while self.jobs.running.len() >= limit && !self.giving_up {
            self.wait_for_a_job()?;
        }
        if self.giving_up {
            return Ok(());
        }
        let commands = self.commands(id)?;
        if self.options.question && commands.iter().any(|command| !command.always) {
            self.giving_up = true;
            self.files[id].failed = true;
            self.files[id].state = State::Done;
            return Ok(());
        }
        if self.options.touch && !commands.iter().all(|command| command.always) {
            return self.touch(id);
        }
        let ran = !commands.is_empty();
        if !ran {
            return self.finish(id, true, !self.files[id].recipe_is_empty());
        }
        let environment = self.environment_for(id)?;
        self.files[id].state = State::Running;
        self.jobs.running.push(Job { file: id, waiting: commands.into(), running: None, environment });
        let number = self.jobs.running.len() - 1;
        self.advance(number)?;
        while limit == 1 && self.files[id].state == State::Running {
            self.wait_for_a_job()?;
        }
        Ok(())
    }

    fn touch(&mut self, id: FileId) -> Res<()> {
        let name = self.files[id].name.clone();
        if self.files[id].phony {
            return self.finish(id, true, true);
        }
        self.started += 1;
        if !self.options.silent {
            self.say_bytes(&[b"touch ", &name[..]].concat());
        }
        if !self.options.dry_run {
            let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::CLOEXEC;
            let touched = abi::open(Dir::CWD, &name, flags, 0o666)
                .and_then(abi::close)
                .and_then(|()| abi::set_times(Dir::CWD, &name, true, None, Some(now())));
            if let Err(error) = touched {
                self.complain(&format!("*** touch: {}: {error}", text::shown(&name)));
                return self.finish(id, false, true);
            }
        }
        self.finish(id, true, true)
    }

    /// Starts the next line of a job, or ends it.
    fn advance(&mut self, number: usize) -> Res<()> {
        loop {
            let Some(command) = self.jobs.running[number].waiting.pop_front() else {
                let job = self.jobs.running.remove(number);
                return self.finish(job.file, true, true);
            };
            self.started += 1;
            let shown = self.options.dry_run || self.options.trace || !command.silent;
            if shown {
                self.say_bytes(&command.text);
            }
            if self.options.dry_run && !command.always {
                continue;
            }
            match self.launch(number, &command)? {
                Ok(pid) => {
                    self.jobs.running[number].running = Some((pid, command));
                    return Ok(());
                }
                Err(status) => {
                    if !self.judge(number, &command, status)? {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Starts a command. If it cannot be started, that is said, and its status is what a shell would answer.
    fn launch(&mut self, number: usize, command: &Command) -> Res<Result<Pid, Status>> {
        let file = self.jobs.running[number].file;
        let outer = self.current.replace(file);
        let words = self.words_of(&command.text);
        self.current = outer;
        let words = words?;
        // One job at a time reads the standard input; the others have none.
        let alone = self.jobs.running.iter().filter(|job| job.running.is_some()).count() == 0;
        let nothing = match alone {
            true => None,
            false => abi::open(Dir::CWD, b"/dev/null", open_flags::RDONLY | open_flags::CLOEXEC, 0).ok(),
        };
        let fds: Vec<FdMap> = nothing.iter().map(|&from| FdMap { to: 0, from }).collect();
        let environment = &self.jobs.running[number].environment;
        let started = program::spawn(&words, environment, Spawn { fds: &fds, ..Spawn::default() });
        if let Some(nothing) = nothing {
            let _ = abi::close(nothing);
        }
        Ok(started.map_err(|error| self.not_started(&words[0], error)))
    }

    fn not_started(&self, program: &[u8], error: Errno) -> Status {
        self.complain(&format!("{}: {error}", text::shown(program)));
        Status(program::code_for(error) << 8)
    }

    /// A command as words: those of the line, if no shell is needed to tell them apart, or a shell's.
    fn words_of(&mut self, command: &[u8]) -> Res<Vec<Vec<u8>>> {
        let shell = self.value(b"SHELL")?;
        let flags = self.value(b".SHELLFLAGS")?;
        let first = text::words(command).next().unwrap_or_default();
        let plain = shell == b"/bin/sh"
            && flags == b"-c"
            && !command.iter().any(|byte| SHELL_BYTES.contains(byte))
            && !first.contains(&b'=')
            && !SHELL_WORDS.iter().any(|word| word.as_bytes() == first);
        if plain {
            return Ok(text::words(command).map(<[u8]>::to_vec).collect());
        }
        let mut words = vec![shell];
        words.extend(text::words(&flags).map(<[u8]>::to_vec));
        words.push(command.to_vec());
        Ok(words)
    }

    /// Runs a command and answers what it wrote.
    pub fn capture(&mut self, command: &[u8]) -> Res<(Vec<u8>, Status)> {
        if text::trim(command).is_empty() {
            return Ok((Vec::new(), Status(0)));
        }
        let words = self.words_of(text::trim_start(command))?;
        let pipe = match abi::pipe(true) {
            Ok(pipe) => pipe,
            Err(error) => return Err(self.fatal(&format!("pipe: {error}"))),
        };
        let request = Spawn { fds: &[FdMap { to: 1, from: pipe.write }], ..Spawn::default() };
        let started = program::spawn(&words, &self.environment, request);
        let _ = abi::close(pipe.write);
        let result = match started {
            Ok(pid) => {
                let output = toolkit::files::read_fd(pipe.read).unwrap_or_default();
                (output, program::wait_for(pid))
            }
            Err(error) => (Vec::new(), self.not_started(&words[0], error)),
        };
        let _ = abi::close(pipe.read);
        Ok(result)
    }

    /// Waits until some command has ended, and goes on with its job.
    pub fn wait_for_a_job(&mut self) -> Res<()> {
        if self.jobs.running.iter().all(|job| job.running.is_none()) {
            return Ok(());
        }
        let (pid, status) = loop {
            match abi::wait(Who::Any, abi::WaitFlags::default()) {
                Ok(Some(ended)) => break ended,
                Err(Errno::INTR) | Ok(None) => {}
                Err(error) => return Err(self.fatal_anywhere(&format!("wait: {error}"))),
            }
        };
        let of_child = |job: &Job| job.running.as_ref().is_some_and(|(child, _)| *child == pid);
        let Some(number) = self.jobs.running.iter().position(of_child) else { return Ok(()) };
        let Some((_, command)) = self.jobs.running[number].running.take() else { return Ok(()) };
        match self.judge(number, &command, status)? {
            true => self.advance(number),
            false => Ok(()),
        }
    }

    /// Says what went wrong, if something did; answers whether the job goes on.
    fn judge(&mut self, number: usize, command: &Command, status: Status) -> Res<bool> {
        if status.code() == Some(0) {
            return Ok(true);
        }
        let file = self.jobs.running[number].file;
        let place = match &command.place {
            Some(place) => format!("{}:{}", place.file, place.line),
            None => "<builtin>".to_owned(),
        };
        let what = match status.signal() {
            Some(signal) => signal_text(signal).to_owned(),
            None => format!("Error {}", status.code().unwrap_or(1)),
        };
        let name = self.files[file].shown();
        if command.ignores_errors {
            self.complain(&format!("[{place}: {name}] {what} (ignored)"));
            return Ok(true);
        }
        self.complain(&format!("*** [{place}: {name}] {what}"));
        self.jobs.running.remove(number);
        self.delete_half_made(file, status.signal().is_some());
        self.finish(file, false, true)?;
        if !self.options.keep_going {
            self.giving_up = true;
        }
        Ok(false)
    }

    /// Removes a target that its recipe changed before it failed.
    fn delete_half_made(&mut self, id: FileId, by_signal: bool) {
        let file = &self.files[id];
        let kept = file.precious || file.phony || self.special.all_precious;
        if kept || !(by_signal || self.special.delete_on_error) {
            return;
        }
        let (name, before) = (file.name.clone(), file.time.flatten());
        let now = abi::stat(Dir::CWD, &name, true).ok().filter(|stat| stat.is_file());
        if now.is_some_and(|stat| Some(stat.mtime) != before) && abi::unlink(Dir::CWD, &name).is_ok() {
            self.complain(&format!("*** Deleting file '{}'", text::shown(&name)));
        }
    }

    /// Waits for all that run, once no more is started.
    pub fn wait_for_all_jobs(&mut self) -> Res<()> {
        if self.jobs.running.is_empty() {
            return Ok(());
        }
        if !std::mem::replace(&mut self.jobs.waited, true) {
            self.complain("*** Waiting for unfinished jobs....");
        }
        while !self.jobs.running.is_empty() {
            self.wait_for_a_job()?;
        }
        Ok(())
    }
}

/// What Linux calls a signal.
fn signal_text(signal: i32) -> &'static str {
    match signal {
        1 => "Hangup",
        2 => "Interrupt",
        3 => "Quit",
        4 => "Illegal instruction",
        6 => "Aborted",
        8 => "Floating point exception",
        9 => "Killed",
        11 => "Segmentation fault",
        13 => "Broken pipe",
        14 => "Alarm clock",
        15 => "Terminated",
        _ => "Unknown signal",
    }
}
