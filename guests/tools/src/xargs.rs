//! `xargs`: builds command lines from its input and runs them.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, program, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, FdMap, Spawn, Status, WaitFlags, Who, open_flags};

const TOOL: Tool = Tool {
    name: "xargs",
    short: "+0a:E:e::i::I:l::L:n:prs:txP:d:o",
    long: &[
        ("null", '0'),
        ("arg-file=", 'a'),
        ("delimiter=", 'd'),
        ("eof[=", 'e'),
        ("replace[=", 'i'),
        ("max-lines[=", 'l'),
        ("max-args=", 'n'),
        ("open-tty", 'o'),
        ("max-procs=", 'P'),
        ("no-run-if-empty", 'r'),
        ("max-chars=", 's'),
        ("verbose", 't'),
        ("exit", 'x'),
        ("interactive", 'p'),
        ("process-slot-var=", 'V'),
        ("show-limits", 'S'),
    ],
    help: "\
Usage: xargs [OPTION]... COMMAND [INITIAL-ARGS]...
Run COMMAND with arguments INITIAL-ARGS and more arguments read from input.

  -0, --null                   items are separated by a null, not whitespace
  -a, --arg-file=FILE          read arguments from FILE, not standard input
  -d, --delimiter=CHARACTER    items in input stream are separated by CHARACTER
  -E END                       set logical EOF string
  -I R                         replace R in INITIAL-ARGS with names read from input
  -L, --max-lines=MAX-LINES    use at most MAX-LINES non-blank input lines per command
  -n, --max-args=MAX-ARGS      use at most MAX-ARGS arguments per command line
  -P, --max-procs=MAX-PROCS    run at most MAX-PROCS processes at a time
  -r, --no-run-if-empty        if there are no arguments, then do not run COMMAND
  -s, --max-chars=MAX-CHARS    limit length of command line to MAX-CHARS
  -t, --verbose                print commands before executing them
  -x, --exit                   exit if the size (see -s) is exceeded
      --show-limits            show limits on command-line length
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// The longest command line, as GNU's has it by default.
const LONGEST: usize = 131_072;

struct Job {
    command: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
    delimiter: Option<u8>,
    end_word: Option<Vec<u8>>,
    replace: Option<Vec<u8>>,
    max_args: usize,
    max_lines: usize,
    max_chars: usize,
    max_procs: usize,
    skip_if_empty: bool,
    verbose: bool,
    exit_if_too_long: bool,
    /// What commands read instead of the list.
    null: Fd,
    running: usize,
    code: i32,
    /// Set when a command asked for the end.
    stop: bool,
}

/// An item, and whether its line ended with it.
struct Item {
    text: Vec<u8>,
    ends_line: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let (mut job, file) = prepare(arguments)?;
    let input = read_input(file.as_deref())?;
    let items = job.items(&input)?;
    job.run_all(&items);
    while job.running > 0 {
        job.reap();
    }
    Ok(job.code)
}

fn prepare(arguments: Vec<Vec<u8>>) -> Result<(Job, Option<Vec<u8>>), i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut job = Job {
        command: if parsed.operands.is_empty() { vec![b"echo".to_vec()] } else { parsed.operands },
        environment: abi::environ(),
        delimiter: None,
        end_word: None,
        replace: None,
        max_args: usize::MAX,
        max_lines: usize::MAX,
        max_chars: LONGEST,
        max_procs: 1,
        skip_if_empty: false,
        verbose: false,
        exit_if_too_long: false,
        null: -1,
        running: 0,
        code: 0,
        stop: false,
    };
    let (mut file, mut shows_limits) = (None, false);
    for (letter, text) in parsed.options {
        match letter {
            '0' => job.delimiter = Some(0),
            'd' => job.delimiter = Some(delimiter(&text.unwrap_or_default())?),
            'a' => file = text,
            'E' | 'e' => job.end_word = text,
            'I' | 'i' => {
                job.replace = Some(text.unwrap_or_else(|| b"{}".to_vec()));
                (job.max_args, job.max_lines, job.exit_if_too_long) = (usize::MAX, usize::MAX, true);
            }
            'L' | 'l' => {
                job.max_lines = number(&text.unwrap_or_else(|| b"1".to_vec()), letter, 1)?;
                (job.max_args, job.replace) = (usize::MAX, None);
                job.exit_if_too_long |= letter == 'l';
            }
            'n' => {
                job.max_args = number(&text.unwrap_or_default(), 'n', 1)?;
                job.max_lines = usize::MAX;
                // With -I, one argument at a time is no change.
                if job.max_args > 1 {
                    job.replace = None;
                }
            }
            'P' => {
                job.max_procs = match number(&text.unwrap_or_default(), 'P', 0)? {
                    0 => usize::MAX,
                    most => most,
                }
            }
            's' => job.max_chars = number(&text.unwrap_or_default(), 's', 1)?.min(LONGEST),
            'r' => job.skip_if_empty = true,
            't' => job.verbose = true,
            'S' => shows_limits = true,
            'x' => job.exit_if_too_long = true,
            'p' => return Err(TOOL.wrong("there is no terminal to ask on: -p cannot be used here")),
            _ => {}
        }
    }
    if shows_limits {
        job.show_limits();
    }
    if file.is_none() {
        job.null =
            abi::open(Dir::CWD, b"/dev/null", open_flags::RDONLY | open_flags::CLOEXEC, 0).unwrap_or(-1);
    }
    Ok((job, file))
}

impl Job {
    fn show_limits(&self) {
        // What a program is given at its start, and what the standard sets aside of it.
        const SYSTEM: usize = 2 * 1024 * 1024;
        const SET_ASIDE: usize = 2048;
        let environment: usize = self.environment.iter().map(|pair| pair.len() + 1).sum();
        let limit = SYSTEM - SET_ASIDE;
        let text = format!(
            "Your environment variables take up {environment} bytes\n\
             POSIX upper limit on argument length (this system): {}\n\
             POSIX smallest allowable upper limit on argument length (all systems): 4096\n\
             Maximum length of command we could actually use: {}\n\
             Size of command buffer we are actually using: {}\n\
             Maximum parallelism (--max-procs must be no greater): {}\n",
            limit.saturating_sub(environment),
            limit.saturating_sub(2 * environment),
            self.max_chars,
            i32::MAX
        );
        let _ = abi::write_all(2, text.as_bytes());
    }
}

fn number(text: &[u8], letter: char, least: usize) -> Result<usize, i32> {
    let shown = String::from_utf8_lossy(text);
    match shown.parse::<i64>() {
        Err(_) => Err(TOOL.wrong(format_args!("invalid number \"{shown}\" for -{letter} option"))),
        Ok(value) => match usize::try_from(value).ok().filter(|value| *value >= least) {
            Some(value) => Ok(value),
            None => Err(TOOL.wrong(format_args!("value {value} for -{letter} option should be >= {least}"))),
        },
    }
}

fn delimiter(text: &[u8]) -> Result<u8, i32> {
    match text {
        [byte] => Ok(*byte),
        b"\\n" => Ok(b'\n'),
        b"\\t" => Ok(b'\t'),
        b"\\r" => Ok(b'\r'),
        b"\\0" => Ok(0),
        b"\\\\" => Ok(b'\\'),
        [b'\\', b'x', digits @ ..] => from_digits(digits, 16),
        [b'\\', digits @ ..] => from_digits(digits, 8),
        _ => {
            let text = String::from_utf8_lossy(text);
            complain(
                "xargs",
                format_args!(
                    "Invalid input delimiter specification {text}: the delimiter must be either a single character or an escape sequence starting with \\."
                ),
            );
            Err(1)
        }
    }
}

fn from_digits(digits: &[u8], radix: u32) -> Result<u8, i32> {
    let text = String::from_utf8_lossy(digits);
    u8::from_str_radix(&text, radix).map_err(|_| {
        complain("xargs", format_args!("Invalid escape sequence \\{text} in input delimiter specification."));
        1
    })
}

fn read_input(file: Option<&[u8]>) -> Result<Vec<u8>, i32> {
    let fd = match file.filter(|file| *file != b"-") {
        None => 0,
        Some(file) => {
            abi::open(Dir::CWD, file, open_flags::RDONLY | open_flags::CLOEXEC, 0).map_err(|error| {
                complain("xargs", format_args!("Cannot open input file {}: {error}", quote::word(file)));
                1
            })?
        }
    };
    let (mut input, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    loop {
        match abi::read(fd, &mut buffer) {
            Ok(0) => return Ok(input),
            Ok(n) => input.extend_from_slice(&buffer[..n]),
            Err(Errno::INTR) => {}
            Err(error) => {
                complain("xargs", format_args!("read error: {error}"));
                return Err(1);
            }
        }
    }
}

impl Job {
    fn items(&self, input: &[u8]) -> Result<Vec<Item>, i32> {
        let mut items = match self.delimiter {
            Some(delimiter) => {
                let mut parts: Vec<&[u8]> = input.split(|&byte| byte == delimiter).collect();
                if parts.last().is_some_and(|last| last.is_empty()) {
                    parts.pop();
                }
                parts.into_iter().map(|part| Item { text: part.to_vec(), ends_line: true }).collect()
            }
            None => quoted_items(input, self.replace.is_some())?,
        };
        if let (Some(end), None) = (self.end_word.as_ref().filter(|word| !word.is_empty()), self.delimiter)
            && let Some(at) = items.iter().position(|item| item.text == *end)
        {
            items.truncate(at);
        }
        Ok(items)
    }

    fn run_all(&mut self, items: &[Item]) {
        if let Some(mark) = self.replace.clone() {
            for item in items {
                let words = self.command.iter().map(|word| replaced(word, &mark, &item.text)).collect();
                self.start(words);
                if self.stop {
                    return;
                }
            }
            return;
        }
        if items.is_empty() && !self.skip_if_empty {
            return self.start(self.command.clone());
        }
        let mut rest = items;
        while !rest.is_empty() && !self.stop {
            let Some(count) = self.batch(rest) else { return };
            let words =
                self.command.iter().cloned().chain(rest[..count].iter().map(|item| item.text.clone()));
            self.start(words.collect());
            rest = &rest[count..];
        }
    }

    /// How many items the next command takes; `None` when one does not fit.
    fn batch(&mut self, items: &[Item]) -> Option<usize> {
        let mut bytes: usize = self.command.iter().map(|word| word.len() + 1).sum();
        let (mut count, mut lines) = (0, 0);
        for item in items {
            bytes += item.text.len() + 1;
            if bytes > self.max_chars {
                if count == 0
                    || self.exit_if_too_long && (self.max_args, self.max_lines) != (usize::MAX, usize::MAX)
                {
                    complain("xargs", "argument line too long");
                    self.code = 1;
                    return None;
                }
                break;
            }
            count += 1;
            lines += usize::from(item.ends_line);
            if count >= self.max_args || lines >= self.max_lines {
                break;
            }
        }
        Some(count)
    }

    fn start(&mut self, words: Vec<Vec<u8>>) {
        while self.running >= self.max_procs {
            self.reap();
        }
        if self.stop {
            return;
        }
        if self.verbose {
            let shown: Vec<String> = words.iter().map(|word| quote::for_shell(word)).collect();
            let _ = abi::write_all(2, (shown.join(" ") + "\n").as_bytes());
        }
        let map = [FdMap { to: 0, from: self.null }];
        let fds = if self.null >= 0 { map.as_slice() } else { &[] };
        match program::spawn(&words, &self.environment, Spawn { fds, ..Spawn::default() }) {
            Ok(_) => self.running += 1,
            Err(error) => {
                complain("xargs", format_args!("{}: {error}", String::from_utf8_lossy(&words[0])));
                self.code = program::code_for(error);
                self.stop = true;
            }
        }
    }

    /// Waits for a command to end, and takes note of how.
    fn reap(&mut self) {
        let status = match abi::wait(Who::Any, WaitFlags::default()) {
            Ok(Some((_, status))) => status,
            Ok(None) | Err(Errno::INTR) => return,
            Err(_) => {
                self.running = 0;
                return;
            }
        };
        self.running -= 1;
        self.note(status);
    }

    fn note(&mut self, status: Status) {
        let name = String::from_utf8_lossy(&self.command[0]).into_owned();
        match (status.code(), status.signal()) {
            (Some(0), _) => {}
            (Some(255), _) => {
                complain("xargs", format_args!("{name}: exited with status 255; aborting"));
                (self.code, self.stop) = (124, true);
            }
            (Some(_), _) if self.code == 0 => self.code = 123,
            (_, Some(signal)) => {
                complain("xargs", format_args!("{name}: terminated by signal {signal}"));
                (self.code, self.stop) = (125, true);
            }
            _ => {}
        }
    }
}

/// Items between blanks, with quotes and backslashes; whole lines when they are to replace something.
fn quoted_items(input: &[u8], whole_lines: bool) -> Result<Vec<Item>, i32> {
    let mut items = Vec::new();
    for line in input.split(|&byte| byte == b'\n').scan(input, continued_lines).flatten() {
        let before = items.len();
        take_items(&line, whole_lines, &mut items)?;
        // A blank at its end joins a line with the next.
        let joins = !whole_lines && matches!(line.last(), Some(b' ' | b'\t'));
        if let Some(last) = items[before..].last_mut() {
            last.ends_line = !joins;
        }
    }
    Ok(items)
}

/// Lines, one that ends with a backslash together with the next.
fn continued_lines(rest: &mut &[u8], _line: &[u8]) -> Option<Option<Vec<u8>>> {
    if rest.is_empty() {
        return Some(None);
    }
    let mut escaped = false;
    let end = rest.iter().position(|&byte| {
        let ends = byte == b'\n' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    let line = rest[..end.unwrap_or(rest.len())].to_vec();
    *rest = end.map_or(b"", |end| &rest[end + 1..]);
    Some(Some(line))
}

fn take_items(line: &[u8], whole_lines: bool, items: &mut Vec<Item>) -> Result<(), i32> {
    let mut word: Option<Vec<u8>> = None;
    let mut mark = None;
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        match (byte, mark) {
            (byte, Some(open)) if byte == open => mark = None,
            (byte, Some(_)) => word.get_or_insert_default().push(byte),
            (b'\'' | b'"', None) => {
                mark = Some(byte);
                word.get_or_insert_default();
            }
            (b'\\', None) => word.get_or_insert_default().extend(bytes.next()),
            (b' ' | b'\t', None) if !whole_lines || word.is_none() => {
                items.extend(word.take().map(|text| Item { text, ends_line: false }));
            }
            (byte, None) => word.get_or_insert_default().push(byte),
        }
    }
    if let Some(open) = mark {
        let kind = if open == b'"' { "double" } else { "single" };
        complain(
            "xargs",
            format_args!(
                "unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option"
            ),
        );
        return Err(1);
    }
    items.extend(word.map(|text| Item { text, ends_line: false }));
    Ok(())
}

fn replaced(word: &[u8], mark: &[u8], text: &[u8]) -> Vec<u8> {
    let mut result = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.windows(mark.len().max(1)).position(|window| window == mark) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(text);
        rest = &rest[at + mark.len()..];
    }
    result.extend_from_slice(rest);
    result
}
