//! The engine of the tools that search: one pattern, and what runs it fastest.

use crate::automata::{self, Automata};
use crate::backtrack::{self, Backtracker};
use crate::perl::{self, Fancy};
use crate::tree::{self, Lowering, Node, Place};
use crate::{Groups, syntax};
use aho_corasick::AhoCorasick;
use memchr::{memchr, memmem, memrchr};
use regex_syntax::hir::{Hir, HirKind, Look};

/// How a pattern is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Syntax {
    /// gawk's extended regular expressions.
    Awk,
    /// GNU's extended regular expressions.
    Extended,
    /// GNU's basic regular expressions.
    Basic,
    /// Emacs', which `find` has unless told otherwise: basic ones whose `+` and `?` need no backslash.
    Emacs,
    /// A text that stands for itself.
    Fixed,
}

/// What of a line a match must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fit {
    /// Any part.
    Anywhere,
    /// A part that no character of a word stands beside.
    Word,
    /// All of it.
    Line,
    /// A part that the text begins with.
    Start,
}

/// What is to be made of a pattern beyond what it says.
#[derive(Clone, Debug)]
pub struct Options {
    /// How it is written.
    pub syntax: Syntax,
    /// Signs of repetition without anything to repeat, and intervals that are none, are errors (sed), not text (grep).
    pub strict: bool,
    /// Brackets hold what the C library takes (`expr`, `nl`, `ptx`): a range that ends before it begins is empty, and
    /// `[:space:]` is a set of letters. Otherwise both are errors, as in grep.
    pub loose_brackets: bool,
    /// Letters match in either case.
    pub ignore_case: bool,
    /// Every byte is a character.
    pub bytes: bool,
    /// The text has many lines, each ended by this byte, and each is a text of its own.
    pub lines: Option<u8>,
    /// `^` and `$` match around line feeds too; `.` and `[^…]` do not match them.
    pub multi_line: bool,
    /// What a match must be.
    pub fit: Fit,
}

impl Options {
    /// Nothing beyond a syntax.
    pub fn new(syntax: Syntax) -> Options {
        Options {
            syntax,
            strict: false,
            loose_brackets: false,
            ignore_case: false,
            bytes: false,
            lines: None,
            multi_line: false,
            fit: Fit::Anywhere,
        }
    }

    fn line_end(&self) -> Option<u8> {
        self.lines.or(self.multi_line.then_some(b'\n'))
    }
}

/// What Rust's and Perl's patterns are read with.
#[derive(Clone, Debug)]
pub struct Modern {
    /// Letters match in either case.
    pub ignore_case: bool,
    /// Perl's rather than Rust's.
    pub perl: bool,
    /// The text has many lines, each ended by this byte, and each is a text of its own.
    pub lines: Option<u8>,
    /// `^` and `$` match around line feeds.
    pub multi_line: bool,
    /// `.` matches line feeds.
    pub dot_all: bool,
    /// What a match must be.
    pub fit: Fit,
    /// Classes and letters know all of Unicode.
    pub unicode: bool,
}

/// A compiled pattern.
pub struct Regex {
    source: Box<[u8]>,
    groups: usize,
    names: Vec<Option<String>>,
    warnings: Vec<String>,
    /// What ends a line, where no match may span two.
    lines: Option<u8>,
    engine: Engine,
}

enum Engine {
    Byte(u8),
    Literal(Box<memmem::Finder<'static>>),
    Words(Box<AhoCorasick>),
    Automata(Box<Automata>),
    /// With what finds more, but faster.
    Backtrack(Box<(Automata, Backtracker)>),
    Fancy(Box<Fancy>),
}

/// What to do about a match that would span lines.
const MULTILINE: &str = "\
Consider enabling multiline mode with the --multiline flag (or -U for short).
When multiline mode is enabled, new line characters can be matched.";

/// From so many fixed texts on they are looked for together.
const MANY_WORDS: usize = 32;

impl std::fmt::Debug for Regex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "/{}/", self.source.escape_ascii())
    }
}

impl Regex {
    /// Compiles a pattern. The error says what is wrong with it.
    pub fn new(pattern: &[u8], options: &Options) -> Result<Regex, String> {
        Self::any_of(&[pattern], options).map_err(|(_, error)| error)
    }

    /// Compiles patterns into one that matches what any of them does. The error has the number of the wrong one.
    pub fn any_of(patterns: &[&[u8]], options: &Options) -> Result<Regex, (usize, String)> {
        let mut groups = 0;
        let mut warnings = Vec::new();
        let mut branches = Vec::new();
        for (number, pattern) in patterns.iter().enumerate() {
            let parsed = syntax::parse(pattern, options, groups).map_err(|error| (number, error))?;
            groups = parsed.groups;
            warnings.extend(parsed.warnings);
            branches.push(parsed.tree);
        }
        let words =
            if is_plain(options) && patterns.len() >= MANY_WORDS { words(patterns, options) } else { None };
        let engine = match words {
            Some(words) => Engine::Words(Box::new(words)),
            None => engine_for(branches, groups as usize, options).map_err(|error| (0, error))?,
        };
        let source = patterns.first().copied().unwrap_or_default().into();
        Ok(Regex {
            source,
            groups: groups as usize,
            names: Vec::new(),
            warnings,
            lines: options.lines,
            engine,
        })
    }

    /// Compiles a pattern in Rust's or Perl's syntax.
    pub fn modern(pattern: &str, options: &Modern) -> Result<Regex, String> {
        let written = if options.perl { perl::translate(pattern) } else { pattern.to_owned() };
        let parsed = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .unicode(options.unicode)
            .case_insensitive(options.ignore_case)
            .multi_line(options.multi_line || options.lines.is_some())
            .dot_matches_new_line(options.dot_all)
            .build()
            .parse(&written);
        match parsed {
            Ok(hir) => Self::from_hir(pattern, hir, options),
            Err(_) if options.perl => Self::fancy(pattern, &written, options),
            Err(error) => Err(error.to_string()),
        }
    }

    fn from_hir(pattern: &str, hir: Hir, options: &Modern) -> Result<Regex, String> {
        let (groups, names) = (hir.properties().explicit_captures_len(), group_names(&hir));
        let (before, after) = match (options.fit, options.unicode && !options.perl) {
            (Fit::Anywhere, _) => (Hir::empty(), Hir::empty()),
            (Fit::Word, true) => (Hir::look(Look::WordStartHalfUnicode), Hir::look(Look::WordEndHalfUnicode)),
            (Fit::Word, false) => (Hir::look(Look::WordStartHalfAscii), Hir::look(Look::WordEndHalfAscii)),
            (Fit::Line, _) => (Hir::look(Look::StartLF), Hir::look(Look::EndLF)),
            (Fit::Start, _) => (Hir::look(Look::Start), Hir::empty()),
        };
        let mut hir = Hir::concat(vec![before, hir, after]);
        if let Some(byte) = options.lines {
            if !options.perl && tree::has_literal(&hir, byte) {
                let name = char::from(byte).escape_default();
                return Err(format!("the literal '\"{name}\"' is not allowed in a regex\n\n{MULTILINE}"));
            }
            hir = tree::without_byte(&hir, byte);
        }
        let line_end = options.lines.or(Some(b'\n'));
        let manner = automata::Manner { longest: false, line_end, by_line: options.lines.is_some() };
        let engine = fastest(hir, manner)?;
        let source = pattern.as_bytes().into();
        Ok(Regex { source, groups, names, warnings: Vec::new(), lines: options.lines, engine })
    }

    fn fancy(pattern: &str, written: &str, options: &Modern) -> Result<Regex, String> {
        let wrapped = match options.fit {
            Fit::Anywhere => written.to_owned(),
            Fit::Word => format!("(?<!\\w)(?:{written})(?!\\w)"),
            Fit::Line => format!("^(?:{written})$"),
            Fit::Start => format!("\\A(?:{written})"),
        };
        let multi_line = options.multi_line && options.lines.is_none();
        let fancy = Fancy::new(&wrapped, options.ignore_case, multi_line, options.dot_all)?;
        let (groups, names) = (fancy.groups(), fancy.names());
        let engine = Engine::Fancy(Box::new(fancy));
        let source = pattern.as_bytes().into();
        Ok(Regex { source, groups, names, warnings: Vec::new(), lines: options.lines, engine })
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &[u8] {
        &self.source
    }

    /// How many groups it has.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The number of the group with a name.
    pub fn group_named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known.as_deref() == Some(name))
    }

    /// What GNU's grep warns of.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether a search took so many steps that it was given up: what was not found may yet be there.
    pub fn gave_up(&self) -> bool {
        match &self.engine {
            Engine::Backtrack(both) => both.1.gave_up(),
            Engine::Fancy(fancy) => fancy.gave_up(),
            _ => false,
        }
    }

    /// Whether it matches anywhere in a text.
    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        match &self.engine {
            Engine::Byte(byte) => memchr(*byte, text).is_some(),
            Engine::Literal(finder) => finder.find(text).is_some(),
            Engine::Words(words) => words.is_match(text),
            Engine::Automata(automata) => automata.is_match_at(text, 0),
            Engine::Backtrack(_) | Engine::Fancy(_) => self.find_at(text, 0).is_some(),
        }
    }

    /// The bounds of the first match at or after a place.
    #[inline]
    pub fn find_at(&self, text: &[u8], start: usize) -> Option<(usize, usize)> {
        match &self.engine {
            Engine::Byte(byte) => memchr(*byte, &text[start..]).map(|at| (start + at, start + at + 1)),
            Engine::Literal(finder) => {
                let length = finder.needle().len();
                finder.find(&text[start..]).map(|at| (start + at, start + at + length))
            }
            Engine::Words(words) => {
                let found = words.find(aho_corasick::Input::new(text).range(start..))?;
                Some((found.start(), found.end()))
            }
            Engine::Automata(automata) => automata.find_at(text, start),
            Engine::Backtrack(_) | Engine::Fancy(_) => {
                let mut groups = Groups::new();
                if self.captures_at(text, start, &mut groups) { groups[0] } else { None }
            }
        }
    }

    /// A place in the first line, at or after a place, that has a match: for patterns with `lines`.
    #[inline]
    pub fn find_line(&self, text: &[u8], start: usize) -> Option<usize> {
        match &self.engine {
            Engine::Automata(automata) => automata.find_line(text, start),
            _ => self.find_at(text, start).map(|bounds| bounds.0),
        }
    }

    /// The bounds of the first match at or after a place and those of its groups; says whether there is one.
    pub fn captures_at(&self, text: &[u8], start: usize, groups: &mut Groups) -> bool {
        match &self.engine {
            Engine::Backtrack(both) => match self.lines {
                None => both.0.is_match_at(text, start) && both.1.find_at(text, start, groups),
                Some(byte) => self.find_in_lines(text, start, byte, groups),
            },
            Engine::Fancy(fancy) => match self.lines {
                None => fancy.find_at(text, start, groups),
                Some(byte) => self.find_in_lines(text, start, byte, groups),
            },
            engine => {
                let Some(bounds) = self.find_at(text, start) else { return false };
                groups.clear();
                groups.resize(self.groups + 1, None);
                if self.groups > 0
                    && let Engine::Automata(automata) = engine
                {
                    automata.find_groups(text, bounds, groups);
                }
                groups[0] = Some(bounds);
                true
            }
        }
    }

    /// Looks at one line after the other with what can see only one.
    fn find_in_lines(&self, text: &[u8], start: usize, byte: u8, groups: &mut Groups) -> bool {
        let mut at = start;
        while at <= text.len() {
            let place = match &self.engine {
                Engine::Backtrack(both) => match both.0.find_line(text, at) {
                    Some(place) => place,
                    None => return false,
                },
                _ => at,
            };
            let from = memrchr(byte, &text[..place]).map_or(0, |before| before + 1);
            let to = memchr(byte, &text[place..]).map_or(text.len(), |after| place + after);
            let (line, skipped) = (&text[from..to], at.saturating_sub(from));
            let found = match &self.engine {
                Engine::Backtrack(both) => both.1.find_at(line, skipped, groups),
                Engine::Fancy(fancy) => fancy.find_at(line, skipped, groups),
                _ => false,
            };
            if found {
                groups.iter_mut().flatten().for_each(|bounds| *bounds = (bounds.0 + from, bounds.1 + from));
                return true;
            }
            at = to + 1;
        }
        false
    }
}

/// Whether fixed texts are all that is asked for.
fn is_plain(options: &Options) -> bool {
    options.syntax == Syntax::Fixed && !options.ignore_case && options.fit == Fit::Anywhere
}

fn words(patterns: &[&[u8]], options: &Options) -> Option<AhoCorasick> {
    let holds_line_end = |pattern: &&&[u8]| options.lines.is_some_and(|byte| pattern.contains(&byte));
    if patterns.iter().any(|pattern| pattern.is_empty())
        || patterns.iter().any(|pattern| holds_line_end(&pattern))
    {
        return None;
    }
    AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostLongest).build(patterns).ok()
}

fn engine_for(mut branches: Vec<Node>, groups: usize, options: &Options) -> Result<Engine, String> {
    let tree = if branches.len() == 1 { branches.remove(0) } else { Node::Either(branches) };
    let tree = match options.fit {
        Fit::Anywhere => tree,
        Fit::Word => surrounded(Place::NotAfterWord, tree, Place::NotBeforeWord),
        Fit::Line => surrounded(Place::LineStart, tree, Place::LineEnd),
        Fit::Start => Node::Sequence(vec![Node::Place(Place::TextStart), tree]),
    };
    let how = Lowering {
        ignore_case: options.ignore_case,
        bytes: options.bytes,
        wide_words: !options.bytes,
        line_end: options.line_end(),
        by_line: options.lines.is_some(),
    };
    let mut hir = tree.lower(how);
    if let Some(byte) = options.lines {
        hir = tree::without_byte(&hir, byte);
    }
    let manner = automata::Manner { longest: true, line_end: options.line_end(), by_line: how.by_line };
    if !tree.refers_back() {
        return fastest(hir, manner);
    }
    let manner_of_tries = backtrack::Manner {
        ignore_case: options.ignore_case,
        bytes: options.bytes,
        multi_line: options.multi_line,
    };
    let filter = Automata::new(hir, manner)?;
    Ok(Engine::Backtrack(Box::new((filter, Backtracker::new(&tree, groups, manner_of_tries)?))))
}

fn surrounded(before: Place, inside: Node, after: Place) -> Node {
    Node::Sequence(vec![Node::Place(before), inside, Node::Place(after)])
}

/// What runs a tree fastest.
fn fastest(hir: Hir, manner: automata::Manner) -> Result<Engine, String> {
    Ok(match hir.kind() {
        HirKind::Literal(literal) if literal.0.len() == 1 => Engine::Byte(literal.0[0]),
        HirKind::Literal(literal) => Engine::Literal(Box::new(memmem::Finder::new(&literal.0).into_owned())),
        _ => Engine::Automata(Box::new(Automata::new(hir, manner)?)),
    })
}

/// The names of the groups of a tree, by number.
fn group_names(hir: &Hir) -> Vec<Option<String>> {
    let mut names = vec![None; hir.properties().explicit_captures_len() + 1];
    let mut left = vec![hir];
    while let Some(hir) = left.pop() {
        match hir.kind() {
            HirKind::Capture(capture) => {
                if let Some(place) = names.get_mut(capture.index as usize) {
                    *place = capture.name.as_deref().map(str::to_owned);
                }
                left.push(&capture.sub);
            }
            HirKind::Repetition(repetition) => left.push(&repetition.sub),
            HirKind::Concat(parts) | HirKind::Alternation(parts) => left.extend(parts),
            _ => {}
        }
    }
    names
}
