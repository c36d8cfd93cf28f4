//! What is in the object store besides packs: heads, records of commits, and who is alive.
//!
//! ```text
//! wardian-store        the store's format and id, and what tells whether a key is its
//! heads/ns/name        the one object that changes: newest record and commit, tags, and who holds the lease
//! records/HASH         some commits in their order, and the records before: at most 32 of them
//! packs/HASH           objects (see `pack.rs`)
//! nodes/ID             until when a machine may be believed to be alive
//! ```
//!
//! All but the first are stored like objects: named by a hash of the content, compressed, and encrypted if the store has a
//! key. What comes back is checked against that hash before anything looks at it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hash::Namer;
use crate::seal::Sealer;
use crate::{Hash, StoreError, full_name};

pub(super) const FORMAT: u32 = 1;
/// The most bytes of each kind of object, as it is stored.
pub(super) const MOST_FORMAT: u64 = 1 << 10;
pub(super) const MOST_HEAD: u64 = 2 << 20;
pub(super) const MOST_RECORD: u64 = 4 << 20;
pub(super) const MOST_NODE: u64 = 4 << 10;
/// How many earlier records a record names.
pub(super) const PREVIOUS: usize = 32;
/// How many commits are in a record at most: their commands take at most a megabyte.
pub(super) const TOGETHER: usize = 256;
/// Numbers that other machines gave to commits are only believed up to here.
const LARGEST_NUMBER: i64 = 1 << 48;

pub(super) type Name = [u8; 32];

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: u32,
    pub(super) name: String,
    /// Distinguishes it from others that had the name before.
    pub(super) id: [u8; 16],
    pub(super) kind: u8,
    pub(super) created: i64,
    pub(super) meta: String,
    /// Rises with each change: a server that returns an old head is noticed.
    pub(super) generation: u64,
    /// The newest record, and the commit it is at.
    pub(super) record: Option<Name>,
    pub(super) commit: Option<Name>,
    pub(super) tags: BTreeMap<String, Name>,
    pub(super) lease: Option<Holder>,
    /// Nothing has this name any more. The object stays: nothing could delete it and be sure that it had not changed.
    pub(super) removed: bool,
}

/// Who may move a head.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Holder {
    pub(super) node: [u8; 16],
    pub(super) holder: String,
}

impl Head {
    pub(super) fn new(name: &str, id: [u8; 16], (kind, created, meta): (u8, i64, String)) -> Head {
        Head {
            format: FORMAT,
            name: name.to_owned(),
            id,
            kind,
            created,
            meta,
            generation: 1,
            record: None,
            commit: None,
            tags: BTreeMap::new(),
            lease: None,
            removed: false,
        }
    }

    fn is_sound(&self) -> bool {
        let lease = self.lease.as_ref().is_none_or(|lease| lease.holder.len() <= 400);
        full_name(&self.name).as_deref() == Ok(&self.name)
            && self.kind <= 1
            && (0..1 << 48).contains(&self.created)
            && self.record.is_some() == self.commit.is_some()
            && self.tags.keys().all(|tag| !tag.contains(['\n', '\0']) && tag.len() <= 400)
            && lease
    }
}

/// Commits that were uploaded together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    format: u32,
    /// Those before, newest first.
    pub(super) previous: Vec<Name>,
    /// Oldest first.
    pub(super) commits: Vec<CommitRecord>,
}

/// A commit, named by the hash of this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CommitRecord {
    pub(super) head: [u8; 16],
    /// Its number where it was made. Others use it, too, if they can.
    pub(super) number: i64,
    pub(super) parent: Option<Name>,
    pub(super) root: Name,
    pub(super) time: i64,
    pub(super) command: Vec<u8>,
    pub(super) exit_code: Option<i32>,
    pub(super) bytes: i64,
}

impl CommitRecord {
    pub(super) fn name(&self, namer: &Namer) -> Result<Name, StoreError> {
        Ok(namer.name(&[], &encode(self)?).0)
    }

    fn is_sound(&self) -> bool {
        (1..LARGEST_NUMBER).contains(&self.number)
            && (0..1 << 48).contains(&self.time)
            && self.command.len() <= crate::commit::COMMAND
            && self.bytes >= 0
    }
}

impl Record {
    pub(super) fn new(previous: Vec<Name>, commits: Vec<CommitRecord>) -> Record {
        Record { format: FORMAT, previous, commits }
    }

    fn is_sound(&self) -> bool {
        self.previous.len() <= PREVIOUS
            && (1..=TOGETHER).contains(&self.commits.len())
            && self.commits.iter().all(CommitRecord::is_sound)
    }
}

/// Until when a machine may be believed to be alive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Node {
    pub(super) expires: i64,
}

fn encode(value: &impl Serialize) -> Result<Vec<u8>, StoreError> {
    postcard::to_stdvec(value).map_err(|error| StoreError::Io(format!("cannot be encoded: {error}")))
}

/// Packs a value as an object is packed. Returns its name and the bytes.
pub(super) fn seal(sealer: &Sealer, value: &impl Serialize) -> Result<(Hash, Vec<u8>), StoreError> {
    let plain = encode(value)?;
    let hash = sealer.namer.name(&[], &plain);
    let (kind, body) = sealer.seal(&hash, &[], &plain)?;
    Ok((hash, [&hash.0[..], &[kind as u8], &body].concat()))
}

/// Reverses it. Returns the name, too: a caller that knows it compares.
pub(super) fn open<T: for<'a> Deserialize<'a>>(
    sealer: &Sealer,
    stored: &[u8],
) -> Result<(Hash, T), StoreError> {
    let short = || StoreError::Malformed("it is too short".to_owned());
    let (hash, rest) = stored.split_first_chunk::<32>().ok_or_else(short)?;
    let (kind, body) = rest.split_first().ok_or_else(short)?;
    let hash = Hash(*hash);
    let object = sealer.open(&hash, i64::from(*kind), body)?;
    let (value, left): (T, &[u8]) = postcard::take_from_bytes(&object.bytes)
        .map_err(|error| StoreError::Malformed(format!("it cannot be decoded: {error}")))?;
    if !object.links.is_empty() || !left.is_empty() {
        return Err(StoreError::Malformed("it has more than it should".to_owned()));
    }
    Ok((hash, value))
}

fn check_format(found: u32) -> Result<(), StoreError> {
    if found == FORMAT {
        return Ok(());
    }
    Err(StoreError::Version { found: i64::from(found), known: i64::from(FORMAT) })
}

pub(super) fn open_head(sealer: &Sealer, name: &str, stored: &[u8]) -> Result<Head, StoreError> {
    let (_, head): (_, Head) = open(sealer, stored)?;
    check_format(head.format)?;
    if head.name != name || !head.is_sound() {
        return Err(StoreError::Malformed("it is not the head of this name".to_owned()));
    }
    Ok(head)
}

pub(super) fn open_record(sealer: &Sealer, name: &Name, stored: &[u8]) -> Result<Record, StoreError> {
    let (hash, record): (_, Record) = open(sealer, stored)?;
    check_format(record.format)?;
    if hash.0 != *name || !record.is_sound() {
        return Err(StoreError::Malformed("its content does not match its name".to_owned()));
    }
    Ok(record)
}

pub(super) fn open_node(sealer: &Sealer, stored: &[u8]) -> Result<Node, StoreError> {
    Ok(open(sealer, stored)?.1)
}

/// Writes the object that says what store this is. It is readable without the key.
pub(super) fn write_format(id: &str, key_check: &[u8]) -> Vec<u8> {
    let check: String = key_check.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("wardian store {FORMAT}\nid {id}\nkey {check}\n").into_bytes()
}

/// Reads it: returns the id and the check of the key, in hexadecimal digits.
pub(super) fn read_format(stored: &[u8]) -> Result<(String, String), StoreError> {
    let bad = || StoreError::Malformed("it does not say which store it is".to_owned());
    let text = std::str::from_utf8(stored).map_err(|_| bad())?;
    let mut lines = text.lines();
    let mut value = |key: &str| lines.next().and_then(|line| line.strip_prefix(key)).map(str::trim);
    let format: u32 = value("wardian store ").and_then(|format| format.parse().ok()).ok_or_else(bad)?;
    check_format(format)?;
    let id = value("id ").filter(|id| id.len() == 32).ok_or_else(bad)?.to_owned();
    let check = value("key").ok_or_else(bad)?.to_owned();
    Ok((id, check))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_back_is_what_was_written_or_an_error() {
        let sealer = Sealer::new(None);
        let head = Head::new("team/box", [1; 16], (0, 5, "meta".to_owned()));
        let (_, stored) = seal(&sealer, &head).expect("sealed");
        assert_eq!(open_head(&sealer, "team/box", &stored), Ok(head));
        assert!(open_head(&sealer, "team/other", &stored).is_err(), "heads cannot be swapped");
        for length in 0..stored.len() {
            assert!(open_head(&sealer, "team/box", &stored[..length]).is_err());
        }
        for place in 0..stored.len() {
            let mut damaged = stored.clone();
            damaged[place] ^= 1;
            // The bit that says "has links" says nothing without them.
            let _ = open_head(&sealer, "team/box", &damaged);
            if !(32..=33).contains(&place) {
                assert!(open_head(&sealer, "team/box", &damaged).is_err(), "{place}");
            }
        }
    }

    #[test]
    fn the_format_is_checked() {
        let written = write_format(&"a".repeat(32), &[1, 2]);
        assert_eq!(read_format(&written), Ok(("a".repeat(32), "0102".to_owned())));
        let plain = write_format(&"a".repeat(32), &[]);
        assert_eq!(read_format(&plain), Ok(("a".repeat(32), String::new())));
        let newer = String::from_utf8_lossy(&written).replace("store 1", "store 9");
        assert_eq!(read_format(newer.as_bytes()), Err(StoreError::Version { found: 9, known: 1 }));
        assert!(read_format(b"something else").is_err());
    }
}
