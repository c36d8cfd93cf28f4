//! `ed` and `ex`: editors for scripts. `buffer.rs` holds the lines, `address.rs` says which are meant, `commands.rs`
//! does what is asked, `substitute.rs` replaces, `files.rs` reads, writes and runs commands. `vi` runs its `:` commands
//! here too.

mod address;
mod buffer;
mod commands;
mod files;
mod substitute;

use buffer::{Buffer, Snapshot};
use std::collections::VecDeque;
use std::rc::Rc;
use substitute::Substitution;
use toolkit::Arguments;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use wardian_abi as abi;
use wardian_regex::Regex;

const ED: Tool = Tool {
    name: "ed",
    short: "EGhlp:rsvV",
    long: &[
        ("extended-regexp", 'E'),
        ("traditional", 'G'),
        ("loose-exit-status", 'l'),
        ("prompt=", 'p'),
        ("restricted", 'r'),
        ("quiet", 's'),
        ("silent", 's'),
        ("script", 's'),
        ("verbose", 'v'),
    ],
    help: "\
Usage: ed [OPTION]... [FILE]
Edit FILE line by line, by commands from standard input.

  -E, --extended-regexp    patterns are extended regular expressions
  -G, --traditional        accepted; G, V, f, l, m and t work the standard way
  -l, --loose-exit-status  exit with 0 even if a command failed
  -p, --prompt=STRING      print STRING before each command is read
  -s, --quiet, --silent    do not print the sizes of files and the '!' after commands
  -v, --verbose            say what was wrong, as after the command H
      --help               display this help and exit
      --version            output version information and exit

Commands: a c d e E f g G h H i j k l m n p P q Q r s t u v V w W wq x y z = !
",
    misuse: 1,
};

const EX: Tool = Tool {
    name: "ex",
    short: "c:esvR",
    long: &[("silent", 's')],
    help: "\
Usage: ex [OPTION]... [FILE]
Edit FILE by ex commands from standard input. On a terminal, use vi.

  -c COMMAND     run COMMAND first; may be given several times
  -e             accepted; ex is always in this mode
  -R             do not write the file unless told so with w!
  -s             say nothing but what commands print
      --help     display this help and exit
      --version  output version information and exit

Commands: a c co d e f g i j k l m nu p pu q r s t u v w wq x y = > < & !
",
    misuse: 1,
};

/// Whose commands they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    Ed,
    Ex,
}

/// What is wrong with a command.
pub type Wrong = String;

pub(super) fn wrong<T>(message: &str) -> Result<T, Wrong> {
    Err(message.to_owned())
}

/// Whether there is more to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    Command,
    Leave,
}

pub struct Editor {
    pub dialect: Dialect,
    buffer: Buffer,
    pub name: Vec<u8>,
    pub modified: bool,
    pub read_only: bool,
    /// What was printed, for those who show it themselves; otherwise it goes to standard output.
    pub printed: Option<Vec<u8>>,
    /// Nothing is said but what commands print.
    pub quiet: bool,
    extended: bool,
    out: Out,
    input: Option<Records>,
    /// The lines of a command list that are still to be run, inside `g`.
    list: Option<VecDeque<Vec<u8>>>,
    pattern: Option<Rc<Regex>>,
    substitution: Option<Substitution>,
    undo: Option<Snapshot>,
    /// Whether this command has noted what was there before it.
    noted: bool,
    cut: Vec<u32>,
    shell_command: Vec<u8>,
    window: usize,
    verbose: bool,
    prompt: Option<Vec<u8>>,
    last_error: String,
    /// The last command was refused because something would have been lost.
    warned: bool,
    failed: bool,
    interactive_list: Vec<u8>,
}

impl Editor {
    pub fn new(dialect: Dialect, quiet: bool) -> Editor {
        Editor {
            dialect,
            buffer: Buffer::default(),
            name: Vec::new(),
            modified: false,
            read_only: false,
            printed: None,
            quiet,
            extended: false,
            out: Out::new(if dialect == Dialect::Ed { "ed" } else { "ex" }),
            input: None,
            list: None,
            pattern: None,
            substitution: None,
            undo: None,
            noted: false,
            cut: Vec::new(),
            shell_command: Vec::new(),
            window: 22,
            verbose: false,
            prompt: None,
            last_error: String::new(),
            warned: false,
            failed: false,
            interactive_list: Vec::new(),
        }
    }

    /// Takes over a text from elsewhere, and the line (from 1) that commands mean.
    pub fn set_lines(&mut self, lines: &[Vec<u8>], current: usize) {
        self.buffer.clear();
        self.buffer.insert_texts(0, lines);
        self.buffer.current = current.min(lines.len());
    }

    pub fn lines(&self) -> Vec<Vec<u8>> {
        (1..=self.buffer.last()).map(|line| self.buffer.text(line).to_vec()).collect()
    }

    /// The line that commands mean, from 1.
    pub fn current(&self) -> usize {
        self.buffer.current
    }

    /// What an empty pattern stands for from now on.
    pub fn note_pattern(&mut self, pattern: &[u8]) {
        // One that is wrong was refused where it was typed.
        let _ = self.regex(pattern, b'/', false);
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        match &mut self.printed {
            Some(printed) => printed.extend_from_slice(bytes),
            None => self.out.put(bytes),
        }
    }

    /// The next line of input, without its end.
    pub(super) fn next_line(&mut self) -> Option<Vec<u8>> {
        if let Some(list) = &mut self.list {
            return list.pop_front();
        }
        // Whoever answers by hand has seen what came before.
        self.out.flush();
        let mut line = Vec::new();
        if !self.input.as_mut()?.next_into(&mut line).unwrap_or(false) {
            return None;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        Some(line)
    }

    /// Runs the commands of standard input to the end; answers the exit code.
    fn run(&mut self, loose: bool) -> i32 {
        self.input = Some(Records::new(0, b'\n'));
        loop {
            if let Some(prompt) = self.prompt.clone() {
                self.put(&prompt);
            }
            let Some(line) = self.next_line() else {
                if self.modified && !self.warned && self.dialect == Dialect::Ed {
                    self.say_wrong("Warning: buffer modified".to_owned());
                    self.out.flush();
                    return 2;
                }
                break;
            };
            match self.execute(&line) {
                Ok(Next::Command) => {}
                Ok(Next::Leave) => break,
                Err(message) => self.say_wrong(message),
            }
        }
        self.out.flush();
        i32::from(self.failed && !loose)
    }

    fn say_wrong(&mut self, message: Wrong) {
        self.failed = true;
        if self.dialect == Dialect::Ed {
            self.put(b"?\n");
            if self.verbose {
                self.put(format!("{message}\n").as_bytes());
            }
        } else if !self.quiet {
            self.out.complain(&message);
        }
        self.last_error = message;
    }

    /// Runs one command line.
    pub fn execute(&mut self, line: &[u8]) -> Result<Next, Wrong> {
        self.noted = false;
        let warned = std::mem::take(&mut self.warned);
        let done = self.command(line, warned);
        if done.is_err() {
            self.list = None;
        }
        done
    }

    /// Notes what is there before a command changes it.
    pub(super) fn note_change(&mut self) {
        if !self.noted {
            self.noted = true;
            self.undo = Some(self.buffer.snapshot(self.modified));
        }
        self.modified = true;
    }
}

pub fn main(arguments: Arguments) -> i32 {
    let words = bytes_of(arguments);
    // An old way to say -s.
    let words = words.into_iter().map(|word| if word == b"-" { b"-s".to_vec() } else { word }).collect();
    let parsed = match ED.parse(words) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let has = |wanted| parsed.options.iter().any(|(letter, _)| *letter == wanted);
    if has('r') {
        return ED.wrong("--restricted is not supported: run 'ed' in a sandbox of its own instead");
    }
    let mut editor = Editor::new(Dialect::Ed, has('s'));
    (editor.extended, editor.verbose) = (has('E'), has('v'));
    let prompts = parsed.options.iter().filter(|(letter, _)| *letter == 'p');
    editor.prompt = prompts.filter_map(|(_, text)| text.clone()).next_back();
    if let Some(name) = parsed.operands.first()
        && let Err(message) = editor.load(name)
        && name.first() != Some(&b'!')
    {
        editor.name = name.clone();
        if message != files::CANNOT_OPEN || abi::stat(abi::Dir::CWD, name, true).is_ok() {
            editor.say_wrong(message);
        }
    }
    editor.run(has('l'))
}

pub fn ex(arguments: Arguments) -> i32 {
    let parsed = match EX.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let has = |wanted| parsed.options.iter().any(|(letter, _)| *letter == wanted);
    let mut editor = Editor::new(Dialect::Ex, has('s'));
    editor.read_only = has('R');
    if let Some(name) = parsed.operands.first() {
        editor.name = name.clone();
        if abi::stat(abi::Dir::CWD, name, true).is_ok()
            && let Err(message) = editor.load(name)
        {
            editor.say_wrong(message);
        }
    }
    for (_, command) in parsed.options.iter().filter(|(letter, _)| *letter == 'c') {
        match editor.execute(command.as_deref().unwrap_or_default()) {
            Ok(Next::Command) => {}
            Ok(Next::Leave) => return i32::from(editor.failed),
            Err(message) => editor.say_wrong(message),
        }
    }
    editor.run(false)
}
