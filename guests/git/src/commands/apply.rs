//! `git apply`: patches, applied to files and the index. All that they ask for is tried first, then all is done.

use std::collections::BTreeMap;

use wardian_abi as abi;

use crate::apply::{self, FilePatch, Fit, Placed};
use crate::diffstat;
use crate::fail::{Fail, Res, error, fatal};
use crate::files::{self, join, text};
use crate::index::{self, Entry, Index};
use crate::lines;
use crate::object::{FILE, Kind, LINK, SUBMODULE};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pattern;
use crate::repo::{Global, Repo};
use crate::worktree;

const READER: Reader = Reader {
    command: "apply",
    usage: "git apply [<options>] [<patch>...]",
    list: "p= stat numstat summary check index cached R|reverse reject v|verbose q|quiet directory= include= exclude= C= \
           unidiff-zero apply whitespace= 3|3way! recount! allow-empty inaccurate-eof! ignore-space-change! \
           ignore-whitespace! allow-binary-replacement binary build-fake-ancestor=! z! unsafe-paths! no-add! \
           intent-to-add! N!",
    in_order: false,
};

pub fn apply(global: &Global, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    match options.text("whitespace").as_deref() {
        None | Some("nowarn" | "warn") => {}
        Some(action) => fatal!("git apply: '--whitespace={action}' is not supported here"),
    }
    let repo = Repo::find(global)?;
    if repo.is_none() && (options.has("index") || options.has("cached")) {
        fatal!("'--{}' outside a repository", if options.has("index") { "index" } else { "cached" });
    }
    let strip = match options.number("p")? {
        Some(number) => usize::try_from(number).unwrap_or(0),
        None => 1,
    };
    let mut patches = Vec::new();
    let stdin = vec![b"-".to_vec()];
    for name in if options.args.is_empty() { &stdin } else { &options.args } {
        let content = match name.as_slice() {
            b"-" => toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()))?,
            name => match files::read_if_there(name)? {
                Some(content) => content,
                None => error!("can't open patch '{}': No such file or directory", text(name)),
            },
        };
        let read = apply::parse(&content, strip)?;
        if read.is_empty() && !options.has("allow-empty") {
            error!("No valid patches in input (allow with \"--allow-empty\")");
        }
        patches.extend(read);
    }
    if options.has("reverse") {
        patches = patches.into_iter().rev().map(FilePatch::reversed).collect();
    }
    let prefix = repo.as_ref().map_or(Vec::new(), |repo| repo.prefix.clone());
    let patches = chosen(patches, &options, &prefix);
    let shown = ["stat", "numstat", "summary"].iter().any(|name| options.has(name));
    let mut code = 0;
    if !shown || options.has("apply") || options.has("check") {
        let mut work = Work::new(repo.as_ref(), &options)?;
        code = work.run(&patches)?;
    }
    show(&patches, &options);
    Ok(code)
}

/// The patches that are asked for, with their paths from the top.
fn chosen(patches: Vec<FilePatch>, options: &Parsed, prefix: &[u8]) -> Vec<FilePatch> {
    let root = match options.value("directory") {
        Some(directory) => [directory.strip_suffix(b"/").unwrap_or(directory), b"/"].concat(),
        None => Vec::new(),
    };
    let place = |name: Option<Vec<u8>>| name.map(|name| [&root[..], &name].concat());
    let rules: Vec<(bool, &[u8])> = options
        .options
        .iter()
        .filter(|(name, _)| name == "include" || name == "exclude")
        .filter_map(|(name, value)| Some((name == "include", value.as_deref()?)))
        .collect();
    let usual = !rules.iter().any(|(include, _)| *include);
    let wanted = |patch: &FilePatch| {
        let fits = |rule: &&(bool, &[u8])| pattern::matches(rule.1, patch.path(), false, false);
        patch.path().starts_with(prefix) && rules.iter().find(fits).map_or(usual, |(include, _)| *include)
    };
    let placed = patches.into_iter().map(|mut patch| {
        (patch.old, patch.new) = (place(patch.old), place(patch.new));
        patch
    });
    placed.filter(wanted).collect()
}

fn show(patches: &[FilePatch], options: &Parsed) {
    let mut stat = Vec::new();
    for patch in patches {
        let (added, removed) = patch.counts();
        let name = match (&patch.old, &patch.new) {
            (Some(old), Some(new)) if old != new => diffstat::rename_name(old, new),
            _ => crate::quote::path(patch.path()),
        };
        stat.push(diffstat::Line { name, added, removed, binary: patch.binary, unmerged: false });
    }
    if options.has("stat") {
        diffstat::wide_table(&stat);
    }
    if options.has("numstat") {
        for line in &stat {
            out::put(format!("{}\t{}\t", line.added, line.removed));
            out::bytes_line(&line.name);
        }
    }
    if options.has("summary") {
        for patch in patches {
            let path = text(&crate::quote::path(patch.path()));
            match (&patch.old, &patch.new) {
                (None, _) => {
                    out::line(format_args!(" create mode {:06o} {path}", patch.new_mode.unwrap_or(FILE)))
                }
                (_, None) => {
                    out::line(format_args!(" delete mode {:06o} {path}", patch.old_mode.unwrap_or(FILE)))
                }
                (Some(old), Some(new)) if old != new => {
                    let word = if patch.copies { "copy" } else { "rename" };
                    let name = text(&diffstat::rename_name(old, new));
                    out::line(format_args!(" {word} {name} ({}%)", patch.score));
                }
                _ => {
                    if let (Some(old), Some(new)) = (patch.old_mode, patch.new_mode)
                        && old != new
                    {
                        out::line(format_args!(" mode change {old:06o} => {new:06o} {path}"));
                    }
                }
            }
        }
    }
}

/// Where patches are applied.
pub struct Work<'a> {
    repo: Option<&'a Repo>,
    index: Option<Index>,
    cached: bool,
    check: bool,
    reject: bool,
    verbose: bool,
    quiet: bool,
    fit: Fit,
    /// What the patches so far make of files, by path: mode and content, or nothing.
    made: BTreeMap<Vec<u8>, Option<(u32, Vec<u8>)>>,
}

impl<'a> Work<'a> {
    fn new(repo: Option<&'a Repo>, options: &Parsed) -> Res<Work<'a>> {
        let cached = options.has("cached");
        let index = match repo {
            Some(repo) if cached || options.has("index") => Some(Index::load(repo)?),
            _ => None,
        };
        let context = options.number("C")?.and_then(|number| usize::try_from(number).ok());
        Ok(Work {
            repo,
            index,
            cached,
            check: options.has("check"),
            reject: options.has("reject"),
            verbose: options.has("verbose") || options.has("reject"),
            quiet: options.has("quiet"),
            fit: Fit { context, zero: options.has("unidiff-zero") },
            made: BTreeMap::new(),
        })
    }

    /// For `git am`: to the index and the files.
    pub fn with_index(repo: &'a Repo) -> Res<Work<'a>> {
        Ok(Work {
            repo: Some(repo),
            index: Some(Index::load(repo)?),
            cached: false,
            check: false,
            reject: false,
            verbose: false,
            quiet: false,
            fit: Fit::default(),
            made: BTreeMap::new(),
        })
    }

    fn place(&self, path: &[u8]) -> Vec<u8> {
        self.repo.filter(|repo| !repo.is_bare()).map_or_else(|| path.to_vec(), |repo| repo.in_tree(path))
    }

    fn say(&self, line: String) {
        if !self.quiet {
            out::complain(line);
        }
    }

    /// Applies all or none, except with `--reject`.
    pub fn run(&mut self, patches: &[FilePatch]) -> Res<i32> {
        let mut failed = false;
        let mut rejects = Vec::new();
        for patch in patches {
            if self.verbose {
                self.say(format!("Checking patch {}...", shown(patch)));
            }
            match self.one(patch)? {
                Ok(placed) => rejects.push(placed),
                Err(why) => {
                    if !why.is_empty() {
                        self.say(format!("error: {why}"));
                    }
                    failed = true;
                }
            }
        }
        if failed || self.check {
            return Ok(i32::from(failed));
        }
        self.write()?;
        if self.verbose {
            for (patch, placed) in patches.iter().zip(&rejects) {
                failed |= self.report(patch, placed)?;
            }
        }
        Ok(i32::from(failed))
    }

    /// What a file is before a patch.
    fn before(&mut self, path: &[u8]) -> Res<Result<(u32, Vec<u8>), String>> {
        if let Some(made) = self.made.get(path) {
            let gone = || format!("{}: No such file or directory", text(path));
            return Ok(made.clone().ok_or_else(gone));
        }
        if !index::is_safe(path) {
            return Ok(Err(format!("invalid path '{}'", text(path))));
        }
        let shown = text(path);
        if let (Some(index), Some(repo)) = (&self.index, self.repo) {
            let Some(entry) = index.get(path) else {
                return Ok(Err(format!("{shown}: does not exist in index")));
            };
            if !self.cached && worktree::state(repo, index, entry)? != worktree::State::Same {
                return Ok(Err(format!("{shown}: does not match index")));
            }
            if entry.mode == SUBMODULE {
                return Ok(Err(format!("{shown}: patches of submodules are not supported here")));
            }
            return Ok(Ok((entry.mode, repo.odb.blob(&entry.oid)?)));
        }
        let name = self.place(path);
        match files::lstat(&name) {
            Some(stat) if stat.is_file() || stat.is_symlink() => {
                let mode = match self.repo {
                    Some(repo) => worktree::mode_in(repo, &stat, None),
                    None => index::mode_of(&stat),
                };
                Ok(Ok((mode, worktree::content(&name, &stat)?)))
            }
            Some(_) => Ok(Err(format!("{shown}: wrong type"))),
            None => Ok(Err(format!("{shown}: No such file or directory"))),
        }
    }

    fn is_there(&self, path: &[u8]) -> Option<&'static str> {
        if let Some(made) = self.made.get(path) {
            return made.is_some().then_some("working directory");
        }
        if self.index.as_ref().is_some_and(|index| index.has(path)) {
            return Some("index");
        }
        (!self.cached && files::lstat(&self.place(path)).is_some()).then_some("working directory")
    }

    fn one(&mut self, patch: &FilePatch) -> Res<Result<Vec<Placed>, String>> {
        let (mode, content) = match &patch.old {
            Some(old) => match self.before(&old.clone())? {
                Ok(before) => before,
                Err(why) => return Ok(Err(why)),
            },
            None => (patch.new_mode.unwrap_or(FILE), Vec::new()),
        };
        if let Some(new) = patch.new.as_ref().filter(|new| patch.old.as_ref() != Some(*new)) {
            if !index::is_safe(new) {
                return Ok(Err(format!("invalid path '{}'", text(new))));
            }
            if let Some(place) = self.is_there(new) {
                return Ok(Err(format!("{}: already exists in {place}", text(new))));
            }
        }
        if patch.binary {
            return Ok(Err(format!("binary patches are not supported here: '{}'", shown(patch))));
        }
        let (made, placed) = apply::apply(&content, &patch.hunks, self.fit);
        for (hunk, placed) in patch.hunks.iter().zip(&placed) {
            match placed {
                None if self.reject || self.verbose => {
                    let old = hunk.lines.iter().filter(|(sign, _)| *sign != b'+');
                    let old: Vec<u8> = old.flat_map(|(_, line)| line.clone()).collect();
                    self.say(format!("error: while searching for:\n{}", text(&old)));
                    self.say(format!("error: patch failed: {}:{}", shown(patch), hunk.old_start));
                }
                None => {
                    self.say(format!("error: patch failed: {}:{}", shown(patch), hunk.old_start));
                }
                Some((line, offset)) if *offset != 0 && self.verbose => {
                    let number = patch.hunks.iter().position(|one| std::ptr::eq(one, hunk)).unwrap_or(0) + 1;
                    let s = if offset.abs() == 1 { "" } else { "s" };
                    self.say(format!("Hunk #{number} succeeded at {line} (offset {offset} line{s})."));
                }
                Some(_) => {}
            }
            if placed.is_none() && !self.reject {
                return Ok(Err(format!("{}: patch does not apply", shown(patch))));
            }
        }
        let whole = placed.iter().all(Option::is_some);
        if patch.new.is_none() && !made.is_empty() && whole {
            return Ok(Err("removal patch leaves file contents".to_owned()));
        }
        if let Some(old) = patch.old.as_ref().filter(|_| !patch.copies) {
            self.made.insert(old.clone(), None);
        }
        if let Some(new) = &patch.new {
            let mode = patch.new_mode.unwrap_or(mode);
            self.made.insert(new.clone(), Some((index::canonical_mode(mode), made)));
        }
        Ok(Ok(placed))
    }

    fn write(&mut self) -> Res<()> {
        let made = std::mem::take(&mut self.made);
        for (path, _) in made.iter().filter(|(_, now)| now.is_none()) {
            if !self.cached {
                self.remove(path)?;
            }
            if let Some(index) = &mut self.index {
                index.remove(path);
            }
        }
        for (path, now) in made {
            let Some((mode, content)) = now else { continue };
            let mut look = index::Look::default();
            if !self.cached {
                look = self.put(&path, mode, &content)?;
            }
            if let (Some(index), Some(repo)) = (&mut self.index, self.repo) {
                let mut entry = Entry::new(&path, mode, repo.odb.write(Kind::Blob, &content)?);
                entry.look = look;
                index.put(entry);
            }
        }
        match (&mut self.index, self.repo) {
            (Some(index), Some(repo)) => index.save(repo),
            _ => Ok(()),
        }
    }

    fn remove(&self, path: &[u8]) -> Res<()> {
        match self.repo.filter(|repo| !repo.is_bare()) {
            Some(repo) => worktree::remove(repo, path),
            None => files::remove_if_there(path),
        }
    }

    fn put(&self, path: &[u8], mode: u32, content: &[u8]) -> Res<index::Look> {
        if let Some(repo) = self.repo.filter(|repo| !repo.is_bare()) {
            return worktree::put(repo, path, mode, content);
        }
        if let Some(at) = path.iter().rposition(|&byte| byte == b'/') {
            files::make_dirs(&path[..at])?;
        }
        files::remove_if_there(path)?;
        if mode == LINK {
            let made = abi::symlink(content, abi::Dir::CWD, path);
            made.map_err(|error| Fail::Fatal(format!("{}: {}", text(path), error.message())))?;
        } else {
            files::write(path, content)?;
            if mode & 0o111 != 0 {
                let changed = abi::chmod(abi::Dir::CWD, path, true, 0o755);
                changed.map_err(|error| Fail::Fatal(format!("{}: {}", text(path), error.message())))?;
            }
        }
        Ok(index::Look::default())
    }

    /// Says what became of a patch; hunks that did not fit are left in `FILE.rej`.
    fn report(&self, patch: &FilePatch, placed: &[Placed]) -> Res<bool> {
        let rejected = placed.iter().filter(|placed| placed.is_none()).count();
        let name = shown(patch);
        if rejected == 0 {
            self.say(format!("Applied patch {name} cleanly."));
            return Ok(false);
        }
        let s = if rejected == 1 { "" } else { "s" };
        self.say(format!("Applying patch {name} with {rejected} reject{s}..."));
        let mut content = format!("diff a/{name} b/{name}\t(rejected hunks)\n").into_bytes();
        for (at, (hunk, placed)) in patch.hunks.iter().zip(placed).enumerate() {
            if placed.is_some() {
                self.say(format!("Hunk #{} applied cleanly.", at + 1));
                continue;
            }
            self.say(format!("Rejected hunk #{}.", at + 1));
            content.extend_from_slice(&hunk.head);
            content.push(b'\n');
            for (sign, line) in &hunk.lines {
                content.push(*sign);
                content.extend_from_slice(line);
                if !line.ends_with(b"\n") {
                    content.extend_from_slice(b"\n\\ No newline at end of file\n");
                }
            }
        }
        files::write(&[&self.place(patch.path())[..], b".rej"].concat(), &content)?;
        Ok(true)
    }
}

fn shown(patch: &FilePatch) -> String {
    match (&patch.old, &patch.new) {
        (Some(old), Some(new)) if old != new => format!("{} => {}", text(old), text(new)),
        _ => text(patch.path()),
    }
}

/// Whether a text looks like it has a patch.
pub fn has_patch(content: &[u8]) -> bool {
    lines::split(content).iter().any(|line| line.starts_with(b"diff --git ") || line.starts_with(b"--- "))
}

/// A path below the directory of what `git am` keeps.
pub fn own(repo: &Repo, name: &str) -> Vec<u8> {
    join(&repo.own("rebase-apply"), name.as_bytes())
}
