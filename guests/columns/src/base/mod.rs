//! `base64`, `base32` and `basenc`: bytes as text, and back.

mod code;

use code::{Code, Decoder};
use toolkit::args::{Parsed, Tool, bytes_of};
use toolkit::out::Out;
use toolkit::source::Source;
use toolkit::{Arguments, complain, quote};
use wardian_abi::Errno;

const LONG: &[(&str, char)] = &[("decode", 'd'), ("ignore-garbage", 'i'), ("wrap=", 'w')];

const BASE64: Tool = Tool {
    name: "base64",
    short: "diw:",
    long: LONG,
    help: "\
Usage: base64 [OPTION]... [FILE]
Encode FILE, or standard input (also as -), as base64 (RFC 4648), or decode it.

  -d, --decode          decode
  -i, --ignore-garbage  when decoding, pass over what is not of the alphabet
  -w, --wrap=COLS       break lines after COLS characters (76), or with 0 not at all
      --help        display this help and exit
      --version     output version information and exit
",
    misuse: 1,
};

const BASE32: Tool = Tool {
    name: "base32",
    help: "\
Usage: base32 [OPTION]... [FILE]
Encode FILE, or standard input (also as -), as base32 (RFC 4648), or decode it.

  -d, --decode          decode
  -i, --ignore-garbage  when decoding, pass over what is not of the alphabet
  -w, --wrap=COLS       break lines after COLS characters (76), or with 0 not at all
      --help        display this help and exit
      --version     output version information and exit
",
    ..BASE64
};

const BASENC: Tool = Tool {
    name: "basenc",
    long: &[
        ("base64", '6'),
        ("base64url", 'u'),
        ("base32", '3'),
        ("base32hex", 'h'),
        ("base16", 'x'),
        ("base2msbf", 'm'),
        ("base2lsbf", 'l'),
        ("z85", '8'),
        ("decode", 'd'),
        ("ignore-garbage", 'i'),
        ("wrap=", 'w'),
    ],
    help: "\
Usage: basenc [OPTION]... [FILE]
Encode FILE, or standard input (also as -), in one of these ways, or decode it.

      --base64          as base64 does (RFC 4648, section 4)
      --base64url       with - and _, for URLs and names of files (section 5)
      --base32          as base32 does (section 6)
      --base32hex       with the digits before the letters (section 7)
      --base16          hexadecimal (section 8)
      --base2msbf       bits, the most significant of a byte first
      --base2lsbf       bits, the least significant of a byte first
      --z85             ZeroMQ's 85 characters; 4 bytes make 5 of them, and there must be no rest
  -d, --decode          decode
  -i, --ignore-garbage  when decoding, pass over what is not of the alphabet
  -w, --wrap=COLS       break lines after COLS characters (76), or with 0 not at all
      --help        display this help and exit
      --version     output version information and exit
",
    ..BASE64
};

/// How much is encoded at a time: a multiple of what any code takes as one group.
const BLOCK: usize = 120 * 1024;

struct Job {
    code: Code,
    decode: bool,
    ignore_garbage: bool,
    /// After how many characters a line ends; 0 for never.
    wrap: u64,
}

pub fn base64(arguments: Arguments) -> i32 {
    run(&BASE64, Some(Code::BASE64), arguments)
}

pub fn base32(arguments: Arguments) -> i32 {
    run(&BASE32, Some(Code::BASE32), arguments)
}

pub fn basenc(arguments: Arguments) -> i32 {
    run(&BASENC, None, arguments)
}

fn run(tool: &Tool, code: Option<Code>, arguments: Arguments) -> i32 {
    let parsed = tool.parse(bytes_of(arguments));
    let job = parsed.and_then(|parsed| Ok((read_options(tool, code, &parsed)?, parsed.operands)));
    let (job, operands) = match job {
        Ok(job) => job,
        Err(code) => return code,
    };
    let operand = operands.first().map_or(b"-".as_slice(), Vec::as_slice);
    let source = match Source::open(operand) {
        Ok(source) => source,
        Err(error) => {
            complain(tool.name, format_args!("{}: {error}", quote::if_needed(operand)));
            return 1;
        }
    };
    let mut out = Out::new(tool.name);
    let done = if job.decode { job.decode(&source, &mut out) } else { job.encode(&source, &mut out) };
    match done {
        Ok(()) => 0,
        Err(message) => {
            out.complain(message);
            1
        }
    }
}

fn read_options(tool: &Tool, mut code: Option<Code>, parsed: &Parsed) -> Result<Job, i32> {
    let (mut decode, mut ignore_garbage, mut wrap) = (false, false, 76);
    for (letter, argument) in &parsed.options {
        match letter {
            'd' => decode = true,
            'i' => ignore_garbage = true,
            'w' => wrap = read_wrap(tool, argument.as_deref().unwrap_or_default())?,
            letter => code = Code::by_letter(*letter),
        }
    }
    let Some(code) = code else { return Err(tool.wrong("missing encoding type")) };
    if let Some(extra) = parsed.operands.get(1) {
        return Err(tool.wrong(format_args!("extra operand {}", quote::word(extra))));
    }
    Ok(Job { code, decode, ignore_garbage, wrap })
}

/// A number as C reads it; one too large for it means that no line ends.
fn read_wrap(tool: &Tool, text: &[u8]) -> Result<u64, i32> {
    let digits = text.trim_ascii_start();
    let digits = digits.strip_prefix(b"+").unwrap_or(digits);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        complain(tool.name, format_args!("invalid wrap size: {}", quote::word(text)));
        return Err(1);
    }
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<i64>().ok());
    Ok(number.map_or(0, i64::unsigned_abs))
}

impl Job {
    fn encode(&self, source: &Source, out: &mut Out) -> Result<(), String> {
        let encoder = self.code.encoder();
        let mut wrapping = Wrapping { width: self.wrap, column: 0 };
        let (mut block, mut text) = (vec![0; BLOCK], Vec::new());
        loop {
            let count = source.read_full(&mut block).map_err(read_error)?;
            text.clear();
            encoder.encode(&block[..count], &mut text)?;
            wrapping.put(&text, out);
            if count < BLOCK {
                break;
            }
        }
        if wrapping.width > 0 && wrapping.column > 0 {
            out.put("\n");
        }
        Ok(())
    }

    fn decode(&self, source: &Source, out: &mut Out) -> Result<(), String> {
        let mut decoder = Decoder::new(self.code, self.ignore_garbage);
        let mut is_good = true;
        let mut block = vec![0; BLOCK];
        while is_good {
            let count = source.read_full(&mut block).map_err(read_error)?;
            is_good = decoder.decode(&mut block[..count], out.buffer());
            out.settle();
            if count < BLOCK {
                is_good = is_good && decoder.finish(out.buffer());
                break;
            }
        }
        if is_good { Ok(()) } else { Err("invalid input".into()) }
    }
}

fn read_error(error: Errno) -> String {
    format!("read error: {error}")
}

/// Text broken into lines.
struct Wrapping {
    width: u64,
    column: u64,
}

impl Wrapping {
    fn put(&mut self, text: &[u8], out: &mut Out) {
        if self.width == 0 {
            out.put(text);
            return;
        }
        let buffer = out.buffer();
        let mut rest = text;
        while !rest.is_empty() {
            if self.column == self.width {
                buffer.push(b'\n');
                self.column = 0;
            }
            let room = usize::try_from(self.width - self.column).unwrap_or(usize::MAX);
            let (line, after) = rest.split_at(rest.len().min(room));
            buffer.extend_from_slice(line);
            self.column += line.len() as u64;
            rest = after;
        }
        out.settle();
    }
}
