//! `git grep`.

use wardian_regex::{Regex, Syntax};

use crate::fail::{Res, fatal};
use crate::files::{self, text};
use crate::grep::regex;
use crate::index::{Index, flatten};
use crate::lines;
use crate::object::SUBMODULE;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::repo::Repo;
use crate::revision;
use crate::status::seen_from;

const READER: Reader = Reader {
    command: "grep",
    usage: "git grep [<options>] [-e] <pattern> [<rev>...] [[--] <path>...]",
    list: "cached no-index! untracked! v|invert-match i|ignore-case w|word-regexp a|text I r|recursive max-depth=! E|extended-regexp \
           G|basic-regexp F|fixed-strings P|perl-regexp! n|line-number column! h H full-name l|files-with-matches name-only \
           L|files-without-match z|null! o|only-matching! c|count color?! no-color break! heading! C|context=! B=! A=! W! e= f=! \
           q|quiet and! or! not! all-match! threads=",
    in_order: false,
};

pub fn grep(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let (before, after) = options.sides();
    let mut patterns: Vec<Vec<u8>> = options.values("e").map(<[u8]>::to_vec).collect();
    let mut words = before.to_vec();
    if patterns.is_empty() {
        if words.is_empty() {
            fatal!("no pattern given");
        }
        patterns.push(words.remove(0));
    }
    let syntax = match () {
        () if options.has("fixed-strings") => Syntax::Fixed,
        () if options.has("extended-regexp") => Syntax::Extended,
        () => Syntax::Basic,
    };
    let compile = |pattern: &Vec<u8>| regex(pattern, syntax, options.has("ignore-case"));
    let regexes: Vec<Regex> = patterns.iter().map(compile).collect::<Res<_>>()?;
    let mut revisions = Vec::new();
    while let Some(first) = words.first() {
        let Some(oid) = revision::find(repo, first)? else { break };
        revisions.push((words.remove(0), oid));
    }
    words.extend(after.unwrap_or(&[]).iter().cloned());
    if words.is_empty() && !repo.prefix.is_empty() {
        words.push(b".".to_vec());
    }
    let paths = Pathspec::new(repo, &words)?;
    let mut search = Search { repo, regexes, options: &options, found: false };
    for (name, oid) in &revisions {
        let prefix = [&name[..], b":"].concat();
        for (path, (mode, blob)) in flatten(&repo.odb, &revision::tree_of(repo, oid)?)? {
            if mode != SUBMODULE && paths.matches(&path) {
                search.file(&prefix, &path, &repo.odb.blob(&blob)?);
            }
        }
    }
    if revisions.is_empty() {
        let mut last: &[u8] = b"";
        let index = Index::load(repo)?;
        for entry in
            index.entries.iter().filter(|entry| entry.mode != SUBMODULE && paths.matches(&entry.path))
        {
            if last == entry.path {
                continue;
            }
            last = &entry.path;
            let name = repo.in_tree(&entry.path);
            let is_file = files::lstat(&name).is_some_and(|stat| stat.is_file());
            let content = match options.has("cached") {
                true => repo.odb.blob(&entry.oid)?,
                false if is_file => files::read(&name).unwrap_or_default(),
                false => continue,
            };
            search.file(b"", &entry.path, &content);
        }
    }
    Ok(i32::from(!search.found))
}

struct Search<'a> {
    repo: &'a Repo,
    regexes: Vec<Regex>,
    options: &'a Parsed,
    found: bool,
}

impl Search<'_> {
    fn fits(&self, line: &[u8]) -> bool {
        let found = self.regexes.iter().any(|regex| match self.options.has("word-regexp") {
            false => regex.is_match(line),
            true => is_word_in(regex, line),
        });
        found != self.options.has("invert-match")
    }

    fn file(&mut self, prefix: &[u8], path: &[u8], content: &[u8]) {
        let options = self.options;
        let binary = !options.has("text") && lines::is_binary(content);
        if binary && options.has("I") {
            return;
        }
        let path = if options.has("full-name") { path.to_vec() } else { seen_from(self.repo, path) };
        let name = [prefix, &quote::path(&path)].concat();
        let mut count = 0;
        let listing = options.has("files-with-matches")
            || options.has("name-only")
            || options.has("files-without-match");
        let quiet = options.has("quiet") || listing || options.has("count");
        for (at, line) in lines::split(content).iter().enumerate() {
            let line = line.strip_suffix(b"\n").unwrap_or(line);
            if !self.fits(line) {
                continue;
            }
            count += 1;
            if quiet && !options.has("count") {
                break;
            }
            if quiet {
                continue;
            }
            if binary {
                out::bytes_line(&[b"Binary file ", &name[..], b" matches"].concat());
                break;
            }
            let mut head = if options.has("h") { Vec::new() } else { [&name[..], b":"].concat() };
            if options.has("line-number") {
                head.extend_from_slice(format!("{}:", at + 1).as_bytes());
            }
            out::bytes_line(&[&head[..], line].concat());
        }
        let without = options.has("files-without-match");
        let hit = (count > 0) != without;
        self.found |= hit;
        if listing && hit && !options.has("quiet") {
            out::bytes_line(&name);
        } else if options.has("count") && count > 0 && !options.has("quiet") {
            let head = if options.has("h") { String::new() } else { format!("{}:", text(&name)) };
            out::line(format_args!("{head}{count}"));
        }
    }
}

/// Whether a match has no letter, digit or underscore beside it.
fn is_word_in(regex: &Regex, line: &[u8]) -> bool {
    let is_letter =
        |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut from = 0;
    while let Some((start, end)) = regex.find_at(line, from) {
        let before = start.checked_sub(1).and_then(|at| line.get(at));
        if !is_letter(before) && !is_letter(line.get(end)) && end > start {
            return true;
        }
        from = start + 1;
        if from > line.len() {
            break;
        }
    }
    false
}
