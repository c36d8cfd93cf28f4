//! `git add`.

use crate::fail::{Fail, Res, fatal};
use crate::files::{self, text};
use crate::ignore::Ignore;
use crate::index::{Entry, Index, Look};
use crate::object::{FILE, PROGRAM, SUBMODULE};
use crate::options::Reader;
use crate::out;
use crate::pathspec::Pathspec;
use crate::repo::Repo;
use crate::worktree::{self, State, Untracked};

const READER: Reader = Reader {
    command: "add",
    usage: "git add [<options>] [--] <pathspec>...",
    list: "n|dry-run v|verbose i|interactive! p|patch! e|edit! f|force u|update A|all ignore-removal N|intent-to-add refresh \
           ignore-errors ignore-missing chmod= renormalize! sparse! pathspec-from-file=! pathspec-file-nul!",
    in_order: false,
};

pub fn add(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    let (update, all) =
        (options.has("update"), options.state("all").unwrap_or(!options.has("ignore-removal")));
    if update && options.has("all") {
        fatal!("options '-A' and '-u' cannot be used together");
    }
    if options.args.is_empty() && !update && !options.has("all") {
        out::complain(
            "Nothing specified, nothing added.\nhint: Maybe you wanted to say 'git add .'?\nhint: Turn this message off by running\nhint: \"git config advice.addEmptyPathspec false\"",
        );
        return Ok(0);
    }
    let mut index = Index::load(repo)?;
    let paths = Pathspec::new(repo, &options.args)?;
    let dry = options.has("dry-run");
    let say = options.has("verbose") || dry;
    let mut changed = Vec::new();
    for entry in index.entries.iter().filter(|entry| paths.matches(&entry.path)) {
        match worktree::state(repo, &index, entry)? {
            State::Same if entry.stage == 0 => {}
            State::Gone if all || update || entry.stage > 0 => changed.push((entry.path.clone(), false)),
            State::Gone => {}
            _ => changed.push((entry.path.clone(), true)),
        }
    }
    changed.dedup();
    let ignore = Ignore::new(repo);
    let found = worktree::untracked(repo, &index, &paths, Untracked::All, &ignore)?;
    if !update {
        let mut new = found.untracked.clone();
        if options.has("force") {
            new.extend(found.ignored.iter().cloned());
        } else {
            refuse_ignored(repo, &options.args, &index, &ignore)?;
        }
        changed.extend(new.into_iter().map(|path| (path, true)));
        changed.sort();
    }
    check_matches(
        &paths,
        &index,
        &changed,
        options.has("ignore-missing") || update && options.args.is_empty(),
    )?;
    for (path, there) in changed {
        if say {
            out::put([if there { &b"add '"[..] } else { b"remove '" }, &path, b"'\n"].concat());
        }
        if !dry {
            take(repo, &mut index, &path, there, options.has("intent-to-add"))?;
        }
    }
    if let Some(mode) = options.text("chmod") {
        let mode = match mode.as_str() {
            "+x" => PROGRAM,
            "-x" => FILE,
            _ => fatal!("--chmod param '{mode}' must be either -x or +x"),
        };
        index
            .entries
            .iter_mut()
            .filter(|entry| paths.matches(&entry.path))
            .for_each(|entry| entry.mode = mode);
    }
    if !dry {
        index.save(repo)?;
    }
    Ok(0)
}

fn check_matches(paths: &Pathspec, index: &Index, changed: &[(Vec<u8>, bool)], lenient: bool) -> Res<()> {
    let unmatched = paths.unmatched(|matches| {
        index.entries.iter().any(|entry| matches(&entry.path))
            || changed.iter().any(|(path, _)| matches(path.strip_suffix(b"/").unwrap_or(path)))
    });
    match unmatched {
        Some(written) if !(lenient || written == b"." || written == b":/" || is_empty_dir(&written)) => {
            fatal!("pathspec '{}' did not match any files", text(&written))
        }
        _ => Ok(()),
    }
}

fn is_empty_dir(written: &[u8]) -> bool {
    files::is_dir(written)
}

/// Names that are given and ignored are an error; those found in directories are not.
fn refuse_ignored(repo: &Repo, written: &[Vec<u8>], index: &Index, ignore: &Ignore) -> Res<()> {
    let mut refused = Vec::new();
    for name in written.iter().filter(|name| !crate::pattern::is_glob(name) && !name.starts_with(b":")) {
        let path = crate::pathspec::from_top(repo, name)?;
        let Some(stat) = files::lstat(&repo.in_tree(&path)) else { continue };
        if !path.is_empty()
            && !index.has(&path)
            && !index.has_below(&path)
            && ignore.is_ignored(&path, stat.is_dir())
        {
            refused.push(text(name));
        }
    }
    if refused.is_empty() {
        return Ok(());
    }
    out::complain(format!(
        "The following paths are ignored by one of your .gitignore files:\n{}\nhint: Use -f if you really want to add them.\n\
         hint: Turn this message off by running\nhint: \"git config advice.addIgnoredFile false\"",
        refused.join("\n")
    ));
    Err(Fail::Code(1))
}

/// Takes a file into the index as it is now.
pub fn take(repo: &Repo, index: &mut Index, path: &[u8], there: bool, only_announce: bool) -> Res<()> {
    if !there {
        index.remove(path);
        return Ok(());
    }
    if let Some(directory) = path.strip_suffix(b"/") {
        let nested = Repo::at(&repo.in_tree(directory))?.and_then(|nested| nested.head().ok().flatten());
        let Some(head) = nested else { fatal!("'{}' does not have a commit checked out", text(path)) };
        index.put(Entry::new(directory, SUBMODULE, head));
        return Ok(());
    }
    if worktree::is_below_link(repo, path) {
        fatal!("pathspec '{}' is beyond a symbolic link", text(path));
    }
    let old = index.stages(path).first().cloned();
    if only_announce && old.is_none() {
        let mut entry = Entry::new(path, FILE, crate::hash::of_object("blob", b""));
        repo.odb.write(crate::object::Kind::Blob, b"")?;
        entry.intent_to_add = true;
        index.put(entry);
        return Ok(());
    }
    let entry = worktree::entry_for(repo, path, old.as_ref())?;
    index.put(entry);
    Ok(())
}

/// Takes all files that the index knows as they are now: `commit -a`.
pub fn update_known(repo: &Repo, index: &mut Index, paths: &Pathspec) -> Res<()> {
    let mut known: Vec<Vec<u8>> = index
        .entries
        .iter()
        .filter(|entry| paths.matches(&entry.path))
        .map(|entry| entry.path.clone())
        .collect();
    known.dedup();
    for path in known {
        let Some(entry) = index.stages(&path).first() else { continue };
        match worktree::state(repo, index, entry)? {
            State::Same if entry.stage == 0 => {}
            State::Gone => take(repo, index, &path, false, false)?,
            _ => take(repo, index, &path, true, false)?,
        }
    }
    Ok(())
}

/// Renews the looks of files that are unchanged; answers whether any was old.
pub fn refresh(repo: &Repo, index: &mut Index) -> Res<bool> {
    let mut changed = Vec::new();
    for (at, entry) in
        index.entries.iter().enumerate().filter(|(_, entry)| entry.stage == 0 && entry.mode != SUBMODULE)
    {
        if let Some(stat) = worktree::stat(repo, &entry.path)
            && !index.is_surely_same(entry, &stat)
            && worktree::state(repo, index, entry)? == State::Same
            && entry.look != Look::of(&stat)
        {
            changed.push((at, Look::of(&stat)));
        }
    }
    let any = !changed.is_empty();
    for (at, look) in changed {
        index.entries[at].look = look;
    }
    Ok(any)
}
