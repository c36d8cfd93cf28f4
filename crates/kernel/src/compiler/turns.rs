//! Who compiles next.
//!
//! Turns go by family (a sandbox and its forks), so that nobody gets more of them by forking: a family that compiles waits
//! behind those that do not, and the last free turn is only for those. Among equals the one that has waited longest since
//! its last turn is next.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The turns of a kernel.
pub(super) struct Turns(Mutex<State>);

struct State {
    free: usize,
    /// Families that compile or wait.
    families: HashMap<u64, Family>,
    /// In the order in which they came.
    waiting: VecDeque<Waiter>,
    /// How many turns were given.
    given: u64,
}

#[derive(Default)]
struct Family {
    running: usize,
    /// The number of its last turn; 0 if it had none since it was last idle.
    last: u64,
}

struct Waiter {
    family: u64,
    turn: oneshot::Sender<Turn>,
}

/// The right to compile one module: held until no process of it is left.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    family: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.0.lock().end(self.family);
        self.turns.hand_out();
    }
}

impl Turns {
    pub(super) fn new(count: usize) -> Arc<Turns> {
        let (families, waiting) = (HashMap::new(), VecDeque::new());
        Arc::new(Turns(Mutex::new(State { free: count, families, waiting, given: 0 })))
    }

    /// Returns a turn, if the family may have one now.
    pub(super) fn now(self: &Arc<Self>, family: u64) -> Option<Turn> {
        let mut state = self.0.lock();
        // Whoever waits may not have what is free.
        if !state.may_start(family) {
            return None;
        }
        state.begin(family);
        Some(Turn { turns: self.clone(), family })
    }

    /// Returns what will receive the family's next turn. Dropping it gives up the place in the queue.
    pub(super) fn wait(self: &Arc<Self>, family: u64) -> oneshot::Receiver<Turn> {
        let (turn, receiver) = oneshot::channel();
        {
            let mut state = self.0.lock();
            state.waiting.retain(|waiter| !waiter.turn.is_closed());
            state.waiting.push_back(Waiter { family, turn });
            state.families.entry(family).or_default();
        }
        self.hand_out();
        receiver
    }

    /// Gives free turns to those who wait.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let next = self.0.lock().next();
            let Some(Waiter { family, turn }) = next else { return };
            // One that nobody waits for any more comes back, and is given to the next.
            drop(turn.send(Turn { turns: self.clone(), family }));
        }
    }
}

impl State {
    fn running(&self, family: u64) -> usize {
        self.families.get(&family).map_or(0, |family| family.running)
    }

    fn may_start(&self, family: u64) -> bool {
        self.free > usize::from(self.running(family) > 0)
    }

    fn begin(&mut self, family: u64) {
        self.free -= 1;
        self.given += 1;
        let entry = self.families.entry(family).or_default();
        entry.running += 1;
        entry.last = self.given;
    }

    fn end(&mut self, family: u64) {
        self.free += 1;
        if let Some(entry) = self.families.get_mut(&family) {
            entry.running -= 1;
        }
        self.forget_idle();
    }

    /// Takes the next turn for one of those who wait.
    fn next(&mut self) -> Option<Waiter> {
        self.waiting.retain(|waiter| !waiter.turn.is_closed());
        self.forget_idle();
        let ready = self.waiting.iter().enumerate().filter(|(_, waiter)| self.may_start(waiter.family));
        let rank =
            |family: u64| self.families.get(&family).map_or((0, 0), |entry| (entry.running, entry.last));
        let (at, _) = ready.min_by_key(|(at, waiter)| (rank(waiter.family), *at))?;
        let waiter = self.waiting.remove(at)?;
        self.begin(waiter.family);
        Some(waiter)
    }

    /// Forgets families that neither compile nor wait.
    fn forget_idle(&mut self) {
        let waiting: HashSet<u64> = self.waiting.iter().map(|waiter| waiter.family).collect();
        self.families.retain(|id, family| family.running > 0 || waiting.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a turn has come.
    fn come(waiting: &mut oneshot::Receiver<Turn>) -> Option<Turn> {
        waiting.try_recv().ok()
    }

    #[test]
    fn a_family_that_compiles_leaves_the_last_turn_to_others() {
        let turns = Turns::new(2);
        let first = turns.now(1).expect("all are free");
        assert!(turns.now(1).is_none(), "a second one for the same");
        let mut more: Vec<_> = (0..6).map(|_| turns.wait(1)).collect();
        assert!(more.iter_mut().all(|waiting| come(waiting).is_none()));
        let other = turns.now(2).expect("the last one is kept");
        assert!(turns.now(3).is_none(), "there are no more");
        // Third comes after six of the first, and is served before any of them has had another.
        let mut third = turns.wait(3);
        drop(first);
        assert!(come(&mut third).is_some());
        drop(third);
        let next: Vec<Turn> = more.iter_mut().filter_map(come).collect();
        assert_eq!(next.len(), 1, "one of them is next");
        drop(other);
    }

    #[test]
    fn many_turns_are_shared_but_for_the_last() {
        let turns = Turns::new(4);
        let mut mine: Vec<_> = (0..3).map(|_| turns.now(1).expect("a free one")).collect();
        assert!(turns.now(1).is_none());
        let mut waiting = turns.wait(1);
        let other = turns.now(2).expect("the last one");
        mine.pop();
        // One is free, and kept for those who compile nothing.
        assert!(come(&mut waiting).is_none());
        drop(other);
        assert!(come(&mut waiting).is_some());
    }

    #[test]
    fn families_take_turns_however_many_wait_for_each() {
        let turns = Turns::new(2);
        let [first, second] = [1, 2].map(|family| turns.now(family).expect("a free one"));
        let mut many: Vec<_> = (0..4).map(|_| turns.wait(1)).collect();
        let mut few = turns.wait(2);
        drop(first);
        // The first had its turn before the second, which still compiles.
        let next = many.iter_mut().find_map(come).expect("its next");
        drop(second);
        let second = come(&mut few).expect("the second's next");
        drop(next);
        assert!(many.iter_mut().find_map(come).is_some());
        drop(second);
    }

    #[test]
    fn a_place_that_is_given_up_keeps_nobody_waiting() {
        let turns = Turns::new(1);
        let first = turns.now(1).expect("a free one");
        let gone: Vec<_> = (2..100).map(|family| turns.wait(family)).collect();
        let mut last = turns.wait(100);
        drop(gone);
        drop(first);
        drop(come(&mut last).expect("the only one that is left"));
        let state = turns.0.lock();
        assert_eq!((state.free, state.waiting.len(), state.families.len()), (1, 0, 0));
    }
}
