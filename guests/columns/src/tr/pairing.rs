//! Which byte of the second string stands for which of the first, and what must not be in them.

use super::set::{Class, Element, Set};

/// The strings of a command line.
pub struct Given {
    /// The first stands for all that is not in it.
    pub complement: bool,
    /// The first ends where the second does.
    pub truncate: bool,
    pub first: Set,
    pub second: Option<Set>,
}

/// The bytes of a set one after the other.
struct Steps<'a> {
    elements: &'a [Element],
    /// How many of the first element's bytes were given out.
    used: u64,
}

/// A byte, where it comes from, and whether it is the first from there.
#[derive(Clone, Copy)]
struct Step {
    byte: u8,
    case: Option<Class>,
    is_new: bool,
}

impl<'a> Steps<'a> {
    fn of(set: &'a Set) -> Steps<'a> {
        Steps { elements: &set.elements, used: 0 }
    }

    fn skip_element(&mut self) {
        self.elements = self.elements.get(1..).unwrap_or_default();
        self.used = 0;
    }
}

impl Iterator for Steps<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        loop {
            let element = *self.elements.first()?;
            let Some(byte) = element.nth(self.used) else {
                self.skip_element();
                continue;
            };
            let case = match element {
                Element::Class(class @ (Class::Upper | Class::Lower)) => Some(class),
                _ => None,
            };
            let is_new = self.used == 0;
            self.used += 1;
            return Some(Step { byte, case, is_new });
        }
    }
}

impl Given {
    /// Holds the strings against each other, and makes the second as long as it must be.
    pub fn check(&mut self, translates: bool) -> Result<(), String> {
        let first_length = self.first_length()?;
        if self.first.elements.iter().any(is_indefinite) {
            return Err("the [c*] repeat construct may not appear in string1".into());
        }
        let Some(second) = &mut self.second else { return Ok(()) };
        let indefinite = second.elements.iter().filter(|element| is_indefinite(element)).count();
        let second_length = fill_up(second, first_length)?;
        match (indefinite, translates) {
            (2.., _) => return Err("only one [c*] repeat construct may appear in string2".into()),
            (1, false) => {
                return Err("the [c*] construct may appear in string2 only when translating".into());
            }
            (_, false) => return Ok(()),
            (_, true) => check_classes(second)?,
        }
        // A pair of classes counts as one byte on either side.
        let saved = 25 * self.case_pairs()?;
        let (first_length, second_length) = (first_length - saved, second_length - saved);
        self.extend(first_length, second_length)?;
        let one_for_all = self.second_length() == Some(first_length) && self.second_is_uniform();
        if self.complement && self.first.elements.iter().any(is_class) && !one_for_all {
            let message = "when translating with complemented character classes,\n\
                           string2 must map all characters in the domain to one";
            return Err(message.into());
        }
        Ok(())
    }

    fn first_length(&self) -> Result<u64, String> {
        if self.complement {
            return Ok(self.first.members(true).iter().filter(|member| **member).count() as u64);
        }
        self.first.len().ok_or_else(too_many)
    }

    fn second_length(&self) -> Option<u64> {
        self.second.as_ref().and_then(Set::len)
    }

    fn second_is_uniform(&self) -> bool {
        let members = self.second.as_ref().map(|second| second.members(false));
        members.is_some_and(|members| members.iter().filter(|member| **member).count() <= 1)
    }

    /// How often `[:upper:]` or `[:lower:]` stands against another of them; it must not stand against anything else.
    fn case_pairs(&self) -> Result<u64, String> {
        let Some(second) = self.second.as_ref().filter(|second| second.elements.iter().any(is_class)) else {
            return Ok(0);
        };
        let mut pairs = 0;
        if self.complement {
            return Ok(pairs);
        }
        let (mut left, mut right) = (Steps::of(&self.first), Steps::of(second));
        loop {
            let (from, to) = (left.next(), right.next());
            if to.is_some_and(|to| to.case.is_some()) {
                if !from.is_some_and(|from| from.is_new && from.case.is_some()) {
                    return Err("misaligned [:upper:] and/or [:lower:] construct".into());
                }
                left.skip_element();
                right.skip_element();
                pairs += 1;
            }
            if from.is_none() || to.is_none() {
                return Ok(pairs);
            }
        }
    }

    /// Lets the last byte of the second string stand for what the first has more.
    fn extend(&mut self, first_length: u64, second_length: u64) -> Result<(), String> {
        let Some(second) = self.second.as_mut().filter(|_| !self.truncate && first_length > second_length)
        else {
            return Ok(());
        };
        let last = match second.elements.last() {
            Some(Element::Byte(last) | Element::Range(_, last) | Element::Repeat(last, _)) => *last,
            Some(Element::Class(_) | Element::Equivalent(_)) => {
                let message = "when translating with string1 longer than string2,\n\
                               the latter string must not end with a character class";
                return Err(message.into());
            }
            None => return Err("when not truncating set1, string2 must be non-empty".into()),
        };
        second.elements.push(Element::Repeat(last, first_length - second_length));
        Ok(())
    }

    /// What each byte becomes.
    pub fn changes(&self) -> [u8; 256] {
        let mut changes = std::array::from_fn(|byte| byte as u8);
        let Some(second) = &self.second else { return changes };
        let mut right = Steps::of(second);
        if self.complement {
            let others = self.first.members(true);
            for (byte, to) in (0..256).filter(|byte| others[*byte]).zip(right) {
                changes[byte] = to.byte;
            }
            return changes;
        }
        let mut left = Steps::of(&self.first);
        while let (Some(from), Some(to)) = (left.next(), right.next()) {
            match (from.case, to.case) {
                (Some(Class::Lower), Some(Class::Upper)) => {
                    (b'a'..=b'z').for_each(|byte| changes[usize::from(byte)] = byte.to_ascii_uppercase());
                }
                (Some(Class::Upper), Some(Class::Lower)) => {
                    (b'A'..=b'Z').for_each(|byte| changes[usize::from(byte)] = byte.to_ascii_lowercase());
                }
                _ => changes[usize::from(from.byte)] = to.byte,
            }
            if to.case.is_some() {
                left.skip_element();
                right.skip_element();
            }
        }
        changes
    }
}

fn is_indefinite(element: &Element) -> bool {
    matches!(element, Element::Repeat(_, 0))
}

fn is_class(element: &Element) -> bool {
    matches!(element, Element::Class(_))
}

fn too_many() -> String {
    "too many characters in set".into()
}

/// Lets `[c*]` stand for as many as are missing; answers the length.
fn fill_up(second: &mut Set, wanted: u64) -> Result<u64, String> {
    let length = second.len().ok_or_else(too_many)?;
    let mut open = second.elements.iter_mut().filter(|element| is_indefinite(element));
    match (open.next(), open.next()) {
        (Some(Element::Repeat(_, count)), None) if wanted >= length => {
            *count = wanted - length;
            Ok(wanted)
        }
        _ => Ok(length),
    }
}

/// The second string must not have what stands for several bytes at once, but for pairs of cases.
fn check_classes(second: &Set) -> Result<(), String> {
    if second.elements.iter().any(|element| matches!(element, Element::Equivalent(_))) {
        return Err("[=c=] expressions may not appear in string2 when translating".into());
    }
    if second.elements.iter().any(|element| matches!(element, Element::Class(Class::Other(_)))) {
        let message = "when translating, the only character classes that may appear in\n\
                       string2 are 'upper' and 'lower'";
        return Err(message.into());
    }
    Ok(())
}
