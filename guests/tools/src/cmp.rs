//! `cmp`: where two files begin to differ, byte by byte.

use std::io::Read;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::size::Scale;
use toolkit::{Arguments, complain, files, quote};
use wardian_abi::Errno;

const TOOL: Tool = Tool {
    name: "cmp",
    short: "bci:ln:sv",
    long: &[
        ("print-bytes", 'b'),
        ("ignore-initial=", 'i'),
        ("verbose", 'l'),
        ("bytes=", 'n'),
        ("quiet", 's'),
        ("silent", 's'),
    ],
    help: "\
Usage: cmp [OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]
Compare two files byte by byte.

The optional SKIP1 and SKIP2 specify the number of bytes to skip
at the beginning of each file (zero by default).

  -b, --print-bytes          print differing bytes
  -i, --ignore-initial=SKIP         skip first SKIP bytes of both inputs
  -i, --ignore-initial=SKIP1:SKIP2  skip first SKIP1 bytes of FILE1 and
                                      first SKIP2 bytes of FILE2
  -l, --verbose              output byte numbers and differing byte values
  -n, --bytes=LIMIT          compare at most LIMIT bytes
  -s, --quiet, --silent      suppress all normal output
      --help                 display this help and exit
      --version              output version information and exit

If a FILE is '-' or missing, read standard input.
Exit status is 0 if inputs are the same, 1 if different, 2 if trouble.
",
    misuse: 2,
};

struct Options {
    shows_bytes: bool,
    lists_all: bool,
    silent: bool,
    limit: u64,
    skip: [u64; 2],
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options =
        Options { shows_bytes: false, lists_all: false, silent: false, limit: u64::MAX, skip: [0, 0] };
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'b' | 'c' => options.shows_bytes = true,
            'l' => options.lists_all = true,
            's' => options.silent = true,
            'n' => options.limit = amount(&text, "--bytes")?,
            'i' => {
                let mut parts = text.splitn(2, |&byte| byte == b':');
                let first = amount(parts.next().unwrap_or_default(), "--ignore-initial")?;
                let second = parts.next().map(|part| amount(part, "--ignore-initial")).transpose()?;
                options.skip = [first, second.unwrap_or(first)];
            }
            _ => {}
        }
    }
    if options.lists_all && options.silent {
        return Err(TOOL.wrong("options -l and -s are incompatible"));
    }
    let operands = parsed.operands;
    if operands.is_empty() {
        return Err(TOOL.wrong("missing operand after 'cmp'"));
    }
    if let Some(extra) = operands.get(4) {
        return Err(TOOL.wrong(format_args!("extra operand {}", quote::plain_word(extra))));
    }
    for (at, text) in operands.iter().skip(2).enumerate() {
        options.skip[at] = amount(text, "--ignore-initial")?;
    }
    let second = operands.get(1).map_or(b"-".as_slice(), Vec::as_slice);
    options.compare(&operands[0], second)
}

fn amount(text: &[u8], option: &str) -> Result<u64, i32> {
    match Scale::parse(text) {
        Some(Scale::Blocks(size, _)) if text[0].is_ascii_digit() => {
            Ok(u64::try_from(size).unwrap_or(u64::MAX))
        }
        _ if text.iter().all(|byte| *byte == b'0') && !text.is_empty() => Ok(0),
        _ => Err(TOOL.wrong(format_args!("invalid {option} value {}", quote::plain_word(text)))),
    }
}

impl Options {
    /// Says that a file cannot be read, unless nothing is to be said; the exit code.
    fn unreadable(&self, path: &[u8], error: std::io::Error) -> i32 {
        if !self.silent {
            complain("cmp", format_args!("{}: {}", quote::if_needed(path), Errno::from(error)));
        }
        2
    }

    fn compare(&self, first: &[u8], second: &[u8]) -> Result<i32, i32> {
        let (mut left, mut right) = (self.open(first, 0)?, self.open(second, 1)?);
        let mut out = Out::new("cmp");
        let width = self.number_width([&left, &right]);
        let (mut place, mut line, mut differ) = (0_u64, 1_u64, false);
        let (mut a, mut b) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        while place < self.limit {
            let most = usize::try_from(self.limit - place).unwrap_or(usize::MAX).min(a.len());
            let left_count =
                fill(&mut left, &mut a[..most]).map_err(|error| self.unreadable(first, error))?;
            let right_count =
                fill(&mut right, &mut b[..most]).map_err(|error| self.unreadable(second, error))?;
            let count = left_count.min(right_count);
            for at in 0..count {
                if a[at] != b[at] {
                    differ = true;
                    if self.silent {
                        return Ok(1);
                    }
                    let number = place + at as u64 + 1;
                    if !self.lists_all {
                        self.report(&mut out, [first, second], number, line, a[at], b[at]);
                        return Ok(1);
                    }
                    self.list(&mut out, format!("{number:>width$}"), a[at], b[at]);
                }
                line += u64::from(a[at] == b'\n');
            }
            place += count as u64;
            if left_count != right_count {
                let shorter = if left_count < right_count { first } else { second };
                let ends_line = count > 0 && a[count - 1] == b'\n' || place == 0;
                self.report_end(shorter, place, line, ends_line);
                return Ok(1);
            }
            if count == 0 {
                break;
            }
        }
        Ok(i32::from(differ))
    }

    fn open(&self, path: &[u8], at: usize) -> Result<std::fs::File, i32> {
        let place: &[u8] = if path == b"-" { b"/dev/stdin" } else { path };
        let mut file =
            std::fs::File::open(files::path(place)).map_err(|error| self.unreadable(path, error))?;
        std::io::copy(&mut file.by_ref().take(self.skip[at]), &mut std::io::sink())
            .map_err(|error| self.unreadable(path, error))?;
        Ok(file)
    }

    /// As wide as the largest number there can be.
    fn number_width(&self, files: [&std::fs::File; 2]) -> usize {
        let sizes = files.iter().zip(self.skip).filter_map(|(file, skip)| {
            let metadata = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
            Some(metadata.len().saturating_sub(skip))
        });
        sizes.fold(self.limit, u64::min).to_string().len()
    }

    fn report(&self, out: &mut Out, names: [&[u8]; 2], number: u64, line: u64, a: u8, b: u8) {
        let [first, second] = names.map(quote::if_needed);
        let unit = if speaks_posix() { "char" } else { "byte" };
        match self.shows_bytes {
            false => out.put(format!("{first} {second} differ: {unit} {number}, line {line}\n")),
            true => out.put(format!(
                "{first} {second} differ: byte {number}, line {line} is {a:3o} {} {b:3o} {}\n",
                visible(a),
                visible(b)
            )),
        }
    }

    fn list(&self, out: &mut Out, number: String, a: u8, b: u8) {
        match self.shows_bytes {
            false => out.put(format!("{number} {a:3o} {b:3o}\n")),
            true => out.put(format!("{number} {a:3o} {:<4} {b:3o} {}\n", visible(a), visible(b))),
        }
    }

    fn report_end(&self, shorter: &[u8], place: u64, line: u64, ends_line: bool) {
        if self.silent {
            return;
        }
        let name = quote::if_needed(shorter);
        let place = match (place, self.lists_all, ends_line) {
            (0, _, _) => format!("EOF on {name} which is empty"),
            (place, true, _) => format!("EOF on {name} after byte {place}"),
            (place, _, true) => format!("EOF on {name} after byte {place}, line {}", line - 1),
            (place, _, false) => format!("EOF on {name} after byte {place}, in line {line}"),
        };
        complain("cmp", place);
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &mut std::fs::File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A byte as `cat -v` shows it.
fn visible(byte: u8) -> String {
    let low = byte & 0x7f;
    let meta = if byte >= 0x80 { "M-" } else { "" };
    match low {
        0x7f => format!("{meta}^?"),
        0..0x20 => format!("{meta}^{}", char::from(low + 0x40)),
        _ => format!("{meta}{}", char::from(low)),
    }
}

/// Whether messages are to be in the words that POSIX prescribes.
fn speaks_posix() -> bool {
    let names = ["LC_ALL", "LC_MESSAGES", "LANG"];
    let named = names.iter().filter_map(|name| std::env::var(name).ok()).find(|value| !value.is_empty());
    named.is_none_or(|locale| locale == "C" || locale == "POSIX")
}
