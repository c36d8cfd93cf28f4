//! `git stash`.

use crate::change;
use crate::diffing::{self, Diffing};
use crate::fail::{Fail, Res, error, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::ident;
use crate::ignore::Ignore;
use crate::index::{Entry, Index, flatten, write_trees};
use crate::merge::{self, Labels};
use crate::object::{Commit, Kind};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::reflog;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::revision;
use crate::switch;
use crate::worktree::{self, Untracked};

use super::{add, status};

const NAME: &[u8] = b"refs/stash";

const READER: Reader = Reader {
    command: "stash",
    usage: "git stash [push | pop | apply | list | show | drop | clear | branch | create | store] [<options>]",
    list: "k|keep-index no-keep-index q|quiet u|include-untracked a|all m|message= S|staged p|patch! index \
           pathspec-from-file=! pathspec-file-nul!",
    in_order: false,
};

pub fn stash(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    repo.work_tree()?;
    let (command, rest) = match arguments {
        [first, rest @ ..] if !first.starts_with(b"-") => (text(first), rest),
        all => ("push".to_owned(), all),
    };
    match command.as_str() {
        "push" | "save" => push(repo, &READER.read(rest)?, command == "save"),
        "list" => list(repo, rest),
        "show" => show(repo, rest),
        "apply" => apply(repo, &READER.read(rest)?),
        "pop" => pop(repo, &READER.read(rest)?),
        "drop" => {
            let options = READER.read(rest)?;
            drop_entry(repo, &Kept::find(repo, options.args.first())?, options.has("quiet"))
        }
        "clear" => clear(repo),
        "branch" => on_branch(repo, rest),
        "create" => {
            if let Some((oid, _)) = save(repo, &Index::load(repo)?, &READER.read(&[])?, &Pathspec::default())?
            {
                out::line(oid);
            }
            Ok(0)
        }
        "store" => {
            let options = READER.read(rest)?;
            let [written] = options.args.as_slice() else {
                fatal!("\"git stash store\" requires one <commit> argument")
            };
            let oid = revision::commit(repo, written)?;
            let why =
                options.text("message").unwrap_or_else(|| "Created via \"git stash store\".".to_owned());
            refs::set(repo, NAME, oid, Expect::Anything, &why).map(|()| 0)
        }
        other => {
            fatal!("subcommand wasn't specified; 'push' can't be assumed due to unexpected token '{other}'")
        }
    }
}

fn push(repo: &Repo, options: &Parsed, old_way: bool) -> Res<i32> {
    let mut index = Index::load(repo)?;
    let Some(head) = repo.head()? else {
        out::complain("You do not have the initial commit yet");
        return Ok(1);
    };
    let mut options = Parsed { options: options.options.clone(), ..clone_args(options) };
    if old_way && !options.args.is_empty() {
        options.options.push(("message".to_owned(), Some(options.args.join(&b' '))));
        options.args.clear();
    }
    let paths = Pathspec::new(repo, &options.args)?;
    if let Some(written) = paths.unmatched(|matches| index.entries.iter().any(|entry| matches(&entry.path)))
        && !options.has("include-untracked")
    {
        error!(
            "pathspec ':(prefix:0){0}' did not match any file(s) known to git\nDid you forget to 'git add'?",
            text(&written)
        );
    }
    let Some((oid, why)) = save(repo, &index, &options, &paths)? else {
        if !options.has("quiet") {
            out::line("No local changes to save");
        }
        return Ok(0);
    };
    refs::set(repo, NAME, oid, Expect::Anything, &why)?;
    if !options.has("quiet") {
        out::line(format_args!("Saved working directory and index state {why}"));
    }
    let commit = repo.odb.commit(&oid)?;
    let kept = repo.odb.commit(&commit.parents[1])?.tree;
    let mut tree =
        if options.state("keep-index") == Some(true) { kept } else { repo.odb.commit(&head)?.tree };
    if !paths.is_empty() {
        tree = mixed(repo, &index, &tree, &paths)?;
    }
    if let Some(untracked) = commit.parents.get(2) {
        for path in flatten(&repo.odb, &repo.odb.commit(untracked)?.tree)?.keys() {
            worktree::remove(repo, path)?;
        }
    }
    if !paths.is_empty() {
        restore(repo, &mut index, &tree, &paths)?;
    } else {
        switch::force(repo, &mut index, &tree)?;
    }
    index.save(repo)?;
    Ok(0)
}

fn clone_args(options: &Parsed) -> Parsed {
    Parsed { options: Vec::new(), args: options.args.clone(), before_dashes: options.before_dashes }
}

/// The index, but with a tree's files where paths match.
fn mixed(repo: &Repo, index: &Index, tree: &Oid, paths: &Pathspec) -> Res<Oid> {
    let mut files = flatten(&repo.odb, tree)?;
    files.retain(|path, _| paths.matches(path));
    let others = index.entries.iter().filter(|entry| !paths.matches(&entry.path));
    files.extend(others.map(|entry| (entry.path.clone(), (entry.mode, entry.oid))));
    tree_of(repo, &files)
}

fn tree_of(repo: &Repo, files: &crate::index::Files) -> Res<Oid> {
    let list: Vec<(&[u8], u32, Oid)> =
        files.iter().map(|(path, (mode, oid))| (path.as_slice(), *mode, *oid)).collect();
    write_trees(&repo.odb, &list)
}

/// Makes the files that match as they are in a tree, in the index too.
fn restore(repo: &Repo, index: &mut Index, tree: &Oid, paths: &Pathspec) -> Res<()> {
    let files = flatten(&repo.odb, tree)?;
    let known: Vec<Vec<u8>> = index.entries.iter().map(|entry| entry.path.clone()).collect();
    for path in known.iter().filter(|path| paths.matches(path) && !files.contains_key(*path)) {
        worktree::remove(repo, path)?;
        index.remove(path);
    }
    for (path, (mode, oid)) in files.iter().filter(|(path, _)| paths.matches(path)) {
        let mut entry = Entry::new(path, *mode, *oid);
        worktree::check_out(repo, &mut entry)?;
        index.put(entry);
    }
    Ok(())
}

/// Writes what is changed as commits; answers the one to keep and its title. Nothing, if nothing is changed.
fn save(repo: &Repo, index: &Index, options: &Parsed, paths: &Pathspec) -> Res<Option<(Oid, String)>> {
    let Some(head) = repo.head()? else { fatal!("You do not have the initial commit yet") };
    if let Some(path) = index.unmerged().first() {
        out::line(format_args!("{}: needs merge", text(path)));
        return Err(Fail::Code(1));
    }
    let tree = repo.odb.commit(&head)?.tree;
    let mut untracked = Vec::new();
    if options.has("include-untracked") || options.has("all") {
        let found = worktree::untracked(repo, index, paths, Untracked::All, &Ignore::new(repo))?;
        untracked = found.untracked;
        if options.has("all") {
            untracked.extend(found.ignored);
        }
    }
    let staged = change::tree_and_index(repo, &tree, index, paths)?;
    let unstaged = change::index_and_work(repo, index, paths)?;
    let only_staged = options.has("staged");
    if staged.is_empty() && (unstaged.is_empty() || only_staged) && untracked.is_empty() {
        return Ok(None);
    }
    let branch = refs::current_branch(repo)?.map_or("(no branch)".to_owned(), |branch| text(&branch));
    let about = format!("{branch}: {} {}", repo.short(&head), text(&repo.odb.commit(&head)?.subject()));
    let write = |tree: Oid, parents: Vec<Oid>, message: &str| -> Res<Oid> {
        let (author, committer) = (ident::author(repo)?, ident::committer(repo)?);
        let message = message.as_bytes().to_vec();
        let commit = Commit { tree, parents, author, committer, extra: Vec::new(), message };
        repo.odb.write(Kind::Commit, &commit.write())
    };
    let index_tree = index.write_tree(&repo.odb)?;
    let of_index = write(index_tree, vec![head], &format!("index on {about}\n"))?;
    let mut parents = vec![head, of_index];
    if !untracked.is_empty() {
        let mut files = crate::index::Files::default();
        for path in &untracked {
            let entry = worktree::entry_for(repo, path, None)?;
            files.insert(path.clone(), (entry.mode, entry.oid));
        }
        parents.push(write(tree_of(repo, &files)?, Vec::new(), &format!("untracked files on {about}\n"))?);
    }
    let mut work = Index::default();
    work.entries.clone_from(&index.entries);
    if !only_staged {
        add::update_known(repo, &mut work, paths)?;
    }
    let mut work_tree = work.write_tree(&repo.odb)?;
    if !paths.is_empty() {
        let mut files = flatten(&repo.odb, &tree)?;
        files.retain(|path, _| !paths.matches(path));
        let chosen = work.entries.iter().filter(|entry| paths.matches(&entry.path));
        files.extend(chosen.map(|entry| (entry.path.clone(), (entry.mode, entry.oid))));
        work_tree = tree_of(repo, &files)?;
    }
    let title = match options.text("message") {
        Some(message) => format!("On {branch}: {message}"),
        None => format!("WIP on {about}"),
    };
    // The line does not end, as in native git.
    Ok(Some((write(work_tree, parents, &title)?, title)))
}

/// One of the commits kept.
struct Kept {
    name: String,
    oid: Oid,
    /// Its place in the log, the newest first.
    at: Option<usize>,
}

impl Kept {
    fn find(repo: &Repo, written: Option<&Vec<u8>>) -> Res<Kept> {
        let log = reflog::read(repo, NAME)?;
        let at = match written.map(|name| text(name)) {
            None => Some(0),
            Some(name) => {
                let inner = name.strip_prefix("stash@{").or(name.strip_prefix("refs/stash@{"));
                inner.and_then(|rest| rest.strip_suffix('}')).unwrap_or(&name).parse().ok()
            }
        };
        match (at, written) {
            (Some(_), None) if log.is_empty() => error_without_prefix("No stash entries found."),
            (Some(at), _) => match log.len().checked_sub(at + 1) {
                Some(from_start) => {
                    Ok(Kept { name: format!("refs/stash@{{{at}}}"), oid: log[from_start].new, at: Some(at) })
                }
                None if log.is_empty() => error!("stash@{{{at}}} is not a valid reference"),
                None => fatal!("log for 'refs/stash' only has {} entries", log.len()),
            },
            (None, written) => {
                let written = written.cloned().unwrap_or_default();
                match revision::find(repo, &written)? {
                    Some(oid) if repo.odb.commit(&oid)?.parents.len() > 1 => {
                        Ok(Kept { name: text(&written), oid, at: None })
                    }
                    Some(_) => error!("'{}' is not a stash-like commit", text(&written)),
                    None => error!("{} is not a valid reference", text(&written)),
                }
            }
        }
    }
}

fn error_without_prefix<T>(message: &str) -> Res<T> {
    out::complain(message);
    Err(Fail::Code(1))
}

fn list(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    if let Some(option) = arguments.first() {
        fatal!("git stash list: option '{}' is not supported here", text(option));
    }
    for (at, line) in reflog::read(repo, NAME)?.iter().rev().enumerate() {
        out::bytes_line(&[format!("stash@{{{at}}}: ").as_bytes(), &line.message].concat());
    }
    Ok(0)
}

fn show(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let list = format!("{} u|include-untracked! only-untracked!", diffing::OPTIONS);
    let reader = Reader {
        command: "stash show",
        usage: "git stash show [<options>] [<stash>]",
        list: &list,
        in_order: false,
    };
    let options = reader.read(arguments)?;
    let entry = Kept::find(repo, options.args.first())?;
    let mut diffing = Diffing::from(repo, &options)?;
    if !diffing.formats.any() {
        diffing.formats.stat = true;
    }
    let commit = repo.odb.commit(&entry.oid)?;
    let old = repo.odb.commit(&commit.parents[0])?.tree;
    let changes = change::trees(repo, Some(&old), Some(&commit.tree), &Pathspec::default())?;
    diffing.write(repo, &diffing.arrange(repo, changes)?)?;
    Ok(0)
}

fn apply(repo: &Repo, options: &Parsed) -> Res<i32> {
    let entry = Kept::find(repo, options.args.first())?;
    bring_back(repo, &entry, options.has("index"), options.has("quiet"))
}

fn pop(repo: &Repo, options: &Parsed) -> Res<i32> {
    let entry = Kept::find(repo, options.args.first())?;
    if entry.at.is_none() {
        error!("'{}' is not a stash reference", entry.name);
    }
    match bring_back(repo, &entry, options.has("index"), options.has("quiet")) {
        Ok(0) => drop_entry(repo, &entry, options.has("quiet")),
        failed => {
            let code = failed.unwrap_or_else(Fail::report);
            out::line("The stash entry is kept in case you need it again.");
            Ok(code)
        }
    }
}

/// Applies an entry and says what the state is then, even if that failed.
fn bring_back(repo: &Repo, entry: &Kept, with_index: bool, quiet: bool) -> Res<i32> {
    let code = join(repo, entry, with_index, quiet).unwrap_or_else(Fail::report);
    if !quiet {
        out::flush();
        status::status(repo, &[])?;
    }
    Ok(code)
}

fn join(repo: &Repo, entry: &Kept, with_index: bool, quiet: bool) -> Res<i32> {
    let mut index = Index::load(repo)?;
    if let Some(path) = index.unmerged().first() {
        out::line(format_args!("{}: needs merge", text(path)));
        return Ok(1);
    }
    let commit = repo.odb.commit(&entry.oid)?;
    let base = repo.odb.commit(&commit.parents[0])?.tree;
    let staged = repo.odb.commit(&commit.parents[1])?.tree;
    let ours = index.write_tree(&repo.odb)?;
    let mut labels = Labels::new(repo, "Updated upstream", "Stash base", "Stashed changes");
    let mut wanted_index = None;
    if with_index && staged != base && staged != ours {
        labels.diff3 = false;
        let merged = merge::trees(repo, &base, &ours, &staged, &labels)?;
        if !merged.is_clean() {
            error!("conflicts in index. Try without --index.");
        }
        wanted_index = Some(merged.tree(repo)?);
    }
    let merged = merge::trees(repo, &base, &ours, &commit.tree, &labels)?;
    if !quiet {
        merged.messages.iter().for_each(out::line);
    }
    switch::to_merged(repo, &mut index, &ours, &merged, "merge")?;
    if merged.is_clean() {
        match wanted_index {
            Some(tree) => switch::index_only(repo, &mut index, &tree, &Pathspec::default())?,
            None => unstage_known(repo, &mut index, &ours)?,
        }
    }
    index.save(repo)?;
    if !merged.is_clean() && with_index {
        out::complain("Index was not unstashed.");
    }
    if let Some(untracked) = commit.parents.get(2) {
        bring_untracked(repo, &repo.odb.commit(untracked)?.tree)?;
    }
    Ok(i32::from(!merged.is_clean()))
}

/// Changes come back to the files alone; files that are new stay in the index.
fn unstage_known(repo: &Repo, index: &mut Index, tree: &Oid) -> Res<()> {
    let old = flatten(&repo.odb, tree)?;
    for (path, (mode, oid)) in &old {
        let same = index.get(path).is_some_and(|entry| (entry.mode, entry.oid) == (*mode, *oid));
        if !same {
            index.put(Entry::new(path, *mode, *oid));
        }
    }
    super::refresh(repo, index)
}

fn bring_untracked(repo: &Repo, tree: &Oid) -> Res<()> {
    let files = flatten(&repo.odb, tree)?;
    let there: Vec<&Vec<u8>> = files.keys().filter(|path| worktree::stat(repo, path).is_some()).collect();
    if !there.is_empty() {
        there.iter().for_each(|path| out::complain(format!("{} already exists, no checkout", text(path))));
        error!("could not restore untracked files from stash");
    }
    for (path, (mode, oid)) in &files {
        worktree::check_out(repo, &mut Entry::new(path, *mode, *oid))?;
    }
    Ok(())
}

fn drop_entry(repo: &Repo, entry: &Kept, quiet: bool) -> Res<i32> {
    let Some(at) = entry.at else { error!("'{}' is not a stash reference", entry.name) };
    let mut log = reflog::read(repo, NAME)?;
    let from_start = log.len() - 1 - at;
    let removed = log.remove(from_start);
    if let Some(next) = log.get_mut(from_start) {
        next.old = removed.old;
    }
    match log.last() {
        None => clear(repo).map(drop)?,
        Some(last) => {
            refs::set(repo, NAME, last.new, Expect::Anything, "")?;
            reflog::rewrite(repo, NAME, &log)?;
        }
    }
    if !quiet {
        out::line(format_args!("Dropped {} ({})", entry.name, entry.oid));
    }
    Ok(0)
}

fn clear(repo: &Repo) -> Res<i32> {
    if refs::resolve(repo, NAME)?.is_some() {
        refs::delete(repo, NAME, Expect::Anything)?;
    }
    reflog::remove(repo, NAME)?;
    Ok(0)
}

fn on_branch(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let Some(name) = arguments.first() else { fatal!("No branch name specified") };
    let entry = Kept::find(repo, arguments.get(1))?;
    let base = repo.odb.commit(&entry.oid)?.parents[0];
    let code = super::checkout::checkout(repo, &[b"-b".to_vec(), name.clone(), base.hex().into_bytes()])?;
    if code != 0 || bring_back(repo, &entry, true, false)? != 0 {
        return Ok(1);
    }
    if entry.at.is_some() { drop_entry(repo, &entry, false) } else { Ok(0) }
}
