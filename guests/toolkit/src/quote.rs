//! Names in messages, quoted as GNU quotes them.

/// A name in `'…'`, or as the shell would need it: gnulib's `quoteaf`.
pub fn always(name: &[u8]) -> String {
    shell(name, true)
}

/// A name as it is where the shell could take it so, and where it has no colon, since one follows it: gnulib's `quotef`.
pub fn if_needed(name: &[u8]) -> String {
    shell(name, name.contains(&b':'))
}

/// A name as it is where the shell could take it so.
pub fn for_shell(name: &[u8]) -> String {
    shell(name, false)
}

fn shell(name: &[u8], always: bool) -> String {
    let text = escaped_pieces(name);
    let odd = text.iter().any(|piece| piece.is_err());
    if !always && !odd && !needs_quotes(name) {
        return String::from_utf8_lossy(name).into_owned();
    }
    let has_quote = name.contains(&b'\'');
    if has_quote && !odd && !name.iter().any(|byte| b"!\"$&()*;<=>[^`|?\\".contains(byte)) {
        return format!("\"{}\"", String::from_utf8_lossy(name));
    }
    let mut quoted = String::from("'");
    let mut inside_escape = false;
    for piece in text {
        match piece {
            Ok(char) => {
                if std::mem::take(&mut inside_escape) {
                    quoted.push_str("''");
                }
                match char {
                    '\'' => quoted.push_str("'\\''"),
                    char => quoted.push(char),
                }
            }
            Err(escape) => {
                if !std::mem::replace(&mut inside_escape, true) {
                    quoted.push_str("'$'");
                }
                quoted.push_str(&escape);
            }
        }
    }
    quoted.push('\'');
    quoted
}

fn needs_quotes(name: &[u8]) -> bool {
    name.is_empty()
        || matches!(name, b"{" | b"}")
        || matches!(name[0], b'#' | b'~')
        || name.iter().any(|byte| b" !\"$&()*;<=>[^`|?\\'".contains(byte))
}

/// The characters, those that do not print as C's escapes.
fn escaped_pieces(name: &[u8]) -> Vec<Result<char, String>> {
    let mut pieces = Vec::new();
    for chunk in name.utf8_chunks() {
        pieces.extend(chunk.valid().chars().map(|char| match escape_of(char) {
            Some(letter) => Err(format!("\\{letter}")),
            None if char.is_control() => Err(octal(char.to_string().as_bytes())),
            None => Ok(char),
        }));
        pieces.extend(chunk.invalid().iter().map(|&byte| Err(octal(&[byte]))));
    }
    pieces
}

fn octal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("\\{byte:03o}")).collect()
}

fn escape_of(char: char) -> Option<char> {
    let known =
        [('\x07', 'a'), ('\x08', 'b'), ('\t', 't'), ('\n', 'n'), ('\x0b', 'v'), ('\x0c', 'f'), ('\r', 'r')];
    known.iter().find(|(from, _)| *from == char).map(|(_, to)| *to)
}

/// A word between the locale's quotation marks, with C's escapes: gnulib's `quote`.
pub fn word(name: &[u8]) -> String {
    word_between(name, marks())
}

/// The locale's quotation marks: `‘` and `’`, or the apostrophe for both.
pub fn marks() -> (char, char) {
    if wardian_regex::locale_is_utf8() { ('‘', '’') } else { ('\'', '\'') }
}

/// A word between apostrophes, in every locale: as `quote` is in programs that do not say where their messages are.
pub fn plain_word(name: &[u8]) -> String {
    word_between(name, ('\'', '\''))
}

fn word_between(name: &[u8], (open, close): (char, char)) -> String {
    let mut quoted = String::from(open);
    for piece in escaped_pieces(name) {
        match piece {
            Ok(char) if char == close || char == '\\' => quoted.extend(['\\', char]),
            Ok(char) => quoted.push(char),
            Err(escape) => quoted.push_str(&escape),
        }
    }
    quoted.push(close);
    quoted
}

/// A name with C's escapes, in double quotes or with its spaces escaped instead.
pub fn in_c(name: &[u8], quotes: bool) -> String {
    let mark = if quotes { "\"" } else { "" };
    let mut text = mark.to_owned();
    for piece in escaped_pieces(name) {
        match piece {
            Ok('\\') => text.push_str("\\\\"),
            Ok('"') if quotes => text.push_str("\\\""),
            Ok(' ') if !quotes => text.push_str("\\ "),
            Ok(char) => text.push(char),
            Err(escape) => text.push_str(&escape),
        }
    }
    text + mark
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_gnu_does() {
        assert_eq!(always(b"a b"), "'a b'");
        assert_eq!(always(b"it's"), "\"it's\"");
        assert_eq!(always(b"it's $x"), r"'it'\''s $x'");
        assert_eq!(always(b"\na\tb"), r"''$'\n''a'$'\t''b'");
        assert_eq!(if_needed(b"plain-1.2"), "plain-1.2");
        assert_eq!(if_needed(b"a\xff"), r"'a'$'\377'");
        assert_eq!(if_needed(b""), "''");
        assert_eq!(if_needed(b"a:b"), "'a:b'");
        assert_eq!(for_shell(b"a:b"), "a:b");
        assert_eq!(word_between(b"a'\n", ('\'', '\'')), r"'a\'\n'");
        assert_eq!(word_between(b"a'\n", ('‘', '’')), r"‘a'\n’");
    }
}
