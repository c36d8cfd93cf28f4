//! A text that every match has in it: looking for it first passes over most lines faster than any automaton.

use memchr::{memchr2, memmem};
use regex_syntax::hir::{Class, Hir, HirKind};

/// A shorter text is in too many lines to be worth it.
const WORTH_LOOKING_FOR: usize = 3;

/// A text to look for, or one of which some letters may be of either case.
pub enum Required {
    Text(Box<memmem::Finder<'static>>),
    Folded(Folded),
}

impl Required {
    /// The longest text that is part of every match, if it is long enough.
    pub fn of(hir: &Hir) -> Option<Required> {
        let run = longest_run(hir);
        if run.len() < WORTH_LOOKING_FOR {
            return None;
        }
        if run.iter().all(|byte| byte.mask == 0) {
            let text: Vec<u8> = run.iter().map(|byte| byte.value).collect();
            return Some(Required::Text(Box::new(memmem::Finder::new(&text).into_owned())));
        }
        Some(Required::Folded(Folded::new(run)))
    }

    #[inline]
    pub fn find(&self, text: &[u8]) -> Option<usize> {
        match self {
            Required::Text(finder) => finder.find(text),
            Required::Folded(finder) => finder.find(text),
        }
    }
}

/// A byte of the text; of a letter that may be of either case, the small one.
#[derive(Clone, Copy)]
struct Byte {
    value: u8,
    /// The bit that tells the cases apart, where they are the same here.
    mask: u8,
}

impl Byte {
    #[inline]
    fn fits(self, byte: u8) -> bool {
        byte | self.mask == self.value
    }
}

fn longest_run(hir: &Hir) -> Vec<Byte> {
    match hir.kind() {
        HirKind::Capture(capture) => longest_run(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => longest_run(&repetition.sub),
        HirKind::Concat(parts) => longest_in_sequence(parts),
        _ => text_of(hir).unwrap_or_default(),
    }
}

/// Neighbours that are plain text are one text together.
fn longest_in_sequence(parts: &[Hir]) -> Vec<Byte> {
    let (mut longest, mut run) = (Vec::new(), Vec::new());
    for part in parts {
        let within = match text_of(part) {
            Some(text) => {
                run.extend(text);
                continue;
            }
            None => longest_run(part),
        };
        for candidate in [std::mem::take(&mut run), within] {
            if candidate.len() > longest.len() {
                longest = candidate;
            }
        }
    }
    if run.len() > longest.len() { run } else { longest }
}

/// What matches exactly one text, or one letter of either case.
fn text_of(hir: &Hir) -> Option<Vec<Byte>> {
    match hir.kind() {
        HirKind::Literal(literal) => Some(literal.0.iter().map(|&value| Byte { value, mask: 0 }).collect()),
        HirKind::Class(class) => letter(class).map(|letter| vec![letter]),
        _ => None,
    }
}

/// A letter of ASCII in both cases and nothing else: not `k`, which is also the sign of kelvin, nor `s`.
fn letter(class: &Class) -> Option<Byte> {
    let members: Vec<u32> = match class {
        Class::Unicode(class) => {
            class.iter().flat_map(|range| [range.start().into(), range.end().into()]).collect()
        }
        Class::Bytes(class) => {
            class.iter().flat_map(|range| [range.start().into(), range.end().into()]).collect()
        }
    };
    let [upper, upper_end, lower, lower_end] = members[..] else { return None };
    let value = u8::try_from(lower).ok().filter(u8::is_ascii_lowercase)?;
    let is_pair = upper == upper_end && lower == lower_end && upper == u32::from(value.to_ascii_uppercase());
    is_pair.then_some(Byte { value, mask: 0x20 })
}

/// Looks for a text by the byte of it that is least often met.
pub struct Folded {
    text: Vec<Byte>,
    /// Where in it that byte is, and the next rarest, which most wrong places do not have.
    rare: [usize; 2],
}

/// What texts mostly consist of, the most frequent first.
const FREQUENT: &[u8] = b" etaoinsrhldcumfpgwybv0123456789.,-/:=_\"";

impl Folded {
    fn new(text: Vec<Byte>) -> Folded {
        let rarity =
            |at: &usize| FREQUENT.iter().position(|&byte| byte == text[*at].value).unwrap_or(FREQUENT.len());
        let mut places: Vec<usize> = (0..text.len()).collect();
        places.sort_by_key(|place| std::cmp::Reverse(rarity(place)));
        Folded { rare: [places[0], places[1]], text }
    }

    fn find(&self, text: &[u8]) -> Option<usize> {
        let ahead = self.rare[0];
        let rare = self.text[ahead];
        let mut from = ahead;
        loop {
            let found = from + memchr2(rare.value, rare.value ^ rare.mask, text.get(from..)?)?;
            if self.is_at(text, found - ahead) {
                return Some(found - ahead);
            }
            from = found + 1;
        }
    }

    fn is_at(&self, text: &[u8], place: usize) -> bool {
        let Some(found) = text[place..].get(..self.text.len()) else { return false };
        let second = self.rare[1];
        self.text[second].fits(found[second])
            && self.text.iter().zip(found).all(|(byte, &other)| byte.fits(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(pattern: &str) -> Option<Required> {
        let hir = regex_syntax::ParserBuilder::new().case_insensitive(true).build().parse(pattern);
        Required::of(&hir.expect("a pattern"))
    }

    #[test]
    fn a_text_of_either_case_is_found_wherever_it_is() {
        let finder = required("time-out").expect("long enough");
        for before in 0..100 {
            for after in [0, 1, 40] {
                let text = [vec![b't'; before], b"TiMe-oUt".to_vec(), vec![b'-'; after]].concat();
                assert_eq!(finder.find(&text), Some(before), "after {before} bytes, before {after}");
                assert_eq!(finder.find(&text[..before + 7]), None);
            }
        }
    }

    #[test]
    fn only_letters_fold() {
        let finder = required("a@\\[b").expect("long enough");
        assert_eq!(finder.find(b"A`{B a@{b A@[B"), Some(10));
    }

    #[test]
    fn what_is_not_in_every_match_is_not_looked_for() {
        assert!(required("abc|def").is_none());
        assert!(required("(?:abcd)?xy").is_none());
        // Both cases of these letters are three characters.
        assert!(required("sks").is_none());
        assert!(
            matches!(required("[0-9]+(abcd)ms"), Some(Required::Folded(folded)) if folded.text.len() == 4)
        );
        assert!(
            matches!(required("12[0-9]3456"), Some(Required::Text(finder)) if finder.needle() == b"3456")
        );
    }
}
