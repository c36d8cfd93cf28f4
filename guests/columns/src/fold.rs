//! `fold`: lines that are too long, broken.

use memchr::{memchr, memchr3};
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::for_operands;
use toolkit::{Arguments, complain, count, input};

const TOOL: Tool = Tool {
    name: "fold",
    short: "bsw:0::1::2::3::4::5::6::7::8::9::",
    long: &[("bytes", 'b'), ("spaces", 's'), ("width=", 'w')],
    help: "\
Usage: fold [OPTION]... [FILE]...
Break the lines of the FILEs, or of standard input (also as -), that are too long.

  -b, --bytes         count bytes, not columns
  -s, --spaces        break behind a blank where there is one
  -w, --width=WIDTH   lines may have WIDTH columns, not 80
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

struct Style {
    width: usize,
    by_bytes: bool,
    at_blanks: bool,
}

/// The line that is being written.
#[derive(Default)]
struct Line {
    text: Vec<u8>,
    column: usize,
}

pub fn main(arguments: Arguments) -> i32 {
    match TOOL.parse(bytes_of(arguments)).and_then(run) {
        Ok(code) | Err(code) => code,
    }
}

fn run(parsed: Parsed) -> Result<i32, i32> {
    let mut style = Style { width: 80, by_bytes: false, at_blanks: false };
    for (letter, argument) in &parsed.options {
        let argument = argument.as_deref().unwrap_or_default();
        match letter {
            'b' => style.by_bytes = true,
            's' => style.at_blanks = true,
            'w' => style.width = read_width(argument)?,
            // The old way, -80: the digit that is the option's letter is the first of the number.
            digit => style.width = read_width(&[&[*digit as u8], argument].concat())?,
        }
    }
    let operands = input::or_stdin(parsed.operands);
    let mut out = Out::new("fold");
    Ok(for_operands(&mut out, &operands, |out, source| {
        let mut line = Line::default();
        source.for_blocks(|block| {
            style.fold(block, &mut line, out.buffer());
            out.settle();
        })?;
        out.put(&line.text);
        Ok(())
    }))
}

fn read_width(text: &[u8]) -> Result<usize, i32> {
    // As in C, with room for a tab behind it.
    let width = count::or_complaint("invalid number of columns", text, 1..=u64::MAX - 9, "");
    let width = width.map_err(|message| {
        complain("fold", message);
        1
    })?;
    Ok(usize::try_from(width).unwrap_or(usize::MAX))
}

impl Style {
    /// Folds what comes next; what is no whole line yet stays in `line`.
    fn fold(&self, block: &[u8], line: &mut Line, out: &mut Vec<u8>) {
        let mut rest = block;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest);
            let (text, after) = rest.split_at(end.unwrap_or(rest.len()));
            let fits = line.text.is_empty() && end.is_some() && text.len() <= self.width;
            if fits && (self.by_bytes || memchr3(b'\t', 0x08, b'\r', text).is_none()) {
                out.extend_from_slice(text);
            } else {
                text.iter().for_each(|byte| self.add(*byte, line, out));
                if end.is_some() {
                    out.append(&mut line.text);
                    line.column = 0;
                }
            }
            if end.is_some() {
                out.push(b'\n');
            }
            rest = after.get(1..).unwrap_or_default();
        }
    }

    /// Adds a byte to the line, or begins another with it.
    fn add(&self, byte: u8, line: &mut Line, out: &mut Vec<u8>) {
        loop {
            let column = self.next_column(line.column, byte);
            if column <= self.width || line.text.is_empty() {
                line.column = column;
                line.text.push(byte);
                return;
            }
            let blank = line.text.iter().rposition(|byte| matches!(byte, b' ' | b'\t'));
            let end = match blank {
                Some(at) if self.at_blanks => at + 1,
                _ => line.text.len(),
            };
            out.extend(line.text.drain(..end));
            out.push(b'\n');
            line.column = line.text.iter().fold(0, |column, byte| self.next_column(column, *byte));
        }
    }

    /// The column behind a byte.
    fn next_column(&self, column: usize, byte: u8) -> usize {
        match byte {
            _ if self.by_bytes => column + 1,
            0x08 => column.saturating_sub(1),
            b'\r' => 0,
            b'\t' => column + 8 - column % 8,
            _ => column + 1,
        }
    }
}
