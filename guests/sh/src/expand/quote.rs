//! Quoting text so that the shell reads it back as it is.

/// As `@Q`, `declare -p` of scripts and `set` have it: `'…'`, or `$'…'` when there are control characters.
pub fn quote(text: &[u8]) -> Vec<u8> {
    if text.iter().any(|&byte| byte < 0x20 || byte == 0x7f) || std::str::from_utf8(text).is_err() {
        return ansi(text);
    }
    single(text)
}

pub fn single(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'\''];
    for &byte in text {
        if byte == b'\'' { out.extend_from_slice(b"'\\''") } else { out.push(byte) }
    }
    out.push(b'\'');
    out
}

/// `$'…'`
pub fn ansi(text: &[u8]) -> Vec<u8> {
    let mut out = b"$'".to_vec();
    for chunk in text.utf8_chunks() {
        for &byte in chunk.valid().as_bytes() {
            ansi_byte(byte, &mut out);
        }
        for byte in chunk.invalid() {
            out.extend_from_slice(format!("\\{byte:03o}").as_bytes());
        }
    }
    out.push(b'\'');
    out
}

fn ansi_byte(byte: u8, out: &mut Vec<u8>) {
    match byte {
        7 => out.extend_from_slice(b"\\a"),
        8 => out.extend_from_slice(b"\\b"),
        9 => out.extend_from_slice(b"\\t"),
        10 => out.extend_from_slice(b"\\n"),
        11 => out.extend_from_slice(b"\\v"),
        12 => out.extend_from_slice(b"\\f"),
        13 => out.extend_from_slice(b"\\r"),
        27 => out.extend_from_slice(b"\\E"),
        b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        byte if byte < 0x20 || byte == 0x7f => out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
        _ => out.push(byte),
    }
}

/// As `printf %q` has it: backslashes where they are needed.
pub fn backslash(text: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return b"''".to_vec();
    }
    if text.iter().any(|&byte| byte < 0x20 || byte == 0x7f) || std::str::from_utf8(text).is_err() {
        return ansi(text);
    }
    let mut out = Vec::with_capacity(text.len());
    for (at, &byte) in text.iter().enumerate() {
        let special = match byte {
            b' ' | b'!' | b'"' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b',' | b';' | b'<' | b'>'
            | b'?' | b'[' | b'\\' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' => true,
            b'~' => at == 0 || matches!(text[at - 1], b':' | b'='),
            b'#' => at == 0,
            _ => false,
        };
        if special {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

/// As `declare -p` has values: `"…"`, or `$'…'` when there are control characters.
pub fn double(text: &[u8]) -> Vec<u8> {
    if text.iter().any(|&byte| byte < 0x20 || byte == 0x7f) || std::str::from_utf8(text).is_err() {
        return ansi(text);
    }
    let mut out = vec![b'"'];
    for &byte in text {
        if matches!(byte, b'"' | b'\\' | b'$' | b'`') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out.push(b'"');
    out
}

/// As `set -x` shows words: in single quotes where anything in them is special to the shell, blanks of all kinds
/// among it.
pub fn for_trace(text: &[u8]) -> Vec<u8> {
    match text.iter().any(|byte| matches!(byte, b'\t' | b'\n')) {
        true => single(text),
        false => if_needed(text),
    }
}

/// A name in a message: quoted if a terminal would not show it as it is.
pub fn shown(text: &[u8]) -> Vec<u8> {
    let control = text.iter().any(|&byte| byte < 0x20 || byte == 0x7f);
    if control || std::str::from_utf8(text).is_err() { ansi(text) } else { text.to_vec() }
}

/// As `set` lists values: quoted only where needed.
pub fn if_needed(text: &[u8]) -> Vec<u8> {
    if text.is_empty() {
        return b"''".to_vec();
    }
    if text.iter().any(|&byte| byte < 0x20 || byte == 0x7f) || std::str::from_utf8(text).is_err() {
        return ansi(text);
    }
    if text == b"'" {
        return b"\\'".to_vec();
    }
    if has_special(text) { single(text) } else { text.to_vec() }
}

/// Whether some character of a word means something to the shell.
fn has_special(text: &[u8]) -> bool {
    text.iter().enumerate().any(|(at, &byte)| match byte {
        b' ' | b'!' | b'"' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b';' | b'<' | b'>' | b'?' | b'['
        | b'\\' | b']' | b'^' | b'`' | b'{' | b'|' | b'}' => true,
        b'#' | b'~' => at == 0,
        _ => false,
    })
}

/// As `declare -p` has the keys of an associative array.
pub fn key(text: &[u8]) -> Vec<u8> {
    let control = text.iter().any(|&byte| byte < 0x20 || byte == 0x7f) || std::str::from_utf8(text).is_err();
    let listed = text == b"@";
    if text.is_empty() || listed || control || has_special(text) { double(text) } else { text.to_vec() }
}
