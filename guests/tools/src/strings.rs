//! `strings`: the text in files that are none.

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, input};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno};

const TOOL: Tool = Tool {
    name: "strings",
    short: "adfn:t:e:os:wh0123456789",
    long: &[
        ("all", 'a'),
        ("data", 'd'),
        ("print-file-name", 'f'),
        ("bytes=", 'n'),
        ("radix=", 't'),
        ("include-all-whitespace", 'w'),
        ("output-separator=", 's'),
        ("encoding=", 'e'),
    ],
    help: "\
Usage: strings [option(s)] [file(s)]
 Display printable strings in [file(s)] (stdin by default)
 The options are:
  -a - --all                Scan the entire file, not just the data section
  -f --print-file-name      Print the name of the file before each string
  -n <number>               Locate & print any sequence of at least <number>
    --bytes=<number>         displayable characters.  (The default is 4).
  -t --radix={o,d,x}        Print the location of the string in base 8, 10 or 16
  -w --include-all-whitespace Include all whitespace as valid string characters
  -e --encoding={s,S,b,l,B,L} Characters of 7 or 8 bits, or of 16 or 32 bits,
                             the first (b, B) or the last (l, L) byte first
  -o                        An alias for --radix=o
  -s --output-separator=<string> String used to separate strings in output.
     --help                 Display this information
     --version              Print the program's version number
",
    misuse: 1,
};

struct Options {
    least: usize,
    radix: Option<u8>,
    with_name: bool,
    all_blanks: bool,
    end: Vec<u8>,
    encoding: u8,
}

pub fn main(arguments: Arguments) -> i32 {
    run(bytes_of(arguments)).unwrap_or_else(|code| code)
}

fn run(arguments: Vec<Vec<u8>>) -> Result<i32, i32> {
    let parsed = TOOL.parse(arguments)?;
    let mut options = Options {
        least: 4,
        radix: None,
        with_name: false,
        all_blanks: false,
        end: b"\n".to_vec(),
        encoding: b's',
    };
    let mut digits = String::new();
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'n' => {
                options.least = input::number(&text).filter(|least| *least > 0).ok_or_else(|| {
                    let what = if text == b"0" { "minimum string length" } else { "integer argument" };
                    complain("strings", format_args!("invalid {what} {}", String::from_utf8_lossy(&text)));
                    1
                })?;
            }
            't' => options.radix = text.first().copied(),
            'o' => options.radix = Some(b'o'),
            'f' => options.with_name = true,
            'w' => options.all_blanks = true,
            'e' => match text.as_slice() {
                [encoding @ (b's' | b'S' | b'b' | b'l' | b'B' | b'L')] => options.encoding = *encoding,
                _ => {
                    let _ = abi::write_all(2, TOOL.help.as_bytes());
                    return Err(1);
                }
            },
            's' => options.end = text,
            digit @ '0'..='9' => {
                digits.push(digit);
                options.least = digits.parse().unwrap_or(4);
            }
            _ => {}
        }
    }
    // A lone - says what -a does, and names no file.
    let named = parsed.operands.iter().filter(|operand| *operand != b"-").count();
    if named == 0 && !parsed.operands.is_empty() {
        let _ = abi::write_all(2, TOOL.help.as_bytes());
        return Err(1);
    }
    let mut operands = parsed.operands;
    operands.retain(|operand| operand != b"-");
    let mut out = Out::new("strings");
    let mut code = 0;
    for operand in input::or_stdin(operands) {
        match content(&operand) {
            Ok(content) => options.print(&content, &operand, &mut out),
            Err(message) => {
                out.flush();
                complain("strings", message);
                code = 1;
            }
        }
    }
    Ok(code)
}

fn content(operand: &[u8]) -> Result<Vec<u8>, String> {
    let name = String::from_utf8_lossy(operand);
    if operand == b"-" {
        return files::read_fd(0).map_err(|error| format!("-: {error}"));
    }
    match abi::stat(Dir::CWD, operand, true) {
        Ok(stat) if stat.is_dir() => Err(format!("Warning: '{name}' is a directory")),
        Err(Errno::NOENT) => Err(format!("'{name}': No such file")),
        _ => std::fs::read(files::path(operand)).map_err(|error| format!("{name}: {}", Errno::from(error))),
    }
}

impl Options {
    fn print(&self, content: &[u8], name: &[u8], out: &mut Out) {
        let unit = match self.encoding {
            b'b' | b'l' => 2,
            b'B' | b'L' => 4,
            _ => 1,
        };
        let mut at = 0;
        while at < content.len() {
            let text: Vec<u8> =
                content[at..].chunks_exact(unit).map_while(|bytes| self.character(bytes)).collect();
            if text.len() >= self.least {
                if self.with_name {
                    out.put([name, b": "].concat());
                }
                match self.radix {
                    Some(b'o') => out.put(format!("{at:7o} ")),
                    Some(b'x') => out.put(format!("{at:7x} ")),
                    Some(_) => out.put(format!("{at:7} ")),
                    None => {}
                }
                out.put(&text);
                out.put(&self.end);
            }
            // What is no character may be the second half of one.
            at += text.len() * unit + 1;
        }
    }

    /// The character that some bytes are, if it can be printed.
    fn character(&self, bytes: &[u8]) -> Option<u8> {
        let is_first = matches!(self.encoding, b'b' | b'B');
        let (byte, others) = match bytes {
            [others @ .., byte] if is_first => (*byte, others),
            [byte, others @ ..] => (*byte, others),
            [] => return None,
        };
        let is_text = (0x20..0x7f).contains(&byte)
            || byte == b'\t'
            || self.all_blanks && byte.is_ascii_whitespace()
            || self.encoding == b'S' && byte >= 0x80;
        (is_text && others.iter().all(|&byte| byte == 0)).then_some(byte)
    }
}
