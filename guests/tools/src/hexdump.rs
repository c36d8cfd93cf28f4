//! `hexdump`: bytes as numbers.

mod format;

use toolkit::args::{Tool, bytes_of};
use toolkit::out::Out;
use toolkit::size::Scale;
use toolkit::{Arguments, complain, input, quote};

const HELP: &str = "
Usage:
 hexdump [options] <file>...

Display file contents in hexadecimal, decimal, octal, or ascii.

Options:
 -b, --one-byte-octal      one-byte octal display
 -c, --one-byte-char       one-byte character display
 -C, --canonical           canonical hex+ASCII display
 -d, --two-bytes-decimal   two-byte decimal display
 -o, --two-bytes-octal     two-byte octal display
 -x, --two-bytes-hex       two-byte hexadecimal display
 -e, --format <format>     display by units of '[count/][bytes] \"conversions\"'
 -f, --format-file <file>  the same, each line of the file a format
 -n, --length <length>     interpret only length bytes of input
 -s, --skip <offset>       skip offset bytes from the beginning
 -v, --no-squeezing        output identical lines
     --help                display this help
     --version             display version
";

const LONG: &[(&str, char)] = &[
    ("one-byte-octal", 'b'),
    ("one-byte-char", 'c'),
    ("canonical", 'C'),
    ("two-bytes-decimal", 'd'),
    ("two-bytes-octal", 'o'),
    ("two-bytes-hex", 'x'),
    ("format=", 'e'),
    ("format-file=", 'f'),
    ("length=", 'n'),
    ("skip=", 's'),
    ("no-squeezing", 'v'),
];

const HEXDUMP: Tool = Tool { name: "hexdump", short: "bcCde:f:oxn:s:vhV", long: LONG, help: HELP, misuse: 1 };
const HD: Tool = Tool { name: "hd", short: "bcCde:f:oxn:s:vhV", long: LONG, help: HELP, misuse: 1 };

pub fn main(arguments: Arguments) -> i32 {
    run(&HEXDUMP, bytes_of(arguments), None).unwrap_or_else(|code| code)
}

/// `hd` is `hexdump -C`.
pub fn hd(arguments: Arguments) -> i32 {
    run(&HD, bytes_of(arguments), Some('C')).unwrap_or_else(|code| code)
}

fn run(tool: &Tool, arguments: Vec<Vec<u8>>, usual: Option<char>) -> Result<i32, i32> {
    let parsed = tool.parse(arguments)?;
    let mut formats: Vec<char> = usual.into_iter().collect();
    let (mut length, mut skip, mut squeezes) = (usize::MAX, 0, true);
    let mut written = Vec::new();
    for (letter, text) in parsed.options {
        let text = text.unwrap_or_default();
        match letter {
            'n' => length = amount(tool, &text)?,
            's' => skip = amount(tool, &text)?,
            'v' => squeezes = false,
            'e' => written.push(text),
            'f' => {
                let content = input::read(tool.name, &text).ok_or(1)?;
                let lines = content.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
                written.extend(lines.filter(|line| !line.is_empty() && line[0] != b'#').map(<[u8]>::to_vec));
            }
            format => formats.push(format),
        }
    }
    let rows = if written.is_empty() { None } else { Some(rows_of(tool, &formats, written)?) };
    if formats.is_empty() {
        formats.push(' ');
    }
    let (mut content, mut code, mut read_any) = (Vec::new(), 0, false);
    for operand in input::or_stdin(parsed.operands) {
        match input::read(tool.name, &operand) {
            Some(more) => {
                content.extend(more);
                read_any = true;
            }
            None => code = 1,
        }
    }
    if !read_any {
        complain(tool.name, "all input file arguments failed");
        return Ok(1);
    }
    let start = skip.min(content.len());
    let end = content.len().min(start.saturating_add(length));
    let mut out = Out::new("hexdump");
    match rows {
        Some(rows) => rows.dump(&content[start..end], start, squeezes, &mut out),
        None => dump(&content[start..end], start, &formats, squeezes, &mut out),
    }
    Ok(code)
}

/// The formats that were written out, after those that letters stand for.
fn rows_of(tool: &Tool, letters: &[char], written: Vec<Vec<u8>>) -> Result<format::Rows, i32> {
    let known = letters.iter().flat_map(|letter| format::of_letter(*letter));
    let all: Vec<Vec<u8>> = known.map(|text| text.as_bytes().to_vec()).chain(written).collect();
    format::Rows::parse(&all).map_err(|message| {
        complain(tool.name, message);
        1
    })
}

fn amount(tool: &Tool, text: &[u8]) -> Result<usize, i32> {
    let hex = text.strip_prefix(b"0x").and_then(|digits| std::str::from_utf8(digits).ok());
    if let Some(value) = hex.and_then(|digits| usize::from_str_radix(digits, 16).ok()) {
        return Ok(value);
    }
    match Scale::parse(text) {
        Some(Scale::Blocks(size, _)) => Ok(usize::try_from(size).unwrap_or(usize::MAX)),
        _ if text == b"0" => Ok(0),
        _ => {
            complain(tool.name, format_args!("failed to parse length: {}", quote::word(text)));
            Err(1)
        }
    }
}

/// Lines of 16 bytes in each of the formats; those equal to the one before shrink to a star.
fn dump(content: &[u8], start: usize, formats: &[char], squeezes: bool, out: &mut Out) {
    let canonical = formats.contains(&'C');
    let place = |at: usize| if canonical { format!("{at:08x}") } else { format!("{at:07x}") };
    let (mut before, mut starred): (Option<&[u8]>, bool) = (None, false);
    for (row, line) in content.chunks(16).enumerate() {
        if squeezes && before == Some(line) && line.len() == 16 {
            if !starred {
                out.put("*\n");
            }
            starred = true;
            continue;
        }
        (before, starred) = (Some(line), false);
        for format in formats {
            let at = place(start + row * 16);
            out.put(format!("{at}{}\n", shown(line, *format)));
        }
    }
    if !content.is_empty() {
        out.put(place(start + content.len()) + "\n");
    }
}

fn shown(line: &[u8], format: char) -> String {
    let words =
        || line.chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
    let padded = |cells: String, width: usize| format!("{cells:<width$}");
    match format {
        'C' => canonical(line),
        'b' => padded(line.iter().map(|byte| format!(" {byte:03o}")).collect(), 64),
        'c' => padded(line.iter().map(|byte| format!(" {:>3}", letter(*byte))).collect(), 64),
        'd' => padded(words().map(|word| format!("   {word:05}")).collect(), 64),
        'o' => padded(words().map(|word| format!("  {word:06o}")).collect(), 64),
        'x' => padded(words().map(|word| format!("    {word:04x}")).collect(), 64),
        _ => padded(words().map(|word| format!(" {word:04x}")).collect(), 40),
    }
}

fn canonical(line: &[u8]) -> String {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!(" {byte:02x}")).collect::<String>();
    let (left, right) = line.split_at(line.len().min(8));
    let letters: String =
        line.iter().map(|byte| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' }).collect();
    format!(" {:<24} {:<24}  |{letters}|", hex(left), hex(right))
}

fn letter(byte: u8) -> String {
    match byte {
        0 => "\\0".to_owned(),
        7 => "\\a".to_owned(),
        8 => "\\b".to_owned(),
        9 => "\\t".to_owned(),
        10 => "\\n".to_owned(),
        11 => "\\v".to_owned(),
        12 => "\\f".to_owned(),
        13 => "\\r".to_owned(),
        0x20..0x7f => char::from(byte).to_string(),
        _ => format!("{byte:03o}"),
    }
}
