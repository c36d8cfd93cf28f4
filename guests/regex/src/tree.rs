//! A pattern as a tree, whatever syntax it was written in.

use crate::text::Unit;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
    Repetition,
};

/// A part of a pattern.
#[derive(Clone, Debug)]
pub enum Node {
    /// What matches the empty text.
    Empty,
    /// One character.
    Unit(Unit),
    /// One of several characters.
    Set(Set),
    /// A place.
    Place(Place),
    /// A numbered group.
    Group(Box<Node>, u32),
    /// What that group matched, again.
    Again(u32),
    /// One after the other.
    Sequence(Vec<Node>),
    /// One or the other.
    Either(Vec<Node>),
    /// Several times.
    Repeat(Box<Node>, u32, Option<u32>),
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// `^`.
    LineStart,
    /// `$`.
    LineEnd,
    /// `` \` ``.
    TextStart,
    /// `\'`.
    TextEnd,
    /// `\b`: an edge of a word.
    WordEdge,
    /// `\B`.
    NoWordEdge,
    /// `\<`.
    WordStart,
    /// `\>`.
    WordEnd,
    /// Not after a character of a word.
    NotAfterWord,
    /// Not before a character of a word.
    NotBeforeWord,
}

/// The characters that a bracket expression (or `.`, `\w`) stands for, and the bytes that are none.
#[derive(Clone, Debug)]
pub struct Set {
    /// The characters.
    pub chars: ClassUnicode,
    /// The bytes.
    pub bytes: ClassBytes,
}

/// How a tree becomes an automaton.
#[derive(Clone, Copy)]
pub struct Lowering {
    /// Letters match in either case.
    pub ignore_case: bool,
    /// Every byte is a character.
    pub bytes: bool,
    /// Words may have letters beyond ASCII.
    pub wide_words: bool,
    /// What ends a line, where a text may have several: `^` and `$` match around it too.
    pub line_end: Option<u8>,
    /// Each line is a text of its own.
    pub by_line: bool,
}

impl Node {
    /// Whether a part of it is what a group matched before.
    pub fn refers_back(&self) -> bool {
        match self {
            Node::Again(_) => true,
            Node::Group(inside, _) | Node::Repeat(inside, ..) => inside.refers_back(),
            Node::Sequence(parts) | Node::Either(parts) => parts.iter().any(Node::refers_back),
            Node::Empty | Node::Unit(_) | Node::Set(_) | Node::Place(_) => false,
        }
    }

    /// The tree that `regex_automata` takes. A reference back becomes anything: more matches than should, never fewer.
    pub fn lower(&self, how: Lowering) -> Hir {
        let all = |parts: &[Node]| parts.iter().map(|part| part.lower(how)).collect();
        match self {
            Node::Empty => Hir::empty(),
            Node::Unit(unit) => lower_unit(*unit, how),
            Node::Set(set) => set.lower(),
            Node::Place(place) => Hir::look(place.lower(how)),
            Node::Group(inside, index) => {
                Hir::capture(Capture { index: *index, name: None, sub: Box::new(inside.lower(how)) })
            }
            Node::Again(_) => repeat(Set::anything(how.line_end).lower(), 0, None),
            Node::Sequence(parts) => Hir::concat(all(parts)),
            Node::Either(parts) => Hir::alternation(all(parts)),
            Node::Repeat(inside, least, most) => repeat(inside.lower(how), *least, *most),
        }
    }
}

fn repeat(sub: Hir, min: u32, max: Option<u32>) -> Hir {
    Hir::repetition(Repetition { min, max, greedy: true, sub: Box::new(sub) })
}

fn lower_unit(unit: Unit, how: Lowering) -> Hir {
    match unit {
        Unit::Char(char) if how.ignore_case => {
            let mut set = Set::of([(char, char)]);
            set.fold_case(how.bytes);
            set.lower()
        }
        Unit::Char(char) => Hir::literal(char.encode_utf8(&mut [0; 4]).as_bytes()),
        Unit::Byte(byte) => Hir::literal([byte]),
    }
}

impl Place {
    fn lower(self, how: Lowering) -> Look {
        let has_lines = how.line_end.is_some();
        match (self, how.wide_words) {
            // What ends a line is told to the automaton apart, and need not be a line feed.
            (Place::LineStart, _) if has_lines => Look::StartLF,
            (Place::LineEnd, _) if has_lines => Look::EndLF,
            (Place::TextStart, _) if how.by_line => Look::StartLF,
            (Place::TextEnd, _) if how.by_line => Look::EndLF,
            (Place::LineStart | Place::TextStart, _) => Look::Start,
            (Place::LineEnd | Place::TextEnd, _) => Look::End,
            (Place::WordEdge, true) => Look::WordUnicode,
            (Place::WordEdge, false) => Look::WordAscii,
            (Place::NoWordEdge, true) => Look::WordUnicodeNegate,
            (Place::NoWordEdge, false) => Look::WordAsciiNegate,
            (Place::WordStart, true) => Look::WordStartUnicode,
            (Place::WordStart, false) => Look::WordStartAscii,
            (Place::WordEnd, true) => Look::WordEndUnicode,
            (Place::WordEnd, false) => Look::WordEndAscii,
            (Place::NotAfterWord, true) => Look::WordStartHalfUnicode,
            (Place::NotAfterWord, false) => Look::WordStartHalfAscii,
            (Place::NotBeforeWord, true) => Look::WordEndHalfUnicode,
            (Place::NotBeforeWord, false) => Look::WordEndHalfAscii,
        }
    }
}

impl Set {
    /// The characters of some ranges.
    pub fn of(ranges: impl IntoIterator<Item = (char, char)>) -> Set {
        let ranges = ranges.into_iter();
        let chars = ranges.map(|(low, high)| ClassUnicodeRange::new(low, high));
        Set { chars: ClassUnicode::new(chars), bytes: ClassBytes::empty() }
    }

    /// Every byte but one.
    fn anything(but: Option<u8>) -> Set {
        let all = ClassBytesRange::new(0, 0xff);
        let mut bytes = ClassBytes::new([all]);
        if let Some(byte) = but {
            bytes.difference(&ClassBytes::new([ClassBytesRange::new(byte, byte)]));
        }
        Set { chars: ClassUnicode::empty(), bytes }
    }

    /// Adds the other case of all members.
    pub fn fold_case(&mut self, ascii_only: bool) {
        if ascii_only {
            let mut ascii = ClassBytes::empty();
            for range in self.chars.ranges().iter().filter(|range| range.start().is_ascii()) {
                let last = if range.end().is_ascii() { range.end() } else { '\x7f' };
                ascii.push(ClassBytesRange::new(range.start() as u8, last as u8));
            }
            ascii.case_fold_simple();
            for range in ascii.ranges() {
                let (low, high) = (char::from(range.start()), char::from(range.end()));
                self.chars.push(ClassUnicodeRange::new(low, high));
            }
        } else {
            // Fails only where the tables of cases are left out, which they are not.
            let _ = self.chars.try_case_fold_simple();
        }
    }

    /// Takes a character out.
    pub fn remove(&mut self, char: char) {
        let one = ClassUnicodeRange::new(char, char);
        self.chars.difference(&ClassUnicode::new([one]));
    }

    /// Whether it has a unit.
    pub fn contains(&self, unit: Unit) -> bool {
        match unit {
            Unit::Char(char) => {
                let ranges = self.chars.ranges();
                let after = ranges.partition_point(|range| range.start() <= char);
                after > 0 && ranges[after - 1].end() >= char
            }
            Unit::Byte(byte) => {
                self.bytes.ranges().iter().any(|range| (range.start()..=range.end()).contains(&byte))
            }
        }
    }

    fn lower(&self) -> Hir {
        let chars = Hir::class(Class::Unicode(self.chars.clone()));
        if self.bytes.ranges().is_empty() {
            return chars;
        }
        if self.chars.ranges().is_empty() {
            return Hir::class(Class::Bytes(self.bytes.clone()));
        }
        match self.chars.to_byte_class() {
            // Characters that are one byte each.
            Some(mut ascii) => {
                ascii.union(&self.bytes);
                Hir::class(Class::Bytes(ascii))
            }
            None => Hir::alternation(vec![chars, Hir::class(Class::Bytes(self.bytes.clone()))]),
        }
    }
}

/// The tree with a byte taken out of all it could match: so that lines may be searched many at a time.
pub fn without_byte(hir: &Hir, byte: u8) -> Hir {
    let again = |sub: &Hir| without_byte(sub, byte);
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
        HirKind::Literal(literal) if literal.0.contains(&byte) => Hir::fail(),
        HirKind::Literal(_) => hir.clone(),
        HirKind::Class(Class::Unicode(class)) => {
            let mut set = Set { chars: class.clone(), bytes: ClassBytes::empty() };
            set.remove(char::from(byte));
            Hir::class(Class::Unicode(set.chars))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(byte, byte)]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Repetition(repetition) => Hir::repetition(repetition.with(again(&repetition.sub))),
        HirKind::Capture(capture) => {
            let mut capture = capture.clone();
            capture.sub = Box::new(again(&capture.sub));
            Hir::capture(capture)
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(again).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(again).collect()),
    }
}

/// Whether a byte is written out in a tree.
pub fn has_literal(hir: &Hir, byte: u8) -> bool {
    match hir.kind() {
        HirKind::Literal(literal) => literal.0.contains(&byte),
        HirKind::Repetition(repetition) => has_literal(&repetition.sub, byte),
        HirKind::Capture(capture) => has_literal(&capture.sub, byte),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().any(|part| has_literal(part, byte))
        }
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => false,
    }
}
