//! `cat`: copies files to standard output, and shows what is in them on request.

use toolkit::args::{Tool, bytes_of};
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Stat, Whence, open_flags};

const TOOL: Tool = Tool {
    name: "cat",
    short: "AbeEnstTuv",
    long: &[
        ("number-nonblank", 'b'),
        ("number", 'n'),
        ("squeeze-blank", 's'),
        ("show-nonprinting", 'v'),
        ("show-ends", 'E'),
        ("show-tabs", 'T'),
        ("show-all", 'A'),
    ],
    help: "\
Usage: cat [OPTION]... [FILE]...
Concatenate FILE(s) to standard output.

With no FILE, or when FILE is -, read standard input.

  -A, --show-all           equivalent to -vET
  -b, --number-nonblank    number nonempty output lines, overrides -n
  -e                       equivalent to -vE
  -E, --show-ends          display $ at end of each line
  -n, --number             number all output lines
  -s, --squeeze-blank      suppress repeated empty output lines
  -t                       equivalent to -vT
  -T, --show-tabs          display TAB characters as ^I
  -u                       (ignored)
  -v, --show-nonprinting   use ^ and M- notation, except for LFD and TAB
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

#[derive(Default)]
struct Style {
    number: bool,
    number_nonblank: bool,
    squeeze: bool,
    ends: bool,
    tabs: bool,
    nonprinting: bool,
}

/// What goes on from one file to the next.
#[derive(Default)]
struct Place {
    line: u64,
    blank_lines: usize,
    inside_line: bool,
    held_return: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    let parsed = match TOOL.parse(bytes_of(arguments)) {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    let mut style = Style::default();
    let mut plain = true;
    for (letter, _) in &parsed.options {
        plain &= *letter == 'u';
        style.set(*letter);
    }
    let files = if parsed.operands.is_empty() { vec![b"-".to_vec()] } else { parsed.operands };
    let output = abi::fstat(1).ok().filter(Stat::is_file);
    let mut place = Place::default();
    let mut code = 0;
    for file in &files {
        if let Err(error) = copy_file(file, output.as_ref(), (!plain).then_some(&style), &mut place) {
            complain("cat", format_args!("{}: {error}", quote::if_needed(file)));
            code = 1;
        }
    }
    if place.held_return && write(b"\r").is_err() {
        code = 1;
    }
    code
}

impl Style {
    fn set(&mut self, letter: char) {
        match letter {
            'A' => (self.nonprinting, self.ends, self.tabs) = (true, true, true),
            'b' => self.number_nonblank = true,
            'e' => (self.nonprinting, self.ends) = (true, true),
            'E' => self.ends = true,
            'n' => self.number = true,
            's' => self.squeeze = true,
            't' => (self.nonprinting, self.tabs) = (true, true),
            'T' => self.tabs = true,
            'v' => self.nonprinting = true,
            _ => {}
        }
    }
}

/// Copies one file. The error is text, for one of them is no error number.
fn copy_file(
    file: &[u8],
    output: Option<&Stat>,
    style: Option<&Style>,
    place: &mut Place,
) -> Result<(), &'static str> {
    let is_stdin = file == b"-";
    let fd = if is_stdin {
        0
    } else {
        abi::open(Dir::CWD, file, open_flags::RDONLY, 0).map_err(Errno::message)?
    };
    let copied = if is_own_output(fd, output) {
        Err("input file is output file")
    } else {
        copy(fd, style, place).map_err(Errno::message)
    };
    if !is_stdin {
        let _ = abi::close(fd);
    }
    copied
}

/// Whether reading this would chase what is being written.
fn is_own_output(fd: Fd, output: Option<&Stat>) -> bool {
    let (Some(output), Ok(input)) = (output, abi::fstat(fd)) else { return false };
    let same = input.dev == output.dev && input.ino == output.ino;
    same && abi::seek(fd, 0, Whence::Current).is_ok_and(|at| at < input.size)
}

fn copy(fd: Fd, style: Option<&Style>, place: &mut Place) -> Result<(), Errno> {
    let mut buffer = vec![0; 64 * 1024];
    let mut shown = Vec::new();
    loop {
        let n = match abi::read(fd, &mut buffer) {
            Ok(0) => return Ok(()),
            Ok(n) => n,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        };
        let written = match style {
            None => write(&buffer[..n]),
            Some(style) => {
                shown.clear();
                show(&buffer[..n], style, place, &mut shown);
                write(&shown)
            }
        };
        if written.is_err() {
            abi::exit(1);
        }
    }
}

fn write(bytes: &[u8]) -> Result<(), Errno> {
    abi::write_all(1, bytes).inspect_err(|error| complain("cat", format_args!("write error: {error}")))
}

fn show(bytes: &[u8], style: &Style, place: &mut Place, out: &mut Vec<u8>) {
    for &byte in bytes {
        if byte == b'\n' {
            end_line(style, place, out);
            continue;
        }
        if std::mem::take(&mut place.held_return) {
            out.push(b'\r');
        }
        start_line(style, place, out, false);
        match byte {
            b'\t' if style.tabs => out.extend(b"^I"),
            b'\t' => out.push(b'\t'),
            byte if style.nonprinting => show_byte(byte, out),
            b'\r' if style.ends => place.held_return = true,
            byte => out.push(byte),
        }
    }
}

fn start_line(style: &Style, place: &mut Place, out: &mut Vec<u8>, blank: bool) {
    if std::mem::replace(&mut place.inside_line, true) {
        return;
    }
    if !blank {
        place.blank_lines = 0;
    }
    if style.number && !style.number_nonblank || style.number_nonblank && !blank {
        place.line += 1;
        out.extend(format!("{:6}\t", place.line).bytes());
    }
}

fn end_line(style: &Style, place: &mut Place, out: &mut Vec<u8>) {
    if !place.inside_line {
        place.blank_lines += 1;
        if style.squeeze && place.blank_lines > 1 {
            return;
        }
        start_line(style, place, out, true);
    }
    if std::mem::take(&mut place.held_return) {
        out.extend(b"^M");
    }
    if style.ends {
        out.push(b'$');
    }
    out.push(b'\n');
    place.inside_line = false;
}

fn show_byte(byte: u8, out: &mut Vec<u8>) {
    let low = if byte >= 128 {
        out.extend(b"M-");
        byte - 128
    } else {
        byte
    };
    match low {
        0..32 => out.extend([b'^', low + 64]),
        127 => out.extend(b"^?"),
        _ => out.push(low),
    }
}
