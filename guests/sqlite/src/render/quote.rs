//! Values with the quotes and escapes that each mode gives them.

use super::until_nul;
use crate::database::{Cell, is_keyword};
use crate::extended::all_digits;

/// A value as a literal of SQL, for people.
pub fn sql_value(cell: &Cell) -> Vec<u8> {
    match cell {
        Cell::Null => b"NULL".to_vec(),
        Cell::Integer(number) => number.to_string().into_bytes(),
        Cell::Real(number, _) => all_digits(*number).into_bytes(),
        Cell::Text(text) => sql_text(&until_nul(text.clone())),
        Cell::Blob(bytes) => blob(b'X', bytes),
    }
}

/// A value as a literal of SQL, on one line, which reads back as the same.
pub fn insert_value(cell: &Cell) -> Vec<u8> {
    match cell {
        Cell::Real(number, _) if number.is_infinite() => {
            if *number > 0.0 {
                b"1e999".to_vec()
            } else {
                b"-1e999".to_vec()
            }
        }
        Cell::Real(number, _) if *number as i64 as f64 == *number => {
            format!("{}.0", *number as i64).into_bytes()
        }
        Cell::Text(text) => one_line_text(&until_nul(text.clone())),
        other => sql_value(other),
    }
}

/// Bytes in hexadecimal.
pub fn blob(letter: u8, bytes: &[u8]) -> Vec<u8> {
    let mut text = vec![letter, b'\''];
    text.extend(bytes.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()));
    text.push(b'\'');
    text
}

/// A text between single quotes.
pub fn sql_text(text: &[u8]) -> Vec<u8> {
    wrapped(text, b'\'')
}

fn wrapped(text: &[u8], quote: u8) -> Vec<u8> {
    let mut quoted = vec![quote];
    for &byte in text {
        quoted.push(byte);
        if byte == quote {
            quoted.push(quote);
        }
    }
    quoted.push(quote);
    quoted
}

/// A text between single quotes whose line ends are put in by `replace`, so that it stays on one line.
fn one_line_text(text: &[u8]) -> Vec<u8> {
    let has = |byte| text.contains(&byte);
    let mut inner = text.to_vec();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (byte, letter, code) in [(b'\n', b'n', "10"), (b'\r', b'r', "13")] {
        if !has(byte) {
            continue;
        }
        let stand_in = stand_in(text, letter);
        inner = replaced(&inner, byte, &stand_in);
        before.extend(b"replace(");
        after.push([b",'", &stand_in[..], b"',char(", code.as_bytes(), b"))"].concat());
    }
    // The last replacement to be wrapped around it is the first to be written.
    after.reverse();
    [before, sql_text(&inner), after.concat()].concat()
}

/// `\n`, or where the text has that already something that it has not.
fn stand_in(text: &[u8], letter: u8) -> Vec<u8> {
    let has = |wanted: &[u8]| text.windows(wanted.len()).any(|window| window == wanted);
    let letter = char::from(letter);
    let octal = if letter == 'n' { "\\012" } else { "\\015" };
    let usual = [format!("\\{letter}"), octal.to_owned()];
    let numbered = (0..).map(|count: u32| format!("(\\{letter}{count})"));
    let mut candidates = usual.into_iter().chain(numbered).map(String::into_bytes);
    candidates.find(|candidate| !has(candidate)).unwrap_or_default()
}

fn replaced(text: &[u8], byte: u8, with: &[u8]) -> Vec<u8> {
    text.split(|&other| other == byte).collect::<Vec<_>>().join(with)
}

/// A name, in double quotes where it needs them.
pub fn name(name: &[u8]) -> Vec<u8> {
    let is_letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
    let is_plain = name.first().is_some_and(|&first| is_letter(first))
        && name.iter().all(|&byte| is_letter(byte) || byte.is_ascii_digit());
    if is_plain && !is_keyword(name) { name.to_vec() } else { wrapped(name, b'"') }
}

/// A field of CSV.
pub fn csv(text: &[u8], separator: &[u8]) -> Vec<u8> {
    let is_odd = |byte: u8| byte <= b' ' || byte == b'"' || byte == b'\'' || byte >= 127;
    let has_separator =
        !separator.is_empty() && text.windows(separator.len()).any(|window| window == separator);
    if text.is_empty() || has_separator || text.iter().any(|&byte| is_odd(byte)) {
        wrapped(text, b'"')
    } else {
        text.to_vec()
    }
}

/// A string of C or Tcl.
pub fn tcl(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in text {
        match byte {
            b'\\' => quoted.extend(b"\\\\"),
            b'"' => quoted.extend(b"\\\""),
            b'\t' => quoted.extend(b"\\t"),
            b'\n' => quoted.extend(b"\\n"),
            b'\r' => quoted.extend(b"\\r"),
            // The original asks `isprint`, which in the C locale knows ASCII alone.
            0..32 | 127.. => quoted.extend(format!("\\{byte:03o}").bytes()),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

pub mod html {
    /// A row of a table.
    pub fn row<'a>(tag: &[u8], texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut row = b"<TR>".to_vec();
        for text in texts {
            row.extend([b"<", tag, b">"].concat());
            row.extend(escaped(text));
            row.extend([b"</", tag, b">\n"].concat());
        }
        row.extend(b"</TR>\n");
        row
    }

    fn escaped(text: &[u8]) -> Vec<u8> {
        let mut escaped = Vec::new();
        for &byte in text {
            match byte {
                b'<' => escaped.extend(b"&lt;"),
                b'>' => escaped.extend(b"&gt;"),
                b'&' => escaped.extend(b"&amp;"),
                b'"' => escaped.extend(b"&quot;"),
                b'\'' => escaped.extend(b"&#39;"),
                _ => escaped.push(byte),
            }
        }
        escaped
    }
}

pub mod json {
    use crate::database::Cell;
    use crate::extended::all_digits;

    /// A row as an object, on a line that those before it do not end.
    pub fn object(names: &[Vec<u8>], row: &[Cell], has_predecessor: bool) -> Vec<u8> {
        let mut text = if has_predecessor { b",\n{".to_vec() } else { b"{".to_vec() };
        for (index, (name, cell)) in names.iter().zip(row).enumerate() {
            if index > 0 {
                text.push(b',');
            }
            text.extend(string(name));
            text.push(b':');
            text.extend(value(cell));
        }
        text.push(b'}');
        text
    }

    fn value(cell: &Cell) -> Vec<u8> {
        match cell {
            Cell::Null => b"null".to_vec(),
            Cell::Integer(number) => number.to_string().into_bytes(),
            Cell::Real(number, _) if number.is_infinite() => {
                if *number > 0.0 {
                    b"1e999".to_vec()
                } else {
                    b"-1e999".to_vec()
                }
            }
            Cell::Real(number, _) => all_digits(*number).into_bytes(),
            Cell::Text(text) | Cell::Blob(text) => string(text),
        }
    }

    fn string(text: &[u8]) -> Vec<u8> {
        let mut quoted = vec![b'"'];
        for &byte in text {
            match byte {
                b'\\' | b'"' => quoted.extend([b'\\', byte]),
                8 => quoted.extend(b"\\b"),
                12 => quoted.extend(b"\\f"),
                b'\n' => quoted.extend(b"\\n"),
                b'\r' => quoted.extend(b"\\r"),
                b'\t' => quoted.extend(b"\\t"),
                0..32 => quoted.extend(format!("\\u{byte:04x}").bytes()),
                _ => quoted.push(byte),
            }
        }
        quoted.push(b'"');
        quoted
    }
}
