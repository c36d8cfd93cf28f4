//! `comm`: compares two sorted files line by line.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::records::Records;
use toolkit::{Arguments, complain, quote};

const TOOL: Tool = Tool {
    name: "comm",
    short: "123z",
    long: &[
        ("check-order", 'c'),
        ("nocheck-order", 'n'),
        ("output-delimiter=", 'o'),
        ("total", 't'),
        ("zero-terminated", 'z'),
    ],
    help: "\
Usage: comm [OPTION]... FILE1 FILE2
Compare two sorted files line by line. Lines that only FILE1 has are in the
first column, those that only FILE2 has in the second, those of both in the
third. One of the files may be -, standard input.

  -1                        leave out the first column
  -2                        leave out the second column
  -3                        leave out the third column
      --check-order         fail if a file is not sorted, even if all lines pair
      --nocheck-order       do not look whether the files are sorted
      --output-delimiter=S  put S, not a tab, between columns
      --total               end with the number of lines in each column
  -z, --zero-terminated     lines end in NUL
      --help                display this help and exit
      --version             output version information and exit
",
    misuse: 1,
};

/// When the order of lines is looked at.
#[derive(Clone, Copy, PartialEq)]
enum Check {
    /// Once a line had no partner.
    Default,
    Always,
    Never,
}

struct Comm {
    shown: [bool; 3],
    delimiter: Vec<u8>,
    line_end: u8,
    check: Check,
    out: Out,
    /// Lines in each column.
    totals: [u64; 3],
    seen_unpairable: bool,
}

/// A file, with the line it is at and the two before.
struct Side {
    number: usize,
    name: Vec<u8>,
    records: Records,
    line: Option<Vec<u8>>,
    before: Option<Vec<u8>>,
    is_disordered: bool,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut comm = Comm {
        shown: [true; 3],
        delimiter: b"\t".to_vec(),
        line_end: b'\n',
        check: Check::Default,
        out: Out::new("comm"),
        totals: [0; 3],
        seen_unpairable: false,
    };
    let (mut wants_total, mut delimiter) = (false, None);
    for (letter, text) in parsed.options {
        match letter {
            '1' | '2' | '3' => comm.shown[letter as usize - '1' as usize] = false,
            'c' => comm.check = Check::Always,
            'n' => comm.check = Check::Never,
            't' => wants_total = true,
            'z' => comm.line_end = 0,
            _ if delimiter.is_some() && delimiter != text => {
                complain("comm", "multiple output delimiters specified");
                return Err(1);
            }
            _ => delimiter = text,
        }
    }
    if let Some(text) = delimiter {
        // An empty one is a NUL.
        comm.delimiter = if text.is_empty() { vec![0] } else { text };
    }
    let [left, right] = two_operands(parsed.operands)?;
    comm.compare([comm.open(1, left)?, comm.open(2, right)?], wants_total)
}

fn two_operands(operands: Vec<Vec<u8>>) -> Result<[Vec<u8>; 2], i32> {
    <[Vec<u8>; 2]>::try_from(operands).map_err(|operands| match operands.as_slice() {
        [] => TOOL.wrong("missing operand"),
        [only] => TOOL.wrong(format_args!("missing operand after {}", quote::word(only))),
        [_, _, extra, ..] => TOOL.wrong(format_args!("extra operand {}", quote::word(extra))),
        [_, _] => TOOL.misuse,
    })
}

impl Comm {
    fn open(&self, number: usize, name: Vec<u8>) -> Result<Side, i32> {
        let records = Records::open(&name, self.line_end).map_err(|error| {
            complain("comm", format_args!("{}: {error}", quote::if_needed(&name)));
            1
        })?;
        let mut side = Side { number, name, records, line: None, before: None, is_disordered: false };
        side.line = side.read(self.line_end)?;
        Ok(side)
    }

    fn compare(&mut self, sides: [Side; 2], wants_total: bool) -> Result<i32, i32> {
        let [mut left, mut right] = sides;
        loop {
            let order = match (&left.line, &right.line) {
                (None, None) => break,
                (Some(_), None) => std::cmp::Ordering::Less,
                (None, Some(_)) => std::cmp::Ordering::Greater,
                (Some(left), Some(right)) => left.cmp(right),
            };
            self.seen_unpairable |= order.is_ne();
            match order {
                std::cmp::Ordering::Less => self.put(0, left.line.as_deref()),
                std::cmp::Ordering::Equal => self.put(2, left.line.as_deref()),
                std::cmp::Ordering::Greater => self.put(1, right.line.as_deref()),
            }
            if order.is_le() {
                self.step(&mut left)?;
            }
            if order.is_ge() {
                self.step(&mut right)?;
            }
        }
        if wants_total {
            self.put_totals();
        }
        if left.is_disordered || right.is_disordered {
            self.out.flush();
            complain("comm", "input is not in sorted order");
            return Err(1);
        }
        Ok(0)
    }

    /// Prints a line in a column.
    fn put(&mut self, column: usize, line: Option<&[u8]>) {
        self.totals[column] += 1;
        if !self.shown[column] {
            return;
        }
        for _ in self.shown[..column].iter().filter(|shown| **shown) {
            self.out.put(&self.delimiter);
        }
        self.out.put(line.unwrap_or_default());
        self.out.put([self.line_end]);
    }

    fn put_totals(&mut self) {
        for total in self.totals {
            self.out.put(total.to_string());
            self.out.put(&self.delimiter);
        }
        self.out.put("total");
        self.out.put([self.line_end]);
    }

    /// Goes on to the next line of a file, and looks whether it comes after the one before.
    fn step(&mut self, side: &mut Side) -> Result<(), i32> {
        let next = side.read(self.line_end)?;
        let last = side.line.take();
        match (&next, &last, &side.before) {
            (Some(next), Some(last), _) => {
                let sorted = last <= next;
                self.check_order(side.number, sorted, &mut side.is_disordered)?;
            }
            // The first line without a partner may have been seen since the last two were looked at.
            (None, Some(last), Some(before)) => {
                let sorted = before <= last;
                self.check_order(side.number, sorted, &mut side.is_disordered)?;
            }
            _ => {}
        }
        (side.before, side.line) = (last, next);
        Ok(())
    }

    fn check_order(&mut self, file: usize, sorted: bool, is_disordered: &mut bool) -> Result<(), i32> {
        let looks = match self.check {
            Check::Never => false,
            Check::Always => true,
            Check::Default => self.seen_unpairable,
        };
        if sorted || !looks || *is_disordered {
            return Ok(());
        }
        *is_disordered = true;
        self.out.flush();
        complain("comm", format_args!("file {file} is not in sorted order"));
        if self.check == Check::Always { Err(1) } else { Ok(()) }
    }
}

impl Side {
    /// The next line, without what ends it.
    fn read(&mut self, line_end: u8) -> Result<Option<Vec<u8>>, i32> {
        let mut line = Vec::new();
        match self.records.next_into(&mut line) {
            Ok(true) => {
                if line.last() == Some(&line_end) {
                    line.pop();
                }
                Ok(Some(line))
            }
            Ok(false) => Ok(None),
            Err(error) => {
                complain("comm", format_args!("{}: {error}", quote::if_needed(&self.name)));
                Err(1)
            }
        }
    }
}
