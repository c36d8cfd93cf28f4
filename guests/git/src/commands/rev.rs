//! `git rev-parse`, `rev-list` and `merge-base`.

use crate::fail::{Res, fatal};
use crate::files::text;
use crate::options::Reader;
use crate::out;
use crate::pathspec::Pathspec;
use crate::refs;
use crate::repo::Repo;
use crate::revision;
use crate::walk::{self, Walk};

use super::log;

pub fn rev_parse(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let mut state =
        RevParse { repo, verify: false, quiet: false, short: None, abbrev: None, symbolic: false, found: 0 };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let written = text(argument);
        match written.as_str() {
            "--verify" => state.verify = true,
            "-q" | "--quiet" => state.quiet = true,
            "--short" => state.short = Some(None),
            "--abbrev-ref" | "--abbrev-ref=strict" | "--abbrev-ref=loose" => state.abbrev = Some(true),
            "--symbolic-full-name" => state.abbrev = Some(false),
            "--symbolic" => state.symbolic = true,
            "--" => {
                out::line("--");
                rest.by_ref().for_each(|path| out::bytes_line(path));
            }
            "--git-path" => {
                let name = rest.next().cloned().unwrap_or_default();
                out::bytes_line(&crate::files::join(state.git_dir(), &name));
            }
            "--default" => fatal!("git rev-parse: option '--default' is not supported here"),
            option if option.starts_with("--short=") => state.short = Some(option[8..].parse().ok()),
            option if option.starts_with("--") => state.about(option)?,
            _ => state.name(argument)?,
        }
    }
    if state.verify && state.found != 1 {
        if state.quiet {
            return Ok(1);
        }
        fatal!("Needed a single revision");
    }
    Ok(0)
}

struct RevParse<'a> {
    repo: &'a Repo,
    verify: bool,
    quiet: bool,
    short: Option<Option<usize>>,
    /// Names instead of hashes: short ones or full ones.
    abbrev: Option<bool>,
    symbolic: bool,
    found: usize,
}

impl RevParse<'_> {
    fn git_dir(&self) -> &[u8] {
        let at_top = self.repo.prefix.is_empty()
            && self
                .repo
                .work_tree
                .as_ref()
                .is_some_and(|tree| crate::files::join(tree, b".git") == self.repo.git_dir);
        if at_top { b".git" } else { &self.repo.git_dir }
    }

    fn about(&self, option: &str) -> Res<()> {
        let repo = self.repo;
        match option {
            "--git-dir" if repo.is_bare() && crate::repo::cwd()? == repo.git_dir => out::line("."),
            "--git-dir" => out::bytes_line(self.git_dir()),
            "--absolute-git-dir" => out::bytes_line(&repo.git_dir),
            "--git-common-dir" => out::bytes_line(self.git_dir()),
            "--show-toplevel" => out::bytes_line(repo.work_tree()?),
            "--show-prefix" => out::bytes_line(&repo.prefix),
            "--show-cdup" => {
                out::line("../".repeat(repo.prefix.iter().filter(|&&byte| byte == b'/').count()))
            }
            "--is-inside-work-tree" => {
                let here = crate::repo::cwd()?;
                let inside = repo
                    .work_tree
                    .as_ref()
                    .is_some_and(|tree| here == *tree || here.starts_with(&[&tree[..], b"/"].concat()));
                out::line(inside && !here.starts_with(&repo.git_dir));
            }
            "--is-inside-git-dir" => out::line(crate::repo::cwd()?.starts_with(&repo.git_dir)),
            "--is-bare-repository" => out::line(repo.is_bare()),
            "--is-shallow-repository" => {
                out::line(crate::files::exists(&crate::files::join(&repo.common_dir, b"shallow")))
            }
            "--show-object-format" => out::line("sha1"),
            "--all" | "--branches" | "--tags" | "--remotes" => {
                let prefix = if option == "--all" {
                    "refs/".to_owned()
                } else {
                    format!("refs/{}/", option[2..].replace("branches", "heads"))
                };
                refs::list(repo, prefix.as_bytes())?.iter().for_each(|(_, oid)| out::line(oid));
            }
            _ => fatal!("git rev-parse: option '{option}' is not supported here"),
        }
        Ok(())
    }

    fn name(&mut self, written: &[u8]) -> Res<()> {
        if !self.verify {
            let mut walk = Walk::new(self.repo);
            let range = written.windows(2).any(|pair| pair == b"..") && !written.starts_with(b".");
            if range && walk.take(written)? {
                walk.include.iter().rev().for_each(out::line);
                walk.exclude.iter().for_each(|oid| out::line(format_args!("^{oid}")));
                return Ok(());
            }
        }
        let (sign, name) = written.strip_prefix(b"^").map_or(("", written), |name| ("^", name));
        let Some(oid) = revision::find(self.repo, name)? else {
            if self.verify {
                return Ok(());
            }
            out::bytes_line(written);
            return Err(revision::unknown(written));
        };
        self.found += 1;
        if let Some(short) = self.abbrev {
            let full = match revision::full_name(self.repo, name)? {
                Some(full) => refs::follow(self.repo, &full)?,
                None => Vec::new(),
            };
            if !full.is_empty() {
                out::bytes_line(if short { refs::short(&full) } else { &full });
            }
            return Ok(());
        }
        match (self.symbolic, self.short) {
            (true, _) => out::bytes_line(written),
            (_, Some(length)) => out::line(format_args!(
                "{sign}{}",
                match length {
                    Some(length) => self.repo.odb.abbreviate(&oid, Some(length)),
                    None => self.repo.short(&oid),
                }
            )),
            _ => out::line(format_args!("{sign}{oid}")),
        }
        Ok(())
    }
}

pub fn rev_list(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = log::read("rev-list", "git rev-list [<options>] <commit>... [--] [<path>...]", arguments)?;
    let mut walk = Walk::new(repo);
    let any = !options.args.is_empty()
        || ["all", "branches", "tags", "remotes"].iter().any(|name| options.has(name));
    if !any {
        return Err(crate::fail::Fail::Usage(
            "usage: git rev-list [<options>] <commit>... [--] [<path>...]\n".to_owned(),
        ));
    }
    let written = log::start(repo, &mut walk, &options)?;
    let paths = Pathspec::new(repo, &written)?;
    let list = log::chosen(repo, &mut walk, &options, &paths)?;
    if options.has("count") {
        if options.has("left-right") {
            let left = walk::ancestors(repo, &walk.left)?;
            let ours = list.iter().filter(|oid| left.contains(*oid)).count();
            out::line(format_args!("{ours}\t{}", list.len() - ours));
        } else {
            out::line(list.len());
        }
        return Ok(0);
    }
    let formatted =
        options.value("format").is_some() || options.value("pretty").is_some() || options.has("oneline");
    let pretty = log::pretty(repo, &options)?;
    for oid in &list {
        let parents: String = match options.has("parents") {
            true => repo.odb.commit(oid)?.parents.iter().map(|parent| format!(" {parent}")).collect(),
            false => String::new(),
        };
        match (formatted, &pretty.format) {
            (false, _) => out::line(format_args!("{}{parents}", pretty.name(oid))),
            (true, crate::pretty::Format::Oneline) => out::put(pretty.show(oid, "")?),
            (true, crate::pretty::Format::User(..)) => {
                out::line(format_args!("commit {oid}{parents}"));
                out::bytes_line(&pretty.show(oid, "")?);
            }
            (true, _) => {
                out::put(pretty.show(oid, "")?);
                out::put(b"\n");
            }
        }
    }
    Ok(0)
}

const MERGE_BASE: Reader = Reader {
    command: "merge-base",
    usage: "git merge-base [-a | --all] <commit> <commit>...",
    list: "a|all is-ancestor octopus! independent! fork-point!",
    in_order: false,
};

pub fn merge_base(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = MERGE_BASE.read(arguments)?;
    let [one, two] = options.args.as_slice() else {
        if options.args.len() > 2 {
            fatal!("merge bases of more than two commits are not supported here");
        }
        return Err(MERGE_BASE.bad(""));
    };
    let named = |name: &[u8]| match revision::find(repo, name)? {
        Some(oid) => Ok(repo.odb.peel(&oid)?.0),
        None => fatal!("Not a valid object name {}", text(name)),
    };
    let (one, two) = (named(one)?, named(two)?);
    if options.has("is-ancestor") {
        return Ok(i32::from(!walk::is_ancestor(repo, &one, &two)?));
    }
    let bases = walk::merge_bases(repo, &one, &two)?;
    let count = if options.has("all") { bases.len() } else { 1 };
    bases.iter().take(count).for_each(out::line);
    Ok(i32::from(bases.is_empty()))
}
