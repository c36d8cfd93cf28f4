//! Numbers: from text, to text, and in order.

use crate::format;
use std::cmp::Ordering;
use std::io::Write;

/// The powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

#[inline]
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// The number at the start of a text; 0 where there is none.
#[inline]
pub fn parse(text: &[u8]) -> f64 {
    scan(text).0
}

/// The number that a whole text is, blanks around it aside.
#[inline]
pub fn looks_numeric(text: &[u8]) -> Option<f64> {
    // Most text that is no number shows it by how it begins.
    if !matches!(text.first()?, b'0'..=b'9' | b'+' | b'-' | b'.' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
    {
        return None;
    }
    let (number, end) = scan(text);
    (end > 0 && text[end..].iter().all(|&byte| is_space(byte))).then_some(number)
}

/// Reads a decimal number at the start of a text, after blanks: its value, and where it ends (0 if there is none).
pub fn scan(text: &[u8]) -> (f64, usize) {
    let mut at = 0;
    while at < text.len() && is_space(text[at]) {
        at += 1;
    }
    let start = at;
    let negative = text.get(at) == Some(&b'-');
    if negative || text.get(at) == Some(&b'+') {
        at += 1;
    }
    let first_digit = at;
    let mut mantissa: u64 = 0;
    while let Some(digit) = digit_at(text, at) {
        mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
        at += 1;
    }
    let mut digits = at - first_digit;
    let mut exponent = 0;
    if text.get(at) == Some(&b'.') {
        let point = at;
        at += 1;
        while let Some(digit) = digit_at(text, at) {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        digits += at - point - 1;
        exponent = point as i64 + 1 - at as i64;
    }
    if digits == 0 {
        return special(text, start);
    }
    if let Some((power, end)) = exponent_at(text, at) {
        exponent += power;
        at = end;
    }
    // With few digits the mantissa is exact, and one correctly rounded operation makes the number.
    let magnitude = if digits <= 15 && (-22..=22).contains(&exponent) {
        let power = EXACT_POWERS[exponent.unsigned_abs() as usize];
        if exponent < 0 { mantissa as f64 / power } else { mantissa as f64 * power }
    } else {
        let exact = std::str::from_utf8(&text[first_digit..at]).ok().and_then(|text| text.parse().ok());
        exact.unwrap_or(0.0)
    };
    (if negative { -magnitude } else { magnitude }, at)
}

#[inline]
fn digit_at(text: &[u8], at: usize) -> Option<u64> {
    let digit = text.get(at)?.wrapping_sub(b'0');
    (digit < 10).then_some(u64::from(digit))
}

/// An exponent, if a whole one stands here: its value and where it ends.
fn exponent_at(text: &[u8], at: usize) -> Option<(i64, usize)> {
    if !matches!(text.get(at), Some(b'e' | b'E')) {
        return None;
    }
    let signed = matches!(text.get(at + 1), Some(b'+' | b'-'));
    let start = at + 1 + usize::from(signed);
    let mut end = start;
    let mut power: i64 = 0;
    while let Some(digit) = digit_at(text, end) {
        power = (power * 10 + digit as i64).min(100_000);
        end += 1;
    }
    let power = if text.get(at + 1) == Some(&b'-') { -power } else { power };
    (end > start).then_some((power, end))
}

/// The four texts without digits that are numbers: `+inf`, `-inf`, `+nan`, `-nan`.
fn special(text: &[u8], start: usize) -> (f64, usize) {
    let rest = &text[start..];
    let end = rest.iter().position(|&byte| is_space(byte)).unwrap_or(rest.len());
    let number = match rest[..end].to_ascii_lowercase().as_slice() {
        b"+inf" => f64::INFINITY,
        b"-inf" => f64::NEG_INFINITY,
        b"+nan" => f64::NAN.copysign(1.0),
        b"-nan" => f64::NAN.copysign(-1.0),
        _ => return (0.0, 0),
    };
    (number, start + end)
}

/// Appends an integer.
#[inline]
pub fn append_integer(out: &mut Vec<u8>, number: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

/// The integer that a double is, if it is one that both hold.
#[inline]
pub fn as_integer(number: f64) -> Option<i64> {
    let integer = number as i64;
    (integer as f64 == number && integer != i64::MAX).then_some(integer)
}

/// Appends a number as a string: an integer with all its digits, anything else by the format `convert`.
#[inline]
pub fn append(out: &mut Vec<u8>, number: f64, convert: &[u8]) {
    if let Some(integer) = as_integer(number) {
        append_integer(out, integer);
    } else if !number.is_finite() {
        out.extend_from_slice(infinite(number));
    } else if number.fract() == 0.0 {
        // Writing to memory does not fail.
        let _ = write!(out, "{number:.0}");
    } else {
        format::append_number(out, number, convert);
    }
}

/// What is no finite number, in words.
pub fn infinite(number: f64) -> &'static [u8] {
    match (number.is_nan(), number.is_sign_negative()) {
        (true, true) => b"-nan",
        (true, false) => b"+nan",
        (false, true) => b"-inf",
        (false, false) => b"+inf",
    }
}

/// Numbers in order; what is no number comes after all others.
#[inline]
pub fn compare(left: f64, right: f64) -> Ordering {
    match left.partial_cmp(&right) {
        Some(order) => order,
        None => left.is_nan().cmp(&right.is_nan()),
    }
}
