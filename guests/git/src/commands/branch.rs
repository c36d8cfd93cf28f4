//! `git branch` and `git tag`.

use std::collections::HashSet;

use crate::fail::{Res, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::ident;
use crate::message;
use crate::object::{Kind, Tag};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pattern;
use crate::reflog;
use crate::refs::{self, Expect};
use crate::remote;
use crate::repo::Repo;
use crate::revision;
use crate::status;
use crate::walk;

const BRANCH: Reader = Reader {
    command: "branch",
    usage: "git branch [<options>] [-r | -a] [--merged] [--no-merged]",
    list: "v|verbose q|quiet t|track? no-track u|set-upstream-to= unset-upstream color? no-color r|remotes a|all d|delete D m|move M \
           c|copy! C! l|list f|force contains? no-contains? merged? no-merged? points-at=! sort= show-current edit-description! \
           i|ignore-case format= abbrev? column?! no-column create-reflog recurse-submodules!",
    in_order: false,
};

pub fn branch(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = BRANCH.read(arguments)?;
    let filters = ["contains", "no-contains", "merged", "no-merged"];
    if options.has("show-current") {
        if let Some(branch) = refs::current_branch(repo)? {
            out::bytes_line(&branch);
        }
        return Ok(0);
    }
    if options.has("delete") || options.has("D") {
        return delete(repo, &options);
    }
    if options.has("move") || options.has("M") {
        return rename(repo, &options);
    }
    if let Some(upstream) = options.value("set-upstream-to") {
        let branch = match options.args.first() {
            Some(name) => name.clone(),
            None => current(repo)?,
        };
        set_upstream(repo, &branch, upstream, false)?;
        return Ok(0);
    }
    if options.has("unset-upstream") {
        let branch = options.args.first().cloned().map_or_else(|| current(repo), Ok)?;
        let file = crate::files::join(&repo.common_dir, b"config");
        if remote::upstream(repo, &branch).is_none() {
            fatal!("Branch '{}' has no upstream information", text(&branch));
        }
        for key in ["remote", "merge"] {
            crate::config::change(
                &file,
                format!("branch.{}.{key}", text(&branch)).as_bytes(),
                None,
                false,
                &|_| true,
            )?;
        }
        return Ok(0);
    }
    let listing =
        options.has("list") || options.args.is_empty() || filters.iter().any(|name| options.has(name));
    if listing {
        return list(repo, &options);
    }
    if options.args.len() > 2 {
        return Err(BRANCH.bad("fatal: too many arguments"));
    }
    let start = options.args.get(1).map_or(b"HEAD".as_slice(), Vec::as_slice);
    create(repo, &options.args[0], start, options.has("force"))?;
    if options.has("track") || options.state("track").is_none() && is_remote(repo, start)? {
        set_upstream(repo, &options.args[0], start, options.has("quiet"))?;
    }
    Ok(0)
}

fn current(repo: &Repo) -> Res<Vec<u8>> {
    match refs::current_branch(repo)? {
        Some(branch) => Ok(branch),
        None => fatal!("could not set upstream of HEAD when it does not point to any branch"),
    }
}

pub fn is_remote(repo: &Repo, name: &[u8]) -> Res<bool> {
    Ok(revision::full_name(repo, name)?.is_some_and(|full| full.starts_with(b"refs/remotes/")))
}

pub fn set_upstream(repo: &Repo, branch: &[u8], upstream: &[u8], quiet: bool) -> Res<()> {
    let Some(full) = revision::full_name(repo, upstream)? else {
        fatal!("the requested upstream branch '{}' does not exist", text(upstream));
    };
    let (remote, merge) = match full.strip_prefix(b"refs/remotes/") {
        Some(rest) => {
            let slash = rest.iter().position(|&byte| byte == b'/').unwrap_or(rest.len());
            (rest[..slash].to_vec(), [b"refs/heads/", rest.get(slash + 1..).unwrap_or(b"")].concat())
        }
        None => (b".".to_vec(), full.clone()),
    };
    let file = crate::files::join(&repo.common_dir, b"config");
    let name = text(branch);
    crate::config::change(&file, format!("branch.{name}.remote").as_bytes(), Some(&remote), false, &|_| {
        true
    })?;
    crate::config::change(&file, format!("branch.{name}.merge").as_bytes(), Some(&merge), false, &|_| true)?;
    if !quiet {
        out::line(format_args!("branch '{name}' set up to track '{}'.", text(refs::short(&full))));
    }
    Ok(())
}

/// Makes a branch, or with `force` moves one.
pub fn create(repo: &Repo, name: &[u8], start: &[u8], force: bool) -> Res<Oid> {
    let full = [b"refs/heads/", name].concat();
    if !refs::is_valid(&full) || name.starts_with(b"-") || name == b"HEAD" {
        fatal!("'{}' is not a valid branch name", text(name));
    }
    let there = refs::resolve(repo, &full)?.is_some();
    if there && !force {
        fatal!("a branch named '{}' already exists", text(name));
    }
    if there && refs::current_branch(repo)?.as_deref() == Some(name) {
        fatal!(
            "cannot force update the branch '{}' checked out at '{}'",
            text(name),
            text(repo.work_tree()?)
        );
    }
    let Some(found) = revision::find(repo, start)? else {
        fatal!("not a valid object name: '{}'", text(start))
    };
    let (oid, kind) = repo.odb.peel(&found)?;
    if kind != Kind::Commit {
        fatal!("not a valid branch point: '{}'", text(start));
    }
    let why = format!("branch: {} {}", if there { "Reset to" } else { "Created from" }, text(start));
    refs::update(repo, &full, oid, Expect::Anything, &why)?;
    Ok(oid)
}

fn delete(repo: &Repo, options: &Parsed) -> Res<i32> {
    let remote = options.has("remotes");
    let force = options.has("D") || options.has("force");
    let mut code = 0;
    if options.args.is_empty() {
        fatal!("branch name required");
    }
    for name in &options.args {
        let full = [if remote { &b"refs/remotes/"[..] } else { b"refs/heads/" }, name].concat();
        let Some(oid) = refs::resolve(repo, &full)? else {
            let kind = if remote { "remote-tracking branch" } else { "branch" };
            out::complain(format!("error: {kind} '{}' not found.", text(name)));
            code = 1;
            continue;
        };
        if !remote && refs::current_branch(repo)?.as_deref() == Some(name) {
            out::complain(format!(
                "error: Cannot delete branch '{}' checked out at '{}'",
                text(name),
                text(repo.work_tree().unwrap_or(b""))
            ));
            code = 1;
            continue;
        }
        let against = match remote::upstream(repo, name) {
            Some(upstream) => refs::resolve(repo, &upstream)?.or(repo.head()?),
            None => repo.head()?,
        };
        let merged = match against {
            Some(head) => walk::is_ancestor(repo, &oid, &head)?,
            None => false,
        };
        if !remote && !force && !merged {
            out::complain(format!(
                "error: The branch '{0}' is not fully merged.\nIf you are sure you want to delete it, run 'git branch -D {0}'.",
                text(name)
            ));
            code = 1;
            continue;
        }
        refs::delete(repo, &full, Expect::Anything)?;
        let file = crate::files::join(&repo.common_dir, b"config");
        crate::config::change_section(&file, &[b"branch.", &name[..]].concat(), None)?;
        if !options.has("quiet") {
            let kind = if remote { "remote-tracking branch" } else { "branch" };
            out::line(format_args!("Deleted {kind} {} (was {}).", text(name), repo.short(&oid)));
        }
    }
    Ok(code)
}

fn rename(repo: &Repo, options: &Parsed) -> Res<i32> {
    let head = refs::current_branch(repo)?;
    let (old, new) = match options.args.as_slice() {
        [new] => match &head {
            Some(old) => (old.clone(), new.clone()),
            None => fatal!("cannot rename the current branch while not on any."),
        },
        [old, new] => (old.clone(), new.clone()),
        _ => return Err(BRANCH.bad("fatal: branch name required")),
    };
    let (from, to) = ([b"refs/heads/", &old[..]].concat(), [b"refs/heads/", &new[..]].concat());
    if !refs::is_valid(&to) || new.starts_with(b"-") {
        fatal!("'{}' is not a valid branch name", text(&new));
    }
    let oid = refs::resolve(repo, &from)?;
    if oid.is_none() && head.as_ref() != Some(&old) {
        fatal!("No branch named '{}'.", text(&old));
    }
    let force = options.has("M") || options.has("force");
    if refs::resolve(repo, &to)?.is_some() && old != new && !force {
        fatal!("A branch named '{}' already exists.", text(&new));
    }
    if let Some(oid) = oid.filter(|_| old != new) {
        reflog::rename(repo, &from, &to)?;
        refs::delete(repo, &from, Expect::Anything)?;
        let why = format!("Branch: renamed {} to {}", text(&from), text(&to));
        refs::set(repo, &to, oid, Expect::Anything, &why)?;
    }
    if head.as_ref() == Some(&old) {
        refs::set_symbolic(
            repo,
            b"HEAD",
            &to,
            Some(&format!("Branch: renamed {} to {}", text(&from), text(&to))),
        )?;
    }
    let file = crate::files::join(&repo.common_dir, b"config");
    crate::config::change_section(
        &file,
        &[b"branch.", &old[..]].concat(),
        Some(&[b"branch.", &new[..]].concat()),
    )?;
    Ok(0)
}

/// Which commits a name must have, be part of, or not.
struct Reach {
    contains: Vec<Oid>,
    lacks: Vec<Oid>,
    merged: Option<HashSet<Oid>>,
    unmerged: Option<HashSet<Oid>>,
}

impl Reach {
    fn new(repo: &Repo, options: &Parsed) -> Res<Reach> {
        let commits = |name: &str| -> Res<Vec<Oid>> {
            let given: Vec<Vec<u8>> = options
                .options
                .iter()
                .filter(|(option, _)| option == name)
                .map(|(_, value)| value.clone().unwrap_or_else(|| option_argument(options)))
                .collect();
            given.iter().map(|value| revision::commit(repo, value)).collect()
        };
        let ancestors = |name: &str| -> Res<Option<HashSet<Oid>>> {
            let list = commits(name)?;
            if list.is_empty() { Ok(None) } else { walk::ancestors(repo, &list).map(Some) }
        };
        Ok(Reach {
            contains: commits("contains")?,
            lacks: commits("no-contains")?,
            merged: ancestors("merged")?,
            unmerged: ancestors("no-merged")?,
        })
    }

    fn fits(&self, repo: &Repo, oid: &Oid) -> Res<bool> {
        for wanted in &self.contains {
            if !walk::is_ancestor(repo, wanted, oid)? {
                return Ok(false);
            }
        }
        for unwanted in &self.lacks {
            if walk::is_ancestor(repo, unwanted, oid)? {
                return Ok(false);
            }
        }
        Ok(self.merged.as_ref().is_none_or(|set| set.contains(oid))
            && self.unmerged.as_ref().is_none_or(|set| !set.contains(oid)))
    }
}

/// `--contains COMMIT` in two words: the argument is the commit.
fn option_argument(options: &Parsed) -> Vec<u8> {
    options.args.first().cloned().unwrap_or_else(|| b"HEAD".to_vec())
}

fn list(repo: &Repo, options: &Parsed) -> Res<i32> {
    let reach = Reach::new(repo, options)?;
    let detached_value = ["contains", "no-contains", "merged", "no-merged"]
        .iter()
        .any(|name| options.has(name) && options.value(name).is_none());
    let patterns = if detached_value { options.args.get(1..).unwrap_or(&[]) } else { &options.args[..] };
    let (local, remote) =
        (!options.has("remotes") || options.has("all"), options.has("remotes") || options.has("all"));
    let head = refs::current_branch(repo)?;
    let mut rows: Vec<(bool, String, Oid, Vec<u8>)> = Vec::new();
    if local
        && head.is_none()
        && patterns.is_empty()
        && let Some(oid) = repo.head()?
    {
        let name = format!("({})", status::detached(repo)?);
        if reach.fits(repo, &oid)? {
            rows.push((true, name, oid, b"HEAD".to_vec()));
        }
    }
    for (prefix, wanted) in [(&b"refs/heads/"[..], local), (b"refs/remotes/", remote)] {
        for (full, oid) in refs::list(repo, prefix)?.into_iter().filter(|_| wanted) {
            let short = full[prefix.len()..].to_vec();
            let fits =
                patterns.is_empty() || patterns.iter().any(|one| pattern::matches(one, &short, true, false));
            if fits && reach.fits(repo, &oid)? {
                let mut name = if options.has("all") && prefix == b"refs/remotes/" {
                    format!("remotes/{}", text(&short))
                } else {
                    text(&short)
                };
                if options.value("format").is_none()
                    && let Some(refs::Value::Symbolic(target)) = refs::read(repo, &full)?
                {
                    name += &format!(" -> {}", text(refs::short(&target)));
                }
                rows.push((prefix == b"refs/heads/" && head.as_ref() == Some(&short), name, oid, full));
            }
        }
    }
    if let Some(format) = options.text("format") {
        for (_, _, oid, full) in &rows {
            out::bytes_line(&super::for_each_ref::expand(repo, &format, full, oid)?);
        }
        return Ok(0);
    }
    let width = rows.iter().map(|(_, name, ..)| name.chars().count()).max().unwrap_or(0);
    let verbose = options.options.iter().filter(|(name, _)| name == "verbose").count();
    for (is_head, name, oid, full) in &rows {
        let mark = if *is_head { '*' } else { ' ' };
        if verbose == 0 || name.contains(" -> ") {
            out::line(format_args!("{mark} {name}"));
            continue;
        }
        let subject = text(&repo.odb.commit(oid)?.subject());
        let track = tracking(repo, full, oid, verbose > 1)?;
        let pad = " ".repeat(width - name.chars().count());
        out::line(format_args!("{mark} {name}{pad} {} {track}{subject}", repo.short(oid)));
    }
    Ok(0)
}

fn tracking(repo: &Repo, full: &[u8], oid: &Oid, named: bool) -> Res<String> {
    let upstream = full.strip_prefix(b"refs/heads/").and_then(|branch| remote::upstream(repo, branch));
    let Some(upstream) = upstream else { return Ok(String::new()) };
    let counts = match refs::resolve(repo, &upstream)? {
        None => "gone".to_owned(),
        Some(theirs) => match walk::ahead_behind(repo, oid, &theirs)? {
            (0, 0) => String::new(),
            (ahead, 0) => format!("ahead {ahead}"),
            (0, behind) => format!("behind {behind}"),
            (ahead, behind) => format!("ahead {ahead}, behind {behind}"),
        },
    };
    let name = text(refs::short(&upstream));
    Ok(match (named, counts.is_empty()) {
        (true, true) => format!("[{name}] "),
        (true, false) => format!("[{name}: {counts}] "),
        (false, true) => String::new(),
        (false, false) => format!("[{counts}] "),
    })
}

const TAG: Reader = Reader {
    command: "tag",
    usage: "git tag [-a | -s | -u <key-id>] [-f] [-m <msg> | -F <file>] [-e] <tagname> [<commit> | <object>]",
    list: "l|list n? d|delete v|verify! a|annotate m|message= F|file= e|edit s|sign! u|local-user=! f|force cleanup= column?! \
           contains? no-contains? merged? no-merged? sort= points-at=! format= i|ignore-case color? create-reflog trailer=!",
    in_order: false,
};

pub fn tag(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = TAG.read(arguments)?;
    if options.has("delete") {
        let mut code = 0;
        for name in &options.args {
            let full = [b"refs/tags/", &name[..]].concat();
            match refs::resolve(repo, &full)? {
                Some(oid) => {
                    refs::delete(repo, &full, Expect::Anything)?;
                    out::line(format_args!("Deleted tag '{}' (was {})", text(name), repo.short(&oid)));
                }
                None => {
                    out::complain(format!("error: tag '{}' not found.", text(name)));
                    code = 1;
                }
            }
        }
        return Ok(code);
    }
    let filters = ["contains", "no-contains", "merged", "no-merged", "list", "n"];
    if options.args.is_empty() || filters.iter().any(|name| options.has(name)) {
        return list_tags(repo, &options);
    }
    make_tag(repo, &options)
}

fn make_tag(repo: &Repo, options: &Parsed) -> Res<i32> {
    let name = &options.args[0];
    let full = [b"refs/tags/", &name[..]].concat();
    if !refs::is_valid(&full) || name.starts_with(b"-") {
        fatal!("'{}' is not a valid tag name.", text(name));
    }
    let written = options.args.get(1).map_or(b"HEAD".as_slice(), Vec::as_slice);
    let Some(target) = revision::find(repo, written)? else {
        fatal!("Failed to resolve '{}' as a valid ref.", text(written))
    };
    let old = refs::resolve(repo, &full)?;
    if old.is_some() && !options.has("force") {
        fatal!("tag '{}' already exists", text(name));
    }
    let texts: Vec<Vec<u8>> = options.values("message").map(<[u8]>::to_vec).collect();
    let given = message::given(&texts, options.value("file"))?;
    let oid = if options.has("annotate") || given.is_some() {
        let message = match given {
            Some(message) => message::clean(&message, false),
            None => {
                let comments = format!(
                    "\nWrite a message for tag:\n  {}\nLines starting with '#' will be ignored.\n",
                    text(name)
                );
                message::edited(repo, "TAG_EDITMSG", b"", comments.as_bytes())?
            }
        };
        if message.is_empty() && texts.is_empty() {
            fatal!("no tag message?");
        }
        let kind = repo.odb.read(&target)?.kind;
        let tag = Tag { target, kind, name: name.clone(), tagger: Some(ident::committer(repo)?), message };
        repo.odb.write(Kind::Tag, &tag.write())?
    } else {
        target
    };
    refs::update(repo, &full, oid, Expect::Anything, "")?;
    if let Some(old) = old.filter(|old| *old != oid) {
        out::line(format_args!("Updated tag '{}' (was {})", text(name), repo.short(&old)));
    }
    Ok(0)
}

fn list_tags(repo: &Repo, options: &Parsed) -> Res<i32> {
    let reach = Reach::new(repo, options)?;
    let detached_value = ["contains", "no-contains", "merged", "no-merged"]
        .iter()
        .any(|name| options.has(name) && options.value(name).is_none());
    let patterns = if detached_value { options.args.get(1..).unwrap_or(&[]) } else { &options.args[..] };
    let lines =
        options.has("n").then(|| options.text("n").and_then(|n| n.parse::<usize>().ok()).unwrap_or(1));
    let mut tags = refs::list(repo, b"refs/tags/")?;
    if let Some(key) = options.text("sort").or_else(|| repo.config.text("tag.sort")) {
        super::for_each_ref::sort(repo, &mut tags, &key)?;
    }
    for (full, oid) in tags {
        let name = full[10..].to_vec();
        let fits = patterns.is_empty()
            || patterns.iter().any(|one| pattern::matches(one, &name, false, options.has("ignore-case")));
        let (peeled, kind) = repo.odb.peel(&oid)?;
        if !fits || kind == Kind::Commit && !reach.fits(repo, &peeled)? {
            continue;
        }
        if let Some(format) = options.text("format") {
            out::bytes_line(&super::for_each_ref::expand(repo, &format, &full, &oid)?);
        } else if let Some(count) = lines.filter(|count| *count > 0) {
            let message = match repo.odb.read(&oid)?.kind {
                Kind::Tag => repo.odb.tag(&oid)?.message,
                Kind::Commit => repo.odb.commit(&oid)?.message.clone(),
                _ => Vec::new(),
            };
            let message = text(&message);
            let mut rest = message.trim_end().lines().take(count);
            out::line(format_args!("{:<15} {}", text(&name), rest.next().unwrap_or("")));
            rest.for_each(|line| out::line(format_args!("    {line}")));
        } else {
            out::bytes_line(&name);
        }
    }
    Ok(0)
}
