//! Counts as GNU's tools read them, with a suffix or without, and their words for what is wrong with one.

use super::quote;

/// Why a text is no count.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Wrong {
    NoNumber,
    /// More than can be counted.
    TooLarge,
    /// Not within the bounds asked for.
    OutOfRange,
}

/// A count between bounds. `suffixes` are the letters that may follow it; with a `0` among them, `B` or `iB` may
/// follow the letter.
pub fn parse(text: &[u8], bounds: std::ops::RangeInclusive<u64>, suffixes: &str) -> Result<u64, Wrong> {
    let text = text.trim_ascii_start();
    let text = text.strip_prefix(b"+").unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, suffix) = text.split_at(digits);
    let unit = unit_of(suffix, suffixes).ok_or(Wrong::NoNumber)?;
    if digits.is_empty() && suffix.is_empty() {
        return Err(Wrong::NoNumber);
    }
    // A letter alone stands for one of what it counts in.
    let number = if digits.is_empty() { Some(1) } else { decimal(digits) };
    let count = number.and_then(|number| number.checked_mul(unit)).ok_or(Wrong::TooLarge)?;
    match u64::try_from(count) {
        Ok(count) if bounds.contains(&count) => Ok(count),
        Ok(count) if count <= i32::MAX as u64 / 2 => Err(Wrong::OutOfRange),
        _ => Err(Wrong::TooLarge),
    }
}

/// As [`parse`]; what is wrong is said after `what`, as in `invalid number of lines: 'x'`.
pub fn or_complaint(
    what: &str,
    text: &[u8],
    bounds: std::ops::RangeInclusive<u64>,
    suffixes: &str,
) -> Result<u64, String> {
    parse(text, bounds, suffixes).map_err(|wrong| complaint(what, text, wrong))
}

fn complaint(what: &str, text: &[u8], wrong: Wrong) -> String {
    let why = match wrong {
        Wrong::NoNumber => "",
        Wrong::TooLarge => ": Value too large for defined data type",
        Wrong::OutOfRange => ": Numerical result out of range",
    };
    format!("{what}: {}{why}", quote::word(text))
}

/// A number between bounds that may have a sign, or what is wrong with it.
pub fn signed(what: &str, text: &[u8], bounds: std::ops::RangeInclusive<i64>) -> Result<i64, String> {
    let number = text.trim_ascii_start();
    let (digits, is_negative) = match number {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    let wrong = if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        Wrong::NoNumber
    } else {
        let magnitude = decimal(digits).and_then(|value| i128::try_from(value).ok()).unwrap_or(i128::MAX);
        let value = if is_negative { -magnitude } else { magnitude };
        match i64::try_from(value) {
            Ok(value) if bounds.contains(&value) => return Ok(value),
            Ok(value) if value.abs() <= i64::from(i32::MAX / 2) => Wrong::OutOfRange,
            _ => Wrong::TooLarge,
        }
    };
    Err(complaint(what, text, wrong))
}

/// A count of nothing but digits; one that is too large is as good as the largest.
pub fn saturating(text: &[u8]) -> Option<usize> {
    let is_count = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_count.then(|| decimal(text).map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX)))
}

fn decimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0u128, |value, digit| value.checked_mul(10)?.checked_add(u128::from(digit - b'0')))
}

fn unit_of(suffix: &[u8], suffixes: &str) -> Option<u128> {
    let [letter, rest @ ..] = suffix else { return Some(1) };
    if !suffixes.contains(char::from(*letter)) || *letter == b'0' {
        return None;
    }
    let base: u128 = match rest {
        b"" => 1024,
        b"iB" if suffixes.contains('0') => 1024,
        b"B" | b"D" if suffixes.contains('0') => 1000,
        _ => return None,
    };
    let power = match letter {
        b'b' => return rest.is_empty().then_some(512),
        b'c' => return rest.is_empty().then_some(1),
        b'w' => return rest.is_empty().then_some(2),
        letter => b"KMGTPEZY".iter().position(|unit| unit.eq_ignore_ascii_case(letter))?,
    };
    base.checked_pow(power as u32 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_multiply_and_bounds_hold() {
        let read = |text: &str| parse(text.as_bytes(), 1..=u64::MAX, "bEGKkMmPTYZ0");
        assert_eq!(read("12"), Ok(12));
        assert_eq!(read(" +3K"), Ok(3072));
        assert_eq!(read("1kB"), Ok(1000));
        assert_eq!(read("2b"), Ok(1024));
        assert_eq!(read("MiB"), Ok(1 << 20));
        assert_eq!(read("0"), Err(Wrong::OutOfRange));
        assert_eq!(read("1Y"), Err(Wrong::TooLarge));
        assert_eq!(read("-1"), Err(Wrong::NoNumber));
        assert_eq!(read("1Kx"), Err(Wrong::NoNumber));
        assert_eq!(read(""), Err(Wrong::NoNumber));
    }
}
