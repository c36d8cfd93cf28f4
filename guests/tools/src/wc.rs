//! `wc`: counts lines, words, characters and bytes.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, input, quote};
use unicode_width::UnicodeWidthChar;
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, open_flags};

const TOOL: Tool = Tool {
    name: "wc",
    short: "clLmw",
    long: &[
        ("bytes", 'c'),
        ("chars", 'm'),
        ("lines", 'l'),
        ("words", 'w'),
        ("files0-from=", 'f'),
        ("max-line-length", 'L'),
    ],
    help: "\
Usage: wc [OPTION]... [FILE]...
  or:  wc [OPTION]... --files0-from=F
Print how many lines, words and bytes each FILE has, and the sum of several.
With no FILE, or when FILE is -, read standard input.

  -c, --bytes            print the number of bytes
  -m, --chars            print the number of characters
  -l, --lines            print the number of newlines
      --files0-from=F    read the files whose names, each with a NUL after it,
                           are in F
  -L, --max-line-length  print the width of the widest line
  -w, --words            print the number of words
      --help             display this help and exit
      --version          output version information and exit
",
    misuse: 1,
};

/// In the order they are printed in.
const LETTERS: [char; 5] = ['l', 'w', 'm', 'c', 'L'];

/// Counts in the same order.
type Counts = [u64; 5];

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let has = |letter| parsed.options.iter().any(|(other, _)| *other == letter);
    let mut shown = LETTERS.map(has);
    if shown == [false; 5] {
        shown = LETTERS.map(|letter| "lwc".contains(letter));
    }
    let list =
        parsed.options.iter().rev().find(|(letter, _)| *letter == 'f').and_then(|(_, list)| list.clone());
    let stdin_alone = list.is_none() && parsed.operands.is_empty();
    let (operands, is_listed_late) = operands(parsed.operands, list)?;
    let width = if is_listed_late { 1 } else { number_width(&operands, shown) };
    let (mut out, mut code, mut total) = (Out::new("wc"), 0, Counts::default());
    for operand in &operands {
        let (counts, error) = count_operand(operand, shown);
        if let Some(error) = error {
            out.flush();
            complain("wc", format_args!("{}: {error}", quote::if_needed(operand)));
            code = 1;
        }
        let Some(counts) = counts else { continue };
        for (at, (sum, count)) in total.iter_mut().zip(counts).enumerate() {
            *sum = if LETTERS[at] == 'L' { count.max(*sum) } else { *sum + count };
        }
        put(&mut out, counts, shown, width, (!stdin_alone).then_some(operand.as_slice()));
    }
    if operands.len() > 1 {
        put(&mut out, total, shown, width, Some(b"total"));
    }
    Ok(code)
}

/// The files to be counted, and whether their names came from something that could not be known before.
fn operands(operands: Vec<Vec<u8>>, list: Option<Vec<u8>>) -> Result<(Vec<Vec<u8>>, bool), i32> {
    let Some(list) = list else { return Ok((input::or_stdin(operands), false)) };
    if let Some(extra) = operands.first() {
        let extra = quote::word(extra);
        let message = format!("extra operand {extra}\nfile operands cannot be combined with --files0-from");
        return Err(TOOL.wrong(message));
    }
    let content = match list.as_slice() {
        b"-" => files::read_fd(0),
        path => std::fs::read(files::path(path)).map_err(Errno::from),
    };
    let content = content.map_err(|error| {
        complain("wc", format_args!("cannot open {} for reading: {error}", quote::always(&list)));
        1
    })?;
    let late = match list.as_slice() {
        b"-" => !abi::fstat(0).is_ok_and(|stat| stat.is_file()),
        path => !abi::stat(Dir::CWD, path, true).is_ok_and(|stat| stat.is_file()),
    };
    let content = content.strip_suffix(b"\0").unwrap_or(&content);
    let names = content.split(|&byte| byte == 0).filter(|name| !name.is_empty());
    Ok((names.map(<[u8]>::to_vec).collect(), late))
}

/// As wide as the sum of all sizes; at least 7 where a size cannot be known.
fn number_width(operands: &[Vec<u8>], shown: [bool; 5]) -> usize {
    let counts = shown.iter().filter(|shown| **shown).count();
    if operands.len() == 1 && counts == 1 {
        return 1;
    }
    let (mut least, mut sum) = (1, 0_u64);
    for operand in operands {
        let stat = match operand.as_slice() {
            b"-" => abi::fstat(0),
            path => abi::stat(Dir::CWD, path, true),
        };
        match stat {
            Ok(stat) if stat.is_file() => sum = sum.saturating_add(stat.size),
            Ok(_) => least = 7,
            Err(_) => {}
        }
    }
    sum.to_string().len().max(least)
}

fn put(out: &mut Out, counts: Counts, shown: [bool; 5], width: usize, name: Option<&[u8]>) {
    let counts = counts.iter().zip(shown).filter(|(_, shown)| *shown);
    let line: Vec<String> = counts.map(|(count, _)| format!("{count:>width$}")).collect();
    out.put(line.join(" "));
    if let Some(name) = name {
        out.put(" ");
        let odd = name.contains(&b'\n');
        if odd { out.put(quote::always(name)) } else { out.put(name) }
    }
    out.put("\n");
}

/// What a file has, as far as it could be read, and why not further.
fn count_operand(operand: &[u8], shown: [bool; 5]) -> (Option<Counts>, Option<Errno>) {
    if operand == b"-" {
        let (counts, error) = count(0, shown);
        return (Some(counts), error);
    }
    match abi::open(Dir::CWD, operand, open_flags::RDONLY | open_flags::CLOEXEC, 0) {
        Err(error) => (None, Some(error)),
        Ok(fd) => {
            let (counts, error) = count(fd, shown);
            let _ = abi::close(fd);
            (Some(counts), error)
        }
    }
}

fn count(fd: Fd, shown: [bool; 5]) -> (Counts, Option<Errno>) {
    let [lines, words, chars, _, longest] = shown;
    if !lines
        && !words
        && !chars
        && !longest
        && let Some(size) = rest_of_file(fd)
    {
        return ([0, 0, 0, size, 0], None);
    }
    let mut counter = Counter::default();
    let mut buffer = vec![0; 128 * 1024];
    let mut kept = 0;
    let error = loop {
        let count = match abi::read(fd, &mut buffer[kept..]) {
            Ok(0) => break None,
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(error) => break Some(error),
        };
        counter.bytes += count as u64;
        let text = &buffer[..kept + count];
        kept = if words || chars || longest {
            let used = counter.read(text, longest, false);
            let left = text.len() - used;
            buffer.copy_within(used..used + left, 0);
            left
        } else {
            counter.lines += memchr::memchr_iter(b'\n', text).count() as u64;
            0
        };
    };
    counter.read(&buffer[..kept], longest, true);
    let longest = counter.longest.max(counter.column);
    ([counter.lines, counter.words, counter.chars, counter.bytes, longest], error)
}

/// How much is left of a file that has a size.
fn rest_of_file(fd: Fd) -> Option<u64> {
    let size = abi::fstat(fd).ok().filter(|stat| stat.is_file() && stat.size > 0)?.size;
    let place = abi::seek(fd, 0, abi::Whence::Current).ok()?;
    abi::seek(fd, 0, abi::Whence::End).ok()?;
    Some(size.saturating_sub(place))
}

#[derive(Default)]
struct Counter {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
    longest: u64,
    column: u64,
    in_word: bool,
}

impl Counter {
    /// Counts in a piece of text; answers how much of it: a character may be cut off at the end.
    fn read(&mut self, text: &[u8], widths: bool, is_last: bool) -> usize {
        let mut at = 0;
        while at < text.len() {
            let ascii = text[at..].iter().position(|byte| !byte.is_ascii()).unwrap_or(text.len() - at);
            self.read_ascii(&text[at..at + ascii], widths);
            at += ascii;
            while at < text.len() && !text[at].is_ascii() {
                match decode(&text[at..]) {
                    Decoded::Char(char) => {
                        self.add(char);
                        at += char.len_utf8();
                    }
                    Decoded::Cut if !is_last => return at,
                    // Such a byte is no character, and makes no word.
                    Decoded::Cut | Decoded::Wrong => at += 1,
                }
            }
        }
        at
    }

    fn read_ascii(&mut self, text: &[u8], widths: bool) {
        self.chars += text.len() as u64;
        self.lines += memchr::memchr_iter(b'\n', text).count() as u64;
        let (mut words, mut in_word) = (0_u64, self.in_word);
        for &byte in text {
            let is_space = matches!(byte, b' ' | b'\t'..=b'\r');
            let starts = !in_word & (0x21..0x7f).contains(&byte);
            words += u64::from(starts);
            in_word = (in_word | starts) & !is_space;
        }
        (self.words, self.in_word) = (self.words + words, in_word);
        if widths {
            text.iter().for_each(|byte| self.advance(*byte));
        }
    }

    fn advance(&mut self, byte: u8) {
        match byte {
            b'\n' | b'\r' | b'\x0c' => {
                self.longest = self.longest.max(self.column);
                self.column = 0;
            }
            b'\t' => self.column += 8 - self.column % 8,
            b' '..=b'~' => self.column += 1,
            _ => {}
        }
    }

    fn add(&mut self, char: char) {
        self.chars += 1;
        self.column += char.width().unwrap_or(0) as u64;
        if char.is_whitespace() {
            self.in_word = false;
        } else if !char.is_control() {
            self.words += u64::from(!self.in_word);
            self.in_word = true;
        }
    }
}

enum Decoded {
    Char(char),
    /// The text ends within it.
    Cut,
    Wrong,
}

fn decode(text: &[u8]) -> Decoded {
    let start = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(start) {
        Ok(valid) => valid,
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => return Decoded::Cut,
        Err(error) => std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default(),
    };
    valid.chars().next().map_or(Decoded::Wrong, Decoded::Char)
}
