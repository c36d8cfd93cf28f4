//! The 512 bytes that precede every file in an archive.

use super::{TarError, damaged};

pub(crate) const BLOCK: usize = 512;

/// What an entry is, by its type byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    HardLink,
    Symlink,
    CharDevice,
    BlockDevice,
    Dir,
    Fifo,
    /// A file with holes, in GNU's format.
    Sparse,
    /// The next entry's name, if it is too long for its header, in GNU's format.
    LongName,
    LongLink,
    /// Records about the next entry, or about all that follow, in POSIX's format.
    Pax,
    PaxGlobal,
    Other(u8),
}

const KINDS: [(u8, Kind); 12] = [
    (b'0', Kind::File),
    (b'1', Kind::HardLink),
    (b'2', Kind::Symlink),
    (b'3', Kind::CharDevice),
    (b'4', Kind::BlockDevice),
    (b'5', Kind::Dir),
    (b'6', Kind::Fifo),
    (b'S', Kind::Sparse),
    (b'L', Kind::LongName),
    (b'K', Kind::LongLink),
    (b'x', Kind::Pax),
    (b'g', Kind::PaxGlobal),
];

impl Kind {
    fn from_byte(byte: u8) -> Kind {
        match byte {
            0 | b'7' => Kind::File, // the oldest archives, and "contiguous" files
            _ => KINDS.iter().find(|(known, _)| *known == byte).map_or(Kind::Other(byte), |(_, kind)| *kind),
        }
    }

    fn byte(self) -> u8 {
        match self {
            Kind::Other(byte) => byte,
            _ => KINDS.iter().find(|(_, kind)| *kind == self).map_or(b'0', |(byte, _)| *byte),
        }
    }
}

/// A header's fields. Names that are too long are cut here and given elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) uid: u64,
    pub(crate) gid: u64,
    pub(crate) size: u64,
    /// Whole seconds.
    pub(crate) mtime: i64,
}

pub(crate) const NAME_FIELD: usize = 100;
const OCTAL_12: u64 = 0o77_777_777_777;

impl Header {
    /// Reads a header block; `None` if it is all zeros, the end mark.
    pub(crate) fn parse(block: &[u8; BLOCK]) -> Result<Option<Header>, TarError> {
        if block.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        if number(&block[148..156])? != i128::from(checksum(block)) {
            return damaged("a header's checksum is wrong");
        }
        let kind = Kind::from_byte(block[156]);
        let mut name = text(&block[..NAME_FIELD]).to_vec();
        // POSIX continues long names at the front; GNU, whose magic ends in spaces, has other things there.
        if &block[257..263] == b"ustar\0" {
            let prefix = text(&block[345..500]);
            if !prefix.is_empty() {
                name = [prefix, b"/", &name[..]].concat();
            }
        }
        Ok(Some(Header {
            kind,
            name,
            link: text(&block[157..257]).to_vec(),
            mode: (unsigned(&block[100..108])? & 0o7777) as u32,
            uid: unsigned(&block[108..116])?,
            gid: unsigned(&block[116..124])?,
            size: unsigned(&block[124..136])?,
            mtime: i64::try_from(number(&block[136..148])?).or_else(|_| damaged("a time is out of range"))?,
        }))
    }

    /// Writes the header, with `gnu` in GNU's dialect.
    pub(crate) fn block(&self, gnu: bool) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        put_text(&mut block[..NAME_FIELD], &self.name);
        put_number(&mut block[100..108], u64::from(self.mode));
        put_number(&mut block[108..116], self.uid);
        put_number(&mut block[116..124], self.gid);
        put_number(&mut block[124..136], self.size);
        put_time(&mut block[136..148], self.mtime);
        block[156] = self.kind.byte();
        put_text(&mut block[157..257], &self.link);
        block[257..265].copy_from_slice(if gnu { b"ustar  \0" } else { b"ustar\x0000" });
        block
    }
}

/// Sets the checksum, the last step for a header.
pub(crate) fn seal(block: &mut [u8; BLOCK]) {
    let sum = checksum(block);
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// The sum of all bytes, those of the sum itself taken as spaces.
fn checksum(block: &[u8; BLOCK]) -> u32 {
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| u32::from(*byte)).sum::<u32>();
    sum(&block[..148]) + 8 * u32::from(b' ') + sum(&block[156..])
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or(&[])
}

fn put_text(field: &mut [u8], text: &[u8]) {
    let len = text.len().min(field.len());
    field[..len].copy_from_slice(&text[..len]);
}

pub(crate) fn unsigned(field: &[u8]) -> Result<u64, TarError> {
    u64::try_from(number(field)?).or_else(|_| damaged("a number is out of range"))
}

/// Reads octal digits or, with the top bit of the first byte set, big-endian binary, GNU's format for large numbers.
fn number(field: &[u8]) -> Result<i128, TarError> {
    if field[0] & 0x80 != 0 {
        let negative = field[0] & 0x40 != 0;
        let start = if negative { -1 } else { i128::from(field[0] & 0x3f) };
        // Twelve bytes at most: this cannot overflow.
        return Ok(field[1..].iter().fold(start, |value, byte| value << 8 | i128::from(*byte)));
    }
    let digits = text(field).trim_ascii();
    let mut value = 0;
    for digit in digits {
        match digit {
            b'0'..=b'7' => value = value * 8 + i128::from(digit - b'0'),
            _ => return damaged("a number is not a number"),
        }
    }
    Ok(value)
}

pub(crate) fn put_number(field: &mut [u8], value: u64) {
    let width = field.len() - 1;
    let octal = format!("{value:0width$o}");
    if octal.len() <= width {
        field[..width].copy_from_slice(octal.as_bytes());
    } else {
        let len = field.len();
        field.fill(0);
        field[0] = 0x80;
        let bytes = value.to_be_bytes();
        let take = bytes.len().min(len - 1);
        field[len - take..].copy_from_slice(&bytes[bytes.len() - take..]);
    }
}

fn put_time(field: &mut [u8], seconds: i64) {
    match u64::try_from(seconds) {
        Ok(seconds) if seconds <= OCTAL_12 => put_number(field, seconds),
        _ => {
            let len = field.len();
            field.fill(if seconds < 0 { 0xff } else { 0 });
            field[0] |= 0x80;
            field[len - 8..].copy_from_slice(&seconds.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_writing_and_reading() {
        for (size, mtime) in [(0, 0), (8 << 30, -5), (u64::MAX >> 1, i64::MAX), (1, i64::MIN)] {
            for gnu in [true, false] {
                let header = Header {
                    kind: Kind::File,
                    name: vec![b'n'; 100],
                    link: b"target".to_vec(),
                    mode: 0o4755,
                    uid: 1000,
                    gid: 4_000_000_000,
                    size,
                    mtime,
                };
                let mut block = header.block(gnu);
                seal(&mut block);
                assert_eq!(Header::parse(&block).unwrap(), Some(header));
                block[5] ^= 1;
                assert!(Header::parse(&block).is_err(), "a changed header is noticed");
            }
        }
    }
}
