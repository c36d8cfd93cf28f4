//! The lines of all inputs, and putting them in order.

use super::key::{How, Key};
use super::order::{Order, leading};
use std::borrow::Cow;
use std::cmp::Ordering;

/// What decides the order.
pub struct Rules<'a> {
    pub keys: Cow<'a, [Key]>,
    pub separator: Option<u8>,
    /// How whole lines are compared whose keys are equal.
    pub last: How,
    pub stable: bool,
    pub unique: bool,
    pub salt: u64,
    /// What ends a line.
    pub end: u8,
}

impl Rules<'_> {
    pub fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        for key in self.keys.iter() {
            let (left, right) = (key.cut(left, self.separator), key.cut(right, self.separator));
            let ordering = key.how.compare(left, right, self.salt);
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        if !self.keys.is_empty() && (self.stable || self.unique) {
            return Ordering::Equal;
        }
        self.last.compare(left, right, self.salt)
    }

    /// What of the comparison fits into a number, and whether it counts the other way round.
    fn prefix(&self, line: &[u8]) -> u64 {
        let (prefix, reverse) = match self.keys.first() {
            Some(key) => {
                (key.how.order.prefix(key.cut(line, self.separator), key.how.filter), key.how.reverse)
            }
            None => (leading(line), self.last.reverse),
        };
        if reverse { !prefix } else { prefix }
    }
}

/// Texts cut into lines.
#[derive(Default)]
pub struct Lines {
    inputs: Vec<Input>,
}

struct Input {
    text: Vec<u8>,
    end: u8,
}

impl Input {
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let text = self.text.strip_suffix(&[self.end]).unwrap_or(&self.text);
        let mut rest = (!self.text.is_empty()).then_some(text);
        std::iter::from_fn(move || {
            let text = rest?;
            match memchr::memchr(self.end, text) {
                Some(at) => {
                    rest = Some(&text[at + 1..]);
                    Some(&text[..at])
                }
                None => rest.take(),
            }
        })
    }
}

/// A line, and the first of what it is compared by.
#[derive(Clone, Copy)]
struct Ranked<'a> {
    prefix: u64,
    line: &'a [u8],
}

impl Lines {
    pub fn add(&mut self, text: Vec<u8>, end: u8) {
        self.inputs.push(Input { text, end });
    }

    /// All lines in order.
    pub fn sorted(&self, rules: &Rules<'_>) -> Vec<&[u8]> {
        let lines = self.inputs.iter().flat_map(Input::lines);
        let mut ranked: Vec<Ranked<'_>> =
            lines.map(|line| Ranked { prefix: rules.prefix(line), line }).collect();
        let plain = rules.keys.is_empty();
        match (plain, rules.last.reverse) {
            // Bytes alone: equal lines cannot be told apart, so any order of theirs will do.
            (true, false) => ranked.sort_unstable_by(|left, right| {
                left.prefix.cmp(&right.prefix).then_with(|| left.line.cmp(right.line))
            }),
            (true, true) => ranked.sort_unstable_by(|left, right| {
                left.prefix.cmp(&right.prefix).then_with(|| right.line.cmp(left.line))
            }),
            _ => ranked.sort_by(|left, right| {
                left.prefix.cmp(&right.prefix).then_with(|| rules.compare(left.line, right.line))
            }),
        }
        once(ranked.into_iter().map(|ranked| ranked.line), rules)
    }

    /// The lines of inputs that are in order each; of equal ones the first input's first.
    pub fn merged(&self, rules: &Rules<'_>) -> Vec<&[u8]> {
        let mut cursors: Vec<_> = self.inputs.iter().map(|input| input.lines().peekable()).collect();
        let next = std::iter::from_fn(|| {
            let mut least: Option<(usize, &[u8])> = None;
            for (at, cursor) in cursors.iter_mut().enumerate() {
                let Some(line) = cursor.peek().copied() else { continue };
                if least.is_none_or(|(_, other)| rules.compare(line, other) == Ordering::Less) {
                    least = Some((at, line));
                }
            }
            cursors[least?.0].next()
        });
        once(next, rules)
    }

    /// The first line that should have come earlier, with its number.
    pub fn first_disorder(&self, rules: &Rules<'_>) -> Option<(usize, &[u8])> {
        let mut previous: Option<&[u8]> = None;
        for (at, line) in self.inputs.iter().flat_map(Input::lines).enumerate() {
            let wrong = match previous.map(|previous| rules.compare(previous, line)) {
                Some(Ordering::Greater) => true,
                Some(Ordering::Equal) => rules.unique,
                _ => false,
            };
            if wrong {
                return Some((at + 1, line));
            }
            previous = Some(line);
        }
        None
    }
}

/// All lines, or where that is asked for the first of those that are equal.
fn once<'a>(lines: impl Iterator<Item = &'a [u8]>, rules: &Rules<'_>) -> Vec<&'a [u8]> {
    let mut kept: Vec<&[u8]> = lines.collect();
    if rules.unique {
        kept.dedup_by(|line, previous| rules.compare(previous, line) == Ordering::Equal);
    }
    kept
}

/// Whether an order takes numbers, for the words about them.
pub fn is_numeric(order: Order) -> bool {
    matches!(order, Order::Numeric | Order::General | Order::Human)
}
