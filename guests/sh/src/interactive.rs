//! A shell that a person types at.
//!
//! Lines come from outside (a host with a line editor asks through [`ask`]) or from standard input (`bash -i`). Either
//! way the same happens to them: a prompt is made, a line is taken into the history, and when the command is whole it
//! is run; what goes wrong ends the command and never the shell.

use crate::builtins::set_named;
use crate::history::Taken;
use crate::parser::Parser;
use crate::shell::{Exec, Flow, Shell};
use crate::vars::Value;
use std::cell::Cell;
use std::rc::Rc;
use wardian_abi as abi;

/// Read by every interactive shell before its user's own.
const SYSTEM_RC: &[u8] = b"/etc/bash.bashrc";

/// Shows a prompt without the marks around what takes no room.
fn show_prompt(prompt: &[u8]) {
    let text: Vec<u8> = prompt.iter().copied().filter(|byte| !matches!(byte, 1 | 2)).collect();
    let _ = abi::write_all(2, &text);
}

impl Shell {
    /// Becomes interactive: job control where there is a terminal, aliases, history.
    pub fn become_interactive(&mut self) {
        self.interactive = true;
        self.terminal =
            [2, 0].into_iter().find(|fd| abi::isatty(*fd)).and_then(|fd| abi::dup(fd, 200, true).ok());
        for option in [&b"emacs"[..], b"history", b"histexpand"] {
            let _ = set_named(self, option, true);
        }
        self.options.monitor = self.terminal.is_some();
        if let Some(option) = self.shopt.by_name(b"expand_aliases") {
            *option = true;
        }
        self.traps.endure();
        for (name, value) in [(&b"PS1"[..], &b"\\s-\\v\\$ "[..]), (b"PS2", b"> ")] {
            if self.vars.raw(name).is_none() {
                self.vars.set_raw(name, value);
            }
        }
        self.set_history_defaults();
    }

    /// Runs the files that set a person's shell up. `file` stands in for the user's own.
    pub fn read_startup_files(&mut self, file: Option<&[u8]>) {
        let own = match (file, self.text(b"HOME")) {
            (Some(file), _) => file.to_vec(),
            (None, Some(home)) => [&home, &b"/.bashrc"[..]].concat(),
            (None, None) => return,
        };
        for path in [SYSTEM_RC, &own] {
            let flags = abi::open_flags::RDONLY | abi::open_flags::CLOEXEC;
            let Ok(fd) = abi::open(abi::Dir::CWD, path, flags, 0) else { continue };
            let text = crate::builtins::read_file(fd);
            // What is in such a file is not what was typed.
            let recorded = std::mem::take(&mut self.options.history);
            self.run_typed(text);
            self.options.history |= recorded;
        }
    }

    /// Runs what was typed, or a file's text. An error or an interrupt ends it; `exit` is noted for the prompt.
    pub fn run_typed(&mut self, text: Vec<u8>) -> i32 {
        let mut parser = Parser::new(text, 1);
        loop {
            let list = match self.next_list(&mut parser) {
                Ok(Some(list)) => list,
                Ok(None) => return self.status,
                Err(status) => return status,
            };
            let result = self.run_list(&list);
            if !self.settle(result) {
                return self.status;
            }
        }
    }

    /// After a command at the prompt: whether what else was typed is to be run.
    fn settle(&mut self, result: Exec) -> bool {
        (self.depth, self.unchecked, self.loops, self.in_trap) = (0, 0, 0, 0);
        let goes_on = match result {
            Ok(_) => true,
            Err(Flow::Exit(code)) => {
                self.status = code & 0xff;
                self.leave(code & 0xff);
                false
            }
            Err(Flow::Discard(status)) => {
                self.status = status;
                while self.vars.pop_scope().is_some() {}
                self.frames.clear();
                false
            }
            Err(Flow::Return(status)) => {
                self.status = status;
                true
            }
            Err(Flow::Break(_) | Flow::Continue(_)) => true,
        };
        let pending = crate::traps::arrived();
        if std::mem::take(&mut self.interrupted) || pending >> crate::jobs::SIGINT & 1 == 1 {
            let _ = abi::write_all(2, b"\n");
            self.status = 128 + crate::jobs::SIGINT;
            self.launch = crate::jobs::Launch::Inside;
            return false;
        }
        goes_on
    }

    /// `exit` at the prompt: once refused while jobs are stopped.
    fn leave(&mut self, code: i32) {
        let stopped = self.jobs.list.iter().any(|job| job.stopped.is_some());
        if stopped && !std::mem::replace(&mut self.warned_of_jobs, true) {
            let _ = abi::write_all(2, b"There are stopped jobs.\n");
            self.status = 1;
            return;
        }
        let _ = abi::write_all(2, b"exit\n");
        self.leaving = Some(self.run_exit_trap(code));
    }

    /// What happens before every prompt; answers the prompt.
    fn prompt(&mut self) -> Vec<u8> {
        self.recorded = false;
        self.tell_of_jobs();
        self.note_window_size();
        self.run_prompt_commands();
        let prompt = self.text(b"PS1").map(|text| text.to_vec()).unwrap_or_default();
        self.expand_visible_prompt(&prompt)
    }

    fn continuation(&mut self) -> Vec<u8> {
        let prompt = self.text(b"PS2").map(|text| text.to_vec()).unwrap_or_default();
        self.expand_visible_prompt(&prompt)
    }

    /// Expands a prompt without its commands changing `$?`.
    fn expand_visible_prompt(&mut self, prompt: &[u8]) -> Vec<u8> {
        let status = self.status;
        let text = self.expand_prompt(prompt);
        self.status = status;
        text
    }

    fn run_prompt_commands(&mut self) {
        let commands: Vec<Vec<u8>> = match self.vars.get(b"PROMPT_COMMAND").map(|var| &var.value) {
            Some(Value::Indexed(list)) => list.iter().map(|(_, text)| text.clone()).collect(),
            Some(Value::Scalar(text)) => vec![text.clone()],
            _ => return,
        };
        let (status, pipe_status) = (self.status, self.pipe_status.clone());
        for command in commands {
            self.status = status;
            self.run_typed(command);
        }
        self.status = status;
        self.pipe_status = pipe_status;
    }

    /// `LINES` and `COLUMNS` follow the window.
    fn note_window_size(&mut self) {
        if let (true, Some(terminal)) = (self.shopt.get("checkwinsize"), self.terminal)
            && let Ok((rows, columns)) = abi::winsize(terminal)
            && rows > 0
            && columns > 0
        {
            self.vars.set_raw(b"LINES", rows.to_string().as_bytes());
            self.vars.set_raw(b"COLUMNS", columns.to_string().as_bytes());
        }
    }

    /// Whether text is only the beginning of a command.
    pub fn is_unfinished(&self, text: &[u8]) -> bool {
        let asked = Rc::new(Cell::new(0));
        let (count, mut given) = (asked.clone(), Some([text, b"\n"].concat()));
        let mut parser = Parser::with_refill(Box::new(move || {
            count.set(count.get() + 1);
            given.take()
        }));
        let dialect = self.dialect();
        // The parser asks once for the text itself; asking again inside a command means that it is not whole.
        loop {
            match parser.next_command(&dialect) {
                Ok(Some(_)) if asked.get() <= 1 => {}
                Ok(None) => return false,
                Ok(Some(_)) | Err(_) => return asked.get() > 1,
            }
        }
    }

    // --- bash -i ---

    /// Reads and runs lines from standard input until it ends, or `exit`. Answers the exit code.
    pub fn interact(&mut self) -> i32 {
        loop {
            if let Some(code) = self.leaving {
                return code;
            }
            let prompt = self.prompt();
            let Some(command) = self.read_command(&prompt) else { continue };
            match command {
                Some(text) => {
                    self.before_command();
                    self.run_typed(text);
                }
                None => {
                    self.leave(self.status);
                }
            }
        }
    }

    /// One whole command; `Some(None)` at the end of the input, `None` where there is nothing to run.
    fn read_command(&mut self, prompt: &[u8]) -> Option<Option<Vec<u8>>> {
        let mut text = Vec::new();
        show_prompt(prompt);
        loop {
            let line = crate::builtins::read_line(0);
            if crate::traps::arrived() >> crate::jobs::SIGINT & 1 == 1 {
                let _ = abi::write_all(2, b"\n");
                self.status = 128 + crate::jobs::SIGINT;
                return None;
            }
            let Some(line) = line else {
                return if text.is_empty() { Some(None) } else { Some(Some(text)) };
            };
            match self.take_line(&text, &line) {
                Taken::Whole { text, .. } => return Some(Some(text)),
                Taken::Unfinished(more) => text = more,
                Taken::Refused => return None,
            }
            let continuation = self.continuation();
            show_prompt(&continuation);
        }
    }

    /// After a command was read, before it is run: `PS0`, and the chance to be warned of jobs again.
    fn before_command(&mut self) {
        self.command_number += 1;
        // The window may have changed while the line was typed.
        self.note_window_size();
        if let Some(text) = self.text(b"PS0").map(|text| text.to_vec())
            && !text.is_empty()
        {
            let text = self.expand_visible_prompt(&text);
            let _ = abi::write_all(2, &text);
        }
    }

    /// A whole command that the host read, run at the session's terminal.
    pub fn run_at_prompt(&mut self, text: Vec<u8>) -> i32 {
        self.before_command();
        let warned = self.warned_of_jobs;
        self.run_typed(text);
        if warned && self.leaving.is_none() {
            self.warned_of_jobs = false;
        }
        self.leaving.unwrap_or(self.status)
    }

    /// Answers a question of the host's; `docs/abi.md` has the table of them.
    pub fn answer(&mut self, question: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
        let field = |at: usize| question.get(at).map_or(&b""[..], Vec::as_slice);
        let answer = match field(0) {
            b"start" => {
                self.become_interactive();
                self.history.load(question[1..].to_vec());
                self.read_startup_files(None);
                Vec::new()
            }
            b"prompt" => {
                let text = self.prompt();
                match self.leaving.take() {
                    Some(code) => vec![b"exit".to_vec(), code.to_string().into_bytes()],
                    None => vec![if self.options.vi { b"vi".to_vec() } else { b"emacs".to_vec() }, text],
                }
            }
            b"continuation" => vec![self.continuation()],
            b"line" => match self.take_line(field(1), field(2)) {
                Taken::Whole { text, kept } => [b"whole".to_vec(), text].into_iter().chain(kept).collect(),
                Taken::Unfinished(text) => vec![b"unfinished".to_vec(), text],
                Taken::Refused => vec![b"refused".to_vec()],
            },
            b"complete" => {
                let cursor = std::str::from_utf8(field(2)).ok().and_then(|text| text.parse().ok())?;
                let found = self.complete_line(field(1), cursor);
                let pairs = found.candidates.into_iter().flat_map(|(text, shown)| [text, shown]);
                [found.start.to_string().into_bytes()].into_iter().chain(pairs).collect()
            }
            _ => return None,
        };
        Some(answer)
    }
}
