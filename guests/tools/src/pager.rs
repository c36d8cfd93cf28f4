//! `less` and `more`: text a screen at a time, where there is a screen; else all of it at once.

use crate::tty::{Key, Tty};
use toolkit::args::{Parsed, Refusal, Tool, bytes_of};
use toolkit::{Arguments, complain, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const LESS: Tool = Tool {
    name: "less",
    short: "aAb:B cCdeEfFgGh:iIj:JkKLmMnNo:O:p:P:qQrRsSt:T:uUVwWx:Xy:z:~",
    long: &[
        ("chop-long-lines", 'S'),
        ("LINE-NUMBERS", 'N'),
        ("line-numbers", 'n'),
        ("ignore-case", 'i'),
        ("IGNORE-CASE", 'I'),
        ("no-init", 'X'),
        ("quit-if-one-screen", 'F'),
        ("quit-at-eof", 'e'),
        ("QUIT-AT-EOF", 'E'),
        ("raw-control-chars", 'r'),
        ("RAW-CONTROL-CHARS", 'R'),
        ("squeeze-blank-lines", 's'),
    ],
    help: "\
Usage: less [OPTION]... [FILE]...
Show text a screen at a time.  Where standard output is no terminal, all of it
is written at once.

  -N  number the lines          -s  several empty lines become one
  -F  leave at once if it fits on one screen
  -X  leave the text on the screen at the end
  (other options of less are accepted, and ignored)

SPACE or f  the next screen     b  the one before     ENTER or j  a line on
k  a line back     g, G  the start, the end     /TEXT  search     n  again
q  leave     The arrow keys, Page Up, Page Down, Home and End work as well.

      --help     display this help and exit
      --version  output version information and exit
",
    misuse: 1,
};

const MORE: Tool = Tool {
    name: "more",
    short: "dlfcpsuen:0123456789",
    long: &[
        ("silent", 'd'),
        ("logical", 'f'),
        ("no-pause", 'l'),
        ("print-over", 'c'),
        ("clean-print", 'p'),
        ("squeeze", 's'),
        ("plain", 'u'),
        ("exit-on-eof", 'e'),
        ("lines=", 'n'),
    ],
    help: "\
Usage: more [OPTION]... FILE...
Show text a screen at a time.  Where standard output is no terminal, all of it
is written at once.

  -s, --squeeze  several empty lines become one
  (other options of more are accepted, and ignored)

SPACE  the next screen     ENTER  a line on     q  leave

      --help     display this help and exit
      --version  output version information and exit
",
    misuse: 1,
};

pub fn less(arguments: Arguments) -> i32 {
    let words: Vec<Vec<u8>> =
        bytes_of(arguments).into_iter().filter(|word| !word.starts_with(b"+")).collect();
    let parsed = match LESS.try_parse(words.clone()) {
        Ok(parsed) => parsed,
        Err(Refusal::Wrong(message)) => {
            let option = message.rsplit(['-', '\'']).find(|part| !part.trim().is_empty()).unwrap_or_default();
            let line = format!("There is no {option} option (\"less --help\" for help)\n");
            let _ = abi::write_all(2, line.as_bytes());
            // It goes on with what it understands.
            let operands = words.into_iter().filter(|word| word == b"-" || !word.starts_with(b"-")).collect();
            Parsed { options: Vec::new(), operands }
        }
        Err(other) => return LESS.answer(other),
    };
    let has = |wanted| parsed.options.iter().any(|(letter, _)| *letter == wanted);
    if parsed.operands.is_empty() && abi::isatty(0) {
        let _ = abi::write_all(2, b"Missing filename (\"less --help\" for help)\n");
        return 1;
    }
    let reader = Reader { name: "less", squeezes: has('s'), titles: false };
    reader.show(parsed.operands, has('N'), has('F'), !has('X'))
}

pub fn more(arguments: Arguments) -> i32 {
    let words: Vec<Vec<u8>> =
        bytes_of(arguments).into_iter().filter(|word| !word.starts_with(b"+")).collect();
    let parsed = match MORE.parse(words) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if parsed.operands.is_empty() && abi::isatty(0) {
        return MORE.wrong("bad usage");
    }
    let squeezes = parsed.options.iter().any(|(letter, _)| *letter == 's');
    // Without a screen even a single file has its name before it.
    let titles = parsed.operands.len() > usize::from(abi::isatty(1));
    let reader = Reader { name: "more", squeezes, titles };
    reader.show(parsed.operands, false, true, false)
}

struct Reader {
    name: &'static str,
    squeezes: bool,
    /// Whether each file's name comes before it.
    titles: bool,
}

impl Reader {
    fn feet(&self) -> [&'static str; 2] {
        match self.name {
            "more" => ["\x1b[7m--More--\x1b[m"; 2],
            _ => [":", "\x1b[7m(END)\x1b[m"],
        }
    }

    fn show(&self, operands: Vec<Vec<u8>>, numbers: bool, leaves: bool, restores: bool) -> i32 {
        let is_screen = abi::isatty(1);
        let mut text = Vec::new();
        for operand in toolkit::input::or_stdin(operands) {
            match self.read(&operand) {
                Ok(content) => {
                    if self.titles {
                        let line = b"::::::::::::::\n".as_slice();
                        text.extend_from_slice(&[line, &operand, b"\n", line].concat());
                    }
                    text.extend_from_slice(&content);
                }
                Err(message) => {
                    let _ = self.pass(&text);
                    text.clear();
                    let _ = abi::write_all(if self.name == "less" { 1 } else { 2 }, message.as_bytes());
                }
            }
        }
        if self.squeezes && is_screen {
            text = squeezed(&text);
        }
        if !is_screen {
            return self.pass(&text);
        }
        if leaves && fits(&text) {
            return self.pass(&text);
        }
        match Tty::open(restores) {
            None => self.pass(&text),
            Some(tty) => Screen::new(&text, numbers, tty, self.feet()).page(leaves && !restores),
        }
    }

    /// A file's content, or the line that says why it cannot be shown.
    fn read(&self, operand: &[u8]) -> Result<Vec<u8>, String> {
        let name = String::from_utf8_lossy(operand);
        if operand == b"-" {
            return files::read_fd(0).map_err(|error| format!("{}: {error}\n", self.name));
        }
        if abi::stat(Dir::CWD, operand, true).is_ok_and(|stat| stat.is_dir()) {
            return Err(match self.name {
                "less" => format!("{name} is a directory\n"),
                _ => format!("\n*** {name}: directory ***\n\n"),
            });
        }
        std::fs::read(files::path(operand)).map_err(Errno::from).map_err(|error| match self.name {
            "less" => format!("{name}: {error}\n"),
            _ => format!("more: cannot open {name}: {error}\n"),
        })
    }

    fn pass(&self, text: &[u8]) -> i32 {
        match abi::write_all(1, text) {
            Ok(()) => 0,
            Err(error) => {
                complain(self.name, format_args!("write error: {error}"));
                1
            }
        }
    }
}

/// Several empty lines become one.
fn squeezed(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut was_empty = false;
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let is_empty = line == b"\n";
        if !(is_empty && was_empty) {
            out.extend_from_slice(line);
        }
        was_empty = is_empty;
    }
    out
}

/// Whether a text is on one screen.
fn fits(text: &[u8]) -> bool {
    let (rows, columns) = abi::winsize(1).unwrap_or((24, 80));
    let lines = text.split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| height(line, usize::from(columns))).sum::<usize>() < usize::from(rows)
}

/// How many rows a line takes on a screen.
fn height(line: &[u8], columns: usize) -> usize {
    let mut column = 0usize;
    let mut escape = false;
    for char in String::from_utf8_lossy(line).trim_end_matches('\n').chars() {
        // Colours take no room.
        match char {
            '\x1b' => escape = true,
            _ if escape => escape = !char.is_ascii_alphabetic(),
            '\t' => column += 8 - column % 8,
            '\x08' => column = column.saturating_sub(1),
            char => column += unicode_width::UnicodeWidthChar::width(char).unwrap_or(0),
        }
    }
    column.div_ceil(columns.max(1)).max(1)
}

/// A text on a terminal.
struct Screen<'a> {
    lines: Vec<&'a [u8]>,
    numbers: bool,
    tty: Tty,
    /// The first line on the screen, and the first below it.
    top: usize,
    next: usize,
    search: Vec<u8>,
    /// What it says at the foot of the screen while there is more, and at the end.
    feet: [&'static str; 2],
    /// What to say there once instead.
    notice: Option<&'static str>,
}

impl<'a> Screen<'a> {
    fn new(text: &'a [u8], numbers: bool, tty: Tty, feet: [&'static str; 2]) -> Screen<'a> {
        let lines = text.split_inclusive(|&byte| byte == b'\n').collect();
        Screen { lines, numbers, tty, top: 0, next: 0, search: Vec::new(), feet, notice: None }
    }

    /// Rows for text.
    fn rows(&self) -> usize {
        self.tty.size().0.saturating_sub(1).max(1)
    }

    fn page(&mut self, leaves: bool) -> i32 {
        self.forward(self.rows());
        loop {
            let foot = self.feet[usize::from(self.next >= self.lines.len())];
            let shown = self.notice.take().unwrap_or(foot);
            self.prompt(shown.as_bytes());
            let key = self.tty.key();
            self.prompt(b"");
            match key {
                Key::Gone | Key::Char('q' | 'Q') | Key::Ctrl(b'C') => break,
                Key::Char(' ' | 'f') | Key::PageDown | Key::Ctrl(b'F' | b'V') => self.forward(self.rows()),
                Key::Enter | Key::Char('j') | Key::Down => self.forward(1),
                Key::Char('b') | Key::PageUp | Key::Ctrl(b'B') => self.back(self.rows()),
                Key::Char('k') | Key::Up => self.back(1),
                Key::Char('g') | Key::Home => self.go(0),
                Key::Char('G') | Key::End => self.end(),
                Key::Resize | Key::Ctrl(b'L') => self.go(self.top),
                Key::Char('/') => {
                    self.ask();
                    self.find();
                }
                Key::Char('n') => self.find(),
                _ => {}
            }
            if leaves && self.next >= self.lines.len() {
                break;
            }
        }
        0
    }

    fn line(&self, at: usize) -> Vec<u8> {
        let number = if self.numbers { format!("{:>7} ", at + 1) } else { String::new() };
        let mut line = [number.as_bytes(), self.lines[at]].concat();
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        line
    }

    fn height(&self, at: usize) -> usize {
        height(&self.line(at), self.tty.size().1)
    }

    /// Shows as many lines more as fill so many rows, at least one.
    fn forward(&mut self, rows: usize) {
        let (mut left, screen) = (rows, self.rows());
        while left > 0 && self.next < self.lines.len() {
            let line = self.line(self.next);
            let height = self.height(self.next);
            if height > left && left < rows {
                break;
            }
            self.tty.put(&line);
            left = left.saturating_sub(height);
            self.next += 1;
        }
        self.top = self.first_above(self.next, screen);
    }

    /// The first of the lines that fill so many rows above a line.
    fn first_above(&self, below: usize, rows: usize) -> usize {
        let (mut first, mut left) = (below, rows);
        while first > 0 && (self.height(first - 1) <= left || first == below) {
            left = left.saturating_sub(self.height(first - 1));
            first -= 1;
        }
        first
    }

    fn back(&mut self, rows: usize) {
        self.go(self.first_above(self.top, rows));
    }

    fn end(&mut self) {
        self.go(self.first_above(self.lines.len(), self.rows()));
    }

    /// Shows the screen that begins with a line.
    fn go(&mut self, line: usize) {
        self.next = line;
        self.tty.put(b"\x1b[H\x1b[J");
        self.forward(self.rows());
        self.top = line;
    }

    fn prompt(&self, text: &[u8]) {
        self.tty.put(&[b"\r\x1b[K", text].concat());
    }

    fn ask(&mut self) {
        let mut text = String::new();
        loop {
            self.prompt(format!("/{text}").as_bytes());
            match self.tty.key() {
                Key::Gone | Key::Enter => break,
                Key::Escape | Key::Ctrl(b'C') => return,
                Key::Backspace => drop(text.pop()),
                Key::Char(char) => text.push(char),
                _ => {}
            }
        }
        if !text.is_empty() {
            self.search = text.into_bytes();
        }
    }

    fn find(&mut self) {
        let mut lines = self.top + 1..self.lines.len();
        let found = lines.find(|&at| memchr::memmem::find(self.lines[at], &self.search).is_some());
        match found.filter(|_| !self.search.is_empty()) {
            Some(line) => self.go(line),
            None => self.notice = Some("\x1b[7mPattern not found\x1b[m"),
        }
    }
}
