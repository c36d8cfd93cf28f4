//! The order of calls: by arrival while there is space; once the queue is more than half full, sessions take turns. Once
//! it is full, a session with nothing queued gets the last place of the session with the most calls.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// What waits in one lane.
pub(super) struct Queue<T> {
    depth: usize,
    waiting: VecDeque<(Arc<str>, T)>,
    /// The sessions that have had a turn, the most recent last.
    served: Vec<Arc<str>>,
}

impl<T> Queue<T> {
    pub fn new(depth: usize) -> Queue<T> {
        Queue { depth, waiting: VecDeque::new(), served: Vec::new() }
    }

    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a call of `session`, or returns how many wait already. A call that one of `idle` workers will take
    /// immediately does not wait. Returns the call that lost its place.
    pub fn push(&mut self, session: &str, item: T, idle: usize) -> Result<Option<T>, usize> {
        let mut gave_way = None;
        if self.waiting.len() >= self.depth + idle {
            let place = self.that_gives_way_to(session).ok_or(self.waiting.len())?;
            gave_way = self.waiting.remove(place).map(|(_, item)| item);
        }
        self.waiting.push_back((session.into(), item));
        Ok(gave_way)
    }

    /// Returns the last place of the session with the most calls, if it has more than one and the newcomer none:
    /// otherwise a session that always refills the queue would keep all others out.
    fn that_gives_way_to(&self, newcomer: &str) -> Option<usize> {
        let mut last_places: HashMap<&str, (usize, usize)> = HashMap::new();
        for (place, (session, _)) in self.waiting.iter().enumerate() {
            let (count, last) = last_places.entry(session).or_default();
            (*count, *last) = (*count + 1, place);
        }
        let (most, place) = last_places.values().max().copied()?;
        (most > 1 && !last_places.contains_key(newcomer)).then_some(place)
    }

    pub fn pop(&mut self) -> Option<T> {
        let crowded = self.waiting.len() * 2 > self.depth;
        let next = if crowded { self.longest_without_a_turn() } else { 0 };
        let (session, item) = self.waiting.remove(next)?;
        self.served.retain(|other| *other != session);
        // Only who still waits is worth remembering, so a name lives no longer than its calls.
        self.served.retain(|other| self.waiting.iter().any(|(waiting, _)| waiting == other));
        self.served.push(session);
        Some(item)
    }

    /// Returns the place of the first call of the session whose last turn is longest ago; sessions without a turn come
    /// first.
    fn longest_without_a_turn(&self) -> usize {
        let turn = |session: &Arc<str>| {
            self.served.iter().position(|served| served == session).map_or(0, |at| at + 1)
        };
        let places = self.waiting.iter().enumerate();
        places.min_by_key(|(place, (session, _))| (turn(session), *place)).map_or(0, |(place, _)| place)
    }

    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        self.waiting.retain(|(_, item)| keep(item));
    }

    pub fn drain(&mut self) -> Vec<T> {
        self.waiting.drain(..).map(|(_, item)| item).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(depth: usize, sessions: &str) -> Queue<String> {
        let mut queue = Queue::new(depth);
        for (number, session) in sessions.chars().enumerate() {
            let gave_way = queue.push(&session.to_string(), format!("{session}{number}"), 0);
            assert_eq!(gave_way, Ok(None), "there is room");
        }
        queue
    }

    fn order(mut queue: Queue<String>) -> String {
        std::iter::from_fn(|| queue.pop()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn half_full_is_served_in_order_of_arrival() {
        assert_eq!(order(filled(10, "aaaab")), "a0 a1 a2 a3 b4");
    }

    #[test]
    fn above_half_full_sessions_take_turns() {
        // Six to five wait: turns; from five on, order of arrival again.
        assert_eq!(order(filled(10, "aaaaaaaabc")), "a0 b8 c9 a1 a2 a3 a4 a5 a6 a7");
    }

    #[test]
    fn a_session_that_has_just_been_served_waits_for_the_others() {
        let mut queue = filled(4, "aabb");
        assert_eq!(queue.pop().as_deref(), Some("a0"));
        assert_eq!(queue.pop().as_deref(), Some("b2"));
        queue.push("b", "b4".to_owned(), 0).expect("there is room");
        assert_eq!(queue.pop().as_deref(), Some("a1"), "b had its turn");
    }

    #[test]
    fn beyond_its_depth_it_takes_only_what_idle_workers_will_take() {
        let mut queue = filled(2, "ab");
        assert_eq!(queue.push("c", "c".to_owned(), 0), Err(2));
        assert_eq!(queue.push("c", "c".to_owned(), 1), Ok(None));
        assert_eq!(queue.push("d", "d".to_owned(), 1), Err(3));
    }

    #[test]
    fn a_session_that_fills_the_queue_yields_to_one_with_nothing_in_it() {
        let mut queue = filled(4, "aaba");
        assert_eq!(queue.push("a", "a4".to_owned(), 0), Err(4), "not to itself");
        assert_eq!(queue.push("b", "b4".to_owned(), 0), Err(4), "nor to who has one");
        assert_eq!(queue.push("c", "c4".to_owned(), 0), Ok(Some("a3".to_owned())));
        assert_eq!(queue.push("d", "d5".to_owned(), 0), Ok(Some("a1".to_owned())));
        assert_eq!(queue.push("e", "e6".to_owned(), 0), Err(4), "one each is fair");
        assert_eq!(order(queue), "a0 b2 c4 d5");
    }

    #[test]
    fn names_of_sessions_that_no_longer_wait_are_forgotten() {
        let mut queue = Queue::new(10);
        for number in 0..100 {
            queue.push(&number.to_string(), number, 0).expect("there is room");
            queue.pop();
        }
        assert!(queue.served.len() <= 1, "{:?}", queue.served);
    }
}
