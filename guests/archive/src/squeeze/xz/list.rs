//! `xz --list`: what the indexes of files say of them.

use super::super::{Opened, say, shown};
use toolkit::out::Out;
use wardian_abi as abi;

/// Sums over the files listed.
#[derive(Default)]
pub struct Totals {
    files: u64,
    sum: Sizes,
}

#[derive(Default, Clone)]
struct Sizes {
    streams: u64,
    blocks: u64,
    packed: u64,
    unpacked: u64,
    padding: u64,
    /// The kinds of checks in use, one bit for each.
    checks: u32,
}

/// A stream of a file.
struct Stream {
    at: u64,
    size: u64,
    /// Zeros behind it.
    padding: u64,
    check: u32,
    /// What each block takes, and what is in it.
    blocks: Vec<(u64, u64)>,
}

const HEADER: usize = 12;

impl Totals {
    /// Lists a file. The error is what is wrong with it.
    pub fn list(&mut self, file: &[u8], opened: &Opened, count: usize, verbose: bool) -> Result<(), String> {
        let streams = read_streams(opened)?;
        let sizes = Sizes::of(&streams);
        let mut out = Out::new("xz");
        if verbose {
            if self.files > 0 {
                out.put("\n");
            }
            out.put(format!("{} ({}/{count})\n", shown(file), self.files + 1));
            sizes.put(&mut out);
            put_streams(&streams, &mut out);
            put_blocks(&streams, &mut out);
        } else {
            if self.files == 0 {
                out.put("Strms  Blocks   Compressed Uncompressed  Ratio  Check   Filename\n");
            }
            out.put(line(&sizes));
            out.put(file);
            out.put("\n");
        }
        self.files += 1;
        self.sum.streams += sizes.streams;
        self.sum.blocks += sizes.blocks;
        self.sum.packed += sizes.packed;
        self.sum.unpacked += sizes.unpacked;
        self.sum.padding += sizes.padding;
        self.sum.checks |= sizes.checks;
        Ok(())
    }

    pub fn print(&self, verbose: bool) {
        if self.files == 0 {
            return;
        }
        let mut out = Out::new("xz");
        if verbose {
            out.put(format!("\nTotals:\n  Number of files:   {}\n", self.files));
            self.sum.put(&mut out);
            return;
        }
        out.put("-".repeat(79) + "\n");
        out.put(line(&self.sum));
        out.put(format!("{} files\n", self.files));
    }
}

impl Sizes {
    fn of(streams: &[Stream]) -> Sizes {
        let mut sizes = Sizes::default();
        for stream in streams {
            sizes.streams += 1;
            sizes.blocks += stream.blocks.len() as u64;
            sizes.packed = sizes.packed.saturating_add(stream.size).saturating_add(stream.padding);
            sizes.unpacked = sizes.unpacked.saturating_add(stream.unpacked());
            sizes.padding += stream.padding;
            sizes.checks |= 1 << stream.check;
        }
        sizes
    }

    /// At length.
    fn put(&self, out: &mut Out) {
        out.put(format!("  Streams:           {}\n  Blocks:            {}\n", self.streams, self.blocks));
        out.put(format!("  Compressed size:   {}\n", with_bytes(self.packed)));
        out.put(format!("  Uncompressed size: {}\n", with_bytes(self.unpacked)));
        out.put(format!("  Ratio:             {}\n", ratio(self.packed, self.unpacked)));
        out.put(format!("  Check:             {}\n", check_names(self.checks).replace(',', ", ")));
        out.put(format!("  Stream Padding:    {}\n", with_bytes(self.padding)));
    }
}

impl Stream {
    fn unpacked(&self) -> u64 {
        self.blocks.iter().fold(0, |sum, (_, unpacked)| sum.saturating_add(*unpacked))
    }
}

fn put_streams(streams: &[Stream], out: &mut Out) {
    out.put("  Streams:\n    Stream    Blocks      CompOffset    UncompOffset        CompSize      UncompSize  Ratio  Check      Padding\n");
    let mut before = 0;
    for (at, stream) in streams.iter().enumerate() {
        let (number, count, unpacked) = (at + 1, stream.blocks.len(), stream.unpacked());
        let (ratio, check) = (ratio(stream.size, unpacked), check_names(1 << stream.check));
        out.put(format!(
            "    {number:6} {count:9} {:15} {before:15} {:15} {unpacked:15}  {ratio:>5}  {check:<10} {:7}\n",
            stream.at, stream.size, stream.padding
        ));
        before += unpacked;
    }
}

fn put_blocks(streams: &[Stream], out: &mut Out) {
    if streams.iter().all(|stream| stream.blocks.is_empty()) {
        return;
    }
    out.put("  Blocks:\n    Stream     Block      CompOffset    UncompOffset       TotalSize      UncompSize  Ratio  Check\n");
    let mut before = 0;
    for (at, stream) in streams.iter().enumerate() {
        let mut place = stream.at + HEADER as u64;
        for (index, (size, unpacked)) in stream.blocks.iter().enumerate() {
            let (number, block) = (at + 1, index + 1);
            let (ratio, check) = (ratio(*size, *unpacked), check_names(1 << stream.check));
            out.put(format!(
                "    {number:6} {block:9} {place:15} {before:15} {size:15} {unpacked:15}  {ratio:>5}  {check}\n"
            ));
            place += size;
            before += unpacked;
        }
    }
}

fn line(sizes: &Sizes) -> String {
    let Sizes { streams, blocks, packed, unpacked, checks, .. } = sizes;
    format!(
        "{streams:5} {blocks:7}  {:>11}  {:>11}  {:>5}  {:<7} ",
        human(*packed),
        human(*unpacked),
        ratio(*packed, *unpacked),
        check_names(*checks)
    )
}

fn ratio(packed: u64, unpacked: u64) -> String {
    let ratio = packed as f64 / unpacked as f64;
    if unpacked == 0 || ratio > 9.999 { "---".to_owned() } else { format!("{ratio:.3}") }
}

fn check_names(checks: u32) -> String {
    let names = [(0, "None"), (1, "CRC32"), (4, "CRC64"), (10, "SHA-256")];
    let found: Vec<&str> =
        names.iter().filter(|(bit, _)| checks & 1 << bit != 0).map(|(_, name)| *name).collect();
    if found.is_empty() { "Unknown".to_owned() } else { found.join(",") }
}

fn with_bytes(bytes: u64) -> String {
    let short = human(bytes);
    if short.ends_with(" B") { short } else { format!("{short} ({} B)", bytes) }
}

/// A size as xz shows it: bytes up to 9999, else the unit in which it has at most five digits.
fn human(bytes: u64) -> String {
    if bytes < 10_000 {
        return format!("{} B", bytes);
    }
    let mut size = bytes as f64;
    let mut unit = "B";
    for next in ["KiB", "MiB", "GiB", "TiB"] {
        size /= 1024.0;
        unit = next;
        if size <= 9999.9 {
            break;
        }
    }
    format!("{size:.1} {unit}")
}

/// What `-v` says of a file that went through.
pub fn tell_sizes(file: &[u8], packed: u64, unpacked: u64) {
    let ratio = packed as f64 / unpacked as f64;
    let ratio = if unpacked == 0 || ratio > 9.999 { " > 9.999".to_owned() } else { format!(" = {ratio:.3}") };
    let name = super::shown_stream(file);
    say(format!("{name}: {} / {}{ratio}\n", human(packed), human(unpacked)));
}

/// Reads a file's indexes, from its end to its start.
fn read_streams(opened: &Opened) -> Result<Vec<Stream>, String> {
    let stat = abi::fstat(opened.0).map_err(|error| error.to_string())?;
    if stat.size == 0 {
        return Err("File is empty".to_owned());
    }
    if stat.size < 2 * HEADER as u64 {
        return Err("Too small to be a valid .xz file".to_owned());
    }
    let mut streams = Vec::new();
    let mut end = stat.size;
    while end > 0 {
        let padded = end;
        end = skip_padding(opened, end)?;
        if end == 0 {
            break;
        }
        let stream = read_stream(opened, end)?;
        end = stream.at;
        streams.push(Stream { padding: padded - stream.at - stream.size, ..stream });
    }
    streams.reverse();
    Ok(streams)
}

fn skip_padding(opened: &Opened, mut end: u64) -> Result<u64, String> {
    while end >= 4 && read_at(opened, end - 4, 4)? == [0; 4] {
        end -= 4;
    }
    Ok(end)
}

fn corrupt() -> String {
    "Compressed data is corrupt".to_owned()
}

fn read_at(opened: &Opened, at: u64, length: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match abi::pread(opened.0, &mut bytes[filled..], at + filled as u64) {
            Ok(0) => return Err("Unexpected end of input".to_owned()),
            Ok(count) => filled += count,
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(bytes)
}

/// Reads the stream that ends there.
fn read_stream(opened: &Opened, end: u64) -> Result<Stream, String> {
    let footer_at = end.checked_sub(HEADER as u64).ok_or_else(corrupt)?;
    let footer = read_at(opened, footer_at, HEADER)?;
    if &footer[10..] != b"YZ" {
        return Err("File format not recognized".to_owned());
    }
    let backward = u32::from_le_bytes([footer[4], footer[5], footer[6], footer[7]]);
    let index_size = (u64::from(backward) + 1) * 4;
    let index_at = footer_at.checked_sub(index_size).ok_or_else(corrupt)?;
    // An index has a few bytes for each block; one of many megabytes is a lie or a file we cannot list.
    if index_size > 64 << 20 {
        return Err("Memory usage limit reached".to_owned());
    }
    let index = read_at(opened, index_at, index_size as usize)?;
    let mut rest = index.strip_prefix(&[0]).ok_or_else(corrupt)?;
    let records = take_number(&mut rest)?;
    let (mut packed, mut sum, mut blocks) = (0u64, 0u64, Vec::new());
    for _ in 0..records {
        let unpadded = take_number(&mut rest)?;
        let unpacked = take_number(&mut rest)?;
        let padded = unpadded.checked_next_multiple_of(4).ok_or_else(corrupt)?;
        packed = packed.checked_add(padded).ok_or_else(corrupt)?;
        sum = sum.checked_add(unpacked).ok_or_else(corrupt)?;
        blocks.push((padded, unpacked));
    }
    let start =
        index_at.checked_sub(packed).and_then(|at| at.checked_sub(HEADER as u64)).ok_or_else(corrupt)?;
    if !read_at(opened, start, HEADER)?.starts_with(b"\xfd7zXZ\0") {
        return Err(corrupt());
    }
    Ok(Stream { at: start, size: end - start, padding: 0, check: u32::from(footer[9] & 15), blocks })
}

/// A number of seven bits a byte.
fn take_number(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or_else(corrupt)?;
        *rest = after;
        number |= u64::from(byte & 127) << shift;
        if byte & 128 == 0 {
            return Ok(number);
        }
    }
    Err(corrupt())
}
