//! `git diff`.

use crate::change::{self, Change};
use crate::diffing::{self, Diffing};
use crate::fail::{Res, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::index::Index;
use crate::object::Kind;
use crate::options::{Parsed, Reader};
use crate::pathspec::{self, Pathspec};
use crate::repo::Repo;
use crate::revision;
use crate::walk;

pub fn diff(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let list =
        format!("{} cached staged merge-base no-index! cc c base ours theirs 0! 1 2 3", diffing::OPTIONS);
    let reader = Reader {
        command: "diff",
        usage: "git diff [<options>] [<commit>] [--] [<path>...]",
        list: &list,
        in_order: false,
    };
    let options = reader.read(arguments)?;
    let mut diffing = Diffing::from(repo, &options)?;
    if !diffing.formats.any() && !diffing.formats.none {
        diffing.formats.patch = true;
    }
    let changes = find(repo, &options, diffing.formats.patch)?;
    let changes = diffing.arrange(repo, changes)?;
    diffing.write(repo, &changes)?;
    Ok(diffing.code(&changes))
}

/// What is compared with what.
fn find(repo: &Repo, options: &Parsed, patch: bool) -> Res<Vec<Change>> {
    let (revisions, written) = split(repo, options)?;
    let paths = Pathspec::new(repo, &written)?;
    let cached = options.has("cached") || options.has("staged");
    let mut trees = Vec::new();
    for revision in &revisions {
        take(repo, revision, &mut trees)?;
    }
    if options.has("merge-base") && !trees.is_empty() {
        let head = revision::get(repo, b"HEAD")?;
        let other = revision::commit(repo, &revisions[0])?;
        let against = if revisions.len() > 1 { revision::commit(repo, &revisions[1])? } else { head };
        let Some(base) = walk::merge_bases(repo, &other, &against)?.first().copied() else {
            fatal!("no merge base found")
        };
        trees[0] = base;
    }
    match trees.as_slice() {
        [] if cached => change::tree_and_index(repo, &repo.head_tree()?, &Index::load(repo)?, &paths),
        [] => {
            repo.work_tree()?;
            let index = Index::load(repo)?;
            let mut changes = change::index_and_work(repo, &index, &paths)?;
            let stages = [("base", "1", 1), ("ours", "2", 2), ("theirs", "3", 3)];
            let stage = stages.into_iter().find(|(name, digit, _)| options.has(name) || options.has(digit));
            if patch && stage.is_none() {
                change::with_both(&index, &mut changes);
                let (both, others): (Vec<_>, Vec<_>) =
                    changes.into_iter().partition(|change| change.status == b'U' && change.old.mode != 0);
                let mut changes = change::with_version(repo, &index, others, 2)?;
                changes.extend(both);
                changes.sort_by(|a, b| a.path().cmp(b.path()));
                return Ok(changes);
            }
            change::with_version(repo, &index, changes, stage.map_or(2, |(_, _, stage)| stage))
        }
        [one] if cached => {
            change::tree_and_index(repo, &revision::tree_of(repo, one)?, &Index::load(repo)?, &paths)
        }
        [one] => {
            repo.work_tree()?;
            change::tree_and_work(repo, &revision::tree_of(repo, one)?, &Index::load(repo)?, &paths)
        }
        [one, two] => two_objects(repo, one, two, &paths),
        _ => fatal!("more than two revisions are not compared here"),
    }
}

fn two_objects(repo: &Repo, one: &Oid, two: &Oid, paths: &Pathspec) -> Res<Vec<Change>> {
    let is_blob = |oid: &Oid| repo.odb.peel(oid).map(|(_, kind)| kind == Kind::Blob);
    if is_blob(one)? && is_blob(two)? {
        let side = |oid: &Oid| change::Side::of(oid.hex().as_bytes(), crate::object::FILE, *oid);
        return Ok(if one == two { Vec::new() } else { vec![Change::new(side(one), side(two))] });
    }
    change::trees(repo, Some(&revision::tree_of(repo, one)?), Some(&revision::tree_of(repo, two)?), paths)
}

/// `A`, `A..B` or `A...B` as one or two objects.
fn take(repo: &Repo, written: &[u8], trees: &mut Vec<Oid>) -> Res<()> {
    if let Some(name) = written.strip_suffix(b"^!") {
        let commit = revision::commit(repo, name)?;
        let Some(parent) = repo.odb.commit(&commit)?.parents.first().copied() else {
            fatal!("{} has no parent to compare with", text(name))
        };
        trees.extend([parent, commit]);
        return Ok(());
    }
    let dots = written.windows(2).position(|pair| pair == b"..");
    let Some(at) = dots else {
        trees.push(revision::get(repo, written)?);
        return Ok(());
    };
    let symmetric = written.get(at + 2) == Some(&b'.');
    let name = |part: &[u8]| if part.is_empty() { b"HEAD".to_vec() } else { part.to_vec() };
    let (left, right) = (name(&written[..at]), name(&written[at + 2 + usize::from(symmetric)..]));
    let (left, right) = (revision::get(repo, &left)?, revision::get(repo, &right)?);
    if symmetric {
        let (left, right) = (repo.odb.peel(&left)?.0, repo.odb.peel(&right)?.0);
        match walk::merge_bases(repo, &left, &right)?.first() {
            Some(base) => trees.extend([*base, right]),
            None => fatal!("{}: no merge base", text(written)),
        }
    } else {
        trees.extend([left, right]);
    }
    Ok(())
}

type Words = Vec<Vec<u8>>;

/// Which arguments are revisions, and which are paths.
fn split(repo: &Repo, options: &Parsed) -> Res<(Words, Words)> {
    let (before, after) = options.sides();
    let mut revisions = Vec::new();
    for (at, argument) in before.iter().enumerate() {
        let mut trees = Vec::new();
        let is_revision = take(repo, argument, &mut trees).is_ok();
        if is_revision {
            if after.is_none() {
                revision::refuse_ambiguous(repo, argument)?;
            }
            revisions.push(argument.clone());
        } else if after.is_some() {
            fatal!("bad revision '{}'", text(argument));
        } else {
            let paths = before[at..].to_vec();
            for path in &paths {
                let there =
                    pathspec::from_top(repo, path).is_ok_and(|top| files::exists(&repo.in_tree(&top)));
                if !there && !crate::pattern::is_glob(path) && !path.starts_with(b":") {
                    return Err(revision::unknown(path));
                }
            }
            return Ok((revisions, paths));
        }
    }
    Ok((revisions, after.unwrap_or(&[]).to_vec()))
}
