//! `dd`: copies blocks, and changes them on the way.

use std::time::{Duration, Instant};
use toolkit::args::bytes_of;
use toolkit::size::human;
use toolkit::{Arguments, complain, quote};
use wardian_abi as abi;
use wardian_abi::{Dir, Errno, Fd, Whence, open_flags as flags};

const HELP: &str = "\
Usage: dd [OPERAND]...
  or:  dd OPTION
Copy a file, converting and formatting according to the operands.

  bs=BYTES        read and write up to BYTES bytes at a time (default: 512);
                  overrides ibs and obs
  conv=CONVS      convert the file as per the comma separated symbol list
  cbs=BYTES       convert BYTES bytes at a time
  count=N         copy only N input blocks
  ibs=BYTES       read up to BYTES bytes at a time (default: 512)
  if=FILE         read from FILE instead of stdin
  iflag=FLAGS     read as per the comma separated symbol list
  obs=BYTES       write BYTES bytes at a time (default: 512)
  of=FILE         write to FILE instead of stdout
  oflag=FLAGS     write as per the comma separated symbol list
  seek=N          skip N obs-sized output blocks
  skip=N          skip N ibs-sized input blocks
  status=LEVEL    The LEVEL of information to print to stderr;
                  'none' suppresses everything but error messages,
                  'noxfer' suppresses the final transfer statistics,
                  'progress' shows periodic transfer statistics

Each CONV symbol may be:

  block     pad newline-terminated records with spaces to cbs-size
  unblock   replace trailing spaces in cbs-size records with newline
  lcase     change upper case to lower case
  ucase     change lower case to upper case
  swab      swap every pair of input bytes
  sync      pad every input block with NULs to ibs-size
  excl      fail if the output file already exists
  nocreat   do not create the output file
  notrunc   do not truncate the output file
  noerror   continue after read errors
  fdatasync, fsync   physically write output file data before finishing
";

#[derive(Default)]
struct Options {
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    read_size: usize,
    write_size: usize,
    /// Of records; zero leaves them alone.
    record_size: usize,
    count: Option<u64>,
    skip: u64,
    seek: u64,
    /// Counts, skips and seeks are in bytes.
    bytes: [bool; 3],
    conversions: Vec<String>,
    full_blocks: bool,
    append: bool,
    sync_writes: bool,
    status: String,
}

/// Blocks that were whole and that were not.
#[derive(Default)]
struct Records {
    whole: u64,
    partial: u64,
}

impl Records {
    fn add(&mut self, length: usize, size: usize) {
        if length == size { self.whole += 1 } else { self.partial += 1 }
    }
}

pub fn main(arguments: Arguments) -> i32 {
    let words = bytes_of(arguments);
    if let [only] = &words[..]
        && (only == b"--help" || only == b"--version")
    {
        let version = format!("dd (Wardian) {}\n", env!("CARGO_PKG_VERSION"));
        let text = if only == b"--help" { HELP } else { &version };
        return i32::from(abi::write_all(1, text.as_bytes()).is_err());
    }
    let options = match Options::parse(&words) {
        Ok(options) => options,
        Err(message) => {
            complain("dd", message);
            return 1;
        }
    };
    match options.copy() {
        Ok(code) => code,
        Err(message) => {
            complain("dd", message);
            1
        }
    }
}

impl Options {
    fn parse(words: &[Vec<u8>]) -> Result<Options, String> {
        let mut options = Options { read_size: 512, write_size: 512, ..Options::default() };
        for word in words {
            let cut = word.iter().position(|&byte| byte == b'=');
            let Some((name, value)) = cut.map(|at| (&word[..at], &word[at + 1..])) else {
                return Err(unknown("unrecognized operand", word));
            };
            let text = String::from_utf8_lossy(value).into_owned();
            match name {
                b"if" => options.input = Some(value.to_vec()),
                b"of" => options.output = Some(value.to_vec()),
                b"bs" => (options.read_size, options.write_size) = (block(value)?, block(value)?),
                b"ibs" => options.read_size = block(value)?,
                b"obs" => options.write_size = block(value)?,
                b"cbs" => options.record_size = block(value)?,
                b"count" => options.count = Some(options.amount(0, value)?),
                b"skip" | b"iseek" => options.skip = options.amount(1, value)?,
                b"seek" | b"oseek" => options.seek = options.amount(2, value)?,
                b"conv" => options.convert(&text)?,
                b"status" if ["none", "noxfer", "progress"].contains(&text.as_str()) => options.status = text,
                b"status" => return Err(unknown("invalid status level:", value)),
                b"iflag" | b"oflag" => options.flags(name, &text)?,
                _ => return Err(unknown("unrecognized operand", word)),
            }
        }
        if options.record_size == 0 {
            options.conversions.retain(|name| name != "block" && name != "unblock");
        }
        for (one, other) in [("block", "unblock"), ("lcase", "ucase"), ("excl", "nocreat")] {
            if options.has(one) && options.has(other) {
                return Err(format!("cannot combine {one} and {other}"));
            }
        }
        Ok(options)
    }

    fn amount(&mut self, which: usize, value: &[u8]) -> Result<u64, String> {
        let (digits, in_bytes) = match value.strip_suffix(b"B") {
            Some(digits) if digits.last().is_some_and(u8::is_ascii_digit) => (digits, true),
            _ => (value, false),
        };
        self.bytes[which] |= in_bytes;
        number(digits).ok_or_else(|| format!("invalid number: {}", quote::word(value)))
    }

    fn convert(&mut self, list: &str) -> Result<(), String> {
        let known = [
            "block",
            "unblock",
            "lcase",
            "ucase",
            "swab",
            "sync",
            "excl",
            "nocreat",
            "notrunc",
            "noerror",
            "fdatasync",
            "fsync",
            "sparse",
        ];
        for name in list.split(',') {
            if !known.contains(&name) {
                return Err(unknown("invalid conversion:", name.as_bytes()));
            }
            self.conversions.push(name.to_owned());
        }
        Ok(())
    }

    fn flags(&mut self, name: &[u8], list: &str) -> Result<(), String> {
        for flag in list.split(',') {
            match flag {
                "fullblock" => self.full_blocks = true,
                "append" => self.append = true,
                "count_bytes" => self.bytes[0] = true,
                "skip_bytes" => self.bytes[1] = true,
                "seek_bytes" => self.bytes[2] = true,
                // Each write is then made sure of; that there is one call for all of them shows to nobody.
                "dsync" | "sync" if name == b"oflag" => self.sync_writes = true,
                // What they ask of a disk is so here already.
                "direct" | "dsync" | "sync" | "nonblock" | "nofollow" | "noatime" | "directory"
                | "noctty" | "nocache" | "binary" | "text" => {}
                _ => {
                    let side = if name == b"iflag" { "input" } else { "output" };
                    return Err(unknown(&format!("invalid {side} flag:"), flag.as_bytes()));
                }
            }
        }
        Ok(())
    }

    fn has(&self, conversion: &str) -> bool {
        self.conversions.iter().any(|name| name == conversion)
    }

    fn copy(&self) -> Result<i32, String> {
        let start = Instant::now();
        let input = match &self.input {
            None => 0,
            Some(path) => abi::open(Dir::CWD, path, flags::RDONLY, 0)
                .map_err(|error| format!("failed to open {}: {error}", quote::always(path)))?,
        };
        let output = self.open_output()?;
        self.skip_input(input)?;
        let (mut read, mut written) = (Records::default(), Records::default());
        let mut lines = Lines::new(self);
        let mut code = 0;
        let copied = self.transfer(input, output, &mut lines, &mut read, &mut written);
        let total = match copied {
            Ok(total) => total,
            Err((total, message)) => {
                complain("dd", message);
                code = 1;
                total
            }
        };
        if self.sync_writes {
            // What keeps nothing, as a pipe, has nothing to make sure of.
            let _ = abi::sync(output);
        }
        if code == 0
            && (self.has("fsync") || self.has("fdatasync"))
            && let Err(error) = abi::sync(output)
        {
            let name = self.output.as_deref().map_or("'standard output'".to_owned(), quote::always);
            let call = if self.has("fsync") { "fsync" } else { "fdatasync" };
            complain("dd", format_args!("{call} failed for {name}: {error}"));
            code = 1;
        }
        self.report(&read, &written, lines.truncated, total, start.elapsed());
        Ok(code)
    }

    fn open_output(&self) -> Result<Fd, String> {
        let offset = if self.bytes[2] { self.seek } else { self.seek.saturating_mul(self.write_size as u64) };
        let Some(path) = &self.output else {
            if offset > 0 {
                abi::seek(1, i64::try_from(offset).unwrap_or(i64::MAX), Whence::Current)
                    .map_err(|error| format!("'standard output': cannot seek: {error}"))?;
            }
            return Ok(1);
        };
        let failed = |error: Errno| format!("failed to open {}: {error}", quote::always(path));
        let mut how = flags::WRONLY;
        how |= if self.has("nocreat") { 0 } else { flags::CREAT };
        how |= if self.has("excl") { flags::EXCL } else { 0 };
        how |= if self.append { flags::APPEND } else { 0 };
        let truncates = !self.has("notrunc");
        how |= if truncates && offset == 0 { flags::TRUNC } else { 0 };
        let output = abi::open(Dir::CWD, path, how, 0o666).map_err(failed)?;
        if offset > 0 {
            if truncates {
                let file = std::fs::OpenOptions::new().write(true).open(toolkit::files::path(path));
                file.and_then(|file| file.set_len(offset)).map_err(|error| failed(Errno::from(error)))?;
            }
            abi::seek(output, i64::try_from(offset).unwrap_or(i64::MAX), Whence::Start).map_err(failed)?;
        }
        Ok(output)
    }

    fn skip_input(&self, input: Fd) -> Result<(), String> {
        let mut left =
            if self.bytes[1] { self.skip } else { self.skip.saturating_mul(self.read_size as u64) };
        let is_file = abi::fstat(input).is_ok_and(|stat| stat.is_file());
        if is_file && abi::seek(input, i64::try_from(left).unwrap_or(i64::MAX), Whence::Current).is_ok() {
            return Ok(());
        }
        let mut buffer = vec![0; 64 * 1024];
        while left > 0 {
            let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            match abi::read(input, &mut buffer[..most]) {
                Ok(0) => break,
                Ok(count) => left -= count as u64,
                Err(error) => return Err(format!("error reading: {error}")),
            }
        }
        Ok(())
    }

    /// Moves the blocks; answers how many bytes were written, with what stopped it.
    fn transfer(
        &self,
        input: Fd,
        output: Fd,
        lines: &mut Lines,
        read: &mut Records,
        written: &mut Records,
    ) -> Result<u64, (u64, String)> {
        let mut pending: Vec<u8> = Vec::new();
        let mut total = 0;
        let direct = self.read_size == self.write_size && lines.way == Way::AsTheyAre;
        let mut left = match self.bytes[0] {
            true => self.count,
            false => self.count.map(|count| count.saturating_mul(self.read_size as u64)),
        };
        let mut blocks = if self.bytes[0] { None } else { self.count };
        let mut flush = |bytes: &[u8], size: usize, total: &mut u64| -> Result<(), String> {
            for piece in bytes.chunks(size) {
                abi::write_all(output, piece).map_err(|error| {
                    let name = self.output.as_deref().map_or("'standard output'".to_owned(), quote::always);
                    format!("error writing {name}: {error}")
                })?;
                written.add(piece.len(), size);
                *total += piece.len() as u64;
            }
            Ok(())
        };
        while blocks != Some(0) && left != Some(0) {
            let most = left.map_or(self.read_size, |left| {
                self.read_size.min(usize::try_from(left).unwrap_or(usize::MAX))
            });
            let block = self.read_block(input, most).map_err(|error| {
                let name = self.input.as_deref().map_or("'standard input'".to_owned(), quote::always);
                (total, format!("error reading {name}: {error}"))
            })?;
            if block.is_empty() {
                break;
            }
            read.add(block.len(), self.read_size);
            blocks = blocks.map(|blocks| blocks - 1);
            left = if self.bytes[0] { left.map(|left| left - block.len() as u64) } else { left };
            let block = lines.convert(self.converted(block));
            if direct {
                flush(&block, self.write_size, &mut total).map_err(|message| (total, message))?;
                continue;
            }
            pending.extend(block);
            let whole = pending.len() / self.write_size * self.write_size;
            flush(&pending[..whole], self.write_size, &mut total).map_err(|message| (total, message))?;
            pending.drain(..whole);
        }
        pending.extend(lines.end());
        flush(&pending, self.write_size, &mut total).map_err(|message| (total, message))?;
        Ok(total)
    }

    fn read_block(&self, input: Fd, most: usize) -> Result<Vec<u8>, Errno> {
        let mut block = vec![0; most];
        let mut filled = 0;
        while filled < most {
            match abi::read(input, &mut block[filled..]) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error),
            }
            if !self.full_blocks {
                break;
            }
        }
        block.truncate(filled);
        Ok(block)
    }

    fn converted(&self, mut block: Vec<u8>) -> Vec<u8> {
        if self.has("lcase") {
            block.make_ascii_lowercase();
        }
        if self.has("ucase") {
            block.make_ascii_uppercase();
        }
        if self.has("swab") {
            block.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
        }
        if self.has("sync") {
            let by_record = self.has("block") || self.has("unblock");
            block.resize(self.read_size, if by_record { b' ' } else { 0 });
        }
        block
    }

    fn report(&self, read: &Records, written: &Records, truncated: u64, total: u64, time: Duration) {
        if self.status == "none" {
            return;
        }
        let mut text = format!(
            "{}+{} records in\n{}+{} records out\n",
            read.whole, read.partial, written.whole, written.partial
        );
        match truncated {
            0 => {}
            1 => text += "1 truncated record\n",
            many => text += &format!("{many} truncated records\n"),
        }
        if self.status != "noxfer" {
            text += &transferred(total, time);
        }
        let _ = abi::write_all(2, text.as_bytes());
    }
}

/// What becomes of lines.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    AsTheyAre,
    /// Padded to records.
    Block,
    /// Made of records.
    Unblock,
}

/// Lines on their way to records of one size, or back.
struct Lines {
    way: Way,
    size: usize,
    /// How much of the line or record there was.
    column: usize,
    /// Blanks that may turn out to be the last of a record.
    blanks: usize,
    truncated: u64,
}

impl Lines {
    fn new(options: &Options) -> Lines {
        let way = match (options.has("block"), options.has("unblock")) {
            (true, _) => Way::Block,
            (_, true) => Way::Unblock,
            _ => Way::AsTheyAre,
        };
        Lines { way, size: options.record_size, column: 0, blanks: 0, truncated: 0 }
    }

    fn convert(&mut self, bytes: Vec<u8>) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        match self.way {
            Way::AsTheyAre => return bytes,
            Way::Block => bytes.into_iter().for_each(|byte| self.block(byte, &mut out)),
            Way::Unblock => bytes.into_iter().for_each(|byte| self.unblock(byte, &mut out)),
        }
        out
    }

    fn block(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == b'\n' {
            out.resize(out.len() + self.size.saturating_sub(self.column), b' ');
            self.column = 0;
            return;
        }
        if self.column < self.size {
            out.push(byte);
        }
        self.truncated += u64::from(self.column == self.size);
        self.column += 1;
    }

    fn unblock(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.column == self.size {
            out.push(b'\n');
            (self.column, self.blanks) = (0, 0);
        }
        self.column += 1;
        if byte == b' ' {
            self.blanks += 1;
            return;
        }
        out.resize(out.len() + std::mem::take(&mut self.blanks), b' ');
        out.push(byte);
    }

    /// What a last line or record still lacks.
    fn end(&self) -> Vec<u8> {
        match self.way {
            Way::Block if self.column > 0 => vec![b' '; self.size.saturating_sub(self.column)],
            Way::Unblock if self.column > 0 => vec![b'\n'],
            _ => Vec::new(),
        }
    }
}

fn transferred(total: u64, time: Duration) -> String {
    let seconds = time.as_secs_f64().max(1e-9);
    let bytes = if total == 1 { "byte" } else { "bytes" };
    let rate = with_unit((total as f64 / seconds) as u128, 1000, "B");
    let sizes = match total {
        0..1000 => String::new(),
        1000..1024 => format!(" ({})", with_unit(u128::from(total), 1000, "B")),
        _ => {
            format!(
                " ({}, {})",
                with_unit(u128::from(total), 1000, "B"),
                with_unit(u128::from(total), 1024, "iB")
            )
        }
    };
    format!("{total} {bytes}{sizes} copied, {}, {rate}/s\n", seconds_shown(seconds))
}

/// `1.0 kB`: a size with a blank before its unit.
fn with_unit(bytes: u128, unit: u128, suffix: &str) -> String {
    let text = human(bytes, unit);
    match text.chars().last().filter(|last| last.is_ascii_alphabetic()) {
        Some(letter) => format!("{} {letter}{suffix}", &text[..text.len() - 1]),
        None => format!("{text} {}", suffix.trim_start_matches('i')),
    }
}

/// Six digits that count, as `%g` has them.
fn seconds_shown(seconds: f64) -> String {
    let digits = (5 - seconds.log10().floor() as i32).clamp(0, 12) as usize;
    let text = format!("{seconds:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} s")
}

fn unknown(what: &str, word: &[u8]) -> String {
    format!("{what} {}\nTry 'dd --help' for more information.", quote::word(word))
}

fn block(value: &[u8]) -> Result<usize, String> {
    let size = number(value).and_then(|size| usize::try_from(size).ok());
    size.filter(|size| (1..=1 << 30).contains(size))
        .ok_or_else(|| format!("invalid number: {}", quote::word(value)))
}

/// A number with a unit, or a product of such, as in `2x4k`.
fn number(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let factor = |part: &str| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let value: u64 = part[..digits].parse().ok()?;
        let unit: u64 = match &part[digits..] {
            "" | "c" | "B" => 1,
            "w" => 2,
            "b" => 512,
            "k" | "K" | "KiB" => 1 << 10,
            "M" | "MiB" => 1 << 20,
            "G" | "GiB" => 1 << 30,
            "T" | "TiB" => 1 << 40,
            "kB" | "KB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return None,
        };
        value.checked_mul(unit)
    };
    text.split('x').try_fold(1_u64, |product, part| product.checked_mul(factor(part)?))
}
