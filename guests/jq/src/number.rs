//! Numbers as text: doubles the way jq prints them, and literals that keep every digit they were written with.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::value::Value;

/// A number as it was written.
#[derive(Debug)]
pub struct Literal {
    pub double: f64,
    written: Box<str>,
}

/// A literal taken apart.
struct Parts<'a> {
    negative: bool,
    /// Those before and after the point.
    whole: &'a str,
    fraction: &'a str,
    exponent: i64,
}

impl Literal {
    /// In the one form that jq prints it in.
    pub fn text(&self) -> String {
        match parts(&self.written) {
            Some(parts) => scientific(parts.negative, &parts.digits(), parts.power()),
            None => format(self.double),
        }
    }

    /// The order of two literals that are the same as doubles.
    pub fn compare_digits(&self, other: &Literal) -> Ordering {
        let (Some(one), Some(two)) = (parts(&self.written), parts(&other.written)) else {
            return Ordering::Equal;
        };
        let (digits_of_one, digits_of_two) = (one.digits(), two.digits());
        if digits_of_one == "0" && digits_of_two == "0" {
            return Ordering::Equal;
        }
        let magnitude = |digits: &str, power: i64| power.saturating_add(digits.len() as i64);
        let order = magnitude(&digits_of_one, one.power()).cmp(&magnitude(&digits_of_two, two.power()));
        let order = order.then_with(|| {
            let width = digits_of_one.len().max(digits_of_two.len());
            format!("{digits_of_one:0<width$}").cmp(&format!("{digits_of_two:0<width$}"))
        });
        if one.negative { order.reverse() } else { order }
    }
}

impl Parts<'_> {
    /// All digits without leading zeros.
    fn digits(&self) -> String {
        let digits = format!("{}{}", self.whole, self.fraction);
        match digits.trim_start_matches('0') {
            "" => "0".into(),
            rest => rest.to_owned(),
        }
    }

    /// The power of ten that the last digit counts.
    fn power(&self) -> i64 {
        self.exponent - self.fraction.len() as i64
    }
}

/// Takes a literal apart; `None` if it is none.
fn parts(text: &str) -> Option<Parts<'_>> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], parse_exponent(&unsigned[at + 1..])?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || whole.is_empty() && fraction.is_empty() {
        return None;
    }
    Some(Parts { negative, whole, fraction, exponent })
}

/// The value of a number in JSON or in a program; `None` if the text is none.
pub fn parse(text: &[u8]) -> Option<Value> {
    if let Some(number) = small_integer(text) {
        return Some(Value::Number(number));
    }
    let text = std::str::from_utf8(text).ok()?;
    let parts = parts(text)?;
    // Never infinite: what is too large is the largest there is, as jq has it.
    let double = text.parse::<f64>().ok()?.clamp(f64::MIN, f64::MAX);
    if is_printed_so(text, &parts) {
        return Some(Value::Number(double));
    }
    Some(Value::Literal(Rc::new(Literal { double, written: text.into() })))
}

/// Whether the double of a literal is sure to be printed as it was written: a few digits, a point, no zeros that say
/// nothing.
fn is_printed_so(text: &str, parts: &Parts<'_>) -> bool {
    let has_exponent =
        text.len() != usize::from(parts.negative) + parts.whole.len() + 1 + parts.fraction.len();
    let digits = parts.whole.len() + parts.fraction.len();
    let zero_in_front = parts.whole.starts_with('0');
    !has_exponent
        && digits <= 15
        && !parts.fraction.is_empty()
        && !parts.fraction.ends_with('0')
        && match zero_in_front {
            true => parts.whole == "0" && !parts.fraction.starts_with("0000"),
            false => !parts.whole.is_empty(),
        }
}

/// What most numbers are: up to 15 digits and perhaps a sign, for which text and double say the same.
fn small_integer(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    // A zero in front would be lost, and a minus before a zero is one more case to think of.
    if digits.is_empty() || digits.len() > 15 || digits[0] == b'0' && (digits.len() > 1 || negative) {
        return None;
    }
    let mut number = 0u64;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number * 10 + u64::from(digit - b'0');
    }
    Some(if negative { -(number as f64) } else { number as f64 })
}

/// An exponent beyond reason is as good as the largest in reason.
fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let size = digits.parse::<i64>().unwrap_or(i64::MAX).min(999_999_999);
    Some(if text.starts_with('-') { -size } else { size })
}

/// Digits and an exponent as General Decimal Arithmetic writes them.
fn scientific(negative: bool, digits: &str, exponent: i64) -> String {
    let sign = if negative { "-" } else { "" };
    let count = digits.len() as i64;
    let adjusted = exponent + count - 1;
    if exponent == 0 {
        return format!("{sign}{digits}");
    }
    if exponent < 0 && adjusted >= -6 {
        let point = count + exponent;
        return match usize::try_from(point) {
            Ok(point) if point > 0 => format!("{sign}{}.{}", &digits[..point], &digits[point..]),
            _ => format!("{sign}0.{}{digits}", "0".repeat(point.unsigned_abs() as usize)),
        };
    }
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{point}{rest}E{adjusted:+}")
}

/// A double in the fewest digits that give it back: `17` digits at most, an exponent of two digits at least.
pub fn format(number: f64) -> String {
    let mut text = String::new();
    write(number, &mut text);
    text
}

/// Writes a double as JSON: `nan` is null, what is infinite the largest there is.
pub fn write(number: f64, text: &mut String) {
    use std::fmt::Write as _;
    if number.is_nan() {
        text.push_str("null");
        return;
    }
    if number == number.trunc() && number.abs() < 1e15 {
        if number == 0.0 && number.is_sign_negative() {
            text.push_str("-0");
        } else {
            write_integer(number as i64, text);
        }
        return;
    }
    let number = number.clamp(f64::MIN, f64::MAX);
    let shortest = format!("{:e}", number.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits = mantissa.replace('.', "");
    let point = exponent.parse::<i64>().unwrap_or(0) + 1;
    let count = digits.len() as i64;
    if number < 0.0 {
        text.push('-');
    }
    // Writing to a string cannot fail.
    let _ = if point <= -4 || point > count + 15 {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        let sign = if point > 0 { '+' } else { '-' };
        write!(text, "{first}{dot}{rest}e{sign}{:02}", (point - 1).abs())
    } else if point <= 0 {
        write!(text, "0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point >= count {
        write!(text, "{digits}{}", "0".repeat((point - count) as usize))
    } else {
        write!(text, "{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
}

fn write_integer(number: i64, text: &mut String) {
    let mut digits = [0u8; 20];
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
        text.push('-');
    }
    text.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}
