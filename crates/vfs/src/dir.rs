//! Directories: ordered maps from a hash of the name to the entry.
//!
//! Entries are ordered by hash, so the position of an entry never depends on its neighbours, and a `readdir` cursor (the
//! key to continue from) stays valid whatever is added or removed meanwhile.
//!
//! ```text
//! cursor   0    1     256 ...                               ... 2^63
//! entry    .    ..    hash(name) << 8 | n      n tells names of equal hash apart
//! ```

use crate::name::Name;
use crate::place::{Ino, MountId, MountSpot};
use crate::quota::name_cost;
use imbl::OrdMap;
use std::hash::Hasher;

/// One name in a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    pub(crate) target: Target,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Inode(Ino),
    /// The same, under a name that was installed with the system: the quota does not count it.
    System(Ino),
    /// In an overlay: the lower directory's entry of this name is hidden.
    Whiteout,
}

impl Target {
    pub(crate) fn ino(self) -> Option<Ino> {
        match self {
            Target::Inode(ino) | Target::System(ino) => Some(ino),
            Target::Whiteout => None,
        }
    }

    /// Returns what the quota counts for a name with this target.
    pub(crate) fn cost(self, name: &[u8]) -> u64 {
        if matches!(self, Target::System(_)) { 0 } else { name_cost(name) }
    }
}

/// The body of a directory.
#[derive(Clone)]
pub(crate) struct Dir {
    entries: OrdMap<u64, Entry>,
    /// How many entries had to be moved because another name has the same hash; almost always none.
    displaced: u32,
    pub(crate) subdirs: u32,
    pub(crate) whiteouts: u32,
    /// The directory this one is in, and its name there: this makes `getcwd` cheap.
    pub(crate) parent: Ino,
    pub(crate) name: Name,
    /// The host directory that shows through, in an overlay.
    pub(crate) lower: Option<MountSpot>,
    /// The mount that covers this directory.
    pub(crate) covered_by: Option<MountId>,
}

const VARIANTS: u64 = 256;

impl Dir {
    pub(crate) fn new(parent: Ino, name: &[u8]) -> Dir {
        Dir {
            entries: OrdMap::new(),
            displaced: 0,
            subdirs: 0,
            whiteouts: 0,
            parent,
            name: Name::new(name),
            lower: None,
            covered_by: None,
        }
    }

    /// Returns the number of names, not counting whiteouts.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.whiteouts as usize
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<Target> {
        let key = self.key_of(name)?;
        self.entries.get(&key).map(|entry| entry.target)
    }

    /// Returns where `name` is, if it exists.
    fn key_of(&self, name: &[u8]) -> Option<u64> {
        let first = first_key(name);
        if self.displaced == 0 {
            return self.entries.get(&first).filter(|entry| *entry.name == *name).map(|_| first);
        }
        let same = self.entries.range(first..first + VARIANTS);
        same.into_iter().find(|(_, entry)| *entry.name == *name).map(|(key, _)| *key)
    }

    /// Inserts `name`, replacing an entry with this name. Returns false if 256 names share its hash, which would take an
    /// attacker years.
    #[must_use]
    pub(crate) fn put(&mut self, name: &Name, target: Target) -> bool {
        self.take(name);
        let first = first_key(name);
        let Some(key) = (first..first + VARIANTS).find(|key| !self.entries.contains_key(key)) else {
            return false;
        };
        self.displaced += u32::from(key != first);
        self.whiteouts += u32::from(target == Target::Whiteout);
        self.entries.insert(key, Entry { name: name.clone(), target });
        true
    }

    /// Removes `name`.
    pub(crate) fn take(&mut self, name: &[u8]) -> Option<Target> {
        let key = self.key_of(name)?;
        let entry = self.entries.remove(&key)?;
        self.whiteouts -= u32::from(entry.target == Target::Whiteout);
        Some(entry.target)
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        (self.displaced, self.subdirs, self.whiteouts) = (0, 0, 0);
    }

    /// Returns the entries from a cursor on, with their keys.
    pub(crate) fn entries_from(&self, key: u64) -> impl Iterator<Item = (u64, &Entry)> {
        self.entries.range(key..).map(|(key, entry)| (*key, entry))
    }

    /// Returns the names and their targets, without whiteouts.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Name, Ino)> {
        self.entries.values().filter_map(|entry| Some((&entry.name, entry.target.ino()?)))
    }

    /// Returns the memory that all names in it take, whether or not the quota counts them.
    pub(crate) fn names_memory(&self) -> u64 {
        self.entries.values().map(|entry| name_cost(&entry.name)).sum()
    }

    /// Returns what the quota counts for all names in it.
    pub(crate) fn names_cost(&self) -> u64 {
        self.entries.values().map(|entry| entry.target.cost(&entry.name)).sum()
    }
}

/// The key `name` has unless another name has it already.
pub(crate) fn first_key(name: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(name);
    let hash = hasher.finish();
    #[cfg(test)]
    let hash = hash & tests::HASH_MASK.get();
    // 55 bits, so that cursors fit C's signed offsets; never 0, where `.` and `..` are.
    (hash >> 9).max(1) << 8
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::cell::Cell;
    use std::collections::BTreeMap;

    thread_local! {
        /// Lets a test make hashes collide.
        pub(crate) static HASH_MASK: Cell<u64> = const { Cell::new(u64::MAX) };
    }

    #[test]
    fn names_of_equal_hash_are_kept_apart() {
        HASH_MASK.set(0x3 << 9);
        let mut dir = Dir::new(1, b"d");
        let mut model = BTreeMap::new();
        for round in 0..3u64 {
            for i in 0..100u64 {
                let name = format!("n{i}").into_bytes();
                if (i + round) % 3 == 0 {
                    dir.take(&name);
                    model.remove(&name);
                } else {
                    assert!(dir.put(&Name::new(&name), Target::Inode(i + round)));
                    model.insert(name, i + round);
                }
            }
            for i in 0..100u64 {
                let name = format!("n{i}").into_bytes();
                assert_eq!(dir.get(&name), model.get(&name).map(|ino| Target::Inode(*ino)));
            }
            let listed: BTreeMap<_, _> = dir.iter().map(|(name, ino)| (name.to_vec(), ino)).collect();
            assert_eq!(listed, model);
            assert_eq!(dir.len(), model.len());
        }
        HASH_MASK.set(u64::MAX);
    }
}
