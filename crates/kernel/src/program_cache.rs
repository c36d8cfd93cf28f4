//! A cache of compiled programs.
//!
//! Wardian's own programs stay. Users' own are kept by bytes of code, for their owners ([`Family`]): each has a share
//! that the others cannot take, and if all shares together are too large, the largest one is reduced. The same bytes of
//! two owners are compiled once, and charged to both.

use std::collections::HashMap;
use std::sync::Arc;

use crate::descriptors;
use crate::family::Family;
use crate::program::{Known, Later, Program};

/// The most code that is kept for one owner. The program used last is always kept.
const MOST_EACH: u64 = 64 << 20;
/// The most code that is kept for all of them.
const MOST: u64 = 256 << 20;
/// The least a program counts for, however small its code is: it has mappings and tables.
const LEAST: u64 = 256 << 10;

/// The same, where the descriptors that programs hold are scarcer than memory.
fn least() -> u64 {
    LEAST.max(MOST / descriptors::most_idle_programs() as u64)
}

type Hash = [u8; 32];

/// All programs that are known.
#[derive(Default)]
pub(crate) struct ProgramCache {
    /// Programs that ship with Wardian, by the version of the file they are installed as.
    system: HashMap<u64, Known>,
    /// Users' own programs.
    pub(crate) user: UserCache<Program>,
}

impl ProgramCache {
    pub(crate) fn register(&mut self, version: u64, program: Known) {
        self.system.insert(version, program);
    }

    /// Programs that ship with Wardian and were not loaded when registered.
    pub(crate) fn registered(&self, version: u64) -> Option<Known> {
        self.system.get(&version).cloned()
    }

    /// Those that are loaded when they are first started.
    pub(crate) fn later(&self) -> Vec<Arc<Later>> {
        let later = |known: &Known| if let Known::Later(later) = known { Some(later.clone()) } else { None };
        self.system.values().filter_map(later).collect()
    }

    /// Returns the program in a file of this version, if it ships with Wardian or this owner started it before and it
    /// was not changed since.
    pub(crate) fn by_version(&mut self, owner: &Family, version: u64) -> Option<Known> {
        let system = self.system.get(&version).cloned();
        system.or_else(|| self.user.by_version(owner, version).map(Known::Ready))
    }
}

/// Users' own programs.
pub(crate) struct UserCache<P> {
    /// By the hash of their bytes.
    kept: HashMap<Hash, Kept<P>>,
    /// The same by owner, and the version of the file it was last started from.
    versions: HashMap<(u64, u64), Hash>,
    /// Counts uses, to find the least recently used.
    now: u64,
}

struct Kept<P> {
    program: Arc<P>,
    /// What it counts for.
    bytes: u64,
    /// Not empty.
    owners: Vec<Share>,
}

/// An owner's right to a program.
struct Share {
    owner: u64,
    /// 0 for a host file, which has no version.
    version: u64,
    used: u64,
}

/// Programs that no one keeps any more. Drop them without the cache's lock: unmapping code takes long.
#[must_use]
pub(crate) struct Evicted<P>(Vec<Arc<P>>);

impl<P> Default for UserCache<P> {
    fn default() -> UserCache<P> {
        UserCache { kept: HashMap::new(), versions: HashMap::new(), now: 0 }
    }
}

impl<P> UserCache<P> {
    fn by_version(&mut self, owner: &Family, version: u64) -> Option<Arc<P>> {
        let hash = self.versions.get(&(owner.id(), version))?;
        let kept = self.kept.get_mut(hash)?;
        self.now += 1;
        let share = kept.owners.iter_mut().find(|share| share.owner == owner.id())?;
        share.used = self.now;
        Some(kept.program.clone())
    }

    /// Returns the program of these bytes, from whichever owner, now in a file of this owner.
    pub(crate) fn by_hash(
        &mut self,
        owner: &Family,
        hash: Hash,
        version: u64,
    ) -> Option<(Arc<P>, Evicted<P>)> {
        let Kept { program, bytes, .. } = self.kept.get(&hash)?;
        let (program, bytes) = (program.clone(), *bytes);
        let evicted = self.keep(owner, hash, version, program.clone(), bytes);
        Some((program, evicted))
    }

    /// Keeps a program of this many bytes of code for an owner.
    pub(crate) fn keep(
        &mut self,
        owner: &Family,
        hash: Hash,
        version: u64,
        program: Arc<P>,
        bytes: u64,
    ) -> Evicted<P> {
        let owner = owner.id();
        self.now += 1;
        let new = Kept { program, bytes: bytes.max(least()), owners: Vec::new() };
        let kept = self.kept.entry(hash).or_insert(new);
        if let Some(before) = kept.owners.iter().position(|share| share.owner == owner) {
            self.versions.remove(&(owner, kept.owners.swap_remove(before).version));
        }
        kept.owners.push(Share { owner, version, used: self.now });
        if version != 0 {
            self.versions.insert((owner, version), hash);
        }
        let mut evicted = Evicted(Vec::new());
        self.make_room(owner, hash, &mut evicted);
        evicted
    }

    /// Drops everything kept for an owner that is gone.
    pub(crate) fn forget(&mut self, owner: &Family) -> Evicted<P> {
        let mut evicted = Evicted(Vec::new());
        while let Some(hash) = self.oldest_of(owner.id()) {
            self.take_from(owner.id(), hash, &mut evicted);
        }
        evicted
    }

    /// Evicts until `owner` and all owners are within their limits, except for the program used last.
    fn make_room(&mut self, owner: u64, last: Hash, evicted: &mut Evicted<P>) {
        while self.shares().get(&owner).is_some_and(|bytes| *bytes > MOST_EACH)
            && let Some(hash) = self.oldest_of(owner)
            && hash != last
        {
            self.take_from(owner, hash, evicted);
        }
        while self.kept.values().map(|kept| kept.bytes).sum::<u64>() > MOST
            && let Some((largest, _)) = self.shares().into_iter().max_by_key(|(_, bytes)| *bytes)
            && let Some(hash) = self.oldest_of(largest)
        {
            self.take_from(largest, hash, evicted);
        }
    }

    /// Bytes kept for each owner.
    fn shares(&self) -> HashMap<u64, u64> {
        let mut shares = HashMap::new();
        for kept in self.kept.values() {
            kept.owners.iter().for_each(|share| *shares.entry(share.owner).or_default() += kept.bytes);
        }
        shares
    }

    /// Returns what the owner has not used for longest.
    fn oldest_of(&self, owner: u64) -> Option<Hash> {
        let used = |kept: &Kept<P>| Some(kept.owners.iter().find(|share| share.owner == owner)?.used);
        let oldest = self.kept.iter().filter_map(|(hash, kept)| Some((used(kept)?, *hash))).min();
        oldest.map(|(_, hash)| hash)
    }

    fn take_from(&mut self, owner: u64, hash: Hash, evicted: &mut Evicted<P>) {
        let Some(kept) = self.kept.get_mut(&hash) else { return };
        if let Some(at) = kept.owners.iter().position(|share| share.owner == owner) {
            self.versions.remove(&(owner, kept.owners.swap_remove(at).version));
        }
        if kept.owners.is_empty() {
            evicted.0.extend(self.kept.remove(&hash).map(|kept| kept.program));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(number: u64) -> Hash {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&number.to_le_bytes());
        hash
    }

    fn add(cache: &mut UserCache<()>, owner: &Family, number: u64, bytes: u64) -> usize {
        cache.keep(owner, hash(number), number, Arc::new(()), bytes).0.len()
    }

    fn bytes(cache: &UserCache<()>) -> u64 {
        cache.kept.values().map(|kept| kept.bytes).sum()
    }

    #[test]
    fn a_flood_evicts_its_own() {
        let (mut cache, quiet, loud) = (UserCache::default(), Family::default(), Family::default());
        add(&mut cache, &quiet, 1, 1 << 20);
        for number in 2..2_000 {
            add(&mut cache, &loud, number, 3 << 20);
        }
        assert!(cache.by_version(&quiet, 1).is_some());
        assert!(bytes(&cache) <= MOST_EACH + least());
        assert!(cache.by_version(&loud, 1_999).is_some(), "its last is kept");
        assert!(cache.by_version(&loud, 2).is_none(), "its first is not");
        assert!(cache.by_version(&quiet, 1_999).is_none(), "what another has is not one's own");
    }

    #[test]
    fn a_crowd_stays_within_what_all_may_keep_and_the_largest_gives_way() {
        let (mut cache, small) = (UserCache::default(), Family::default());
        add(&mut cache, &small, 1, 1 << 20);
        let crowd: Vec<Family> = (0..20).map(|_| Family::default()).collect();
        for (number, owner) in (2..).zip(&crowd) {
            add(&mut cache, owner, number, 60 << 20);
            assert!(bytes(&cache) <= MOST);
        }
        assert!(cache.by_version(&small, 1).is_some());
    }

    #[test]
    fn one_that_is_larger_than_a_share_is_kept_alone() {
        let (mut cache, owner) = (UserCache::default(), Family::default());
        add(&mut cache, &owner, 1, 1 << 20);
        assert_eq!(add(&mut cache, &owner, 2, MOST_EACH + 1), 1);
        assert!(cache.by_version(&owner, 2).is_some());
    }

    #[test]
    fn what_two_share_goes_with_the_last() {
        let (mut cache, one, two) = (UserCache::default(), Family::default(), Family::default());
        add(&mut cache, &one, 1, 1 << 20);
        assert!(cache.by_hash(&two, hash(1), 9).is_some());
        assert!(cache.forget(&one).0.is_empty());
        assert!(cache.by_version(&two, 9).is_some());
        assert_eq!(cache.forget(&two).0.len(), 1);
        assert!(cache.kept.is_empty() && cache.versions.is_empty());
    }

    #[test]
    fn a_file_that_was_changed_is_not_the_program_it_was() {
        let (mut cache, owner) = (UserCache::default(), Family::default());
        add(&mut cache, &owner, 1, 1 << 20);
        assert!(cache.by_hash(&owner, hash(1), 5).is_some());
        assert!(cache.by_version(&owner, 1).is_none() && cache.by_version(&owner, 5).is_some());
    }
}
