//! `xxd`: bytes as hexadecimal digits, and back.

use std::io::{Seek, SeekFrom, Write};
use toolkit::args::bytes_of;
use toolkit::out::Out;
use toolkit::{Arguments, complain, files, input};
use wardian_abi::Errno;

const HELP: &str = "\
Usage:
       xxd [options] [infile [outfile]]
    or
       xxd -r [-s [-]offset] [-c cols] [-ps] [infile [outfile]]
Options:
    -b          binary digit dump (incompatible with -ps,-i,-r). Default hex.
    -c cols     format <cols> octets per line. Default 16 (-i: 12, -ps: 30).
    -e          little-endian dump (incompatible with -ps,-i,-r).
    -g bytes    number of octets per group in normal output. Default 2 (-e: 4).
    -i          output in C include file style.
    -l len      stop after <len> octets.
    -o off      add <off> to the displayed file position.
    -ps         output in postscript plain hexdump style.
    -r          reverse operation: convert (or patch) hexdump into binary.
    -s [-]seek  start at <seek> bytes abs. (or from the end) infile offset.
    -u          use upper case hex letters.
";

#[derive(Default)]
struct Options {
    binary: bool,
    little: bool,
    include: bool,
    plain: bool,
    reverse: bool,
    upper: bool,
    skips_zeros: bool,
    columns: Option<usize>,
    group: Option<usize>,
    length: Option<usize>,
    shift: u64,
    seek: i64,
    operands: Vec<Vec<u8>>,
}

pub fn main(arguments: Arguments) -> i32 {
    match Options::parse(bytes_of(arguments)) {
        Ok(options) => options.run().unwrap_or_else(|message| {
            complain("xxd", message);
            2
        }),
        Err(code) => code,
    }
}

impl Options {
    fn parse(words: Vec<Vec<u8>>) -> Result<Options, i32> {
        let mut options = Options::default();
        let mut rest = words.into_iter();
        while let Some(word) = rest.next() {
            let Some(name) = word.strip_prefix(b"-").filter(|name| !name.is_empty()) else {
                options.operands.push(word);
                continue;
            };
            let name = name.strip_prefix(b"-").unwrap_or(name);
            match name {
                b"b" | b"bits" => options.binary = true,
                b"e" => options.little = true,
                b"i" | b"include" => options.include = true,
                b"p" | b"ps" | b"postscript" | b"plain" => options.plain = true,
                b"r" | b"revert" => options.reverse = true,
                b"u" | b"uppercase" => options.upper = true,
                b"a" | b"autoskip" => options.skips_zeros = !options.skips_zeros,
                b"C" | b"capitalize" => {}
                b"h" | b"help" => {
                    Out::new("xxd").put(HELP);
                    return Err(0);
                }
                b"v" | b"version" => {
                    Out::new("xxd").put(format!("xxd (Wardian) {}\n", env!("CARGO_PKG_VERSION")));
                    return Err(0);
                }
                name if b"cglos".contains(&name[0]) => options.valued(name, &mut rest)?,
                _ => return Err(usage()),
            }
        }
        Ok(options)
    }

    /// An option with a number, attached or in the next word.
    fn valued(&mut self, name: &[u8], rest: &mut impl Iterator<Item = Vec<u8>>) -> Result<(), i32> {
        let attached = name[1..].to_vec();
        let is_word = matches!(name, b"cols" | b"groupsize" | b"len" | b"offset" | b"seek" | b"skip");
        let text = match attached.is_empty() || is_word {
            true => rest.next().ok_or_else(usage)?,
            false => attached,
        };
        let value = integer(&text).ok_or_else(usage)?;
        let count = usize::try_from(value).unwrap_or(0);
        match name[0] {
            b'c' => self.columns = Some(count).filter(|count| *count > 0),
            b'g' => self.group = Some(count),
            b'l' => self.length = Some(count),
            b'o' => self.shift = value as u64,
            _ => self.seek = value,
        }
        Ok(())
    }

    fn run(&self) -> Result<i32, String> {
        let name = self.operands.first().map_or(b"-".as_slice(), Vec::as_slice);
        let Some(content) = input::read("xxd", name) else { return Ok(2) };
        let mut output = Vec::new();
        if self.reverse {
            return self.write_back(&content);
        }
        let start = match self.seek {
            seek if seek < 0 => content.len().saturating_sub(seek.unsigned_abs() as usize),
            seek => seek as usize,
        };
        let content = content.get(start..).unwrap_or_default();
        let content = &content[..self.length.unwrap_or(content.len()).min(content.len())];
        match (self.include, self.plain) {
            (true, _) => self.as_include(content, name, &mut output),
            (_, true) => {
                for line in content.chunks(self.columns.unwrap_or(30)) {
                    output.extend(line.iter().flat_map(|byte| self.hex(*byte).into_bytes()));
                    output.push(b'\n');
                }
            }
            _ => self.as_dump(content, start as u64 + self.shift, &mut output),
        }
        match self.operands.get(1) {
            None => Out::new("xxd").put(&output),
            Some(path) => std::fs::write(files::path(path), &output).map_err(|error| failed(path, error))?,
        }
        Ok(0)
    }

    fn hex(&self, byte: u8) -> String {
        if self.upper { format!("{byte:02X}") } else { format!("{byte:02x}") }
    }

    fn as_dump(&self, content: &[u8], start: u64, output: &mut Vec<u8>) {
        let columns = self.columns.unwrap_or(if self.binary { 6 } else { 16 });
        let usual = match (self.binary, self.little) {
            (true, _) => 1,
            (_, true) => 4,
            _ => 2,
        };
        let group = self.group.map_or(usual, |group| if group == 0 { columns } else { group });
        let digits = if self.binary { 8 } else { 2 };
        let width = columns * digits + columns.div_ceil(group);
        let mut rows = Vec::new();
        for (row, line) in content.chunks(columns).enumerate() {
            let mut text = String::new();
            for bytes in line.chunks(group) {
                let cell = |byte: &u8| if self.binary { format!("{byte:08b}") } else { self.hex(*byte) };
                if self.little {
                    text.extend(std::iter::repeat_n(' ', (group - bytes.len()) * digits));
                    text.extend(bytes.iter().rev().map(cell));
                } else {
                    text.extend(bytes.iter().map(cell));
                }
                text.push(' ');
            }
            let printable = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
            let letters: String = line.iter().map(printable).collect();
            let place = start + (row * columns) as u64;
            rows.push((
                format!("{place:08x}: {text:<width$} {letters}\n"),
                line.iter().all(|byte| *byte == 0),
            ));
        }
        for (row, (line, is_zero)) in rows.iter().enumerate() {
            let is_last = row + 1 == rows.len();
            let starts = row == 0 || !rows[row - 1].1;
            if !self.skips_zeros || !is_zero || starts || is_last {
                output.extend(line.bytes());
                continue;
            }
            // Two lines of zeros are no more than a line and a star.
            let run = rows[row..].iter().take_while(|(_, is_zero)| *is_zero).count();
            let hidden = if row + run == rows.len() { run - 1 } else { run };
            let begins = row == 1 || !rows[row - 2].1;
            match (begins, hidden) {
                (true, 1) => output.extend(line.bytes()),
                (true, _) => output.extend(b"*\n"),
                _ => {}
            }
        }
    }

    fn as_include(&self, content: &[u8], name: &[u8], output: &mut Vec<u8>) {
        let is_file = name != b"-";
        let legal = |byte: &u8| if byte.is_ascii_alphanumeric() { char::from(*byte) } else { '_' };
        let mut variable: String = name.iter().map(legal).collect();
        if variable.starts_with(|first: char| first.is_ascii_digit()) {
            variable.insert_str(0, "__");
        }
        if is_file {
            output.extend(format!("unsigned char {variable}[] = {{\n").into_bytes());
        }
        let rows: Vec<String> = content
            .chunks(self.columns.unwrap_or(12))
            .map(|row| row.iter().map(|byte| format!("0x{}", self.hex(*byte))).collect::<Vec<_>>().join(", "))
            .collect();
        output.extend(rows.iter().map(|row| format!("  {row}")).collect::<Vec<_>>().join(",\n").into_bytes());
        if !rows.is_empty() {
            output.push(b'\n');
        }
        if is_file {
            output.extend(format!("}};\nunsigned int {variable}_len = {};\n", content.len()).into_bytes());
        }
    }

    /// Turns digits back into bytes, at the places they were at.
    fn write_back(&self, dump: &[u8]) -> Result<i32, String> {
        let mut pieces: Vec<(u64, Vec<u8>)> = Vec::new();
        if self.plain {
            let digits: Vec<u8> = dump.iter().copied().filter(u8::is_ascii_hexdigit).collect();
            pieces.push((0, bytes_in(&digits)));
        } else {
            for line in dump.split(|&byte| byte == b'\n') {
                let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
                let place = std::str::from_utf8(&line[..colon]).ok();
                let Some(place) = place.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()) else {
                    continue;
                };
                let rest = line.get(colon + 1..).unwrap_or_default();
                // Two blanks begin the letters.
                let end =
                    rest.windows(2).skip(1).position(|pair| pair == b"  ").map_or(rest.len(), |at| at + 1);
                let digits: Vec<u8> = rest[..end].iter().copied().filter(u8::is_ascii_hexdigit).collect();
                let most = self.columns.unwrap_or(if self.binary { 6 } else { 16 });
                let mut bytes = bytes_in(&digits);
                bytes.truncate(most);
                pieces.push((place.wrapping_add_signed(self.seek), bytes));
            }
        }
        match self.operands.get(1) {
            None => {
                let mut out = Out::new("xxd");
                let mut at = 0;
                for (place, bytes) in pieces {
                    let gap = place.saturating_sub(at).min(1 << 30);
                    out.put(vec![0; gap as usize]);
                    at += gap + bytes.len() as u64;
                    out.put(bytes);
                }
            }
            Some(path) => {
                let file = std::fs::OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(files::path(path));
                let mut file = file.map_err(|error| failed(path, error))?;
                for (place, bytes) in pieces {
                    let written = file.seek(SeekFrom::Start(place)).and_then(|_| file.write_all(&bytes));
                    written.map_err(|error| failed(path, error))?;
                }
            }
        }
        Ok(0)
    }
}

fn usage() -> i32 {
    let _ = wardian_abi::write_all(2, HELP.as_bytes());
    1
}

fn failed(path: &[u8], error: std::io::Error) -> String {
    format!("{}: {}", String::from_utf8_lossy(path), Errno::from(error))
}

fn bytes_in(digits: &[u8]) -> Vec<u8> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.chunks_exact(2).filter_map(pair).collect()
}

/// A number as C writes it: decimal, `0x…` or `0…`.
fn integer(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.trim_start_matches('+')),
    };
    let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}
