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
