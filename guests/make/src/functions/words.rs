//! Functions of words.

use crate::make::{Make, Res};
use crate::text::{self, Pattern};

pub fn subst(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::replace(&arguments[2], &arguments[0], &arguments[1])
}

pub fn patsubst(arguments: &[Vec<u8>]) -> Vec<u8> {
    let (from, to) = (Pattern::new(&arguments[0]), Pattern::new(&arguments[1]));
    text::join(text::words(&arguments[2]).map(|word| text::substitute(word, &from, &to)))
}

pub fn strip(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::join(text::words(&arguments[0]))
}

pub fn findstring(arguments: &[Vec<u8>]) -> Vec<u8> {
    let wanted = &arguments[0];
    let found = wanted.is_empty() || text::find(&arguments[1], wanted).is_some();
    if found { wanted.clone() } else { Vec::new() }
}

pub fn filter(arguments: &[Vec<u8>]) -> Vec<u8> {
    keep(arguments, true)
}

pub fn filter_out(arguments: &[Vec<u8>]) -> Vec<u8> {
    keep(arguments, false)
}

fn keep(arguments: &[Vec<u8>], matching: bool) -> Vec<u8> {
    let patterns: Vec<Pattern> = text::words(&arguments[0]).map(Pattern::new).collect();
    let fits = |word: &&[u8]| patterns.iter().any(|pattern| pattern.stem(word).is_some()) == matching;
    text::join(text::words(&arguments[1]).filter(fits))
}

pub fn sort(arguments: &[Vec<u8>]) -> Vec<u8> {
    let mut words: Vec<&[u8]> = text::words(&arguments[0]).collect();
    words.sort_unstable();
    words.dedup();
    text::join(words)
}

pub fn count(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::words(&arguments[0]).count().to_string().into_bytes()
}

pub fn firstword(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::words(&arguments[0]).next().unwrap_or_default().to_vec()
}

pub fn lastword(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::words(&arguments[0]).next_back().unwrap_or_default().to_vec()
}

pub fn addprefix(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::join(text::words(&arguments[1]).map(|word| [&arguments[0], word].concat()))
}

pub fn addsuffix(arguments: &[Vec<u8>]) -> Vec<u8> {
    text::join(text::words(&arguments[1]).map(|word| [word, &arguments[0]].concat()))
}

pub fn join(arguments: &[Vec<u8>]) -> Vec<u8> {
    let (mut left, mut right) = (text::words(&arguments[0]), text::words(&arguments[1]));
    let pairs = std::iter::from_fn(|| match (left.next(), right.next()) {
        (None, None) => None,
        (left, right) => Some([left.unwrap_or_default(), right.unwrap_or_default()].concat()),
    });
    text::join(pairs)
}

pub fn word(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let number = number(make, "word", "first", &arguments[0])?;
    if number == 0 {
        return Err(make.fatal("first argument to 'word' function must be greater than 0"));
    }
    Ok(text::words(&arguments[1]).nth(number - 1).unwrap_or_default().to_vec())
}

pub fn wordlist(make: &mut Make, arguments: &[Vec<u8>]) -> Res<Vec<u8>> {
    let first = number(make, "wordlist", "first", &arguments[0])?;
    let last = number(make, "wordlist", "second", &arguments[1])?;
    if first == 0 {
        let given = text::shown(text::trim(&arguments[0]));
        return Err(make.fatal(&format!("invalid first argument to 'wordlist' function: '{given}'")));
    }
    let count = (last + 1).saturating_sub(first);
    Ok(text::join(text::words(&arguments[2]).skip(first - 1).take(count)))
}

/// A number as these two functions take it.
fn number(make: &mut Make, function: &str, which: &str, given: &[u8]) -> Res<usize> {
    let shown = text::shown(text::trim(given));
    let valid = !shown.is_empty() && shown.bytes().all(|byte| byte.is_ascii_digit());
    if !valid {
        let message = format!("non-numeric {which} argument to '{function}' function: '{shown}'");
        return Err(make.fatal(&message));
    }
    // Beyond what there can be of words, one number is as good as another.
    Ok(shown.parse().unwrap_or(usize::MAX - 1))
}
