//! `git reset`, and `git reflog`.

use crate::change;
use crate::fail::{Res, fatal};
use crate::files::text;
use crate::index::Index;
use crate::object::Kind;
use crate::options::Reader;
use crate::out;
use crate::pathspec::Pathspec;
use crate::reflog;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::revision;
use crate::switch;

const RESET: Reader = Reader {
    command: "reset",
    usage: "git reset [--mixed | --soft | --hard | --merge | --keep] [-q] [<commit>]",
    list: "q|quiet no-refresh refresh mixed soft hard merge! keep p|patch! N|intent-to-add! pathspec-from-file=! recurse-submodules!",
    in_order: false,
};

pub fn reset(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = RESET.read(arguments)?;
    let (before, after) = options.sides();
    let (name, written) = match (before, after) {
        ([], after) => (b"HEAD".to_vec(), after.unwrap_or(&[]).to_vec()),
        ([name, rest @ ..], after) => match revision::find(repo, name)? {
            Some(_) => (name.clone(), [rest, after.unwrap_or(&[])].concat()),
            None if after.is_some() => fatal!("bad revision '{}'", text(name)),
            None => {
                let top = crate::pathspec::from_top(repo, name)?;
                if !crate::files::exists(&repo.in_tree(&top))
                    && !Index::load(repo)?.has(&top)
                    && !name.starts_with(b":")
                {
                    return Err(revision::unknown(name));
                }
                (b"HEAD".to_vec(), before.to_vec())
            }
        },
    };
    let mode =
        ["soft", "hard", "keep", "mixed"].into_iter().find(|mode| options.has(mode)).unwrap_or("mixed");
    let mut index = Index::load(repo)?;
    if !written.is_empty() {
        if mode != "mixed" {
            fatal!("Cannot do {mode} reset with paths.");
        }
        let tree = if name == b"HEAD" && repo.head()?.is_none() {
            crate::odb::EMPTY_TREE
        } else {
            revision::tree_of(repo, &revision::get(repo, &name)?)?
        };
        switch::index_only(repo, &mut index, &tree, &Pathspec::new(repo, &written)?)?;
        index.save(repo)?;
        unstaged(repo, &index, options.has("quiet"))?;
        return Ok(0);
    }
    if name == b"HEAD" && repo.head()?.is_none() {
        switch::index_only(repo, &mut index, &crate::odb::EMPTY_TREE, &Pathspec::default())?;
        index.save(repo)?;
        return Ok(0);
    }
    let (oid, kind) = repo.odb.peel(&revision::get(repo, &name)?)?;
    if kind != Kind::Commit {
        fatal!("Could not parse object '{}'.", text(&name));
    }
    let tree = repo.odb.commit(&oid)?.tree;
    match mode {
        "soft" if !index.unmerged().is_empty() => fatal!("Cannot do a soft reset in the middle of a merge."),
        "soft" => {}
        "hard" => {
            repo.work_tree()?;
            switch::force(repo, &mut index, &tree)?;
        }
        "keep" => switch::to_tree(repo, &mut index, &repo.head_tree()?, &tree, "merge")?,
        _ => switch::index_only(repo, &mut index, &tree, &Pathspec::default())?,
    }
    index.save(repo)?;
    if let Some(head) = repo.head()? {
        refs::set(repo, b"ORIG_HEAD", head, Expect::Anything, "")?;
    }
    refs::update(repo, b"HEAD", oid, Expect::Anything, &format!("reset: moving to {}", text(&name)))?;
    if mode != "soft" {
        super::commit::clear_state(repo)?;
    }
    match mode {
        "hard" if !options.has("quiet") => {
            out::line(format_args!(
                "HEAD is now at {} {}",
                repo.short(&oid),
                text(&repo.odb.commit(&oid)?.subject())
            ));
        }
        "mixed" => unstaged(repo, &index, options.has("quiet"))?,
        _ => {}
    }
    Ok(0)
}

fn unstaged(repo: &Repo, index: &Index, quiet: bool) -> Res<()> {
    if quiet || repo.is_bare() {
        return Ok(());
    }
    let changes = change::index_and_work(repo, index, &Pathspec::default())?;
    if !changes.is_empty() {
        out::line("Unstaged changes after reset:");
    }
    for change in changes {
        out::bytes_line(&[&[change.status, b'\t'][..], change.path()].concat());
    }
    Ok(())
}

pub fn reflog(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let rest = match arguments.first().map(Vec::as_slice) {
        Some(b"show") => &arguments[1..],
        Some(b"exists") => {
            let there = arguments.get(1).is_some_and(|name| reflog::exists(repo, name));
            return Ok(i32::from(!there));
        }
        Some(what @ (b"expire" | b"delete")) => fatal!("git reflog {}: not supported here", text(what)),
        _ => arguments,
    };
    let mut most = usize::MAX;
    let mut name = None;
    for argument in rest {
        let option = text(argument);
        match option.trim_start_matches("-n").trim_start_matches('-').parse() {
            _ if !option.starts_with('-') && name.is_none() => name = Some(argument),
            Ok(count) => most = count,
            Err(_) => fatal!("git reflog: option '{option}' is not supported here"),
        }
    }
    let written = name.map_or(b"HEAD".to_vec(), Clone::clone);
    let Some(full) = revision::full_name(repo, &written)? else { return Err(revision::unknown(&written)) };
    let log = reflog::read(repo, &full)?;
    for (at, line) in log.iter().rev().enumerate().take(most) {
        let head = format!("{} {}@{{{at}}}: ", repo.short(&line.new), text(&written));
        out::bytes_line(&[head.as_bytes(), &line.message].concat());
    }
    Ok(0)
}
