//! Locks on files: of whole files (`flock`) and of ranges of bytes (`fcntl`). They keep nobody from reading or writing, only
//! from the same lock.
//!
//! A lock belongs to an open file description, and goes with its last descriptor; or, as POSIX has it for ranges, to a
//! process, and goes when that closes any descriptor of the file. Locks of whole files and of ranges do not see each other.
//! They belong to one machine: its forks begin without them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::sync::Notify;
use wardian_vfs::{Errno, Place, Result};

use crate::limits::{Charge, Meter};
use crate::pause::pause;
use crate::proc::{Pid, Process};

/// The most locks in a machine: setting one looks at all of its file.
const MOST: usize = 4_096;
/// What a lock costs.
const COST: usize = 256;

/// Whose lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Process(Pid),
    Description(u64),
}

/// What is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The file as a whole, for `flock`.
    Whole,
    /// Bytes from the first number up to the second.
    Range(u64, u64),
}

impl Extent {
    fn meets(self, other: Extent) -> bool {
        match (self, other) {
            (Extent::Whole, Extent::Whole) => true,
            (Extent::Range(start, end), Extent::Range(from, to)) => start < to && from < end,
            _ => false,
        }
    }

    /// What is left of it without `other`.
    fn without(self, other: Extent) -> impl Iterator<Item = Extent> {
        let left = match (self, other) {
            (Extent::Range(start, end), Extent::Range(from, to)) if self.meets(other) => {
                [Some((start, from)), Some((to, end))]
            }
            (Extent::Range(start, end), _) => [Some((start, end)), None],
            (Extent::Whole, _) => [None, None],
        };
        left.into_iter()
            .flatten()
            .filter(|(start, end)| start < end)
            .map(|(start, end)| Extent::Range(start, end))
    }
}

/// A lock that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) owner: Owner,
    pub(crate) extent: Extent,
    pub(crate) exclusive: bool,
}

impl Held {
    fn excludes(&self, other: &Held) -> bool {
        self.owner != other.owner && (self.exclusive || other.exclusive) && self.extent.meets(other.extent)
    }
}

/// All locks of a machine.
#[derive(Default)]
pub(crate) struct Locks {
    state: Mutex<State>,
    /// Some lock was given back.
    changed: Notify,
}

#[derive(Default)]
struct State {
    files: HashMap<Place, Vec<(Held, Charge)>>,
    /// Which process waits for a lock of which other.
    waiting: HashMap<Pid, Pid>,
}

impl State {
    fn count(&self) -> usize {
        self.files.values().map(Vec::len).sum()
    }

    fn obstacle(&self, place: &Place, wanted: &Held) -> Option<Held> {
        self.files.get(place)?.iter().map(|(held, _)| *held).find(|held| held.excludes(wanted))
    }

    /// Takes `extent` of a file away from its owner, and returns whether it had any of it. A lock in the middle of which a hole
    /// is made becomes two; if there is no room for the second, nothing is done.
    fn take(&mut self, place: &Place, owner: Owner, extent: Extent, meter: &Arc<Meter>) -> Result<bool> {
        let count = self.count();
        let Some(locks) = self.files.get_mut(place) else { return Ok(false) };
        let is_hit = |held: &Held| held.owner == owner && held.extent.meets(extent);
        if !locks.iter().any(|(held, _)| is_hit(held)) {
            return Ok(false);
        }
        // Locks of one owner do not meet, so at most one of them is split.
        let splits = locks.iter().any(|(held, _)| is_hit(held) && held.extent.without(extent).count() > 1);
        if splits && count >= MOST {
            return Err(Errno::ENOLCK);
        }
        let mut spare = if splits { Some(meter.hold(COST).ok_or(Errno::ENOLCK)?) } else { None };
        let mut kept = Vec::with_capacity(locks.len() + 1);
        for (held, charge) in locks.drain(..) {
            if !is_hit(&held) {
                kept.push((held, charge));
                continue;
            }
            let pieces = held.extent.without(extent).map(|extent| Held { extent, ..held });
            kept.extend(pieces.zip([Some(charge), spare.take()].into_iter().flatten()));
        }
        if kept.is_empty() {
            self.files.remove(place);
        } else {
            *locks = kept;
        }
        Ok(true)
    }

    /// Whether `other` waits, perhaps by way of others, for `process`.
    fn is_circle(&self, process: Pid, other: Pid) -> bool {
        let mut at = other;
        for _ in 0..=self.waiting.len() {
            if at == process {
                return true;
            }
            match self.waiting.get(&at) {
                Some(next) => at = *next,
                None => return false,
            }
        }
        false
    }
}

/// Forgets that a process waits, however its waiting ends.
struct Waiting<'a>(&'a Locks, Pid);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state.lock().waiting.remove(&self.1);
    }
}

impl Locks {
    /// A number for a description that locks something.
    pub(crate) fn new_description() -> Owner {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        Owner::Description(NUMBERS.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns whether anything is locked.
    pub(crate) fn is_any(&self) -> bool {
        !self.state.lock().files.is_empty()
    }

    /// Returns a lock that keeps `wanted` from being set.
    pub(crate) fn obstacle(&self, place: &Place, wanted: &Held) -> Option<Held> {
        self.state.lock().obstacle(place, wanted)
    }

    /// Gives back what the owner has of this extent.
    pub(crate) fn unlock(
        &self,
        place: &Place,
        owner: Owner,
        extent: Extent,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        if self.state.lock().take(place, owner, extent, meter)? {
            self.changed.notify_waiters();
        }
        Ok(())
    }

    /// Sets a lock, in place of what its owner has there, or returns who is in the way.
    fn try_lock(&self, place: &Place, wanted: Held, meter: &Arc<Meter>) -> Result<Option<Held>> {
        let mut state = self.state.lock();
        if wanted.extent == Extent::Whole {
            // A lock that is changed is given back first. Nobody is woken for nothing: that would be the caller itself, too.
            if state.take(place, wanted.owner, wanted.extent, meter)? {
                self.changed.notify_waiters();
            }
        }
        if let Some(obstacle) = state.obstacle(place, &wanted) {
            return Ok(Some(obstacle));
        }
        if state.count() >= MOST {
            return Err(Errno::ENOLCK);
        }
        let charge = meter.hold(COST).ok_or(Errno::ENOLCK)?;
        state.take(place, wanted.owner, wanted.extent, meter)?;
        state.files.entry(place.clone()).or_default().push((wanted, charge));
        // A lock that others may share now makes way for them.
        self.changed.notify_waiters();
        Ok(None)
    }

    /// Sets a lock for `process`, and waits for it if it `waits`; else returns EAGAIN. Returns EDEADLK if the process would
    /// wait for itself.
    pub(crate) async fn lock(
        &self,
        process: &Process,
        place: &Place,
        wanted: Held,
        waits: bool,
        meter: &Arc<Meter>,
    ) -> Result<()> {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let Some(obstacle) = self.try_lock(place, wanted, meter)? else { return Ok(()) };
            if !waits {
                return Err(Errno::EAGAIN);
            }
            let _waiting = self.wait_for(process.pid, wanted.owner, obstacle.owner)?;
            let event = async {
                changed.await;
                Ok(())
            };
            process.interruptible(event).await?;
            // Others may change their locks without end, and each change wakes this one: its worker is not its own.
            pause().await;
        }
    }

    fn wait_for(&self, process: Pid, owner: Owner, other: Owner) -> Result<Option<Waiting<'_>>> {
        let (Owner::Process(_), Owner::Process(other)) = (owner, other) else { return Ok(None) };
        let mut state = self.state.lock();
        if state.is_circle(process, other) {
            return Err(Errno::EDEADLK);
        }
        state.waiting.insert(process, other);
        Ok(Some(Waiting(self, process)))
    }

    /// Gives back what a description, or a process that closes the file, has of it.
    pub(crate) fn release(&self, place: &Place, owner: Owner) {
        let mut state = self.state.lock();
        let Some(locks) = state.files.get_mut(place) else { return };
        locks.retain(|(held, _)| held.owner != owner);
        if locks.is_empty() {
            state.files.remove(place);
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Gives back everything that a process has locked.
    pub(crate) fn release_process(&self, pid: Pid) {
        let mut state = self.state.lock();
        if state.files.is_empty() {
            return;
        }
        state.files.retain(|_, locks| {
            locks.retain(|(held, _)| held.owner != Owner::Process(pid));
            !locks.is_empty()
        });
        drop(state);
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_is_split_where_another_meets_it() {
        let range = |start, end| Extent::Range(start, end);
        let left = |one: Extent, other| one.without(other).collect::<Vec<_>>();
        assert_eq!(left(range(0, 10), range(3, 5)), [range(0, 3), range(5, 10)]);
        assert_eq!(left(range(0, 10), range(0, 5)), [range(5, 10)]);
        assert_eq!(left(range(0, 10), range(5, 20)), [range(0, 5)]);
        assert_eq!(left(range(0, 10), range(0, 10)), []);
        assert_eq!(left(range(0, 10), range(10, 20)), [range(0, 10)]);
        assert!(!range(0, 10).meets(Extent::Whole));
    }
}
