//! The words of a command, and what they can mean.

use super::Words;
use crate::output::complain;

/// Cuts a command into words. Between double quotes, and in words without quotes, a backslash stands for what it does
/// in C.
pub fn split(line: &[u8]) -> Words {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii();
    while let Some(&first) = rest.first() {
        let is_quoted = matches!(first, b'\'' | b'"');
        let (word, end) = if is_quoted { quoted(rest, first) } else { plain(rest) };
        words.push(if first == b'\'' { word.to_vec() } else { unescaped(word) });
        rest = rest[end..].trim_ascii_start();
    }
    words
}

fn plain(text: &[u8]) -> (&[u8], usize) {
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    (&text[..end], end)
}

fn quoted(text: &[u8], quote: u8) -> (&[u8], usize) {
    let mut at = 1;
    while at < text.len() && text[at] != quote {
        // A backslash protects the quote, and itself.
        at += if text[at] == b'\\' && quote == b'"' && at + 1 < text.len() { 2 } else { 1 };
    }
    (&text[1..at], (at + 1).min(text.len()))
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = text.iter().copied().peekable();
    let mut plain = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' || bytes.peek().is_none() {
            plain.push(byte);
            continue;
        }
        match bytes.next().unwrap_or_default() {
            b'a' => plain.push(7),
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'n' => plain.push(b'\n'),
            b'r' => plain.push(b'\r'),
            b't' => plain.push(b'\t'),
            b'v' => plain.push(11),
            digit @ b'0'..=b'7' => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(next) = bytes.next_if(|next| (b'0'..=b'7').contains(next)) {
                        code = code * 8 + u32::from(next - b'0');
                    }
                }
                plain.push(code as u8);
            }
            other => plain.push(other),
        }
    }
    plain
}

/// A whole number, in decimal or after `0x`, with a unit such as `k` or `MiB`; 0 for what is none.
pub fn number(word: &[u8]) -> i64 {
    let text = String::from_utf8_lossy(word);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    if let Some(hexadecimal) = digits.strip_prefix("0x") {
        return i64::from_str_radix(hexadecimal, 16).map_or(0, |number| sign * number);
    }
    let end = digits.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(digits.len());
    let value: i64 = digits[..end].parse().unwrap_or(0);
    let unit = match digits[end..].to_ascii_lowercase().as_str() {
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "kb" | "k" => 1000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        _ => 1,
    };
    sign * value.saturating_mul(unit)
}

/// `on` or `off`, in one of their forms.
pub fn boolean(word: &[u8]) -> bool {
    let is_number = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    if is_number || word.starts_with(b"0x") {
        return number(word) != 0;
    }
    match word.to_ascii_lowercase().as_slice() {
        b"on" | b"yes" => true,
        b"off" | b"no" => false,
        _ => {
            complain([b"ERROR: Not a boolean value: \"", word, b"\". Assuming \"no\".\n"].concat());
            false
        }
    }
}

/// Whether a word is an option with this name, behind one dash or two.
pub fn is_option(word: &[u8], name: &str) -> bool {
    option(word) == Some(name.as_bytes())
}

/// The name of an option, without its dashes.
pub fn option(word: &[u8]) -> Option<&[u8]> {
    word.strip_prefix(b"--").or_else(|| word.strip_prefix(b"-"))
}
