//! `xargs`: builds command lines from its input and runs them.

use toolkit::args::{Tool, bytes_of};
use toolkit::records::Records;
use toolkit::source::Source;
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
  -p, --interactive            prompt before running commands
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
    /// Where to ask before each command.
    terminal: Option<Fd>,
    exit_if_too_long: bool,
    /// What commands read instead of the list.
    null: Fd,
    running: usize,
    code: i32,
    /// Set when a command asked for the end.
    stop: bool,
}

/// The terminal, to ask on.
fn terminal() -> Result<Fd, i32> {
    let opened = abi::open(Dir::CWD, b"/dev/tty", open_flags::RDONLY | open_flags::CLOEXEC, 0);
    opened.map_err(|error| {
        complain("xargs", format_args!("failed to open /dev/tty for reading: {error}"));
        1
    })
}

/// Whether the next line that is typed begins with y.
fn says_yes(terminal: Fd) -> bool {
    let (mut first, mut byte) = (None, [0]);
    while let Ok(1) = abi::read(terminal, &mut byte) {
        if byte[0] == b'\n' {
            break;
        }
        first.get_or_insert(byte[0]);
    }
    matches!(first, Some(b'y' | b'Y'))
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
    let input = open_input(file.as_deref())?;
    let fed = job.feed(input);
    while job.running > 0 {
        job.reap();
    }
    fed.map(|()| job.code).map_err(|message| {
        complain("xargs", message);
        1
    })
}

/// Items that no command has taken yet, with what they amount to.
#[derive(Default)]
struct Waiting {
    items: Vec<Item>,
    bytes: usize,
    lines: usize,
}

impl Waiting {
    fn add(&mut self, item: Item) {
        self.bytes += item.text.len() + 1;
        self.lines += usize::from(item.ends_line);
        self.items.push(item);
    }

    fn take(&mut self, count: usize) -> Vec<Vec<u8>> {
        let taken: Vec<Item> = self.items.drain(..count).collect();
        self.bytes -= taken.iter().map(|item| item.text.len() + 1).sum::<usize>();
        self.lines -= taken.iter().filter(|item| item.ends_line).count();
        taken.into_iter().map(|item| item.text).collect()
    }
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
        terminal: None,
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
            'p' => {
                (job.verbose, job.terminal) = (true, Some(terminal()?));
            }
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

fn open_input(file: Option<&[u8]>) -> Result<Source, i32> {
    let Some(file) = file.filter(|file| *file != b"-") else { return Ok(Source::borrowed(0)) };
    Source::open(file).map_err(|error| {
        complain("xargs", format_args!("Cannot open input file {}: {error}", quote::word(file)));
        1
    })
}

impl Job {
    /// Reads the input and runs commands as soon as there is enough for one.
    fn feed(&mut self, input: Source) -> Result<(), String> {
        let mut records = Records::of(input, self.delimiter.unwrap_or(b'\n'));
        let mut waiting = Waiting::default();
        let (mut record, mut has_run, mut outcome) = (Vec::new(), false, Ok(()));
        while !self.stop && next_record(&mut records, &mut record, self.delimiter.is_none())? {
            let (mut items, mut is_end) = (Vec::new(), false);
            match self.delimiter {
                Some(delimiter) => {
                    let text = record.strip_suffix(&[delimiter]).unwrap_or(&record).to_vec();
                    items.push(Item { text, ends_line: true });
                }
                None => outcome = take_line(&record, self.replace.is_some(), &mut items),
            }
            is_end |= outcome.is_err();
            let end_word = self.end_word.as_ref().filter(|word| !word.is_empty() && self.delimiter.is_none());
            if let Some(at) = end_word.and_then(|end| items.iter().position(|item| item.text == *end)) {
                items.truncate(at);
                is_end = true;
            }
            items.into_iter().for_each(|item| waiting.add(item));
            while self.is_enough(&waiting) && !self.stop {
                has_run = true;
                if !self.run_some(&mut waiting) {
                    return Ok(());
                }
            }
            if is_end {
                break;
            }
        }
        while !waiting.items.is_empty() && !self.stop {
            has_run = true;
            if !self.run_some(&mut waiting) {
                return Ok(());
            }
        }
        let runs_once = outcome.is_ok() && !self.skip_if_empty && self.replace.is_none();
        if runs_once && !has_run && !self.stop {
            self.start(self.command.clone());
        }
        outcome
    }

    /// Whether a command could not take more than what is waiting.
    fn is_enough(&self, waiting: &Waiting) -> bool {
        let command: usize = self.command.iter().map(|word| word.len() + 1).sum();
        let some = !waiting.items.is_empty();
        some && (self.replace.is_some()
            || waiting.items.len() >= self.max_args
            || waiting.lines >= self.max_lines
            || command + waiting.bytes > self.max_chars)
    }

    /// Runs the next command; says whether its items fitted.
    fn run_some(&mut self, waiting: &mut Waiting) -> bool {
        if let Some(mark) = self.replace.clone() {
            for text in waiting.take(1) {
                let words = self.command.iter().map(|word| replaced(word, &mark, &text)).collect();
                self.start(words);
            }
            return true;
        }
        let Some(count) = self.batch(&waiting.items) else { return false };
        let words = self.command.iter().cloned().chain(waiting.take(count));
        self.start(words.collect());
        true
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
            let end = if self.terminal.is_some() { "?..." } else { "\n" };
            let _ = abi::write_all(2, (shown.join(" ") + end).as_bytes());
        }
        if self.terminal.is_some_and(|terminal| !says_yes(terminal)) {
            return;
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

/// The next record; a line that ends with a backslash together with the one after it.
fn next_record(records: &mut Records, record: &mut Vec<u8>, joins: bool) -> Result<bool, String> {
    record.clear();
    loop {
        let has_more = records.next_into(record).map_err(|error| format!("read error: {error}"))?;
        let line = record.strip_suffix(b"\n").unwrap_or(record);
        let backslashes = line.iter().rev().take_while(|byte| **byte == b'\\').count();
        if !has_more || !joins || backslashes % 2 == 0 || !record.ends_with(b"\n") {
            return Ok(!record.is_empty());
        }
    }
}

/// The items of a line: between blanks, with quotes and backslashes; the whole line when it is to replace something.
fn take_line(line: &[u8], whole_lines: bool, items: &mut Vec<Item>) -> Result<(), String> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    take_items(line, whole_lines, items)?;
    // A blank at its end joins a line with the next.
    let joins = !whole_lines && matches!(line.last(), Some(b' ' | b'\t'));
    if let Some(last) = items.last_mut() {
        last.ends_line = !joins;
    }
    Ok(())
}

fn take_items(line: &[u8], whole_lines: bool, items: &mut Vec<Item>) -> Result<(), String> {
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
        return Err(format!(
            "unmatched {kind} quote; by default quotes are special to xargs unless you use the -0 option"
        ));
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
