//! A small engine: a machine that tries all ways at once. The match is the leftmost and longest. Only a pattern that
//! refers back to its groups is tried one way after another, and not forever.
//!
//! ```
//! use wardian_regex::small::{Manner, Regex, Style};
//! let manner = Manner { style: Style::Extended, fold: false, utf8: true };
//! let regex = Regex::new(b"a(b|bc)", manner).unwrap();
//! assert_eq!(regex.find_at(b"xabc", 0), Some(vec![Some((1, 4)), Some((2, 4))]));
//! ```

mod parse;

use crate::Groups;
use crate::class::{Class, char_at};

/// How a pattern is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Style {
    /// Extended, as bash hands it on: a backslash quotes in brackets, too.
    Shell,
    /// Extended, with `\n` and `\t`.
    Extended,
    /// Basic, as sed reads it.
    Basic,
    /// SQLite's: extended, with `\d`, `\xHH`, `\uHHHH` and C's other escapes, also in brackets.
    Sql,
}

/// How a pattern is read and matched.
#[derive(Clone, Copy, Debug)]
pub struct Manner {
    /// How it is written.
    pub style: Style,
    /// Letters match in either case.
    pub fold: bool,
    /// Characters are UTF-8, not bytes.
    pub utf8: bool,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct Regex {
    program: Vec<Inst>,
    groups: usize,
    manner: Manner,
    refers_back: bool,
}

#[derive(Debug, Clone)]
enum Inst {
    Char(u32),
    Any,
    Set(Box<Set>),
    Start,
    End,
    Word(u8),
    /// What a group matched, again.
    Back(usize),
    Save(usize),
    Split(usize, usize),
    Jump(usize),
    Match,
}

#[derive(Debug, Clone, Default)]
struct Set {
    negated: bool,
    ranges: Vec<(u32, u32)>,
    classes: Vec<(Class, bool)>,
}

enum Node {
    Empty,
    Inst(Inst),
    Group(usize, Box<Node>),
    Concat(Vec<Node>),
    Alternate(Vec<Node>),
    Repeat(Box<Node>, usize, Option<usize>),
}

/// From this length on a text is first asked whether it has a match at all.
const WORTH_ASKING: usize = 256;
/// Programs longer than this come from counts too large to be meant.
const MAX_PROGRAM: usize = 50_000;
const MAX_DEPTH: usize = 200;
/// Steps after which a pattern with references is taken not to match.
const MAX_STEPS: usize = 1_000_000;

type Captures = Vec<Option<usize>>;

impl Regex {
    /// Compiles a pattern; none when it is wrong.
    pub fn new(text: &[u8], manner: Manner) -> Option<Regex> {
        let (program, groups) = parse::program(text, manner)?;
        let refers_back = program.iter().any(|inst| matches!(inst, Inst::Back(_)));
        Some(Regex { program, groups, manner, refers_back })
    }

    /// The first match at or after a place: the bounds of the whole and of each group.
    pub fn find_at(&self, text: &[u8], from: usize) -> Option<Groups> {
        // To find out that a long text has no match must not take a walk from each of its characters.
        if text.len() > WORTH_ASKING && !self.refers_back && !self.matches_from(text, from) {
            return None;
        }
        let mut start = from;
        loop {
            if let Some(captures) = self.match_at(text, start) {
                let bound = |group: usize| match (captures[group * 2], captures[group * 2 + 1]) {
                    (Some(from), Some(to)) => Some((from, to)),
                    _ => None,
                };
                return Some((0..self.groups).map(bound).collect());
            }
            if start >= text.len() {
                return None;
            }
            start += char_at(text, start, self.manner.utf8).1;
        }
    }

    /// Whether it matches anywhere in a text.
    pub fn is_match(&self, text: &[u8]) -> bool {
        if self.refers_back { self.find_at(text, 0).is_some() } else { self.matches_from(text, 0) }
    }

    /// Whether there is a match at or after a place: one walk over the text, without regard to bounds.
    fn matches_from(&self, text: &[u8], from: usize) -> bool {
        let mut seen = vec![usize::MAX; self.program.len()];
        let (mut threads, mut next) = (Vec::new(), Vec::new());
        let mut at = from;
        loop {
            self.follow(&mut threads, &mut seen, 0, text, at, Vec::new());
            if threads.iter().any(|(pc, _)| matches!(self.program[*pc], Inst::Match)) {
                return true;
            }
            if at >= text.len() {
                return false;
            }
            let (c, length) = char_at(text, at, self.manner.utf8);
            for (pc, captures) in threads.drain(..) {
                if self.one(&self.program[pc], c) {
                    self.follow(&mut next, &mut seen, pc + 1, text, at + length, captures);
                }
            }
            std::mem::swap(&mut threads, &mut next);
            at += length;
        }
    }

    fn match_at(&self, text: &[u8], start: usize) -> Option<Captures> {
        if self.refers_back {
            return self.match_by_trial(text, start);
        }
        let mut best: Option<Captures> = None;
        let mut threads: Vec<(usize, Captures)> = Vec::new();
        let mut seen = vec![usize::MAX; self.program.len()];
        let mut captures = vec![None; self.groups * 2];
        captures[0] = Some(start);
        self.follow(&mut threads, &mut seen, 0, text, start, captures);
        let mut at = start;
        loop {
            let mut next = Vec::new();
            let c = (at < text.len()).then(|| char_at(text, at, self.manner.utf8));
            let after = at + c.map_or(1, |(_, len)| len);
            for (pc, captures) in threads {
                match &self.program[pc] {
                    Inst::Match => {
                        if best.as_ref().is_none_or(|best| best[1] < Some(at)) {
                            let mut captures = captures;
                            captures[1] = Some(at);
                            best = Some(captures);
                        }
                    }
                    inst => {
                        if let Some((c, _)) = c
                            && self.one(inst, c)
                        {
                            self.follow(&mut next, &mut seen, pc + 1, text, after, captures);
                        }
                    }
                }
            }
            if next.is_empty() {
                return best;
            }
            threads = next;
            at = after;
        }
    }

    /// Tries one way after another, and keeps the longest match.
    fn match_by_trial(&self, text: &[u8], start: usize) -> Option<Captures> {
        let mut captures = vec![None; self.groups * 2];
        captures[0] = Some(start);
        let mut best: Option<Captures> = None;
        // With each way, the branches it took since it last moved on: none twice, or a loop around nothing never ends.
        let mut ways = vec![(0, start, captures, Vec::new())];
        for _ in 0..MAX_STEPS {
            let Some((pc, at, mut captures, mut branches)) = ways.pop() else { break };
            match &self.program[pc] {
                Inst::Match => {
                    if best.as_ref().is_none_or(|best| best[1] < Some(at)) {
                        captures[1] = Some(at);
                        best = Some(captures);
                    }
                }
                Inst::Jump(to) => ways.push((*to, at, captures, branches)),
                Inst::Split(..) if branches.contains(&pc) => {}
                Inst::Split(first, second) => {
                    branches.push(pc);
                    ways.push((*second, at, captures.clone(), branches.clone()));
                    ways.push((*first, at, captures, branches));
                }
                Inst::Save(slot) => {
                    captures[*slot] = Some(at);
                    ways.push((pc + 1, at, captures, branches));
                }
                inst => {
                    if let Some(after) = self.past(inst, text, at, &captures) {
                        branches.retain(|_| after == at);
                        ways.push((pc + 1, after, captures, branches));
                    }
                }
            }
        }
        best
    }

    /// Where an instruction ends that matches here.
    fn past(&self, inst: &Inst, text: &[u8], at: usize, captures: &Captures) -> Option<usize> {
        let holds = match inst {
            Inst::Start => at == 0,
            Inst::End => at == text.len(),
            Inst::Word(kind) => word_boundary(text, at, *kind),
            Inst::Back(group) => {
                let (from, to) = (captures[group * 2]?, captures[group * 2 + 1]?);
                return text[at..].starts_with(&text[from..to]).then_some(at + to - from);
            }
            inst => {
                let (c, len) = (at < text.len()).then(|| char_at(text, at, self.manner.utf8))?;
                return self.one(inst, c).then_some(at + len);
            }
        };
        holds.then_some(at)
    }

    /// Adds a thread, through the instructions that take no character.
    fn follow(
        &self,
        threads: &mut Vec<(usize, Captures)>,
        seen: &mut [usize],
        pc: usize,
        text: &[u8],
        at: usize,
        captures: Captures,
    ) {
        let mut stack = vec![(pc, captures)];
        while let Some((pc, mut captures)) = stack.pop() {
            if seen[pc] == at {
                continue;
            }
            seen[pc] = at;
            match &self.program[pc] {
                Inst::Jump(to) => stack.push((*to, captures)),
                Inst::Split(first, second) => {
                    stack.push((*second, captures.clone()));
                    stack.push((*first, captures));
                }
                Inst::Save(slot) => {
                    if let Some(place) = captures.get_mut(*slot) {
                        *place = Some(at);
                    }
                    stack.push((pc + 1, captures));
                }
                Inst::Start if at == 0 => stack.push((pc + 1, captures)),
                Inst::End if at == text.len() => stack.push((pc + 1, captures)),
                Inst::Start | Inst::End => {}
                Inst::Word(kind) => {
                    if word_boundary(text, at, *kind) {
                        stack.push((pc + 1, captures));
                    }
                }
                _ => threads.push((pc, captures)),
            }
        }
    }

    fn one(&self, inst: &Inst, c: u32) -> bool {
        let fold = |c: u32| char::from_u32(c).and_then(|c| c.to_lowercase().next()).map_or(c, |c| c as u32);
        match inst {
            Inst::Char(wanted) => *wanted == c || (self.manner.fold && fold(*wanted) == fold(c)),
            // What is no character matches nothing but itself.
            Inst::Any => c < 0x11_0000,
            Inst::Set(_) if c >= 0x11_0000 => false,
            Inst::Set(set) => {
                let upper = char::from_u32(c).and_then(|c| c.to_uppercase().next()).map_or(c, |c| c as u32);
                (set.holds(c) || (self.manner.fold && (set.holds(fold(c)) || set.holds(upper))))
                    != set.negated
            }
            _ => false,
        }
    }
}

fn word_boundary(text: &[u8], at: usize, kind: u8) -> bool {
    let is_word = |at: Option<usize>| {
        at.and_then(|at| text.get(at)).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    };
    let (before, after) = (is_word(at.checked_sub(1)), is_word(Some(at)));
    match kind {
        b'<' => !before && after,
        b'>' => before && !after,
        b'b' => before != after,
        _ => before == after,
    }
}

impl Set {
    fn holds(&self, c: u32) -> bool {
        self.ranges.iter().any(|&(low, high)| low <= c && c <= high)
            || self.classes.iter().any(|(class, holds)| class.contains(c) == *holds)
    }
}
