//! Upper and lower case.

use crate::pattern::Pattern;

fn map(text: &[u8], mut change: impl FnMut(usize, char, &mut Vec<u8>) -> bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut count = 0;
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if !change(count, c, &mut out) {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            count += 1;
        }
        out.extend_from_slice(chunk.invalid());
        count += chunk.invalid().len();
    }
    out
}

fn push(c: char, upper: bool, out: &mut Vec<u8>) -> bool {
    // One character for one, as C's functions do.
    let mut changed: (Option<char>, Option<char>) = if upper {
        let mut chars = c.to_uppercase();
        (chars.next(), chars.next())
    } else {
        let mut chars = c.to_lowercase();
        (chars.next(), chars.next())
    };
    if changed.1.is_some() {
        changed.0 = None;
    }
    out.extend_from_slice(changed.0.unwrap_or(c).encode_utf8(&mut [0; 4]).as_bytes());
    true
}

pub fn to_upper(text: &[u8]) -> Vec<u8> {
    map(text, |_, c, out| push(c, true, out))
}

pub fn to_lower(text: &[u8]) -> Vec<u8> {
    map(text, |_, c, out| push(c, false, out))
}

pub fn capitalize(text: &[u8]) -> Vec<u8> {
    map(text, |at, c, out| push(c, at == 0, out))
}

/// `^`, `,` and `~`: the characters a pattern matches, or all of them.
pub fn change(text: &[u8], kind: u8, all: bool, pattern: Option<&Pattern>, utf8: bool) -> Vec<u8> {
    map(text, |at, c, out| {
        if !utf8 && !c.is_ascii() {
            return false;
        }
        let chosen = (all || at == 0)
            && pattern.is_none_or(|pattern| pattern.matches(c.encode_utf8(&mut [0; 4]).as_bytes()));
        let upper = match kind {
            b'^' => true,
            b',' => false,
            _ => c.is_lowercase(),
        };
        chosen && push(c, upper, out)
    })
}
