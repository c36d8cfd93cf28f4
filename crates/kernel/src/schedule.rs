//! Who runs next: families of sandboxes share the processors, whatever the number of sandboxes or processes each of them has.
//!
//! There are as many *slots* as guests may run at once. A process that is ready asks for one. While one is free it gets it
//! at once; otherwise it waits in its sandbox's own queue. A slot that is given back goes to the family (a sandbox and its
//! forks) that has had the least time so far, weighted, there to the sandbox of which the same is true, and there to the
//! process that has waited longest. Time is virtual: what a process used, times the sandbox's cost. One that was idle starts
//! from little before the present, so that idling saves nothing up. New forks start at their family's present, which is why
//! four hundred of them keep nobody else waiting.
//!
//! This is a plain data structure. It knows nothing of threads or futures, so that its promises can be tested on their own:
//! never more holders than slots, no free slot while somebody waits, nobody forgotten, nobody starved.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// A sandbox known to the scheduler.
pub(crate) type SandboxId = u64;
/// A sandbox and its forks, as the kernel numbers them.
pub(crate) type FamilyId = u64;
/// Ids are unique in the process: kernels share its capacity.
static NEXT_SANDBOX: AtomicU64 = AtomicU64::new(1);
/// A process known to the scheduler. Numbers are never used twice.
pub(crate) type SeatId = u64;

/// Charged for each turn in addition to its length: the work of switching. A process that keeps waking without doing anything
/// uses the processors all the same.
const TURN_COST: u64 = 2_000;
/// Charged for making others yield early: what that costs them.
const PREEMPTION_COST: u64 = 5_000;
/// How far a sandbox can be behind the others, in nanoseconds of virtual time: a few turns. Less, and one that sleeps
/// often would wait for a turn of everybody else each time it wakes, though it uses little. More, and one that idles, or
/// has fewer processes than there are slots, would save up time and then keep the others waiting.
const MOST_BEHIND: u64 = 3_000_000;

/// The slots and those who want them. `T` is whatever is needed to tell a process that it may run.
pub(crate) struct Scheduler<T> {
    slots: usize,
    /// The sandboxes of those who have a slot, once for each slot.
    holders: Vec<SandboxId>,
    /// The latest virtual time at which a turn began.
    now: u64,
    families: HashMap<FamilyId, Family>,
    sandboxes: HashMap<SandboxId, Sandbox>,
    seats: HashMap<SeatId, Seat<T>>,
    /// Families in which somebody waits, by virtual time.
    waiting: Queue,
    last_number: u64,
}

/// Names in the order in which they are served.
type Queue = BTreeSet<(u64, u64)>;

/// A sandbox and its forks.
struct Family {
    /// The virtual time it has used.
    time: u64,
    /// The latest virtual time, of its sandboxes, at which a turn began.
    now: u64,
    /// How many sandboxes there are.
    sandboxes: usize,
    /// Those with a queue.
    waiting: Queue,
}

struct Sandbox {
    family: FamilyId,
    /// What a nanosecond costs it.
    cost: u64,
    /// The virtual time it has used, turns that are not over included by guess.
    time: u64,
    /// How long its turns were of late, in nanoseconds.
    usual: u64,
    holding: usize,
    /// Those who wait, by when they came.
    queue: BTreeMap<u64, SeatId>,
}

struct Seat<T> {
    sandbox: SandboxId,
    who: T,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Neither waits nor runs.
    Away,
    /// In its sandbox's queue, under this number.
    Waiting(u64),
    /// Has a slot, for which its sandbox was charged so much in advance: otherwise the first would have all slots
    /// at the same time.
    Holding(u64),
}

/// The answer to one who asks for a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// It has one.
    Go,
    /// It waits.
    Wait {
        /// Its sandbox has had no more than another that runs now: that one should yield early.
        preempt: bool,
    },
    /// It is not known any more, or has asked before.
    Ignored,
}

impl<T: Clone> Scheduler<T> {
    pub(crate) fn new(slots: usize) -> Scheduler<T> {
        Scheduler {
            slots: slots.max(1),
            holders: Vec::new(),
            now: 0,
            families: HashMap::new(),
            sandboxes: HashMap::new(),
            seats: HashMap::new(),
            waiting: BTreeSet::new(),
            last_number: 0,
        }
    }

    fn number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Adds a sandbox to which each nanosecond costs `cost`: twice the cost is half the share.
    pub(crate) fn add_sandbox(&mut self, family: FamilyId, cost: u64) -> SandboxId {
        let id = NEXT_SANDBOX.fetch_add(1, Ordering::Relaxed);
        let new = Family { time: self.now, now: 0, sandboxes: 0, waiting: BTreeSet::new() };
        let group = self.families.entry(family).or_insert(new);
        group.sandboxes += 1;
        let (cost, time) = (cost.max(1), group.now);
        let sandbox = Sandbox { family, cost, time, usual: 0, holding: 0, queue: BTreeMap::new() };
        self.sandboxes.insert(id, sandbox);
        id
    }

    /// Forgets a sandbox. Its processes must be gone.
    pub(crate) fn remove_sandbox(&mut self, id: SandboxId) {
        let Some(sandbox) = self.sandboxes.remove(&id) else { return };
        if let Some(family) = self.families.get_mut(&sandbox.family) {
            family.sandboxes -= 1;
            if family.sandboxes == 0 {
                self.families.remove(&sandbox.family);
            }
        }
    }

    /// Adds a process, which does not want to run yet.
    pub(crate) fn add_seat(&mut self, sandbox: SandboxId, who: T) -> SeatId {
        let id = self.number();
        self.seats.insert(id, Seat { sandbox, who, place: Place::Away });
        id
    }

    /// Forgets a process, wherever it is, after it used its slot for `spent` if it had one. Returns what was kept for it,
    /// to be dropped by the caller, and who has its slot now.
    pub(crate) fn remove_seat(&mut self, id: SeatId, spent: u64) -> (Option<T>, Option<T>) {
        self.step_down(id, spent);
        let removed = self.seats.remove(&id).map(|seat| seat.who);
        (removed, self.pick())
    }

    /// One that is away wants to run.
    pub(crate) fn ask(&mut self, id: SeatId) -> Answer {
        let Some(seat) = self.seats.get(&id).filter(|seat| seat.place == Place::Away) else {
            return Answer::Ignored;
        };
        let name = seat.sandbox;
        if self.catch_up(name).is_none() {
            return Answer::Ignored;
        }
        if self.holders.len() < self.slots {
            self.begin_turn(id, name);
            return Answer::Go;
        }
        // For those who come after the first, the others have been asked to yield already.
        let first = self.sandboxes.get(&name).is_some_and(|sandbox| sandbox.queue.is_empty());
        self.enqueue(id);
        let preempt = first && self.runs_ahead(name);
        if preempt {
            // Who wakes very often uses up its share by that alone.
            let cost = self.sandboxes.get(&name).map_or(1, |sandbox| sandbox.cost);
            self.shift(name, PREEMPTION_COST.saturating_mul(cost), 0);
        }
        Answer::Wait { preempt }
    }

    /// One that had a slot used it for `spent` and waits for an event. Returns who has the slot now.
    pub(crate) fn release(&mut self, id: SeatId, spent: u64) -> Option<T> {
        self.step_down(id, spent);
        self.pick()
    }

    /// The same for one that wants to go on: it waits behind its sandbox's others, and may be the answer itself.
    pub(crate) fn again(&mut self, id: SeatId, spent: u64) -> Option<T> {
        if self.step_down(id, spent) {
            self.enqueue(id);
        }
        self.pick()
    }

    /// Whether another sandbox has a slot and has had at least as much: by families, within a family by sandboxes.
    fn runs_ahead(&self, name: SandboxId) -> bool {
        let Some((mine, family)) = self.both(name) else { return false };
        let others = self.holders.iter().filter(|holder| **holder != name);
        others.filter_map(|holder| self.both(*holder)).any(|(other, group)| {
            match other.family == mine.family {
                true => other.time >= mine.time,
                false => group.time >= family.time,
            }
        })
    }

    fn both(&self, name: SandboxId) -> Option<(&Sandbox, &Family)> {
        let sandbox = self.sandboxes.get(&name)?;
        Some((sandbox, self.families.get(&sandbox.family)?))
    }

    /// Puts one that is away at the end of its sandbox's queue.
    fn enqueue(&mut self, id: SeatId) {
        let ticket = self.number();
        let Some(seat) = self.seats.get_mut(&id) else { return };
        let Some(sandbox) = self.sandboxes.get_mut(&seat.sandbox) else { return };
        let Some(family) = self.families.get_mut(&sandbox.family) else { return };
        seat.place = Place::Waiting(ticket);
        sandbox.queue.insert(ticket, id);
        family.waiting.insert((sandbox.time, seat.sandbox));
        self.waiting.insert((family.time, sandbox.family));
    }

    /// Takes a process out of its sandbox's queue.
    fn dequeue(&mut self, name: SandboxId, ticket: u64) -> Option<SeatId> {
        let sandbox = self.sandboxes.get_mut(&name)?;
        let family = self.families.get_mut(&sandbox.family)?;
        let id = sandbox.queue.remove(&ticket)?;
        if sandbox.queue.is_empty() {
            family.waiting.remove(&(sandbox.time, name));
            if family.waiting.is_empty() {
                self.waiting.remove(&(family.time, sandbox.family));
            }
        }
        Some(id)
    }

    /// Takes its slot or its place in the queue from a process. Returns whether it had a slot.
    fn step_down(&mut self, id: SeatId, spent: u64) -> bool {
        let Some(seat) = self.seats.get_mut(&id) else { return false };
        let (name, before) = (seat.sandbox, std::mem::replace(&mut seat.place, Place::Away));
        match before {
            Place::Away => false,
            Place::Waiting(ticket) => {
                self.dequeue(name, ticket);
                false
            }
            Place::Holding(advance) => {
                let charge = self.sandboxes.get_mut(&name).map_or(0, |sandbox| sandbox.end_turn(spent));
                self.shift(name, charge, advance);
                self.catch_up(name);
                if let Some(at) = self.holders.iter().position(|holder| *holder == name) {
                    self.holders.swap_remove(at);
                }
                true
            }
        }
    }

    /// Gives a slot to a process that does not wait any more.
    fn begin_turn(&mut self, id: SeatId, name: SandboxId) {
        let Some(sandbox) = self.sandboxes.get_mut(&name) else { return };
        let Some(family) = self.families.get_mut(&sandbox.family) else { return };
        self.now = self.now.max(family.time);
        family.now = family.now.max(sandbox.time);
        let advance = sandbox.begin_turn();
        self.holders.push(name);
        if let Some(seat) = self.seats.get_mut(&id) {
            seat.place = Place::Holding(advance);
        }
        self.shift(name, advance, 0);
    }

    /// Gives a free slot to the process that should have it. One call for each slot that was given back is enough: there is never a
    /// free slot while somebody waits.
    fn pick(&mut self) -> Option<T> {
        if self.holders.len() >= self.slots {
            return None;
        }
        let &(_, group) = self.waiting.first()?;
        let &(_, name) = self.families.get(&group)?.waiting.first()?;
        let (&ticket, _) = self.sandboxes.get(&name)?.queue.first_key_value()?;
        let id = self.dequeue(name, ticket)?;
        self.begin_turn(id, name);
        Some(self.seats.get(&id)?.who.clone())
    }

    /// Nobody is further behind than so much: no family among families, no sandbox within its own.
    fn catch_up(&mut self, name: SandboxId) -> Option<()> {
        let (sandbox, family) = self.both(name)?;
        let sandbox = sandbox.time.max(family.now.saturating_sub(MOST_BEHIND));
        let family = family.time.max(self.now.saturating_sub(MOST_BEHIND));
        self.move_to(name, sandbox, family)
    }

    /// Charges a sandbox, and with it its family, for so much more and so much less.
    fn shift(&mut self, name: SandboxId, more: u64, less: u64) {
        if let Some((sandbox, family)) = self.both(name) {
            let moved = |time: u64| time.saturating_add(more).saturating_sub(less);
            let (sandbox, family) = (moved(sandbox.time), moved(family.time));
            self.move_to(name, sandbox, family);
        }
    }

    fn move_to(&mut self, name: SandboxId, sandbox_time: u64, family_time: u64) -> Option<()> {
        let sandbox = self.sandboxes.get_mut(&name)?;
        let family = self.families.get_mut(&sandbox.family)?;
        move_in(&mut family.waiting, name, &mut sandbox.time, sandbox_time);
        move_in(&mut self.waiting, sandbox.family, &mut family.time, family_time);
        Some(())
    }
}

/// Changes a time, and the place that goes with it if the name is in the queue.
fn move_in(queue: &mut Queue, name: u64, time: &mut u64, to: u64) {
    if *time != to && queue.remove(&(*time, name)) {
        queue.insert((to, name));
    }
    *time = to;
}

impl Sandbox {
    fn charge(&self, spent: u64) -> u64 {
        spent.saturating_add(TURN_COST).saturating_mul(self.cost)
    }

    /// Returns what is charged for it in advance.
    fn begin_turn(&mut self) -> u64 {
        self.holding += 1;
        self.charge(self.usual)
    }

    /// Returns what it costs after all.
    fn end_turn(&mut self, spent: u64) -> u64 {
        self.holding -= 1;
        self.usual = (self.usual / 4).saturating_mul(3).saturating_add(spent / 4);
        self.charge(spent)
    }
}

#[cfg(test)]
mod tests;
