//! Extended regular expressions as gawk has them: the leftmost match, and of those the longest.
//!
//! The pattern is parsed here and becomes `regex_syntax`'s tree; what runs it is `regex_automata`'s lazy DFA. A plain
//! text is looked for as such. One who only asks whether there is a match pays for one automaton; the bounds of a match
//! take two more, groups a fourth, each made when it is first wanted.

mod syntax;

use memchr::memmem;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::nfa::thompson::pikevm::{self, PikeVM};
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures};
use regex_automata::util::prefilter::Prefilter;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Hir, HirKind};
use std::cell::{OnceCell, RefCell};
use syntax::Flags;

/// A compiled pattern.
pub struct Regex {
    source: Box<[u8]>,
    groups: usize,
    engine: Engine,
}

enum Engine {
    Literal(Box<memmem::Finder<'static>>),
    Byte(u8),
    Automata(Box<Automata>),
}

struct Automata {
    hir: Hir,
    forward: Lazy,
    bounds: OnceCell<Option<(Lazy, Lazy)>>,
    captures: OnceCell<Option<Simulation>>,
    /// What runs a pattern with word boundaries on a text beyond ASCII: the first match, and the longest from there.
    wide: Option<Hir>,
    wide_runs: OnceCell<Option<(Simulation, Simulation)>>,
}

/// An automaton that is walked through state by state: slower than a DFA, but it sees groups and all boundaries.
struct Simulation {
    machine: PikeVM,
    cache: RefCell<pikevm::Cache>,
}

/// A lazy DFA and the states it has found so far.
struct Lazy {
    dfa: DFA,
    cache: RefCell<Cache>,
}

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}/", self.source.escape_ascii())
    }
}

/// The bounds of a match and of its groups: from, to, or nothing for a group that took no part.
pub type Groups = Vec<Option<(usize, usize)>>;

impl Regex {
    /// Compiles a pattern. The error says what is wrong with it.
    pub fn new(pattern: &[u8], ignore_case: bool) -> Result<Regex, String> {
        let flags = Flags { ignore_case, wide_words: false };
        let (hir, groups) = syntax::parse(pattern, flags)?;
        let looks = hir.properties().look_set();
        let wide = match looks.contains_word() {
            true => Some(syntax::parse(pattern, Flags { wide_words: true, ..flags })?.0),
            false => None,
        };
        let engine = match hir.kind() {
            HirKind::Literal(literal) if literal.0.len() == 1 => Engine::Byte(literal.0[0]),
            HirKind::Literal(literal) => {
                Engine::Literal(Box::new(memmem::Finder::new(&literal.0).into_owned()))
            }
            _ => Engine::Automata(Box::new(Automata::new(hir, wide)?)),
        };
        Ok(Regex { source: pattern.into(), groups, engine })
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// How many groups it has.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Whether it matches anywhere in a text.
    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        match &self.engine {
            Engine::Byte(byte) => memchr::memchr(*byte, text).is_some(),
            Engine::Literal(finder) => finder.find(text).is_some(),
            Engine::Automata(automata) => {
                if automata.wide.is_some() && !text.is_ascii() {
                    return automata.find_wide(text, 0).is_some();
                }
                let input = Input::new(text).earliest(true);
                automata.forward.end(&input).is_some()
            }
        }
    }

    /// The bounds of the first match at or after a place.
    #[inline]
    pub fn find_at(&self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        match &self.engine {
            Engine::Byte(byte) => {
                memchr::memchr(*byte, &text[start..]).map(|at| (start + at, start + at + 1))
            }
            Engine::Literal(finder) => {
                let length = finder.needle().len();
                finder.find(&text[start..]).map(|at| (start + at, start + at + length))
            }
            Engine::Automata(automata) => automata.find_at(text, start),
        }
    }

    /// The bounds of the first match at or after a place and those of its groups.
    pub fn captures_at(&self, text: &[u8], start: usize) -> Option<Groups> {
        let bounds = self.find_at(text, start)?;
        let mut groups = vec![None; self.groups + 1];
        if self.groups > 0
            && let Engine::Automata(automata) = &self.engine
        {
            automata.groups(text, bounds, &mut groups);
        }
        groups[0] = Some(bounds);
        Some(groups)
    }
}

/// The first automaton of a pattern may not be larger than this; those made of it later are about as large.
const LARGEST: usize = 20 << 20;

fn compile(hir: &Hir, captures: WhichCaptures, reverse: bool, limit: Option<usize>) -> Result<NFA, String> {
    let config =
        thompson::Config::new().utf8(false).reverse(reverse).which_captures(captures).nfa_size_limit(limit);
    thompson::Compiler::new()
        .configure(config)
        .build_from_hir(hir)
        .map_err(|_| "regular expression too big".into())
}

impl Lazy {
    fn new(nfa: NFA, kind: MatchKind, prefilter: Option<Prefilter>) -> Result<Lazy, String> {
        let config = DFA::config().match_kind(kind).skip_cache_capacity_check(true).prefilter(prefilter);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).map_err(|error| error.to_string())?;
        let cache = RefCell::new(dfa.create_cache());
        Ok(Lazy { dfa, cache })
    }

    /// Where a match ends. The automaton was told never to give up, and quits at no byte.
    #[inline]
    fn end(&self, input: &Input<'_>) -> Option<usize> {
        let found = self.dfa.try_search_fwd(&mut self.cache.borrow_mut(), input);
        found.ok().flatten().map(|half| half.offset())
    }

    fn start(&self, input: &Input<'_>) -> Option<usize> {
        let found = self.dfa.try_search_rev(&mut self.cache.borrow_mut(), input);
        found.ok().flatten().map(|half| half.offset())
    }
}

impl Automata {
    fn new(hir: Hir, wide: Option<Hir>) -> Result<Automata, String> {
        let nfa = compile(&hir, WhichCaptures::None, false, Some(LARGEST))?;
        let prefilter = Prefilter::from_hir_prefix(MatchKind::LeftmostFirst, &hir);
        let forward = Lazy::new(nfa, MatchKind::LeftmostFirst, prefilter)?;
        let (bounds, captures, wide_runs) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Automata { hir, forward, bounds, captures, wide, wide_runs })
    }

    /// From the end of a leftmost match back to where the leftmost begins, and from there to the longest.
    fn find_at(&self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        if self.wide.is_some() && !text.is_ascii() {
            return self.find_wide(text, start);
        }
        let end = self.forward.end(&Input::new(text).range(start..))?;
        let (backward, longest) = self.bounds.get_or_init(|| self.make_bounds().ok()).as_ref()?;
        let from = backward.start(&Input::new(text).range(start..end).anchored(Anchored::Yes))?;
        let to = longest.end(&Input::new(text).range(from..).anchored(Anchored::Yes))?;
        Some((from, to))
    }

    fn find_wide(&self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        let hir = self.wide.as_ref()?;
        let (first, longest) = self
            .wide_runs
            .get_or_init(|| {
                let first = Simulation::new(hir, WhichCaptures::Implicit, MatchKind::LeftmostFirst)?;
                Some((first, Simulation::new(hir, WhichCaptures::Implicit, MatchKind::All)?))
            })
            .as_ref()?;
        let (from, _) = first.find(Input::new(text).range(start..))?;
        longest.find(Input::new(text).range(from..).anchored(Anchored::Yes))
    }

    fn make_bounds(&self) -> Result<(Lazy, Lazy), String> {
        let backward = Lazy::new(compile(&self.hir, WhichCaptures::None, true, None)?, MatchKind::All, None)?;
        let longest = Lazy::new(compile(&self.hir, WhichCaptures::None, false, None)?, MatchKind::All, None)?;
        Ok((backward, longest))
    }

    fn groups(&self, text: &[u8], bounds: (usize, usize), groups: &mut Groups) {
        let hir = self.wide.as_ref().unwrap_or(&self.hir);
        let made = self.captures.get_or_init(|| Simulation::new(hir, WhichCaptures::All, MatchKind::All));
        let Some(simulation) = made else { return };
        let input = Input::new(text).range(bounds.0..).anchored(Anchored::Yes);
        let mut captures = simulation.machine.create_captures();
        simulation.machine.captures(&mut simulation.cache.borrow_mut(), input, &mut captures);
        for (index, group) in groups.iter_mut().enumerate() {
            *group = captures.get_group(index).map(|span| (span.start, span.end));
        }
    }
}

impl Simulation {
    fn new(hir: &Hir, captures: WhichCaptures, kind: MatchKind) -> Option<Simulation> {
        let nfa = compile(hir, captures, false, None).ok()?;
        let machine =
            PikeVM::builder().configure(PikeVM::config().match_kind(kind)).build_from_nfa(nfa).ok()?;
        let cache = RefCell::new(machine.create_cache());
        Some(Simulation { machine, cache })
    }

    fn find(&self, input: Input<'_>) -> Option<(usize, usize)> {
        let found = self.machine.find(&mut self.cache.borrow_mut(), input)?;
        Some((found.start(), found.end()))
    }
}
