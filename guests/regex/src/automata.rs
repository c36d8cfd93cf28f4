//! Running a pattern without references back: lazy DFAs, and slower machines where they cannot tell.

use crate::Groups;
use crate::required::Required;
use memchr::{memchr, memrchr};
use regex_automata::dfa::onepass;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::backtrack::{self, BoundedBacktracker};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::look::LookMatcher;
use regex_automata::util::prefilter::Prefilter;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Hir, Look};
use std::cell::{OnceCell, RefCell};

/// The first automaton of a pattern may not be larger than this; those made of it later are about as large.
const LARGEST: usize = 20 << 20;

/// A one-pass automaton larger than this is not worth its making.
const LARGEST_ONE_PASS: usize = 1 << 20;

/// How a pattern is to be run.
#[derive(Clone, Copy)]
pub struct Manner {
    /// Of the matches that begin first the longest, rather than the one that the pattern prefers.
    pub longest: bool,
    /// What ends a line, for `^` and `$`.
    pub line_end: Option<u8>,
    /// No match spans lines: a text may be searched for the line that has one.
    pub by_line: bool,
}

/// A pattern, and the automata made of it so far.
pub struct Automata {
    hir: Hir,
    manner: Manner,
    forward: Lazy,
    /// Backwards to the start of a match, and from there to the end of the longest.
    bounds: OnceCell<Option<(Lazy, Lazy)>>,
    groups: OnceCell<GroupFinder>,
    simulations: OnceCell<Option<(Simulation, Simulation)>>,
    required: Option<Required>,
}

/// A lazy DFA and the states it has found so far.
struct Lazy {
    dfa: DFA,
    cache: RefCell<Cache>,
}

/// The DFA met a byte beyond ASCII while it needed to know about words: where.
struct Quit(usize);

/// An automaton that is walked through state by state: slower than a DFA, but it sees groups and all boundaries.
struct Simulation {
    machine: PikeVM,
    cache: RefCell<pikevm::Cache>,
}

impl Automata {
    pub fn new(hir: Hir, manner: Manner) -> Result<Automata, String> {
        let nfa = compile(&hir, manner, WhichCaptures::None, false, Some(LARGEST))?;
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir).filter(Prefilter::is_fast);
        // A text of either case is many texts to a prefilter, which is slow at that where it has no wide registers.
        let required = Required::of(&hir).filter(|required| {
            manner.by_line && (prefilter.is_none() || matches!(required, Required::Folded(_)))
        });
        let forward = Lazy::new(nfa, MatchKind::LeftmostFirst, prefilter)?;
        Ok(Automata {
            hir,
            manner,
            forward,
            bounds: OnceCell::new(),
            groups: OnceCell::new(),
            simulations: OnceCell::new(),
            required,
        })
    }

    #[inline]
    pub fn is_match_at(&self, text: &[u8], start: usize) -> bool {
        match self.forward.end(&Input::new(text).range(start..).earliest(true)) {
            Ok(end) => end.is_some(),
            Err(_) => self.find_at(text, start).is_some(),
        }
    }

    /// A place in the first line that has a match, in a text of many.
    #[inline]
    pub fn find_line(&self, text: &[u8], start: usize) -> Option<usize> {
        let Some(required) = &self.required else { return self.find_line_with_dfa(text, start, text.len()) };
        let mut at = start;
        loop {
            let found = at + required.find(&text[at..])?;
            let (from, to) = self.line_around(text, found, at);
            if let Some(place) = self.find_line_with_dfa(text, from, to) {
                return Some(place);
            }
            at = to;
        }
    }

    fn find_line_with_dfa(&self, text: &[u8], start: usize, end: usize) -> Option<usize> {
        let mut at = start;
        loop {
            match self.forward.end(&Input::new(text).range(at..end).earliest(true)) {
                Ok(found) => return found,
                Err(Quit(place)) => {
                    let (from, to) = self.lines_to_simulate(text, place, at);
                    let to = to.min(end);
                    if let Some((_, end)) = self.simulate(text, from, to) {
                        return Some(end);
                    }
                    if to >= end {
                        return None;
                    }
                    at = to;
                }
            }
        }
    }

    /// The line at which a DFA quit and, as it sees a match one byte late, the one before.
    fn lines_to_simulate(&self, text: &[u8], place: usize, least: usize) -> (usize, usize) {
        // It may also have looked at what comes before where it began.
        let place = place.max(least);
        let (from, to) = self.line_around(text, place.saturating_sub(1).max(least), least);
        (from, self.line_around(text, place, from).1.max(to))
    }

    /// The bounds of the line that a place is in, as far as it is not before `least`; behind it, where one goes on.
    fn line_around(&self, text: &[u8], place: usize, least: usize) -> (usize, usize) {
        let Some(byte) = self.manner.line_end.filter(|_| self.manner.by_line) else {
            return (least, text.len());
        };
        let start = memrchr(byte, &text[least..place]).map_or(least, |at| least + at + 1);
        (start, memchr(byte, &text[place..]).map_or(text.len(), |at| place + at + 1))
    }

    /// From the end of a leftmost match back to where the leftmost begins, and from there to the longest.
    pub fn find_at(&self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        let mut at = start;
        loop {
            let place = match self.find_with_dfas(text, at) {
                Ok(found) => return found,
                Err(Quit(place)) => place,
            };
            let (from, to) = self.lines_to_simulate(text, place, at);
            let found = self.simulate(text, from, to);
            if found.is_some() || to == text.len() {
                return found;
            }
            at = to;
        }
    }

    fn find_with_dfas(&self, text: &[u8], start: usize) -> Result<Option<(usize, usize)>, Quit> {
        let Some(end) = self.forward.end(&Input::new(text).range(start..))? else { return Ok(None) };
        let Some((backward, longest)) = self.bounds.get_or_init(|| self.make_bounds().ok()) else {
            return Err(Quit(end));
        };
        // Most patterns begin with something that tells; the walk back is for the others.
        let from =
            backward.start(&Input::new(text).range(start..end).anchored(Anchored::Yes))?.unwrap_or(start);
        if !self.manner.longest {
            return Ok(Some((from, end)));
        }
        let to = longest.end(&Input::new(text).range(from..).anchored(Anchored::Yes))?.unwrap_or(end);
        Ok(Some((from, to)))
    }

    fn make_bounds(&self) -> Result<(Lazy, Lazy), String> {
        let nfa = |reverse| compile(&self.hir, self.manner, WhichCaptures::None, reverse, None);
        Ok((Lazy::new(nfa(true)?, MatchKind::All, None)?, Lazy::new(nfa(false)?, MatchKind::All, None)?))
    }

    /// The first match between two places, and the longest from there.
    fn simulate(&self, text: &[u8], start: usize, end: usize) -> Option<(usize, usize)> {
        let make = |kind| Simulation::new(&self.hir, self.manner, WhichCaptures::Implicit, kind);
        let made =
            self.simulations.get_or_init(|| Some((make(MatchKind::LeftmostFirst)?, make(MatchKind::All)?)));
        let (first, longest) = made.as_ref()?;
        let found = first.find(Input::new(text).range(start..end))?;
        if !self.manner.longest {
            return Some(found);
        }
        longest.find(Input::new(text).range(found.0..end).anchored(Anchored::Yes))
    }

    /// The bounds of the groups of a match whose own are known.
    pub fn find_groups(&self, text: &[u8], bounds: (usize, usize), groups: &mut Groups) {
        let finder = self.groups.get_or_init(|| GroupFinder::new(&self.hir, self.manner));
        finder.find(text, bounds, groups);
    }
}

fn compile(
    hir: &Hir,
    manner: Manner,
    captures: WhichCaptures,
    reverse: bool,
    limit: Option<usize>,
) -> Result<NFA, String> {
    let mut looks = LookMatcher::new();
    looks.set_line_terminator(manner.line_end.unwrap_or(b'\n'));
    let config = thompson::Config::new()
        .utf8(false)
        .reverse(reverse)
        .which_captures(captures)
        .nfa_size_limit(limit)
        .look_matcher(looks);
    thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        .map_err(|_| "Regular expression too big".into())
}

impl Lazy {
    fn new(nfa: NFA, kind: MatchKind, prefilter: Option<Prefilter>) -> Result<Lazy, String> {
        let config = DFA::config()
            .match_kind(kind)
            .skip_cache_capacity_check(true)
            .unicode_word_boundary(true)
            .prefilter(prefilter);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())?;
        let cache = RefCell::new(dfa.create_cache());
        Ok(Lazy { dfa, cache })
    }

    /// Where a match ends. The automaton was told never to give up.
    #[inline]
    fn end(&self, input: &Input<'_>) -> Result<Option<usize>, Quit> {
        match self.dfa.try_search_fwd(&mut self.cache.borrow_mut(), input) {
            Ok(found) => Ok(found.map(|half| half.offset())),
            Err(error) => Err(quit(&error, input)),
        }
    }

    fn start(&self, input: &Input<'_>) -> Result<Option<usize>, Quit> {
        match self.dfa.try_search_rev(&mut self.cache.borrow_mut(), input) {
            Ok(found) => Ok(found.map(|half| half.offset())),
            Err(error) => Err(quit(&error, input)),
        }
    }
}

fn quit(error: &regex_automata::MatchError, input: &Input<'_>) -> Quit {
    match error.kind() {
        regex_automata::MatchErrorKind::Quit { offset, .. } => Quit(*offset),
        _ => Quit(input.start()),
    }
}

impl Simulation {
    fn new(hir: &Hir, manner: Manner, captures: WhichCaptures, kind: MatchKind) -> Option<Simulation> {
        let nfa = compile(hir, manner, captures, false, None).ok()?;
        let config = PikeVM::config().match_kind(kind);
        let machine = PikeVM::builder().configure(config).build_from_nfa(nfa).ok()?;
        let cache = RefCell::new(machine.create_cache());
        Some(Simulation { machine, cache })
    }

    fn find(&self, input: Input<'_>) -> Option<(usize, usize)> {
        let found = self.machine.find(&mut self.cache.borrow_mut(), input)?;
        Some((found.start(), found.end()))
    }
}

/// Finds the groups of a match: in one pass where the pattern is never in doubt, else by trying, else by simulation.
struct GroupFinder {
    one_pass: Option<(onepass::DFA, RefCell<onepass::Cache>)>,
    trying: Option<(BoundedBacktracker, RefCell<backtrack::Cache>)>,
    simulation: Option<Simulation>,
    /// Whether what is behind a match may matter to it.
    looks_behind_end: bool,
    slots: RefCell<Vec<Option<NonMaxUsize>>>,
}

impl GroupFinder {
    fn new(hir: &Hir, manner: Manner) -> GroupFinder {
        let kind = if manner.longest { MatchKind::All } else { MatchKind::LeftmostFirst };
        let looks = hir.properties().look_set();
        let mut finder = GroupFinder {
            one_pass: one_pass(hir, manner, kind),
            trying: None,
            simulation: None,
            looks_behind_end: looks.contains_word() || looks.contains_anchor(),
            slots: RefCell::new(Vec::new()),
        };
        if finder.one_pass.is_none() {
            finder.trying = trying(hir, manner);
            finder.simulation = Simulation::new(hir, manner, WhichCaptures::All, kind);
        }
        finder
    }

    fn find(&self, text: &[u8], (from, to): (usize, usize), groups: &mut Groups) {
        let slots = &mut *self.slots.borrow_mut();
        slots.clear();
        slots.resize(groups.len() * 2, None);
        let input = Input::new(text).range(from..to).anchored(Anchored::Yes);
        if let Some((dfa, cache)) = &self.one_pass {
            // Fails only for a search that is not anchored.
            let _ = dfa.try_search_slots(&mut cache.borrow_mut(), &input, slots);
        } else if !self.find_by_trying(text, (from, to), slots)
            && let Some(Simulation { machine, cache }) = &self.simulation
        {
            machine.search_slots(&mut cache.borrow_mut(), &input, slots);
        }
        for (group, pair) in groups.iter_mut().zip(slots.chunks(2)) {
            *group = match pair {
                [Some(start), Some(end)] => Some((start.get(), end.get())),
                _ => None,
            };
        }
    }

    /// Tries the ways to match exactly this text; says whether it could.
    fn find_by_trying(
        &self,
        text: &[u8],
        (from, to): (usize, usize),
        slots: &mut [Option<NonMaxUsize>],
    ) -> bool {
        let Some((machine, cache)) = &self.trying else { return false };
        if to < text.len() && self.looks_behind_end || to - from > machine.max_haystack_len() {
            return false;
        }
        let input = Input::new(&text[..to]).range(from..).anchored(Anchored::Yes);
        matches!(machine.try_search_slots(&mut cache.borrow_mut(), &input, slots), Ok(Some(_)))
    }
}

fn one_pass(hir: &Hir, manner: Manner, kind: MatchKind) -> Option<(onepass::DFA, RefCell<onepass::Cache>)> {
    let nfa = compile(hir, manner, WhichCaptures::All, false, None).ok()?;
    let config = onepass::Config::new().match_kind(kind).size_limit(Some(LARGEST_ONE_PASS));
    let dfa = onepass::DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
    let cache = RefCell::new(dfa.create_cache());
    Some((dfa, cache))
}

fn trying(hir: &Hir, manner: Manner) -> Option<(BoundedBacktracker, RefCell<backtrack::Cache>)> {
    let whole = Hir::concat(vec![hir.clone(), Hir::look(Look::End)]);
    let nfa = compile(&whole, manner, WhichCaptures::All, false, None).ok()?;
    let machine = BoundedBacktracker::new_from_nfa(nfa).ok()?;
    let cache = RefCell::new(machine.create_cache());
    Some((machine, cache))
}
