//! Finds out which added files are removed ones under another name.

use std::collections::HashMap;

use crate::change::Change;
use crate::fail::Res;
use crate::hash::Oid;
use crate::object::{LINK, SUBMODULE};
use crate::repo::Repo;

/// So many pairs are compared by content, as git's `diff.renameLimit` has it.
const MOST: usize = 1000 * 1000;

/// How many bytes two texts share, by lines (or pieces of 64 bytes): in percent of the larger.
pub fn similarity(old: &[u8], new: &[u8]) -> u32 {
    let larger = old.len().max(new.len());
    if larger == 0 {
        return 100;
    }
    let mut counts: HashMap<&[u8], usize> = HashMap::new();
    for piece in pieces(old) {
        *counts.entry(piece).or_default() += piece.len();
    }
    let mut shared = 0;
    for piece in pieces(new) {
        if let Some(left) = counts.get_mut(piece).filter(|left| **left > 0) {
            *left -= piece.len();
            shared += piece.len();
        }
    }
    u32::try_from(shared * 100 / larger).unwrap_or(0)
}

fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').flat_map(|line| line.chunks(64))
}

/// Replaces pairs of an addition and a removal by renames where they are at least so alike (in percent).
pub fn detect(repo: &Repo, changes: Vec<Change>, least: u32, copies: bool) -> Res<Vec<Change>> {
    let file = |mode: u32| mode != 0 && mode != SUBMODULE;
    let places = |wanted: u8| -> Vec<usize> {
        let fits = |change: &Change| change.status == wanted && file(change.old.mode.max(change.new.mode));
        changes.iter().enumerate().filter(|(_, change)| fits(change)).map(|(at, _)| at).collect()
    };
    let (added, mut removed) = (places(b'A'), places(b'D'));
    if copies {
        removed.extend(places(b'M'));
    }
    if added.is_empty() || removed.is_empty() {
        return Ok(changes);
    }
    let pairs = pair(repo, &changes, &added, &removed, least, copies)?;
    Ok(replace(changes, &pairs, copies))
}

struct Pair {
    from: usize,
    to: usize,
    score: u32,
}

fn pair(
    repo: &Repo,
    changes: &[Change],
    added: &[usize],
    removed: &[usize],
    least: u32,
    copies: bool,
) -> Res<Vec<Pair>> {
    let mut pairs: Vec<Pair> = Vec::new();
    let oid_of = |at: usize, new: bool| -> Res<Oid> {
        let side = if new { &changes[at].new } else { &changes[at].old };
        match side.oid {
            Some(oid) => Ok(oid),
            None => Ok(crate::hash::of_object("blob", &side.content(repo)?)),
        }
    };
    let name = |path: &[u8]| path.rsplit(|&byte| byte == b'/').next().unwrap_or(b"").to_vec();
    let mut sources: HashMap<Oid, Vec<usize>> = HashMap::new();
    for &at in removed {
        sources.entry(oid_of(at, false)?).or_default().push(at);
    }
    for &to in added {
        let exact = sources.get(&oid_of(to, true)?).cloned().unwrap_or_default();
        let free = |from: &&usize| copies || !pairs.iter().any(|pair| pair.from == **from);
        let kind = |from: &&usize| (changes[**from].old.mode == LINK) == (changes[to].new.mode == LINK);
        let of_same_name = |from: &&usize| name(&changes[**from].old.path) == name(&changes[to].new.path);
        let from = exact
            .iter()
            .filter(free)
            .filter(kind)
            .find(of_same_name)
            .or_else(|| exact.iter().filter(free).find(kind));
        if let Some(&from) = from {
            pairs.push(Pair { from, to, score: 100 });
        }
    }
    if least < 100 && added.len() * removed.len() <= MOST {
        let mut contents: HashMap<(usize, bool), Vec<u8>> = HashMap::new();
        for (&at, new) in removed.iter().map(|at| (at, false)).chain(added.iter().map(|at| (at, true))) {
            let side = if new { &changes[at].new } else { &changes[at].old };
            contents.insert((at, new), side.content(repo)?);
        }
        let mut candidates = Vec::new();
        for &to in added.iter().filter(|to| !pairs.iter().any(|pair| pair.to == **to)) {
            for &from in removed {
                let (old, new) = (&contents[&(from, false)], &contents[&(to, true)]);
                let links = changes[from].old.mode == LINK || changes[to].new.mode == LINK;
                let sizes = (old.len().min(new.len()) as u64 * 100)
                    < u64::from(least) * old.len().max(new.len()) as u64;
                if !links && !sizes && !old.is_empty() {
                    let score = similarity(old, new);
                    let same_name = name(&changes[from].old.path) == name(&changes[to].new.path);
                    candidates.extend((score >= least).then_some((score, same_name, from, to)));
                }
            }
        }
        candidates.sort_by_key(|candidate| std::cmp::Reverse((candidate.0, candidate.1)));
        for (score, _, from, to) in candidates {
            let taken = pairs.iter().any(|pair| pair.to == to || pair.from == from && !copies);
            if !taken {
                pairs.push(Pair { from, to, score });
            }
        }
    }
    Ok(pairs)
}

fn replace(changes: Vec<Change>, pairs: &[Pair], copies: bool) -> Vec<Change> {
    let mut result = Vec::new();
    for (at, change) in changes.iter().enumerate() {
        if let Some(pair) = pairs.iter().find(|pair| pair.to == at) {
            let source = &changes[pair.from];
            // Of several files made from one that is gone, the last is the rename and the others are copies.
            let later = copies && pairs.iter().any(|other| other.from == pair.from && other.to > pair.to);
            let status = if source.status == b'D' && !later { b'R' } else { b'C' };
            result.push(Change {
                status,
                old: source.old.clone(),
                new: change.new.clone(),
                score: pair.score,
            });
        } else if !(change.status == b'D' && pairs.iter().any(|pair| pair.from == at)) {
            result.push(change.clone());
        }
    }
    result.sort_by(|a, b| a.path().cmp(b.path()));
    result
}
