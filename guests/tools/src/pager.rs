//! `less` and `more`: text a screen at a time, where there is a screen; else all of it at once.

use toolkit::args::{Parsed, Refusal, Tool, bytes_of};
use toolkit::{Arguments, complain, files};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

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
  (other options of less are accepted, and ignored)

SPACE or f  the next screen     b  the one before     ENTER or j  a line on
k  a line back     g, G  the start, the end     /TEXT  search     n  again
q  leave

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
    reader.show(parsed.operands, has('N'), has('F'))
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
    reader.show(parsed.operands, false, true)
}

/// Bits of a terminal's `c_lflag`: read by lines, show what is typed.
const ICANON: u32 = 0o2;
const ECHO: u32 = 0o10;

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

    fn show(&self, operands: Vec<Vec<u8>>, numbers: bool, leaves: bool) -> i32 {
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
        let keys =
            if is_screen { abi::open(Dir::CWD, b"/dev/tty", open_flags::RDONLY, 0).ok() } else { None };
        match keys {
            None => self.pass(&text),
            Some(keys) => Screen::new(&text, numbers, keys, self.feet()).page(leaves),
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

/// A text on a terminal.
struct Screen<'a> {
    lines: Vec<&'a [u8]>,
    numbers: bool,
    keys: Fd,
    rows: usize,
    /// The first line that has not been shown.
    next: usize,
    search: Vec<u8>,
    /// What it says at the foot of the screen while there is more, and at the end.
    feet: [&'static str; 2],
    /// What to say there once instead.
    notice: Option<&'static str>,
}

impl<'a> Screen<'a> {
    fn new(text: &'a [u8], numbers: bool, keys: Fd, feet: [&'static str; 2]) -> Screen<'a> {
        let lines = text.split_inclusive(|&byte| byte == b'\n').collect();
        let rows = abi::winsize(1).map_or(24, |(rows, _)| usize::from(rows)).max(2) - 1;
        Screen { lines, numbers, keys, rows, next: 0, search: Vec::new(), feet, notice: None }
    }

    fn page(&mut self, leaves: bool) -> i32 {
        self.forward(self.rows);
        if leaves && self.next >= self.lines.len() {
            return 0;
        }
        let Ok(usual) = abi::tcgetattr(self.keys) else {
            self.forward(usize::MAX);
            return 0;
        };
        let mut raw = usual;
        raw.local &= !(ICANON | ECHO);
        let _ = abi::tcsetattr(self.keys, &raw, false);
        loop {
            let foot = self.feet[usize::from(self.next >= self.lines.len())];
            let shown = self.notice.take().unwrap_or(foot);
            self.prompt(shown.as_bytes());
            let key = self.key();
            self.prompt(b"");
            match key {
                None | Some(b'q' | b'Q' | 3) => break,
                Some(b' ' | b'f') => self.forward(self.rows),
                Some(b'\n' | b'\r' | b'j') => self.forward(1),
                Some(b'b') => self.back(self.rows),
                Some(b'k') => self.back(1),
                Some(b'g') => self.go(0),
                Some(b'G') => self.go(self.lines.len().saturating_sub(self.rows)),
                Some(b'/') => {
                    self.ask();
                    self.find();
                }
                Some(b'n') => self.find(),
                Some(_) => {}
            }
            if leaves && self.next >= self.lines.len() {
                break;
            }
        }
        let _ = abi::tcsetattr(self.keys, &usual, false);
        0
    }

    fn forward(&mut self, count: usize) {
        let end = self.next.saturating_add(count).min(self.lines.len());
        let mut out = Vec::new();
        for (at, line) in self.lines[self.next..end].iter().enumerate() {
            if self.numbers {
                out.extend(format!("{:>7} ", self.next + at + 1).bytes());
            }
            out.extend_from_slice(line);
        }
        self.next = end;
        let _ = abi::write_all(1, &out);
    }

    fn back(&mut self, count: usize) {
        self.go(self.next.saturating_sub(self.rows).saturating_sub(count));
    }

    /// Shows the screen that begins with a line.
    fn go(&mut self, line: usize) {
        self.next = line;
        let _ = abi::write_all(1, b"\x1b[H\x1b[J");
        self.forward(self.rows);
    }

    fn prompt(&self, text: &[u8]) {
        let _ = abi::write_all(1, &[b"\r\x1b[K", text].concat());
    }

    fn key(&self) -> Option<u8> {
        let mut byte = [0];
        loop {
            match abi::read(self.keys, &mut byte) {
                Ok(1) => return Some(byte[0]),
                Err(Errno::INTR) => {}
                _ => return None,
            }
        }
    }

    fn ask(&mut self) {
        let mut text = Vec::new();
        loop {
            self.prompt(&[b"/", text.as_slice()].concat());
            match self.key() {
                None | Some(b'\n' | b'\r') => break,
                Some(8 | 127) => {
                    text.pop();
                }
                Some(byte) => text.push(byte),
            }
        }
        if !text.is_empty() {
            self.search = text;
        }
    }

    fn find(&mut self) {
        let from = self.next.saturating_sub(self.rows) + 1;
        let found =
            (from..self.lines.len()).find(|&at| memchr::memmem::find(self.lines[at], &self.search).is_some());
        match found.filter(|_| !self.search.is_empty()) {
            Some(line) => self.go(line),
            None => self.notice = Some("\x1b[7mPattern not found\x1b[m"),
        }
    }
}
