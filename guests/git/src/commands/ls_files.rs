//! `git ls-files`.

use crate::fail::{Res, error};
use crate::files::text;
use crate::ignore::{Ignore, List};
use crate::index::{Entry, Index};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::repo::Repo;
use crate::worktree::{self, State, Untracked};

const READER: Reader = Reader {
    command: "ls-files",
    usage: "git ls-files [<options>] [<file>...]",
    list: "z t v! c|cached d|deleted m|modified o|others i|ignored s|stage u|unmerged k|killed! directory exclude-standard \
           x|exclude= X|exclude-from= error-unmatch full-name abbrev? eol! deduplicate no-empty-directory format=! f! debug! \
           resolve-undo! recurse-submodules! with-tree=! sparse! exclude-per-directory=!",
    in_order: false,
};

pub fn ls_files(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let mut written = options.args.clone();
    if written.is_empty() && !repo.prefix.is_empty() {
        written.push(b".".to_vec());
    }
    let paths = Pathspec::new(repo, &written)?;
    let index = Index::load(repo)?;
    if options.has("error-unmatch") {
        let unmatched = paths.unmatched(|matches| index.entries.iter().any(|entry| matches(&entry.path)));
        if let Some(written) = unmatched {
            error!(
                "pathspec '{}' did not match any file(s) known to git\nDid you forget to 'git add'?",
                text(&written)
            );
        }
    }
    let list = Listing { repo, options: &options };
    if options.has("others") {
        list.others(&index, &paths)?;
    }
    let stages = options.has("stage") || options.has("unmerged");
    let others = ["deleted", "modified", "others"].iter().any(|name| options.has(name));
    let cached = options.has("cached") || stages || !others;
    let ignore = Ignore::new(repo);
    for entry in index.entries.iter().filter(|entry| paths.matches(&entry.path)) {
        let hidden =
            options.has("ignored") && !options.has("others") && !ignore.is_ignored(&entry.path, false);
        if cached && !hidden && (entry.stage > 0 || !options.has("unmerged")) {
            list.entry(if entry.stage > 0 { "M " } else { "H " }, entry, stages);
        }
        if options.has("deleted") || options.has("modified") {
            match worktree::state(repo, &index, entry)? {
                State::Gone => {
                    if options.has("deleted") {
                        list.entry("R ", entry, stages);
                    }
                    if options.has("modified") {
                        list.entry("C ", entry, stages);
                    }
                }
                State::Changed(_) if options.has("modified") => list.entry("C ", entry, stages),
                _ => {}
            }
        }
    }
    Ok(0)
}

struct Listing<'a> {
    repo: &'a Repo,
    options: &'a Parsed,
}

impl Listing<'_> {
    fn name(&self, path: &[u8]) -> Vec<u8> {
        let seen = if self.options.has("full-name") {
            path.to_vec()
        } else {
            crate::status::seen_from(self.repo, path)
        };
        let zero = self.options.has("z");
        let name = if zero { seen } else { quote::path(&seen) };
        [&name[..], if zero { b"\0" } else { b"\n" }].concat()
    }

    fn entry(&self, tag: &str, entry: &Entry, stages: bool) {
        if self.options.has("t") {
            out::put(tag);
        }
        if stages {
            let oid = if self.options.has("abbrev") { self.repo.short(&entry.oid) } else { entry.oid.hex() };
            out::put(format!("{:06o} {oid} {}\t", entry.mode, entry.stage));
        }
        out::put(self.name(&entry.path));
    }

    fn others(&self, index: &Index, paths: &Pathspec) -> Res<()> {
        let mut ignore = Ignore::new(self.repo);
        let own: Vec<&[u8]> = self.options.values("exclude").collect();
        ignore.add(List::parse(&own.join(&b'\n'), b"command line"));
        for file in self.options.values("exclude-from") {
            ignore.add(List::parse(&crate::files::read(file).unwrap_or_default(), file));
        }
        let how = if self.options.has("directory") { Untracked::Normal } else { Untracked::All };
        let found = worktree::untracked(self.repo, index, paths, how, &ignore)?;
        let rules = self.options.has("exclude-standard")
            || !own.is_empty()
            || self.options.value("exclude-from").is_some();
        let mut list = match (self.options.has("ignored"), rules) {
            (true, _) => found.ignored,
            (false, true) => found.untracked,
            (false, false) => [found.untracked, found.ignored].concat(),
        };
        list.sort();
        for path in list {
            if self.options.has("t") {
                out::put("? ");
            }
            out::put(self.name(&path));
        }
        Ok(())
    }
}
