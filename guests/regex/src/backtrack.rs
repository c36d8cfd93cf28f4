//! Running a pattern with references back, which no automaton can: by trying one way after the other.

use crate::Groups;
use crate::text::{Unit, unit};
use crate::tree::{Node, Place, Set};
use std::cell::{Cell, RefCell};

/// So many steps for one search, then it is given up: there are patterns that would take years.
const STEPS: usize = 50_000_000;

/// So many ways may be left to try at a time.
const WAYS: usize = 4_000_000;

/// A program may not be longer than this.
const LONGEST: usize = 500_000;

/// A step of a program.
enum Step {
    Unit(Unit),
    Set(Set),
    Place(Place),
    Again(u32),
    /// Notes a bound of a group, or where a repetition began.
    Note(usize),
    /// Goes on at the first, and at the second should that fail.
    Either(usize, usize),
    Jump(usize),
    /// Fails when nothing was matched since a note.
    Progress(usize),
    Match,
}

/// A pattern as a program.
pub struct Backtracker {
    steps: Vec<Step>,
    notes: usize,
    groups: usize,
    ignore_case: bool,
    bytes: bool,
    multi_line: bool,
    gave_up: Cell<bool>,
    ways: RefCell<Vec<Way>>,
}

/// What to do when a try fails.
enum Way {
    Try(usize, usize),
    Restore(usize, usize),
}

const NOWHERE: usize = usize::MAX;

/// How letters and lines are taken.
pub struct Manner {
    pub ignore_case: bool,
    pub bytes: bool,
    /// `^` and `$` match around line feeds too.
    pub multi_line: bool,
}

impl Backtracker {
    pub fn new(tree: &Node, groups: usize, manner: Manner) -> Result<Backtracker, String> {
        let mut made = Backtracker {
            steps: Vec::new(),
            notes: (groups + 1) * 2,
            groups,
            ignore_case: manner.ignore_case,
            bytes: manner.bytes,
            multi_line: manner.multi_line,
            gave_up: Cell::new(false),
            ways: RefCell::new(Vec::new()),
        };
        made.compile(tree)?;
        made.steps.push(Step::Match);
        Ok(made)
    }

    /// Whether a search was ever given up.
    pub fn gave_up(&self) -> bool {
        self.gave_up.get()
    }

    fn compile(&mut self, node: &Node) -> Result<(), String> {
        if self.steps.len() > LONGEST {
            return Err("Regular expression too big".into());
        }
        match node {
            Node::Empty => {}
            Node::Unit(unit) => self.steps.push(Step::Unit(*unit)),
            Node::Set(set) => self.steps.push(Step::Set(set.clone())),
            Node::Place(place) => self.steps.push(Step::Place(*place)),
            Node::Again(group) => self.steps.push(Step::Again(*group)),
            Node::Group(inside, index) => {
                let index = *index as usize;
                self.steps.push(Step::Note(index * 2));
                self.compile(inside)?;
                self.steps.push(Step::Note(index * 2 + 1));
            }
            Node::Sequence(parts) => parts.iter().try_for_each(|part| self.compile(part))?,
            Node::Either(parts) => self.compile_either(parts)?,
            Node::Repeat(inside, least, most) => self.compile_repeat(inside, *least, *most)?,
        }
        Ok(())
    }

    fn compile_either(&mut self, parts: &[Node]) -> Result<(), String> {
        let mut jumps = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            if number + 1 == parts.len() {
                self.compile(part)?;
                break;
            }
            let choice = self.steps.len();
            self.steps.push(Step::Either(choice + 1, 0));
            self.compile(part)?;
            jumps.push(self.steps.len());
            self.steps.push(Step::Jump(0));
            self.steps[choice] = Step::Either(choice + 1, self.steps.len());
        }
        let end = self.steps.len();
        jumps.into_iter().for_each(|jump| self.steps[jump] = Step::Jump(end));
        Ok(())
    }

    fn compile_repeat(&mut self, inside: &Node, least: u32, most: Option<u32>) -> Result<(), String> {
        for _ in 0..least {
            self.compile(inside)?;
        }
        let Some(most) = most else {
            let (choice, note) = (self.steps.len(), self.notes);
            self.notes += 1;
            self.steps.push(Step::Either(choice + 1, 0));
            self.steps.push(Step::Note(note));
            self.compile(inside)?;
            self.steps.push(Step::Progress(note));
            self.steps.push(Step::Jump(choice));
            self.steps[choice] = Step::Either(choice + 1, self.steps.len());
            return Ok(());
        };
        let mut choices = Vec::new();
        for _ in least..most {
            choices.push(self.steps.len());
            self.steps.push(Step::Jump(0));
            self.compile(inside)?;
        }
        let end = self.steps.len();
        choices.into_iter().for_each(|choice| self.steps[choice] = Step::Either(choice + 1, end));
        Ok(())
    }

    /// The groups of the first match in `text[..end]` at or after a place, the longest of those that begin there.
    pub fn find_at(&self, text: &[u8], start: usize, groups: &mut Groups) -> bool {
        let mut budget = STEPS;
        let mut at = start;
        while at <= text.len() {
            if self.longest_at(text, at, groups, &mut budget) {
                return true;
            }
            at += unit(&text[at..], self.bytes).map_or(1, |(_, length)| length);
        }
        false
    }

    fn longest_at(&self, text: &[u8], start: usize, groups: &mut Groups, budget: &mut usize) -> bool {
        let ways = &mut *self.ways.borrow_mut();
        ways.clear();
        ways.push(Way::Try(0, start));
        let mut notes = vec![NOWHERE; self.notes];
        let mut longest = None;
        while let Some(way) = ways.pop() {
            let (mut step, mut at) = match way {
                Way::Restore(note, value) => {
                    notes[note] = value;
                    continue;
                }
                Way::Try(step, at) => (step, at),
            };
            loop {
                if *budget == 0 || ways.len() > WAYS {
                    self.gave_up.set(true);
                    return longest.is_some();
                }
                *budget -= 1;
                match &self.steps[step] {
                    Step::Match => {
                        if longest.is_none_or(|longest| at > longest) {
                            longest = Some(at);
                            self.report(start, at, &notes, groups);
                        }
                        if at == text.len() {
                            return true;
                        }
                        break;
                    }
                    Step::Jump(to) => step = *to,
                    Step::Either(first, second) => {
                        ways.push(Way::Try(*second, at));
                        step = *first;
                    }
                    Step::Note(note) => {
                        ways.push(Way::Restore(*note, notes[*note]));
                        notes[*note] = at;
                        step += 1;
                    }
                    Step::Progress(note) if notes[*note] == at => break,
                    Step::Progress(_) => step += 1,
                    other => match self.advance(other, text, at, &notes) {
                        Some(next) => (step, at) = (step + 1, next),
                        None => break,
                    },
                }
            }
        }
        longest.is_some()
    }

    fn report(&self, start: usize, end: usize, notes: &[usize], groups: &mut Groups) {
        groups.clear();
        groups.push(Some((start, end)));
        for group in 1..=self.groups {
            let (from, to) = (notes[group * 2], notes[group * 2 + 1]);
            groups.push((from != NOWHERE && to != NOWHERE && from <= to).then_some((from, to)));
        }
    }

    /// Where a step that matches text goes on, if it matches.
    fn advance(&self, step: &Step, text: &[u8], at: usize, notes: &[usize]) -> Option<usize> {
        match step {
            Step::Unit(wanted) => {
                let (found, length) = unit(&text[at..], self.bytes)?;
                self.is_same(found, *wanted).then_some(at + length)
            }
            Step::Set(set) => {
                let (found, length) = unit(&text[at..], self.bytes)?;
                set.contains(found).then_some(at + length)
            }
            Step::Place(place) => self.is_at(*place, text, at).then_some(at),
            Step::Again(group) => {
                let index = *group as usize * 2;
                let (from, to) = (notes[index], notes[index + 1]);
                if from == NOWHERE || to == NOWHERE || from > to {
                    return None;
                }
                self.matches_again(&text[from..to], &text[at..]).map(|length| at + length)
            }
            _ => None,
        }
    }

    fn matches_again(&self, before: &[u8], text: &[u8]) -> Option<usize> {
        if !self.ignore_case {
            return text.starts_with(before).then_some(before.len());
        }
        let (mut left, mut right) = (0, 0);
        while left < before.len() {
            let (wanted, wanted_length) = unit(&before[left..], self.bytes)?;
            let (found, length) = unit(&text[right..], self.bytes)?;
            if !self.is_same(found, wanted) {
                return None;
            }
            (left, right) = (left + wanted_length, right + length);
        }
        Some(right)
    }

    fn is_same(&self, left: Unit, right: Unit) -> bool {
        match (left, right) {
            (Unit::Char(left), Unit::Char(right)) if self.ignore_case => {
                left == right || left.to_lowercase().eq(right.to_lowercase())
            }
            _ => left == right,
        }
    }

    fn is_at(&self, place: Place, text: &[u8], at: usize) -> bool {
        let (before, after) = (self.is_word_before(text, at), self.is_word_after(text, at));
        match place {
            Place::TextStart => at == 0,
            Place::TextEnd => at == text.len(),
            Place::LineStart => at == 0 || self.multi_line && text[at - 1] == b'\n',
            Place::LineEnd => at == text.len() || self.multi_line && text[at] == b'\n',
            Place::WordEdge => before != after,
            Place::NoWordEdge => before == after,
            Place::WordStart => !before && after,
            Place::WordEnd => before && !after,
            Place::NotAfterWord => !before,
            Place::NotBeforeWord => !after,
        }
    }

    fn is_word_after(&self, text: &[u8], at: usize) -> bool {
        unit(&text[at..], self.bytes).is_some_and(|(unit, _)| is_word(unit))
    }

    fn is_word_before(&self, text: &[u8], at: usize) -> bool {
        // The character that ends here begins at most four bytes before.
        let found = (1..=4usize.min(at))
            .rev()
            .find_map(|back| unit(&text[at - back..at], self.bytes).filter(|(_, length)| *length == back));
        found.is_some_and(|(unit, _)| is_word(unit))
    }
}

fn is_word(unit: Unit) -> bool {
    matches!(unit, Unit::Char(char) if char == '_' || char.is_alphanumeric())
}
