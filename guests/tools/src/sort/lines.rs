//! The lines of all inputs, and putting them in order.

use super::key::{How, Key};
use super::order::{Order, leading};
use std::borrow::Cow;
use std::cmp::Ordering;
use toolkit::records::Records;
use wardian_abi::Errno;

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
        if !self.keys.is_empty() && self.keeps_order() {
            return Ordering::Equal;
        }
        self.last.compare(left, right, self.salt)
    }

    /// Whether lines that are equal by their keys stay as they came; else whole lines decide.
    fn keeps_order(&self) -> bool {
        self.stable || self.unique
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
    /// How many lines there are, or one more.
    fn count(&self) -> usize {
        memchr::memchr_iter(self.end, &self.text).count() + 1
    }

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

/// A line, one of its keys, and the first of what that is compared by.
#[derive(Clone, Copy)]
struct Keyed<'a> {
    prefix: u64,
    key: &'a [u8],
    line: &'a [u8],
}

impl Lines {
    pub fn add(&mut self, text: Vec<u8>, end: u8) {
        self.inputs.push(Input { text, end });
    }

    /// All lines in order.
    pub fn sorted(&self, rules: &Rules<'_>) -> Vec<&[u8]> {
        let lines = self.inputs.iter().flat_map(Input::lines);
        let count = self.inputs.iter().map(Input::count).sum();
        if rules.keys.is_empty() {
            let mut ranked = Vec::with_capacity(count);
            ranked.extend(lines.map(|line| Ranked { prefix: leading(line), line }));
            by_bytes(&mut ranked, rules.last.reverse);
            return once(ranked.into_iter().map(|ranked| ranked.line), rules);
        }
        let mut keyed = Vec::with_capacity(count);
        keyed.extend(lines.map(|line| Keyed { prefix: 0, key: line, line }));
        by_keys(&mut keyed, &rules.keys, rules);
        once(keyed.into_iter().map(|keyed| keyed.line), rules)
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
}

/// The first line that should have come earlier, with its number. Two lines are held at a time.
pub fn first_disorder(records: &mut Records, rules: &Rules<'_>) -> Result<Option<(usize, Vec<u8>)>, Errno> {
    let (mut previous, mut line, mut number) = (Vec::new(), Vec::new(), 0);
    loop {
        line.clear();
        if !records.next_into(&mut line)? {
            return Ok(None);
        }
        if line.last() == Some(&rules.end) {
            line.pop();
        }
        number += 1;
        let wrong = number > 1
            && match rules.compare(&previous, &line) {
                Ordering::Greater => true,
                Ordering::Equal => rules.unique,
                Ordering::Less => false,
            };
        if wrong {
            return Ok(Some((number, line)));
        }
        std::mem::swap(&mut previous, &mut line);
    }
}

/// By bytes alone: equal lines cannot be told apart, so any order of theirs will do.
fn by_bytes(ranked: &mut [Ranked<'_>], reverse: bool) {
    ranked.sort_unstable_by(|left, right| {
        let ordering = left.prefix.cmp(&right.prefix).then_with(|| left.line.cmp(right.line));
        if reverse { ordering.reverse() } else { ordering }
    });
}

/// By the first key, and each run of lines that it does not tell apart by the next: so a key is cut out of a line once,
/// and only where it matters.
fn by_keys(lines: &mut [Keyed<'_>], keys: &[Key], rules: &Rules<'_>) {
    let Some((key, rest)) = keys.split_first() else {
        if !rules.keeps_order() {
            lines.sort_unstable_by(|left, right| rules.last.compare(left.line, right.line, rules.salt));
        }
        return;
    };
    for keyed in &mut *lines {
        keyed.key = key.cut(keyed.line, rules.separator);
        let prefix = key.how.order.prefix(keyed.key, key.how.filter);
        keyed.prefix = if key.how.reverse { !prefix } else { prefix };
    }
    let compare = |left: &Keyed<'_>, right: &Keyed<'_>| {
        let by_prefix = left.prefix.cmp(&right.prefix);
        by_prefix.then_with(|| key.how.compare(left.key, right.key, rules.salt))
    };
    if rules.keeps_order() {
        lines.sort_by(compare)
    } else {
        lines.sort_unstable_by(compare)
    }
    for equal in lines.chunk_by_mut(|left, right| compare(left, right).is_eq()) {
        if equal.len() > 1 {
            by_keys(equal, rest, rules);
        }
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
