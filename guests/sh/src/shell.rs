//! The state of a shell, and how it speaks of errors.

use crate::ast::{Function, List};
use crate::completion::Completions;
use crate::exec::Running;
use crate::history::History;
use crate::jobs::{Jobs, Launch};
use crate::options::{Options, Shopt};
use crate::parser::{Dialect, SyntaxError};
use crate::traps::Traps;
use crate::vars::{Attrs, NameMap, Value, Var, Vars};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;
use wardian_abi as abi;

/// Why a command's execution stops short of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    Break(u32),
    Continue(u32),
    /// Out of a function or sourced file.
    Return(i32),
    /// Out of the shell.
    Exit(i32),
    /// Out of the command being run at the top level, after an error in an expansion.
    Discard(i32),
}

/// The answer of anything that runs commands: as a rule an exit status.
pub type Exec<T = i32> = Result<T, Flow>;

/// How the shell was called: some errors end one kind and not another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// `bash -c`
    Command,
    /// `bash file`
    File,
    /// `bash < file`
    Stdin,
    /// Scripts given one after another through the kernel.
    Session,
}

/// Which of its user's files an interactive shell reads first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Startup {
    /// `~/.bashrc`, or this one.
    Read(Option<Vec<u8>>),
    /// `--norc`
    None,
}

impl Default for Startup {
    fn default() -> Self {
        Startup::Read(None)
    }
}

/// A function call or sourced file in progress.
pub struct Frame {
    pub function: Option<Rc<[u8]>>,
    /// The file the code is from.
    pub source: Rc<[u8]>,
    /// The line it was called from.
    pub call_line: u32,
    /// The arguments, when functions are debugged.
    pub args: Option<Vec<Vec<u8>>>,
}

pub struct Shell {
    pub vars: Vars,
    pub functions: NameMap<Rc<Function>>,
    pub function_attrs: NameMap<Attrs>,
    pub aliases: Rc<HashMap<Vec<u8>, Vec<u8>>>,
    pub options: Options,
    pub shopt: Shopt,
    /// `$1` and up.
    pub params: Vec<Vec<u8>>,
    /// `$0`
    pub name: Vec<u8>,
    /// `$?`
    pub status: i32,
    /// `$_`
    pub last_arg: Vec<u8>,
    /// `$!`
    pub last_background: Option<abi::Pid>,
    /// `$$`
    pub pid: abi::Pid,
    pub invocation: Invocation,
    pub subshell_level: u32,
    pub line: u32,
    /// The line on which the command that was read last ends.
    pub list_end: u32,
    pub source: Rc<[u8]>,
    pub frames: Vec<Frame>,
    /// Loops around the command being run, in this function.
    pub loops: u32,
    /// Nesting of commands, to stop before the stack does.
    pub depth: u32,
    /// Above 0 where a failure does not count for `set -e`: in conditions.
    pub unchecked: u32,
    pub traps: Traps,
    pub jobs: Jobs,
    pub pipe_status: Vec<i32>,
    /// The status of the last command substitution in the command being expanded.
    pub substitution_status: Option<i32>,
    /// What a builtin prints, while it runs as a command substitution without a process of its own.
    pub captured: Option<Vec<u8>>,
    /// The working directory by the name it was reached by, whatever a script makes of `PWD`.
    pub directory: Option<Vec<u8>>,
    pub directory_stack: Vec<Vec<u8>>,
    /// Remembered locations of programs, with how often they were used.
    pub hash: NameMap<(Vec<u8>, u32)>,
    pub hash_version: u64,
    pub started: Instant,
    pub seconds_base: Cell<i64>,
    pub random: Cell<u32>,
    /// Where `getopts` is inside an argument.
    pub getopts_at: usize,
    pub getopts_index: i64,
    /// The text of the command being run, for `BASH_COMMAND`, made when asked for.
    pub command_text: Option<Rc<dyn Fn() -> Vec<u8>>>,
    /// Descriptors for process substitutions, closed when the command is done.
    pub process_fds: Vec<abi::Fd>,
    /// Coprocesses that have not ended.
    pub coprocs: Vec<Running>,
    /// Compiled arithmetic whose text is only known at run time.
    pub arith_cache: HashMap<Vec<u8>, Rc<crate::arith::Expr>>,
    pub disabled_builtins: Vec<Vec<u8>>,
    pub history: History,
    /// What history expansion last replaced, and by what.
    pub last_substitution: RefCell<Option<(Vec<u8>, Vec<u8>)>>,
    /// The trap being run, whose `$?` it must not change.
    pub in_trap: u32,
    pub interactive: bool,
    pub completions: Completions,
    /// The status of a loop that a wrong `break` ended.
    pub break_status: i32,
    /// Some script spoke of `BASH_COMMAND`: the command being run is kept as text.
    pub keeps_command: bool,
    /// `-s`: the script is standard input, whatever the operands.
    pub read_stdin: bool,
    /// `set -r`
    pub restricted: bool,
    /// The builtin is run by `command`, so that it is no special one.
    pub by_command: bool,
    /// What messages about syntax call the text being read, if it is no file: `eval: ` or `-c: `.
    pub reading: &'static str,
    /// Standard input is this subshell's own, so that its background commands read it too.
    pub own_input: bool,
    /// The shell is leaving because `set -e` saw a command fail, not because it was told to.
    pub leaves_by_error: bool,
    /// How many functions are being called with redirections of their own.
    pub redirected_calls: usize,
    /// The status before the trap being run: what `exit` and `return` in it mean without a number.
    pub status_before_trap: Option<i32>,
    /// The word that named the descriptor being copied.
    pub copied_word: Option<Vec<u8>>,
    /// Descriptors that `{name}>` opened for one command, with `varredir_close`.
    pub variable_fds: Vec<abi::Fd>,
    /// With `set -x`: the test being made is under a `!`.
    pub trace_negated: bool,
    /// With `set -x`, the command whose own assignments are being shown first.
    pub line_to_trace: Option<Vec<Vec<u8>>>,
    /// `set` gave new parameters: those of a sourced file then stay.
    pub params_set: bool,
    /// A command of a pipeline: its words are still expanded at the shell's own level.
    pub pending_level: bool,
    /// A command of a pipeline whose step the shell that started it has shown.
    pub stepped: bool,
    /// The script's parameters when `shopt -s extdebug` began to keep those of calls.
    pub debugged_params: Option<Vec<Vec<u8>>>,
    /// `ulimit -c`, soft and hard: only kept, since nothing here leaves a core file behind.
    pub core_limit: (i64, i64),
    pub startup: Startup,
    /// Levels of `eval` and substitution, which repeat the first character of `PS4`.
    pub trace_depth: usize,
    /// The terminal, high up where no script has its own, when the shell is interactive at one.
    pub terminal: Option<abi::Fd>,
    /// Which group the next child joins.
    pub launch: Launch,
    /// The command being run is to be given up: the user typed the interrupt character.
    pub interrupted: bool,
    /// `exit` was called at the prompt.
    pub leaving: Option<i32>,
    /// `exit` was refused once because jobs are stopped.
    pub warned_of_jobs: bool,
    /// The command being run was put into the history when it was read.
    pub recorded: bool,
    /// Commands read at the prompt so far.
    pub command_number: usize,
}

impl Shell {
    pub fn new(name: &[u8], invocation: Invocation) -> Shell {
        Shell {
            vars: Vars::default(),
            functions: NameMap::default(),
            function_attrs: NameMap::default(),
            aliases: Rc::default(),
            options: Options::default(),
            shopt: Shopt::default(),
            params: Vec::new(),
            name: name.to_vec(),
            status: 0,
            last_arg: Vec::new(),
            last_background: None,
            pid: 0,
            invocation,
            subshell_level: 0,
            line: 1,
            source: name.into(),
            frames: Vec::new(),
            loops: 0,
            depth: 0,
            unchecked: 0,
            traps: Traps::default(),
            jobs: Jobs::default(),
            pipe_status: Vec::new(),
            substitution_status: None,
            captured: None,
            directory: None,
            directory_stack: Vec::new(),
            hash: NameMap::default(),
            hash_version: 0,
            started: Instant::now(),
            seconds_base: Cell::new(0),
            random: Cell::new(1),
            getopts_at: 0,
            getopts_index: 1,
            command_text: None,
            process_fds: Vec::new(),
            coprocs: Vec::new(),
            arith_cache: HashMap::new(),
            disabled_builtins: Vec::new(),
            history: History::default(),
            last_substitution: RefCell::default(),
            in_trap: 0,
            interactive: false,
            completions: Completions::default(),
            break_status: 0,
            keeps_command: false,
            read_stdin: false,
            restricted: false,
            by_command: false,
            reading: "",
            own_input: false,
            leaves_by_error: false,
            redirected_calls: 0,
            status_before_trap: None,
            copied_word: None,
            variable_fds: Vec::new(),
            trace_negated: false,
            line_to_trace: None,
            params_set: false,
            pending_level: false,
            stepped: false,
            debugged_params: None,
            core_limit: (0, -1),
            list_end: 1,
            startup: Startup::default(),
            trace_depth: 0,
            terminal: None,
            launch: Launch::default(),
            interrupted: false,
            leaving: None,
            warned_of_jobs: false,
            recorded: false,
            command_number: 0,
        }
    }

    /// What the syntax depends on, as the options are now.
    pub fn dialect(&self) -> Dialect {
        let aliases = self.shopt.get("expand_aliases") || self.options.posix;
        Dialect {
            extglob: self.shopt.get("extglob"),
            braces: self.options.braceexpand,
            posix: self.options.posix,
            extquote: self.shopt.get("extquote"),
            aliases: (aliases && !self.aliases.is_empty()).then(|| self.aliases.clone()),
        }
    }

    // --- messages ---

    /// Prints a message as bash does: the shell's name and the line first.
    pub fn complain(&self, message: &[u8]) {
        self.complain_at(self.line, message);
    }

    pub fn complain_at(&self, line: u32, message: &[u8]) {
        self.complain_within("", line, message);
    }

    /// A message about text that is no file's, which `within` says.
    pub fn complain_within(&self, within: &str, line: u32, message: &[u8]) {
        // Who types knows what the line was.
        if self.interactive {
            let _ = abi::write_all(2, &[&self.name, &b": "[..], message, b"\n"].concat());
            return;
        }
        let mut text = match self.invocation {
            Invocation::File => self.source.to_vec(),
            _ if !self.frames.is_empty() => self.source.to_vec(),
            _ => self.name.clone(),
        };
        let place = match self.shopt.get("gnu_errfmt") {
            true => format!(":{within}{line}: "),
            false => format!(": {within}line {line}: "),
        };
        text.extend_from_slice(place.as_bytes());
        text.extend_from_slice(message);
        text.push(b'\n');
        let _ = abi::write_all(2, &text);
    }

    /// A message made of parts.
    pub fn complain_parts(&self, parts: &[&[u8]]) {
        self.complain(&parts.concat());
    }

    /// A message about a file.
    pub fn complain_errno(&self, what: &[u8], errno: abi::Errno) {
        self.complain_parts(&[what, b": ", errno.message().as_bytes()]);
    }

    /// What an error in an expansion does: ends the shell, or at the prompt only the command.
    pub fn fatal(&self) -> Flow {
        if self.interactive && self.subshell_level == 0 {
            return Flow::Discard(1);
        }
        let told = matches!(self.invocation, Invocation::Command | Invocation::Session);
        if self.subshell_level == 0 && told && !self.options.errexit {
            Flow::Exit(127)
        } else {
            Flow::Exit(1)
        }
    }

    // --- variables ---

    /// A variable by name, its value made on the spot if it is one of those.
    pub fn var(&self, name: &[u8]) -> Option<std::borrow::Cow<'_, Var>> {
        let var = self.vars.get(name)?;
        if var.attrs.has(Attrs::DYNAMIC) {
            return Some(std::borrow::Cow::Owned(self.dynamic(name)));
        }
        Some(std::borrow::Cow::Borrowed(var))
    }

    /// The text of a variable as `$name` has it.
    pub fn text(&self, name: &[u8]) -> Option<std::borrow::Cow<'_, [u8]>> {
        let var = self.vars.get(name)?;
        if var.attrs.has(Attrs::DYNAMIC) {
            return self.dynamic(name).text().cloned().map(std::borrow::Cow::Owned);
        }
        var.text().map(|text| std::borrow::Cow::Borrowed(text.as_slice()))
    }

    pub fn ifs(&self) -> Vec<u8> {
        self.vars.text(b"IFS").cloned().unwrap_or_else(|| match self.vars.get(b"IFS") {
            Some(Var { value: Value::Unset, .. }) | None => b" \t\n".to_vec(),
            Some(_) => Vec::new(),
        })
    }

    /// Reports a readonly variable; the command is given up.
    pub fn readonly_error(&self, name: &[u8]) -> Flow {
        self.complain_parts(&[name, b": readonly variable"]);
        if self.options.posix { self.fatal() } else { Flow::Discard(1) }
    }

    /// Whether text is UTF-8 by the locale's variables.
    pub fn utf8(&self) -> bool {
        self.vars.utf8()
    }

    /// Parses text and runs it command by command, as `eval`, `source`, `-c` and sessions do.
    pub fn run_text(&mut self, text: Vec<u8>, line: u32) -> Exec {
        let mut parser = crate::parser::Parser::script(text, line);
        self.run_parser(&mut parser)
    }

    pub fn run_parser(&mut self, parser: &mut crate::parser::Parser) -> Exec {
        let end = self.list_end;
        let result = self.run_lists(parser);
        self.list_end = end;
        result
    }

    fn run_lists(&mut self, parser: &mut crate::parser::Parser) -> Exec {
        let mut status = 0;
        loop {
            match self.next_list(parser) {
                Ok(Some(list)) => {
                    if self.options.noexec && !self.interactive {
                        continue;
                    }
                    status = self.run_list(&list)?;
                }
                Ok(None) => return Ok(parser.given_up.unwrap_or(status)),
                Err(status) => return Ok(status),
            }
        }
    }

    /// The next complete command; a syntax error is reported and becomes a status.
    pub fn next_list(&mut self, parser: &mut crate::parser::Parser) -> Result<Option<List>, i32> {
        loop {
            let error = match self.parse_next(parser) {
                Ok(list) => {
                    self.list_end = parser.last_line();
                    parser.given_up = parser.given_up.filter(|_| list.is_none());
                    return Ok(list);
                }
                Err(error) => error,
            };
            let reading = self.reading;
            match self.interactive {
                true => self.complain_of_typing(&error),
                false => {
                    for (line, message) in error.messages() {
                        self.complain_within(reading, line, &message);
                    }
                }
            }
            match error {
                SyntaxError::InArray(_) => self.status = if self.options.errexit { 2 } else { 1 },
                SyntaxError::Condition { inside: true, .. } => self.status = 1,
                // Bash ends a script here as if nothing had happened.
                SyntaxError::Condition { .. } if matches!(reading, "" | "-c: ") && !self.is_sourcing() => {}
                _ => self.status = 2,
            }
            let goes_on =
                matches!(error, SyntaxError::InArray(_)) && !self.options.posix && !self.options.errexit;
            if !goes_on {
                return Err(self.status);
            }
            parser.given_up = Some(self.status);
            parser.skip_line();
        }
    }

    /// A syntax error in what was typed, which needs no place, or in a file that was sourced.
    fn complain_of_typing(&self, error: &SyntaxError) {
        if !self.is_sourcing() {
            for (line, message) in error.messages().into_iter().take(1) {
                self.complain_at(line, &message);
            }
            return;
        }
        for (line, message) in error.messages() {
            let place = format!(": line {line}: ");
            self.complain_at(line, &[&self.source, place.as_bytes(), &message].concat());
        }
    }

    fn parse_next(&mut self, parser: &mut crate::parser::Parser) -> Result<Option<List>, SyntaxError> {
        let dialect = self.dialect();
        self.keeps_command |= parser.mentions_command;
        let parsed = parser.next_command(&dialect);
        if self.options.verbose {
            let _ = abi::write_all(2, parser.newly_read());
        } else {
            parser.newly_read();
        }
        for (line, warning) in parser.warnings.drain(..) {
            self.complain_at(line, &warning);
        }
        parsed
    }

    /// Whether the text being read is a sourced file's.
    fn is_sourcing(&self) -> bool {
        self.frames.last().is_some_and(|frame| frame.function.is_none())
    }
}
