//! `git rm` and `git mv`.

use crate::fail::reason;
use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};
use crate::index::Index;
use crate::options::Reader;
use crate::out;
use crate::pathspec::{self, Pathspec};
use crate::quote;
use crate::repo::Repo;
use crate::worktree::{self, State};

const RM: Reader = Reader {
    command: "rm",
    usage: "git rm [-f | --force] [-n] [-r] [--cached] [--ignore-unmatch] [--quiet] [--] [<pathspec>...]",
    list: "n|dry-run q|quiet cached f|force r ignore-unmatch sparse! pathspec-from-file=! pathspec-file-nul!",
    in_order: false,
};

pub fn rm(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = RM.read(arguments)?;
    if options.args.is_empty() {
        fatal!("No pathspec was given. Which files should I remove?");
    }
    let cached = options.has("cached");
    let mut index = Index::load(repo)?;
    let paths = Pathspec::new(repo, &options.args)?;
    let mut chosen: Vec<Vec<u8>> = index
        .entries
        .iter()
        .filter(|entry| paths.matches(&entry.path))
        .map(|entry| entry.path.clone())
        .collect();
    chosen.dedup();
    if !options.has("ignore-unmatch")
        && let Some(written) = paths.unmatched(|matches| chosen.iter().any(|path| matches(path)))
    {
        fatal!("pathspec '{}' did not match any files", text(&written));
    }
    if !options.has("r") {
        for written in options.args.iter().filter(|written| !crate::pattern::is_glob(written)) {
            let top = pathspec::from_top(repo, written)?;
            if !index.has(&top)
                && chosen.iter().any(|path| path.starts_with(&[&top[..], b"/"].concat()) || top.is_empty())
            {
                fatal!("not removing '{}' recursively without -r", text(written));
            }
        }
    }
    if !options.has("force") {
        check_safe(repo, &index, &chosen, cached)?;
    }
    for path in &chosen {
        if !options.has("quiet") {
            out::put([b"rm '", &quote::path(path)[..], b"'\n"].concat());
        }
        if !options.has("dry-run") {
            if !cached {
                worktree::remove(repo, path)?;
            }
            index.remove(path);
        }
    }
    if !options.has("dry-run") {
        index.save(repo)?;
    }
    Ok(0)
}

/// What would be lost is not removed.
fn check_safe(repo: &Repo, index: &Index, paths: &[Vec<u8>], cached: bool) -> Res<()> {
    let head = crate::index::flatten(&repo.odb, &repo.head_tree()?)?;
    let (mut both, mut staged, mut local) = (Vec::new(), Vec::new(), Vec::new());
    for path in paths {
        let Some(entry) = index.get(path) else { continue };
        let differs_from_file = matches!(worktree::state(repo, index, entry)?, State::Changed(_));
        let differs_from_head = head.get(path) != Some(&(entry.mode, entry.oid));
        let shown = format!("    {}", text(path));
        match (differs_from_file, differs_from_head) {
            (true, true) if !(cached && entry.intent_to_add) => both.push(shown),
            (false, true) if !cached => staged.push(shown),
            (true, false) if !cached => local.push(shown),
            _ => {}
        }
    }
    let complain = |list: &[String], what: &str, hint: &str| {
        if !list.is_empty() {
            let (noun, verb) = if list.len() == 1 { ("file", "has") } else { ("files", "have") };
            out::complain(format!(
                "error: the following {noun} {verb} {what}:\n{}\n({hint})",
                list.join("\n")
            ));
        }
    };
    complain(&both, "staged content different from both the\nfile and the HEAD", "use -f to force removal");
    complain(&staged, "changes staged in the index", "use --cached to keep the file, or -f to force removal");
    complain(&local, "local modifications", "use --cached to keep the file, or -f to force removal");
    if both.is_empty() && staged.is_empty() && local.is_empty() { Ok(()) } else { Err(Fail::Code(1)) }
}

const MV: Reader = Reader {
    command: "mv",
    usage: "git mv [<options>] <source>... <destination>",
    list: "v|verbose n|dry-run f|force k sparse!",
    in_order: false,
};

pub fn mv(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = MV.read(arguments)?;
    let Some((target, sources)) = options.args.split_last().filter(|(_, sources)| !sources.is_empty()) else {
        return Err(MV.bad("fatal: bad source"));
    };
    let to = pathspec::from_top(repo, target)?;
    let into = to.is_empty() || files::is_dir(&repo.in_tree(&to));
    if sources.len() > 1 && !into {
        fatal!("destination '{}' is not a directory", text(target));
    }
    if !into && target.ends_with(b"/") && sources.iter().any(|source| !files::is_dir(source)) {
        fatal!(
            "destination directory does not exist, source={}, destination={}",
            text(&sources[0]),
            text(target)
        );
    }
    let mut index = Index::load(repo)?;
    let mut moves = Vec::new();
    for source in sources {
        let from = pathspec::from_top(repo, source)?;
        let name = toolkit::files::base_name(&from);
        let to = match (into, to.is_empty()) {
            (false, _) => to.clone(),
            (true, true) => name.to_vec(),
            (true, false) => join(&to, name),
        };
        match check_move(repo, &index, &from, &to, options.has("force")) {
            None => moves.push((from, to)),
            Some(_) if options.has("k") => {}
            Some(why) => fatal!("{why}, source={}, destination={}", text(&from), text(&to)),
        }
    }
    for (from, to) in moves {
        if options.has("verbose") || options.has("dry-run") {
            let below = [&from[..], b"/"].concat();
            out::put([b"Renaming ", &from[..], b" to ", &to, b"\n"].concat());
            for entry in index.entries.iter().filter(|entry| entry.path.starts_with(&below)) {
                let rest = &entry.path[from.len()..];
                out::put([b"Renaming ", &entry.path[..], b" to ", &to, rest, b"\n"].concat());
            }
        }
        if !options.has("dry-run") {
            move_one(repo, &mut index, &from, &to)?;
        }
    }
    index.save(repo)?;
    Ok(0)
}

/// Why a path cannot be moved, if it cannot.
fn check_move(repo: &Repo, index: &Index, from: &[u8], to: &[u8], force: bool) -> Option<&'static str> {
    let name = repo.in_tree(from);
    if !files::exists(&name) {
        return Some("bad source");
    }
    let directory = files::is_dir(&name) && !files::lstat(&name).is_some_and(|stat| stat.is_symlink());
    if directory && (to == from || to.starts_with(&[from, b"/"].concat())) {
        return Some("can not move directory into itself");
    }
    if directory && !index.has_below(from) {
        return Some("source directory is empty");
    }
    if !directory && !index.has(from) {
        return Some("not under version control");
    }
    if !directory && index.stages(from).iter().any(|entry| entry.stage > 0) {
        return Some("conflicted");
    }
    let target = repo.in_tree(to);
    if files::exists(&target) && (!force || files::is_dir(&target)) {
        return Some("destination exists");
    }
    if !files::is_dir(&files::parent(&target)) {
        return Some("destination directory does not exist");
    }
    None
}

fn move_one(repo: &Repo, index: &mut Index, from: &[u8], to: &[u8]) -> Res<()> {
    if let Err(error) = files::rename(&repo.in_tree(from), &repo.in_tree(to)) {
        fatal!("renaming '{}' failed: {}", text(from), reason(error));
    }
    let below = [from, b"/"].concat();
    let moved: Vec<crate::index::Entry> = index
        .entries
        .iter()
        .filter(|entry| entry.path == from || entry.path.starts_with(&below))
        .cloned()
        .collect();
    for mut entry in moved {
        index.remove(&entry.path);
        entry.path = [to, &entry.path[from.len()..]].concat();
        // A new name changes when the file was last touched, though not what it holds.
        let unchanged = files::lstat(&repo.in_tree(&entry.path)).filter(|stat| {
            worktree::hash_file(&repo.in_tree(&entry.path), stat).is_ok_and(|oid| oid == entry.oid)
        });
        if let Some(stat) = unchanged {
            entry.look = crate::index::Look::of(&stat);
        }
        index.put(entry);
    }
    Ok(())
}
