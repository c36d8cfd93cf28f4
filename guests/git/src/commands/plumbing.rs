//! Commands for scripts: objects and trees as they are.

use crate::fail::{Fail, Res, fatal, system};
use crate::files::{self, text};
use crate::hash::{self, Oid};
use crate::ident;
use crate::index::{DEEPEST, Index};
use crate::message;
use crate::object::{Commit, Entry, Kind};
use crate::options::{Parsed, Reader};
use crate::out;
use crate::quote;
use crate::repo::{Global, Repo};
use crate::revision;

const CAT_FILE: Reader = Reader {
    command: "cat-file",
    usage: "git cat-file <type> <object>",
    list: "t s e p batch? batch-check? batch-all-objects textconv! filters! follow-symlinks! buffer unordered allow-unknown-type",
    in_order: false,
};

pub fn cat_file(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = CAT_FILE.read(arguments)?;
    if options.has("batch") || options.has("batch-check") {
        return batch(repo, &options);
    }
    let Some(name) = options.args.last() else { return Err(CAT_FILE.bad("fatal: <object> required")) };
    let Some(oid) = revision::find(repo, name)? else { fatal!("Not a valid object name {}", text(name)) };
    if options.has("e") {
        return Ok(i32::from(!repo.odb.has(&oid)));
    }
    let Some(object) = repo.odb.find(&oid)? else { fatal!("git cat-file: could not get object info") };
    match () {
        () if options.has("t") => out::line(object.kind.name()),
        () if options.has("s") => out::line(object.data.len()),
        () if options.has("p") => match object.kind {
            Kind::Tree => list_tree(repo, &oid)?,
            _ => out::put(&object.data),
        },
        () if options.args.len() == 2 => {
            let kind = &options.args[0];
            let Some(kind) = Kind::named(kind) else { fatal!("invalid object type \"{}\"", text(kind)) };
            let found = match kind {
                Kind::Tree => repo.odb.read(&revision::tree_of(repo, &oid)?)?,
                Kind::Tag => object,
                _ => repo.odb.read(&repo.odb.peel(&oid)?.0)?,
            };
            if found.kind != kind {
                fatal!("git cat-file {}: bad file", text(name));
            }
            out::put(&found.data);
        }
        () => return Err(CAT_FILE.bad("fatal: only two arguments allowed in <type> <object> mode")),
    }
    Ok(0)
}

fn batch(repo: &Repo, options: &Parsed) -> Res<i32> {
    let whole = options.has("batch");
    let format = options.text("batch").or_else(|| options.text("batch-check"));
    let format = format.unwrap_or_else(|| "%(objectname) %(objecttype) %(objectsize)".to_owned());
    let input = match options.has("batch-all-objects") {
        true => repo.odb.all().iter().map(|oid| oid.hex() + "\n").collect::<String>().into_bytes(),
        false => toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()))?,
    };
    for line in input.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
        let (name, rest) = match format.contains("%(rest)") {
            true => {
                let at = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
                (&line[..at], text(line[at..].trim_ascii_start()))
            }
            false => (line, String::new()),
        };
        let found = match revision::find(repo, name)? {
            Some(oid) => repo.odb.find(&oid)?.map(|object| (oid, object)),
            None => None,
        };
        let Some((oid, object)) = found else {
            out::bytes_line(&[name, b" missing"].concat());
            continue;
        };
        let shown = format
            .replace("%(objectname)", &oid.hex())
            .replace("%(objecttype)", object.kind.name())
            .replace("%(objectsize)", &object.data.len().to_string())
            .replace("%(rest)", &rest);
        out::line(shown);
        if whole {
            out::bytes_line(&object.data);
        }
    }
    Ok(0)
}

fn list_tree(repo: &Repo, oid: &Oid) -> Res<()> {
    for entry in repo.odb.tree(oid)? {
        let kind = kind_of(&entry);
        out::put(
            [
                format!("{:06o} {kind} {}\t", entry.mode, entry.oid).as_bytes(),
                &quote::path(&entry.name),
                b"\n",
            ]
            .concat(),
        );
    }
    Ok(())
}

fn kind_of(entry: &Entry) -> &'static str {
    match entry.mode & 0o170_000 {
        0o040_000 => "tree",
        0o160_000 => "commit",
        _ => "blob",
    }
}

const HASH_OBJECT: Reader = Reader {
    command: "hash-object",
    usage: "git hash-object [-t <type>] [-w] [--path=<file> | --no-filters] [--stdin [--literally]] [--] <file>...",
    list: "t= w stdin stdin-paths literally no-filters path=",
    in_order: false,
};

pub fn hash_object(global: &Global, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = HASH_OBJECT.read(arguments)?;
    let kind = options.text("t").unwrap_or_else(|| "blob".to_owned());
    let Some(kind) = Kind::named(kind.as_bytes()) else { fatal!("invalid object type \"{kind}\"") };
    let repo = if options.has("w") { Repo::find(global)? } else { None };
    if options.has("w") && repo.is_none() {
        fatal!("not a git repository (or any of the parent directories): .git");
    }
    let stdin = || toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()));
    let mut names = options.args.clone();
    if options.has("stdin-paths") {
        names.extend(
            stdin()?.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec),
        );
    }
    let mut contents = Vec::new();
    if options.has("stdin") {
        contents.push(stdin()?);
    }
    for name in &names {
        let content =
            files::read(name).map_err(system(format_args!("could not open '{}' for reading", text(name))))?;
        contents.push(content);
    }
    for content in contents {
        let valid = match kind {
            Kind::Blob => true,
            Kind::Tree => crate::object::read_tree(&content).is_ok(),
            Kind::Commit => Commit::parse(&content).is_some(),
            Kind::Tag => crate::object::Tag::parse(&content).is_some(),
        };
        if !valid && !options.has("literally") {
            fatal!("corrupt {}", kind.name());
        }
        let oid = match &repo {
            Some(repo) => repo.odb.write(kind, &content)?,
            None => hash::of_object(kind.name(), &content),
        };
        out::line(oid);
    }
    Ok(0)
}

const LS_TREE: Reader = Reader {
    command: "ls-tree",
    usage: "git ls-tree [<options>] <tree-ish> [<path>...]",
    list: "d r t l|long z name-only name-status object-only full-name full-tree abbrev? format=!",
    in_order: false,
};

pub fn ls_tree(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = LS_TREE.read(arguments)?;
    let Some((name, paths)) = options.args.split_first() else { return Err(LS_TREE.bad("")) };
    let Some(oid) = revision::find(repo, name)? else { fatal!("Not a valid object name {}", text(name)) };
    let tree = revision::tree_of(repo, &oid)?;
    let full = options.has("full-tree");
    let slashed: Vec<bool> = paths.iter().map(|path| path.ends_with(b"/")).collect();
    let mut tops = Vec::new();
    for path in paths {
        tops.push(if full { path.clone() } else { crate::pathspec::from_top(repo, path)? });
    }
    if tops.is_empty() && !full && !repo.prefix.is_empty() {
        tops.push(repo.prefix[..repo.prefix.len() - 1].to_vec());
    }
    let slashed = if slashed.is_empty() { vec![true; tops.len()] } else { slashed };
    let list = List { repo, options: &options, tops, slashed };
    list.show(&tree, b"", 0)?;
    Ok(0)
}

struct List<'a> {
    repo: &'a Repo,
    options: &'a Parsed,
    tops: Vec<Vec<u8>>,
    slashed: Vec<bool>,
}

impl List<'_> {
    fn show(&self, tree: &Oid, prefix: &[u8], depth: usize) -> Res<()> {
        if depth > DEEPEST {
            fatal!("tree is nested too deeply");
        }
        for entry in self.repo.odb.tree(tree)? {
            let path = [prefix, &entry.name].concat();
            let below = [&path[..], b"/"].concat();
            let named = self.tops.is_empty()
                || self.tops.iter().any(|top| {
                    top.is_empty() || *top == path || path.starts_with(&[&top[..], b"/"].concat())
                });
            let leads = self.tops.iter().any(|top| top.starts_with(&below));
            let opened = self.tops.iter().zip(&self.slashed).any(|(top, slashed)| *slashed && *top == path);
            if !named && !leads {
                continue;
            }
            let descend = entry.is_tree() && (self.options.has("r") && named || leads || opened);
            let show = match entry.is_tree() {
                true => {
                    named && (!descend || self.options.has("t"))
                        || descend && self.options.has("d") && named && !opened
                }
                false => named && !self.options.has("d"),
            };
            if show {
                self.line(&entry, &path)?;
            }
            let itself = self.options.has("d") && !self.options.has("r") && named && !opened;
            if descend && !itself {
                self.show(&entry.oid, &below, depth + 1)?;
            }
        }
        Ok(())
    }

    fn line(&self, entry: &Entry, path: &[u8]) -> Res<()> {
        let (zero, options) = (self.options.has("z"), self.options);
        let from_here = !options.has("full-name") && !options.has("full-tree");
        let seen = if from_here { crate::status::seen_from(self.repo, path) } else { path.to_vec() };
        let name = if zero { seen } else { quote::path(&seen) };
        let end: &[u8] = if zero { b"\0" } else { b"\n" };
        let oid = match options.state("abbrev") {
            Some(true) => self
                .repo
                .odb
                .abbreviate(&entry.oid, options.number("abbrev")?.and_then(|n| usize::try_from(n).ok())),
            _ => entry.oid.hex(),
        };
        if options.has("name-only") || options.has("name-status") {
            out::put([&name[..], end].concat());
        } else if options.has("object-only") {
            out::put([oid.as_bytes(), end].concat());
        } else {
            let size = match (options.has("long"), entry.is_tree() || entry.mode == crate::object::SUBMODULE)
            {
                (false, _) => String::new(),
                (true, true) => format!(" {:>7}", "-"),
                (true, false) => format!(" {:>7}", self.repo.odb.read(&entry.oid)?.data.len()),
            };
            out::put(
                [format!("{:06o} {} {oid}{size}\t", entry.mode, kind_of(entry)).as_bytes(), &name, end]
                    .concat(),
            );
        }
        Ok(())
    }
}

pub fn write_tree(repo: &Repo, _: &[Vec<u8>]) -> Res<i32> {
    out::line(Index::load(repo)?.write_tree(&repo.odb)?);
    Ok(0)
}

const COMMIT_TREE: Reader = Reader {
    command: "commit-tree",
    usage: "git commit-tree <tree> [(-p <parent>)...]",
    list: "p= m= F= S|gpg-sign?! no-gpg-sign",
    in_order: false,
};

pub fn commit_tree(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = COMMIT_TREE.read(arguments)?;
    let [tree] = options.args.as_slice() else { fatal!("must give exactly one tree") };
    let Some(tree) = revision::find(repo, tree)? else { fatal!("not a valid object name {}", text(tree)) };
    let mut parents = Vec::new();
    for name in options.values("p") {
        let parent = revision::commit(repo, name)?;
        if !parents.contains(&parent) {
            parents.push(parent);
        }
    }
    let texts: Vec<Vec<u8>> = options.values("m").map(<[u8]>::to_vec).collect();
    let message = match message::given(&texts, options.value("F"))? {
        Some(message) => message,
        None => toolkit::files::read_fd(0).map_err(|error| Fail::Fatal(error.message().to_owned()))?,
    };
    let (author, committer) = (ident::author(repo)?, ident::committer(repo)?);
    let commit = Commit {
        tree: revision::tree_of(repo, &tree)?,
        parents,
        author,
        committer,
        extra: Vec::new(),
        message,
    };
    out::line(repo.odb.write(Kind::Commit, &commit.write())?);
    Ok(0)
}
