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
    /// Users' own, by the hash of their bytes.
    user: HashMap<Hash, UserProgram>,
    /// The same by owner, and the version of the file it was last started from.
    versions: HashMap<(u64, u64), Hash>,
    /// Counts uses, to tell which was longest ago.
    now: u64,
}

struct UserProgram {
    program: Arc<Program>,
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
#[derive(Default)]
pub(crate) struct Evicted(Vec<Arc<Program>>);

impl ProgramCache {
    pub(crate) fn register(&mut self, version: u64, program: Known) {
        self.system.insert(version, program);
    }

    /// What ships with us and was not loaded when it was registered.
    pub(crate) fn later(&self) -> Vec<Arc<Later>> {
        let later = |known: &Known| if let Known::Later(later) = known { Some(later.clone()) } else { None };
        self.system.values().filter_map(later).collect()
    }

    /// The program a file of this version holds, if this owner started it before and it was not changed since.
    pub(crate) fn by_version(&mut self, owner: &Family, version: u64) -> Option<Known> {
        if let Some(known) = self.system.get(&version) {
            return Some(known.clone());
        }
        let hash = self.versions.get(&(owner.id(), version))?;
        let kept = self.user.get_mut(hash)?;
        self.now += 1;
        let share = kept.owners.iter_mut().find(|share| share.owner == owner.id())?;
        share.used = self.now;
        Some(Known::Ready(kept.program.clone()))
    }

    /// The program of these bytes, whoever brought them, now in a file of this owner's.
    pub(crate) fn by_hash(
        &mut self,
        owner: &Family,
        hash: Hash,
        version: u64,
    ) -> Option<(Arc<Program>, Evicted)> {
        let program = self.user.get(&hash)?.program.clone();
        let evicted = self.keep(owner, hash, version, program.clone());
        Some((program, evicted))
    }

    /// Keeps a program for an owner.
    pub(crate) fn keep(
        &mut self,
        owner: &Family,
        hash: Hash,
        version: u64,
        program: Arc<Program>,
    ) -> Evicted {
        let owner = owner.id();
        self.now += 1;
        let mut evicted = Evicted::default();
        let bytes = program.code_bytes().max(LEAST);
        let kept = self.user.entry(hash).or_insert(UserProgram { program, bytes, owners: Vec::new() });
        if let Some(before) = kept.owners.iter().position(|share| share.owner == owner) {
            self.versions.remove(&(owner, kept.owners.swap_remove(before).version));
        }
        kept.owners.push(Share { owner, version, used: self.now });
        if version != 0 {
            self.versions.insert((owner, version), hash);
        }
        self.make_room(owner, hash, &mut evicted);
        evicted
    }

    /// Lets go of all that is kept for an owner who is gone.
    pub(crate) fn forget(&mut self, owner: &Family) -> Evicted {
        let mut evicted = Evicted::default();
        while let Some(hash) = self.oldest_of(owner.id()) {
            self.take_from(owner.id(), hash, &mut evicted);
        }
        evicted
    }

    /// Back within what `owner` may keep besides the program used last, and within what all may.
    fn make_room(&mut self, owner: u64, last: Hash, evicted: &mut Evicted) {
        while self.shares().get(&owner).is_some_and(|bytes| *bytes > MOST_EACH)
            && let Some(hash) = self.oldest_of(owner)
            && hash != last
        {
            self.take_from(owner, hash, evicted);
        }
        while self.user.values().map(|kept| kept.bytes).sum::<u64>() > MOST
            && let Some((largest, _)) = self.shares().into_iter().max_by_key(|(_, bytes)| *bytes)
            && let Some(hash) = self.oldest_of(largest)
        {
            self.take_from(largest, hash, evicted);
        }
    }

    /// Bytes kept for each owner.
    fn shares(&self) -> HashMap<u64, u64> {
        let mut shares = HashMap::new();
        for kept in self.user.values() {
            kept.owners.iter().for_each(|share| *shares.entry(share.owner).or_default() += kept.bytes);
        }
        shares
    }

    /// What the owner has used longest ago.
    fn oldest_of(&self, owner: u64) -> Option<Hash> {
        let used = |kept: &UserProgram| Some(kept.owners.iter().find(|share| share.owner == owner)?.used);
        let oldest = self.user.iter().filter_map(|(hash, kept)| Some((used(kept)?, *hash))).min();
        oldest.map(|(_, hash)| hash)
    }

    fn take_from(&mut self, owner: u64, hash: Hash, evicted: &mut Evicted) {
        let Some(kept) = self.user.get_mut(&hash) else { return };
        if let Some(at) = kept.owners.iter().position(|share| share.owner == owner) {
            self.versions.remove(&(owner, kept.owners.swap_remove(at).version));
        }
        if kept.owners.is_empty() {
            evicted.0.extend(self.user.remove(&hash).map(|kept| kept.program));
        }
    }
}
