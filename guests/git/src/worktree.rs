//! The files of the work tree: read, written, removed.

use std::io::Write;

use toolkit::files::path;
use wardian_abi as abi;
use wardian_abi::{Dir, Stat};

use crate::fail::{Res, fatal, reason, system};
use crate::files::{self, join, text};
use crate::hash::{self, Oid};
use crate::ignore::Ignore;
use crate::index::{self, DEEPEST, Entry, Index, Look};
use crate::object::{Kind, LINK, PROGRAM, SUBMODULE};
use crate::pathspec::Pathspec;
use crate::repo::Repo;

/// What a file holds: of a link, where it points.
pub fn content(name: &[u8], stat: &Stat) -> Res<Vec<u8>> {
    if stat.is_symlink() {
        return match abi::readlink(Dir::CWD, name) {
            Ok(target) => Ok(target),
            Err(error) => fatal!("readlink(\"{}\"): {}", text(name), error.message()),
        };
    }
    files::read(name).map_err(system(format_args!("could not open '{}' for reading", text(name))))
}

pub fn hash_file(name: &[u8], stat: &Stat) -> Res<Oid> {
    Ok(hash::of_object("blob", &content(name, stat)?))
}

/// What there is at a path of the work tree that could be an entry: not a directory, and not below a link.
pub fn stat(repo: &Repo, path: &[u8]) -> Option<Stat> {
    let stat = files::lstat(&repo.in_tree(path))?;
    (!stat.is_dir() && !is_below_link(repo, path)).then_some(stat)
}

/// Whether a directory above a path is a symbolic link: nothing is read or written through those.
pub fn is_below_link(repo: &Repo, path: &[u8]) -> bool {
    path.iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'/')
        .any(|(at, _)| files::lstat(&repo.in_tree(&path[..at])).is_some_and(|stat| stat.is_symlink()))
}

/// How an entry's file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    Same,
    Gone,
    /// With the mode it has now.
    Changed(u32),
}

pub fn state(repo: &Repo, index: &Index, entry: &Entry) -> Res<State> {
    if entry.assume_valid || entry.skip_worktree {
        return Ok(State::Same);
    }
    if entry.mode == SUBMODULE {
        let there = files::is_dir(&repo.in_tree(&entry.path));
        return Ok(if there { State::Same } else { State::Gone });
    }
    let Some(stat) = stat(repo, &entry.path) else { return Ok(State::Gone) };
    let mode = mode_in(repo, &stat, Some(entry));
    if entry.intent_to_add {
        return Ok(State::Changed(mode));
    }
    if mode == entry.mode && index.is_surely_same(entry, &stat) {
        return Ok(State::Same);
    }
    if !stat.is_file() && !stat.is_symlink() {
        return Ok(State::Gone);
    }
    let same = mode == entry.mode && hash_file(&repo.in_tree(&entry.path), &stat)? == entry.oid;
    Ok(if same { State::Same } else { State::Changed(mode) })
}

/// The mode of a file as an entry; where the file system's modes mean nothing the old one stays.
pub fn mode_in(repo: &Repo, stat: &Stat, old: Option<&Entry>) -> u32 {
    let mode = index::mode_of(stat);
    if repo.config.bool("core.filemode", true) || mode == LINK {
        return mode;
    }
    old.filter(|old| old.mode == PROGRAM)
        .map_or(index::mode_of(&Stat { mode: stat.mode & !0o111, ..*stat }), |old| old.mode)
}

/// Makes an entry for a file, whose content becomes an object.
pub fn entry_for(repo: &Repo, path: &[u8], old: Option<&Entry>) -> Res<Entry> {
    let name = repo.in_tree(path);
    let Some(stat) = files::lstat(&name) else {
        fatal!("unable to stat '{}': No such file or directory", text(path))
    };
    let oid = repo.odb.write(Kind::Blob, &content(&name, &stat)?)?;
    let mut entry = Entry::new(path, mode_in(repo, &stat, old), oid);
    entry.look = Look::of(&stat);
    Ok(entry)
}

/// Writes a file of the work tree, in place of what is there; answers what it looks like then.
pub fn put(repo: &Repo, path: &[u8], mode: u32, content: &[u8]) -> Res<Look> {
    let name = repo.in_tree(path);
    if !index::is_safe(path) {
        fatal!("invalid path '{}'", text(path));
    }
    make_way(repo, path)?;
    if mode == SUBMODULE {
        files::make_dirs(&name)?;
    } else if mode == LINK {
        if let Err(error) = abi::symlink(content, Dir::CWD, &name) {
            fatal!("unable to create symlink {}: {}", text(path), error.message());
        }
    } else {
        write_new(&name, content, mode == PROGRAM)?;
    }
    Ok(files::lstat(&name).map_or(Look::default(), |stat| Look::of(&stat)))
}

fn write_new(name: &[u8], content: &[u8], program: bool) -> Res<()> {
    let failed = format!("unable to create file {}", text(name));
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).open(path(name)).map_err(system(&failed))?;
    file.write_all(content).map_err(system(&failed))?;
    drop(file);
    if program && let Some(stat) = files::lstat(name) {
        let readable = stat.mode & 0o444;
        let changed = abi::chmod(Dir::CWD, name, true, stat.mode & 0o7777 | readable >> 2);
        if let Err(error) = changed {
            fatal!("{failed}: {}", error.message());
        }
    }
    Ok(())
}

/// Directories for a path, and nothing at the path itself.
fn make_way(repo: &Repo, path: &[u8]) -> Res<()> {
    for (at, _) in path.iter().enumerate().filter(|(_, byte)| **byte == b'/') {
        let name = repo.in_tree(&path[..at]);
        if files::lstat(&name).is_some_and(|stat| !stat.is_dir()) {
            files::remove_if_there(&name)?;
        }
    }
    let name = repo.in_tree(path);
    match files::lstat(&name) {
        Some(stat) if stat.is_dir() => {
            // Only an empty one makes way; what else is in it was not asked for.
            if let Err(error) = files::rmdir(&name) {
                fatal!("cannot create '{}': {}", text(path), reason(error));
            }
        }
        Some(_) => files::remove_if_there(&name)?,
        None => files::make_dirs(&files::parent(&name))?,
    }
    Ok(())
}

/// Removes a file, and the directories that become empty.
pub fn remove(repo: &Repo, path: &[u8]) -> Res<()> {
    if is_below_link(repo, path) {
        return Ok(());
    }
    let name = repo.in_tree(path);
    match files::lstat(&name) {
        Some(stat) if stat.is_dir() => return Ok(()),
        Some(_) => files::remove_if_there(&name)?,
        None => {}
    }
    let tree = repo.work_tree.clone().unwrap_or_default();
    // The directory that the command runs in stays.
    let here = crate::repo::cwd().unwrap_or_default();
    let stop =
        if here.len() > tree.len() && name.starts_with(&[&here[..], b"/"].concat()) { here } else { tree };
    files::prune_upwards(&name, &stop);
    Ok(())
}

/// Writes an entry's file from its object.
pub fn check_out(repo: &Repo, entry: &mut Entry) -> Res<()> {
    let content = if entry.mode == SUBMODULE { Vec::new() } else { repo.odb.blob(&entry.oid)? };
    entry.look = put(repo, &entry.path, entry.mode, &content)?;
    Ok(())
}

/// How much of what is not in the index is wanted.
#[derive(Clone, Copy, PartialEq)]
pub enum Untracked {
    /// A directory with nothing in the index is one name that ends with a slash.
    Normal,
    All,
}

#[derive(Default)]
pub struct Found {
    pub untracked: Vec<Vec<u8>>,
    pub ignored: Vec<Vec<u8>>,
}

/// Finds the files that are not in the index.
pub fn untracked(
    repo: &Repo,
    index: &Index,
    paths: &Pathspec,
    how: Untracked,
    ignore: &Ignore,
) -> Res<Found> {
    let mut found = Found::default();
    let mut walk = Walk { repo, index, paths, how, ignore, found: &mut found };
    walk.directory(b"", false, 0)?;
    found.untracked.sort();
    found.ignored.sort();
    Ok(found)
}

struct Walk<'a> {
    repo: &'a Repo,
    index: &'a Index,
    paths: &'a Pathspec,
    how: Untracked,
    ignore: &'a Ignore<'a>,
    found: &'a mut Found,
}

impl Walk<'_> {
    fn directory(&mut self, directory: &[u8], ignored: bool, depth: usize) -> Res<()> {
        if depth > DEEPEST {
            fatal!("directories are nested too deeply");
        }
        let place =
            if directory.is_empty() { self.repo.work_tree()?.to_vec() } else { self.repo.in_tree(directory) };
        let mut entries = toolkit::files::entries_in(&place).unwrap_or_default();
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        for entry in entries.iter().filter(|entry| entry.name != b".git") {
            let path = if directory.is_empty() { entry.name.clone() } else { join(directory, &entry.name) };
            let is_dir = match entry.kind {
                Some(kind) => kind == 0o040_000,
                None => match files::lstat(&self.repo.in_tree(&path)) {
                    Some(stat) if stat.is_dir() => true,
                    Some(stat) if stat.is_file() || stat.is_symlink() => false,
                    _ => continue,
                },
            };
            self.entry(path, is_dir, ignored, depth)?;
        }
        Ok(())
    }

    fn entry(&mut self, path: Vec<u8>, is_dir: bool, ignored: bool, depth: usize) -> Res<()> {
        if !is_dir {
            if self.paths.matches(&path) && !self.index.has(&path) {
                let ignored = ignored || self.ignore.is_ignored_here(&path, false);
                let list = if ignored { &mut self.found.ignored } else { &mut self.found.untracked };
                list.push(path);
            }
            return Ok(());
        }
        if !self.paths.may_match_below(&path) {
            return Ok(());
        }
        let ignored = ignored || self.ignore.is_ignored_here(&path, true);
        let tracked = self.index.has_below(&path);
        let nested = !tracked && files::exists(&self.repo.in_tree(&join(&path, b".git")));
        if nested {
            if !self.index.has(&path) {
                let list = if ignored { &mut self.found.ignored } else { &mut self.found.untracked };
                list.push([&path[..], b"/"].concat());
            }
            return Ok(());
        }
        let whole = !tracked && self.how == Untracked::Normal && self.paths.matches(&path);
        if !whole {
            return self.directory(&path, ignored, depth + 1);
        }
        let mut below = Found::default();
        let paths = Pathspec::default();
        Walk {
            repo: self.repo,
            index: self.index,
            paths: &paths,
            how: self.how,
            ignore: self.ignore,
            found: &mut below,
        }
        .directory(&path, ignored, depth + 1)?;
        let name = [&path[..], b"/"].concat();
        match (below.untracked.is_empty(), ignored) {
            _ if ignored => self.found.ignored.push(name),
            (false, _) => {
                self.found.untracked.push(name);
                self.found.ignored.append(&mut below.ignored);
            }
            (true, _) if !below.ignored.is_empty() => self.found.ignored.push(name),
            _ => {}
        }
        Ok(())
    }
}
