//! The tools so small that starting anything else would be most of their work: `true`, `false` and `echo`.

use std::ffi::OsString;

/// Does what the tool does and answers its exit code, or `None` when another must.
pub fn answer(name: &str, arguments: &[OsString]) -> Option<u8> {
    // GNU's tools know these two, alone, and so do uutils'.
    if let [only] = arguments
        && (only == "--help" || only == "--version")
    {
        return None;
    }
    match name {
        "true" => Some(0),
        "false" => Some(1),
        "echo" => Some(echo(arguments)),
        _ => None,
    }
}

fn echo(arguments: &[OsString]) -> u8 {
    let words: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_encoded_bytes()).collect();
    let text = echoed(&words, std::env::var_os("POSIXLY_CORRECT").is_some());
    match wardian_abi::write_all(1, &text) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("echo: write error: {}", error.message());
            1
        }
    }
}

/// What `echo` writes for these words.
fn echoed(words: &[&[u8]], posix: bool) -> Vec<u8> {
    let (mut newline, mut escapes) = (true, posix);
    let mut rest = words;
    // POSIX knows no options, but for a leading `-n`.
    let takes_options = !posix || words.first().is_some_and(|word| *word == b"-n");
    while takes_options && let [word, others @ ..] = rest {
        let Some(letters) = word.strip_prefix(b"-").filter(|letters| are_options(letters)) else { break };
        for letter in letters {
            match letter {
                b'n' => newline = false,
                b'e' => escapes = true,
                _ => escapes = false,
            }
        }
        rest = others;
    }
    let mut text = rest.join(&b' ');
    if escapes {
        let (unescaped, stopped) = unescape(&text);
        text = unescaped;
        newline &= !stopped;
    }
    if newline {
        text.push(b'\n');
    }
    text
}

fn are_options(letters: &[u8]) -> bool {
    !letters.is_empty() && letters.iter().all(|letter| b"neE".contains(letter))
}

/// Replaces the escapes; the second answer is whether `\c` ended it.
fn unescape(text: &[u8]) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(text.len() + 1);
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        let [escape, after @ ..] = rest else {
            out.push(*byte);
            break;
        };
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        rest = after;
        match escape {
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'c' => return (out, true),
            b'e' => out.push(0x1b),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            b'\\' => out.push(b'\\'),
            b'0' => out.push(take_digits(&mut rest, 8, 3).unwrap_or(0)),
            b'1'..=b'7' => {
                let mut digits = &text[text.len() - rest.len() - 1..];
                out.push(take_digits(&mut digits, 8, 3).unwrap_or(0));
                rest = digits;
            }
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                out.push(take_digits(&mut rest, 16, 2).unwrap_or(0));
            }
            other => out.extend([b'\\', *other]),
        }
    }
    (out, false)
}

/// Takes up to `most` digits off the front; a value above 255 keeps its low byte, as in C.
fn take_digits(rest: &mut &[u8], radix: u32, most: usize) -> Option<u8> {
    let digit = |byte: &u8| char::from(*byte).to_digit(radix);
    let digits: Vec<u32> = rest.iter().take(most).map_while(digit).collect();
    *rest = &rest[digits.len()..];
    digits.into_iter().reduce(|value, digit| value * radix + digit).map(|value| value as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        String::from_utf8(echoed(&words, false)).unwrap()
    }

    #[test]
    fn options_are_taken_only_from_the_front() {
        assert_eq!(said(&[]), "\n");
        assert_eq!(said(&["a", "", "b", "-n"]), "a  b -n\n");
        assert_eq!(said(&["-n", "-e", r"a\n"]), "a\n");
        assert_eq!(said(&["-neE", r"\n"]), r"\n");
        assert_eq!(said(&["-", "-nx", "--"]), "- -nx --\n");
    }

    #[test]
    fn escapes_are_gnus() {
        assert_eq!(said(&["-e", r"\a\b\e\f\r\t\v\\"]), "\x07\x08\x1b\x0c\r\t\x0b\\\n");
        assert_eq!(said(&["-e", r"\0101\101\x41\x4g\0"]), "AAA\x04g\0\n");
        assert_eq!(said(&["-e", r"\q\x\"]), "\\q\\x\\\n");
        assert_eq!(said(&["-e", r"one\ctwo", "three"]), "one");
    }

    #[test]
    fn posix_escapes_without_being_asked() {
        assert_eq!(echoed(&[b"-e", br"\t"], true), b"-e \t\n");
        assert_eq!(echoed(&[b"-n", br"\t"], true), b"\t");
    }
}
