//! Who compiles next, and who makes room.
//!
//! Turns go by family (a sandbox and its forks), so that nobody gets more of them by forking: a family that compiles waits
//! behind those that do not, and the last free turn is only for those. Among equals the one that has compiled least is
//! next. Time is virtual, as in `schedule.rs`: a family that comes starts a little before the present, so that waiting saves
//! nothing up, and a stream of new ones keeps nobody waiting for ever.
//!
//! Some modules take minutes. A family that waits while others have had much more asks one of them to yield: its compiler is paused,
//! and goes on when its turn comes again.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// Nobody is asked to yield sooner.
const LEAST: Duration = Duration::from_millis(100);
/// How much earlier than the present a family starts: a module of ordinary size is compiled within that.
const CREDIT: u64 = 1_000_000_000;
/// How much more than another a family must have had before it yields to it.
const MARGIN: u64 = 200_000_000;
/// How many idle families are remembered.
const REMEMBERED: usize = 1024;

/// The turns of a kernel.
pub(super) struct Turns(Mutex<State>);

struct State {
    free: usize,
    /// Families that compile or wait, or had more time than one that comes now.
    families: HashMap<u64, Family>,
    /// Those who have a turn.
    holders: Vec<Holder>,
    /// In the order in which they came.
    waiting: VecDeque<Waiter>,
    /// The present: what each family has had on average.
    now: u64,
    /// The number of the last turn.
    last: u64,
}

struct Family {
    running: usize,
    waiting: usize,
    /// The virtual time it came at, and the one it has reached, turns that are not over left out.
    came: u64,
    time: u64,
}

struct Holder {
    number: u64,
    family: u64,
    since: Instant,
    yields: Arc<Notify>,
    asked: bool,
}

struct Waiter {
    family: u64,
    turn: oneshot::Sender<Turn>,
}

/// The right to compile: held until no process of it is left, or it is paused.
pub(crate) struct Turn {
    turns: Arc<Turns>,
    number: u64,
    yields: Arc<Notify>,
}

impl Turn {
    /// Returns what is notified when it should be given back.
    pub(super) fn yields(&self) -> Arc<Notify> {
        self.yields.clone()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.turns.0.lock().end(self.number, Instant::now());
        self.turns.hand_out();
    }
}

impl Turns {
    pub(super) fn new(count: usize) -> Arc<Turns> {
        Arc::new(Turns(Mutex::new(State::new(count))))
    }

    /// Returns a turn, if the family may have one now.
    pub(super) fn now(self: &Arc<Self>, family: u64) -> Option<Turn> {
        let mut state = self.0.lock();
        // Those that wait may not be entitled to what is free.
        if !state.may_start(family) {
            return None;
        }
        state.family(family).running += 1;
        Some(state.begin(family, Instant::now(), self))
    }

    /// Returns what will receive the family's next turn. Dropping it gives up the place in the queue.
    pub(super) fn wait(self: &Arc<Self>, family: u64) -> oneshot::Receiver<Turn> {
        let (turn, receiver) = oneshot::channel();
        self.0.lock().add(family, turn);
        self.hand_out();
        receiver
    }

    /// Asks one who has had much more than one who waits to yield. To be called now and then while somebody waits.
    pub(super) fn press(&self) {
        self.0.lock().press(Instant::now());
    }

    /// Gives free turns to those who wait.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let mut state = self.0.lock();
            let Some(waiter) = state.next() else { return };
            let turn = state.begin(waiter.family, Instant::now(), self);
            drop(state);
            // One that nobody waits for any more comes back, and is given to the next.
            drop(waiter.turn.send(turn));
        }
    }
}

impl State {
    fn new(count: usize) -> State {
        let (families, holders, waiting) = (HashMap::new(), Vec::new(), VecDeque::new());
        // Far enough from zero to subtract from.
        State { free: count, families, holders, waiting, now: CREDIT, last: 0 }
    }

    /// The family, which starts a little before the present if it was not there.
    fn family(&mut self, id: u64) -> &mut Family {
        let start = self.now - CREDIT;
        let family =
            self.families.entry(id).or_insert(Family { running: 0, waiting: 0, came: start, time: start });
        if family.running == 0 && family.waiting == 0 {
            family.time = family.time.max(start);
            family.came = family.time;
        }
        family
    }

    fn running(&self, family: u64) -> usize {
        self.families.get(&family).map_or(0, |family| family.running)
    }

    fn may_start(&self, family: u64) -> bool {
        self.free > usize::from(self.running(family) > 0)
    }

    fn add(&mut self, family: u64, turn: oneshot::Sender<Turn>) {
        self.forget();
        self.family(family).waiting += 1;
        self.waiting.push_back(Waiter { family, turn });
    }

    /// Begins the turn of a family that is already counted as running.
    fn begin(&mut self, id: u64, at: Instant, turns: &Arc<Turns>) -> Turn {
        self.free -= 1;
        self.last += 1;
        let (number, yields) = (self.last, Arc::new(Notify::new()));
        self.holders.push(Holder { number, family: id, since: at, yields: yields.clone(), asked: false });
        Turn { turns: turns.clone(), number, yields }
    }

    fn end(&mut self, number: u64, at: Instant) {
        let Some(place) = self.holders.iter().position(|holder| holder.number == number) else { return };
        let holder = self.holders.swap_remove(place);
        self.free += 1;
        let spent = nanos(holder.since, at);
        let active = self.families.values().filter(|family| family.running + family.waiting > 0).count();
        self.now += spent / active.max(1) as u64;
        if let Some(family) = self.families.get_mut(&holder.family) {
            family.running -= 1;
            family.time += spent;
        }
        self.forget();
    }

    /// Takes the next of those who wait, and counts its family as running. The caller begins its turn.
    fn next(&mut self) -> Option<Waiter> {
        self.forget();
        let ready = self.waiting.iter().enumerate().filter(|(_, waiter)| self.may_start(waiter.family));
        let rank = |id: u64| self.families.get(&id).map_or((0, 0), |family| (family.running, family.time));
        let (at, _) = ready.min_by_key(|(at, waiter)| (rank(waiter.family), *at))?;
        let waiter = self.waiting.remove(at)?;
        if let Some(family) = self.families.get_mut(&waiter.family) {
            family.waiting -= 1;
            family.running += 1;
        }
        Some(waiter)
    }

    /// The virtual time that a family has reached, turns that are not over included.
    fn reached(&self, id: u64, at: Instant) -> u64 {
        let running = self.holders.iter().filter(|holder| holder.family == id);
        let time = self.families.get(&id).map_or(self.now, |family| family.time);
        running.fold(time, |time, holder| time + nanos(holder.since, at))
    }

    fn press(&mut self, at: Instant) {
        self.forget();
        let first = self.waiting.iter().map(|waiter| waiter.family).filter(|id| self.running(*id) == 0);
        let Some(waits) = first.map(|id| self.reached(id, at)).min() else { return };
        // One at a time: those who are asked already make room.
        if self.free > 0 || self.holders.iter().any(|holder| holder.asked) {
            return;
        }
        let came = |id: u64| self.families.get(&id).map_or(0, |family| family.came);
        let has_had_more = |holder: &&Holder| {
            let reached = self.reached(holder.family, at);
            // Not again and again among many who all take long.
            let more = MARGIN.max(reached.saturating_sub(came(holder.family)) / 2);
            at.saturating_duration_since(holder.since) >= LEAST && reached > waits.saturating_add(more)
        };
        let most = self.holders.iter().filter(has_had_more).max_by_key(|h| self.reached(h.family, at));
        let Some(number) = most.map(|holder| holder.number) else { return };
        if let Some(holder) = self.holders.iter_mut().find(|holder| holder.number == number) {
            holder.asked = true;
            holder.yields.notify_one();
        }
    }

    /// Forgets those who have stopped waiting, and families whose next turn would be no later if they came for the first time.
    fn forget(&mut self) {
        let (waiting, families) = (&mut self.waiting, &mut self.families);
        waiting.retain(|waiter| {
            let gone = waiter.turn.is_closed();
            if let Some(family) = families.get_mut(&waiter.family).filter(|_| gone) {
                family.waiting -= 1;
            }
            !gone
        });
        let nobody = self.holders.is_empty() && waiting.is_empty();
        let start = if nobody || families.len() > REMEMBERED { u64::MAX } else { self.now - CREDIT };
        families.retain(|_, family| family.running + family.waiting > 0 || family.time > start);
    }
}

fn nanos(from: Instant, to: Instant) -> u64 {
    to.saturating_duration_since(from).as_nanos() as u64
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

    /// Those who are to yield after `millis` more.
    fn asked(turns: &Turns, millis: u64) -> Vec<u64> {
        let mut state = turns.0.lock();
        let at = Instant::now() + Duration::from_millis(millis);
        state.press(at);
        state.holders.iter().filter(|holder| holder.asked).map(|holder| holder.family).collect()
    }

    #[test]
    fn a_family_with_much_more_time_yields_to_one_that_waits() {
        let turns = Turns::new(2);
        let [first, second] = [1, 2].map(|family| turns.now(family).expect("a free one"));
        assert!(asked(&turns, 10_000).is_empty(), "nobody waits");
        let mut waiting = turns.wait(3);
        assert!(asked(&turns, 0).is_empty(), "not at once");
        assert_eq!(asked(&turns, 500).len(), 1, "one makes room");
        assert_eq!(asked(&turns, 900).len(), 1, "one is enough");
        let yields = turns.0.lock().holders.iter().find(|holder| holder.asked).map(|h| h.family);
        drop(if yields == Some(1) { first } else { second });
        assert!(come(&mut waiting).is_some());
    }

    #[test]
    fn families_that_all_take_long_do_not_change_places_all_the_time() {
        let turns = Turns::new(1);
        let start = Instant::now();
        let mut held = turns.now(1);
        let mut queues: Vec<_> = (2..=8).map(|family| turns.wait(family)).collect();
        let (mut changes, mut at) = (0, start);
        // Eight modules of ten seconds each, as far as anybody gets in eighty.
        for _ in 0..8_000 {
            at += Duration::from_millis(10);
            let number = held.as_ref().map(|turn| turn.number).expect("one has it");
            turns.0.lock().press(at);
            let yields = turns.0.lock().holders.iter().find(|h| h.asked).map(|h| h.family);
            if let Some(family) = yields {
                changes += 1;
                queues.push(turns.wait(family));
                turns.0.lock().end(number, at);
                std::mem::forget(held.take());
                let mut state = turns.0.lock();
                let next = state.next().expect("they all wait");
                held = Some(state.begin(next.family, at, &turns));
            }
        }
        assert!((8..100).contains(&changes), "{changes} changes in 80 seconds");
        // Nobody has had more than twice the fair share, nor less than half of it.
        let state = turns.0.lock();
        for family in 1..=8 {
            let had = state.reached(family, at);
            assert!((5_000_000_000..20_000_000_000).contains(&had), "{family} had {had} ns");
        }
    }

    #[test]
    fn a_stream_of_new_families_starves_no_other() {
        let turns = Turns::new(1);
        let mut at = Instant::now();
        let old = turns.now(1).expect("a free one");
        let _waits = turns.wait(2);
        at += Duration::from_secs(3);
        // The old one has yielded, and others come one after the other.
        turns.0.lock().end(old.number, at);
        std::mem::forget(old);
        let _again = turns.wait_only(1);
        for new in 3.. {
            let mut state = turns.0.lock();
            let next = state.next().expect("somebody waits");
            if next.family == 1 {
                break;
            }
            let turn = state.begin(next.family, at, &turns);
            at += Duration::from_millis(500);
            state.end(turn.number, at);
            drop(state);
            std::mem::forget(turn);
            std::mem::forget(turns.wait_only(new));
            assert!(new < 100, "it still waits");
        }
    }

    impl Turns {
        /// Queues without giving out what is free.
        fn wait_only(&self, family: u64) -> oneshot::Receiver<Turn> {
            let (turn, receiver) = oneshot::channel();
            self.0.lock().add(family, turn);
            receiver
        }
    }
}
