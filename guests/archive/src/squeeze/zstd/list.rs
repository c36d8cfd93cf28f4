//! `zstd --list`: what the headers of frames say of a file.

use super::super::{Opened, say, shown};
use crate::stream::Input;
use std::io;
use toolkit::out::Out;
use wardian_abi as abi;

#[derive(Default, Clone)]
struct Sizes {
    /// All of them, also those that are skipped.
    frames: u64,
    skipped: u64,
    packed: u64,
    /// `None` when a frame does not say.
    unpacked: Option<u64>,
    checked: bool,
    window: u64,
}

enum Flaw {
    Foreign,
    Cut,
    Unreadable(io::Error),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Flaw {
        Flaw::Unreadable(error)
    }
}

/// Lists the files; answers the exit code.
pub fn all(files: &[Vec<u8>], verbose: bool) -> i32 {
    if files.iter().any(|file| file == b"-") {
        say("zstd: --list does not support reading from standard input \n");
        return 1;
    }
    let mut out = Out::new("zstd");
    if !verbose {
        out.put("Frames  Skips  Compressed  Uncompressed  Ratio  Check  Filename\n");
    }
    let mut total = Sizes { unpacked: Some(0), checked: true, ..Sizes::default() };
    let (mut code, mut listed) = (0, 0);
    for file in files {
        match sizes_of(file) {
            Ok(sizes) if verbose => out.put(at_length(file, &sizes)),
            Ok(sizes) => {
                out.put(line(&sizes));
                out.put(format!("{}\n", shown(file)));
                listed += 1;
                total.frames += sizes.frames;
                total.skipped += sizes.skipped;
                total.packed += sizes.packed;
                total.unpacked = total.unpacked.zip(sizes.unpacked).map(|(sum, size)| sum + size);
                total.checked &= sizes.checked;
            }
            Err(words) => {
                out.flush();
                say(words);
                code = 1;
            }
        }
    }
    if listed > 1 {
        out.put("----------------------------------------------------------------- \n");
        out.put(line(&total));
        out.put(format!("{listed} files\n"));
    }
    code
}

fn line(sizes: &Sizes) -> String {
    let Sizes { frames, skipped, packed, unpacked, checked, .. } = sizes;
    let ((packed_number, packed_unit), check) = (human(*packed), if *checked { "XXH64" } else { "None" });
    match unpacked {
        Some(unpacked) => {
            let (number, unit) = human(*unpacked);
            let ratio = if *packed == 0 { 0.0 } else { *unpacked as f64 / *packed as f64 };
            format!(
                "{frames:6}  {skipped:5}  {packed_number:>6}{packed_unit:>4}  {number:>8}{unit:>4}  {ratio:5.3}  {check:>5}  "
            )
        }
        None => format!(
            "{frames:6}  {skipped:5}  {packed_number:>6}{packed_unit:>4}                       {check:>5}  "
        ),
    }
}

fn at_length(file: &[u8], sizes: &Sizes) -> String {
    let shown_size = |bytes: u64| {
        let (number, unit) = human(bytes);
        format!("{number}{unit} ({bytes} B)")
    };
    let mut text = format!("{} \n# Zstandard Frames: {}\n", shown(file), sizes.frames - sizes.skipped);
    if sizes.skipped > 0 {
        text += &format!("# Skippable Frames: {}\n", sizes.skipped);
    }
    text += &format!("DictID: 0\nWindow Size: {}\n", shown_size(sizes.window));
    text += &format!("Compressed Size: {}\n", shown_size(sizes.packed));
    if let Some(unpacked) = sizes.unpacked {
        text += &format!("Decompressed Size: {}\n", shown_size(unpacked));
        text += &format!("Ratio: {:.4}\n", unpacked as f64 / sizes.packed.max(1) as f64);
    }
    text + if sizes.checked { "Check: XXH64\n\n" } else { "Check: None\n\n" }
}

/// A size and its unit: three digits of it that matter.
pub fn human(bytes: u64) -> (String, &'static str) {
    let units = [" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"];
    let power = (0..units.len()).rev().find(|power| bytes >> (10 * power) != 0).unwrap_or(0);
    let number = bytes as f64 / (1u64 << (10 * power)) as f64;
    let digits = match number {
        _ if power == 0 => 0,
        number if number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        _ => 2,
    };
    (format!("{number:.digits$}"), units[power])
}

fn sizes_of(file: &[u8]) -> Result<Sizes, String> {
    let name = shown(file);
    let opened = Opened::read(file).map_err(|_| format!("Error : {name} is not a file \n"))?;
    let stat = abi::fstat(opened.0).map_err(|error| format!("zstd: {name}: {error} \n"))?;
    let mut input = Input::of(opened.0);
    let mut sizes = Sizes { unpacked: Some(0), packed: stat.size, ..Sizes::default() };
    loop {
        match take_frame(&mut input, &mut sizes) {
            Ok(true) => {}
            Ok(false) => return Ok(sizes),
            Err(Flaw::Foreign) => return Err(format!("File \"{name}\" not compressed by zstd \n")),
            Err(Flaw::Cut) => return Err("Error: reached end of file with incomplete frame \n".to_owned()),
            Err(Flaw::Unreadable(error)) => {
                return Err(format!("zstd: {name}: {} \n", abi::Errno::from(error)));
            }
        }
    }
}

/// Takes one frame, its content unread.
fn take_frame(input: &mut Input, sizes: &mut Sizes) -> Result<bool, Flaw> {
    let start = input.peek(18)?;
    if start.is_empty() && sizes.frames > 0 {
        return Ok(false);
    }
    if start.len() < 5 {
        return Err(Flaw::Cut);
    }
    if let [0x50..=0x5f, 0x2a, 0x4d, 0x18, size @ ..] = start {
        let length = size.first_chunk().map(|size| u32::from_le_bytes(*size)).ok_or(Flaw::Cut)?;
        sizes.skipped += 1;
        sizes.frames += 1;
        return skip(input, 8 + u64::from(length)).map(|()| true);
    }
    if !start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Err(Flaw::Foreign);
    }
    let descriptor = start[4];
    let is_single = descriptor & 0x20 != 0;
    let checked = descriptor & 4 != 0;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size_length = match descriptor >> 6 {
        0 => usize::from(is_single),
        power => 1 << power,
    };
    let size_at = 5 + usize::from(!is_single) + dictionary;
    let bytes = start.get(size_at..size_at + size_length).ok_or(Flaw::Cut)?;
    let size = bytes.iter().rev().fold(0u64, |size, byte| size << 8 | u64::from(*byte));
    let size = if size_length == 2 { size + 256 } else { size };
    sizes.window = match is_single {
        true => size,
        false => {
            let (exponent, mantissa) = (start[5] >> 3, start[5] & 7);
            let base = 1u64 << (10 + exponent);
            base + base / 8 * u64::from(mantissa)
        }
    };
    let size = (size_length > 0).then_some(size);
    sizes.unpacked = sizes.unpacked.zip(size).map(|(sum, size)| sum.saturating_add(size));
    sizes.frames += 1;
    sizes.checked = checked;
    skip(input, (size_at + size_length) as u64)?;
    skip_blocks(input)?;
    skip(input, if checked { 4 } else { 0 })?;
    Ok(true)
}

fn skip_blocks(input: &mut Input) -> Result<(), Flaw> {
    loop {
        let header = input.peek(3)?;
        let [a, b, c] = *header.first_chunk::<3>().ok_or(Flaw::Cut)?;
        let header = u32::from_le_bytes([a, b, c, 0]);
        let is_repeated_byte = header >> 1 & 3 == 1;
        let length = if is_repeated_byte { 1 } else { header >> 3 };
        skip(input, 3 + u64::from(length))?;
        if header & 1 == 1 {
            return Ok(());
        }
    }
}

fn skip(input: &mut Input, mut count: u64) -> Result<(), Flaw> {
    while count > 0 {
        let ready = input.fill()?.len() as u64;
        if ready == 0 {
            return Err(Flaw::Cut);
        }
        let step = ready.min(count);
        input.consume(step as usize);
        count -= step;
    }
    Ok(())
}
