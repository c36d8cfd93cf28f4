//! A line, and what the commands do with it.

use super::Options;
use super::command::{Action, Address, Command, End, Pattern, Range, Script};
use super::input::Reader;
use super::output::Output;
use super::replace::Substitution;
use std::rc::Rc;
use toolkit::{complain, files, program};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, FdMap, Spawn, Stat, open_flags};
use wardian_regex::{Groups, Regex, char_len};

/// The pattern space or the hold space.
#[derive(Clone, Default)]
struct Space {
    text: Vec<u8>,
    /// What ended it is missing: the last line of a file may have none.
    lacks_end: bool,
}

/// What is printed when the line is done.
enum Later {
    Text(Vec<u8>),
    File(Vec<u8>),
}

/// How a script went on after a command.
enum Flow {
    Next,
    Jump(usize),
    /// The end of the script: the line is printed.
    End,
    /// The line is done without being printed.
    Drop,
    /// As `Drop`, and the script begins again with what is left of the line.
    Again,
    Quit(i32),
}

/// A script that ended the program, and the exit code.
struct Stop(i32);

/// Runs a script over files; answers the exit code.
pub fn run(script: Script, options: &Options, operands: Vec<Vec<u8>>) -> i32 {
    let mut machine = match Machine::new(&script, options, operands) {
        Ok(machine) => machine,
        Err(Stop(code)) => return code,
    };
    let code = machine.run().unwrap_or_else(|Stop(code)| code);
    if let Some(edited) = machine.edited.take() {
        // What was not finished is of no use.
        let _ = abi::unlink(Dir::CWD, &edited.temporary);
    }
    machine.flush();
    if code == 0 { machine.code } else { code }
}

struct Machine<'a> {
    script: &'a Script,
    options: &'a Options,
    operands: std::vec::IntoIter<Vec<u8>>,
    /// The file being read, and its name.
    reader: Option<Reader>,
    file: Vec<u8>,
    /// The new text of the file that is edited in place.
    edited: Option<Edited>,
    line: u64,
    pattern: Space,
    hold: Space,
    replaced: bool,
    later: Vec<Later>,
    last_pattern: Option<Rc<Regex>>,
    stdout: Output,
    written: Vec<Option<Output>>,
    read: Vec<Option<Reader>>,
    groups: Groups,
    scratch: Vec<u8>,
    code: i32,
}

/// A file that is edited in place: what is written to, and where that goes.
struct Edited {
    output: Output,
    temporary: Vec<u8>,
    target: Vec<u8>,
}

impl<'a> Machine<'a> {
    fn new(script: &'a Script, options: &'a Options, operands: Vec<Vec<u8>>) -> Result<Machine<'a>, Stop> {
        let by_line = options.unbuffered || abi::isatty(1);
        let mut written = Vec::new();
        for name in &script.written {
            written.push(match &name[..] {
                // Shared with everything else that goes there.
                b"/dev/stdout" => None,
                name => Some(Output::create(name, options.unbuffered).map_err(Stop)?),
            });
        }
        let read = script.read.iter().map(|name| match &name[..] {
            b"/dev/stdin" => Some(Reader::new(0)),
            name => Reader::open(name).ok(),
        });
        let read = read.collect();
        Ok(Machine {
            script,
            options,
            operands: operands.into_iter(),
            reader: None,
            file: b"-".to_vec(),
            edited: None,
            line: 0,
            pattern: Space::default(),
            hold: Space::default(),
            replaced: false,
            later: Vec::new(),
            last_pattern: None,
            stdout: Output::new(b"stdout", 1, by_line),
            written,
            read,
            groups: Groups::new(),
            scratch: Vec::new(),
            code: 0,
        })
    }

    fn run(&mut self) -> Result<i32, Stop> {
        let mut keeps_line = false;
        while keeps_line || self.read_line(false)? {
            if !keeps_line && self.line == 1 {
                self.read_before_first();
            }
            keeps_line = false;
            match self.cycle()? {
                Flow::Drop => {}
                Flow::Again => keeps_line = true,
                Flow::Quit(code) => {
                    self.print_later();
                    self.finish_file()?;
                    return Ok(code);
                }
                _ => self.print_if_loud(),
            }
        }
        Ok(0)
    }

    /// `0r`: files that come before the first line.
    fn read_before_first(&mut self) {
        let script = self.script;
        for command in &script.commands {
            if let (Some(Address::Line(0)), None, Action::ReadFile(name)) =
                (&command.first, &command.second, &command.action)
            {
                self.later.push(Later::File(name.clone()));
            }
        }
        self.print_later();
    }

    /// Runs a command in the shell; what it printed.
    fn execute(&mut self, command: &[u8]) -> Result<Vec<u8>, Stop> {
        self.flush();
        if let Some(edited) = &mut self.edited {
            edited.output.flush();
        }
        output_of(command).map_err(|error| {
            complain("sed", format_args!("error subprocess: {error}"));
            Stop(4)
        })
    }

    /// Makes the pattern space the output of the command it holds.
    fn execute_pattern(&mut self) -> Result<(), Stop> {
        let command = std::mem::take(&mut self.pattern.text);
        let mut output = self.execute(&command)?;
        if output.last() == Some(&self.options.line_end) {
            output.pop();
        }
        self.pattern.text = output;
        Ok(())
    }

    /// Writes what was held back.
    fn flush(&mut self) {
        self.stdout.flush();
        self.written.iter_mut().flatten().for_each(Output::flush);
    }

    fn out(&mut self) -> &mut Output {
        match &mut self.edited {
            Some(edited) => &mut edited.output,
            None => &mut self.stdout,
        }
    }

    fn print_if_loud(&mut self) {
        if !self.options.quiet {
            self.print_pattern();
        }
    }

    fn print_pattern(&mut self) {
        let end = (!self.pattern.lacks_end).then_some(self.options.line_end);
        let out = match &mut self.edited {
            Some(edited) => &mut edited.output,
            None => &mut self.stdout,
        };
        out.line(&self.pattern.text, end);
    }

    /// Runs the script once, over the pattern space.
    fn cycle(&mut self) -> Result<Flow, Stop> {
        let script = self.script;
        let mut at = 0;
        while let Some(command) = script.commands.get(at) {
            let is_meant = self.is_meant(command)?;
            at += 1;
            if let Action::Block(end) = command.action {
                if !is_meant {
                    at = end;
                }
                continue;
            }
            if !is_meant {
                continue;
            }
            match self.perform(command)? {
                Flow::Next => {}
                Flow::Jump(to) => at = to,
                flow => return Ok(flow),
            }
        }
        Ok(Flow::End)
    }

    #[inline]
    fn is_meant(&mut self, command: &Command) -> Result<bool, Stop> {
        let fits = match (&command.first, &command.second) {
            (None, _) => true,
            (Some(first), None) => self.fits(first)?,
            (Some(first), Some(second)) => self.is_in_range(command, first, second)?,
        };
        Ok(fits != command.negated)
    }

    fn fits(&mut self, address: &Address) -> Result<bool, Stop> {
        Ok(match address {
            Address::Line(line) => self.line == *line,
            Address::Step(first, 0) => self.line == *first,
            Address::Step(first, step) => self.line >= *first && (self.line - first).is_multiple_of(*step),
            Address::Last => self.is_last()?,
            Address::Pattern(pattern) => self.matches(pattern)?,
        })
    }

    fn is_in_range(&mut self, command: &Command, first: &Address, second: &End) -> Result<bool, Stop> {
        match command.range.get() {
            Range::Inside(Some(end)) => {
                if self.line >= end {
                    command.range.set(Range::Outside);
                }
                if self.line > end {
                    // The lines up to the end were never looked at: a new range may begin here.
                    return match first {
                        Address::Line(_) => Ok(false),
                        _ => self.begin_range(command, first, second),
                    };
                }
                Ok(true)
            }
            Range::Inside(None) => {
                let is_end = match second {
                    End::Pattern(pattern) => self.matches(pattern)?,
                    _ => self.is_last()?,
                };
                if is_end {
                    command.range.set(Range::Outside);
                }
                Ok(true)
            }
            Range::Outside => self.begin_range(command, first, second),
        }
    }

    fn begin_range(&mut self, command: &Command, first: &Address, second: &End) -> Result<bool, Stop> {
        if !self.fits(first)? {
            return Ok(false);
        }
        let end = match second {
            End::Line(line) => Some(*line),
            End::After(lines) => Some(self.line.saturating_add(*lines)),
            End::Multiple(0) => Some(self.line),
            End::Multiple(number) => Some((self.line / number + 1).saturating_mul(*number)),
            End::Last | End::Pattern(_) => None,
        };
        let goes_on = match end {
            Some(end) => end > self.line,
            None => !matches!(second, End::Last) || !self.is_last()?,
        };
        if goes_on {
            command.range.set(Range::Inside(end));
        }
        Ok(true)
    }

    /// The pattern that is meant: the last one used, where none is written.
    fn resolve(&mut self, pattern: &Pattern) -> Result<Rc<Regex>, Stop> {
        let found = pattern.as_ref().or(self.last_pattern.as_ref()).map(Rc::clone);
        let Some(regex) = found else {
            complain("sed", "-e expression #1, char 0: no previous regular expression");
            return Err(Stop(1));
        };
        if pattern.is_some() {
            self.last_pattern = Some(Rc::clone(&regex));
        }
        Ok(regex)
    }

    fn matches(&mut self, pattern: &Pattern) -> Result<bool, Stop> {
        let regex = self.resolve(pattern)?;
        let found = regex.is_match(&self.pattern.text);
        if regex.gave_up() { Err(gave_up()) } else { Ok(found) }
    }

    fn perform(&mut self, command: &Command) -> Result<Flow, Stop> {
        match &command.action {
            Action::Nothing | Action::Block(_) => {}
            Action::Append(text) => self.later.push(Later::Text(text.clone())),
            Action::Insert(text) => self.print_text(text),
            Action::Change(text) => {
                if command.second.is_none() || command.negated || command.range.get() == Range::Outside {
                    self.print_text(text);
                }
                return Ok(Flow::Drop);
            }
            Action::Branch(to) => return Ok(Flow::Jump(*to)),
            Action::BranchIfReplaced(to) => {
                if std::mem::take(&mut self.replaced) {
                    return Ok(Flow::Jump(*to));
                }
            }
            Action::BranchUnlessReplaced(to) => {
                if !std::mem::take(&mut self.replaced) {
                    return Ok(Flow::Jump(*to));
                }
            }
            Action::Delete => return Ok(Flow::Drop),
            Action::DeleteFirst => {
                let Some(end) = memchr::memchr(self.options.line_end, &self.pattern.text) else {
                    return Ok(Flow::Drop);
                };
                self.pattern.text.drain(..=end);
                return Ok(Flow::Again);
            }
            Action::Next => {
                let is_last = self.is_last()?;
                if !(is_last && self.options.correct) {
                    self.print_if_loud();
                }
                if is_last || !self.read_line(false)? {
                    return Ok(Flow::Drop);
                }
            }
            Action::NextMore => {
                if self.is_last()? {
                    return Ok(if self.options.correct { Flow::Drop } else { Flow::End });
                }
                self.pattern.text.push(self.options.line_end);
                self.read_line(true)?;
            }
            Action::Quit(code) => {
                self.print_if_loud();
                return Ok(Flow::Quit(*code));
            }
            Action::QuitSilently(code) => {
                self.later.clear();
                return Ok(Flow::Quit(*code));
            }
            Action::Substitute(substitution) => self.substitute(substitution)?,
            Action::Execute(command) if command.is_empty() => self.execute_pattern()?,
            Action::Execute(command) => {
                let output = self.execute(command)?;
                if !output.is_empty() {
                    self.out().text(&output);
                }
            }
            other => self.perform_plain(other),
        }
        Ok(Flow::Next)
    }

    /// The commands after which the next one comes.
    fn perform_plain(&mut self, action: &Action) {
        let end = self.options.line_end;
        match action {
            Action::FileName => {
                let name = self.file.clone();
                self.out().line(&name, Some(end));
            }
            Action::Get => self.pattern.clone_from(&self.hold),
            Action::GetMore => {
                self.pattern.text.push(end);
                self.pattern.text.extend_from_slice(&self.hold.text);
                self.pattern.lacks_end &= self.hold.lacks_end;
            }
            Action::Hold => self.hold.clone_from(&self.pattern),
            Action::HoldMore => {
                self.hold.text.push(end);
                self.hold.text.extend_from_slice(&self.pattern.text);
                self.hold.lacks_end &= self.pattern.lacks_end;
            }
            Action::Exchange => std::mem::swap(&mut self.pattern, &mut self.hold),
            Action::List(length) => self.list(length.unwrap_or(self.options.line_length)),
            Action::Number => {
                let number = self.line.to_string();
                self.out().line(number.as_bytes(), Some(end));
            }
            Action::Print => self.print_pattern(),
            Action::PrintFirst => {
                let first = memchr::memchr(end, &self.pattern.text).unwrap_or(self.pattern.text.len());
                let line = self.pattern.text[..first].to_vec();
                self.out().line(&line, Some(end));
            }
            Action::ReadFile(name) => self.later.push(Later::File(name.clone())),
            Action::ReadLine(number) => self.read_later(*number),
            Action::Translate(translation) => translation.apply(&mut self.pattern.text),
            Action::Write(number) => self.write(*number, self.pattern.text.len()),
            Action::WriteFirst(number) => {
                let first = memchr::memchr(end, &self.pattern.text);
                self.write(*number, first.unwrap_or(self.pattern.text.len()));
            }
            Action::Zap => self.pattern.text.clear(),
            _ => {}
        }
    }

    /// Prints the text of `i` or `c`, whose last line ends as all do.
    fn print_text(&mut self, text: &[u8]) {
        let end = self.options.line_end;
        if let Some(text) = text.strip_suffix(b"\n") {
            self.out().line(text, Some(end));
        }
    }

    /// Writes the beginning of the pattern space to a file of `w`.
    fn write(&mut self, number: usize, length: usize) {
        let is_whole = length == self.pattern.text.len();
        let end = (!(is_whole && self.pattern.lacks_end)).then_some(self.options.line_end);
        let output = match &mut self.written[number] {
            Some(output) => output,
            None => &mut self.stdout,
        };
        output.line(&self.pattern.text[..length], end);
    }

    /// `R`: a line of a file, for later.
    fn read_later(&mut self, number: usize) {
        let Some(reader) = &mut self.read[number] else { return };
        let mut text = Vec::new();
        // What cannot be read is not there, as for `r`.
        if let Ok(Some(has_end)) = reader.line(self.options.line_end, &mut text) {
            text.extend(has_end.then_some(self.options.line_end));
            self.later.push(Later::Text(text));
        }
    }

    fn substitute(&mut self, substitution: &Substitution) -> Result<(), Stop> {
        let regex = self.resolve(&substitution.pattern)?;
        let mut result = std::mem::take(&mut self.scratch);
        result.clear();
        let text = &self.pattern.text;
        let (mut at, mut copied, mut count, mut last_end) = (0, 0, 0, None);
        let mut has_replaced = false;
        while at <= text.len() {
            let found = if substitution.wants_groups {
                regex.captures_at(text, at, &mut self.groups)
            } else {
                let found = regex.find_at(text, at);
                self.groups.clear();
                self.groups.push(found);
                found.is_some()
            };
            let Some((from, to)) = self.groups.first().copied().flatten().filter(|_| found) else { break };
            // An empty match right behind another is none.
            if from < to || last_end != Some(from) {
                count += 1;
                if count >= substitution.number {
                    result.extend_from_slice(&text[copied..from]);
                    substitution.expand(text, &self.groups, &mut result);
                    copied = to;
                    has_replaced = true;
                    if !substitution.all {
                        break;
                    }
                }
            }
            last_end = Some(to);
            at = if from < to { to } else { to + text.get(to..).map_or(1, char_len) };
        }
        if regex.gave_up() {
            return Err(gave_up());
        }
        if has_replaced {
            result.extend_from_slice(&text[copied..]);
            std::mem::swap(&mut self.pattern.text, &mut result);
        }
        self.scratch = result;
        if has_replaced {
            self.after_replacing(substitution)?;
        }
        Ok(())
    }

    fn after_replacing(&mut self, substitution: &Substitution) -> Result<(), Stop> {
        self.replaced = true;
        if substitution.prints_first && substitution.executes {
            self.print_pattern();
        }
        if substitution.executes {
            self.execute_pattern()?;
        }
        if substitution.print > 0 && !(substitution.prints_first && substitution.executes) {
            self.print_pattern();
        }
        if let Some(number) = substitution.write {
            self.write(number, self.pattern.text.len());
        }
        Ok(())
    }

    /// `l`: the pattern space with everything visible.
    fn list(&mut self, length: usize) {
        let width = length.checked_sub(1).unwrap_or(usize::MAX);
        let mut shown = Vec::new();
        let mut column = 0;
        for &byte in &self.pattern.text {
            let escaped = match byte {
                b'\\' => b"\\\\".to_vec(),
                0x07 => b"\\a".to_vec(),
                0x08 => b"\\b".to_vec(),
                0x0c => b"\\f".to_vec(),
                b'\n' => b"\\n".to_vec(),
                b'\r' => b"\\r".to_vec(),
                b'\t' => b"\\t".to_vec(),
                0x0b => b"\\v".to_vec(),
                b' '..=b'~' => vec![byte],
                _ => format!("\\{byte:03o}").into_bytes(),
            };
            if column + escaped.len() > width {
                shown.extend_from_slice(b"\\\n");
                column = 0;
            }
            column += escaped.len();
            shown.extend(escaped);
        }
        shown.push(b'$');
        let end = self.options.line_end;
        self.out().line(&shown, Some(end));
    }

    /// Prints what waited for the line to be done.
    fn print_later(&mut self) {
        for later in std::mem::take(&mut self.later) {
            match later {
                Later::Text(text) => self.out().text(&text),
                Later::File(name) => {
                    let content = match &name[..] {
                        b"/dev/stdin" => files::read_fd(0).ok(),
                        name => std::fs::read(files::path(name)).ok(),
                    };
                    if let Some(content) = content.filter(|content| !content.is_empty()) {
                        self.out().text(&content);
                    }
                }
            }
        }
    }

    /// Reads the next line into the pattern space, or adds it there; says whether there was one.
    fn read_line(&mut self, adds: bool) -> Result<bool, Stop> {
        if !self.later.is_empty() {
            self.print_later();
        }
        if !adds {
            self.pattern.text.clear();
            self.replaced = false;
        }
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.line(self.options.line_end, &mut self.pattern.text) {
                    Ok(Some(has_end)) => {
                        self.pattern.lacks_end = !has_end;
                        self.line += 1;
                        return Ok(true);
                    }
                    Ok(None) => self.finish_file()?,
                    Err(error) => return Err(self.cannot_read(error)),
                }
            }
            if !self.open_next()? {
                return Ok(false);
            }
        }
    }

    fn cannot_read(&self, error: Errno) -> Stop {
        let name = String::from_utf8_lossy(&self.file);
        complain("sed", format_args!("read error on {name}: {error}"));
        Stop(4)
    }

    /// Opens the next file that can be read; says whether there is one.
    fn open_next(&mut self) -> Result<bool, Stop> {
        while let Some(mut name) = self.operands.next() {
            if self.options.follow_links && name != b"-" {
                name = link_end(&name).map_err(|error| {
                    let name = String::from_utf8_lossy(&name);
                    complain("sed", format_args!("couldn't readlink {name}: {error}"));
                    Stop(4)
                })?;
            }
            let by_line = |reader: Reader| if self.options.unbuffered { reader.by_line() } else { reader };
            let opened = match &name[..] {
                b"-" if self.options.in_place.is_none() => Ok(Reader::new(0)),
                name => Reader::open(name),
            };
            let reader = match opened {
                Ok(reader) => by_line(reader),
                Err(error) => {
                    let name = String::from_utf8_lossy(&name);
                    complain("sed", format_args!("can't read {name}: {error}"));
                    self.code = 2;
                    continue;
                }
            };
            if self.options.in_place.is_some() && !self.begin_editing(&name)? {
                continue;
            }
            if self.options.separate {
                self.line = 0;
                self.hold = Space::default();
                self.script.commands.iter().for_each(reset_range);
            }
            self.file = name;
            self.reader = Some(reader);
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether the pattern space holds the last line there is.
    fn is_last(&mut self) -> Result<bool, Stop> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.is_done() {
                    Ok(false) => return Ok(false),
                    Ok(true) if self.options.separate => return Ok(true),
                    Ok(true) => {}
                    Err(error) => return Err(self.cannot_read(error)),
                }
            }
            if self.operands.len() == 0 {
                return Ok(true);
            }
            if self.options.separate || !self.open_next()? {
                return Ok(true);
            }
        }
    }

    /// Begins to write the new text of a file; says whether that can be.
    fn begin_editing(&mut self, name: &[u8]) -> Result<bool, Stop> {
        let shown = String::from_utf8_lossy(name);
        let stat = abi::stat(Dir::CWD, name, true);
        let Some(stat) = stat.ok().filter(Stat::is_file) else {
            complain("sed", format_args!("couldn't edit {shown}: not a regular file"));
            self.code = 4;
            return Ok(false);
        };
        let target = name.to_vec();
        let directory = files::parent(&target);
        let mut number = abi::getpid() as u64;
        loop {
            let temporary = files::join(&directory, format!("sed{number:06x}").as_bytes());
            let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::EXCL;
            match abi::open(Dir::CWD, &temporary, flags, 0o600) {
                Err(Errno::EXIST) => number += 1,
                Err(error) => {
                    let directory = String::from_utf8_lossy(&files::join(&directory, b"")).into_owned();
                    complain(
                        "sed",
                        format_args!("couldn't open temporary file {directory}sedXXXXXX: {error}"),
                    );
                    return Err(Stop(4));
                }
                Ok(fd) => {
                    // The new file is what the old one was, as far as one may say so.
                    let _ = abi::chown(Dir::CWD, &temporary, false, Some(stat.uid), Some(stat.gid));
                    let _ = abi::fchmod(fd, stat.mode & 0o7777);
                    let output = Output::new(&temporary, fd, false);
                    self.edited = Some(Edited { output, temporary, target });
                    return Ok(true);
                }
            }
        }
    }

    /// Closes the file that was read; what was edited takes its place.
    fn finish_file(&mut self) -> Result<(), Stop> {
        self.reader = None;
        let Some(Edited { mut output, temporary, target }) = self.edited.take() else { return Ok(()) };
        output.flush();
        // All was written.
        let _ = abi::close(output.fd());
        let suffix = self.options.in_place.as_deref().unwrap_or_default();
        let kept = backup_name(&target, suffix);
        let renamed = match suffix.is_empty() {
            true => Ok(()),
            false => abi::rename(Dir::CWD, &target, Dir::CWD, &kept).map_err(|error| (&target, error)),
        };
        let renamed = renamed.and_then(|()| {
            abi::rename(Dir::CWD, &temporary, Dir::CWD, &target).map_err(|error| (&temporary, error))
        });
        renamed.map_err(|(name, error)| {
            let name = String::from_utf8_lossy(name);
            complain("sed", format_args!("cannot rename {name}: {error}"));
            // What could not be put in its place is of no use.
            let _ = abi::unlink(Dir::CWD, &temporary);
            Stop(4)
        })
    }
}

fn gave_up() -> Stop {
    complain("sed", "exceeded the limit of steps for matching a pattern");
    Stop(4)
}

fn reset_range(command: &Command) {
    let starts_at_zero = matches!(command.first, Some(Address::Line(0))) && command.second.is_some();
    command.range.set(if starts_at_zero { Range::Inside(None) } else { Range::Outside });
}

/// Where a chain of symbolic links ends.
fn link_end(name: &[u8]) -> Result<Vec<u8>, Errno> {
    let mut name = name.to_vec();
    // As many links as the kernel would follow.
    for _ in 0..40 {
        if !abi::stat(Dir::CWD, &name, false)?.is_symlink() {
            return Ok(name);
        }
        let target = files::link_target(&name)?;
        let is_whole = target.starts_with(b"/") || !name.contains(&b'/');
        name = if is_whole { target } else { files::join(&files::parent(&name), &target) };
    }
    Err(Errno::LOOP)
}

/// Runs a command in the shell; what it printed.
fn output_of(command: &[u8]) -> Result<Vec<u8>, Errno> {
    let pipe = abi::pipe(true)?;
    // As in C, a NUL ends it.
    let command = command.split(|&byte| byte == 0).next().unwrap_or_default();
    let words = [b"sh".to_vec(), b"-c".to_vec(), command.to_vec()];
    let fds = [FdMap { to: 1, from: pipe.write }];
    let request = Spawn { fds: &fds, ..Spawn::default() };
    let started = program::spawn(&words, &abi::environ(), request);
    let _ = abi::close(pipe.write);
    let output = started.and_then(|child| {
        let output = files::read_fd(pipe.read);
        program::wait_for(child);
        output
    });
    let _ = abi::close(pipe.read);
    output
}

/// The name that the old text of a file is kept under: a `*` in the suffix is the file's own name.
fn backup_name(target: &[u8], suffix: &[u8]) -> Vec<u8> {
    let base = files::base_name(target);
    let mut name = Vec::new();
    if suffix.contains(&b'*') {
        for byte in suffix {
            match byte {
                b'*' => name.extend_from_slice(base),
                byte => name.push(*byte),
            }
        }
    } else {
        name.extend_from_slice(base);
        name.extend_from_slice(suffix);
    }
    if name.contains(&b'/') || !target.contains(&b'/') {
        name
    } else {
        files::join(&files::parent(target), &name)
    }
}
