//! A map from numbers to objects, as a Merkle tree: changing one entry rewrites the nodes above it, and no others.
//!
//! ```text
//! level 2                 [ 0 ]
//! level 1        [ 0 ]           [ 1 ]            a node: which of its 64 children exist, and links to them
//! level 0     5    17    63    64      90         keys, each with the object it stands for
//! ```
//!
//! Its shape depends only on the entries, so equal maps have equal roots, whatever way they came about.

use std::collections::{BTreeMap, BTreeSet};

use crate::{Batch, Hash, Object, Store, StoreError};

const BITS: u32 = 6;
const WIDTH: u64 = 1 << BITS;
/// 2^66 keys.
const MOST_LEVELS: u32 = 11;

/// Such a map, with what is remembered of its nodes: only what changed since is written again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Index {
    /// The entries, then the nodes of each level, by number.
    levels: Vec<BTreeMap<u64, Hash>>,
    changed: BTreeSet<u64>,
}

impl Index {
    /// An empty map.
    pub fn new() -> Index {
        Index::default()
    }

    /// Returns an entry.
    pub fn get(&self, key: u64) -> Option<Hash> {
        self.levels.first()?.get(&key).copied()
    }

    /// Returns all entries, in rising order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, Hash)> + '_ {
        self.levels.first().into_iter().flatten().map(|(key, hash)| (*key, *hash))
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.levels.first().map_or(0, BTreeMap::len)
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets or removes an entry.
    pub fn set(&mut self, key: u64, hash: Option<Hash>) {
        if self.levels.is_empty() {
            self.levels.push(BTreeMap::new());
        }
        let entries = &mut self.levels[0];
        let before = match hash {
            Some(hash) => entries.insert(key, hash),
            None => entries.remove(&key),
        };
        if before != hash {
            self.changed.insert(key);
        }
    }

    /// Writes the nodes that changed, and returns the root; `None` for an empty map.
    pub fn write(&mut self, batch: &mut Batch) -> Option<Hash> {
        let last = *self.levels.first()?.keys().next_back()?;
        let height = levels_for(last);
        let mut changed = std::mem::take(&mut self.changed);
        if self.levels.len() != height as usize + 1 {
            // It grew or shrank by a level: rare, and the nodes are few.
            self.levels.truncate(1);
            self.levels.resize(height as usize + 1, BTreeMap::new());
            changed = self.levels[0].keys().copied().collect();
        }
        for level in 1..=height as usize {
            let parents: BTreeSet<u64> = changed.iter().map(|number| number >> BITS).collect();
            for &parent in &parents {
                let node = self.node(level, parent, batch);
                match node {
                    Some(hash) => self.levels[level].insert(parent, hash),
                    None => self.levels[level].remove(&parent),
                };
            }
            changed = parents;
        }
        self.levels.last()?.get(&0).copied()
    }

    /// Writes one node, from its children.
    fn node(&self, level: usize, number: u64, batch: &mut Batch) -> Option<Hash> {
        let first = number << BITS;
        let (mut present, mut links) = (0u64, Vec::new());
        for (child, hash) in self.levels[level - 1].range(first..=first + (WIDTH - 1)) {
            present |= 1 << (child - first);
            links.push(*hash);
        }
        let bytes = [&[level as u8][..], &present.to_le_bytes()].concat();
        (present != 0).then(|| batch.put(&links, &bytes))
    }

    /// Reads a map.
    pub fn read(store: &Store, root: Option<Hash>) -> Result<Index, StoreError> {
        let Some(root) = root else { return Ok(Index::new()) };
        let top = store.get(&root)?;
        let height = parse(&root, &top)?.0;
        let mut levels = vec![BTreeMap::new(); height as usize + 1];
        levels[height as usize].insert(0, root);
        let mut nodes = vec![(0, root, top)];
        for level in (1..=height).rev() {
            let mut below = Vec::new();
            for (number, hash, node) in std::mem::take(&mut nodes) {
                let (found, present) = parse(&hash, &node)?;
                if found != level {
                    return Err(StoreError::Damaged { hash, why: "a node of another level".to_owned() });
                }
                let children = (0..WIDTH).filter(|bit| present & (1 << bit) != 0);
                for (bit, link) in children.zip(&node.links) {
                    below.push(((number << BITS) | bit, *link));
                }
            }
            levels[level as usize - 1] = below.iter().copied().collect();
            if level > 1 {
                for (number, hash) in below {
                    nodes.push((number, hash, store.get(&hash)?));
                }
            }
        }
        Ok(Index { levels, changed: BTreeSet::new() })
    }
}

/// Returns how many levels of nodes a map up to this key has.
fn levels_for(last: u64) -> u32 {
    (u64::BITS - last.leading_zeros()).div_ceil(BITS).max(1)
}

/// Returns a node's level and which children it has.
fn parse(hash: &Hash, node: &Object) -> Result<(u32, u64), StoreError> {
    let damaged = |why: &str| StoreError::Damaged { hash: *hash, why: why.to_owned() };
    let &[level, ref present @ ..] = &node.bytes[..] else { return Err(damaged("not a node")) };
    let present = u64::from_le_bytes(present.try_into().map_err(|_| damaged("not a node"))?);
    let sound =
        (1..=MOST_LEVELS).contains(&u32::from(level)) && present.count_ones() as usize == node.links.len();
    if sound { Ok((u32::from(level), present)) } else { Err(damaged("not a node")) }
}
