//! Names with versions in them, in the order people expect: `file9`, `file10`; `1.0~rc1` before `1.0`.

use std::cmp::Ordering;

/// Compares two names as `sort -V` and `ls -v` do.
pub fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let first = |name: &[u8]| -> u8 {
        // Nothing, then `.` and `..`, then hidden names, then all others.
        match name {
            b"" => 0,
            b"." => 1,
            b".." => 2,
            [b'.', ..] => 3,
            _ => 4,
        }
    };
    let ranks = first(left).cmp(&first(right));
    if ranks != Ordering::Equal || left == right {
        return ranks;
    }
    let (bare_left, bare_right) = (without_suffix(left), without_suffix(right));
    // Names that differ in their suffixes alone are compared whole.
    if bare_left == bare_right {
        return compare_parts(left, right);
    }
    compare_parts(bare_left, bare_right).then_with(|| compare_parts(left, right))
}

/// A name without `.tar.gz` and the like: periods with a letter or `~` after them, then letters and digits.
fn without_suffix(name: &[u8]) -> &[u8] {
    let mut end = name.len();
    loop {
        let Some(period) = name[..end].iter().rposition(|&byte| byte == b'.') else { return &name[..end] };
        let suffix = &name[period + 1..end];
        let starts = suffix.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'~');
        let goes_on = suffix.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'~');
        if period == 0 || !starts || !goes_on {
            return &name[..end];
        }
        end = period;
    }
}

/// Compares runs of other characters and of digits, in turn.
fn compare_parts(mut left: &[u8], mut right: &[u8]) -> Ordering {
    while !left.is_empty() || !right.is_empty() {
        loop {
            let (mine, other) = (left.first(), right.first());
            if mine.is_none_or(u8::is_ascii_digit) && other.is_none_or(u8::is_ascii_digit) {
                break;
            }
            match rank(mine).cmp(&rank(other)) {
                Ordering::Equal => (left, right) = (&left[1..], &right[1..]),
                ordering => return ordering,
            }
        }
        let (mine, other) = (take_number(&mut left), take_number(&mut right));
        let ordering = mine.len().cmp(&other.len()).then_with(|| mine.cmp(other));
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    Ordering::Equal
}

/// `~` comes before the end, digits with it, letters next, then all else.
fn rank(byte: Option<&u8>) -> i32 {
    match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_digit() => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(*byte),
        Some(byte) => i32::from(*byte) + 256,
    }
}

/// Digits off the front, without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    let zeros = number.iter().take_while(|&&digit| digit == b'0').count();
    &number[zeros..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_in_order() {
        let names = [
            "",
            ".",
            "..",
            ".a",
            "1.0~rc1",
            "1.0",
            "1.2",
            "1.10",
            "a",
            "a1",
            "a01b",
            "a2.tar.gz",
            "a10.tar.gz",
        ];
        for pair in names.windows(2) {
            assert_eq!(compare(pair[0].as_bytes(), pair[1].as_bytes()), Ordering::Less, "{pair:?}");
        }
    }
}
