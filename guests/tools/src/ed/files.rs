//! Files and commands: what is read into the text and written out of it.

use super::address::{Line, Range};
use super::commands::lines_of;
use super::{Dialect, Editor, Next, Wrong, wrong};
use crate::nano::save;
use toolkit::{files, program};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, FdMap, Spawn, Whence, open_flags};

pub const CANNOT_OPEN: &str = "Cannot open input file";

/// What a file name of a command line names.
enum Target {
    File(Vec<u8>),
    Command(Vec<u8>),
}

impl Editor {
    /// Puts the lines of a file in the place of the text.
    pub(super) fn load(&mut self, name: &[u8]) -> Result<(), Wrong> {
        let target = match name.strip_prefix(b"!") {
            Some(command) => Target::Command(command.to_vec()),
            None => Target::File(name.to_vec()),
        };
        if let Target::File(name) = &target {
            self.name.clone_from(name);
        }
        let content = self.content_of(&target)?;
        self.buffer.clear();
        self.insert_content(0, content);
        self.modified = false;
        self.undo = None;
        Ok(())
    }

    fn content_of(&mut self, target: &Target) -> Result<Vec<u8>, Wrong> {
        match target {
            Target::Command(command) => self.output_of(command, None),
            Target::File(name) => {
                std::fs::read(files::path(name)).map_err(|error| {
                    self.out.flush();
                    let line = format!("{}: {}\n", String::from_utf8_lossy(name), Errno::from(error));
                    // There is nowhere left to say that this failed.
                    let _ = abi::write_all(2, line.as_bytes());
                    CANNOT_OPEN.to_owned()
                })
            }
        }
    }

    fn insert_content(&mut self, after: usize, content: Vec<u8>) {
        let mut size = content.len();
        if content.last().is_some_and(|last| *last != b'\n') {
            if self.dialect == Dialect::Ed {
                self.put(b"Newline appended\n");
            }
            size += 1;
        }
        if !self.quiet && self.dialect == Dialect::Ed {
            self.put(format!("{size}\n").as_bytes());
        }
        if !content.is_empty() {
            let whole = content.strip_suffix(b"\n").unwrap_or(&content);
            let lines: Vec<Vec<u8>> = whole.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
            self.buffer.insert_texts(after, &lines);
            self.buffer.current = after + lines.len();
        }
    }

    /// The name after a command: of a file, or `!` and a command. Without one, the file that is edited.
    fn target(&mut self, line: &mut Line<'_>) -> Result<Target, Wrong> {
        let follows = line.peek();
        line.skip_blanks();
        let text = std::mem::take(&mut line.rest);
        match (follows, text) {
            (_, b"") => {
                if self.name.is_empty() {
                    return wrong("No current filename");
                }
                Ok(Target::File(self.name.clone()))
            }
            (Some(b' ' | b'\t'), [b'!', command @ ..]) => Ok(Target::Command(command.to_vec())),
            (Some(b' ' | b'\t'), name) => Ok(Target::File(name.to_vec())),
            (_, [b'!', command @ ..]) if self.dialect == Dialect::Ed => Ok(Target::Command(command.to_vec())),
            _ => wrong("Unexpected command suffix"),
        }
    }

    pub(super) fn edit_other(
        &mut self,
        forced: bool,
        range: Range,
        line: &mut Line<'_>,
    ) -> Result<(), Wrong> {
        if range.given > 0 {
            return wrong("Unexpected address");
        }
        let target = self.target(line)?;
        if self.modified && !forced {
            self.warned = true;
            return wrong("Warning: buffer modified");
        }
        match target {
            Target::File(name) => self.load(&name),
            Target::Command(command) => self.load(&[b"!", &command[..]].concat()),
        }
    }

    pub(super) fn file_name(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        if range.given > 0 {
            return wrong("Unexpected address");
        }
        let target = self.target(line)?;
        let Target::File(name) = target else { return wrong("Invalid redirection") };
        self.name = name.clone();
        let mut shown = name;
        shown.push(b'\n');
        self.put(&shown);
        Ok(())
    }

    pub(super) fn read_in(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let after =
            if range.given > 0 || self.dialect == Dialect::Ex { range.last } else { self.buffer.last() };
        let target = self.target(line)?;
        if let (Target::File(name), true) = (&target, self.name.is_empty()) {
            self.name.clone_from(name);
        }
        let content = self.content_of(&target)?;
        if !content.is_empty() {
            self.note_change();
        }
        self.insert_content(after, content);
        Ok(())
    }

    /// `w`, `W` (appends), `wq` (`Z`) and `x` (`X`: only if there is something to write).
    pub(super) fn write_out(
        &mut self,
        letter: u8,
        forced: bool,
        range: Range,
        line: &mut Line<'_>,
    ) -> Result<Next, Wrong> {
        let is_ed = self.dialect == Dialect::Ed;
        let leaves = matches!(letter, b'Z' | b'X') || is_ed && line.eat(b'q');
        let mut appends = letter == b'W' && is_ed;
        if letter == b'X' && !self.modified && range.given == 0 && line.rest.is_empty() {
            return Ok(Next::Leave);
        }
        if !is_ed {
            line.skip_blanks();
            if let Some(rest) = line.rest.strip_prefix(b">>") {
                (appends, line.rest) = (true, rest);
            }
            line.skip_blanks();
            if !line.rest.is_empty() {
                let text = [b" ", line.rest].concat();
                line.rest = b"";
                let target = self.target(&mut Line { rest: &text })?;
                return self.write_to(target, appends, forced, leaves, range);
            }
        }
        let target = self.target(line)?;
        self.write_to(target, appends, forced, leaves, range)
    }

    fn write_to(
        &mut self,
        target: Target,
        appends: bool,
        forced: bool,
        leaves: bool,
        range: Range,
    ) -> Result<Next, Wrong> {
        let last = self.buffer.last();
        let (first, end) = match range.given {
            0 if last == 0 => (1, 0),
            0 => (1, last),
            _ => lines_of(range, last)?,
        };
        let mut content = Vec::new();
        for number in first..=end {
            content.extend_from_slice(self.buffer.text(number));
            content.push(b'\n');
        }
        match target {
            Target::Command(command) => {
                let printed = self.output_of(&command, Some(content.clone()))?;
                self.put(&printed);
            }
            Target::File(name) => {
                if self.read_only && !forced && !appends {
                    return wrong("The file is read-only: add ! to write it all the same");
                }
                self.store(&name, &content, appends)?;
                if self.name.is_empty() {
                    self.name = name;
                }
            }
        }
        if !self.quiet {
            let size = content.len();
            match self.dialect {
                Dialect::Ed => self.put(format!("{size}\n").as_bytes()),
                Dialect::Ex if self.printed.is_none() => {}
                Dialect::Ex => {
                    let name = String::from_utf8_lossy(&self.name).into_owned();
                    self.put(format!("\"{name}\" {}L, {size}B written\n", (end + 1) - first).as_bytes());
                }
            }
        }
        if (first, end) == (1, last) || last == 0 {
            self.modified = false;
        }
        Ok(if leaves { Next::Leave } else { Next::Command })
    }

    fn store(&mut self, name: &[u8], content: &[u8], appends: bool) -> Result<(), Wrong> {
        let done = if appends {
            let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::APPEND | open_flags::CLOEXEC;
            abi::open(Dir::CWD, name, flags, 0o666)
                .and_then(|fd| abi::write_all(fd, content).and(abi::close(fd)))
        } else {
            save::write(name, content)
        };
        done.map_err(|error| {
            self.out.flush();
            let line = format!("{}: {error}\n", String::from_utf8_lossy(name));
            // There is nowhere left to say that this failed.
            let _ = abi::write_all(2, line.as_bytes());
            "Cannot open output file".to_owned()
        })
    }

    /// `!COMMAND`; with lines before it in ex, they go through it.
    pub(super) fn shell(&mut self, range: Range, line: &mut Line<'_>) -> Result<(), Wrong> {
        let text = std::mem::take(&mut line.rest);
        let command = self.command_text(text)?;
        if range.given > 0 {
            if self.dialect == Dialect::Ed {
                return wrong("Unexpected address");
            }
            let (first, last) = lines_of(range, self.buffer.last())?;
            let mut content = Vec::new();
            for number in first..=last {
                content.extend_from_slice(self.buffer.text(number));
                content.push(b'\n');
            }
            let output = self.output_of(&command, Some(content))?;
            self.note_change();
            self.buffer.remove(first, last);
            self.buffer.current = first - 1;
            let quiet = std::mem::replace(&mut self.quiet, true);
            self.insert_content(first - 1, output);
            self.quiet = quiet;
            self.buffer.current = first.min(self.buffer.last());
            return Ok(());
        }
        if self.printed.is_some() {
            let output = self.output_of(&command, None)?;
            self.put(&output);
            return Ok(());
        }
        self.out.flush();
        let child = self.start(&command, &[])?;
        program::wait_for(child);
        if !self.quiet && self.dialect == Dialect::Ed {
            self.put(b"!\n");
        }
        Ok(())
    }

    /// A command with `%` for the name of the file, and `!` at its start for the last command.
    fn command_text(&mut self, text: &[u8]) -> Result<Vec<u8>, Wrong> {
        let (mut command, mut rest) = (Vec::new(), text);
        if let Some(more) = text.strip_prefix(b"!") {
            if self.shell_command.is_empty() {
                return wrong("No previous command");
            }
            command.clone_from(&self.shell_command);
            rest = more;
        }
        let mut bytes = rest.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            match byte {
                b'\\' if bytes.peek() == Some(&b'%') => command.extend(bytes.next()),
                b'%' if self.name.is_empty() => return wrong("No current filename"),
                b'%' => command.extend_from_slice(&self.name),
                byte => command.push(byte),
            }
        }
        self.shell_command.clone_from(&command);
        Ok(command)
    }

    /// Starts a command by the shell.
    fn start(&self, command: &[u8], fds: &[FdMap]) -> Result<abi::Pid, Wrong> {
        let words = [b"/bin/sh".to_vec(), b"-c".to_vec(), command.to_vec()];
        program::spawn(&words, &abi::environ(), Spawn { fds, ..Spawn::default() })
            .map_err(|error| format!("/bin/sh: {error}"))
    }

    /// What a command prints, given some input. The input is a file: so that neither can wait for the other.
    fn output_of(&mut self, command: &[u8], input: Option<Vec<u8>>) -> Result<Vec<u8>, Wrong> {
        self.out.flush();
        let failed = |error: Errno| error.to_string();
        let pipe = abi::pipe(true).map_err(failed)?;
        let source = input.map(|content| temporary(&content)).transpose().map_err(failed)?;
        let mut fds = vec![FdMap { from: pipe.write, to: 1 }];
        fds.extend(source.map(|fd| FdMap { from: fd, to: 0 }));
        let child = self.start(command, &fds);
        let closed = abi::close(pipe.write);
        let _ = source.map(abi::close);
        let output = files::read_fd(pipe.read).map_err(failed);
        let _ = abi::close(pipe.read);
        program::wait_for(child?);
        closed.map_err(failed)?;
        output
    }
}

/// A file that has no name, open at its start.
fn temporary(content: &[u8]) -> Result<Fd, Errno> {
    let name = format!("/tmp/.ed.{}", abi::getpid()).into_bytes();
    let flags = open_flags::RDWR | open_flags::CREAT | open_flags::EXCL | open_flags::CLOEXEC;
    // One that is there was left by a process that had our number.
    let fd = match abi::open(Dir::CWD, &name, flags, 0o600) {
        Err(Errno::EXIST) => {
            abi::unlink(Dir::CWD, &name)?;
            abi::open(Dir::CWD, &name, flags, 0o600)?
        }
        other => other?,
    };
    let unlinked = abi::unlink(Dir::CWD, &name);
    abi::write_all(fd, content)?;
    abi::seek(fd, 0, Whence::Start)?;
    unlinked.map(|()| fd)
}
