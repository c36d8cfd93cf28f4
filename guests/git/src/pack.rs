//! Packs: many objects in one file, some as differences from others, and the index beside it.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use flate2::read::ZlibDecoder;
use toolkit::files::path;

use crate::fail::{Res, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::loose::LARGEST;
use crate::object::{Kind, Object};

/// A chain of differences that is longer is no pack that git wrote.
const DEEPEST: usize = 4096;

/// A pack whose index is in memory.
pub struct Pack {
    name: Vec<u8>,
    index: Vec<u8>,
    count: usize,
    file: File,
    size: u64,
}

/// What an object in a pack is made from.
enum Base {
    None(Kind),
    Offset(u64),
    Named(Oid),
}

const HEADER: usize = 8;
const NAMES: usize = HEADER + 256 * 4;

impl Pack {
    /// Opens a pack by the name of its index.
    pub fn open(index_name: &[u8]) -> Res<Pack> {
        let broken = || format!("index file {} is corrupt", text(index_name));
        let index = files::read_if_there(index_name)?.unwrap_or_default();
        if index.get(..HEADER) != Some(&[0xff, b't', b'O', b'c', 0, 0, 0, 2]) {
            fatal!("{} (only version 2 is read)", broken());
        }
        let count = number(&index, NAMES - 4).unwrap_or(0) as usize;
        if (index.len() as u64) < NAMES as u64 + count as u64 * 28 + 40 {
            fatal!("{}", broken());
        }
        let name = [index_name.strip_suffix(b"idx").unwrap_or(index_name), b"pack"].concat();
        let Ok(file) = File::open(path(&name)) else { fatal!("packfile {} cannot be accessed", text(&name)) };
        let size = file.metadata().map_or(0, |data| data.len());
        Ok(Pack { name, index, count, file, size })
    }

    fn bounds(&self, first: u8) -> (usize, usize) {
        let fan = |at: usize| number(&self.index, HEADER + at * 4).unwrap_or(0) as usize;
        let low = if first == 0 { 0 } else { fan(usize::from(first) - 1) };
        let high = fan(usize::from(first)).min(self.count);
        (low.min(high), high)
    }

    fn oid_at(&self, at: usize) -> Oid {
        let start = NAMES + at * 20;
        self.index.get(start..start + 20).and_then(Oid::from_bytes).unwrap_or_default()
    }

    /// The names of all objects that start with a byte.
    pub fn list(&self, first: u8) -> impl Iterator<Item = Oid> + '_ {
        let (low, high) = self.bounds(first);
        (low..high).map(|at| self.oid_at(at))
    }

    /// Where an object starts, if it is in here.
    pub fn find(&self, oid: &Oid) -> Option<u64> {
        let (mut low, mut high) = self.bounds(oid.0[0]);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.oid_at(middle).cmp(oid) {
                std::cmp::Ordering::Equal => return self.offset_at(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn offset_at(&self, at: usize) -> Option<u64> {
        let offsets = NAMES + self.count * 24;
        let small = number(&self.index, offsets + at * 4)?;
        if small & 0x8000_0000 == 0 {
            return Some(u64::from(small));
        }
        let large = offsets + self.count * 4 + (small & 0x7fff_ffff) as usize * 8;
        Some(u64::from(number(&self.index, large)?) << 32 | u64::from(number(&self.index, large + 4)?))
    }

    /// Reads an object; `elsewhere` reads what a difference names and this pack lacks.
    pub fn read(&self, offset: u64, elsewhere: &dyn Fn(&Oid) -> Res<Object>) -> Res<Object> {
        let mut differences = Vec::new();
        let mut at = offset;
        let mut object = loop {
            let Some((base, data)) = self.entry(at) else {
                fatal!("packed object at offset {at} of {} is corrupt", text(&self.name))
            };
            match base {
                Base::None(kind) => break Object { kind, data },
                Base::Offset(earlier) => at = earlier,
                Base::Named(oid) => match self.find(&oid) {
                    Some(found) => at = found,
                    None => {
                        differences.push(data);
                        break elsewhere(&oid)?;
                    }
                },
            }
            differences.push(data);
            if differences.len() > DEEPEST {
                fatal!("packed object in {} has too many bases", text(&self.name));
            }
        };
        for difference in differences.iter().rev() {
            let Some(data) = apply(&object.data, difference) else {
                fatal!("failed to apply delta in {}", text(&self.name))
            };
            object.data = data;
        }
        Ok(object)
    }

    fn entry(&self, offset: u64) -> Option<(Base, Vec<u8>)> {
        if offset >= self.size {
            return None;
        }
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset)).ok()?;
        let mut reader = std::io::BufReader::with_capacity(8192, file);
        let (base, size) = header(&mut reader, offset)?;
        let mut data = Vec::new();
        ZlibDecoder::new(reader).take(size as u64 + 1).read_to_end(&mut data).ok()?;
        (data.len() == size).then_some((base, data))
    }
}

/// Reads what is before an object at `offset`: its kind or what it differs from, and its size.
fn header(reader: &mut impl Read, offset: u64) -> Option<(Base, usize)> {
    let mut byte = next(reader)?;
    let kind = byte >> 4 & 7;
    let (mut size, mut shift) = (u64::from(byte & 15), 4);
    while byte & 0x80 != 0 {
        byte = next(reader)?;
        size |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
    }
    let base = match kind {
        1 => Base::None(Kind::Commit),
        2 => Base::None(Kind::Tree),
        3 => Base::None(Kind::Blob),
        4 => Base::None(Kind::Tag),
        6 => Base::Offset(offset.checked_sub(distance(reader)?).filter(|at| *at < offset)?),
        7 => {
            let mut oid = Oid::NULL;
            reader.read_exact(&mut oid.0).ok()?;
            Base::Named(oid)
        }
        _ => return None,
    };
    let size = usize::try_from(size).ok().filter(|size| *size <= LARGEST)?;
    Some((base, size))
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn next(reader: &mut impl Read) -> Option<u8> {
    let mut byte = [0];
    reader.read_exact(&mut byte).ok()?;
    Some(byte[0])
}

/// How far back the base of a difference starts.
fn distance(reader: &mut impl Read) -> Option<u64> {
    let mut byte = next(reader)?;
    let mut distance = u64::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next(reader)?;
        distance = distance.checked_add(1)?.checked_mul(128)? | u64::from(byte & 0x7f);
    }
    Some(distance)
}

/// What a difference makes of its base.
pub fn apply(base: &[u8], mut difference: &[u8]) -> Option<Vec<u8>> {
    let from = length(&mut difference)?;
    let to = length(&mut difference)?;
    if from != base.len() || to > LARGEST {
        return None;
    }
    let mut data = Vec::new();
    while let [command, rest @ ..] = difference {
        difference = rest;
        if command & 0x80 == 0 {
            let count = usize::from(*command);
            if count == 0 {
                return None;
            }
            data.extend_from_slice(difference.get(..count)?);
            difference = &difference[count..];
            continue;
        }
        let (mut offset, mut size) = (0, 0);
        for bit in 0..7 {
            if command & 1 << bit != 0 {
                let [byte, rest @ ..] = difference else { return None };
                difference = rest;
                match bit {
                    0..=3 => offset |= usize::from(*byte) << (8 * bit),
                    _ => size |= usize::from(*byte) << (8 * (bit - 4)),
                }
            }
        }
        let size = if size == 0 { 0x10000 } else { size };
        data.extend_from_slice(base.get(offset..offset.checked_add(size)?)?);
        if data.len() > to {
            return None;
        }
    }
    (data.len() == to).then_some(data)
}

fn length(bytes: &mut &[u8]) -> Option<usize> {
    let (mut length, mut shift) = (0u64, 0);
    loop {
        let [byte, rest @ ..] = *bytes else { return None };
        *bytes = rest;
        length |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte & 0x80 == 0 {
            return usize::try_from(length).ok();
        }
    }
}

/// Writes every object of a pack that came from elsewhere. Differences from objects that are here already are understood.
pub fn unpack(content: &[u8], odb: &crate::odb::Odb) -> Res<()> {
    let count = match content.get(..12) {
        Some(head) if head.starts_with(b"PACK\0\0\0\x02") => number(head, 8).unwrap_or(0),
        _ => fatal!("the pack that was sent is damaged"),
    };
    let (body, seal) = content.split_at(content.len().saturating_sub(20));
    if crate::hash::sha1(&[body]).0 != *seal {
        fatal!("the pack that was sent is damaged: its checksum is wrong");
    }
    let damaged = |at: usize| crate::fail::Fail::Fatal(format!("the pack that was sent is damaged at {at}"));
    let mut names: std::collections::HashMap<usize, Oid> = std::collections::HashMap::new();
    let mut later: Vec<(Oid, usize, Vec<u8>)> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let start = at;
        let (base, data) = streamed(body, &mut at).ok_or_else(|| damaged(start))?;
        let base = match base {
            Base::None(kind) => {
                names.insert(start, odb.write(kind, &data)?);
                continue;
            }
            Base::Offset(earlier) => match names.get(&(earlier as usize)) {
                Some(oid) => *oid,
                None => return Err(damaged(start)),
            },
            Base::Named(oid) => oid,
        };
        match odb.find(&base)? {
            Some(object) => {
                let made = apply(&object.data, &data).ok_or_else(|| damaged(start))?;
                names.insert(start, odb.write(object.kind, &made)?);
            }
            None => later.push((base, start, data)),
        }
    }
    // Bases may come behind what is made from them.
    while !later.is_empty() {
        let before = later.len();
        for (base, start, data) in std::mem::take(&mut later) {
            match odb.find(&base)? {
                Some(object) => {
                    let made = apply(&object.data, &data).ok_or_else(|| damaged(start))?;
                    odb.write(object.kind, &made)?;
                }
                None => later.push((base, start, data)),
            }
        }
        if later.len() == before {
            fatal!("the pack that was sent lacks {}", later[0].0);
        }
    }
    Ok(())
}

/// The next object of a pack in memory.
fn streamed(body: &[u8], at: &mut usize) -> Option<(Base, Vec<u8>)> {
    let start = *at;
    let mut rest = body.get(start..)?;
    let (base, size) = header(&mut rest, start as u64)?;
    let mut decoder = flate2::bufread::ZlibDecoder::new(rest);
    let mut data = Vec::new();
    (&mut decoder).take(size as u64).read_to_end(&mut data).ok()?;
    // The end of the stream is part of it.
    let mut end = [0];
    if data.len() != size || decoder.read(&mut end).ok()? != 0 {
        return None;
    }
    *at = body.len() - rest.len() + decoder.total_in() as usize;
    Some((base, data))
}

/// Writes a pack of whole objects.
pub fn write(repo: &crate::repo::Repo, objects: &[Oid], out: &mut Vec<u8>) -> Res<()> {
    let start = out.len();
    out.extend_from_slice(b"PACK\0\0\0\x02");
    out.extend_from_slice(&(objects.len() as u32).to_be_bytes());
    for oid in objects {
        let object = repo.odb.read(oid)?;
        let mut size = object.data.len();
        let mut byte = crate::http::number_of(object.kind) << 4 | (size & 15) as u8;
        size >>= 4;
        while size > 0 {
            out.push(byte | 0x80);
            byte = (size & 0x7f) as u8;
            size >>= 7;
        }
        out.push(byte);
        let mut encoder = flate2::write::ZlibEncoder::new(&mut *out, flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &object.data)
            .and_then(|()| encoder.finish().map(drop))
            .map_err(crate::fail::system("cannot compress"))?;
    }
    let seal = crate::http::seal(&out[start..]);
    out.extend_from_slice(&seal.0);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_applied_and_broken_ones_refused() {
        let difference = [5, 8, 0x91, 1, 3, 5, b'h', b'e', b'l', b'l', b'o'];
        assert_eq!(apply(b"abcde", &difference).as_deref(), Some(&b"bcdhello"[..]));
        for end in 0..difference.len() {
            assert_eq!(apply(b"abcde", &difference[..end]), None);
        }
        assert_eq!(apply(b"abcd", &difference), None);
        assert_eq!(apply(b"abcde", &[5, 8, 0x91, 4, 3, 5, 1, 1, 1, 1, 1]), None);
    }
}
