//! `head`: the first part of files.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, input, quote, size};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Whence, open_flags};

const TOOL: Tool = Tool {
    name: "head",
    short: "c:n:qvz0123456789",
    long: &[
        ("bytes=", 'c'),
        ("lines=", 'n'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("verbose", 'v'),
        ("zero-terminated", 'z'),
    ],
    help: "\
Usage: head [OPTION]... [FILE]...
Print the first 10 lines of each FILE, with a title before each if there are
several.  With no FILE, or when FILE is -, read standard input.

  -c, --bytes=[-]NUM       print the first NUM bytes; with '-', all but the last
  -n, --lines=[-]NUM       print the first NUM lines; with '-', all but the last
  -q, --quiet, --silent    never print titles
  -v, --verbose            always print titles
  -z, --zero-terminated    lines end in NUL
      --help               display this help and exit
      --version            output version information and exit

NUM may have a suffix: b 512, kB 1000, K 1024, MB 1000*1000, M 1024*1024, ...
",
    misuse: 1,
};

/// Which part of a file is printed.
#[derive(Clone, Copy)]
struct Part {
    in_lines: bool,
    /// Counted from the end: what is left out.
    but_last: bool,
    count: u64,
}

struct Head {
    part: Part,
    end: u8,
    out: Out,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(modern(arguments))?;
    let part = Part { in_lines: true, but_last: false, count: 10 };
    let (mut head, mut titles) = (Head { part, end: b'\n', out: Out::new("head") }, None);
    for (letter, text) in parsed.options {
        match letter {
            'c' | 'n' => head.part = parse_part(&text.unwrap_or_default(), letter == 'n')?,
            'q' => titles = Some(false),
            'v' => titles = Some(true),
            'z' => head.end = 0,
            digit => return Err(TOOL.wrong(format_args!("invalid option -- '{digit}'"))),
        }
    }
    let operands = input::or_stdin(parsed.operands);
    let titles = titles.unwrap_or(operands.len() > 1);
    let (mut all, mut before) = (true, "");
    for operand in &operands {
        let opened = match operand.as_slice() {
            b"-" => Ok(0),
            path => abi::open(Dir::CWD, path, open_flags::RDONLY | open_flags::CLOEXEC, 0),
        };
        let fd = match opened {
            Ok(fd) => fd,
            Err(error) => {
                all = false;
                let shown = quote::always(operand);
                complain("head", format_args!("cannot open {shown} for reading: {error}"));
                continue;
            }
        };
        let name: &[u8] = if operand == b"-" { b"standard input" } else { operand };
        if titles {
            head.out.put(before);
            head.out.put([b"==> ", name, b" <==\n"].concat());
            before = "\n";
        }
        if let Err(error) = head.print(fd) {
            all = false;
            complain("head", format_args!("error reading {}: {error}", quote::always(name)));
        }
        if fd != 0 {
            let _ = abi::close(fd);
        }
    }
    Ok(i32::from(!all))
}

/// `-5`, `-5c`, `-5q` of old, written as today.
fn modern(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let Some([b'-', rest @ ..]) = words.first().map(Vec::as_slice) else { return words };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return words;
    }
    let (count, letters) = rest.split_at(digits);
    let (mut option, mut unit, mut others) = (b"-n", None, Vec::new());
    for letter in letters {
        match letter {
            b'c' => option = b"-c",
            b'l' => option = b"-n",
            b'b' | b'k' | b'm' => (option, unit) = (b"-c", Some(letter.to_ascii_uppercase())),
            other => others.push([b'-', *other].to_vec()),
        }
    }
    let unit = unit.map(|unit| if unit == b'B' { b'b' } else { unit });
    let count = [option.as_slice(), count, unit.as_slice()].concat();
    others.insert(0, count);
    words.splice(..1, others);
    words
}

fn parse_part(text: &[u8], in_lines: bool) -> Result<Part, i32> {
    let (but_last, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let refuse = || {
        let what = if in_lines { "lines" } else { "bytes" };
        complain("head", format_args!("invalid number of {what}: {}", quote::word(digits)));
        1
    };
    let count = match size::Scale::parse(digits) {
        _ if !digits.first().is_some_and(u8::is_ascii_digit) => return Err(refuse()),
        Some(size::Scale::Blocks(size, _)) => u64::try_from(size).unwrap_or(u64::MAX),
        // Zero is no size, but a number; what is too large is as good as all.
        _ if digits.iter().all(|&digit| digit == b'0') => 0,
        _ if digits.iter().all(u8::is_ascii_digit) => u64::MAX,
        _ => return Err(refuse()),
    };
    Ok(Part { in_lines, but_last, count })
}

impl Head {
    fn print(&mut self, fd: Fd) -> Result<(), Errno> {
        let Part { in_lines, but_last, count } = self.part;
        if but_last {
            return self.print_but_last(fd, count);
        }
        let mut left = count;
        let mut buffer = vec![0; 64 * 1024];
        while left > 0 {
            let most = if in_lines {
                buffer.len()
            } else {
                buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX))
            };
            let read = match abi::read(fd, &mut buffer[..most]) {
                Ok(0) => break,
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            let text = &buffer[..read];
            let used = if in_lines { self.lines_in(text, &mut left) } else { read };
            if !in_lines {
                left -= used as u64;
            }
            self.out.put(&text[..used]);
            if used < read {
                // What was read too far is left to whoever reads next; a pipe cannot be given it back.
                let _ = abi::seek(fd, used as i64 - read as i64, Whence::Current);
            }
        }
        Ok(())
    }

    /// How much of a text the lines take that are still wanted.
    fn lines_in(&self, text: &[u8], left: &mut u64) -> usize {
        for at in memchr::memchr_iter(self.end, text) {
            *left -= 1;
            if *left == 0 {
                return at + 1;
            }
        }
        text.len()
    }

    /// Holds back as much as is to be left out.
    fn print_but_last(&mut self, fd: Fd, count: u64) -> Result<(), Errno> {
        let mut held: Vec<u8> = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = match abi::read(fd, &mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            };
            held.extend_from_slice(&buffer[..read]);
            let sure = self.without_last(&held, count, false);
            if sure >= buffer.len() {
                self.out.put(&held[..sure]);
                held.drain(..sure);
            }
        }
        let sure = self.without_last(&held, count, true);
        self.out.put(&held[..sure]);
        // What was left out is left to whoever reads next; a pipe cannot be given it back.
        let _ = abi::seek(fd, sure as i64 - held.len() as i64, Whence::Current);
        Ok(())
    }

    /// The length without the last lines or bytes; a line that has not ended counts when the text has.
    fn without_last(&self, text: &[u8], count: u64, at_end: bool) -> usize {
        if !self.part.in_lines {
            return text.len().saturating_sub(usize::try_from(count).unwrap_or(usize::MAX));
        }
        let whole = if at_end && !text.ends_with(&[self.end]) { text.len() } else { 0 };
        if count == 0 {
            return text.len();
        }
        // The end of the last line that stays is followed by so many ends.
        let skipped = count - u64::from(whole > 0);
        let mut ends = memchr::memrchr_iter(self.end, text);
        match usize::try_from(skipped).ok().and_then(|skipped| ends.nth(skipped)) {
            Some(at) => at + 1,
            None => 0,
        }
    }
}
