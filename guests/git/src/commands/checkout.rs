//! `git checkout`, `git switch` and `git restore`.

use crate::fail::{Res, error, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::index::{Entry, Index, flatten};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::refs::{self, Expect};
use crate::repo::Repo;
use crate::revision;
use crate::status;
use crate::switch;
use crate::worktree::{self, State};

use super::branch;

const CHECKOUT: Reader = Reader {
    command: "checkout",
    usage: "git checkout [<options>] <branch>",
    list: "q|quiet b= B= l t|track? no-track detach f|force orphan= ours theirs m|merge! p|patch! conflict=! progress no-progress \
           guess no-guess ignore-other-worktrees overwrite-ignore overlay no-overlay! pathspec-from-file=! d",
    in_order: false,
};

pub fn checkout(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = CHECKOUT.read(arguments)?;
    repo.work_tree()?;
    let (before, after) = options.sides();
    let creating = options.value("b").or_else(|| options.value("B"));
    if let Some(name) = options.value("orphan") {
        return orphan(repo, name, options.has("quiet"));
    }
    if let Some(paths) = after.filter(|paths| !paths.is_empty()) {
        if before.len() > 1 {
            fatal!("only one reference expected, {} given.", before.len());
        }
        return restore_paths(repo, before.first().map(Vec::as_slice), paths, &options);
    }
    let first = before.first();
    let target = first.filter(|name| name.as_slice() != b"-" || creating.is_none());
    let is_commit = match target {
        Some(name) => name.as_slice() == b"-" || revision::find(repo, name)?.is_some(),
        None => true,
    };
    if !is_commit && creating.is_none() {
        let name = target.map_or(b"".as_slice(), Vec::as_slice);
        if before.len() == 1
            && after.is_none()
            && let Some(remote) = only_remote(repo, name)?
            && !worktree_has(repo, name)
        {
            branch::create(repo, name, &remote, false)?;
            branch::set_upstream(repo, name, &remote, options.has("quiet"))?;
            return go(repo, name, &options, None);
        }
        return restore_paths(repo, None, before, &options);
    }
    if before.len() > 1 {
        return restore_paths(repo, before.first().map(Vec::as_slice), &before[1..], &options);
    }
    match creating {
        Some(name) => {
            let start = target.map_or(b"HEAD".as_slice(), Vec::as_slice);
            create_and_go(repo, name, start, options.value("B").is_some(), &options)
        }
        None => go(repo, target.map_or(b"HEAD".as_slice(), Vec::as_slice), &options, None),
    }
}

fn worktree_has(repo: &Repo, name: &[u8]) -> bool {
    crate::pathspec::from_top(repo, name).is_ok_and(|path| files::exists(&repo.in_tree(&path)))
}

/// The only branch of another repository with this name.
fn only_remote(repo: &Repo, name: &[u8]) -> Res<Option<Vec<u8>>> {
    let ending = [b"/", name].concat();
    let fits = |full: &Vec<u8>| {
        full.strip_prefix(b"refs/remotes/")
            .and_then(|rest| rest.iter().position(|&byte| byte == b'/').map(|at| &rest[at..]))
            == Some(&ending[..])
    };
    let found: Vec<Vec<u8>> =
        refs::list(repo, b"refs/remotes/")?.into_iter().map(|(full, _)| full).filter(fits).collect();
    Ok(match found.as_slice() {
        [one] => Some(refs::short(one).to_vec()),
        _ => None,
    })
}

fn create_and_go(repo: &Repo, name: &[u8], start: &[u8], force: bool, options: &Parsed) -> Res<i32> {
    let full = [b"refs/heads/", name].concat();
    if repo.head()?.is_none() && start == b"HEAD" {
        refs::set_symbolic(repo, b"HEAD", &full, None)?;
        out::complain(format!("Switched to a new branch '{}'", text(name)));
        return Ok(0);
    }
    if !refs::is_valid(&full) || name.starts_with(b"-") {
        fatal!("'{}' is not a valid branch name", text(name));
    }
    let there = refs::resolve(repo, &full)?.is_some();
    if there && !force {
        fatal!("a branch named '{}' already exists", text(name));
    }
    let Some(found) = revision::find(repo, start)? else {
        fatal!("'{}' is not a commit and a branch '{}' cannot be created from it", text(start), text(name))
    };
    let oid = repo.odb.peel(&found)?.0;
    move_files(repo, &oid, options)?;
    let why = format!("branch: {} {}", if there { "Reset to" } else { "Created from" }, text(start));
    let old = place(repo)?;
    refs::set(repo, &full, oid, Expect::Anything, &why)?;
    refs::set_symbolic(
        repo,
        b"HEAD",
        &full,
        Some(&format!("checkout: moving from {old} to {}", text(name))),
    )?;
    if options.state("track") != Some(false) && (options.has("track") || branch::is_remote(repo, start)?) {
        branch::set_upstream(repo, name, start, options.has("quiet"))?;
    }
    if !options.has("quiet") {
        let words = if there { "Switched to and reset branch" } else { "Switched to a new branch" };
        out::complain(format!("{words} '{}'", text(name)));
    }
    Ok(0)
}

/// Where `HEAD` is, for the log.
fn place(repo: &Repo) -> Res<String> {
    match refs::current_branch(repo)? {
        Some(branch) => Ok(text(&branch)),
        None => Ok(repo.head()?.map_or(String::new(), |oid| oid.hex())),
    }
}

fn move_files(repo: &Repo, oid: &Oid, options: &Parsed) -> Res<()> {
    let mut index = Index::load(repo)?;
    let (old, new) = (repo.head_tree()?, revision::tree_of(repo, oid)?);
    if options.has("force") || options.has("discard-changes") {
        switch::force(repo, &mut index, &new)?;
    } else {
        let unmerged = index.unmerged();
        if !unmerged.is_empty() {
            for path in &unmerged {
                out::line(format_args!("{}: needs merge", text(path)));
            }
            error!("you need to resolve your current index first");
        }
        switch::to_tree(repo, &mut index, &old, &new, "checkout")?;
    }
    index.save(repo)
}

/// Goes to a branch or a commit.
fn go(repo: &Repo, written: &[u8], options: &Parsed, detach: Option<bool>) -> Res<i32> {
    let name = match written {
        b"-" => match revision::previous_branch(repo, 1)? {
            Some(name) => name,
            None => error!("pathspec '-' did not match any file(s) known to git"),
        },
        name => name.to_vec(),
    };
    let full = [b"refs/heads/", &name[..]].concat();
    let detach = detach.unwrap_or(options.has("detach"));
    let is_branch = !detach && refs::is_valid(&full) && refs::resolve(repo, &full)?.is_some();
    let old_branch = refs::current_branch(repo)?;
    if repo.head()?.is_none() && name == b"HEAD" {
        fatal!("You are on a branch yet to be born");
    }
    let oid = if is_branch {
        refs::resolve(repo, &full)?.unwrap_or_default()
    } else {
        revision::commit(repo, &name)?
    };
    let before = repo.head()?;
    move_files(repo, &oid, options)?;
    if name == b"HEAD" && !detach {
        show_changes(repo, options)?;
        return Ok(0);
    }
    let why = format!("checkout: moving from {} to {}", place(repo)?, text(&name));
    let quiet = options.has("quiet");
    if is_branch {
        refs::set_symbolic(repo, b"HEAD", &full, Some(&why))?;
        show_changes(repo, options)?;
        if !quiet {
            leaving(repo, old_branch.is_none(), before, &oid)?;
            let words =
                if old_branch.as_deref() == Some(&name) { "Already on" } else { "Switched to branch" };
            out::complain(format!("{words} '{}'", text(&name)));
            out::put(status::tracking(repo, &name, true)?);
        }
    } else {
        refs::set(repo, b"HEAD", oid, Expect::Anything, &why)?;
        show_changes(repo, options)?;
        if !quiet {
            leaving(repo, old_branch.is_none(), before, &oid)?;
            if old_branch.is_some() && !options.has("detach") {
                out::complain(format!(
                    "Note: switching to '{}'.\n\nYou are in 'detached HEAD' state. You can look around, make experimental\nchanges and commit them, and you can discard any commits you make in this\nstate without impacting any branches by switching back to a branch.\n",
                    text(&name)
                ));
            }
            let subject = repo.odb.commit(&oid)?.subject();
            out::complain(format!("HEAD is now at {} {}", repo.short(&oid), text(&subject)));
        }
    }
    super::program::hook(
        repo,
        "post-checkout",
        &[before.unwrap_or_default().hex().as_bytes(), oid.hex().as_bytes(), b"1"],
    )?;
    Ok(0)
}

fn leaving(repo: &Repo, detached: bool, before: Option<Oid>, now: &Oid) -> Res<()> {
    if let Some(before) = before.filter(|before| detached && before != now) {
        let subject = repo.odb.commit(&before)?.subject();
        out::complain(format!("Previous HEAD position was {} {}", repo.short(&before), text(&subject)));
    }
    Ok(())
}

/// What the user changed and keeps, on standard output.
fn show_changes(repo: &Repo, options: &Parsed) -> Res<()> {
    if options.has("quiet") {
        return Ok(());
    }
    let index = Index::load(repo)?;
    for change in crate::change::tree_and_work(repo, &repo.head_tree()?, &index, &Pathspec::default())? {
        out::bytes_line(&[&[change.status, b'\t'][..], change.path()].concat());
    }
    Ok(())
}

fn orphan(repo: &Repo, name: &[u8], quiet: bool) -> Res<i32> {
    let full = [b"refs/heads/", name].concat();
    if refs::resolve(repo, &full)?.is_some() {
        fatal!("a branch named '{}' already exists", text(name));
    }
    refs::set_symbolic(repo, b"HEAD", &full, None)?;
    if !quiet {
        out::complain(format!("Switched to a new branch '{}'", text(name)));
    }
    Ok(0)
}

/// Files from a commit (into the index too) or from the index.
fn restore_paths(repo: &Repo, from: Option<&[u8]>, written: &[Vec<u8>], options: &Parsed) -> Res<i32> {
    let paths = Pathspec::new(repo, written)?;
    let mut index = Index::load(repo)?;
    let stage = if options.has("ours") {
        2
    } else if options.has("theirs") {
        3
    } else {
        0
    };
    let count = match from {
        Some(name) => {
            let tree = revision::tree_of(repo, &revision::get(repo, name)?)?;
            from_tree(repo, &mut index, &tree, &paths, true, true, false)?
        }
        None => from_index(repo, &mut index, &paths, stage)?,
    };
    index.save(repo)?;
    if !options.has("quiet") {
        let many = if count == 1 { "" } else { "s" };
        match from {
            Some(name) => out::complain(format!(
                "Updated {count} path{many} from {}",
                repo.short(&revision::tree_of(repo, &revision::get(repo, name)?)?)
            )),
            None => out::complain(format!("Updated {count} path{many} from the index")),
        }
    }
    Ok(0)
}

fn from_index(repo: &Repo, index: &mut Index, paths: &Pathspec, stage: u8) -> Res<usize> {
    if let Some(written) = paths.unmatched(|matches| index.entries.iter().any(|entry| matches(&entry.path))) {
        error!("pathspec '{}' did not match any file(s) known to git", text(&written));
    }
    let mut count = 0;
    let chosen: Vec<Entry> =
        index.entries.iter().filter(|entry| paths.matches(&entry.path)).cloned().collect();
    for mut entry in chosen {
        if entry.stage > 0 && stage == 0 {
            error!("path '{}' is unmerged", text(&entry.path));
        }
        if entry.stage > 0 {
            if entry.stage == stage {
                worktree::check_out(repo, &mut entry)?;
                count += 1;
            }
            continue;
        }
        if worktree::state(repo, index, &entry)? != State::Same {
            worktree::check_out(repo, &mut entry)?;
            index.put_stage(entry);
            count += 1;
        }
    }
    Ok(count)
}

/// Files from a tree, into the index, the work tree or both; with `remove` those that it lacks go.
fn from_tree(
    repo: &Repo,
    index: &mut Index,
    tree: &Oid,
    paths: &Pathspec,
    staged: bool,
    work: bool,
    remove: bool,
) -> Res<usize> {
    let files = flatten(&repo.odb, tree)?;
    let known: Vec<Vec<u8>> = index.entries.iter().map(|entry| entry.path.clone()).collect();
    let unmatched = paths.unmatched(|matches| {
        files.keys().any(|path| matches(path)) || remove && known.iter().any(|path| matches(path))
    });
    if let Some(written) = unmatched {
        error!("pathspec '{}' did not match any file(s) known to git", text(&written));
    }
    let mut count = 0;
    for path in known.iter().filter(|path| remove && paths.matches(path) && !files.contains_key(*path)) {
        if work {
            worktree::remove(repo, path)?;
        }
        if staged {
            index.remove(path);
        }
    }
    for (path, (mode, oid)) in files.iter().filter(|(path, _)| paths.matches(path)) {
        let mut entry = Entry::new(path, *mode, *oid);
        let same = index.get(path).is_some_and(|old| (old.mode, old.oid) == (*mode, *oid));
        if work {
            let old = index.get(path).cloned();
            let untouched =
                same && old.is_some_and(|old| matches!(worktree::state(repo, index, &old), Ok(State::Same)));
            if untouched {
                continue;
            }
            worktree::check_out(repo, &mut entry)?;
            count += 1;
        }
        if staged {
            index.put(entry);
        }
    }
    Ok(count)
}

const SWITCH: Reader = Reader {
    command: "switch",
    usage: "git switch [<options>] [<branch>]",
    list: "c|create= C|force-create= guess no-guess discard-changes q|quiet t|track? no-track d|detach f|force orphan= m|merge! \
           conflict=! progress no-progress ignore-other-worktrees overwrite-ignore",
    in_order: false,
};

pub fn switch(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = SWITCH.read(arguments)?;
    let under_way = [
        ("MERGE_HEAD", "merging", "merge"),
        ("rebase-merge", "rebasing", "rebase"),
        ("CHERRY_PICK_HEAD", "cherry-picking", "cherry-pick"),
        ("REVERT_HEAD", "reverting", "revert"),
    ];
    if let Some((_, doing, command)) =
        under_way.iter().find(|(file, ..)| crate::files::exists(&repo.own(file)))
    {
        fatal!(
            "cannot switch branch while {doing}\nConsider \"git {command} --quit\" or \"git worktree add\"."
        );
    }
    if let Some(name) = options.value("orphan") {
        let mut index = Index::load(repo)?;
        switch::to_tree(repo, &mut index, &repo.head_tree()?, &crate::odb::EMPTY_TREE, "checkout")?;
        index.save(repo)?;
        return orphan(repo, name, options.has("quiet"));
    }
    if let Some(name) = options.value("create").or_else(|| options.value("force-create")) {
        let start = options.args.first().map_or(b"HEAD".as_slice(), Vec::as_slice);
        return create_and_go(repo, name, start, options.value("force-create").is_some(), &options);
    }
    let head = b"HEAD".to_vec();
    let name = match options.args.as_slice() {
        [name] => name,
        [] if options.has("detach") => &head,
        _ => fatal!("missing branch or commit argument"),
    };
    let full = [b"refs/heads/", &name[..]].concat();
    if name != b"-"
        && !options.has("detach")
        && !(refs::is_valid(&full) && refs::resolve(repo, &full)?.is_some())
    {
        if let Some(remote) = only_remote(repo, name)? {
            branch::create(repo, name, &remote, false)?;
            branch::set_upstream(repo, name, &remote, options.has("quiet"))?;
            return go(repo, name, &options, Some(false));
        }
        match revision::find(repo, name)? {
            None => fatal!("invalid reference: {}", text(name)),
            Some(_) => {
                let kind =
                    if revision::full_name(repo, name)?.is_some_and(|full| full.starts_with(b"refs/tags/")) {
                        "tag"
                    } else {
                        "commit"
                    };
                out::complain(format!("fatal: a branch is expected, got {kind} '{}'", text(name)));
                out::complain(
                    "hint: If you want to detach HEAD at the commit, try again with the --detach option.",
                );
                return Ok(128);
            }
        }
    }
    go(repo, name, &options, Some(options.has("detach")))
}

const RESTORE: Reader = Reader {
    command: "restore",
    usage: "git restore [<options>] [--source=<branch>] <file>...",
    list: "s|source= S|staged W|worktree ignore-unmerged overlay! q|quiet progress no-progress m|merge! conflict=! 2|ours 3|theirs \
           p|patch! ignore-skip-worktree-bits pathspec-from-file=! pathspec-file-nul!",
    in_order: false,
};

pub fn restore(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = RESTORE.read(arguments)?;
    if options.args.is_empty() {
        fatal!("you must specify path(s) to restore");
    }
    let paths = Pathspec::new(repo, &options.args)?;
    let staged = options.has("staged");
    let work = options.has("worktree") || !staged;
    let mut index = Index::load(repo)?;
    let source = options.value("source").map(<[u8]>::to_vec);
    match (source, staged) {
        (None, false) => {
            let stage = if options.has("ours") {
                2
            } else if options.has("theirs") {
                3
            } else {
                0
            };
            from_index(repo, &mut index, &paths, stage)?;
        }
        (source, _) => {
            let name = source.unwrap_or_else(|| b"HEAD".to_vec());
            let tree = match revision::find(repo, &name)? {
                Some(oid) => revision::tree_of(repo, &oid)?,
                None => fatal!("could not resolve {}", text(&name)),
            };
            from_tree(repo, &mut index, &tree, &paths, staged, work, true)?;
            if staged {
                super::refresh(repo, &mut index)?;
            }
        }
    }
    index.save(repo)?;
    Ok(0)
}
