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
    /// The kinds of checks in use, one bit for each.
    checks: u32,
}

const HEADER: usize = 12;

impl Totals {
    /// Lists a file. The error is what is wrong with it.
    pub fn list(&mut self, file: &[u8], opened: &Opened, count: usize, verbose: bool) -> Result<(), String> {
        let sizes = read_sizes(opened)?;
        let mut out = Out::new("xz");
        if verbose {
            if self.files > 0 {
                out.put("\n");
            }
            out.put(format!("{} ({}/{count})\n", shown(file), self.files + 1));
            out.put(format!(
                "  Streams:           {}\n  Blocks:            {}\n",
                sizes.streams, sizes.blocks
            ));
            out.put(format!("  Compressed size:   {}\n", with_bytes(sizes.packed)));
            out.put(format!("  Uncompressed size: {}\n", with_bytes(sizes.unpacked)));
            out.put(format!("  Ratio:             {}\n", ratio(sizes.packed, sizes.unpacked)));
            out.put(format!("  Check:             {}\n", check_names(sizes.checks)));
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
        self.sum.checks |= sizes.checks;
        Ok(())
    }

    pub fn print(&self, verbose: bool) {
        if self.files == 0 || verbose {
            return;
        }
        let mut out = Out::new("xz");
        out.put("-".repeat(79) + "\n");
        out.put(line(&self.sum));
        out.put(format!("{} files\n", self.files));
    }
}

fn line(sizes: &Sizes) -> String {
    let Sizes { streams, blocks, packed, unpacked, checks } = sizes;
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
fn read_sizes(opened: &Opened) -> Result<Sizes, String> {
    let stat = abi::fstat(opened.0).map_err(|error| error.to_string())?;
    if stat.size == 0 {
        return Err("File is empty".to_owned());
    }
    if stat.size < 2 * HEADER as u64 {
        return Err("Too small to be a valid .xz file".to_owned());
    }
    let mut sizes = Sizes { packed: stat.size, ..Sizes::default() };
    let mut end = stat.size;
    while end > 0 {
        end = skip_padding(opened, end)?;
        if end == 0 {
            break;
        }
        end = read_stream(opened, end, &mut sizes)?;
    }
    Ok(sizes)
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

/// Reads the stream that ends there; answers where it starts.
fn read_stream(opened: &Opened, end: u64, sizes: &mut Sizes) -> Result<u64, String> {
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
    let mut packed = 0u64;
    for _ in 0..records {
        let unpadded = take_number(&mut rest)?;
        let unpacked = take_number(&mut rest)?;
        let padded = unpadded.checked_next_multiple_of(4).ok_or_else(corrupt)?;
        packed = packed.checked_add(padded).ok_or_else(corrupt)?;
        sizes.unpacked = sizes.unpacked.checked_add(unpacked).ok_or_else(corrupt)?;
    }
    let start =
        index_at.checked_sub(packed).and_then(|at| at.checked_sub(HEADER as u64)).ok_or_else(corrupt)?;
    if !read_at(opened, start, HEADER)?.starts_with(b"\xfd7zXZ\0") {
        return Err(corrupt());
    }
    sizes.streams += 1;
    sizes.blocks += records;
    sizes.checks |= 1 << (footer[9] & 15);
    Ok(start)
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
