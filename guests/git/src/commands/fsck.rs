//! `git fsck`.

use std::collections::HashSet;

use crate::fail::{Fail, Res};
use crate::hash::{self, Oid};
use crate::index::Index;
use crate::object::{Commit, Kind, SUBMODULE, Tag, read_tree};
use crate::options::Reader;
use crate::out;
use crate::reflog;
use crate::refs;
use crate::repo::Repo;

const READER: Reader = Reader {
    command: "fsck",
    usage: "git fsck [--tags] [--root] [--unreachable] [--cache] [--no-reflogs] [--[no-]full] [--strict] [--verbose] [<object>...]",
    list: "v|verbose unreachable dangling no-dangling tags root cache reflogs no-reflogs full no-full connectivity-only strict \
           lost-found! progress no-progress name-objects",
    in_order: false,
};

pub fn fsck(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let mut check = Check { repo, seen: HashSet::new(), pointed: HashSet::new(), code: 0 };
    let mut all = repo.odb.all();
    all.sort();
    all.dedup();
    for oid in &all {
        check.content(oid);
    }
    for root in roots(repo, options.state("reflogs") != Some(false))? {
        check.reach(root);
    }
    if options.state("dangling") != Some(false) || options.has("unreachable") {
        for oid in all.iter().filter(|oid| !check.seen.contains(*oid)) {
            let Ok(Some(object)) = repo.odb.find(oid) else { continue };
            if options.has("unreachable") {
                out::line(format_args!("unreachable {} {oid}", object.kind.name()));
            } else if !check.pointed.contains(oid) {
                out::line(format_args!("dangling {} {oid}", object.kind.name()));
            }
        }
    }
    Ok(check.code)
}

/// Where everything that is needed can be reached from.
fn roots(repo: &Repo, logs: bool) -> Res<Vec<Oid>> {
    let names = refs::list(repo, b"refs/")?;
    let mut roots: Vec<Oid> = names.iter().map(|(_, oid)| *oid).chain(repo.head()?).collect();
    let logged = names.iter().map(|(name, _)| name.as_slice()).chain([b"HEAD".as_slice()]);
    for name in logged.filter(|_| logs) {
        for line in reflog::read(repo, name)? {
            roots.extend([line.old, line.new].into_iter().filter(|oid| repo.odb.has(oid)));
        }
    }
    let index = Index::load(repo)?;
    roots.extend(index.entries.iter().filter(|entry| entry.mode != SUBMODULE).map(|entry| entry.oid));
    Ok(roots)
}

struct Check<'a> {
    repo: &'a Repo,
    /// What is needed.
    seen: HashSet<Oid>,
    /// What some object names, needed or not.
    pointed: HashSet<Oid>,
    code: i32,
}

impl Check<'_> {
    /// Is an object what its name says, and whole?
    fn content(&mut self, oid: &Oid) {
        let object = match self.repo.odb.read(oid) {
            Ok(object) => object,
            Err(fail) => return self.bad(oid, &why(fail)),
        };
        if hash::of_object(object.kind.name(), &object.data) != *oid {
            return self.bad(oid, "hash mismatch");
        }
        match links(object.kind, &object.data) {
            Some(links) => self.pointed.extend(links),
            None => self.bad(oid, &format!("object could not be parsed: {}", object.kind.name())),
        }
    }

    fn bad(&mut self, oid: &Oid, why: &str) {
        self.code |= 1;
        out::complain(format!("error: {oid}: {why}"));
    }

    fn reach(&mut self, root: Oid) {
        let mut left = vec![root];
        while let Some(oid) = left.pop() {
            if !self.seen.insert(oid) {
                continue;
            }
            match self.repo.odb.find(&oid) {
                Ok(Some(object)) => left.extend(links(object.kind, &object.data).unwrap_or_default()),
                _ => {
                    self.code |= 2;
                    out::line(format_args!("missing object {oid}"));
                }
            }
        }
    }
}

fn why(fail: Fail) -> String {
    match fail {
        Fail::Fatal(why) | Fail::Error(why) | Fail::Usage(why) => why,
        Fail::Code(_) => "object corrupt or missing".to_owned(),
    }
}

/// The objects that one names; nothing if it cannot be understood.
pub fn links(kind: Kind, data: &[u8]) -> Option<Vec<Oid>> {
    Some(match kind {
        Kind::Blob => Vec::new(),
        Kind::Tree => {
            let entries = read_tree(data).ok()?;
            entries.iter().filter(|entry| entry.mode != SUBMODULE).map(|entry| entry.oid).collect()
        }
        Kind::Commit => {
            let commit = Commit::parse(data)?;
            [&[commit.tree][..], &commit.parents].concat()
        }
        Kind::Tag => vec![Tag::parse(data)?.target],
    })
}
