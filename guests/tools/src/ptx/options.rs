//! What `ptx` is told.

use toolkit::args::Tool;
use toolkit::{complain, quote};

pub const TOOL: Tool = Tool {
    name: "ptx",
    short: "AF:GM:ORS:TW:b:i:fg:o:trw:",
    long: &[
        ("auto-reference", 'A'),
        ("flag-truncation=", 'F'),
        ("traditional", 'G'),
        ("macro-name=", 'M'),
        ("right-side-refs", 'R'),
        ("sentence-regexp=", 'S'),
        ("word-regexp=", 'W'),
        ("break-file=", 'b'),
        ("ignore-case", 'f'),
        ("gap-size=", 'g'),
        ("ignore-file=", 'i'),
        ("only-file=", 'o'),
        ("references", 'r'),
        ("format=", '1'),
        ("typeset-mode", 't'),
        ("width=", 'w'),
    ],
    help: "\
Usage: ptx [OPTION]... [INPUT]...
  or:  ptx -G [OPTION]... [INPUT [OUTPUT]]
Print an index of the words in each INPUT, or in standard input (also as -), with what stands around them.

  -A, --auto-reference           refer to file and line
  -F, --flag-truncation=STRING   STRING says where something was left out, not /
  -G, --traditional              as System V's ptx does
  -M, --macro-name=STRING        the name of the macro, not xx
  -O, --format=roff              print directives for roff
  -R, --right-side-refs          references stand at the right, beyond the width
  -S, --sentence-regexp=REGEX    what ends a line or a sentence
  -T, --format=tex               print directives for TeX
  -W, --word-regexp=REGEX        what is a word
  -b, --break-file=FILE          the characters in FILE are in no word
  -f, --ignore-case              lower case counts as upper case
  -g, --gap-size=NUMBER          columns between the fields
  -i, --ignore-file=FILE         leave out the words in FILE
  -o, --only-file=FILE           take only the words in FILE
  -r, --references               the first field of each line is its reference
  -t, --typeset-mode             does nothing
  -w, --width=NUMBER             columns of a line
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Plain,
    Roff,
    Tex,
}

pub struct Settings {
    pub traditional: bool,
    /// References are file and line.
    pub refers_to_lines: bool,
    /// References are in the text.
    pub has_references: bool,
    pub references_at_right: bool,
    pub ignore_case: bool,
    pub format: Format,
    /// What says that something was left out.
    pub mark: Vec<u8>,
    pub macro_name: Vec<u8>,
    pub sentence: Option<Vec<u8>>,
    pub word: Option<Vec<u8>>,
    pub break_file: Option<Vec<u8>>,
    pub ignore_file: Option<Vec<u8>>,
    pub only_file: Option<Vec<u8>>,
    pub gap: isize,
    pub width: isize,
}

impl Settings {
    pub fn from_options(options: Vec<(char, Option<Vec<u8>>)>) -> Result<Settings, i32> {
        let mut settings = Settings {
            traditional: false,
            refers_to_lines: false,
            has_references: false,
            references_at_right: false,
            ignore_case: false,
            format: Format::Plain,
            mark: b"/".to_vec(),
            macro_name: b"xx".to_vec(),
            sentence: None,
            word: None,
            break_file: None,
            ignore_file: None,
            only_file: None,
            gap: 3,
            width: 72,
        };
        for (letter, argument) in options {
            settings.set(letter, argument.unwrap_or_default())?;
        }
        if settings.traditional && settings.format == Format::Plain {
            settings.format = Format::Roff;
        }
        Ok(settings)
    }

    fn set(&mut self, letter: char, text: Vec<u8>) -> Result<(), i32> {
        match letter {
            'A' => self.refers_to_lines = true,
            'F' => self.mark = unescaped(&text),
            'G' => self.traditional = true,
            'M' => self.macro_name = text,
            'O' => self.format = Format::Roff,
            'R' => self.references_at_right = true,
            'S' => self.sentence = Some(unescaped(&text)),
            'T' => self.format = Format::Tex,
            'W' => self.word = Some(unescaped(&text)).filter(|word| !word.is_empty()),
            'b' => self.break_file = Some(text),
            'f' => self.ignore_case = true,
            'g' => self.gap = size("invalid gap width", &text)?,
            'i' => self.ignore_file = Some(text),
            'o' => self.only_file = Some(text),
            'r' => self.has_references = true,
            'w' => self.width = size("invalid line width", &text)?,
            '1' => {
                let formats = [("roff", Format::Roff), ("tex", Format::Tex)];
                self.format = TOOL.choose("--format", &text, &formats)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// A word as it is compared.
    pub fn folded(&self, word: &[u8]) -> Vec<u8> {
        if self.ignore_case { word.to_ascii_uppercase() } else { word.to_vec() }
    }

    /// Whether lines have references of either kind.
    pub fn shows_references(&self) -> bool {
        self.refers_to_lines || self.has_references
    }
}

/// A positive number as C writes it: octal with a leading 0, hexadecimal with 0x.
fn size(what: &str, text: &[u8]) -> Result<isize, i32> {
    let number = text.trim_ascii_start();
    let number = number.strip_prefix(b"+").unwrap_or(number);
    let (radix, digits) = match number {
        [b'0', b'x' | b'X', digits @ ..] => (16, digits),
        [b'0', digits @ ..] if !digits.is_empty() => (8, digits),
        digits => (10, digits),
    };
    let is_plain = digits.iter().all(u8::is_ascii_alphanumeric);
    let value = std::str::from_utf8(digits).ok().and_then(|digits| i64::from_str_radix(digits, radix).ok());
    match value.filter(|value| is_plain && *value > 0) {
        // No line is as long as that, and sums of it do not overflow.
        Some(value) => Ok(isize::try_from(value).unwrap_or(isize::MAX).min(isize::MAX / 8)),
        None => {
            complain("ptx", format_args!("{what}: {}", quote::word(text)));
            Err(1)
        }
    }
}

/// A text whose escapes are replaced by what they stand for. Unknown ones stay, for the regular expressions.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [byte, after @ ..] = rest {
        rest = after;
        if *byte != b'\\' {
            out.push(*byte);
            continue;
        }
        // One at the end stands for nothing.
        let [escape, after @ ..] = rest else { break };
        rest = after;
        match escape {
            b'a' => out.push(0x07),
            b'b' => out.push(0x08),
            b'c' => break,
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            b'x' => match number(&mut rest, 16) {
                Some(value) => out.push(value),
                None => out.extend(b"\\x"),
            },
            b'0' => out.push(number(&mut rest, 8).unwrap_or(0)),
            other => out.extend([b'\\', *other]),
        }
    }
    out
}

/// Takes up to three digits off the front; a value above 255 keeps its low byte, as in C.
fn number(rest: &mut &[u8], radix: u32) -> Option<u8> {
    let digits: Vec<u32> = rest.iter().take(3).map_while(|byte| char::from(*byte).to_digit(radix)).collect();
    *rest = &rest[digits.len()..];
    digits.into_iter().reduce(|value, digit| value * radix + digit).map(|value| value as u8)
}
