//! What the clients of one tenant may take together: sandboxes, memory and runs.
//!
//! Memory is counted by what the limits of the sandboxes allow, not by what they use now: so it is refused when a sandbox is
//! created, and never to one that runs. Files are in memory, too, so their limit counts as well.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use wardian::Limits;

use crate::rpc::RpcError;

/// How much; nothing is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Most {
    pub(crate) sandboxes: Option<usize>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) runs_per_second: Option<f64>,
}

/// The quota of one tenant, and what of it is taken.
#[derive(Debug)]
pub(crate) struct Quota {
    tenant: String,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    most: Most,
    sandboxes: usize,
    memory_bytes: u64,
    /// How many runs may begin now, and when that was so.
    runs: f64,
    since: Instant,
}

/// A place for one sandbox in memory: one of the server's and, if it has a quota, one of its tenant's.
pub(crate) struct Place {
    _server: OwnedSemaphorePermit,
    taken: Option<Taken>,
}

/// What one sandbox takes of a quota.
pub(crate) struct Taken {
    quota: Arc<Quota>,
    memory_bytes: u64,
}

impl Place {
    pub(crate) fn new(server: OwnedSemaphorePermit, taken: Option<Taken>) -> Place {
        Place { _server: server, taken }
    }

    /// Gives the server's place back, and returns what of a quota the sandbox still takes.
    pub(crate) fn leave(self) -> Option<Taken> {
        self.taken
    }
}

/// Returns how much memory a sandbox may take: its processes and its files.
pub(crate) fn memory_of(limits: &Limits) -> u64 {
    limits.memory_bytes.saturating_add(limits.fs_bytes)
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.quota.state.lock();
        state.sandboxes -= 1;
        state.memory_bytes = state.memory_bytes.saturating_sub(self.memory_bytes);
    }
}

impl Quota {
    fn new(tenant: &str) -> Quota {
        let state =
            State { most: Most::default(), sandboxes: 0, memory_bytes: 0, runs: 0.0, since: Instant::now() };
        Quota { tenant: tenant.to_owned(), state: Mutex::new(state) }
    }

    /// Sets how much it is. What is taken stays taken, also if that is more.
    fn set(&self, most: Most, now: Instant) {
        let mut state = self.state.lock();
        if state.most.runs_per_second != most.runs_per_second {
            (state.runs, state.since) = (most.runs_per_second.map_or(0.0, burst), now);
        }
        state.most = most;
    }

    /// Takes a place for a sandbox that may have so much memory.
    pub(crate) fn place(self: &Arc<Quota>, memory_bytes: u64) -> Result<Taken, RpcError> {
        let mut state = self.state.lock();
        if let Some(most) = state.most.sandboxes.filter(|most| state.sandboxes >= *most) {
            let message = format!("Maximum of {most} sandboxes of tenant {} reached", self.tenant);
            return Err(RpcError::params(message));
        }
        let sum = state.memory_bytes.saturating_add(memory_bytes);
        if let Some(most) = state.most.memory_bytes.filter(|most| sum > *most) {
            let tenant = &self.tenant;
            let message = format!(
                "ENOMEM: the limits of tenant {tenant}'s sandboxes would allow {sum} bytes of memory and files, limit {most}: give \
                 them a smaller limits.memoryBytes or fsLimitBytes"
            );
            return Err(RpcError::refused("ENOMEM", message));
        }
        state.sandboxes += 1;
        state.memory_bytes = sum;
        Ok(Taken { quota: self.clone(), memory_bytes })
    }

    /// Counts a sandbox that is there already, also if that is more than there may be.
    pub(crate) fn count(self: &Arc<Quota>, memory_bytes: u64) -> Taken {
        let mut state = self.state.lock();
        state.sandboxes += 1;
        state.memory_bytes = state.memory_bytes.saturating_add(memory_bytes);
        Taken { quota: self.clone(), memory_bytes }
    }

    /// Takes a run that begins now.
    pub(crate) fn run(&self, now: Instant) -> Result<(), RpcError> {
        let mut state = self.state.lock();
        let Some(rate) = state.most.runs_per_second else { return Ok(()) };
        let earned = now.saturating_duration_since(state.since).as_secs_f64() * rate;
        state.runs = (state.runs + earned).min(burst(rate));
        state.since = now;
        if state.runs < 1.0 {
            let message = format!("EAGAIN: tenant {} may begin {rate} runs per second", self.tenant);
            return Err(RpcError::refused("EAGAIN", message));
        }
        state.runs -= 1.0;
        Ok(())
    }
}

/// How many runs may begin at once: those of a second.
fn burst(rate: f64) -> f64 {
    if rate > 0.0 { rate.max(1.0) } else { 0.0 }
}

/// The quotas of all tenants, by the hashes of what stands for them. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quotas(Arc<Mutex<BTreeMap<String, Arc<Quota>>>>);

impl Quotas {
    /// Returns that of an owner, given by its hash.
    pub(crate) fn of(&self, owner: &str) -> Option<Arc<Quota>> {
        self.0.lock().get(owner).cloned()
    }

    /// Replaces them: the hash of an owner, the tenant's name and how much it may take. Those that are not named any more go once nothing of
    /// them is taken; until then nothing new can be.
    pub(crate) fn set(&self, all: impl Iterator<Item = (String, String, Most)>, now: Instant) {
        let mut quotas = self.0.lock();
        let mut known = std::collections::BTreeSet::new();
        for (owner, tenant, most) in all {
            quotas.entry(owner.clone()).or_insert_with(|| Arc::new(Quota::new(&tenant))).set(most, now);
            known.insert(owner);
        }
        quotas.retain(|owner, quota| {
            if !known.contains(owner) {
                quota
                    .set(Most { sandboxes: Some(0), memory_bytes: Some(0), runs_per_second: Some(0.0) }, now);
            }
            known.contains(owner) || Arc::strong_count(quota) > 1
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn quota(most: Most) -> Arc<Quota> {
        let quota = Arc::new(Quota::new("acme"));
        quota.set(most, Instant::now());
        quota
    }

    #[test]
    fn sandboxes_and_their_memory_are_counted_until_they_are_gone() {
        let quota = quota(Most { sandboxes: Some(2), memory_bytes: Some(100), ..Most::default() });
        let message = |memory| quota.place(memory).err().map(|error| error.message);
        let (first, _second) = (quota.place(60).ok(), quota.place(40).ok());
        assert_eq!(message(0).as_deref(), Some("Maximum of 2 sandboxes of tenant acme reached"));
        drop(first);
        assert!(message(61).is_some_and(|message| message.starts_with("ENOMEM: ")));
        assert_eq!(message(60), None);
        assert!(message(u64::MAX).is_some());
    }

    #[test]
    fn runs_are_limited_by_the_second() {
        let quota = quota(Most { runs_per_second: Some(2.0), ..Most::default() });
        let start = Instant::now() + Duration::from_secs(100);
        let at = |ms| quota.run(start + Duration::from_millis(ms)).is_ok();
        assert_eq!([at(0), at(0), at(0), at(400), at(600), at(700)], [true, true, false, false, true, false]);
        // A day of silence earns no more than a second.
        assert_eq!([at(86_400_000), at(86_400_000), at(86_400_000)], [true, true, false]);
    }

    #[test]
    fn a_tenant_that_is_gone_can_take_nothing_more() {
        let quotas = Quotas::default();
        let all = |names: &[&str]| {
            let named = |name: &&str| (format!("tenant:{name}"), (*name).to_owned(), Most::default());
            quotas.set(names.iter().map(named), Instant::now());
        };
        all(&["acme", "other"]);
        let acme = quotas.of("tenant:acme").expect("it is there");
        let taken = acme.place(1).ok();
        all(&["other"]);
        assert!(acme.place(1).is_err() && acme.run(Instant::now()).is_err());
        drop((acme, taken));
        all(&["other"]);
        assert!(quotas.of("tenant:acme").is_none() && quotas.of("tenant:other").is_some());
    }
}
