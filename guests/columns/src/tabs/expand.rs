//! `expand`: tabs to blanks.

use super::stops::{Given, Stops};
use super::{Line, TooLong};
use memchr::{memchr, memchr3};
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::for_operands;
use toolkit::{Arguments, complain, input};

const TOOL: Tool = Tool {
    name: "expand",
    short: "it:0::1::2::3::4::5::6::7::8::9::",
    long: &[("initial", 'i'), ("tabs=", 't')],
    help: "\
Usage: expand [OPTION]... [FILE]...
Make blanks of the tabs in the FILEs, or in standard input (also as -).

  -i, --initial    only of those at the beginning of a line
  -t, --tabs=N     tab stops are N columns apart, not 8
  -t, --tabs=LIST  tab stops are at these columns, apart by commas; behind the last a tab is one blank,
                     or with /N there are stops at every multiple of N, with +N every N columns
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

/// At most so many blanks are written at once.
const BLANKS: [u8; 4096] = [b' '; 4096];

struct Style {
    stops: Stops,
    whole_lines: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    match TOOL.parse(bytes_of(arguments)).and_then(run) {
        Ok(code) | Err(code) => code,
    }
}

fn run(parsed: Parsed) -> Result<i32, i32> {
    let mut given = Given::default();
    let mut whole_lines = true;
    for (letter, argument) in &parsed.options {
        let argument = argument.as_deref().unwrap_or_default();
        match letter {
            'i' => whole_lines = false,
            't' => given.read("expand", argument)?,
            // The old way, -4,8: the digit that is the option's letter belongs to the list.
            digit => given.read("expand", &[&[*digit as u8], argument].concat())?,
        }
    }
    let stops = given.settle().map_err(|message| {
        complain("expand", message);
        1
    })?;
    let (style, mut line) = (Style { stops, whole_lines }, Line::new());
    let mut out = Out::new("expand");
    let mut is_good = true;
    let code = for_operands(&mut out, &input::or_stdin(parsed.operands), |out, source| {
        source.for_blocks(|block| {
            if is_good && let Err(error) = style.expand(block, &mut line, out) {
                out.complain(error);
                is_good = false;
            }
        })
    });
    Ok(if is_good { code } else { 1 })
}

impl Style {
    fn expand(&self, block: &[u8], line: &mut Line, out: &mut Out) -> Result<(), TooLong> {
        let mut rest = block;
        while !rest.is_empty() {
            let special = match line.converts {
                true => memchr3(b'\t', 0x08, b'\n', rest),
                false => memchr(b'\n', rest),
            };
            let (text, after) = rest.split_at(special.unwrap_or(rest.len()));
            out.buffer().extend_from_slice(text);
            line.column = line.column.checked_add(text.len() as u64).ok_or(TooLong)?;
            line.converts &= self.whole_lines || text.iter().all(|byte| *byte == b' ');
            if let Some(byte) = after.first() {
                self.put_special(*byte, line, out)?;
            }
            rest = after.get(1..).unwrap_or_default();
        }
        out.settle();
        Ok(())
    }

    fn put_special(&self, byte: u8, line: &mut Line, out: &mut Out) -> Result<(), TooLong> {
        match byte {
            b'\t' if line.converts => {
                let next = self.stops.next(line)?;
                let next = next.unwrap_or(line.column.checked_add(1).ok_or(TooLong)?);
                put_blanks(next - line.column, out);
                line.column = next;
                return Ok(());
            }
            b'\n' => *line = Line::new(),
            0x08 => {
                line.step_back();
                line.converts &= self.whole_lines;
            }
            _ => {}
        }
        out.buffer().push(byte);
        Ok(())
    }
}

fn put_blanks(count: u64, out: &mut Out) {
    let mut left = count;
    while left > 0 {
        let blanks = &BLANKS[..left.min(BLANKS.len() as u64) as usize];
        out.buffer().extend_from_slice(blanks);
        out.settle();
        left -= blanks.len() as u64;
    }
}
