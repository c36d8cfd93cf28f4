//! `git shortlog` and `git describe`.

use std::collections::BTreeMap;

use crate::change;
use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::index::Index;
use crate::object::Kind;
use crate::options::Reader;
use crate::out;
use crate::pathspec::Pathspec;
use crate::refs;
use crate::repo::Repo;
use crate::revision;
use crate::walk::Walk;

use super::log;

const SHORTLOG: Reader = Reader {
    command: "shortlog",
    usage: "git shortlog [<options>] [<revision-range>] [[--] <path>...]",
    list: "c|committer n|numbered s|summary e|email w?! group=! all no-merges merges since= until= author= first-parent \
           branches tags remotes after= before= grep= committer-name=! max-count= NUM",
    in_order: false,
};

pub fn shortlog(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = SHORTLOG.read(arguments)?;
    let mut people: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let named = options.has("all") || !options.args.is_empty();
    if !named && !wardian_abi::isatty(0) {
        let input = toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()))?;
        from_log(&text(&input), options.has("email"), &mut people);
    } else {
        let mut walk = Walk::new(repo);
        let written = log::start(repo, &mut walk, &options)?;
        let paths = Pathspec::new(repo, &written)?;
        for oid in log::chosen(repo, &mut walk, &options, &paths)? {
            let commit = repo.odb.commit(&oid)?;
            let person = if options.has("committer") { &commit.committer } else { &commit.author };
            let mut name = text(&person.name);
            if options.has("email") {
                name += &format!(" <{}>", text(&person.email));
            }
            people.entry(name).or_default().push(text(&commit.subject()));
        }
    }
    let mut list: Vec<(String, Vec<String>)> = people.into_iter().collect();
    if options.has("numbered") {
        list.sort_by_key(|(_, subjects)| std::cmp::Reverse(subjects.len()));
    }
    for (name, subjects) in list {
        if options.has("summary") {
            out::line(format_args!("{:6}\t{name}", subjects.len()));
            continue;
        }
        out::line(format_args!("{name} ({}):", subjects.len()));
        for subject in subjects.iter().rev() {
            let words = subject.strip_prefix("[PATCH] ").unwrap_or(subject);
            out::line(format_args!("      {words}"));
        }
        out::line("");
    }
    Ok(0)
}

/// Reads what `git log` writes.
fn from_log(log: &str, email: bool, people: &mut BTreeMap<String, Vec<String>>) {
    let mut author: Option<String> = None;
    for line in log.lines() {
        if let Some(person) = line.strip_prefix("Author: ") {
            let name = person.split(" <").next().unwrap_or(person);
            author = Some(if email { person.to_owned() } else { name.to_owned() });
        } else if let Some(subject) = line.strip_prefix("    ")
            && !subject.trim().is_empty()
            && let Some(author) = author.take()
        {
            people.entry(author).or_default().push(subject.to_owned());
        }
    }
}

const DESCRIBE: Reader = Reader {
    command: "describe",
    usage: "git describe [--all] [--tags] [--contains] [--abbrev=<n>] [<commit-ish>...]",
    list: "contains! debug! all tags long first-parent! abbrev= exact-match candidates= match=! exclude=! always dirty? broken?!",
    in_order: false,
};

pub fn describe(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = DESCRIBE.read(arguments)?;
    let mut names = options.args.clone();
    if names.is_empty() {
        names.push(b"HEAD".to_vec());
    }
    let mut end = String::new();
    if options.has("dirty") {
        let index = Index::load(repo)?;
        if !change::tree_and_work(repo, &repo.head_tree()?, &index, &Pathspec::default())?.is_empty() {
            end = options.text("dirty").unwrap_or_else(|| "-dirty".to_owned());
        }
    }
    let tags = tags(repo, options.has("all"))?;
    let length = options.number("abbrev")?.and_then(|length| usize::try_from(length).ok());
    for written in &names {
        let Some(found) = revision::find(repo, written)? else {
            fatal!("Not a valid object name {}", text(written))
        };
        let oid = repo.odb.peel(&found)?.0;
        let short = match length {
            Some(length) => repo.odb.abbreviate(&oid, Some(length.max(4))),
            None => repo.short(&oid),
        };
        let useful = |tag: &&Tag| tag.annotated || options.has("tags") || options.has("all");
        let mut best: Option<(usize, &Tag)> = None;
        for tag in tags.iter().filter(useful) {
            if tag.oid != oid && options.has("exact-match")
                || !crate::walk::is_ancestor(repo, &tag.oid, &oid)?
            {
                continue;
            }
            let distance = crate::walk::ahead_behind(repo, &oid, &tag.oid)?.0;
            let better = best.is_none_or(|(least, other)| {
                (distance, !tag.annotated, std::cmp::Reverse(tag.time))
                    < (least, !other.annotated, std::cmp::Reverse(other.time))
            });
            if better {
                best = Some((distance, tag));
            }
        }
        let line = match best {
            Some((0, tag)) if !options.has("long") => tag.name.clone(),
            Some((_, tag)) if length == Some(0) => tag.name.clone(),
            Some((distance, tag)) => format!("{}-{distance}-g{short}", tag.name),
            None if options.has("always") => short,
            None if options.has("exact-match") => fatal!("no tag exactly matches '{oid}'"),
            None if tags.is_empty() => {
                fatal!("No names found, cannot describe anything.")
            }
            None if !options.has("tags") && tags.iter().any(|tag| !tag.annotated) => fatal!(
                "No annotated tags can describe '{oid}'.\nHowever, there were unannotated tags: try --tags."
            ),
            None => fatal!("No tags can describe '{oid}'.\nTry --always, or create some tags."),
        };
        out::line(format_args!("{line}{end}"));
    }
    Ok(0)
}

struct Tag {
    name: String,
    oid: Oid,
    annotated: bool,
    time: i64,
}

fn tags(repo: &Repo, all: bool) -> Res<Vec<Tag>> {
    let mut tags = Vec::new();
    for (name, oid) in refs::list(repo, if all { b"refs/" } else { b"refs/tags/" })? {
        let (target, kind) = repo.odb.peel(&oid)?;
        if kind != Kind::Commit {
            continue;
        }
        let annotated = target != oid;
        let time = match annotated {
            true => repo.odb.tag(&oid)?.tagger.map_or(0, |tagger| tagger.time),
            false => 0,
        };
        let full = text(&name);
        let prefix = if all { "refs/" } else { "refs/tags/" };
        let name = full.strip_prefix(prefix).unwrap_or(&full).to_owned();
        tags.push(Tag { name, oid: target, annotated, time });
    }
    Ok(tags)
}
