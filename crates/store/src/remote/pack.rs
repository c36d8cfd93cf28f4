//! Packs: objects that were new together, in one object of the object store.
//!
//! ```text
//! magic   length of the table   table: hash, kind and length of each object   the objects, as the local store has them
//! ```
//!
//! A pack is named by the hash of its table, and each object by the hash of its content. So the table alone can be read and
//! checked, and every object is checked by itself, encrypted or not.
//!
//! A memory that is a file (`pages.rs`) is not in a pack as such: it is cut into regions, which are objects like any other,
//! so what two memories have in common is uploaded once. What stands for the file is a list of its regions.

use serde::{Deserialize, Serialize};

use super::regions::REGION;
use crate::hash::Namer;
use crate::seal::{COMPRESSED, IN_FILE, LINKS};
use crate::{Hash, StoreError};

const MAGIC: &[u8; 8] = b"WRDPACK1";
const HEADER: usize = 12;
/// From this size on a pack is closed. A larger object has one of its own.
pub(super) const FULL: usize = 8 << 20;
/// The most bytes of a table, and of a pack: an object of the largest size with what encryption adds.
const MOST_TABLE: usize = 4 << 20;
pub(super) const MOST: u64 = (crate::seal::LARGEST + MOST_TABLE + (1 << 20)) as u64;
/// How much is read of a pack to get its table: enough for a thousand objects.
pub(super) const FIRST: u64 = 64 << 10;
/// How many objects a pack can have, so that its table is never too large.
pub(super) const OBJECTS: usize = 65_536;

/// An object as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packed {
    pub(super) hash: Hash,
    pub(super) kind: i64,
    pub(super) body: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    hash: [u8; 32],
    kind: u8,
    length: u32,
}

fn name_of(namer: &Namer, table: &[u8]) -> Hash {
    let mut hasher = namer.hasher();
    hasher.update(b"pack");
    hasher.update(table);
    Hash(*hasher.finalize().as_bytes())
}

/// Makes a pack; returns its name.
pub(super) fn build(namer: &Namer, objects: &[Packed]) -> Result<(Hash, Vec<u8>), StoreError> {
    let large = |_| StoreError::Io("an object is too large for a pack".to_owned());
    let entry = |object: &Packed| {
        let length = u32::try_from(object.body.len()).map_err(large)?;
        Ok(Entry { hash: object.hash.0, kind: object.kind as u8, length })
    };
    let entries: Vec<Entry> = objects.iter().map(entry).collect::<Result<_, StoreError>>()?;
    let table = postcard::to_stdvec(&entries)
        .map_err(|error| StoreError::Io(format!("a table cannot be encoded: {error}")))?;
    let length = u32::try_from(table.len()).map_err(large)?;
    let mut pack = Vec::with_capacity(
        HEADER + table.len() + objects.iter().map(|object| object.body.len()).sum::<usize>(),
    );
    pack.extend_from_slice(MAGIC);
    pack.extend_from_slice(&length.to_le_bytes());
    pack.extend_from_slice(&table);
    objects.iter().for_each(|object| pack.extend_from_slice(&object.body));
    Ok((name_of(namer, &table), pack))
}

/// Returns how many bytes a pack's table has with what is before it, from its beginning.
pub(super) fn table_end(first: &[u8]) -> Result<usize, StoreError> {
    let header = first.first_chunk::<HEADER>().ok_or_else(|| damaged("it is too short"))?;
    let (magic, length) = header.split_at(8);
    if magic != MAGIC {
        return Err(damaged("it is not a pack"));
    }
    let length = length.try_into().map(u32::from_le_bytes).map_err(|_| damaged("it is too short"))? as usize;
    if length > MOST_TABLE {
        return Err(damaged("its table is too long"));
    }
    Ok(HEADER + length)
}

fn read_table(namer: &Namer, name: &Hash, first: &[u8]) -> Result<(Vec<Entry>, usize), StoreError> {
    let end = table_end(first)?;
    let table = first.get(HEADER..end).ok_or_else(|| damaged("it is too short"))?;
    if name_of(namer, table) != *name {
        return Err(damaged("its table does not match its name"));
    }
    let (entries, left): (Vec<Entry>, &[u8]) =
        postcard::take_from_bytes(table).map_err(|_| damaged("its table cannot be read"))?;
    let known = (COMPRESSED | IN_FILE | LINKS | REGION) as u8;
    if !left.is_empty() || entries.iter().any(|entry| entry.kind & !known != 0) {
        return Err(damaged("its table cannot be read"));
    }
    Ok((entries, end))
}

/// Returns which objects a pack has, given its beginning.
pub(super) fn objects(namer: &Namer, name: &Hash, first: &[u8]) -> Result<Vec<Hash>, StoreError> {
    let (entries, _) = read_table(namer, name, first)?;
    Ok(entries.into_iter().map(|entry| Hash(entry.hash)).collect())
}

/// Takes a pack apart. What the objects are is not checked yet.
pub(super) fn parse(namer: &Namer, name: &Hash, pack: &[u8]) -> Result<Vec<Packed>, StoreError> {
    let (entries, end) = read_table(namer, name, pack)?;
    let mut rest = &pack[end..];
    let mut objects = Vec::with_capacity(entries.len());
    for entry in entries {
        let (body, left) =
            rest.split_at_checked(entry.length as usize).ok_or_else(|| damaged("it is too short"))?;
        rest = left;
        objects.push(Packed { hash: Hash(entry.hash), kind: i64::from(entry.kind), body: body.to_vec() });
    }
    if rest.is_empty() { Ok(objects) } else { Err(damaged("it is too long")) }
}

fn damaged(why: &str) -> StoreError {
    StoreError::Malformed(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_is_read_back_whole_or_not_at_all() {
        let namer = Namer::new(None);
        let object = |byte: u8, length| Packed { hash: Hash([byte; 32]), kind: 1, body: vec![byte; length] };
        let all = [object(1, 10), object(2, 0), object(3, 300)];
        let (name, pack) = build(&namer, &all).expect("a pack");
        assert_eq!(parse(&namer, &name, &pack).as_deref(), Ok(&all[..]));
        let first = &pack[..table_end(&pack).expect("a table")];
        assert_eq!(objects(&namer, &name, first).map(|objects| objects.len()), Ok(3));
        for length in 0..pack.len() {
            assert!(parse(&namer, &name, &pack[..length]).is_err(), "{length}");
        }
        assert!(parse(&namer, &name, &[&pack[..], b"x"].concat()).is_err());
        assert!(parse(&namer, &Hash([0; 32]), &pack).is_err());
        for place in 0..first.len() {
            let mut damaged = pack.clone();
            damaged[place] ^= 1;
            assert!(parse(&namer, &name, &damaged).is_err(), "{place}");
        }
        let mut huge = pack.clone();
        huge[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(table_end(&huge).is_err());
    }
}
