//! `printf`: formats as C has them, on values.

use crate::number;
use crate::text::{char_count, char_len, char_offset};
use crate::value::Value;
use std::io::Write;

/// How one conversion is to look.
#[derive(Clone, Copy, Default)]
struct Spec {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// What is wrong with a format and its arguments.
pub enum FormatError {
    /// There are fewer arguments than conversions; the second ends before this byte.
    TooFewArguments(usize),
    /// The conversions ask for more than any text can hold.
    TooWide,
}

/// Wider than this is no text but an attack on memory.
const WIDEST: usize = 1 << 30;

/// The arguments, taken one after the other or by their number.
struct Arguments<'a> {
    values: &'a [Value],
    next: usize,
}

impl<'a> Arguments<'a> {
    fn take(&mut self, position: Option<usize>, at: usize) -> Result<&'a Value, FormatError> {
        let index = position.unwrap_or(self.next);
        if position.is_none() {
            self.next += 1;
        }
        self.values.get(index).ok_or(FormatError::TooFewArguments(at))
    }
}

/// Appends the values as the format says; numbers within `%s` go by `convert`.
pub fn append(out: &mut Vec<u8>, format: &[u8], values: &[Value], convert: &[u8]) -> Result<(), FormatError> {
    let mut arguments = Arguments { values, next: 0 };
    let mut rest = 0;
    while let Some(percent) = memchr::memchr(b'%', &format[rest..]).map(|at| rest + at) {
        out.extend_from_slice(&format[rest..percent]);
        rest = conversion(out, format, percent, &mut arguments, convert)?;
    }
    out.extend_from_slice(&format[rest..]);
    Ok(())
}

/// Appends what the conversion at a `%` makes of its argument; answers where the format goes on.
fn conversion(
    out: &mut Vec<u8>,
    format: &[u8],
    percent: usize,
    arguments: &mut Arguments<'_>,
    convert: &[u8],
) -> Result<usize, FormatError> {
    let mut at = percent + 1;
    let position = position_at(format, &mut at);
    let mut spec = Spec::default();
    loop {
        match format.get(at) {
            Some(b'-') => spec.left = true,
            Some(b'+') => spec.plus = true,
            Some(b' ') => spec.space = true,
            Some(b'#') => spec.alternate = true,
            Some(b'0') => spec.zero = true,
            Some(b'\'') => {}
            _ => break,
        }
        at += 1;
    }
    if let Some(width) = count_at(format, &mut at, arguments)? {
        spec.left |= width < 0;
        spec.width = width.unsigned_abs() as usize;
    }
    if format.get(at) == Some(&b'.') {
        at += 1;
        let precision = count_at(format, &mut at, arguments)?.unwrap_or(0);
        spec.precision = usize::try_from(precision).ok();
    }
    if spec.width > WIDEST || spec.precision.is_some_and(|precision| precision > WIDEST) {
        return Err(FormatError::TooWide);
    }
    // What a size is called in C says nothing here; twice it is no conversion.
    at += usize::from(matches!(format.get(at), Some(b'h' | b'l' | b'L' | b'j' | b'z' | b't')));
    let Some(&letter) = format.get(at) else {
        out.extend_from_slice(&format[percent..]);
        return Ok(format.len());
    };
    at += 1;
    match letter {
        b'%' => out.push(b'%'),
        b'd' | b'i' => spec.integer(out, arguments.take(position, at)?.to_num()),
        b'o' | b'x' | b'X' | b'u' => spec.unsigned(out, arguments.take(position, at)?.to_num(), letter),
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
            spec.float(out, arguments.take(position, at)?.to_num(), letter);
        }
        b'c' => spec.character(out, arguments.take(position, at)?),
        b's' => match arguments.take(position, at)? {
            Value::Str(text) | Value::Strnum(text) => spec.string(out, text.as_bytes()),
            other => spec.string(out, other.to_str(convert).as_bytes()),
        },
        // What is no conversion stands for itself.
        _ => out.extend_from_slice(&format[percent..at]),
    }
    Ok(at)
}

/// The `N$` of a conversion, as an index.
fn position_at(format: &[u8], at: &mut usize) -> Option<usize> {
    let digits = format[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if format.get(*at + digits) != Some(&b'$') {
        return None;
    }
    let number: usize = std::str::from_utf8(&format[*at..*at + digits]).ok()?.parse().ok()?;
    let index = number.checked_sub(1)?;
    *at += digits + 1;
    Some(index)
}

/// A width or precision: digits, or `*` for the next argument.
fn count_at(
    format: &[u8],
    at: &mut usize,
    arguments: &mut Arguments<'_>,
) -> Result<Option<i64>, FormatError> {
    if format.get(*at) == Some(&b'*') {
        *at += 1;
        let position = position_at(format, at);
        return Ok(Some(arguments.take(position, *at)?.to_num() as i64));
    }
    let start = *at;
    let mut count: i64 = 0;
    while let Some(digit) = format.get(*at).filter(|byte| byte.is_ascii_digit()) {
        count = (count * 10 + i64::from(digit - b'0')).min(i64::from(u32::MAX));
        *at += 1;
    }
    Ok((*at > start).then_some(count))
}

impl Spec {
    /// Appends a text, blanks before or after it up to the width.
    fn pad(&self, out: &mut Vec<u8>, text: &[u8]) {
        let blanks = self.width.saturating_sub(char_count(text));
        if !self.left {
            out.resize(out.len() + blanks, b' ');
        }
        out.extend_from_slice(text);
        if self.left {
            out.resize(out.len() + blanks, b' ');
        }
    }

    /// Appends the digits of a number behind its sign, with zeros between them where those are asked for.
    fn pad_number(&self, out: &mut Vec<u8>, sign: &[u8], digits: &[u8], zeros: bool) {
        let blanks = self.width.saturating_sub(sign.len() + digits.len());
        let zeros = zeros && !self.left;
        if !self.left && !zeros {
            out.resize(out.len() + blanks, b' ');
        }
        out.extend_from_slice(sign);
        if zeros {
            out.resize(out.len() + blanks, b'0');
        }
        out.extend_from_slice(digits);
        if self.left {
            out.resize(out.len() + blanks, b' ');
        }
    }

    fn sign(&self, negative: bool) -> &'static [u8] {
        match (negative, self.plus, self.space) {
            (true, _, _) => b"-",
            (false, true, _) => b"+",
            (false, false, true) => b" ",
            _ => b"",
        }
    }

    fn string(&self, out: &mut Vec<u8>, text: &[u8]) {
        let end = self.precision.map_or(text.len(), |precision| char_offset(text, precision));
        self.pad(out, &text[..end]);
    }

    /// A number is a character's code, and is padded by its bytes; of a string the first character is taken.
    fn character(&self, out: &mut Vec<u8>, value: &Value) {
        if let Some(code) = value.numeric() {
            let mut utf8 = [0; 4];
            match u32::try_from(code as i64).ok().and_then(char::from_u32) {
                Some(char) => self.pad_number(out, b"", char.encode_utf8(&mut utf8).as_bytes(), false),
                None => self.pad(out, &[code as i64 as u8]),
            }
        } else if let Value::Str(text) | Value::Strnum(text) = value {
            match text.as_bytes() {
                b"" => self.pad(out, b"\0"),
                text => self.pad(out, &text[..char_len(text)]),
            }
        }
    }

    fn integer(&self, out: &mut Vec<u8>, number: f64) {
        if !number.is_finite() {
            return out.extend_from_slice(number::infinite(number));
        }
        let whole = number.trunc();
        let mut digits = Vec::with_capacity(24);
        // Writing to memory does not fail.
        let _ = write!(digits, "{:.0}", whole.abs());
        self.integer_digits(out, self.sign(whole < 0.0), digits);
    }

    /// Pads an integer's digits to the precision, and the whole to the width.
    fn integer_digits(&self, out: &mut Vec<u8>, sign: &[u8], mut digits: Vec<u8>) {
        match self.precision {
            Some(0) if digits == b"0" => digits.clear(),
            Some(precision) if precision > digits.len() => {
                let zeros = vec![b'0'; precision - digits.len()];
                digits.splice(..0, zeros);
            }
            _ => {}
        }
        self.pad_number(out, sign, &digits, self.zero && self.precision.is_none());
    }

    fn unsigned(&self, out: &mut Vec<u8>, number: f64, letter: u8) {
        if !number.is_finite() {
            return out.extend_from_slice(number::infinite(number));
        }
        let whole = number.trunc();
        let bits = if (0.0..2f64.powi(64)).contains(&whole) {
            whole as u64
        } else if (i64::MIN as f64..0.0).contains(&whole) {
            whole as i64 as u64
        } else {
            return self.float(out, whole, if letter == b'u' { b'd' } else { b'g' });
        };
        let digits = match letter {
            b'o' => format!("{bits:o}"),
            b'x' => format!("{bits:x}"),
            b'X' => format!("{bits:X}"),
            _ => format!("{bits}"),
        };
        let prefix: &[u8] = match letter {
            b'x' if self.alternate && bits != 0 => b"0x",
            b'X' if self.alternate && bits != 0 => b"0X",
            b'o' if self.alternate && bits != 0 => b"0",
            _ => b"",
        };
        self.integer_digits(out, prefix, digits.into_bytes());
    }

    fn float(&self, out: &mut Vec<u8>, number: f64, letter: u8) {
        if letter == b'd' {
            return self.integer(out, number);
        }
        if !number.is_finite() {
            return out.extend_from_slice(number::infinite(number));
        }
        let magnitude = number.abs();
        let mut digits = Vec::with_capacity(24);
        let precision = self.precision.unwrap_or(6);
        let mut prefix: Vec<u8> = self.sign(number.is_sign_negative()).to_vec();
        match letter.to_ascii_lowercase() {
            b'f' => append_fixed(&mut digits, magnitude, precision, self.alternate),
            b'e' => append_exponential(&mut digits, magnitude, precision, self.alternate),
            b'g' => append_general(&mut digits, magnitude, precision, self.alternate),
            _ => {
                prefix.extend_from_slice(b"0x");
                append_hexadecimal(&mut digits, magnitude, self.precision, self.alternate);
            }
        }
        if letter.is_ascii_uppercase() {
            digits.make_ascii_uppercase();
            prefix.make_ascii_uppercase();
        }
        self.pad_number(out, &prefix, &digits, self.zero);
    }
}

/// Appends a number that is no integer, by a format such as `%.6g`.
pub fn append_number(out: &mut Vec<u8>, number: f64, format: &[u8]) {
    if let [b'%', b'.', digit @ b'1'..=b'9', b'g'] = format {
        if number < 0.0 {
            out.push(b'-');
        }
        append_general(out, number.abs(), usize::from(digit - b'0'), false);
    } else {
        // A format that asks for more than the one number gets no more.
        let _ = append(out, format, &[Value::Num(number)], b"%.6g");
    }
}

/// `%f`. The digits of a double end after 1074 places; zeros follow.
fn append_fixed(out: &mut Vec<u8>, magnitude: f64, precision: usize, point: bool) {
    let exact = precision.min(1100);
    let _ = write!(out, "{magnitude:.exact$}");
    out.resize(out.len() + (precision - exact), b'0');
    if point && precision == 0 {
        out.push(b'.');
    }
}

/// `%e`: an exponent has a sign and at least two digits.
fn append_exponential(out: &mut Vec<u8>, magnitude: f64, precision: usize, point: bool) {
    let exact = precision.min(1100);
    let start = out.len();
    let _ = write!(out, "{magnitude:.exact$e}");
    let e = start + out[start..].iter().position(|&byte| byte == b'e').unwrap_or(0);
    let exponent = number::parse(&out[e + 1..]) as i32;
    out.truncate(e);
    if point && precision == 0 {
        out.push(b'.');
    }
    out.resize(out.len() + (precision - exact), b'0');
    let sign = if exponent < 0 { '-' } else { '+' };
    let _ = write!(out, "e{sign}{:02}", exponent.abs());
}

/// `%g`: fixed for exponents from -4 up to the precision, else exponential; zeros at the end are dropped.
fn append_general(out: &mut Vec<u8>, magnitude: f64, precision: usize, keep_zeros: bool) {
    let precision = precision.clamp(1, 1100);
    let start = out.len();
    let _ = write!(out, "{magnitude:.*e}", precision - 1);
    let e = start + out[start..].iter().position(|&byte| byte == b'e').unwrap_or(0);
    let exponent = number::parse(&out[e + 1..]) as i32;
    if exponent < -4 || exponent >= precision as i32 {
        out.truncate(e);
        if !keep_zeros {
            drop_zeros(out, start);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.abs());
    } else {
        out.truncate(start);
        let places = (precision as i32 - 1 - exponent).max(0) as usize;
        let _ = write!(out, "{magnitude:.places$}");
        if !keep_zeros {
            drop_zeros(out, start);
        } else if places == 0 {
            out.push(b'.');
        }
    }
}

/// Drops the zeros at the end of a fraction, and the point if nothing is left behind it.
fn drop_zeros(out: &mut Vec<u8>, start: usize) {
    if out[start..].contains(&b'.') {
        while out.last() == Some(&b'0') {
            out.pop();
        }
        if out.last() == Some(&b'.') {
            out.pop();
        }
    }
}

/// `%a`, without its `0x`.
fn append_hexadecimal(out: &mut Vec<u8>, magnitude: f64, precision: Option<usize>, point: bool) {
    const DIGITS: u32 = 13;
    let bits = magnitude.to_bits();
    let mut fraction = bits & ((1 << 52) - 1);
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut lead: u64 = 1;
    if magnitude == 0.0 {
        (lead, exponent) = (0, 0);
    } else if exponent == -1023 {
        (lead, exponent) = (0, -1022);
    }
    if let Some(precision) = precision.filter(|precision| *precision < DIGITS as usize) {
        let cut = 4 * (DIGITS as usize - precision);
        let whole = (lead << 52) | fraction;
        let (kept, lost, half) = (whole >> cut, whole & ((1 << cut) - 1), 1 << (cut - 1));
        let up = lost > half || (lost == half && kept & 1 == 1);
        let rounded = (kept + u64::from(up)) << cut;
        (lead, fraction) = (rounded >> 52, rounded & ((1 << 52) - 1));
    }
    let mut digits = format!("{fraction:013x}");
    match precision {
        Some(precision) if precision <= digits.len() => digits.truncate(precision),
        Some(precision) => digits.extend(std::iter::repeat_n('0', precision - digits.len())),
        None => digits.truncate(digits.trim_end_matches('0').len()),
    }
    let dot = if digits.is_empty() && !point { "" } else { "." };
    let _ = write!(out, "{lead}{dot}{digits}p{exponent:+}");
}
