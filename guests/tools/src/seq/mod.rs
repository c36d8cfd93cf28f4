//! `seq`: prints a sequence of numbers.
//!
//! Whole numbers are counted in their digits, whatever their length; decimal fractions in units of their last digit;
//! the rest (`-f`, hexadecimal, very large) as C's `long double` would have it.

mod format;
mod operand;

use crate::extended::Extended;
use format::Format;
use operand::Operand;
use std::cmp::Ordering;
use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, pad, quote};

const TOOL: Tool = Tool {
    name: "seq",
    short: "+f:s:w",
    long: &[("equal-width", 'w'), ("format=", 'f'), ("separator=", 's')],
    help: "\
Usage: seq [OPTION]... LAST
  or:  seq [OPTION]... FIRST LAST
  or:  seq [OPTION]... FIRST INCREMENT LAST
Print numbers from FIRST to LAST, in steps of INCREMENT; both are 1 unless given.

  -f, --format=FORMAT   print them by printf's floating-point FORMAT
  -s, --separator=S     put S between them, not a newline
  -w, --equal-width     fill up with leading zeros
      --help            display this help and exit
      --version         output version information and exit
",
    misuse: 1,
};

/// The greatest step that is counted in digits.
const SMALL_STEP: u64 = 200;

struct Seq {
    first: Operand,
    step: Operand,
    last: Operand,
    separator: Vec<u8>,
    out: Out,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(with_end_of_options(arguments))?;
    let (mut format, mut separator, mut equal_width) = (None, b"\n".to_vec(), false);
    for (letter, text) in parsed.options {
        match letter {
            'f' => format = text,
            's' => separator = text.unwrap_or_default(),
            _ => equal_width = true,
        }
    }
    let operands = parsed.operands;
    match operands.get(3) {
        _ if operands.is_empty() => return Err(TOOL.wrong("missing operand")),
        Some(extra) => return Err(TOOL.wrong(format_args!("extra operand {}", quote::word(extra)))),
        None => {}
    }
    let format = format.map(|text| Format::parse(&text)).transpose().map_err(|message| {
        complain("seq", message);
        1
    })?;
    if format.is_some() && equal_width {
        return Err(TOOL.wrong("format string may not be specified when printing equal width strings"));
    }
    let mut seq = Seq::new(&operands, separator)?;
    match format {
        Some(format) => seq.print_rounded(&format),
        None => seq.print_plainly(equal_width),
    }
    Ok(0)
}

/// A negative number ends the options, as any operand does.
fn with_end_of_options(mut words: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        match word.as_slice() {
            b"--" => break,
            [b'-', b'0'..=b'9' | b'.', ..] => {
                words.insert(at, b"--".to_vec());
                break;
            }
            b"-f" | b"-s" | b"-wf" | b"-ws" | b"--format" | b"--separator" => at += 2,
            [b'-', _, ..] => at += 1,
            _ => break,
        }
    }
    words
}

impl Seq {
    fn new(operands: &[Vec<u8>], separator: Vec<u8>) -> Result<Seq, i32> {
        let one = || Operand::parse(b"1").map_err(|message| TOOL.wrong(message));
        let read = |text: &[u8]| Operand::parse(text).map_err(|message| TOOL.wrong(message));
        let (first, step, last) = match operands {
            [last] => (one()?, one()?, read(last)?),
            [first, last] => (read(first)?, one()?, read(last)?),
            [first, step, last, ..] => {
                let (first, by) = (read(first)?, read(step)?);
                if by.value.is_zero() {
                    let shown = quote::word(step);
                    return Err(TOOL.wrong(format_args!("invalid Zero increment value: {shown}")));
                }
                (first, by, read(last)?)
            }
            [] => return Err(TOOL.wrong("missing operand")),
        };
        Ok(Seq { first, step, last, separator, out: Out::new("seq") })
    }

    fn print_plainly(&mut self, equal_width: bool) {
        let places = self.places();
        if let (Some(0), Some(from), Some(by)) = (places, self.first.digits(), self.step.digits())
            && !equal_width
            && by.len() <= 3
            && (self.last.digits().is_some() || self.last.is_infinite())
        {
            let by = by.iter().fold(0, |by, digit| by * 10 + u64::from(digit - b'0'));
            if by <= SMALL_STEP {
                return self.count(from, by);
            }
        }
        let Some(places) = places else { return self.print_rounded(&Format::general()) };
        let width = if equal_width { self.width(places) } else { 0 };
        let units = |operand: &Operand| operand.units(places);
        match (units(&self.first), units(&self.step), self.last.floor_units(places, &self.step)) {
            (Some(first), Some(step), Some(last)) => self.print_units(first, step, last, places, width),
            _ => self.print_rounded(&Format::fixed(places, width)),
        }
    }

    /// How many digits follow the point; unknown for hexadecimal fractions and infinity.
    fn places(&self) -> Option<usize> {
        let places = self.first.places?.max(self.step.places?);
        self.last.places.map(|_| places)
    }

    fn width(&self, places: usize) -> usize {
        let width = |operand: &Operand| {
            let own = operand.places.unwrap_or(0);
            let point = match (own, places) {
                (0, 1..) => 1,
                (1.., 0) => -1,
                _ => 0,
            };
            operand.width + places as i64 - own as i64 + point
        };
        // The step's own digits count only as places behind the point.
        width(&self.first).max(width(&self.last)).max(0) as usize
    }

    /// Counts in the digits themselves.
    fn count(&mut self, from: Vec<u8>, by: u64) {
        let last = self.last.digits();
        let mut number = from;
        let beyond = |number: &[u8]| {
            last.as_ref().is_some_and(|last| (last.len(), last.as_slice()) < (number.len(), number))
        };
        if beyond(&number) {
            return;
        }
        loop {
            self.out.put(&number);
            add(&mut number, by);
            if beyond(&number) {
                break;
            }
            self.out.put(&self.separator);
        }
        self.out.put("\n");
    }

    /// Counts in units of the last digit behind the point.
    fn print_units(&mut self, first: i64, step: i64, last: i64, places: usize, width: usize) {
        let is_beyond = |units: i64| if step < 0 { units < last } else { units > last };
        if is_beyond(first) {
            return;
        }
        let unit = 10u64.pow(places as u32);
        let mut units = first;
        loop {
            let (sign, size) = if units < 0 || units == 0 && self.first.is_minus_zero() {
                ("-", units.unsigned_abs())
            } else {
                ("", units as u64)
            };
            let whole = width.saturating_sub(sign.len() + if places > 0 { places + 1 } else { 0 });
            self.out.put(match places {
                0 => sign.to_owned() + &pad::before(size, '0', whole),
                _ => {
                    let whole = pad::before(size / unit, '0', whole);
                    format!("{sign}{whole}.{}", pad::before(size % unit, '0', places))
                }
            });
            match units.checked_add(step) {
                Some(next) if !is_beyond(next) => units = next,
                _ => break,
            }
            self.out.put(&self.separator);
        }
        self.out.put("\n");
    }

    /// Computes each number as C's `long double` does.
    fn print_rounded(&mut self, format: &Format) {
        let (first, step, last) = (self.first.value, self.step.value, self.last.value);
        let is_beyond = |number: Extended| match step.is_negative() {
            true => number.compare(last) == Ordering::Less,
            false => number.compare(last) == Ordering::Greater,
        };
        if is_beyond(first) {
            return;
        }
        let (mut number, mut beyond) = (first, false);
        for turn in 1u64.. {
            self.out.put(format.print(number));
            if beyond {
                break;
            }
            let next = first.plus(Extended::from(turn).times(step));
            beyond = is_beyond(next);
            // One that is beyond the last only by what was rounded off, and shows as the last, is wanted.
            let shown = format.number(next);
            let looks_last = || Extended::parse(shown.as_bytes()).map(|shown| shown.compare(last));
            if beyond && (looks_last() != Some(Ordering::Equal) || shown == format.number(number)) {
                break;
            }
            self.out.put(&self.separator);
            number = next;
        }
        self.out.put("\n");
    }
}

/// Adds to a number in its digits.
fn add(number: &mut Vec<u8>, by: u64) {
    let mut carry = by;
    for digit in number.iter_mut().rev() {
        if carry == 0 {
            return;
        }
        carry += u64::from(*digit - b'0');
        *digit = b'0' + (carry % 10) as u8;
        carry /= 10;
    }
    while carry > 0 {
        number.insert(0, b'0' + (carry % 10) as u8);
        carry /= 10;
    }
}
