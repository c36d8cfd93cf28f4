//! Histories: which commits, and in which order.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use crate::fail::{Res, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::object::Kind;
use crate::pathspec::Pathspec;
use crate::refs;
use crate::repo::Repo;
use crate::revision;

#[derive(Clone, Copy, PartialEq, Default)]
pub enum Order {
    /// As their dates say.
    #[default]
    Date,
    /// No commit before its children, lines of history together.
    Topo,
    /// No commit before its children, else by date.
    DateTopo,
}

pub struct Walk<'a> {
    repo: &'a Repo,
    pub include: Vec<Oid>,
    pub exclude: Vec<Oid>,
    pub order: Order,
    pub first_parent: bool,
    /// Of `A...B`, which commits are on the left.
    pub left: Vec<Oid>,
    /// Only what changed these counts.
    pub paths: Pathspec,
}

impl<'a> Walk<'a> {
    pub fn new(repo: &'a Repo) -> Walk<'a> {
        Walk {
            repo,
            include: Vec::new(),
            exclude: Vec::new(),
            order: Order::Date,
            first_parent: false,
            left: Vec::new(),
            paths: Pathspec::default(),
        }
    }

    pub fn include(&mut self, oid: Oid) -> Res<()> {
        let (oid, kind) = self.repo.odb.peel(&oid)?;
        if kind == Kind::Commit && !self.include.contains(&oid) {
            self.include.push(oid);
        }
        Ok(())
    }

    pub fn exclude(&mut self, oid: Oid) -> Res<()> {
        let (oid, kind) = self.repo.odb.peel(&oid)?;
        if kind == Kind::Commit {
            self.exclude.push(oid);
        }
        Ok(())
    }

    /// Takes `A`, `^A`, `A..B`, `A...B`, `A^!`, `A^@` or `A^-`; answers whether it means commits.
    pub fn take(&mut self, written: &[u8]) -> Res<bool> {
        let repo = self.repo;
        if let Some(rest) = written.strip_prefix(b"^") {
            return match revision::find(repo, rest)? {
                Some(oid) => self.exclude(oid).map(|()| true),
                None => Ok(false),
            };
        }
        if let Some(name) = written
            .strip_suffix(b"^!")
            .or_else(|| written.strip_suffix(b"^@"))
            .or_else(|| written.strip_suffix(b"^-"))
        {
            let Some(oid) = revision::find(repo, name)? else { return Ok(false) };
            let (oid, _) = repo.odb.peel(&oid)?;
            let parents = repo.odb.commit(&oid)?.parents.clone();
            match written[written.len() - 1] {
                b'@' => parents.into_iter().try_for_each(|parent| self.include(parent))?,
                sign => {
                    self.include(oid)?;
                    let count = if sign == b'-' { 1 } else { parents.len() };
                    parents.into_iter().take(count).try_for_each(|parent| self.exclude(parent))?;
                }
            }
            return Ok(true);
        }
        let dots =
            written.windows(2).position(|pair| pair == b"..").filter(|at| !written[..*at].contains(&b':'));
        let Some(at) = dots else {
            return match revision::find(repo, written)? {
                Some(oid) => self.include(oid).map(|()| true),
                None => Ok(false),
            };
        };
        let symmetric = written.get(at + 2) == Some(&b'.');
        let name = |part: &[u8]| if part.is_empty() { b"HEAD".to_vec() } else { part.to_vec() };
        let (left, right) = (name(&written[..at]), name(&written[at + 2 + usize::from(symmetric)..]));
        let (Some(left), Some(right)) = (revision::find(repo, &left)?, revision::find(repo, &right)?) else {
            return Ok(false);
        };
        if symmetric {
            let (left, right) = (repo.odb.peel(&left)?.0, repo.odb.peel(&right)?.0);
            for base in merge_bases(repo, &left, &right)? {
                self.exclude(base)?;
            }
            self.left.push(left);
            self.include(left)?;
        } else {
            self.exclude(left)?;
        }
        self.include(right)?;
        Ok(true)
    }

    /// All commits of names below a prefix.
    pub fn include_refs(&mut self, prefix: &[u8]) -> Res<()> {
        for (_, oid) in refs::list(self.repo, prefix)? {
            self.include(oid)?;
        }
        Ok(())
    }

    pub fn parents(&self, oid: &Oid) -> Res<Vec<Oid>> {
        let mut parents = self.repo.odb.commit(oid)?.parents.clone();
        if self.first_parent {
            parents.truncate(1);
        }
        let parents: Vec<Oid> =
            parents.into_iter().filter(|parent| !is_shallow_edge(self.repo, oid, parent)).collect();
        if !self.paths.is_empty() {
            for parent in &parents {
                // What this one has it has from there: the other lines of history explain nothing.
                if self.is_same(oid, Some(parent))? {
                    return Ok(vec![*parent]);
                }
            }
        }
        Ok(parents)
    }

    fn is_same(&self, oid: &Oid, parent: Option<&Oid>) -> Res<bool> {
        let old = parent.map(|parent| self.repo.odb.commit(parent).map(|parent| parent.tree)).transpose()?;
        let new = self.repo.odb.commit(oid)?.tree;
        Ok(crate::change::trees(self.repo, old.as_ref(), Some(&new), &self.paths)?.is_empty())
    }

    /// Whether a commit changed what counts.
    pub fn is_interesting(&self, oid: &Oid) -> Res<bool> {
        if self.paths.is_empty() {
            return Ok(true);
        }
        let parents = &self.repo.odb.commit(oid)?.parents;
        if parents.is_empty() {
            return Ok(!self.is_same(oid, None)?);
        }
        let parents = if self.first_parent { &parents[..1] } else { parents };
        for parent in parents {
            if self.is_same(oid, Some(parent))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The commits, in order.
    pub fn run(&self) -> Res<Vec<Oid>> {
        let hidden = ancestors(self.repo, &self.exclude)?;
        let mut seen: HashSet<Oid> = HashSet::new();
        let mut heap = BinaryHeap::new();
        let mut count = 0u64;
        let mut push = |oid: Oid, heap: &mut BinaryHeap<_>, seen: &mut HashSet<Oid>| -> Res<()> {
            if !hidden.contains(&oid) && seen.insert(oid) {
                count += 1;
                heap.push((self.repo.odb.commit(&oid)?.committer.time, Reverse(count), oid));
            }
            Ok(())
        };
        for oid in &self.include {
            push(*oid, &mut heap, &mut seen)?;
        }
        let mut list = Vec::new();
        while let Some((_, _, oid)) = heap.pop() {
            list.push(oid);
            for parent in self.parents(&oid)? {
                push(parent, &mut heap, &mut seen)?;
            }
        }
        match self.order {
            Order::Date => Ok(list),
            order => self.sort(list, order),
        }
    }

    /// No commit before its children.
    fn sort(&self, list: Vec<Oid>, order: Order) -> Res<Vec<Oid>> {
        let mut children: HashMap<Oid, usize> = list.iter().map(|oid| (*oid, 0)).collect();
        for oid in &list {
            for parent in self.parents(oid)? {
                if let Some(count) = children.get_mut(&parent) {
                    *count += 1;
                }
            }
        }
        let mut tips: Vec<Oid> = list.iter().filter(|oid| children.get(*oid) == Some(&0)).copied().collect();
        let mut sorted = Vec::with_capacity(list.len());
        let mut heap = BinaryHeap::new();
        let mut count = 0u64;
        if order == Order::Topo {
            tips.reverse();
        } else {
            for tip in tips.drain(..) {
                count += 1;
                heap.push((self.repo.odb.commit(&tip)?.committer.time, Reverse(count), tip));
            }
        }
        while let Some(oid) =
            if order == Order::Topo { tips.pop() } else { heap.pop().map(|(_, _, oid)| oid) }
        {
            sorted.push(oid);
            for parent in self.parents(&oid)? {
                let Some(left) = children.get_mut(&parent) else { continue };
                *left -= 1;
                if *left == 0 && order == Order::Topo {
                    tips.push(parent);
                } else if *left == 0 {
                    count += 1;
                    heap.push((self.repo.odb.commit(&parent)?.committer.time, Reverse(count), parent));
                }
            }
        }
        Ok(sorted)
    }
}

/// In a shallow clone the parents of the oldest commits are not there.
fn is_shallow_edge(repo: &Repo, oid: &Oid, parent: &Oid) -> bool {
    let file = crate::files::join(&repo.common_dir, b"shallow");
    !repo.odb.has(parent)
        && crate::files::read(&file)
            .is_ok_and(|list| list.split(|&byte| byte == b'\n').any(|line| line == oid.hex().as_bytes()))
}

/// All commits that lead to these, and these.
pub fn ancestors(repo: &Repo, from: &[Oid]) -> Res<HashSet<Oid>> {
    let mut seen = HashSet::new();
    let mut queue = from.to_vec();
    while let Some(oid) = queue.pop() {
        if seen.insert(oid) {
            let parents = &repo.odb.commit(&oid)?.parents;
            queue.extend(
                parents
                    .iter()
                    .filter(|parent| !seen.contains(*parent) && !is_shallow_edge(repo, &oid, parent)),
            );
        }
    }
    Ok(seen)
}

pub fn is_ancestor(repo: &Repo, old: &Oid, new: &Oid) -> Res<bool> {
    Ok(old == new || ancestors(repo, &[*new])?.contains(old))
}

/// The best common ancestors of two commits, the newest first.
pub fn merge_bases(repo: &Repo, one: &Oid, two: &Oid) -> Res<Vec<Oid>> {
    if one == two {
        return Ok(vec![*one]);
    }
    let (left, right) = (ancestors(repo, &[*one])?, ancestors(repo, &[*two])?);
    let shared: HashSet<Oid> = left.intersection(&right).copied().collect();
    // One that another leads to is not among the best.
    let mut below: HashSet<Oid> = HashSet::new();
    for oid in &shared {
        below.extend(repo.odb.commit(oid)?.parents.iter());
    }
    let mut best: Vec<(i64, Oid)> = Vec::new();
    for oid in shared.iter().filter(|oid| !below.contains(*oid)) {
        best.push((repo.odb.commit(oid)?.committer.time, *oid));
    }
    best.sort_by(|a, b| b.cmp(a));
    Ok(best.into_iter().map(|(_, oid)| oid).collect())
}

/// How many commits each of two has that the other lacks.
pub fn ahead_behind(repo: &Repo, ours: &Oid, theirs: &Oid) -> Res<(usize, usize)> {
    let (left, right) = (ancestors(repo, &[*ours])?, ancestors(repo, &[*theirs])?);
    Ok((left.difference(&right).count(), right.difference(&left).count()))
}

/// Splits arguments into revisions and paths, as `git log` does.
pub fn split_arguments(
    repo: &Repo,
    walk: &mut Walk<'_>,
    parsed: &crate::options::Parsed,
) -> Res<Vec<Vec<u8>>> {
    let (before, after) = parsed.sides();
    let mut paths = Vec::new();
    for (at, argument) in before.iter().enumerate() {
        if walk.take(argument)? {
            if after.is_none() {
                revision::refuse_ambiguous(repo, argument)?;
            }
            continue;
        }
        if after.is_some() {
            fatal!("bad revision '{}'", text(argument));
        }
        for path in &before[at..] {
            let there = crate::pathspec::from_top(repo, path).is_ok_and(|top| {
                top.is_empty() || crate::files::exists(&repo.in_tree(&top)) && !repo.is_bare()
            });
            if !there && !crate::pattern::is_glob(path) && !path.starts_with(b":") {
                return Err(revision::unknown(path));
            }
            paths.push(path.clone());
        }
        break;
    }
    paths.extend(after.unwrap_or(&[]).iter().cloned());
    Ok(paths)
}
