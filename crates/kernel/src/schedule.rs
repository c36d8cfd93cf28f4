//! Who runs next: sandboxes share the processors, whatever the number of processes each of them has.
//!
//! There are as many *slots* as guests may run at once. A process that is ready asks for one. While one is free it gets it
//! at once; otherwise it waits in its sandbox's own queue. A slot that is given back goes to the sandbox that has had the
//! least time so far, weighted, and there to the process that has waited longest. Time is virtual: what a process used,
//! times the sandbox's cost. A sandbox that was idle starts from little before the present, so that idling saves nothing up.
//!
//! This is a plain data structure. It knows nothing of threads or futures, so that its promises can be tested on their own:
//! never more holders than slots, no free slot while somebody waits, nobody forgotten, nobody starved.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};

/// A sandbox known to the scheduler.
pub(crate) type SandboxId = u64;
/// Ids are unique in the process: kernels share its capacity.
static NEXT_SANDBOX: AtomicU64 = AtomicU64::new(1);
/// A process known to the scheduler. Numbers are never used twice.
pub(crate) type SeatId = u64;

/// Charged for each turn besides its length: the work of switching. A process that keeps waking without doing anything
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
    sandboxes: HashMap<SandboxId, Sandbox>,
    seats: HashMap<SeatId, Seat<T>>,
    /// Sandboxes with a queue, by virtual time.
    waiting: Queues,
    last_number: u64,
}

struct Sandbox {
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
    /// Has a slot, for which its sandbox was charged so much in advance: otherwise whoever is first would have all slots
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
    pub(crate) fn add_sandbox(&mut self, cost: u64) -> SandboxId {
        let id = NEXT_SANDBOX.fetch_add(1, Ordering::Relaxed);
        let sandbox =
            Sandbox { cost: cost.max(1), time: self.now, usual: 0, holding: 0, queue: BTreeMap::new() };
        self.sandboxes.insert(id, sandbox);
        id
    }

    /// Forgets a sandbox. Its processes must be gone.
    pub(crate) fn remove_sandbox(&mut self, id: SandboxId) {
        self.sandboxes.remove(&id);
    }

    /// Adds a process, which does not want to run yet.
    pub(crate) fn add_seat(&mut self, sandbox: SandboxId, who: T) -> SeatId {
        let id = self.number();
        self.seats.insert(id, Seat { sandbox, who, place: Place::Away });
        id
    }

    /// Forgets a process, wherever it is, after it used its slot for `spent` if it had one. Answers what was kept for it,
    /// to be dropped by the caller, and who has its slot now.
    pub(crate) fn remove_seat(&mut self, id: SeatId, spent: u64) -> (Option<T>, Option<T>) {
        self.step_down(id, spent);
        let removed = self.seats.remove(&id).map(|seat| seat.who);
        (removed, self.pick())
    }

    /// One that is away wants to run.
    pub(crate) fn ask(&mut self, id: SeatId) -> Answer {
        let Some(seat) = self.seats.get_mut(&id).filter(|seat| seat.place == Place::Away) else {
            return Answer::Ignored;
        };
        let name = seat.sandbox;
        let Some(sandbox) = self.sandboxes.get_mut(&name) else { return Answer::Ignored };
        sandbox.catch_up(name, self.now, &mut self.waiting);
        if self.holders.len() < self.slots {
            self.now = self.now.max(sandbox.time);
            seat.place = sandbox.begin_turn(name, &mut self.waiting);
            self.holders.push(name);
            return Answer::Go;
        }
        // For those who come after the first, the others have been asked to yield already.
        let (first, time) = (sandbox.queue.is_empty(), sandbox.time);
        self.enqueue(id);
        let preempt = first && self.runs_ahead(name, time);
        if preempt {
            self.charge_preemption(name);
        }
        Answer::Wait { preempt }
    }

    /// Charges a sandbox for making the others yield: who wakes very often uses up its share by that alone.
    fn charge_preemption(&mut self, name: SandboxId) {
        if let Some(sandbox) = self.sandboxes.get_mut(&name) {
            let time = sandbox.time.saturating_add(PREEMPTION_COST.saturating_mul(sandbox.cost));
            sandbox.move_to(name, time, &mut self.waiting);
        }
    }

    /// One that had a slot used it for `spent` and waits for an event. Answers who has the slot now.
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

    /// Whether another sandbox than `name` has a slot and has had at least `time`.
    fn runs_ahead(&self, name: SandboxId, time: u64) -> bool {
        let others = self.holders.iter().filter(|holder| **holder != name);
        others.filter_map(|holder| self.sandboxes.get(holder)).any(|sandbox| sandbox.time >= time)
    }

    /// Puts one that is away at the end of its sandbox's queue.
    fn enqueue(&mut self, id: SeatId) {
        let ticket = self.number();
        let Some(seat) = self.seats.get_mut(&id) else { return };
        let Some(sandbox) = self.sandboxes.get_mut(&seat.sandbox) else { return };
        seat.place = Place::Waiting(ticket);
        sandbox.queue.insert(ticket, id);
        self.waiting.insert((sandbox.time, seat.sandbox));
    }

    /// Takes its slot or its place in the queue from a process. Answers whether it had a slot.
    fn step_down(&mut self, id: SeatId, spent: u64) -> bool {
        let Some(seat) = self.seats.get_mut(&id) else { return false };
        let (name, before) = (seat.sandbox, std::mem::replace(&mut seat.place, Place::Away));
        let Some(sandbox) = self.sandboxes.get_mut(&name) else { return false };
        match before {
            Place::Away => false,
            Place::Waiting(ticket) => {
                sandbox.queue.remove(&ticket);
                if sandbox.queue.is_empty() {
                    self.waiting.remove(&(sandbox.time, name));
                }
                false
            }
            Place::Holding(advance) => {
                sandbox.end_turn(name, advance, spent, &mut self.waiting);
                sandbox.catch_up(name, self.now, &mut self.waiting);
                if let Some(at) = self.holders.iter().position(|holder| *holder == name) {
                    self.holders.swap_remove(at);
                }
                true
            }
        }
    }

    /// Gives a free slot to whoever should have it. One call for each slot that was given back is enough: there is never a
    /// free slot while somebody waits.
    fn pick(&mut self) -> Option<T> {
        if self.holders.len() >= self.slots {
            return None;
        }
        let &(time, name) = self.waiting.first()?;
        let sandbox = self.sandboxes.get_mut(&name)?;
        let (_, id) = sandbox.queue.pop_first()?;
        if sandbox.queue.is_empty() {
            self.waiting.remove(&(time, name));
        }
        self.now = self.now.max(time);
        self.holders.push(name);
        let place = sandbox.begin_turn(name, &mut self.waiting);
        let seat = self.seats.get_mut(&id)?;
        seat.place = place;
        Some(seat.who.clone())
    }
}

/// Sandboxes with a queue, in the order in which they are served.
type Queues = BTreeSet<(u64, SandboxId)>;

impl Sandbox {
    /// Nobody is further behind than so much.
    fn catch_up(&mut self, name: SandboxId, now: u64, queues: &mut Queues) {
        self.move_to(name, self.time.max(now.saturating_sub(MOST_BEHIND)), queues);
    }

    fn charge(&self, spent: u64) -> u64 {
        spent.saturating_add(TURN_COST).saturating_mul(self.cost)
    }

    fn begin_turn(&mut self, name: SandboxId, queues: &mut Queues) -> Place {
        let advance = self.charge(self.usual);
        self.holding += 1;
        self.move_to(name, self.time.saturating_add(advance), queues);
        Place::Holding(advance)
    }

    fn end_turn(&mut self, name: SandboxId, advance: u64, spent: u64, queues: &mut Queues) {
        self.holding -= 1;
        self.usual = (self.usual / 4).saturating_mul(3).saturating_add(spent / 4);
        let time = self.time.saturating_add(self.charge(spent)).saturating_sub(advance);
        self.move_to(name, time, queues);
    }

    fn move_to(&mut self, name: SandboxId, time: u64, queues: &mut Queues) {
        if time != self.time && !self.queue.is_empty() {
            queues.remove(&(self.time, name));
            queues.insert((time, name));
        }
        self.time = time;
    }
}

#[cfg(test)]
mod tests;
