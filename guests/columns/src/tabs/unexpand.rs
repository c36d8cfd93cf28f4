//! `unexpand`: blanks to tabs.

use super::stops::{Given, Stops};
use super::{Line, TooLong};
use memchr::memchr;
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::for_operands;
use toolkit::{Arguments, complain, input};

const TOOL: Tool = Tool {
    name: "unexpand",
    short: ",0123456789at:",
    long: &[("all", 'a'), ("first-only", 'f'), ("tabs=", 't')],
    help: "\
Usage: unexpand [OPTION]... [FILE]...
Make tabs of the blanks at the beginning of each line of the FILEs, or of standard input (also as -).

  -a, --all         of all blanks, where two or more end at a tab stop
      --first-only  only at the beginning of lines, even with -t
  -t, --tabs=N      tab stops are N columns apart, not 8; as with -a
  -t, --tabs=LIST   tab stops are at these columns, apart by commas; behind the last no blanks are changed,
                      or with /N there are stops at every multiple of N, with +N every N columns
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

struct Style {
    stops: Stops,
    whole_lines: bool,
}

/// A line and the blanks of which it is not yet known what becomes of them.
struct Reading {
    line: Line,
    pending: Vec<u8>,
    /// One of them is alone before a tab stop: it stays a blank unless others follow.
    is_lone: bool,
    after_blank: bool,
}

impl Reading {
    fn new() -> Reading {
        Reading { line: Line::new(), pending: Vec::new(), is_lone: false, after_blank: true }
    }

    /// Writes the blanks that are pending.
    fn put_pending(&mut self, out: &mut Vec<u8>) {
        if self.pending.len() > 1 && self.is_lone {
            self.pending[0] = b'\t';
        }
        if !self.pending.is_empty() {
            out.append(&mut self.pending);
            self.is_lone = false;
        }
    }
}

pub fn main(arguments: Arguments) -> i32 {
    match TOOL.parse(bytes_of(arguments)).and_then(run) {
        Ok(code) | Err(code) => code,
    }
}

fn run(parsed: Parsed) -> Result<i32, i32> {
    let style = read_options(&parsed)?;
    let mut reading = Reading::new();
    let mut out = Out::new("unexpand");
    let mut is_good = true;
    let code = for_operands(&mut out, &input::or_stdin(parsed.operands), |out, source| {
        source.for_blocks(|block| {
            if is_good && let Err(error) = style.unexpand(block, &mut reading, out.buffer()) {
                out.complain(error);
                is_good = false;
            }
            out.settle();
        })
    });
    reading.put_pending(out.buffer());
    Ok(if is_good { code } else { 1 })
}

fn read_options(parsed: &Parsed) -> Result<Style, i32> {
    let says = |message: &str| {
        complain("unexpand", message);
        1
    };
    let (mut given, mut whole_lines, mut first_only) = (Given::default(), false, false);
    // The old way, -4,8: a number may be spread over several options.
    let mut number: Option<u64> = None;
    for (letter, argument) in &parsed.options {
        match letter {
            'a' => whole_lines = true,
            'f' => first_only = true,
            't' => {
                whole_lines = true;
                given.read("unexpand", argument.as_deref().unwrap_or_default())?;
            }
            ',' => number.take().into_iter().for_each(|number| given.push(number)),
            digit => {
                let digit = u64::from(*digit as u8 - b'0');
                let longer = number.unwrap_or(0).checked_mul(10).and_then(|number| number.checked_add(digit));
                number = Some(longer.ok_or_else(|| says("tab stop value is too large"))?);
            }
        }
    }
    number.into_iter().for_each(|number| given.push(number));
    let stops = given.settle().map_err(|message| says(&message))?;
    Ok(Style { stops, whole_lines: whole_lines && !first_only })
}

impl Style {
    fn unexpand(&self, block: &[u8], reading: &mut Reading, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let mut rest = block;
        while !rest.is_empty() {
            let plain = match reading.line.converts {
                true => rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | 0x08)),
                false => memchr(b'\n', rest),
            };
            let (text, after) = rest.split_at(plain.unwrap_or(rest.len()));
            if !text.is_empty() {
                reading.put_pending(out);
                out.extend_from_slice(text);
                reading.line.column = reading.line.column.checked_add(text.len() as u64).ok_or(TooLong)?;
                reading.after_blank = false;
                reading.line.converts &= self.whole_lines;
            }
            if let Some(byte) = after.first() {
                self.take_special(*byte, reading, out)?;
            }
            rest = after.get(1..).unwrap_or_default();
        }
        Ok(())
    }

    /// A blank, a backspace, or the end of a line.
    fn take_special(&self, byte: u8, reading: &mut Reading, out: &mut Vec<u8>) -> Result<(), TooLong> {
        match byte {
            b'\n' => {
                reading.put_pending(out);
                out.push(b'\n');
                *reading = Reading::new();
            }
            _ if !reading.line.converts => out.push(byte),
            0x08 => {
                reading.line.step_back();
                reading.put_pending(out);
                out.push(byte);
                reading.after_blank = false;
                reading.line.converts = self.whole_lines;
            }
            blank => self.take_blank(blank, reading, out)?,
        }
        Ok(())
    }

    fn take_blank(&self, blank: u8, reading: &mut Reading, out: &mut Vec<u8>) -> Result<(), TooLong> {
        let mut shown = blank;
        match self.stops.next(&mut reading.line)? {
            // Behind the last stop all stays as it is.
            None => reading.line.converts = false,
            Some(stop) => {
                if blank == b'\t' {
                    reading.line.column = stop;
                } else {
                    reading.line.column += 1;
                    let is_at_stop = reading.line.column == stop;
                    if !(reading.after_blank && is_at_stop) {
                        reading.is_lone |= is_at_stop;
                        reading.pending.push(blank);
                        reading.after_blank = true;
                        return Ok(());
                    }
                    shown = b'\t';
                }
                // A tab takes the place of what is pending, but for one before the last stop.
                if let Some(first) = reading.pending.first_mut() {
                    *first = b'\t';
                }
                reading.pending.truncate(usize::from(reading.is_lone));
            }
        }
        reading.put_pending(out);
        out.push(shown);
        reading.after_blank = true;
        Ok(())
    }
}
