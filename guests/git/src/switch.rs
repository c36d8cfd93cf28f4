//! Takes index and work tree from one tree to another, without losing what the user did in between.

use crate::fail::{Fail, Res};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::ignore::Ignore;
use crate::index::{Entry, Files, Index, flatten};
use crate::merge::Merged;
use crate::out;
use crate::repo::Repo;
use crate::worktree::{self, State};

/// What is to be done with one path.
enum Step {
    Write(Entry),
    Remove(Vec<u8>),
}

/// Moves from one tree to another. Changes of the user's stay where the trees do not differ; else nothing happens and `what`
/// (`checkout`, `merge`) is named in the message.
pub fn to_tree(repo: &Repo, index: &mut Index, old: &Oid, new: &Oid, what: &str) -> Res<()> {
    let (old, new) = (flatten(&repo.odb, old)?, flatten(&repo.odb, new)?);
    let steps = plan(repo, index, &old, &new, what)?;
    perform(repo, index, steps)
}

fn plan(repo: &Repo, index: &Index, old: &Files, new: &Files, what: &str) -> Res<Vec<Step>> {
    let mut steps = Vec::new();
    let (mut changed, mut untracked) = (Vec::new(), Vec::new());
    let ignore = Ignore::new(repo);
    let mut paths: Vec<&Vec<u8>> = old.keys().chain(new.keys()).collect();
    paths.sort();
    paths.dedup();
    for path in paths {
        let (before, after) = (old.get(path), new.get(path));
        let entry = index.get(path);
        let now = entry.map(|entry| (entry.mode, entry.oid));
        if before == after && index.stages(path).iter().all(|entry| entry.stage == 0)
            || now.as_ref() == after && entry.is_some()
        {
            continue;
        }
        let same_as_index = match entry {
            Some(entry) => {
                worktree::state(repo, index, entry)? != State::Gone
                    && worktree::state(repo, index, entry)? == State::Same
            }
            None => true,
        };
        let gone = entry.is_some_and(|entry| matches!(worktree::state(repo, index, entry), Ok(State::Gone)));
        if index.has(path) && now.as_ref() != before || !same_as_index && !gone {
            changed.push(path.clone());
            continue;
        }
        if !index.has(path) && after.is_some() {
            if before.is_some() && before != after {
                changed.push(path.clone());
                continue;
            }
            if in_the_way(repo, index, path, after, &ignore)? {
                untracked.push(path.clone());
                continue;
            }
        }
        match after {
            Some((mode, oid)) => steps.push(Step::Write(Entry::new(path, *mode, *oid))),
            None if index.has(path) => steps.push(Step::Remove(path.clone())),
            None => {}
        }
    }
    refuse(&changed, &untracked, what)?;
    Ok(steps)
}

/// Whether there is a file that is not in the index, differs from the new one and is not ignored.
fn in_the_way(
    repo: &Repo,
    index: &Index,
    path: &[u8],
    after: Option<&(u32, Oid)>,
    ignore: &Ignore,
) -> Res<bool> {
    let name = repo.in_tree(path);
    let Some(stat) = files::lstat(&name) else { return Ok(false) };
    if stat.is_dir() {
        return Ok(!index.has_below(path) && files::names_in(&name).is_ok_and(|names| !names.is_empty()));
    }
    if worktree::is_below_link(repo, path) || ignore.is_ignored(path, false) {
        return Ok(false);
    }
    let same =
        after.is_some_and(|(_, oid)| worktree::hash_file(&name, &stat).is_ok_and(|found| found == *oid));
    Ok(!same)
}

fn refuse(changed: &[Vec<u8>], untracked: &[Vec<u8>], what: &str) -> Res<()> {
    if changed.is_empty() && untracked.is_empty() {
        return Ok(());
    }
    let list = |paths: &[Vec<u8>]| paths.iter().map(|path| format!("\t{}\n", text(path))).collect::<String>();
    let (act, before) = match what {
        "checkout" => ("checkout", "switch branches"),
        what => (what, what),
    };
    if !changed.is_empty() {
        out::complain(format!(
            "error: Your local changes to the following files would be overwritten by {act}:\n{}Please commit your changes or stash \
             them before you {before}.",
            list(changed)
        ));
    }
    if !untracked.is_empty() {
        out::complain(format!(
            "error: The following untracked working tree files would be overwritten by {act}:\n{}Please move or remove them before \
             you {before}.",
            list(untracked)
        ));
    }
    out::complain("Aborting");
    Err(Fail::Code(1))
}

fn perform(repo: &Repo, index: &mut Index, steps: Vec<Step>) -> Res<()> {
    // What goes makes room for what comes.
    for step in &steps {
        if let Step::Remove(path) = step {
            worktree::remove(repo, path)?;
            index.remove(path);
        }
    }
    for step in steps {
        if let Step::Write(mut entry) = step {
            worktree::check_out(repo, &mut entry)?;
            index.put(entry);
        }
    }
    Ok(())
}

/// Makes index and work tree as a tree is, whatever is there.
pub fn force(repo: &Repo, index: &mut Index, tree: &Oid) -> Res<()> {
    let new = flatten(&repo.odb, tree)?;
    let known: Vec<Vec<u8>> = index.entries.iter().map(|entry| entry.path.clone()).collect();
    for path in known.iter().filter(|path| !new.contains_key(*path)) {
        worktree::remove(repo, path)?;
        index.remove(path);
    }
    for (path, (mode, oid)) in new {
        let same = match index.get(&path) {
            Some(entry) if (entry.mode, entry.oid) == (mode, oid) => {
                worktree::state(repo, index, entry)? == State::Same
            }
            _ => false,
        };
        if !same {
            let mut entry = Entry::new(&path, mode, oid);
            worktree::check_out(repo, &mut entry)?;
            index.put(entry);
        }
    }
    Ok(())
}

/// Makes the index as a tree is; the work tree stays.
pub fn index_only(repo: &Repo, index: &mut Index, tree: &Oid, paths: &crate::pathspec::Pathspec) -> Res<()> {
    let new = flatten(&repo.odb, tree)?;
    let known: Vec<Vec<u8>> = index.entries.iter().map(|entry| entry.path.clone()).collect();
    for path in known.iter().filter(|path| paths.matches(path) && !new.contains_key(*path)) {
        index.remove(path);
    }
    for (path, (mode, oid)) in new.into_iter().filter(|(path, _)| paths.matches(path)) {
        let same = index
            .get(&path)
            .is_some_and(|entry| (entry.mode, entry.oid) == (mode, oid) && !entry.intent_to_add);
        if !same {
            index.put(Entry::new(&path, mode, oid));
        }
    }
    super::commands::refresh(repo, index)
}

/// Brings the result of a merge into index and work tree; with conflicts too.
pub fn to_merged(repo: &Repo, index: &mut Index, old: &Oid, merged: &Merged, what: &str) -> Res<()> {
    let tree = merged.tree(repo)?;
    to_tree(repo, index, old, &tree, what)?;
    let mut paths: Vec<&Vec<u8>> = merged.unmerged.iter().map(|entry| &entry.path).collect();
    paths.dedup();
    for path in paths {
        index.remove(path);
    }
    if !merged.is_clean() {
        files::write(&repo.own("AUTO_MERGE"), format!("{tree}\n").as_bytes())?;
    }
    merged.unmerged.iter().for_each(|entry| index.put_stage(entry.clone()));
    Ok(())
}
