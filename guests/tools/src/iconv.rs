//! `iconv`: text from one encoding into another.

use encoding_rs::Encoding;
use toolkit::args::{Refusal, Tool, bytes_of};
use toolkit::{Arguments, complain, files, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, open_flags};

const TOOL: Tool = Tool {
    name: "iconv",
    short: "f:t:co:ls",
    long: &[
        ("from-code=", 'f'),
        ("to-code=", 't'),
        ("list", 'l'),
        ("output=", 'o'),
        ("silent", 's'),
        ("verbose", 'v'),
    ],
    help: "\
Usage: iconv [OPTION]... [FILE]...
Convert the encoding of given files from one encoding to another.

  -f, --from-code=NAME   encoding of the input (UTF-8)
  -t, --to-code=NAME     encoding for the output (UTF-8); with //TRANSLIT what it
                           lacks is written as something like it, with //IGNORE
                           it is left out
  -l, --list             list all known encodings
  -c                     leave out characters that cannot be converted
  -o, --output=FILE      write to FILE
  -s, --silent           accepted, and ignored
      --verbose          accepted, and ignored
      --help             display this help and exit
      --version          output version information and exit
",
    misuse: 64,
};

/// The unit of the encodings of Unicode, and which of its bytes comes first.
#[derive(Clone, Copy, PartialEq)]
enum Endian {
    Little,
    Big,
    /// As a mark at the start says; little where we write it.
    Marked,
}

#[derive(Clone, Copy)]
enum Code {
    Utf8,
    Ascii,
    Latin1,
    Utf16(Endian),
    Utf32(Endian),
    Other(&'static Encoding),
}

/// The names that `-l` lists, of those a web page can be written in.
const OTHERS: [&str; 37] = [
    "BIG5",
    "EUC-JP",
    "EUC-KR",
    "GB18030",
    "GBK",
    "IBM866",
    "ISO-2022-JP",
    "ISO-8859-2",
    "ISO-8859-3",
    "ISO-8859-4",
    "ISO-8859-5",
    "ISO-8859-6",
    "ISO-8859-7",
    "ISO-8859-8",
    "ISO-8859-10",
    "ISO-8859-13",
    "ISO-8859-14",
    "ISO-8859-15",
    "ISO-8859-16",
    "KOI8-R",
    "KOI8-U",
    "MACINTOSH",
    "SHIFT_JIS",
    "WINDOWS-874",
    "WINDOWS-1250",
    "WINDOWS-1251",
    "WINDOWS-1252",
    "WINDOWS-1253",
    "WINDOWS-1254",
    "WINDOWS-1255",
    "WINDOWS-1256",
    "WINDOWS-1257",
    "WINDOWS-1258",
    "X-MAC-CYRILLIC",
    "GB2312",
    "EUCJP",
    "SJIS",
];

/// What becomes of a character that the target lacks.
#[derive(Clone, Copy, PartialEq)]
enum Lacking {
    Stop,
    LeaveOut,
    Like,
}

struct Converter {
    from: Code,
    to: Code,
    lacking: Lacking,
    /// Where //IGNORE left something out, which is a failure all the same.
    ignores: bool,
    ignored: bool,
    out: Vec<u8>,
}

/// Why a text ends too early.
enum Stop {
    At(usize),
    Cut,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.try_parse(arguments).map_err(|refusal| match refusal {
        Refusal::Wrong(message) => {
            complain("iconv", message);
            let _ = abi::write_all(2, b"Try `iconv --help' or `iconv --usage' for more information.\n");
            64
        }
        other => TOOL.answer(other),
    })?;
    let (mut from, mut to, mut output, mut leaves_out) = (Vec::new(), Vec::new(), None, false);
    for (letter, argument) in parsed.options {
        match letter {
            'f' => from = argument.unwrap_or_default(),
            't' => to = argument.unwrap_or_default(),
            'o' => output = argument,
            'c' => leaves_out = true,
            'l' => return Ok(list()),
            _ => {}
        }
    }
    let mut converter = Converter::new(&from, &to, leaves_out).ok_or_else(|| {
        complain("iconv", "failed to start conversion processing");
        1
    })?;
    let output = output.map_or(Ok(1), |path| {
        let flags = open_flags::WRONLY | open_flags::CREAT | open_flags::TRUNC | open_flags::CLOEXEC;
        abi::open(Dir::CWD, &path, flags, 0o666)
    });
    let output = output.map_err(|error| {
        complain("iconv", format_args!("unable to open output file: {error}"));
        1
    })?;
    let mut code = 0;
    for operand in input::or_stdin(parsed.operands) {
        let outcome = converter.convert_file(&operand);
        if let Err(error) = abi::write_all(output, &std::mem::take(&mut converter.out)) {
            complain("iconv", format_args!("unable to write output: {error}"));
            return Ok(1);
        }
        if let Err(message) = outcome {
            complain("iconv", message);
            code = 1;
            if !converter.ignored {
                break;
            }
        }
    }
    Ok(code)
}

fn list() -> i32 {
    let mut names = vec![
        "UTF-8",
        "ASCII",
        "ISO-8859-1",
        "UTF-16",
        "UTF-16BE",
        "UTF-16LE",
        "UTF-32",
        "UTF-32BE",
        "UTF-32LE",
    ];
    names.extend(OTHERS);
    names.sort_unstable();
    let text: String = names.iter().map(|name| format!("{name}//\n")).collect();
    i32::from(abi::write_all(1, text.as_bytes()).is_err())
}

fn code_named(name: &str) -> Option<Code> {
    let name = name.to_ascii_uppercase();
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    Some(match plain.as_str() {
        "" | "UTF8" => Code::Utf8,
        "ASCII" | "USASCII" | "ANSIX341968" | "646" | "ISO646US" | "C" | "POSIX" => Code::Ascii,
        "LATIN1" | "ISO88591" | "L1" | "8859" | "88591" | "CP819" | "IBM819" => Code::Latin1,
        "UTF16" | "UCS2" | "UNICODE" => Code::Utf16(Endian::Marked),
        "UTF16LE" | "UCS2LE" => Code::Utf16(Endian::Little),
        "UTF16BE" | "UCS2BE" => Code::Utf16(Endian::Big),
        "UTF32" => Code::Utf32(Endian::Marked),
        "UTF32LE" | "UCS4LE" => Code::Utf32(Endian::Little),
        "UTF32BE" | "UCS4" | "UCS4BE" => Code::Utf32(Endian::Big),
        _ => {
            let label = match plain.strip_prefix("CP") {
                Some(number) if number.starts_with("125") => format!("windows-{number}"),
                Some("932") => "shift_jis".into(),
                Some("936") => "gbk".into(),
                Some("949") => "euc-kr".into(),
                Some("950") => "big5".into(),
                _ if plain == "EUCJP" => "euc-jp".into(),
                _ if plain == "EUCKR" => "euc-kr".into(),
                _ if plain == "LATIN9" => "iso-8859-15".into(),
                _ => name.to_ascii_lowercase(),
            };
            Code::Other(Encoding::for_label(label.as_bytes())?)
        }
    })
}

impl Converter {
    fn new(from: &[u8], to: &[u8], leaves_out: bool) -> Option<Converter> {
        let (from, to) = (std::str::from_utf8(from).ok()?, std::str::from_utf8(to).ok()?);
        let from = from.split("//").next().unwrap_or_default();
        let mut parts = to.split("//");
        let to = parts.next().unwrap_or_default();
        let suffixes: Vec<String> = parts.map(str::to_ascii_uppercase).collect();
        let has = |word: &str| suffixes.iter().any(|suffix| suffix == word);
        let lacking = match () {
            () if has("TRANSLIT") => Lacking::Like,
            () if has("IGNORE") || leaves_out => Lacking::LeaveOut,
            () => Lacking::Stop,
        };
        let ignores = has("IGNORE") && !leaves_out;
        let mut out = Vec::new();
        let (from, to) = (code_named(from)?, code_named(to)?);
        match to {
            Code::Utf16(Endian::Marked) => out.extend([0xff, 0xfe]),
            Code::Utf32(Endian::Marked) => out.extend([0xff, 0xfe, 0, 0]),
            _ => {}
        }
        Some(Converter { from, to, lacking, ignores, ignored: false, out })
    }

    /// The error is what there is to say.
    fn convert_file(&mut self, operand: &[u8]) -> Result<(), String> {
        let content = match operand {
            b"-" => files::read_fd(0),
            path => std::fs::read(files::path(path)).map_err(Errno::from),
        };
        let content = content.map_err(|error| {
            format!("cannot open input file `{}': {error}", String::from_utf8_lossy(operand))
        })?;
        self.convert(&content).map_err(|stop| match stop {
            Stop::At(place) => format!("illegal input sequence at position {place}"),
            Stop::Cut => "incomplete character or shift sequence at end of buffer".into(),
        })
    }

    fn convert(&mut self, text: &[u8]) -> Result<(), Stop> {
        let mut at = 0;
        let from = unmarked(self.from, text, &mut at);
        let mut first_ignored = None;
        while at < text.len() {
            let rest = &text[at..];
            match decode(from, rest) {
                Decoded::Char(char, length) => {
                    if !self.put(char) {
                        match self.lacking {
                            Lacking::LeaveOut => {
                                self.ignored |= self.ignores;
                                first_ignored.get_or_insert(at);
                            }
                            _ => return Err(Stop::At(at)),
                        }
                    }
                    at += length;
                }
                Decoded::Wrong if self.lacking == Lacking::LeaveOut => at += 1,
                Decoded::Wrong => return Err(Stop::At(at)),
                Decoded::Cut => return Err(Stop::Cut),
            }
        }
        match first_ignored.filter(|_| self.ignores) {
            Some(_) => Err(Stop::At(text.len())),
            None => Ok(()),
        }
    }

    /// Writes a character, or something like it; whether that could be done.
    fn put(&mut self, char: char) -> bool {
        if encode(self.to, char, &mut self.out) {
            return true;
        }
        if self.lacking != Lacking::Like {
            return false;
        }
        let like = like(char);
        like.chars().for_each(|char| {
            encode(self.to, char, &mut self.out);
        });
        true
    }
}

/// The encoding without its mark, which is skipped.
fn unmarked(code: Code, text: &[u8], at: &mut usize) -> Code {
    let (two, four) = (text.get(..2), text.get(..4));
    match code {
        Code::Utf16(Endian::Marked) => match two {
            Some([0xfe, 0xff]) => {
                *at = 2;
                Code::Utf16(Endian::Big)
            }
            Some([0xff, 0xfe]) => {
                *at = 2;
                Code::Utf16(Endian::Little)
            }
            _ => Code::Utf16(Endian::Little),
        },
        Code::Utf32(Endian::Marked) => match four {
            Some([0, 0, 0xfe, 0xff]) => {
                *at = 4;
                Code::Utf32(Endian::Big)
            }
            Some([0xff, 0xfe, 0, 0]) => {
                *at = 4;
                Code::Utf32(Endian::Little)
            }
            _ => Code::Utf32(Endian::Little),
        },
        code => code,
    }
}

enum Decoded {
    Char(char, usize),
    Wrong,
    /// The text ends within a character.
    Cut,
}

fn decode(code: Code, text: &[u8]) -> Decoded {
    let whole = |char: Option<char>, length| char.map_or(Decoded::Wrong, |char| Decoded::Char(char, length));
    match code {
        Code::Ascii => whole(Some(char::from(text[0])).filter(char::is_ascii), 1),
        Code::Latin1 => whole(Some(char::from(text[0])), 1),
        Code::Utf8 => decode_utf8(text),
        Code::Utf16(endian) => {
            let unit = |at: usize| {
                text.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map(|bytes| match endian {
                    Endian::Big => u16::from_be_bytes(bytes),
                    _ => u16::from_le_bytes(bytes),
                })
            };
            let Some(first) = unit(0) else { return Decoded::Cut };
            if !(0xd800..0xe000).contains(&first) {
                return whole(char::from_u32(u32::from(first)), 2);
            }
            let Some(second) = unit(2) else { return Decoded::Cut };
            whole(char::decode_utf16([first, second]).next().and_then(Result::ok), 4)
        }
        Code::Utf32(endian) => {
            let Some(bytes) = text.first_chunk::<4>() else { return Decoded::Cut };
            let number =
                if endian == Endian::Big { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) };
            whole(char::from_u32(number), 4)
        }
        Code::Other(encoding) => {
            for length in 1..=text.len().min(4) {
                let decoded = encoding.decode_without_bom_handling_and_without_replacement(&text[..length]);
                if let Some(char) = decoded.and_then(|text| text.chars().next()) {
                    return Decoded::Char(char, length);
                }
            }
            if text.len() < 2 && !encoding.is_single_byte() { Decoded::Cut } else { Decoded::Wrong }
        }
    }
}

fn decode_utf8(text: &[u8]) -> Decoded {
    let start = &text[..text.len().min(4)];
    let valid = match std::str::from_utf8(start) {
        Ok(valid) => valid,
        Err(error) if error.valid_up_to() > 0 => {
            std::str::from_utf8(&start[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(error) if error.error_len().is_none() => return Decoded::Cut,
        Err(_) => "",
    };
    valid.chars().next().map_or(Decoded::Wrong, |char| Decoded::Char(char, char.len_utf8()))
}

fn encode(code: Code, char: char, out: &mut Vec<u8>) -> bool {
    match code {
        Code::Utf8 => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        Code::Ascii if char.is_ascii() => out.push(char as u8),
        Code::Latin1 if u32::from(char) < 256 => out.push(char as u8),
        Code::Ascii | Code::Latin1 => return false,
        Code::Utf16(endian) => {
            for unit in char.encode_utf16(&mut [0; 2]) {
                out.extend(if endian == Endian::Big { unit.to_be_bytes() } else { unit.to_le_bytes() });
            }
        }
        Code::Utf32(endian) => {
            let number = u32::from(char);
            out.extend(if endian == Endian::Big { number.to_be_bytes() } else { number.to_le_bytes() });
        }
        Code::Other(encoding) => {
            let mut text = [0; 4];
            let (bytes, _, failed) = encoding.encode(char.encode_utf8(&mut text));
            if failed {
                return false;
            }
            out.extend_from_slice(&bytes);
        }
    }
    true
}

/// What a character may be written as where it is lacking.
fn like(char: char) -> &'static str {
    match char {
        '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{2032}' => "'",
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{ab}' | '\u{bb}' => "\"",
        '\u{2010}'..='\u{2013}' | '\u{2212}' => "-",
        '\u{2014}' | '\u{2015}' => "--",
        '\u{2026}' => "...",
        '\u{20ac}' => "EUR",
        '\u{a0}' | '\u{2002}'..='\u{200a}' | '\u{202f}' => " ",
        '\u{a9}' => "(C)",
        '\u{ae}' => "(R)",
        '\u{2122}' => "(TM)",
        '\u{d7}' => "x",
        '\u{2022}' => "o",
        'ß' => "ss",
        'Æ' => "AE",
        'æ' => "ae",
        'Œ' => "OE",
        'œ' => "oe",
        'À'..='Å' => "A",
        'Ç' => "C",
        'È'..='Ë' => "E",
        'Ì'..='Ï' => "I",
        'Ñ' => "N",
        'Ò'..='Ö' | 'Ø' => "O",
        'Ù'..='Ü' => "U",
        'Ý' => "Y",
        'à'..='å' => "a",
        'ç' => "c",
        'è'..='ë' => "e",
        'ì'..='ï' => "i",
        'ñ' => "n",
        'ò'..='ö' | 'ø' => "o",
        'ù'..='ü' => "u",
        'ý' | 'ÿ' => "y",
        _ => "?",
    }
}
