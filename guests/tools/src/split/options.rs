//! The command line of `split`.

use toolkit::args::{Parsed, Tool};
use toolkit::{complain, count, quote};

pub const TOOL: Tool = Tool {
    name: "split",
    short: "0123456789C:a:b:del:n:t:ux",
    long: &[
        ("bytes=", 'b'),
        ("lines=", 'l'),
        ("line-bytes=", 'C'),
        ("number=", 'n'),
        ("elide-empty-files", 'e'),
        ("unbuffered", 'u'),
        ("suffix-length=", 'a'),
        ("additional-suffix=", 'A'),
        ("numeric-suffixes[=", 'd'),
        ("hex-suffixes[=", 'x'),
        ("filter=", 'f'),
        ("-io-blksize=", 'B'),
        ("verbose", 'v'),
        ("separator=", 't'),
    ],
    help: "\
Usage: split [OPTION]... [FILE [PREFIX]]
Cut FILE into the files PREFIXaa, PREFIXab, ... of 1000 lines each; PREFIX is x
unless given. With no FILE, or when FILE is -, read standard input.

  -a, --suffix-length=N       suffixes of N characters (2, growing as needed)
      --additional-suffix=S   put S behind each suffix
  -b, --bytes=SIZE            SIZE bytes per file
  -C, --line-bytes=SIZE       at most SIZE bytes of whole lines per file
  -d                          suffixes are numbers from 0
      --numeric-suffixes[=N]  the same, from N
  -x                          suffixes are hexadecimal numbers from 0
      --hex-suffixes[=N]      the same, from N
  -e, --elide-empty-files     make no empty files with -n
      --filter=COMMAND        give each piece to the shell COMMAND; $FILE is its name
  -l, --lines=N               N lines per file
  -n, --number=CHUNKS         so many files; see below
  -t, --separator=C           lines end in C, not in newline; '\\0' is NUL
  -u, --unbuffered            write at once with -n r/...
      --verbose               say which file is begun
      --help                  display this help and exit
      --version               output version information and exit

SIZE may have a suffix: b 512, kB 1000, K 1024, MB 1000*1000, M 1024*1024, ...
CHUNKS is
  N       N files of equal size
  K/N     print the Kth of N to standard output
  l/N     N files without cutting a line
  l/K/N   print the Kth of these
  r/N     like l, but one line to each file in turn
  r/K/N   print the Kth of these
",
    misuse: 1,
};

/// How many pieces, and which of them is printed, if one is.
#[derive(Clone, Copy)]
pub struct Choice {
    pub only: Option<u64>,
    pub number: u64,
}

#[derive(Clone, Copy)]
pub enum Way {
    Bytes(u64),
    Lines(u64),
    LineBytes(u64),
    Chunks(Choice),
    LineChunks(Choice),
    RoundRobin(Choice),
}

pub struct Options {
    pub way: Way,
    pub input: Vec<u8>,
    pub prefix: Vec<u8>,
    /// Zero for as long as needed.
    pub suffix_length: usize,
    pub additional_suffix: Vec<u8>,
    pub alphabet: &'static [u8],
    /// The first suffix, if another than the first of all.
    pub first: Option<Vec<u8>>,
    pub skips_empty: bool,
    pub filter: Option<Vec<u8>>,
    pub separator: u8,
    pub is_unbuffered: bool,
    pub is_verbose: bool,
}

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
const DIGITS: &[u8] = b"0123456789";
const HEX: &[u8] = b"0123456789abcdef";
const UNITS: &str = "bEGKkMmPTYZ0";

impl Options {
    pub fn parse(arguments: Vec<Vec<u8>>) -> Result<Options, i32> {
        let parsed = TOOL.parse(arguments)?;
        let mut options = Options {
            way: Way::Lines(1000),
            input: b"-".to_vec(),
            prefix: b"x".to_vec(),
            suffix_length: 0,
            additional_suffix: Vec::new(),
            alphabet: LETTERS,
            first: None,
            skips_empty: false,
            filter: None,
            separator: b'\n',
            is_unbuffered: false,
            is_verbose: false,
        };
        options.way = way_of(&parsed)?.unwrap_or(options.way);
        let mut separator = None;
        for (letter, text) in parsed.options {
            let given = text.unwrap_or_default();
            match letter {
                'a' => options.suffix_length = number("invalid suffix length", &given, 0, "")? as usize,
                'A' if given.contains(&b'/') => {
                    let shown = quote::word(&given);
                    return Err(
                        TOOL.wrong(format_args!("invalid suffix {shown}, contains directory separator"))
                    );
                }
                'A' => options.additional_suffix = given,
                'd' => options.number_from(DIGITS, given)?,
                'x' => options.number_from(HEX, given)?,
                'e' => options.skips_empty = true,
                'f' => options.filter = Some(given),
                't' => take_separator(&given, &mut separator)?,
                'u' => options.is_unbuffered = true,
                'v' => options.is_verbose = true,
                _ => {}
            }
        }
        options.separator = separator.unwrap_or(b'\n');
        options.take_operands(parsed.operands)?;
        options.check()
    }

    /// Suffixes are numbers from then on.
    fn number_from(&mut self, alphabet: &'static [u8], first: Vec<u8>) -> Result<(), i32> {
        self.alphabet = alphabet;
        if first.is_empty() {
            return Ok(());
        }
        if !first.iter().all(|digit| alphabet.contains(digit)) {
            let kind = if alphabet == HEX { "hexadecimal" } else { "numerical" };
            let shown = quote::word(&first);
            return Err(TOOL.wrong(format_args!("{shown}: invalid start value for {kind} suffix")));
        }
        let zeros = first.iter().take(first.len() - 1).take_while(|&&digit| digit == b'0').count();
        self.first = Some(first[zeros..].to_vec());
        Ok(())
    }

    fn take_operands(&mut self, operands: Vec<Vec<u8>>) -> Result<(), i32> {
        let mut operands = operands.into_iter();
        self.input = operands.next().unwrap_or_else(|| self.input.clone());
        self.prefix = operands.next().unwrap_or_else(|| self.prefix.clone());
        match operands.next() {
            Some(extra) => Err(TOOL.wrong(format_args!("extra operand {}", quote::word(&extra)))),
            None => Ok(()),
        }
    }

    fn check(self) -> Result<Options, i32> {
        let prints_one = match self.way {
            Way::Chunks(choice) | Way::LineChunks(choice) | Way::RoundRobin(choice) => choice.only.is_some(),
            _ => false,
        };
        if prints_one && self.filter.is_some() {
            return Err(TOOL.wrong("--filter does not process a chunk extracted to stdout"));
        }
        Ok(self)
    }

    /// How many pieces there will be, where that is known.
    pub fn number(&self) -> Option<u64> {
        match self.way {
            Way::Chunks(choice) | Way::LineChunks(choice) | Way::RoundRobin(choice) => Some(choice.number),
            _ => None,
        }
    }
}

fn way_of(parsed: &Parsed) -> Result<Option<Way>, i32> {
    let (mut way, mut digits) = (None, Vec::new());
    for (letter, text) in &parsed.options {
        let given = text.as_deref().unwrap_or_default();
        if way.is_some() && "bCln".contains(*letter) {
            return Err(TOOL.wrong("cannot split in more than one way"));
        }
        way = Some(match letter {
            'b' => Way::Bytes(number("invalid number of bytes", given, 1, UNITS)?),
            'C' => Way::LineBytes(number("invalid number of bytes", given, 1, UNITS)?),
            'l' => Way::Lines(number("invalid number of lines", given, 1, "")?),
            'n' => chunks(given)?,
            '0'..='9' if way.is_none() || !digits.is_empty() => {
                digits.push(*letter as u8);
                Way::Lines(old_count(&digits)?)
            }
            '0'..='9' => return Err(TOOL.wrong("cannot split in more than one way")),
            _ => continue,
        });
    }
    if let Some(Way::Lines(0)) = way {
        complain("split", "invalid number of lines: '0'");
        return Err(1);
    }
    Ok(way)
}

/// `-NUMBER`, as it was written of old.
fn old_count(digits: &[u8]) -> Result<u64, i32> {
    let text = String::from_utf8_lossy(digits);
    text.parse().map_err(|_| {
        complain("split", format_args!("line count option -{text}... is too large"));
        1
    })
}

/// `N`, `K/N`, `l/N`, `l/K/N`, `r/N` or `r/K/N`.
fn chunks(text: &[u8]) -> Result<Way, i32> {
    let (kind, text): (fn(Choice) -> Way, &[u8]) = match text {
        [b'l', b'/', rest @ ..] => (Way::LineChunks, rest),
        [b'r', b'/', rest @ ..] => (Way::RoundRobin, rest),
        text => (Way::Chunks, text),
    };
    let what = "invalid number of chunks";
    let choice = match text.iter().position(|&byte| byte == b'/') {
        // A slash with nothing before it might as well not be there.
        Some(0) => Choice { only: None, number: number(what, &text[1..], 1, "")? },
        Some(slash) => {
            let all = number(what, &text[slash + 1..], 1, "")?;
            let only = count::or_complaint("invalid chunk number", &text[..slash], 1..=all, "");
            Choice { only: Some(only.map_err(refuse)?), number: all }
        }
        None => Choice { only: None, number: number(what, text, 1, "")? },
    };
    Ok(kind(choice))
}

fn number(what: &str, text: &[u8], least: u64, suffixes: &str) -> Result<u64, i32> {
    count::or_complaint(what, text, least..=i64::MAX as u64, suffixes).map_err(refuse)
}

fn refuse(message: String) -> i32 {
    complain("split", message);
    1
}

fn take_separator(text: &[u8], separator: &mut Option<u8>) -> Result<(), i32> {
    let byte = match text {
        [] => return Err(refuse("empty record separator".into())),
        [byte] => *byte,
        b"\\0" => 0,
        _ => return Err(refuse(format!("multi-character separator {}", quote::word(text)))),
    };
    if separator.is_some_and(|other| other != byte) {
        return Err(refuse("multiple separator characters specified".into()));
    }
    *separator = Some(byte);
    Ok(())
}
