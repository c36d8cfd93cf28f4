//! Which files differ between two states: trees, the index, the work tree.

use crate::fail::{Res, fatal};
use crate::files;
use crate::hash::Oid;
use crate::index::{DEEPEST, Index, canonical_mode};
use crate::object::{Entry, SUBMODULE};
use crate::pathspec::Pathspec;
use crate::repo::Repo;
use crate::worktree::{self, State};

/// One side of a change. Mode 0 says that there is no file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    pub path: Vec<u8>,
    pub mode: u32,
    /// None for a file of the work tree that may differ from every object.
    pub oid: Option<Oid>,
}

#[derive(Clone, Debug)]
pub struct Change {
    /// `A`, `C`, `D`, `M`, `R`, `T`, `U` as git has it.
    pub status: u8,
    pub old: Side,
    pub new: Side,
    /// How alike the two are, in percent.
    pub score: u32,
}

impl Change {
    pub fn new(old: Side, new: Side) -> Change {
        let status = match (old.mode, new.mode) {
            (0, _) => b'A',
            (_, 0) => b'D',
            (old, new) if old & 0o170_000 != new & 0o170_000 => b'T',
            _ => b'M',
        };
        Change { status, old, new, score: 0 }
    }

    /// The path it is known by.
    pub fn path(&self) -> &[u8] {
        if self.new.mode == 0 && self.status != b'U' { &self.old.path } else { &self.new.path }
    }

    pub fn reverse(&mut self) {
        std::mem::swap(&mut self.old, &mut self.new);
        self.status = match self.status {
            b'A' => b'D',
            b'D' => b'A',
            status => status,
        };
    }
}

impl Side {
    pub fn of(path: &[u8], mode: u32, oid: Oid) -> Side {
        Side { path: path.to_vec(), mode, oid: Some(oid) }
    }

    pub fn none(path: &[u8]) -> Side {
        Side { path: path.to_vec(), mode: 0, oid: None }
    }

    pub fn content(&self, repo: &Repo) -> Res<Vec<u8>> {
        match (self.mode, self.oid) {
            (0, _) => Ok(Vec::new()),
            (SUBMODULE, oid) => Ok(format!("Subproject commit {}\n", oid.unwrap_or_default()).into_bytes()),
            (_, Some(oid)) => repo.odb.blob(&oid),
            (_, None) => {
                let name = repo.in_tree(&self.path);
                match files::lstat(&name) {
                    Some(stat) => worktree::content(&name, &stat),
                    None => Ok(Vec::new()),
                }
            }
        }
    }
}

/// Compares two trees; a missing one has no files.
pub fn trees(repo: &Repo, old: Option<&Oid>, new: Option<&Oid>, paths: &Pathspec) -> Res<Vec<Change>> {
    let mut changes = Vec::new();
    compare_trees(repo, old, new, b"", paths, 0, &mut changes)?;
    changes.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(changes)
}

fn compare_trees(
    repo: &Repo,
    old: Option<&Oid>,
    new: Option<&Oid>,
    prefix: &[u8],
    paths: &Pathspec,
    depth: usize,
    changes: &mut Vec<Change>,
) -> Res<()> {
    if old == new {
        return Ok(());
    }
    if depth > DEEPEST {
        fatal!("tree is nested too deeply");
    }
    let read = |oid: Option<&Oid>| oid.map_or(Ok(Vec::new()), |oid| repo.odb.tree(oid));
    let (left, right) = (read(old)?, read(new)?);
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(a), Some(b)) => a.order(b),
        };
        let old = if order.is_le() { left.next() } else { None };
        let new = if order.is_ge() { right.next() } else { None };
        let same = matches!((old, new), (Some(old), Some(new)) if old.oid == new.oid && old.mode == new.mode);
        let Some(name) = old.or(new).map(|entry| &entry.name).filter(|_| !same) else { continue };
        let path = [prefix, name].concat();
        let is_tree = old.or(new).is_some_and(Entry::is_tree);
        if is_tree {
            if paths.may_match_below(&path) {
                let below = [&path[..], b"/"].concat();
                let (old, new) = (old.map(|entry| &entry.oid), new.map(|entry| &entry.oid));
                compare_trees(repo, old, new, &below, paths, depth + 1, changes)?;
            }
        } else if paths.matches(&path) {
            let side = |entry: Option<&Entry>| {
                entry.map_or_else(
                    || Side::none(&path),
                    |entry| Side::of(&path, canonical_mode(entry.mode), entry.oid),
                )
            };
            changes.push(Change::new(side(old), side(new)));
        }
    }
}

/// Compares a tree with the index.
pub fn tree_and_index(repo: &Repo, tree: &Oid, index: &Index, paths: &Pathspec) -> Res<Vec<Change>> {
    let old = crate::index::flatten(&repo.odb, tree)?;
    let mut changes = Vec::new();
    let mut last: &[u8] = b"";
    for entry in index.entries.iter().filter(|entry| paths.matches(&entry.path)) {
        if entry.stage > 0 {
            if last != entry.path {
                changes.push(unmerged(&entry.path));
            }
            last = &entry.path;
            continue;
        }
        if entry.intent_to_add {
            continue;
        }
        let new = Side::of(&entry.path, entry.mode, entry.oid);
        match old.get(&entry.path) {
            Some((mode, oid)) if (*mode, *oid) == (entry.mode, entry.oid) => {}
            Some((mode, oid)) => changes.push(Change::new(Side::of(&entry.path, *mode, *oid), new)),
            None => changes.push(Change::new(Side::none(&entry.path), new)),
        }
    }
    for (path, (mode, oid)) in old.iter().filter(|(path, _)| paths.matches(path)) {
        let gone = index.stages(path).iter().all(|entry| entry.intent_to_add);
        if gone {
            changes.push(Change::new(Side::of(path, *mode, *oid), Side::none(path)));
        }
    }
    changes.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(changes)
}

pub fn unmerged(path: &[u8]) -> Change {
    Change { status: b'U', old: Side::none(path), new: Side::none(path), score: 0 }
}

/// Compares the index with the work tree.
pub fn index_and_work(repo: &Repo, index: &Index, paths: &Pathspec) -> Res<Vec<Change>> {
    let mut changes = Vec::new();
    let mut last: &[u8] = b"";
    for entry in index.entries.iter().filter(|entry| paths.matches(&entry.path)) {
        if entry.stage > 0 {
            if last != entry.path {
                changes.push(unmerged(&entry.path));
            }
            last = &entry.path;
            continue;
        }
        let old = if entry.intent_to_add {
            Side::none(&entry.path)
        } else {
            Side::of(&entry.path, entry.mode, entry.oid)
        };
        match worktree::state(repo, index, entry)? {
            State::Same => {}
            State::Gone => {
                changes
                    .push(Change::new(Side::of(&entry.path, entry.mode, entry.oid), Side::none(&entry.path)));
            }
            State::Changed(mode) => {
                changes.push(Change::new(old, Side { path: entry.path.clone(), mode, oid: None }));
            }
        }
    }
    Ok(changes)
}

/// Gives the paths with conflicts their two versions, where there are two.
pub fn with_both(index: &Index, changes: &mut [Change]) {
    for change in changes.iter_mut().filter(|change| change.status == b'U') {
        let path = change.path().to_vec();
        let version = |stage: u8| index.stages(&path).iter().find(|entry| entry.stage == stage);
        if let (Some(ours), Some(theirs)) = (version(2), version(3)) {
            change.old = Side::of(&path, ours.mode, ours.oid);
            change.new = Side::of(&path, theirs.mode, theirs.oid);
        }
    }
}

/// Adds, behind each path with conflicts, how the file differs from one of its versions: 1 is the common one, 2 is ours.
pub fn with_version(repo: &Repo, index: &Index, changes: Vec<Change>, stage: u8) -> Res<Vec<Change>> {
    let mut all = Vec::new();
    for change in changes {
        let path = change.path().to_vec();
        let ours = index.stages(&path).iter().find(|entry| entry.stage == stage && change.status == b'U');
        all.push(change);
        let (Some(entry), Some(stat)) = (ours, worktree::stat(repo, &path)) else { continue };
        if worktree::hash_file(&repo.in_tree(&path), &stat)? != entry.oid {
            let mode = worktree::mode_in(repo, &stat, Some(entry));
            all.push(Change::new(Side::of(&path, entry.mode, entry.oid), Side { path, mode, oid: None }));
        }
    }
    Ok(all)
}

/// Compares a tree with the files of the work tree that the index knows.
pub fn tree_and_work(repo: &Repo, tree: &Oid, index: &Index, paths: &Pathspec) -> Res<Vec<Change>> {
    let old = crate::index::flatten(&repo.odb, tree)?;
    let mut changes = Vec::new();
    let mut seen: &[u8] = b"";
    for entry in index.entries.iter().filter(|entry| paths.matches(&entry.path)) {
        if entry.path == seen {
            continue;
        }
        seen = &entry.path;
        let before = old.get(&entry.path);
        let left =
            before.map_or_else(|| Side::none(&entry.path), |(mode, oid)| Side::of(&entry.path, *mode, *oid));
        let right = match worktree::state(repo, index, entry)? {
            State::Same if entry.stage == 0 => Side::of(&entry.path, entry.mode, entry.oid),
            State::Gone => Side::none(&entry.path),
            State::Changed(mode) => Side { path: entry.path.clone(), mode, oid: None },
            State::Same => Side { path: entry.path.clone(), mode: entry.mode, oid: None },
        };
        let really_same = right.oid.is_none()
            && right.mode == left.mode
            && right.mode != 0
            && left.oid == Some(crate::hash::of_object("blob", &right.content(repo)?));
        if left.mode == 0 && right.mode == 0 || left == right || really_same {
            continue;
        }
        changes.push(Change::new(left, right));
    }
    for (path, (mode, oid)) in old.iter().filter(|(path, _)| paths.matches(path) && !index.has(path)) {
        changes.push(Change::new(Side::of(path, *mode, *oid), Side::none(path)));
    }
    changes.sort_by(|a, b| a.path().cmp(b.path()));
    Ok(changes)
}
