//! `read` and `mapfile`.

use super::{Options, fail, invalid_option, number};
use crate::assign::ArrayItem;
use crate::jobs::ChildWatch;
use crate::shell::{Exec, Shell};
use crate::vars::{Indexed, Value};
use std::time::{Duration, Instant};
use wardian_abi as abi;

/// Reads bytes so that what follows stays for others: by blocks from a file, byte by byte from a pipe.
pub struct Reader {
    fd: abi::Fd,
    buffer: Vec<u8>,
    at: usize,
    seekable: bool,
    /// How much to read at once.
    block: usize,
    deadline: Option<Instant>,
    pub timed_out: bool,
    pub interrupted: bool,
}

impl Reader {
    pub fn new(fd: abi::Fd, timeout: Option<Duration>) -> Reader {
        let seekable = abi::seek(fd, 0, abi::Whence::Current).is_ok();
        Reader {
            fd,
            buffer: Vec::new(),
            at: 0,
            seekable,
            block: if seekable { 256 } else { 1 },
            deadline: timeout.map(|timeout| Instant::now() + timeout),
            timed_out: false,
            interrupted: false,
        }
    }

    pub fn next(&mut self) -> Option<u8> {
        if self.at == self.buffer.len() && !self.fill() {
            return None;
        }
        self.at += 1;
        self.buffer.get(self.at - 1).copied()
    }

    /// Takes bytes up to the delimiter, which is left out; says whether it came.
    fn until(&mut self, delimiter: u8, line: &mut Vec<u8>) -> bool {
        loop {
            if self.at == self.buffer.len() && !self.fill() {
                return false;
            }
            let rest = &self.buffer[self.at..];
            let end = rest.iter().position(|byte| *byte == delimiter);
            line.extend_from_slice(&rest[..end.unwrap_or(rest.len())]);
            self.at += end.map_or(rest.len(), |end| end + 1);
            if end.is_some() {
                return true;
            }
        }
    }

    fn fill(&mut self) -> bool {
        if let Some(deadline) = self.deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            match abi::poll_read(self.fd, Some(left)) {
                Ok(false) => self.timed_out = true,
                Err(abi::Errno::INTR) => self.interrupted = true,
                _ => {}
            }
            if self.timed_out || self.interrupted {
                return false;
            }
        }
        self.at = 0;
        self.buffer.resize(self.block, 0);
        match abi::read(self.fd, &mut self.buffer) {
            Ok(n) => {
                self.buffer.truncate(n);
                n > 0
            }
            Err(errno) => {
                self.interrupted = errno == abi::Errno::INTR;
                self.buffer.clear();
                false
            }
        }
    }

    /// Gives back what was read but not used.
    pub fn finish(self) {
        let unused = (self.buffer.len() - self.at) as i64;
        if self.seekable && unused > 0 {
            let _ = abi::seek(self.fd, -unused, abi::Whence::Current);
        }
    }
}

/// A line without its newline, for `select` and scripts on standard input.
pub fn read_line(fd: abi::Fd) -> Option<Vec<u8>> {
    let mut reader = Reader::new(fd, None);
    let mut line = Vec::new();
    let mut any = false;
    while let Some(byte) = reader.next() {
        any = true;
        if byte == b'\n' {
            break;
        }
        line.push(byte);
    }
    reader.finish();
    any.then_some(line)
}

/// A line with its newline.
pub fn read_line_raw(fd: abi::Fd) -> Option<Vec<u8>> {
    let mut reader = Reader::new(fd, None);
    let mut line = Vec::new();
    while let Some(byte) = reader.next() {
        line.push(byte);
        if byte == b'\n' {
            break;
        }
    }
    reader.finish();
    (!line.is_empty()).then_some(line)
}

/// What `read` was asked for.
struct Request {
    raw: bool,
    array: Option<Vec<u8>>,
    delimiter: u8,
    count: Option<usize>,
    exact: bool,
    prompt: Option<Vec<u8>>,
    timeout: Option<Duration>,
    fd: abi::Fd,
}

const USAGE: &str = "read [-ers] [-a array] [-d delim] [-i text] [-n nchars] [-N nchars] [-p prompt] [-t timeout] [-u fd] [name ...]";

fn request(shell: &mut Shell, options: &mut Options<'_>) -> Result<Request, i32> {
    let mut request = Request {
        raw: false,
        array: None,
        delimiter: b'\n',
        count: None,
        exact: false,
        prompt: None,
        timeout: None,
        fd: 0,
    };
    while let Some(letter) = options.next() {
        if matches!(letter, b'r' | b's' | b'e') {
            request.raw |= letter == b'r';
            continue;
        }
        if !b"adinNptu".contains(&letter) {
            return Err(invalid_option(shell, b"read", &[b'-', letter], USAGE));
        }
        let Some(argument) = options.argument() else {
            fail(shell, b"read", &[b"-", &[letter], b": option requires an argument"], 2);
            return Err(super::usage(b"read", USAGE));
        };
        match letter {
            b'a' => request.array = Some(argument.to_vec()),
            b'd' => request.delimiter = argument.first().copied().unwrap_or(0),
            b'n' | b'N' => match number(argument) {
                Some(count) if count >= 0 => {
                    request.count = Some(count as usize);
                    request.exact |= letter == b'N';
                }
                _ => return Err(fail(shell, b"read", &[argument, b": invalid number"], 1)),
            },
            b'p' => request.prompt = Some(argument.to_vec()),
            b't' => match std::str::from_utf8(argument).ok().and_then(|text| text.parse::<f64>().ok()) {
                Some(seconds) if (0.0..1e9).contains(&seconds) => {
                    request.timeout = Some(Duration::from_secs_f64(seconds));
                }
                _ => return Err(fail(shell, b"read", &[argument, b": invalid timeout specification"], 1)),
            },
            b'u' => match number(argument).and_then(|fd| abi::Fd::try_from(fd).ok()) {
                Some(fd) if abi::cloexec(fd).is_ok() => request.fd = fd,
                Some(_) => {
                    return Err(fail(
                        shell,
                        b"read",
                        &[argument, b": invalid file descriptor: Bad file descriptor"],
                        1,
                    ));
                }
                None => {
                    return Err(fail(
                        shell,
                        b"read",
                        &[argument, b": invalid file descriptor specification"],
                        1,
                    ));
                }
            },
            _ => {}
        }
    }
    Ok(request)
}

pub fn read(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut options = Options::new(args);
    let request = match request(shell, &mut options) {
        Ok(request) => request,
        Err(status) => return Ok(status),
    };
    let names = options.rest();
    if let Some(array) = &request.array
        && let Err(status) = check_array(shell, b"read", array)
    {
        return Ok(status);
    }
    for name in names {
        let base = &name[..name.iter().position(|&byte| byte == b'[').unwrap_or(name.len())];
        if !crate::parser::is_assignment_name(base) {
            return Ok(fail(shell, b"read", &[b"`", name, b"': not a valid identifier"], 1));
        }
    }
    if let (Some(prompt), true) = (&request.prompt, abi::isatty(request.fd)) {
        let _ = abi::write_all(2, prompt);
    }
    if request.timeout == Some(Duration::ZERO) {
        let ready = abi::poll_read(request.fd, Some(Duration::ZERO)).unwrap_or(false);
        return Ok(i32::from(!ready));
    }
    if request.is_plain() && names.len() < 2 && shell.ifs().iter().all(|byte| b" \t\n".contains(byte)) {
        return read_plain(shell, &request, names.first());
    }
    let (line, status) = take(shell, &request)?;
    store(shell, &request, names, &line)?;
    Ok(status)
}

impl Request {
    /// Whether a line is taken as it is.
    fn is_plain(&self) -> bool {
        self.raw && self.count.is_none() && self.array.is_none()
    }
}

/// `read -r [name]`, by which scripts go through files: a line, without a thought for each byte.
fn read_plain(shell: &mut Shell, request: &Request, name: Option<&Vec<u8>>) -> Exec {
    let _watch = ChildWatch::over(&shell.jobs);
    let mut reader = Reader::new(request.fd, request.timeout);
    let mut line = Vec::with_capacity(128);
    let mut status = 0;
    while !reader.until(request.delimiter, &mut line) {
        if !std::mem::take(&mut reader.interrupted) {
            status = if reader.timed_out { 142 } else { 1 };
            break;
        }
        shell.run_pending_traps()?;
    }
    reader.finish();
    line.retain(|byte| *byte != 0);
    let Some(name) = name else {
        shell.assign(b"REPLY", &line)?;
        return Ok(status);
    };
    let ifs = shell.ifs();
    let start = line.iter().position(|byte| !ifs.contains(byte)).unwrap_or(line.len());
    let end = line.iter().rposition(|byte| !ifs.contains(byte)).map_or(start, |last| last + 1);
    shell.assign_target(name, &line[start..end])?;
    Ok(status)
}

/// A byte, and whether a backslash took its meaning away.
type Item = (u8, bool);
type Line = Vec<Item>;

/// Reads up to the delimiter or the count.
fn take(shell: &mut Shell, request: &Request) -> Exec<(Line, i32)> {
    let _watch = ChildWatch::over(&shell.jobs);
    let mut reader = Reader::new(request.fd, request.timeout);
    let mut line: Line = Vec::new();
    let utf8 = shell.utf8();
    let mut chars = 0;
    let status = loop {
        if request.count.is_some_and(|count| chars >= count) {
            break 0;
        }
        let Some(byte) = reader.next() else {
            if reader.interrupted {
                reader.interrupted = false;
                shell.run_pending_traps()?;
                continue;
            }
            break if reader.timed_out { 142 } else { 1 };
        };
        if byte == request.delimiter && !request.exact {
            break 0;
        }
        if byte == b'\\' && !request.raw {
            match reader.next() {
                Some(b'\n') => {}
                Some(next) => {
                    line.push((next, true));
                    chars += 1;
                }
                None => break 1,
            }
            continue;
        }
        if byte == 0 {
            continue;
        }
        line.push((byte, false));
        // A character of several bytes counts when its last one is there.
        if utf8 {
            let more = match byte {
                0xc2..=0xdf => 1,
                0xe0..=0xef => 2,
                0xf0..=0xf4 => 3,
                _ => 0,
            };
            for _ in 0..more {
                line.extend(reader.next().map(|byte| (byte, false)));
            }
        }
        chars += 1;
    };
    reader.finish();
    Ok((line, status))
}

fn bytes(line: &[Item]) -> Vec<u8> {
    line.iter().map(|(byte, _)| *byte).collect()
}

fn store(shell: &mut Shell, request: &Request, names: &[Vec<u8>], line: &Line) -> Exec<()> {
    let ifs = shell.ifs();
    if let Some(array) = &request.array {
        let fields =
            if request.exact && !line.is_empty() { vec![bytes(line)] } else { split_all(line, &ifs) };
        let array = shell.vars.resolve(array).into_owned();
        let item = |value| ArrayItem { key: None, append: false, value };
        return shell.assign_array(&array, fields.into_iter().map(item).collect(), false);
    }
    if names.is_empty() {
        return shell.assign(b"REPLY", &bytes(line));
    }
    if request.exact {
        shell.assign_target(&names[0], &bytes(line))?;
        for name in &names[1..] {
            shell.assign_target(name, b"")?;
        }
        return Ok(());
    }
    let mut rest: &[Item] = line;
    rest = skip_blanks(rest, &ifs);
    for name in &names[..names.len() - 1] {
        let (field, remaining) = next_field(rest, &ifs);
        shell.assign_target(name, &bytes(field))?;
        rest = remaining;
    }
    shell.assign_target(&names[names.len() - 1], &bytes(last_field(rest, &ifs)))
}

fn is_blank(item: &Item, ifs: &[u8]) -> bool {
    !item.1 && matches!(item.0, b' ' | b'\t' | b'\n') && ifs.contains(&item.0)
}

fn is_separator(item: &Item, ifs: &[u8]) -> bool {
    !item.1 && ifs.contains(&item.0)
}

fn skip_blanks<'l>(line: &'l [Item], ifs: &[u8]) -> &'l [Item] {
    let count = line.iter().take_while(|item| is_blank(item, ifs)).count();
    &line[count..]
}

/// The first field, and what follows its separator.
fn next_field<'l>(line: &'l [Item], ifs: &[u8]) -> (&'l [Item], &'l [Item]) {
    let end = line.iter().position(|item| is_separator(item, ifs)).unwrap_or(line.len());
    let (field, rest) = line.split_at(end);
    let mut rest = skip_blanks(rest, ifs);
    if rest.first().is_some_and(|item| is_separator(item, ifs)) {
        rest = skip_blanks(&rest[1..], ifs);
    }
    (field, rest)
}

/// The last variable gets all that is left, without the white space at its end, and without a separator that
/// only ends the last field.
fn last_field<'l>(line: &'l [Item], ifs: &[u8]) -> &'l [Item] {
    let (field, rest) = next_field(line, ifs);
    if rest.is_empty() {
        return field;
    }
    // As in bash, white space here goes even if a backslash was before it.
    let mut end = line.len();
    while end > 0 && is_blank(&(line[end - 1].0, false), ifs) {
        end -= 1;
    }
    &line[..end]
}

fn split_all(line: &Line, ifs: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = skip_blanks(line, ifs);
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let (field, remaining) = next_field(rest, ifs);
        fields.push(bytes(field));
        rest = remaining;
    }
    fields
}

/// Complains unless an indexed array can be made of a name.
fn check_array(shell: &Shell, command: &[u8], name: &[u8]) -> Result<(), i32> {
    if !crate::parser::is_assignment_name(name) {
        return Err(fail(shell, command, &[b"`", name, b"': not a valid identifier"], 1));
    }
    let Some(var) = shell.vars.get(name) else { return Ok(()) };
    if var.attrs.has(crate::vars::Attrs::READONLY) {
        shell.complain_parts(&[name, b": readonly variable"]);
        return Err(1);
    }
    if matches!(var.value, Value::Assoc(_)) {
        return Err(fail(shell, command, &[name, b": not an indexed array"], 1));
    }
    Ok(())
}

const MAPFILE_USAGE: &str =
    "mapfile [-d delim] [-n count] [-O origin] [-s count] [-t] [-u fd] [-C callback] [-c quantum] [array]";

pub fn mapfile(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let name = args[0].clone();
    let mut options = Options::new(args);
    let (mut delimiter, mut most, mut origin, mut skip, mut trim, mut fd) = (b'\n', 0, None, 0, false, 0);
    let (mut callback, mut quantum) = (None, 5000_i64);
    while let Some(letter) = options.next() {
        if letter == b't' {
            trim = true;
            continue;
        }
        if !b"dCnOsuc".contains(&letter) {
            return Ok(invalid_option(shell, &name, &[b'-', letter], MAPFILE_USAGE));
        }
        let Some(argument) = options.argument() else {
            fail(shell, &name, &[b"-", &[letter], b": option requires an argument"], 2);
            return Ok(super::usage(&name, MAPFILE_USAGE));
        };
        match letter {
            b'd' => delimiter = argument.first().copied().unwrap_or(0),
            b'C' => callback = Some(argument.to_vec()),
            _ => {
                let least = i64::from(letter == b'c');
                let Some(value) = number(argument).filter(|value| *value >= least) else {
                    let message: &[u8] = match letter {
                        b'O' => b": invalid array origin",
                        b'c' => b": invalid callback quantum",
                        b'u' => b": invalid file descriptor specification",
                        _ => b": invalid line count",
                    };
                    return Ok(fail(shell, &name, &[argument, message], 1));
                };
                match letter {
                    b'n' => most = value,
                    b'O' => origin = Some(value),
                    b's' => skip = value,
                    b'c' => quantum = value,
                    _ => fd = value as abi::Fd,
                }
            }
        }
    }
    let array = options.rest().first().cloned().unwrap_or_else(|| b"MAPFILE".to_vec());
    if abi::cloexec(fd).is_err() {
        let shown = fd.to_string();
        let message = b": invalid file descriptor: Bad file descriptor";
        return Ok(fail(shell, &name, &[shown.as_bytes(), message], 1));
    }
    if let Err(status) = check_array(shell, &name, &array) {
        return Ok(status);
    }
    let array = shell.vars.resolve(&array).into_owned();
    let mut lines = Indexed::default();
    if origin.is_some()
        && let Some(Value::Indexed(old)) = shell.vars.get(&array).map(|var| &var.value)
    {
        lines = old.clone();
    }
    shell.vars.entry(&array).value = Value::Indexed(lines);
    let mut reader = Reader::new(fd, None);
    if most == 0 && callback.is_none() {
        // All of it is ours: nothing has to stay for others.
        reader.block = 1 << 16;
    }
    let mut index = origin.unwrap_or(0);
    let mut taken = 0;
    while most == 0 || taken < most {
        let Some(line) = delimited(&mut reader, delimiter, trim) else { break };
        if skip > 0 {
            skip -= 1;
            continue;
        }
        taken += 1;
        if let Some(callback) = &callback
            && taken % quantum == 0
        {
            let shown = crate::expand::quote::backslash(&line);
            let text = [callback.as_slice(), b" ", index.to_string().as_bytes(), b" ", &shown].concat();
            let at = shell.line;
            shell.run_text(text, at)?;
        }
        if let Value::Indexed(list) = &mut shell.vars.entry(&array).value {
            list.insert(index, line);
        }
        index = index.saturating_add(1);
    }
    reader.finish();
    Ok(0)
}

fn delimited(reader: &mut Reader, delimiter: u8, trim: bool) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let found = reader.until(delimiter, &mut line);
    line.retain(|byte| *byte != 0);
    if found && !trim && delimiter != 0 {
        line.push(delimiter);
    }
    (found || !line.is_empty()).then_some(line)
}
