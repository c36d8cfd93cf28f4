//! What an archive has: `unzip -l`, `unzip -v` and `zipinfo`.

use super::format::{BZIP2, DEFLATED, Directory, Entry, STORED, ZSTD};
use super::percent;
use toolkit::clock::Clock;
use toolkit::out::Out;

/// The name of a method, in the long list and in zipinfo's.
fn method(entry: &Entry) -> (String, String) {
    let level = b"NXFS"[usize::from(entry.flags >> 1 & 3)];
    match entry.method {
        STORED => ("Stored".to_owned(), "stor".to_owned()),
        DEFLATED => (format!("Defl:{}", char::from(level)), format!("def{}", char::from(level))),
        BZIP2 => ("BZip2".to_owned(), "bzp2".to_owned()),
        ZSTD => ("Unk:093".to_owned(), "u093".to_owned()),
        other => (format!("Unk:{other:03}"), format!("u{other:03}")),
    }
}

pub fn shown(name: &[u8]) -> String {
    let text = String::from_utf8_lossy(name);
    // Nothing in a name may reach the terminal as an order.
    text.chars()
        .map(|char| {
            if char.is_control() {
                format!("^{}", char::from((char as u8).wrapping_add(64) & 0x7f))
            } else {
                char.to_string()
            }
        })
        .collect()
}

/// `unzip -l`.
pub fn short(out: &mut Out, entries: &[&Entry], quiet: u32) {
    let clock = Clock::new();
    if quiet < 2 {
        out.put("  Length      Date    Time    Name\n---------  ---------- -----   ----\n");
    }
    for entry in entries {
        let time = clock.format(entry.mtime.saturating_mul(1_000_000_000), "%Y-%m-%d %H:%M");
        out.put(format!("{:9}  {time}   {}\n", entry.unpacked, shown(&entry.name)));
    }
    if quiet < 2 {
        let total: u64 = entries.iter().map(|entry| entry.unpacked).fold(0, u64::saturating_add);
        let plural = if entries.len() == 1 { "" } else { "s" };
        out.put("---------                     -------\n");
        out.put(format!("{total:9}                     {} file{plural}\n", entries.len()));
    }
}

/// `unzip -v`.
pub fn long(out: &mut Out, entries: &[&Entry], quiet: u32) {
    let clock = Clock::new();
    if quiet < 2 {
        out.put(" Length   Method    Size  Cmpr    Date    Time   CRC-32   Name\n");
        out.put("--------  ------  ------- ---- ---------- ----- --------  ----\n");
    }
    let (mut packed, mut unpacked) = (0u64, 0u64);
    for entry in entries {
        let time = clock.format(entry.mtime.saturating_mul(1_000_000_000), "%Y-%m-%d %H:%M");
        out.put(format!(
            "{:8}  {:<6}{:9} {:3}% {time} {:08x}  {}\n",
            entry.unpacked,
            method(entry).0,
            entry.packed,
            percent(entry.unpacked, entry.packed),
            entry.crc,
            shown(&entry.name)
        ));
        (packed, unpacked) = (packed.saturating_add(entry.packed), unpacked.saturating_add(entry.unpacked));
    }
    if quiet < 2 {
        let plural = if entries.len() == 1 { "" } else { "s" };
        out.put("--------          -------  ---                            -------\n");
        out.put(format!(
            "{unpacked:8}         {packed:8} {:3}%                            {} file{plural}\n",
            percent(unpacked, packed),
            entries.len()
        ));
    }
}

/// zipinfo's list: a line for each file like `ls -l`; when only some files were asked for, nothing around them.
pub fn info(
    out: &mut Out,
    archive: &[u8],
    directory: &Directory,
    entries: &[&Entry],
    (names_only, some): (bool, bool),
) {
    if names_only {
        entries.iter().for_each(|entry| out.put(format!("{}\n", shown(&entry.name))));
        return;
    }
    let clock = Clock::new();
    if !some {
        out.put(format!("Archive:  {}\n", String::from_utf8_lossy(archive)));
        out.put(format!(
            "Zip file size: {} bytes, number of entries: {}\n",
            directory.size,
            directory.entries.len()
        ));
    }
    let (mut packed, mut unpacked) = (0u64, 0u64);
    for entry in entries {
        let mode = entry.mode.unwrap_or(if entry.is_dir() { 0o040_755 } else { 0o100_644 });
        let (version, system) = (entry.made_by & 0xff, if entry.made_by >> 8 == 3 { "unx" } else { "fat" });
        let text = match (entry.is_text, entry.is_encrypted()) {
            (true, false) => 't',
            (true, true) => 'T',
            (false, false) => 'b',
            (false, true) => 'B',
        };
        let extra = match (entry.has_extra, entry.flags & 8 != 0) {
            (true, false) => 'x',
            (true, true) => 'X',
            (false, true) => 'l',
            (false, false) => '-',
        };
        let time = clock.format(entry.mtime.saturating_mul(1_000_000_000), "%y-%b-%d %H:%M");
        out.put(format!(
            "{}  {}.{} {system} {:8} {text}{extra} {} {time} {}\n",
            toolkit::mode::letters(mode),
            version / 10,
            version % 10,
            entry.unpacked,
            method(entry).1,
            shown(&entry.name)
        ));
        (packed, unpacked) = (packed.saturating_add(entry.packed), unpacked.saturating_add(entry.unpacked));
    }
    if some {
        return;
    }
    let plural = if entries.len() == 1 { "" } else { "s" };
    let saved = if unpacked == 0 { 0.0 } else { 100.0 * (unpacked as f64 - packed as f64) / unpacked as f64 };
    out.put(format!(
        "{} file{plural}, {unpacked} bytes uncompressed, {packed} bytes compressed:  {saved:.1}%\n",
        entries.len()
    ));
}
