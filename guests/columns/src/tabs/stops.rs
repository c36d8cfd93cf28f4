//! Where the tab stops are.

use super::{Line, TooLong};
use toolkit::{complain, quote};

/// Tab stops as they are given: a list, and what comes behind its end.
#[derive(Default)]
pub struct Given {
    list: Vec<u64>,
    /// `/N`: behind the list at every multiple of this.
    multiple: u64,
    /// `+N`: behind the list this far from its end, and so on.
    increment: u64,
}

/// Tab stops.
pub enum Stops {
    Every(u64),
    List(Given),
}

/// What a number on the list stands for.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Stop,
    Multiple,
    Increment,
}

impl Given {
    pub fn push(&mut self, stop: u64) {
        self.list.push(stop);
    }

    /// Adds what a list says; what is wrong with it has been said.
    pub fn read(&mut self, tool: &str, text: &[u8]) -> Result<(), i32> {
        let mut kind = Kind::Stop;
        let mut number: Option<u64> = None;
        let mut is_good = true;
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b',' | b' ' | b'\t' => {
                    if let Some(number) = number.take() {
                        self.add(tool, kind, number)?;
                    }
                }
                b'/' | b'+' => {
                    if number.is_some() {
                        let (sign, rest) = (char::from(byte), quote::word(&text[at..]));
                        complain(tool, format_args!("'{sign}' specifier not at start of number: {rest}"));
                        is_good = false;
                    }
                    kind = if byte == b'/' { Kind::Multiple } else { Kind::Increment };
                }
                b'0'..=b'9' => {
                    let count = text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                    let digits = &text[at..at + count];
                    number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
                    if number.is_none() {
                        complain(tool, format_args!("tab stop is too large {}", quote::word(digits)));
                        is_good = false;
                    }
                    at += count - 1;
                }
                _ => {
                    let rest = quote::word(&text[at..]);
                    complain(tool, format_args!("tab size contains invalid character(s): {rest}"));
                    return Err(1);
                }
            }
            at += 1;
        }
        match (is_good, number) {
            (false, _) => Err(1),
            (true, None) => Ok(()),
            (true, Some(number)) => self.add(tool, kind, number),
        }
    }

    fn add(&mut self, tool: &str, kind: Kind, number: u64) -> Result<(), i32> {
        let (place, sign) = match kind {
            Kind::Stop => {
                self.list.push(number);
                return Ok(());
            }
            Kind::Multiple => (&mut self.multiple, '/'),
            Kind::Increment => (&mut self.increment, '+'),
        };
        if std::mem::replace(place, number) != 0 {
            complain(tool, format_args!("'{sign}' specifier only allowed with the last value"));
            return Err(1);
        }
        Ok(())
    }

    /// The stops, if they can be; the error is the message.
    pub fn settle(self) -> Result<Stops, String> {
        let mut before = 0;
        for stop in &self.list {
            match *stop {
                0 => return Err("tab size cannot be 0".into()),
                stop if stop <= before => return Err("tab sizes must be ascending".into()),
                stop => before = stop,
            }
        }
        if self.multiple != 0 && self.increment != 0 {
            return Err("'/' specifier is mutually exclusive with '+'".into());
        }
        Ok(match (self.list.as_slice(), self.multiple, self.increment) {
            ([], 0, 0) => Stops::Every(8),
            ([], multiple, increment) => Stops::Every(multiple.max(increment)),
            ([only], 0, 0) => Stops::Every(*only),
            _ => Stops::List(self),
        })
    }
}

impl Stops {
    /// The next stop behind where a line is; `None` behind the last.
    pub fn next(&self, line: &mut Line) -> Result<Option<u64>, TooLong> {
        let column = line.column;
        let given = match self {
            Stops::Every(size) => return add(column, size - column % size),
            Stops::List(given) => given,
        };
        while let Some(stop) = given.list.get(line.next_stop) {
            if column < *stop {
                return Ok(Some(*stop));
            }
            line.next_stop += 1;
        }
        let end = given.list.last().copied().unwrap_or(0);
        match (given.multiple, given.increment) {
            (0, 0) => Ok(None),
            (0, increment) => add(column, increment - (column - end) % increment),
            (multiple, _) => add(column, multiple - column % multiple),
        }
    }
}

fn add(column: u64, width: u64) -> Result<Option<u64>, TooLong> {
    column.checked_add(width).map(Some).ok_or(TooLong)
}
