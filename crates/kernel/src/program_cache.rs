//! Compiled programs, found without compiling them again.
//!
//! What ships with Wardian stays. What users bring is kept by bytes of code, for its owners ([`Family`]): each has a
//! share that the others cannot take, and where all shares together are too many, the largest one gives way. The same
//! bytes brought by two owners are compiled once, and charged to both.

use std::collections::HashMap;
use std::sync::Arc;

use crate::family::Family;
use crate::program::{Known, Later, Program};

/// The most code that is kept for one owner. The program used last is kept in any case.
const MOST_EACH: u64 = 64 << 20;
/// The most code that is kept for all of them.
const MOST: u64 = 256 << 20;
/// The least a program counts for: mappings, a descriptor and tables, however small its code is.
const LEAST: u64 = 256 << 10;

type Hash = [u8; 32];

/// All programs that are known.
#[derive(Default)]
pub(crate) struct ProgramCache {
    /// What ships with us, by the version of the file it is installed as.
    system: HashMap<u64, Known>,
    /// Users' own.
    pub(crate) user: UserCache<Program>,
}

impl ProgramCache {
    pub(crate) fn register(&mut self, version: u64, program: Known) {
        self.system.insert(version, program);
    }

    /// What ships with us and was not loaded when it was registered.
    pub(crate) fn later(&self) -> Vec<Arc<Later>> {
        let later = |known: &Known| if let Known::Later(later) = known { Some(later.clone()) } else { None };
        self.system.values().filter_map(later).collect()
    }

    /// The program a file of this version holds, if it ships with us or this owner started it before and it was not
    /// changed since.
    pub(crate) fn by_version(&mut self, owner: &Family, version: u64) -> Option<Known> {
        let system = self.system.get(&version).cloned();
        system.or_else(|| self.user.by_version(owner, version).map(Known::Ready))
    }
}

/// Programs that users brought.
pub(crate) struct UserCache<P> {
    /// By the hash of their bytes.
    kept: HashMap<Hash, Kept<P>>,
    /// The same by owner, and the version of the file it was last started from.
    versions: HashMap<(u64, u64), Hash>,
    /// Counts uses, to tell which was longest ago.
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
    /// 0 for a host's file, which has none.
    version: u64,
    used: u64,
}

/// Programs that nobody keeps any more. To be dropped without the cache's lock: unmapping code takes its time.
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

    /// The program of these bytes, whoever brought them, now in a file of this owner's.
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

    /// Keeps a program of so many bytes of code for an owner.
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
        let new = Kept { program, bytes: bytes.max(LEAST), owners: Vec::new() };
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

    /// Lets go of all that is kept for an owner who is gone.
    pub(crate) fn forget(&mut self, owner: &Family) -> Evicted<P> {
        let mut evicted = Evicted(Vec::new());
        while let Some(hash) = self.oldest_of(owner.id()) {
            self.take_from(owner.id(), hash, &mut evicted);
        }
        evicted
    }

    /// Back within what `owner` may keep besides the program used last, and within what all may.
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

    /// What the owner has used longest ago.
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
        assert!(bytes(&cache) <= MOST_EACH + (1 << 20));
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
