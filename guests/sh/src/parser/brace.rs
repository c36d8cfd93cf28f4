//! Brace expansion. It looks only at the text of a script, so it is done once, when a word is parsed.

use crate::arith::is_name;
use crate::ast::{ParamName, Piece, Word};

/// More words than this from one word are left unexpanded rather than filling the memory.
const MAX_WORDS: usize = 1_000_000;

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
pub fn expand(word: Word) -> Vec<Word> {
    let mut items = Vec::new();
    for piece in word.pieces {
        match piece {
            Piece::Text(text) => items.extend(text.into_iter().map(Item::Byte)),
            other => items.push(Item::Piece(other)),
        }
    }
    expand_items(&items, 0).into_iter().map(rebuild).collect()
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

fn expand_items(items: &[Item], depth: usize) -> Vec<Items> {
    if depth > 64 {
        return vec![items.to_vec()];
    }
    for open in 0..items.len() {
        if byte_at(items, open) != b'{' {
            continue;
        }
        let Some((close, commas)) = matching(items, open) else { continue };
        let inside = &items[open + 1..close];
        let alternatives = if commas.is_empty() {
            match sequence(inside) {
                Some(values) => values,
                None => continue,
            }
        } else {
            split(items, open, close, &commas)
                .into_iter()
                .flat_map(|part| expand_items(part, depth + 1))
                .collect()
        };
        let tails = expand_items(&items[close + 1..], depth);
        if alternatives.len().saturating_mul(tails.len()) > MAX_WORDS {
            return vec![items.to_vec()];
        }
        let mut words = Vec::with_capacity(alternatives.len() * tails.len());
        for alternative in &alternatives {
            for tail in &tails {
                let mut word = items[..open].to_vec();
                word.extend_from_slice(alternative);
                word.extend_from_slice(tail);
                words.push(word);
            }
        }
        return words;
    }
    vec![items.to_vec()]
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
fn sequence(inside: &[Item]) -> Option<Vec<Items>> {
    let mut text = Vec::new();
    for item in inside {
        match item {
            Item::Byte(byte) => text.push(*byte),
            Item::Piece(_) => return None,
        }
    }
    let text = String::from_utf8(text).ok()?;
    let parts: Vec<&str> = text.split("..").collect();
    let (from, to, step) = match parts.as_slice() {
        [from, to] => (*from, *to, 1_i64),
        [from, to, step] => (*from, *to, step.parse().ok()?),
        _ => return None,
    };
    let values = match (from.parse::<i64>(), to.parse::<i64>()) {
        (Ok(first), Ok(last)) if is_number(from) && is_number(to) => {
            numbers(first, last, step, width(from, to))?
        }
        _ => letters(from, to, step)?,
    };
    let item = |byte| match byte {
        // Between the upper and the lower letters; alone it quotes nothing and goes.
        b'\\' => Item::Piece(Piece::Quoted(Vec::new())),
        byte => Item::Byte(byte),
    };
    Some(values.into_iter().map(|value| value.into_iter().map(item).collect()).collect())
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

fn steps(first: i64, last: i64, step: i64) -> Option<Vec<i64>> {
    let step = if step == 0 { 1 } else { step.unsigned_abs() };
    let count = (first.abs_diff(last) / step).saturating_add(1);
    if count > MAX_WORDS as u64 {
        return None;
    }
    let step = i64::try_from(step).unwrap_or(i64::MAX);
    let signed = if first <= last { step } else { -step };
    Some((0..count as i64).map(|n| first.wrapping_add(signed.wrapping_mul(n))).collect())
}

fn numbers(first: i64, last: i64, step: i64, width: usize) -> Option<Vec<Vec<u8>>> {
    let shown = |value: i64| {
        if width == 0 {
            return value.to_string().into_bytes();
        }
        let sign = if value < 0 { "-" } else { "" };
        format!("{sign}{:0>pad$}", value.unsigned_abs(), pad = width - sign.len()).into_bytes()
    };
    Some(steps(first, last, step)?.into_iter().map(shown).collect())
}

fn letters(from: &str, to: &str, step: i64) -> Option<Vec<Vec<u8>>> {
    let ([first], [last]) = (from.as_bytes(), to.as_bytes()) else { return None };
    if !first.is_ascii_alphabetic() || !last.is_ascii_alphabetic() {
        return None;
    }
    let values = steps(i64::from(*first), i64::from(*last), step)?;
    Some(values.into_iter().map(|value| vec![value as u8]).collect())
}
