//! Brace expansion. It looks only at the text of a script, so it is done once, when a word is parsed.

use crate::arith::is_name;
use crate::ast::{ParamName, Piece, Word};

/// More words than this from one word, or more bytes in all of them, are an error rather than all of the memory.
const MAX_WORDS: usize = 1_000_000;
const MAX_BYTES: usize = 8_000_000;
/// Brace expressions after one another, and inside one another, in one word.
const MAX_BESIDE: usize = 1000;
const MAX_INSIDE: usize = 64;
/// Nothing longer is a range of numbers.
const MAX_SEQUENCE: usize = 200;

/// A word would become more words than there is room for.
pub struct TooMany;

/// A word as bytes that braces may be made of, and pieces that they may not.
#[derive(Clone)]
enum Item {
    Byte(u8),
    Piece(Piece),
}

type Items = Vec<Item>;

/// A quick look: whether a word could hold a brace expression at all.
pub fn may_expand(word: &Word) -> bool {
    let has = |wanted: u8| {
        word.pieces.iter().any(|piece| matches!(piece, Piece::Text(text) if text.contains(&wanted)))
    };
    has(b'{') && has(b'}')
}

/// The words a word expands to.
pub fn expand(word: Word) -> Result<Vec<Word>, TooMany> {
    let mut items = Vec::new();
    for piece in word.pieces {
        match piece {
            Piece::Text(text) => items.extend(text.into_iter().map(Item::Byte)),
            other => items.push(Item::Piece(other)),
        }
    }
    Ok(expand_items(&items, 0, 0)?.into_iter().map(rebuild).collect())
}

fn rebuild(items: Items) -> Word {
    let mut pieces: Vec<Piece> = Vec::new();
    for item in items {
        match (pieces.last_mut(), item) {
            (Some(Piece::Text(text)), Item::Byte(byte)) => text.push(byte),
            // `$x{1,2}` is `$x1 $x2`: braces are expanded before anything else.
            (Some(Piece::Param(param)), Item::Byte(byte)) if param.bare && is_name(byte) => {
                if let ParamName::Variable(name) = &mut param.name {
                    *name = [name, [byte].as_slice()].concat().into();
                } else {
                    pieces.push(Piece::Text(vec![byte]));
                }
            }
            (_, Item::Byte(byte)) => pieces.push(Piece::Text(vec![byte])),
            (_, Item::Piece(piece)) => pieces.push(piece),
        }
    }
    if pieces.is_empty() {
        // `{,x}` yields an empty word, which is dropped unless something quoted stands in it.
        pieces.push(Piece::Text(Vec::new()));
    }
    Word { pieces, raw: None }
}

fn byte_at(items: &[Item], at: usize) -> u8 {
    match items.get(at) {
        Some(Item::Byte(byte)) => *byte,
        _ => 0,
    }
}

fn expand_items(items: &[Item], inside: usize, beside: usize) -> Result<Vec<Items>, TooMany> {
    if inside > MAX_INSIDE || beside > MAX_BESIDE {
        return Err(TooMany);
    }
    for open in 0..items.len() {
        if byte_at(items, open) != b'{' {
            continue;
        }
        let Some((close, commas)) = matching(items, open) else { continue };
        let alternatives = if commas.is_empty() {
            match sequence(&items[open + 1..close])? {
                Some(values) => values,
                None => continue,
            }
        } else {
            let mut alternatives = Vec::new();
            for part in split(items, open, close, &commas) {
                alternatives.extend(expand_items(part, inside + 1, 0)?);
            }
            alternatives
        };
        let tails = expand_items(&items[close + 1..], inside, beside + 1)?;
        check_size(open, &alternatives, &tails)?;
        let mut words = Vec::with_capacity(alternatives.len() * tails.len());
        for alternative in &alternatives {
            for tail in &tails {
                let mut word = items[..open].to_vec();
                word.extend_from_slice(alternative);
                word.extend_from_slice(tail);
                words.push(word);
            }
        }
        return Ok(words);
    }
    Ok(vec![items.to_vec()])
}

/// Whether there is room for every alternative with every tail.
fn check_size(head: usize, alternatives: &[Items], tails: &[Items]) -> Result<(), TooMany> {
    let longest = |list: &[Items]| list.iter().map(Vec::len).max().unwrap_or(0);
    let words = alternatives.len().saturating_mul(tails.len());
    let length = head + longest(alternatives) + longest(tails);
    if words > MAX_WORDS || words.saturating_mul(length) > MAX_BYTES { Err(TooMany) } else { Ok(()) }
}

/// The closing brace for the one at `open`, and the commas at its level.
fn matching(items: &[Item], open: usize) -> Option<(usize, Vec<usize>)> {
    let (mut depth, mut commas) = (0, Vec::new());
    for at in open..items.len() {
        match byte_at(items, at) {
            b'{' => depth += 1,
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some((at, commas));
                }
            }
            b',' if depth == 1 => commas.push(at),
            _ => {}
        }
    }
    None
}

fn split<'i>(items: &'i [Item], open: usize, close: usize, commas: &[usize]) -> Vec<&'i [Item]> {
    let mut parts = Vec::new();
    let mut start = open + 1;
    for &end in commas.iter().chain([&close]) {
        parts.push(&items[start..end]);
        start = end + 1;
    }
    parts
}

/// `1..5`, `a..e`, `01..10..2`.
fn sequence(inside: &[Item]) -> Result<Option<Vec<Items>>, TooMany> {
    if inside.len() > MAX_SEQUENCE {
        return Ok(None);
    }
    let byte = |item: &Item| match item {
        Item::Byte(byte) => Some(*byte),
        Item::Piece(_) => None,
    };
    let text: Option<Vec<u8>> = inside.iter().map(byte).collect();
    let Some(text) = text.and_then(|text| String::from_utf8(text).ok()) else { return Ok(None) };
    let parts: Vec<&str> = text.split("..").collect();
    let (from, to, step) = match parts.as_slice() {
        [from, to] => (*from, *to, Ok(1_i64)),
        [from, to, step] => (*from, *to, step.parse()),
        _ => return Ok(None),
    };
    let Ok(step) = step else { return Ok(None) };
    let values = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(first), Ok(last)) if is_number(from) && is_number(to) => {
            numbers(first, last, step, width(from, to))?
        }
        _ => match letters(from, to, step)? {
            Some(values) => values,
            None => return Ok(None),
        },
    };
    let item = |byte| match byte {
        // Between the upper and the lower letters; alone it quotes nothing and goes.
        b'\\' => Item::Piece(Piece::Quoted(Vec::new())),
        byte => Item::Byte(byte),
    };
    Ok(Some(values.into_iter().map(|value| value.into_iter().map(item).collect()).collect()))
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The width numbers are padded to when either end has a leading zero.
fn width(from: &str, to: &str) -> usize {
    let padded = |text: &str| {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        digits.len() > 1 && digits.starts_with('0')
    };
    if padded(from) || padded(to) { from.len().max(to.len()) } else { 0 }
}

fn steps(first: i64, last: i64, step: i64) -> Result<Vec<i64>, TooMany> {
    let step = if step == 0 { 1 } else { step.unsigned_abs() };
    let count = (first.abs_diff(last) / step).saturating_add(1);
    if count > MAX_WORDS as u64 {
        return Err(TooMany);
    }
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let signed = if first <= last { step } else { -step };
    Ok((0..count as i64).map(|n| first.wrapping_add(signed.wrapping_mul(n))).collect())
}

fn numbers(first: i64, last: i64, step: i64, width: usize) -> Result<Vec<Vec<u8>>, TooMany> {
    let shown = |value: i64| {
        if width == 0 {
            return value.to_string().into_bytes();
        }
        let sign = if value < 0 { "-" } else { "" };
        let digits = value.unsigned_abs().to_string();
        // As wide as was typed, which may be more than `format!` takes.
        let zeros = "0".repeat(width.saturating_sub(sign.len() + digits.len()));
        format!("{sign}{zeros}{digits}").into_bytes()
    };
    Ok(steps(first, last, step)?.into_iter().map(shown).collect())
}

fn letters(from: &str, to: &str, step: i64) -> Result<Option<Vec<Vec<u8>>>, TooMany> {
    let ([first], [last]) = (from.as_bytes(), to.as_bytes()) else { return Ok(None) };
    if !first.is_ascii_alphabetic() || !last.is_ascii_alphabetic() {
        return Ok(None);
    }
    let values = steps(i64::from(*first), i64::from(*last), step)?;
    Ok(Some(values.into_iter().map(|value| vec![value as u8]).collect()))
}
