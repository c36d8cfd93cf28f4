//! Paths as git prints them.

/// A path in quotes, as C would write it, if it has bytes that need it.
pub fn path(path: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| (0x20..0x7f).contains(byte) && !matches!(byte, b'"' | b'\\');
    if path.iter().all(plain) { path.to_vec() } else { always(path) }
}

/// In quotes also for a space, as `status -s` has it.
pub fn path_or_spaced(name: &[u8]) -> Vec<u8> {
    if name.contains(&b' ') { always(name) } else { path(name) }
}

fn always(path: &[u8]) -> Vec<u8> {
    let mut text = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => text.extend_from_slice(&[b'\\', byte]),
            7 => text.extend_from_slice(b"\\a"),
            8 => text.extend_from_slice(b"\\b"),
            b'\t' => text.extend_from_slice(b"\\t"),
            b'\n' => text.extend_from_slice(b"\\n"),
            11 => text.extend_from_slice(b"\\v"),
            12 => text.extend_from_slice(b"\\f"),
            b'\r' => text.extend_from_slice(b"\\r"),
            0x20..=0x7e => text.push(byte),
            byte => text.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        }
    }
    text.push(b'"');
    text
}

/// The path that a quoted text stands for, and what follows the closing quote.
pub fn unquote(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut rest = text.strip_prefix(b"\"")?;
    let mut path = Vec::new();
    loop {
        match rest {
            [b'"', after @ ..] => return Some((path, after)),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                path.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            [b'\\', byte, after @ ..] => {
                path.push(match byte {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    byte => *byte,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                path.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}
