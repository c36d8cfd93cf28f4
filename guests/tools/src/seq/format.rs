//! The format of `seq -f`: one conversion of `printf`'s for floating-point numbers, and the text around it.

use crate::extended::Extended;
use toolkit::quote;

pub struct Format {
    before: Vec<u8>,
    after: Vec<u8>,
    left: bool,
    plus: bool,
    blank: bool,
    zeros: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    conversion: u8,
}

impl Format {
    /// `%g`.
    pub fn general() -> Format {
        Format {
            before: Vec::new(),
            after: Vec::new(),
            left: false,
            plus: false,
            blank: false,
            zeros: false,
            alternate: false,
            width: 0,
            precision: None,
            conversion: b'g',
        }
    }

    /// `%0W.Pf`.
    pub fn fixed(places: usize, width: usize) -> Format {
        Format { zeros: true, width, precision: Some(places), conversion: b'f', ..Format::general() }
    }

    pub fn parse(text: &[u8]) -> Result<Format, String> {
        let shown = quote::word(text);
        let mut format = Format::general();
        let mut rest = text;
        format.before = take_literal(&mut rest);
        if rest.is_empty() {
            return Err(format!("format {shown} has no % directive"));
        }
        rest = &rest[1..];
        while let [flag @ (b'-' | b'+' | b'#' | b'0' | b' ' | b'\''), after @ ..] = rest {
            match flag {
                b'-' => format.left = true,
                b'+' => format.plus = true,
                b'#' => format.alternate = true,
                b'0' => format.zeros = true,
                b' ' => format.blank = true,
                // Digits are grouped in no locale that there is.
                _ => {}
            }
            rest = after;
        }
        let too_wide = || format!("format {shown} has a field that is too wide");
        format.width = take_number(&mut rest).ok_or_else(too_wide)?;
        if let [b'.', after @ ..] = rest {
            rest = after;
            format.precision = Some(take_number(&mut rest).ok_or_else(too_wide)?);
        }
        rest = rest.strip_prefix(b"L").unwrap_or(rest);
        match rest {
            [] => return Err(format!("format {shown} ends in %")),
            [conversion, after @ ..] if b"efgaEFGA".contains(conversion) => {
                (format.conversion, rest) = (*conversion, after);
            }
            [other, ..] => {
                return Err(format!("format {shown} has unknown %{} directive", char::from(*other)));
            }
        }
        format.after = take_literal(&mut rest);
        match rest {
            [] => Ok(format),
            _ => Err(format!("format {shown} has too many % directives")),
        }
    }

    pub fn print(&self, number: Extended) -> Vec<u8> {
        [self.before.as_slice(), self.number(number).as_bytes(), &self.after].concat()
    }

    /// A number without the text around it.
    pub fn number(&self, number: Extended) -> String {
        let precision = self.precision.unwrap_or(6);
        let size = match self.conversion.to_ascii_lowercase() {
            b'e' => number.scientific(precision, self.alternate),
            b'f' if self.alternate && precision == 0 => number.fixed(0) + ".",
            b'f' => number.fixed(precision),
            b'g' => number.general(precision, self.alternate),
            _ => number.hexadecimal(self.precision, self.alternate),
        };
        let sign = match (number.has_minus(), self.plus, self.blank) {
            (true, _, _) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        let missing = self.width.saturating_sub(sign.len() + size.len());
        let text = if self.left {
            format!("{sign}{size}{}", " ".repeat(missing))
        } else if self.zeros && number.is_finite() {
            let (radix, digits) = size.split_at(if size.starts_with("0x") { 2 } else { 0 });
            format!("{sign}{radix}{}{digits}", "0".repeat(missing))
        } else {
            format!("{}{sign}{size}", " ".repeat(missing))
        };
        if self.conversion.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text }
    }
}

/// Takes the text up to a conversion; `%%` is one sign.
fn take_literal(rest: &mut &[u8]) -> Vec<u8> {
    let mut literal = Vec::new();
    loop {
        match *rest {
            [b'%', b'%', after @ ..] => {
                literal.push(b'%');
                *rest = after;
            }
            [b'%', ..] | [] => return literal,
            [byte, after @ ..] => {
                literal.push(*byte);
                *rest = after;
            }
        }
    }
}

/// A width or precision; none if it is more than a field may have.
fn take_number(rest: &mut &[u8]) -> Option<usize> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    let value = |value: usize, digit: &u8| value.saturating_mul(10).saturating_add(usize::from(digit - b'0'));
    Some(number.iter().fold(0, value)).filter(|value| *value <= toolkit::pad::WIDEST)
}
