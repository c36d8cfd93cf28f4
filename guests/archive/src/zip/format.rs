//! The records of a zip file: one before each file, one for each at the end, and where those begin.

use std::io;
use wardian_abi as abi;
use wardian_abi::Fd;

pub const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_64: u32 = 0x0606_4b50;
const LOCATOR_64: u32 = 0x0706_4b50;
pub const DESCRIPTOR: u32 = 0x0807_4b50;

pub const STORED: u16 = 0;
pub const DEFLATED: u16 = 8;
pub const BZIP2: u16 = 12;
pub const ZSTD: u16 = 93;

pub const ENCRYPTED: u16 = 1;
/// Sizes and checksum stand after the content.
pub const STREAMED: u16 = 8;
/// The name is UTF-8.
const UTF8: u16 = 0x800;

const UNIX: u16 = 3;
/// The most that 32 bits hold: the number stands in another place.
const ELSEWHERE: u32 = u32::MAX;

/// A file in an archive.
#[derive(Clone, Default)]
pub struct Entry {
    pub name: Vec<u8>,
    pub method: u16,
    pub flags: u16,
    pub crc: u32,
    pub packed: u64,
    pub unpacked: u64,
    /// Where its local record begins.
    pub offset: u64,
    /// Seconds since 1970.
    pub mtime: i64,
    pub atime: i64,
    /// Permission and type bits, where a Unix made it.
    pub mode: Option<u32>,
    pub owner: Option<(u32, u32)>,
    pub is_text: bool,
    pub made_by: u16,
    pub has_extra: bool,
    pub comment: Vec<u8>,
    /// Whether sizes take 64 bits, also in the local record.
    pub large: bool,
}

impl Entry {
    pub fn is_dir(&self) -> bool {
        self.name.ends_with(b"/")
    }

    pub fn is_symlink(&self) -> bool {
        self.mode.is_some_and(|mode| mode & 0o170_000 == 0o120_000)
    }

    pub fn is_encrypted(&self) -> bool {
        self.flags & ENCRYPTED != 0
    }

    fn version(&self) -> u16 {
        match self.method {
            _ if self.large => 45,
            BZIP2 => 46,
            ZSTD => 63,
            DEFLATED => 20,
            _ => 10,
        }
    }

    fn flags_to_write(&self) -> u16 {
        let is_utf8 = !self.name.is_ascii() && std::str::from_utf8(&self.name).is_ok();
        self.flags & !UTF8 | if is_utf8 { UTF8 } else { 0 }
    }

    /// The record before the content.
    pub fn local(&self) -> Vec<u8> {
        let mut extra = Vec::new();
        if self.large {
            extra.extend(1u16.to_le_bytes());
            extra.extend(16u16.to_le_bytes());
            let sizes = if self.flags & STREAMED != 0 { (0, 0) } else { (self.unpacked, self.packed) };
            extra.extend(sizes.0.to_le_bytes());
            extra.extend(sizes.1.to_le_bytes());
        }
        self.add_times_and_owner(&mut extra, true);
        let mut record = Vec::new();
        record.extend(LOCAL.to_le_bytes());
        record.extend(self.version().to_le_bytes());
        self.add_common(&mut record, self.large, self.flags & STREAMED != 0);
        record.extend((self.name.len() as u16).to_le_bytes());
        record.extend((extra.len() as u16).to_le_bytes());
        record.extend(&self.name);
        record.extend(extra);
        record
    }

    fn add_common(&self, record: &mut Vec<u8>, large: bool, later: bool) {
        let (time, date) = dos_time(self.mtime);
        for word in [self.flags_to_write(), self.method, time, date] {
            record.extend(word.to_le_bytes());
        }
        let size = |size: u64| if large { ELSEWHERE } else { size as u32 };
        let (crc, packed, unpacked) = match later {
            true if large => (0, ELSEWHERE, ELSEWHERE),
            true => (0, 0, 0),
            false => (self.crc, size(self.packed), size(self.unpacked)),
        };
        for number in [crc, packed, unpacked] {
            record.extend(number.to_le_bytes());
        }
    }

    fn add_times_and_owner(&self, extra: &mut Vec<u8>, is_local: bool) {
        if !self.has_extra {
            return;
        }
        let seconds = |time: i64| (time.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32).to_le_bytes();
        extra.extend(b"UT");
        extra.extend(if is_local { 9u16 } else { 5 }.to_le_bytes());
        extra.push(3);
        extra.extend(seconds(self.mtime));
        if is_local {
            extra.extend(seconds(self.atime));
        }
        if let Some((uid, gid)) = self.owner {
            extra.extend(b"ux");
            extra.extend(11u16.to_le_bytes());
            extra.extend([1, 4]);
            extra.extend(uid.to_le_bytes());
            extra.push(4);
            extra.extend(gid.to_le_bytes());
        }
    }

    /// The record in the directory at the end.
    pub fn central(&self) -> Vec<u8> {
        let mut extra = Vec::new();
        let is_large = |number: u64| number >= u64::from(ELSEWHERE);
        let sizes_large = is_large(self.packed) || is_large(self.unpacked);
        let offset_large = is_large(self.offset);
        if sizes_large || offset_large {
            let mut numbers = Vec::new();
            if sizes_large {
                numbers.extend([self.unpacked, self.packed]);
            }
            if offset_large {
                numbers.push(self.offset);
            }
            extra.extend(1u16.to_le_bytes());
            extra.extend((numbers.len() as u16 * 8).to_le_bytes());
            extra.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        }
        self.add_times_and_owner(&mut extra, false);
        let mut record = Vec::new();
        record.extend(CENTRAL.to_le_bytes());
        record.extend(self.made_by.to_le_bytes());
        record.extend(self.version().max(if extra.len() > 28 { 45 } else { 0 }).to_le_bytes());
        self.add_common(&mut record, sizes_large, false);
        for length in [self.name.len(), extra.len(), self.comment.len()] {
            record.extend((length as u16).to_le_bytes());
        }
        record.extend(0u16.to_le_bytes());
        record.extend(u16::from(self.is_text).to_le_bytes());
        let dos_directory = if self.is_dir() { 0x10 } else { 0 };
        record.extend((self.mode.unwrap_or(0) << 16 | dos_directory).to_le_bytes());
        record.extend(if offset_large { ELSEWHERE } else { self.offset as u32 }.to_le_bytes());
        record.extend(&self.name);
        record.extend(extra);
        record.extend(&self.comment);
        record
    }

    /// What follows the content of a file that was not known before it was written.
    pub fn descriptor(&self) -> Vec<u8> {
        let mut record = DESCRIPTOR.to_le_bytes().to_vec();
        record.extend(self.crc.to_le_bytes());
        for size in [self.packed, self.unpacked] {
            match self.large {
                true => record.extend(size.to_le_bytes()),
                false => record.extend((size as u32).to_le_bytes()),
            }
        }
        record
    }

    /// A new entry, as zip 3.0 on a Unix makes it.
    pub fn made_here(name: Vec<u8>, mode: u32) -> Entry {
        let made_by = UNIX << 8 | 30;
        Entry { name, mode: Some(mode), made_by, has_extra: true, ..Entry::default() }
    }
}

/// The record at the very end, and those before it that large archives need.
pub fn end(entries: u64, start: u64, length: u64, comment: &[u8]) -> Vec<u8> {
    let mut record = Vec::new();
    let is_large = entries >= 0xffff || start >= u64::from(ELSEWHERE) || length >= u64::from(ELSEWHERE);
    if is_large {
        record.extend(END_64.to_le_bytes());
        record.extend(44u64.to_le_bytes());
        record.extend((UNIX << 8 | 30).to_le_bytes());
        record.extend(45u16.to_le_bytes());
        record.extend([0; 8]);
        for number in [entries, entries, length, start] {
            record.extend(number.to_le_bytes());
        }
        record.extend(LOCATOR_64.to_le_bytes());
        record.extend(0u32.to_le_bytes());
        record.extend((start + length).to_le_bytes());
        record.extend(1u32.to_le_bytes());
    }
    let word = |number: u64| number.min(0xffff) as u16;
    let double = |number: u64| number.min(u64::from(ELSEWHERE)) as u32;
    record.extend(END.to_le_bytes());
    record.extend([0; 4]);
    record.extend(word(entries).to_le_bytes());
    record.extend(word(entries).to_le_bytes());
    record.extend(double(length).to_le_bytes());
    record.extend(double(start).to_le_bytes());
    record.extend((comment.len() as u16).to_le_bytes());
    record.extend(comment);
    record
}

/// Local time as DOS has it, two seconds at a time, from 1980 on.
fn dos_time(seconds: i64) -> (u16, u16) {
    let clock = toolkit::clock::Clock::new();
    // Odd seconds are rounded up, as zip does.
    let time = clock.at((seconds + seconds.rem_euclid(2)).saturating_mul(1_000_000_000));
    if time.year < 1980 {
        return (0, 0x21);
    }
    let date = (time.year - 1980).min(127) << 9 | time.month << 5 | time.day;
    let clock = (time.hour << 11) | (time.minute << 5) | (time.second / 2);
    (clock as u16, date as u16)
}

fn from_dos_time(time: u16, date: u16) -> i64 {
    let text = format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        1980 + (date >> 9),
        (date >> 5 & 15).clamp(1, 12),
        (date & 31).max(1),
        (time >> 11).min(23),
        (time >> 5 & 63).min(59),
        ((time & 31) * 2).min(59)
    );
    toolkit::clock::parse(&text, 0).unwrap_or(0).div_euclid(1_000_000_000)
}

/// Why a file is no zip file.
#[derive(Debug)]
pub enum Flaw {
    NoEnd,
    Damaged,
    Unreadable(io::Error),
}

impl From<io::Error> for Flaw {
    fn from(error: io::Error) -> Flaw {
        Flaw::Unreadable(error)
    }
}

/// The directory of an archive.
pub struct Directory {
    pub entries: Vec<Entry>,
    pub comment: Vec<u8>,
    /// Bytes before the archive that it does not know of.
    pub before: u64,
    pub size: u64,
}

/// Reads bytes at a place; fewer than asked for is a flaw.
pub fn read_at(fd: Fd, at: u64, length: usize) -> Result<Vec<u8>, Flaw> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match abi::pread(fd, &mut bytes[filled..], at + filled as u64).map_err(io::Error::from)? {
            0 => return Err(Flaw::Damaged),
            count => filled += count,
        }
    }
    Ok(bytes)
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn number(&mut self, length: usize) -> Option<u64> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn take(&mut self, length: usize) -> Option<Vec<u8>> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes.to_vec())
    }
}

/// Reads the directory of an archive.
pub fn read(fd: Fd) -> Result<Directory, Flaw> {
    let size = abi::fstat(fd).map_err(io::Error::from)?.size;
    let tail_length = size.min(22 + 0xffff);
    let tail_at = size - tail_length;
    let tail = read_at(fd, tail_at, tail_length as usize)?;
    let found =
        (0..tail.len().saturating_sub(21)).rev().find(|at| tail[*at..].starts_with(&END.to_le_bytes()));
    let end_at = found.ok_or(Flaw::NoEnd)?;
    let mut cursor = Cursor(&tail[end_at + 8..]);
    let mut numbers = || {
        Some((cursor.number(2)?, cursor.number(2)?, cursor.number(4)?, cursor.number(4)?, cursor.number(2)?))
    };
    let (_, mut count, mut length, mut start, comment_length) = numbers().ok_or(Flaw::Damaged)?;
    let comment = tail[end_at + 22..].get(..comment_length as usize).unwrap_or_default().to_vec();
    let mut directory_end = tail_at + end_at as u64;
    let needs_64 = count == 0xffff || length == u64::from(ELSEWHERE) || start == u64::from(ELSEWHERE);
    if needs_64 && let Some((at, found)) = read_end_64(fd, directory_end)? {
        (count, length, start) = found;
        directory_end = at;
    }
    // What stands before the archive moves all of it.
    let begin = directory_end.checked_sub(length).ok_or(Flaw::Damaged)?;
    let before = begin.checked_sub(start).ok_or(Flaw::Damaged)?;
    let length = usize::try_from(length).ok().filter(|length| *length <= 1 << 30).ok_or(Flaw::Damaged)?;
    let records = read_at(fd, begin, length)?;
    let mut cursor = Cursor(&records);
    let mut entries = Vec::new();
    for _ in 0..count {
        let mut entry = read_entry(&mut cursor).ok_or(Flaw::Damaged)?;
        entry.offset = entry.offset.checked_add(before).ok_or(Flaw::Damaged)?;
        entries.push(entry);
    }
    Ok(Directory { entries, comment, before, size })
}

type Bounds = (u64, (u64, u64, u64));

/// The records of a large archive: where they begin, and its count, length and start.
fn read_end_64(fd: Fd, end_at: u64) -> Result<Option<Bounds>, Flaw> {
    let Some(locator_at) = end_at.checked_sub(20) else { return Ok(None) };
    let locator = read_at(fd, locator_at, 20)?;
    let mut cursor = Cursor(&locator);
    if cursor.number(4) != Some(u64::from(LOCATOR_64)) {
        return Ok(None);
    }
    cursor.number(4);
    let at = cursor.number(8).ok_or(Flaw::Damaged)?;
    let record = read_at(fd, at, 56)?;
    let mut cursor = Cursor(&record);
    if cursor.number(4) != Some(u64::from(END_64)) {
        return Err(Flaw::Damaged);
    }
    cursor.take(28);
    let mut numbers = || Some((cursor.number(8)?, cursor.number(8)?, cursor.number(8)?));
    Ok(Some((at, numbers().ok_or(Flaw::Damaged)?)))
}

fn read_entry(cursor: &mut Cursor<'_>) -> Option<Entry> {
    if cursor.number(4)? != u64::from(CENTRAL) {
        return None;
    }
    let made_by = cursor.number(2)? as u16;
    cursor.number(2)?;
    let (flags, method) = (cursor.number(2)? as u16, cursor.number(2)? as u16);
    let (time, date) = (cursor.number(2)? as u16, cursor.number(2)? as u16);
    let crc = cursor.number(4)? as u32;
    let (packed, unpacked) = (cursor.number(4)?, cursor.number(4)?);
    let (name, extra, comment) = (cursor.number(2)?, cursor.number(2)?, cursor.number(2)?);
    cursor.number(2)?;
    let is_text = cursor.number(2)? & 1 != 0;
    let attributes = cursor.number(4)? as u32;
    let offset = cursor.number(4)?;
    let name = cursor.take(name as usize)?;
    let extra = cursor.take(extra as usize)?;
    let comment = cursor.take(comment as usize)?;
    let mtime = from_dos_time(time, date);
    let mode = (made_by >> 8 == UNIX && attributes >> 16 != 0).then_some(attributes >> 16);
    let mut entry = Entry {
        name,
        method,
        flags,
        crc,
        packed,
        unpacked,
        offset,
        mtime,
        atime: mtime,
        mode,
        owner: None,
        is_text,
        made_by,
        has_extra: false,
        comment,
        large: false,
    };
    read_extra(&mut entry, &extra);
    Some(entry)
}

fn read_extra(entry: &mut Entry, extra: &[u8]) {
    let mut cursor = Cursor(extra);
    while let (Some(tag), Some(length)) = (cursor.number(2), cursor.number(2)) {
        let Some(field) = cursor.take(length as usize) else { return };
        let mut field = Cursor(&field);
        match tag {
            1 => {
                for number in [&mut entry.unpacked, &mut entry.packed, &mut entry.offset] {
                    if *number == u64::from(ELSEWHERE)
                        && let Some(large) = field.number(8)
                    {
                        *number = large;
                    }
                }
                entry.large = true;
            }
            // "UT"
            0x5455 => {
                entry.has_extra = true;
                if field.number(1).is_some_and(|flags| flags & 1 != 0)
                    && let Some(time) = field.number(4)
                {
                    entry.mtime = i64::from(time as u32 as i32);
                }
            }
            // "ux"
            0x7875 => {
                field.number(2);
                let uid = field.number(4);
                field.number(1);
                entry.owner = uid.zip(field.number(4)).map(|(uid, gid)| (uid as u32, gid as u32));
            }
            _ => {}
        }
    }
}

/// Where the content of an entry begins: after its local record, whose length only it knows.
pub fn content_at(fd: Fd, entry: &Entry) -> Result<u64, Flaw> {
    let record = read_at(fd, entry.offset, 30)?;
    let mut cursor = Cursor(&record);
    if cursor.number(4) != Some(u64::from(LOCAL)) {
        return Err(Flaw::Damaged);
    }
    cursor.take(22);
    let (name, extra) = (cursor.number(2).unwrap_or(0), cursor.number(2).unwrap_or(0));
    Ok(entry.offset + 30 + name + extra)
}
