//! The 512 bytes before each member: numbers in octal, names cut to fit, a checksum.

/// The unit of an archive.
pub const BLOCK: usize = 512;

/// One block.
pub type Block = [u8; BLOCK];

/// What a member is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    File,
    HardLink,
    Symlink,
    Character,
    BlockDevice,
    Directory,
    Fifo,
    /// GNU's file with holes.
    Sparse,
    /// A name for the archive, not a file.
    VolumeLabel,
    Unknown(u8),
}

/// A member, whatever the format it was written in.
#[derive(Clone, Debug)]
pub struct Member {
    pub name: Vec<u8>,
    pub kind: Kind,
    pub link: Vec<u8>,
    pub mode: u32,
    pub uid: u64,
    pub gid: u64,
    pub owner: Vec<u8>,
    pub group: Vec<u8>,
    /// The size of the file; in the archive it may take less.
    pub size: u64,
    /// Nanoseconds since 1970.
    pub mtime: i64,
    pub device: (u64, u64),
    /// The parts of a sparse file that are in the archive: where, and how long.
    pub map: Option<Vec<(u64, u64)>>,
    /// How many bytes follow the header.
    pub stored: u64,
}

impl Member {
    pub fn named(name: &[u8], kind: Kind) -> Member {
        Member {
            name: name.to_vec(),
            kind,
            link: Vec::new(),
            mode: 0,
            uid: 0,
            gid: 0,
            owner: Vec::new(),
            group: Vec::new(),
            size: 0,
            mtime: 0,
            device: (0, 0),
            map: None,
            stored: 0,
        }
    }
}

/// The format of an archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    V7,
    Ustar,
    Gnu,
    Pax,
}

/// A header's fields, by place and length.
pub mod field {
    use std::ops::Range;

    pub const NAME: Range<usize> = 0..100;
    pub const MODE: Range<usize> = 100..108;
    pub const UID: Range<usize> = 108..116;
    pub const GID: Range<usize> = 116..124;
    pub const SIZE: Range<usize> = 124..136;
    pub const MTIME: Range<usize> = 136..148;
    pub const CHECKSUM: Range<usize> = 148..156;
    pub const TYPE: usize = 156;
    pub const LINK: Range<usize> = 157..257;
    pub const MAGIC: Range<usize> = 257..265;
    pub const OWNER: Range<usize> = 265..297;
    pub const GROUP: Range<usize> = 297..329;
    pub const MAJOR: Range<usize> = 329..337;
    pub const MINOR: Range<usize> = 337..345;
    pub const PREFIX: Range<usize> = 345..500;
    /// Of GNU's format, instead of the prefix: four pieces of a sparse file, whether more follow, its real size.
    pub const SPARSE: Range<usize> = 386..482;
    pub const SPARSE_MORE: usize = 482;
    pub const REAL_SIZE: Range<usize> = 483..495;
}

/// Bytes up to the first NUL.
pub fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// A number: octal digits, or with the first bit set all the other bits.
pub fn number(bytes: &[u8]) -> Option<i64> {
    let first = *bytes.first()?;
    if first & 0x80 != 0 {
        // Negative when all of the first byte is set.
        let start: i128 = if first == 0xff { -1 } else { i128::from(first & 0x7f) };
        let mut value = start;
        for byte in &bytes[1..] {
            value = value.checked_mul(256)?.checked_add(i128::from(*byte))?;
        }
        return i64::try_from(value).ok();
    }
    let digits = text(bytes).trim_ascii();
    if digits.is_empty() {
        return Some(0);
    }
    digits.iter().try_fold(0i64, |value, digit| match digit {
        b'0'..=b'7' => value.checked_mul(8)?.checked_add(i64::from(digit - b'0')),
        _ => None,
    })
}

/// Writes a number in octal, with a NUL after it; in GNU's other way when it does not fit.
pub fn put_number(field: &mut [u8], value: i64) {
    let digits = field.len() - 1;
    let text = format!("{value:0digits$o}");
    if value >= 0 && text.len() <= digits {
        field[..digits].copy_from_slice(text.as_bytes());
        field[digits] = 0;
        return;
    }
    let bytes = i128::from(value).to_be_bytes();
    let length = field.len();
    field.copy_from_slice(&bytes[16 - length..]);
    field[0] = if value < 0 { 0xff } else { 0x80 };
}

/// Whether a number fits into a field of octal digits.
pub fn fits(value: u64, length: usize) -> bool {
    value >> (3 * (length - 1)) == 0
}

/// The sum of all bytes, those of the checksum taken for blanks.
fn sum(block: &Block) -> (i64, i64) {
    let byte = |at: usize| if field::CHECKSUM.contains(&at) { b' ' } else { block[at] };
    let unsigned = (0..BLOCK).map(|at| i64::from(byte(at))).sum();
    // Some old programs summed up signed bytes.
    let signed = (0..BLOCK).map(|at| i64::from(byte(at) as i8)).sum();
    (unsigned, signed)
}

/// Whether a block is a header.
pub fn is_valid(block: &Block) -> bool {
    let (unsigned, signed) = sum(block);
    number(&block[field::CHECKSUM]).is_some_and(|stated| stated == unsigned || stated == signed)
}

/// Puts the checksum into a header.
pub fn seal(block: &mut Block) {
    let (unsigned, _) = sum(block);
    let text = format!("{unsigned:06o}\0 ");
    block[field::CHECKSUM].copy_from_slice(text.as_bytes());
}

/// Reads a header alone; names and sizes that stand elsewhere come later. `None` when a number is nonsense.
pub fn parse(block: &Block) -> Option<Member> {
    let magic = &block[field::MAGIC];
    let is_ustar = magic.starts_with(b"ustar\0");
    let is_gnu = magic == b"ustar  \0";
    let mut name = text(&block[field::NAME]).to_vec();
    if is_ustar {
        let prefix = text(&block[field::PREFIX]);
        if !prefix.is_empty() {
            name = [prefix, b"/", &name].concat();
        }
    }
    let kind = match block[field::TYPE] {
        b'0' | 0 | b'7' if name.ends_with(b"/") => Kind::Directory,
        b'0' | 0 | b'7' => Kind::File,
        b'1' => Kind::HardLink,
        b'2' => Kind::Symlink,
        b'3' => Kind::Character,
        b'4' => Kind::BlockDevice,
        b'5' | b'D' => Kind::Directory,
        b'6' => Kind::Fifo,
        b'S' => Kind::Sparse,
        b'V' => Kind::VolumeLabel,
        other => Kind::Unknown(other),
    };
    let size = u64::try_from(number(&block[field::SIZE])?).ok()?;
    let unsigned = |range: std::ops::Range<usize>| number(&block[range]).and_then(|n| u64::try_from(n).ok());
    let has_names = is_ustar || is_gnu;
    let name_in =
        |range: std::ops::Range<usize>| if has_names { text(&block[range]).to_vec() } else { Vec::new() };
    Some(Member {
        name,
        kind,
        link: text(&block[field::LINK]).to_vec(),
        mode: (number(&block[field::MODE]).unwrap_or(0) & 0o7777) as u32,
        uid: unsigned(field::UID).unwrap_or(0),
        gid: unsigned(field::GID).unwrap_or(0),
        owner: name_in(field::OWNER),
        group: name_in(field::GROUP),
        size,
        mtime: number(&block[field::MTIME]).unwrap_or(0).saturating_mul(1_000_000_000),
        device: (unsigned(field::MAJOR).unwrap_or(0), unsigned(field::MINOR).unwrap_or(0)),
        map: None,
        // Links and directories have nothing after them, whatever they say.
        stored: match kind {
            Kind::HardLink | Kind::Symlink | Kind::Character | Kind::BlockDevice | Kind::Fifo => 0,
            Kind::Directory if block[field::TYPE] == b'5' => 0,
            _ => size,
        },
    })
}

/// The letter of a kind.
pub fn type_of(kind: Kind) -> u8 {
    match kind {
        Kind::File => b'0',
        Kind::HardLink => b'1',
        Kind::Symlink => b'2',
        Kind::Character => b'3',
        Kind::BlockDevice => b'4',
        Kind::Directory => b'5',
        Kind::Fifo => b'6',
        Kind::Sparse => b'S',
        Kind::VolumeLabel => b'V',
        Kind::Unknown(letter) => letter,
    }
}

/// Writes a header with what fits into it.
pub fn compose(member: &Member, format: Format) -> Block {
    let mut block = [0; BLOCK];
    let seconds = member.mtime.div_euclid(1_000_000_000);
    // Where larger numbers stand elsewhere, or cannot be said at all, the field has what it can.
    let number = |value: u64, length: usize| match format {
        Format::Gnu => i64::try_from(value).unwrap_or(i64::MAX),
        _ if fits(value, length) => value as i64,
        _ => 0,
    };
    put_text(&mut block[field::NAME], &member.name);
    put_number(&mut block[field::MODE], i64::from(member.mode & 0o7777));
    put_number(&mut block[field::UID], number(member.uid, 8));
    put_number(&mut block[field::GID], number(member.gid, 8));
    put_number(&mut block[field::SIZE], number(member.stored, 12));
    let time = if format == Format::Gnu || seconds >= 0 && fits(seconds as u64, 12) { seconds } else { 0 };
    put_number(&mut block[field::MTIME], time);
    block[field::TYPE] = type_of(member.kind);
    put_text(&mut block[field::LINK], &member.link);
    if format == Format::V7 {
        if member.kind == Kind::File {
            block[field::TYPE] = 0;
        }
    } else {
        block[field::MAGIC].copy_from_slice(if format == Format::Gnu {
            b"ustar  \0"
        } else {
            b"ustar\x0000"
        });
        // Room is left for the NUL that old programs look for.
        put_text(&mut block[field::OWNER][..31], &member.owner);
        put_text(&mut block[field::GROUP][..31], &member.group);
    }
    let is_device = matches!(member.kind, Kind::Character | Kind::BlockDevice);
    if format != Format::Gnu || is_device {
        put_number(&mut block[field::MAJOR], number(member.device.0, 8));
        put_number(&mut block[field::MINOR], number(member.device.1, 8));
    }
    if let Some(map) = &member.map {
        let (first, more) = map.split_at(map.len().min(PIECES_IN_HEADER));
        put_pieces(&mut block[field::SPARSE], first);
        block[field::SPARSE_MORE] = u8::from(!more.is_empty());
        put_number(&mut block[field::REAL_SIZE], i64::try_from(member.size).unwrap_or(i64::MAX));
    }
    seal(&mut block);
    block
}

/// How many pieces of a sparse file a header has room for, and a block after it.
const PIECES_IN_HEADER: usize = 4;
const PIECES_IN_BLOCK: usize = 21;

fn put_pieces(field: &mut [u8], pieces: &[(u64, u64)]) {
    for (pair, &(offset, length)) in field.chunks_exact_mut(24).zip(pieces) {
        put_number(&mut pair[..12], i64::try_from(offset).unwrap_or(i64::MAX));
        put_number(&mut pair[12..], i64::try_from(length).unwrap_or(i64::MAX));
    }
}

/// The blocks after a header with the pieces of a sparse file that it has no room for.
pub fn more_pieces(member: &Member) -> Vec<Block> {
    let pieces = member.map.as_deref().unwrap_or_default();
    let groups: Vec<&[(u64, u64)]> =
        pieces.get(PIECES_IN_HEADER..).unwrap_or_default().chunks(PIECES_IN_BLOCK).collect();
    let last = groups.len();
    let block_of = |(at, group): (usize, &&[(u64, u64)])| {
        let mut block = [0; BLOCK];
        put_pieces(&mut block[..504], group);
        block[504] = u8::from(at + 1 < last);
        block
    };
    groups.iter().enumerate().map(block_of).collect()
}

/// As much of a text as fits.
pub fn put_text(field: &mut [u8], text: &[u8]) {
    let length = text.len().min(field.len());
    field[..length].copy_from_slice(&text[..length]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_octal_or_binary() {
        assert_eq!(number(b"0000644\0"), Some(0o644));
        assert_eq!(number(b"   644 \0"), Some(0o644));
        assert_eq!(number(b"\0\0\0\0"), Some(0));
        assert_eq!(number(b"00x"), None);
        for value in [0, 7, 0o7777777, 0o77777777, -1, -1_234_567, 1 << 40, i64::from(i32::MAX) << 20] {
            let mut field = [0; 12];
            put_number(&mut field, value);
            assert_eq!(number(&field), Some(value));
        }
        assert_eq!(number(&[0x80, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]), None);
    }

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let mut member = Member::named(b"dir/file", Kind::File);
        (member.mode, member.uid, member.stored, member.mtime) = (0o4755, 3_000_000, 12, -5_000_000_000);
        member.owner = b"me".to_vec();
        let block = compose(&member, Format::Gnu);
        assert!(is_valid(&block));
        let read = parse(&block).unwrap();
        assert_eq!((read.name, read.mode, read.uid), (member.name, member.mode, member.uid));
        assert_eq!((read.size, read.mtime, read.owner), (12, member.mtime, member.owner));
    }
}
