//! Writing zip archives: as much of the format as a wheel needs, so that no crate for it shares features with wasmtime's.
//!
//! Each file is a local header and its deflated content; at the end comes a directory of them all, and a record that
//! says where the directory is. Times are always the earliest there is, so that the same files make the same archive.

use anyhow::{Context, Result};
use miniz_oxide::deflate::compress_to_vec;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DIRECTORY_HEADER: u32 = 0x0201_4b50;
const DIRECTORY_END: u32 = 0x0605_4b50;
/// Version 2.0 of the format, the first with deflate; in a directory also: modes are Unix's.
const VERSION: u16 = 20;
const MADE_BY_UNIX: u16 = 3 << 8 | VERSION;
const NAMES_ARE_UTF8: u16 = 1 << 11;
const DEFLATED: u16 = 8;
/// The first of January 1980, midnight.
const EARLIEST: [u16; 2] = [0, 1 << 5 | 1];
const REGULAR_FILE: u32 = 0o100_000;
const LEVEL: u8 = 6;

/// An archive that is being written.
#[derive(Default)]
pub struct Zip {
    files: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl Zip {
    /// Adds a file with its permissions.
    pub fn add(&mut self, name: &str, content: &[u8], mode: u32) -> Result<()> {
        let packed = compress_to_vec(content, LEVEL);
        let offset = u32::try_from(self.files.len()).context("more than 4 GiB in one archive")?;
        // What the file's own header and the directory say alike.
        let mut about = Vec::new();
        put16(&mut about, &[VERSION, NAMES_ARE_UTF8, DEFLATED, EARLIEST[0], EARLIEST[1]]);
        put32(&mut about, &[crc32(content), u32::try_from(packed.len())?, u32::try_from(content.len())?]);
        put16(&mut about, &[u16::try_from(name.len())?, 0]);

        put32(&mut self.files, &[LOCAL_HEADER]);
        self.files.extend([about.as_slice(), name.as_bytes(), &packed].concat());

        put32(&mut self.directory, &[DIRECTORY_HEADER]);
        put16(&mut self.directory, &[MADE_BY_UNIX]);
        self.directory.extend(&about);
        // No comment, the first disk, no attributes of DOS's.
        put16(&mut self.directory, &[0, 0, 0]);
        put32(&mut self.directory, &[(REGULAR_FILE | mode) << 16, offset]);
        self.directory.extend(name.as_bytes());
        self.count = self.count.checked_add(1).context("too many files for one archive")?;
        Ok(())
    }

    /// The whole archive.
    pub fn finish(mut self) -> Result<Vec<u8>> {
        let offset = u32::try_from(self.files.len()).context("more than 4 GiB in one archive")?;
        let size = u32::try_from(self.directory.len())?;
        self.files.append(&mut self.directory);
        put32(&mut self.files, &[DIRECTORY_END]);
        put16(&mut self.files, &[0, 0, self.count, self.count]);
        put32(&mut self.files, &[size, offset]);
        put16(&mut self.files, &[0]);
        Ok(self.files)
    }
}

fn put16(bytes: &mut Vec<u8>, numbers: &[u16]) {
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
}

fn put32(bytes: &mut Vec<u8>, numbers: &[u32]) {
    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
}

/// The checksum of zip, PNG and Ethernet, by a table of what each byte does to it.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |value: u32, _| if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
    let table: Vec<u32> = (0..256).map(|byte| (0..8).fold(byte, step)).collect();
    let add = |crc: u32, byte: &u8| crc >> 8 ^ table[(crc as u8 ^ byte) as usize];
    !bytes.iter().fold(!0, add)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn python_reads_what_was_written() {
        let mut zip = Zip::default();
        zip.add("a/text", "grün\n".repeat(1000).as_bytes(), 0o644).expect("a file");
        zip.add("program", b"", 0o755).expect("an empty file");
        let path = std::env::temp_dir().join(format!("xtask-{}.zip", std::process::id()));
        fs::write(&path, zip.finish().expect("an archive")).expect("a file");
        let script = "
import sys, zipfile
archive = zipfile.ZipFile(sys.argv[1])
print(archive.testzip(), archive.read('a/text') == 'grün\\n'.encode() * 1000, archive.read('program'))
print([(entry.filename, oct(entry.external_attr >> 16), entry.date_time[0]) for entry in archive.infolist()])
";
        let said = crate::output(Command::new("python3").args(["-c", script]).arg(&path));
        let _ = fs::remove_file(&path);
        assert_eq!(
            String::from_utf8(said.expect("python reads it")).expect("text"),
            "None True b''\n[('a/text', '0o100644', 1980), ('program', '0o100755', 1980)]\n"
        );
    }
}
