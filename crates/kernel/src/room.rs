//! Capacity for instances in the whole process, shared by its sandboxes.
//!
//! Every instance uses mappings and address space, and Linux gives a process a fixed number of mappings. Hitting that
//! limit would fail in unexpected places; instead a process is created only if there is capacity: otherwise fork and
//! spawn return EAGAIN, and a new command waits.
//!
//! No sandbox can have more than a quarter of the capacity, so that one full of sleeping processes does not lock out
//! others. Waiting sandboxes are served in turn, one instance each, however many commands each of them has waiting.
//!
//! Mappings belong to the whole process, so there is one capacity for all kernels in it. A kernel that asks for a certain
//! number of instances takes them out of the common capacity for as long as it lives.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tokio::sync::oneshot;
use wardian_vfs::Errno;

use crate::schedule::SandboxId;

/// Mappings that one instance uses at most, whatever it is made of.
const MAPPINGS_EACH: usize = crate::admit::MAPPINGS;
/// Mappings left to the rest of the process.
const MAPPINGS_KEPT: usize = 8_000;
/// Each reserves slightly over four gibibytes of the 128 TiB that a process can address; half of that is enough.
const MOST: usize = 16_000;
/// If the capacity is small, what a sandbox can have anyway: a shell and a pipeline.
const LEAST_SHARE: usize = 8;

/// How many instances there may be, and who has them.
#[derive(Clone)]
pub(crate) struct Room {
    state: Arc<Mutex<State>>,
    all: usize,
    /// The most that one sandbox can have.
    share: usize,
    /// What this capacity was taken from.
    _part: Option<Arc<Part>>,
}

/// What all kernels of the process share.
static COMMON: LazyLock<Room> = LazyLock::new(|| Room::of(what_linux_allows(), None));

/// Capacity taken out of the common one, returned when it is dropped.
struct Part(usize);

impl Part {
    fn take(instances: usize) -> Option<Part> {
        let mut common = COMMON.state.lock();
        common.free = common.free.checked_sub(instances)?;
        Some(Part(instances))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        for _ in 0..self.0 {
            COMMON.free_one(|_| ());
        }
    }
}

fn what_linux_allows() -> usize {
    let mappings = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok();
    let mappings = mappings.and_then(|text| text.trim().parse().ok()).unwrap_or(65_530_usize);
    (mappings.saturating_sub(MAPPINGS_KEPT) / MAPPINGS_EACH).clamp(64, MOST)
}

struct State {
    free: usize,
    sandboxes: HashMap<SandboxId, Line>,
    /// Sandboxes that wait and have less than their share, in the order of their turns. Empty while there is free
    /// capacity.
    turns: VecDeque<SandboxId>,
}

/// A sandbox that has instances or waits for them.
#[derive(Default)]
struct Line {
    has: usize,
    waiting: VecDeque<oneshot::Sender<Berth>>,
    in_turns: bool,
}

/// Capacity for one instance, returned when it is dropped.
pub(crate) struct Berth {
    room: Room,
    sandbox: SandboxId,
}

impl Room {
    /// Returns capacity for `instances`, or the one that the process's kernels share. None if so much is not free.
    pub(crate) fn new(instances: Option<usize>) -> Option<Room> {
        match instances {
            None => Some(COMMON.clone()),
            Some(all) => Some(Room::of(all, Some(Arc::new(Part::take(all)?)))),
        }
    }

    fn of(all: usize, part: Option<Arc<Part>>) -> Room {
        let state = State { free: all, sandboxes: HashMap::new(), turns: VecDeque::new() };
        let share = (all / 4).max(LEAST_SHARE);
        Room { state: Arc::new(Mutex::new(state)), all, share, _part: part }
    }

    /// Takes capacity for one more instance of this sandbox. Returns EAGAIN if there is none, or the sandbox has its
    /// share.
    pub(crate) fn take(&self, sandbox: SandboxId) -> Result<Berth, Errno> {
        match self.state.lock().enter(sandbox, self.share) {
            true => Ok(Berth { room: self.clone(), sandbox }),
            false => Err(Errno::EAGAIN),
        }
    }

    /// Takes capacity for an instance that is not needed yet: only while there is plenty.
    pub(crate) fn spare(&self, sandbox: SandboxId) -> Result<Berth, Errno> {
        let plenty = self.state.lock().free > self.all / 2;
        if plenty { self.take(sandbox) } else { Err(Errno::EAGAIN) }
    }

    /// Waits for capacity.
    pub(crate) async fn wait(&self, sandbox: SandboxId) -> Result<Berth, Errno> {
        let granted = {
            let mut state = self.state.lock();
            // Behind those of its own sandbox that came before.
            let first = state.sandboxes.get(&sandbox).is_none_or(|line| line.waiting.is_empty());
            if first && state.enter(sandbox, self.share) {
                return Ok(Berth { room: self.clone(), sandbox });
            }
            state.queue(sandbox, self.share)
        };
        granted.await.map_err(|_| Errno::EAGAIN)
    }

    fn give_back(&self, sandbox: SandboxId) {
        self.free_one(|state| state.leave(sandbox, self.share));
    }

    /// Adds one to the free capacity, for the next that waits. `leave` says whose it was.
    fn free_one(&self, leave: impl FnOnce(&mut State)) {
        let next = {
            let mut state = self.state.lock();
            leave(&mut state);
            state.free += 1;
            state.next(self.share)
        };
        if let Some((sandbox, waiter)) = next {
            // Where it has just stopped waiting, this drops the berth, and the next one's turn comes.
            let _ = waiter.send(Berth { room: self.clone(), sandbox });
        }
    }
}

impl State {
    /// Admits one if there is capacity and the sandbox has less than its share.
    fn enter(&mut self, sandbox: SandboxId, share: usize) -> bool {
        if self.free == 0 || self.sandboxes.get(&sandbox).is_some_and(|line| line.has >= share) {
            return false;
        }
        self.free -= 1;
        self.sandboxes.entry(sandbox).or_default().has += 1;
        true
    }

    fn queue(&mut self, sandbox: SandboxId, share: usize) -> oneshot::Receiver<Berth> {
        let (sender, receiver) = oneshot::channel();
        let line = self.sandboxes.entry(sandbox).or_default();
        // Those who have given up leave nothing behind.
        line.waiting.retain(|waiter| !waiter.is_closed());
        line.waiting.push_back(sender);
        self.line_up(sandbox, share);
        receiver
    }

    /// Gives a waiting sandbox that may have more its place among the turns.
    fn line_up(&mut self, sandbox: SandboxId, share: usize) {
        let Some(line) = self.sandboxes.get_mut(&sandbox) else { return };
        if !line.in_turns && !line.waiting.is_empty() && line.has < share {
            line.in_turns = true;
            self.turns.push_back(sandbox);
        }
    }

    fn leave(&mut self, sandbox: SandboxId, share: usize) {
        let Some(line) = self.sandboxes.get_mut(&sandbox) else { return };
        line.has -= 1;
        line.waiting.retain(|waiter| !waiter.is_closed());
        if line.has == 0 && line.waiting.is_empty() && !line.in_turns {
            self.sandboxes.remove(&sandbox);
        } else {
            self.line_up(sandbox, share);
        }
    }

    /// Returns who gets the returned capacity: already counted as having it.
    fn next(&mut self, share: usize) -> Option<(SandboxId, oneshot::Sender<Berth>)> {
        while self.free > 0 {
            let sandbox = self.turns.pop_front()?;
            let Some(line) = self.sandboxes.get_mut(&sandbox) else { continue };
            line.in_turns = false;
            line.waiting.retain(|waiter| !waiter.is_closed());
            let waiter = if line.has < share { line.waiting.pop_front() } else { None };
            if let Some(waiter) = waiter {
                line.has += 1;
                self.free -= 1;
                self.line_up(sandbox, share);
                return Some((sandbox, waiter));
            }
            if line.has == 0 && line.waiting.is_empty() {
                self.sandboxes.remove(&sandbox);
            }
        }
        None
    }
}

impl Drop for Berth {
    fn drop(&mut self) {
        self.room.give_back(self.sandbox);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    type Waiting = std::pin::Pin<Box<dyn Future<Output = Result<Berth, Errno>>>>;

    #[test]
    fn no_sandbox_has_more_than_its_share() {
        for (all, share) in [(3, 3), (8, 8), (20, 8), (32, 8), (64, 16), (7_000, 1_750)] {
            let room = Room::of(all, None);
            let taken: Vec<_> = std::iter::from_fn(|| room.take(1).ok()).collect();
            assert_eq!(taken.len(), share, "of {all}");
            assert_eq!(room.take(2).is_ok(), all > share, "of {all}");
        }
    }

    #[test]
    fn waiting_sandboxes_are_served_in_turn() {
        let room = Room::of(8, None);
        let mut all: Vec<_> = (0..8).map(|_| room.take(1).expect("there is room")).collect();
        // Five commands of one sandbox came first, then one each of two others.
        let order = [2, 2, 2, 2, 2, 3, 4];
        let mut waiting: Vec<_> =
            order.iter().map(|&sandbox| (sandbox, Box::pin(room.wait(sandbox)))).collect();
        let mut cx = Context::from_waker(Waker::noop());
        for (_, waiter) in &mut waiting {
            assert!(waiter.as_mut().poll(&mut cx).is_pending());
        }
        let mut served = Vec::new();
        let mut berths = Vec::new();
        for _ in 0..7 {
            all.pop();
            for (sandbox, waiter) in &mut waiting {
                if *sandbox != 0
                    && let Poll::Ready(berth) = waiter.as_mut().poll(&mut cx)
                {
                    berths.push(berth.expect("a berth"));
                    served.push(std::mem::take(sandbox));
                }
            }
        }
        assert_eq!(served, [2, 3, 4, 2, 2, 2, 2]);
    }

    #[test]
    fn a_caller_that_gives_up_waiting_keeps_nothing() {
        let room = Room::of(1, None);
        let only = room.take(1).expect("there is room");
        let mut cx = Context::from_waker(Waker::noop());
        {
            let mut given_up = pin!(room.wait(2));
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
            // Served, but it never looks.
            drop(only);
        }
        let again = room.take(1).expect("the berth came back");
        {
            let mut given_up = pin!(room.wait(2));
            assert!(given_up.as_mut().poll(&mut cx).is_pending());
        }
        drop(again);
        drop(room.take(3).expect("the berth came back"));
        assert!(room.state.lock().sandboxes.is_empty());
        assert!(room.state.lock().turns.is_empty());
    }

    #[test]
    fn a_kernel_takes_its_share_of_the_process_capacity() {
        let free = || COMMON.state.lock().free;
        let before = free();
        let part = Room::new(Some(5)).expect("there is capacity");
        assert_eq!(free(), before - 5);
        let berth = part.take(1).expect("there is room");
        drop(part);
        assert_eq!(free(), before - 5, "an instance of it is left");
        drop(berth);
        assert_eq!(free(), before);
        assert!(Room::new(Some(before + 1)).is_none());
        assert_eq!(free(), before);
    }

    /// Random takes, waits and returns: every berth is somewhere, nobody waits while there is room for them.
    #[test]
    fn random_calls_lose_no_capacity() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut roll = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % below
        };
        let room = Room::of(12, None);
        let mut cx = Context::from_waker(Waker::noop());
        let mut berths = Vec::new();
        let mut waiting: Vec<(u64, Waiting)> = Vec::new();
        for _ in 0..20_000 {
            let sandbox = 1 + roll(4);
            match roll(5) {
                0 => berths.extend(room.take(sandbox)),
                1 | 2 if waiting.len() < 20 => {
                    let room = room.clone();
                    waiting.push((sandbox, Box::pin(async move { room.wait(sandbox).await })));
                }
                3 if !berths.is_empty() => drop(berths.swap_remove(roll(berths.len() as u64) as usize)),
                4 if !waiting.is_empty() => drop(waiting.swap_remove(roll(waiting.len() as u64) as usize)),
                _ => {}
            }
            waiting.retain_mut(|(_, waiter)| match waiter.as_mut().poll(&mut cx) {
                Poll::Ready(berth) => {
                    berths.push(berth.expect("a berth"));
                    false
                }
                Poll::Pending => true,
            });
            let mut has: BTreeMap<u64, usize> = BTreeMap::new();
            berths.iter().for_each(|berth| *has.entry(berth.sandbox).or_default() += 1);
            assert!(has.values().all(|&n| n <= 8), "{has:?}");
            let free = room.state.lock().free;
            assert_eq!(free + berths.len(), 12);
            let served = |sandbox: &u64| has.get(sandbox).is_some_and(|&n| n == 8);
            assert!(free == 0 || waiting.iter().all(|(sandbox, _)| served(sandbox)), "{has:?}, {free} free");
        }
    }
}
