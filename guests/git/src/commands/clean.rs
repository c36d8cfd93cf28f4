//! `git clean`.

use crate::fail::{Res, fatal, reason};
use crate::files;
use crate::ignore::{Ignore, List};
use crate::index::Index;
use crate::options::Reader;
use crate::out;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::repo::Repo;
use crate::status::seen_from;
use crate::worktree::{self, Untracked};

const READER: Reader = Reader {
    command: "clean",
    usage: "git clean [-d] [-f] [-n] [-q] [-e <pattern>] [-x | -X] [--] [<pathspec>...]",
    list: "q|quiet n|dry-run f|force i|interactive! d e|exclude= x X",
    in_order: false,
};

pub fn clean(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    repo.work_tree()?;
    let dry = options.has("dry-run");
    if !dry && !options.has("force") && repo.config.bool("clean.requireforce", true) {
        fatal!(
            "clean.requireForce {} and neither -i, -n, nor -f given; refusing to clean",
            if repo.config.get("clean.requireforce").is_some() { "set to true" } else { "defaults to true" }
        );
    }
    if options.has("x") && options.has("X") {
        fatal!("-x and -X cannot be used together");
    }
    let index = Index::load(repo)?;
    let mut ignore = Ignore::new(repo);
    let mut more = Vec::new();
    options.values("exclude").for_each(|pattern| more.extend_from_slice(&[pattern, b"\n"].concat()));
    let kept = List::parse(&more, b"--exclude option");
    ignore.add(kept);
    let written = if options.args.is_empty() && !repo.prefix.is_empty() {
        vec![b".".to_vec()]
    } else {
        options.args.clone()
    };
    let paths = Pathspec::new(repo, &written)?;
    let all = worktree::untracked(repo, &index, &paths, Untracked::All, &ignore)?;
    let whole = worktree::untracked(repo, &index, &paths, Untracked::Normal, &ignore)?;
    let mut chosen = Vec::new();
    if !options.has("X") {
        chosen.extend(all.untracked.iter().cloned());
    }
    if options.has("x") || options.has("X") {
        chosen.extend(all.ignored.iter().cloned());
    }
    let stays = |path: &Vec<u8>| !chosen.contains(path);
    let left: Vec<&Vec<u8>> = all.untracked.iter().chain(&all.ignored).filter(|path| stays(path)).collect();
    let mut names: Vec<Vec<u8>> = Vec::new();
    for path in &chosen {
        // A directory with nothing that stays goes as one.
        let directory =
            whole.untracked.iter().chain(&whole.ignored).find(|directory| {
                directory.ends_with(b"/") && path.starts_with(directory) && path != *directory
            });
        let name = match directory {
            // Ignored files among others go one by one.
            Some(directory) if options.has("X") && whole.untracked.contains(directory) => path.clone(),
            Some(directory) if options.has("d") => {
                let ends = (directory.len()..=path.len()).filter(|end| path[end - 1] == b'/');
                let empty = |end: &usize| !left.iter().any(|kept| kept.starts_with(&path[..*end]));
                let end = ends.into_iter().find(empty).unwrap_or(path.len());
                path[..end].to_vec()
            }
            Some(_) => continue,
            None if path.ends_with(b"/") && !options.has("d") => continue,
            None => path.clone(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort();
    let mut code = 0;
    for name in names {
        let shown = quote::path(&seen_from(repo, &name));
        let place = repo.in_tree(&name);
        if name.ends_with(b"/") && files::exists(&files::join(&place, b".git")) {
            // Another repository.
            continue;
        }
        if !options.has("quiet") {
            let verb = if dry { "Would remove " } else { "Removing " };
            out::bytes_line(&[verb.as_bytes(), &shown].concat());
        }
        if dry {
            continue;
        }
        let removed =
            if name.ends_with(b"/") { files::remove_dir_all(&place) } else { files::remove(&place) };
        if let Err(error) = removed {
            out::complain(format!("warning: failed to remove {}: {}", files::text(&shown), reason(error)));
            code = 1;
        }
    }
    Ok(code)
}
