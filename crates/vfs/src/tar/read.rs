//! Reading an archive entry by entry, trusting nothing.

use super::header::{BLOCK, Header, Kind, NAME_FIELD, unsigned};
use super::{TarError, damaged};
use crate::name::PATH_MAX;
use std::collections::BTreeMap;
use std::io::Read;

/// The maximum size of the records about one file: real ones have a few hundred bytes.
const PAX_MAX: u64 = 1 << 20;
/// The maximum number of pieces of a sparse file.
const PIECES_MAX: usize = 1 << 20;
/// The maximum length of a record about all files that follow, of which each gets a copy.
const GLOBAL_MAX: usize = 256;
/// What an entry has in addition to its content: a header, padding, and a header and a block of records.
const USUAL: u64 = 4 * BLOCK as u64;

const TOO_MUCH: &str = "its headers are much longer than its files need";

/// The records that matter here.
const KNOWN: [&[u8]; 11] = [
    b"path",
    b"linkpath",
    b"size",
    b"mtime",
    b"uid",
    b"gid",
    b"GNU.sparse.major",
    b"GNU.sparse.name",
    b"GNU.sparse.map",
    b"GNU.sparse.size",
    b"GNU.sparse.realsize",
];

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// One file of the archive, with everything that headers and records say about it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) kind: Kind,
    pub(crate) name: Vec<u8>,
    pub(crate) link: Vec<u8>,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// Nanoseconds.
    pub(crate) mtime: i64,
    /// The file's length.
    pub(crate) size: u64,
    /// Where the bytes in the archive belong: offset and length, in order.
    pub(crate) pieces: Vec<(u64, u64)>,
}

/// An archive being read.
pub(crate) struct Archive<R> {
    input: R,
    /// Content of the current entry not read yet, and the padding after it.
    left: u64,
    padding: u64,
    global: Records,
    /// Bytes read since the last entry that are no content: headers, records, maps, padding.
    around: u64,
    /// How many of those there may be beyond what entries need.
    spare: u64,
}

impl<R: Read> Archive<R> {
    /// Reads an archive that has up to `spare` bytes which say nothing about its files.
    pub(crate) fn new(input: R, spare: u64) -> Archive<R> {
        Archive { input, left: 0, padding: 0, global: Records::new(), around: 0, spare }
    }

    /// Returns the next file, or `None` at the end mark.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, TarError> {
        let (mut long_name, mut long_link) = (None, None);
        let mut records = self.global.clone();
        loop {
            self.skip()?;
            let block = self.block()?;
            let Some(header) = Header::parse(&block)? else { return Ok(None) };
            self.left = header.size;
            self.padding = header.size.next_multiple_of(BLOCK as u64) - header.size;
            match header.kind {
                Kind::LongName => long_name = Some(self.long_text()?),
                Kind::LongLink => long_link = Some(self.long_text()?),
                Kind::Pax => parse_records(&self.all(PAX_MAX)?, &mut records, true)?,
                Kind::PaxGlobal => {
                    // Copied for each file that follows, so nothing large; and no two have the same pieces.
                    parse_records(&self.all(PAX_MAX)?, &mut self.global, false)?;
                    records.extend(self.global.clone());
                }
                _ => {
                    let entry = self.entry(header, &block, long_name, long_link, records)?;
                    self.settle(&entry)?;
                    return Ok(Some(entry));
                }
            }
        }
    }

    /// Counts bytes that are no content. Whatever they are about, there may not be many more than an entry can need.
    fn count(&mut self, bytes: u64) -> Result<(), TarError> {
        const MOST: u64 = 32 * PIECES_MAX as u64;
        self.around = self.around.saturating_add(bytes);
        if self.around > self.spare.saturating_add(MOST) { damaged(TOO_MUCH) } else { Ok(()) }
    }

    /// Takes what the entry did not need from what may be wasted.
    fn settle(&mut self, entry: &Entry) -> Result<(), TarError> {
        // A long name has a header of its own, or a record, and is there in part in the header.
        let long = |text: &[u8]| if text.len() > NAME_FIELD { 2 * (text.len() + BLOCK) as u64 } else { 0 };
        let map = 32 * entry.pieces.len() as u64;
        let needed = USUAL + long(&entry.name) + long(&entry.link) + map;
        match self.spare.checked_sub(std::mem::take(&mut self.around).saturating_sub(needed)) {
            Some(left) => self.spare = left,
            None => return damaged(TOO_MUCH),
        }
        Ok(())
    }

    fn entry(
        &mut self,
        header: Header,
        block: &[u8; BLOCK],
        long_name: Option<Vec<u8>>,
        long_link: Option<Vec<u8>>,
        mut records: Records,
    ) -> Result<Entry, TarError> {
        if let Some(size) = records.remove(&b"size"[..]) {
            self.left = decimal(&size)?;
            self.padding = self.left.next_multiple_of(BLOCK as u64) - self.left;
        }
        if !matches!(header.kind, Kind::File | Kind::Sparse) {
            // Some archivers give links and directories the size of what they are about; nothing follows.
            (self.left, self.padding) = (0, 0);
        }
        let (size, pieces) = match header.kind {
            Kind::Sparse => self.gnu_pieces(block)?,
            Kind::File => self.pax_pieces(&mut records)?,
            _ => (0, Vec::new()),
        };
        let mut take = |key: &[u8]| records.remove(key);
        let sparse_name = take(b"GNU.sparse.name");
        let name = sparse_name.or_else(|| take(b"path")).or(long_name).unwrap_or(header.name);
        let link = take(b"linkpath").or(long_link).unwrap_or(header.link);
        let mtime = match take(b"mtime") {
            Some(text) => seconds(&text)?,
            None => header.mtime.saturating_mul(1_000_000_000),
        };
        let id = |text: Option<Vec<u8>>, field: u64| match text {
            Some(text) => decimal(&text),
            None => Ok(field),
        };
        let (uid, gid) = (id(take(b"uid"), header.uid)?, id(take(b"gid"), header.gid)?);
        let small = |id: u64| u32::try_from(id).or_else(|_| damaged("an owner's number is out of range"));
        let (uid, gid) = (small(uid)?, small(gid)?);
        Ok(Entry { kind: header.kind, name, link, mode: header.mode, uid, gid, mtime, size, pieces })
    }

    /// Reads some of the current entry's content. An archive that ends within it is damaged.
    pub(crate) fn content(&mut self, buf: &mut [u8]) -> Result<usize, TarError> {
        let wanted = usize::try_from(self.left).map_or(buf.len(), |left| left.min(buf.len()));
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.input.read(&mut buf[..wanted])?;
        if count == 0 {
            return damaged("it ends in the middle of a file");
        }
        self.left -= count as u64;
        Ok(count)
    }

    /// Skips the rest of the current entry.
    fn skip(&mut self) -> Result<(), TarError> {
        let rest = std::mem::take(&mut self.left).saturating_add(std::mem::take(&mut self.padding));
        self.count(rest)?;
        let skipped = std::io::copy(&mut (&mut self.input).take(rest), &mut std::io::sink())?;
        if skipped < rest { damaged("it ends in the middle of a file") } else { Ok(()) }
    }

    fn block(&mut self) -> Result<[u8; BLOCK], TarError> {
        self.count(BLOCK as u64)?;
        let mut block = [0; BLOCK];
        match self.input.read_exact(&mut block) {
            Ok(()) => Ok(block),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                damaged("it ends without an end mark")
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns all of the current entry's content, which may not be longer than `max`.
    fn all(&mut self, max: u64) -> Result<Vec<u8>, TarError> {
        if self.left > max {
            return damaged("a name or record is longer than any real one");
        }
        self.count(self.left)?;
        let mut content = vec![0; self.left as usize];
        let mut filled = 0;
        while filled < content.len() {
            filled += self.content(&mut content[filled..])?;
        }
        Ok(content)
    }

    fn long_text(&mut self) -> Result<Vec<u8>, TarError> {
        let mut text = self.all(PATH_MAX as u64 + 1)?;
        if let Some(end) = text.iter().position(|byte| *byte == 0) {
            text.truncate(end);
        }
        Ok(text)
    }

    /// GNU's sparse files: four pieces in the header, more in blocks after it.
    fn gnu_pieces(&mut self, block: &[u8; BLOCK]) -> Result<(u64, Vec<(u64, u64)>), TarError> {
        let size = unsigned(&block[483..495])?;
        let mut pieces = Vec::new();
        push_pieces(&mut pieces, &block[386..482])?;
        let mut more = block[482] != 0;
        while more {
            let block = self.block()?;
            push_pieces(&mut pieces, &block[..504])?;
            more = block[504] != 0;
            if pieces.len() > PIECES_MAX {
                return damaged("a sparse file has more pieces than any real one");
            }
        }
        self.check_pieces(size, pieces)
    }

    /// Sparse files as GNU tar writes them to pax archives; an ordinary file is one piece.
    fn pax_pieces(&mut self, records: &mut Records) -> Result<(u64, Vec<(u64, u64)>), TarError> {
        let major = records.remove(&b"GNU.sparse.major"[..]);
        let map = records.remove(&b"GNU.sparse.map"[..]);
        let size = records.remove(&b"GNU.sparse.realsize"[..]);
        let size = size.or_else(|| records.remove(&b"GNU.sparse.size"[..]));
        let pieces = match (&major, &map, &size) {
            (None, None, None) => return Ok((self.left, vec![(0, self.left)])),
            (Some(major), _, Some(_)) if major == b"1" => self.leading_map()?,
            (None, Some(map), Some(_)) => {
                let numbers: Result<Vec<u64>, _> = map.split(|byte| *byte == b',').map(decimal).collect();
                pairs(&numbers?)?
            }
            _ => return damaged("a sparse file of a kind this reader does not know"),
        };
        let size = decimal(size.unwrap_or_default())?;
        self.check_pieces(size, pieces)
    }

    /// Version 1.0 of the format has the map as lines of text, padded to whole blocks, before the content.
    fn leading_map(&mut self) -> Result<Vec<(u64, u64)>, TarError> {
        let mut numbers = Vec::new();
        let mut line = Vec::new();
        let mut wanted = None;
        while wanted.is_none_or(|wanted| numbers.len() < wanted) {
            self.count(BLOCK as u64)?;
            let mut block = [0; BLOCK];
            let mut filled = 0;
            while filled < BLOCK {
                match self.content(&mut block[filled..])? {
                    0 => return damaged("a sparse file's map is truncated"),
                    count => filled += count,
                }
            }
            for byte in block {
                if wanted.is_some_and(|wanted| numbers.len() >= wanted) {
                    break;
                }
                if byte != b'\n' {
                    line.push(byte);
                    if line.len() > 20 {
                        return damaged("a number is not a number");
                    }
                    continue;
                }
                let number = decimal(std::mem::take(&mut line))?;
                match wanted {
                    None if number > PIECES_MAX as u64 => {
                        return damaged("a sparse file has more pieces than any real one");
                    }
                    None => wanted = Some(number as usize * 2),
                    Some(_) => numbers.push(number),
                }
            }
        }
        pairs(&numbers)
    }

    /// Checks that pieces are in order, within the file, and together as long as the content.
    fn check_pieces(
        &self,
        size: u64,
        mut pieces: Vec<(u64, u64)>,
    ) -> Result<(u64, Vec<(u64, u64)>), TarError> {
        let (mut end, mut total) = (0, 0u64);
        for (offset, len) in &pieces {
            let piece_end = offset.checked_add(*len).filter(|end| *end <= size);
            if *offset < end || piece_end.is_none() {
                return damaged("a sparse file's pieces make no sense");
            }
            end = piece_end.unwrap_or(end);
            total = total.saturating_add(*len);
        }
        if total != self.left {
            return damaged("a sparse file's pieces do not add up");
        }
        pieces.retain(|(_, len)| *len > 0);
        Ok((size, pieces))
    }
}

fn push_pieces(pieces: &mut Vec<(u64, u64)>, table: &[u8]) -> Result<(), TarError> {
    for entry in table.chunks_exact(24) {
        if entry[0] == 0 {
            break;
        }
        pieces.push((unsigned(&entry[..12])?, unsigned(&entry[12..])?));
    }
    Ok(())
}

fn pairs(numbers: &[u64]) -> Result<Vec<(u64, u64)>, TarError> {
    let (pairs, rest) = numbers.as_chunks::<2>();
    if rest.is_empty() {
        Ok(pairs.iter().map(|[offset, len]| (*offset, *len)).collect())
    } else {
        damaged("a sparse file's map is truncated")
    }
}

/// Records are lines of "LENGTH KEY=VALUE", where LENGTH counts all of the line.
fn parse_records(mut text: &[u8], records: &mut Records, of_one: bool) -> Result<(), TarError> {
    while !text.is_empty() {
        let parsed = text.iter().position(|byte| *byte == b' ').and_then(|space| {
            let len = usize::try_from(decimal(&text[..space]).ok()?).ok()?;
            let line = text.get(space + 1..len)?.strip_suffix(b"\n")?;
            let equals = line.iter().position(|byte| *byte == b'=')?;
            Some((len, line[..equals].to_vec(), line[equals + 1..].to_vec()))
        });
        let Some((len, key, value)) = parsed else { return damaged("a record is not a record") };
        // An empty value takes a record back; of what nobody asks for, nothing is kept.
        if value.is_empty() {
            records.remove(&key);
        } else if key == b"GNU.sparse.map" && of_one {
            records.insert(key, value);
        } else if KNOWN.contains(&&key[..]) {
            if value.len() > if of_one { PATH_MAX } else { GLOBAL_MAX } {
                return damaged("a name or record is longer than any real one");
            }
            records.insert(key, value);
        }
        text = &text[len..];
    }
    Ok(())
}

fn decimal(text: impl AsRef<[u8]>) -> Result<u64, TarError> {
    let number = std::str::from_utf8(text.as_ref()).ok().and_then(|text| text.parse().ok());
    number.map_or_else(|| damaged("a number is not a number"), Ok)
}

/// Seconds with a fraction, as nanoseconds.
fn seconds(text: &[u8]) -> Result<i64, TarError> {
    let text = std::str::from_utf8(text).unwrap_or("?");
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    match (whole.parse::<i64>(), digits.parse::<i64>()) {
        (Ok(whole), Ok(nanos)) => {
            let nanos = if text.starts_with('-') { -nanos } else { nanos };
            Ok(whole.saturating_mul(1_000_000_000).saturating_add(nanos))
        }
        _ => damaged("a time is not a time"),
    }
}
