//! Backslashes: in the text of a program, on the command line, in patterns.

use wardian_regex::byte_of;

/// A text with its escapes replaced, as in a string of a program. A backslash before anything else goes.
pub fn unescape(text: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        if text[at] != b'\\' {
            plain.push(text[at]);
            at += 1;
            continue;
        }
        at += 1;
        let rest = &text[at..];
        if let Some((byte, length)) = byte_of(rest) {
            plain.push(byte);
            at += length;
            continue;
        }
        match rest {
            [] => plain.push(b'\\'),
            // A line goes on behind it.
            [b'\n', ..] => at += 1,
            [b'\r', b'\n', ..] => at += 2,
            [byte, ..] => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}
