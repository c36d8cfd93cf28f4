//! `git blame`.

use std::collections::BTreeMap;

use crate::change;
use crate::date::{self, Style};
use crate::fail::{Res, fatal};
use crate::files::{self, text};
use crate::hash::Oid;
use crate::lines;
use crate::object::Person;
use crate::options::{Parsed, Reader};
use crate::out;
use crate::pathspec;
use crate::rename;
use crate::repo::Repo;
use crate::revision;

const READER: Reader = Reader {
    command: "blame",
    usage: "git blame [<options>] [<rev-opts>] [<rev>] [--] <file>",
    list: "incremental! b root show-stats! progress no-progress score-debug! f|show-name n|show-number! p|porcelain! line-porcelain! \
           c! t! l s e|show-email w ignore-rev=! ignore-revs-file=! color-lines! color-by-age! S=! contents=! C?! M?! L= abbrev= \
           date=",
    in_order: false,
};

/// Lines of one version of the file: where they are there, and where in the result.
type Places = Vec<(usize, usize)>;

pub fn blame(repo: &Repo, arguments: &[Vec<u8>]) -> Res<i32> {
    let options = READER.read(arguments)?;
    let (before, after) = options.sides();
    let words: Vec<Vec<u8>> = before.iter().chain(after.unwrap_or(&[])).cloned().collect();
    let (start, written) = match words.as_slice() {
        [path] => (None, path),
        [first, path] if revision::find(repo, first)?.is_some() => (Some(first.clone()), path),
        [path, last] if revision::find(repo, last)?.is_some() => (Some(last.clone()), path),
        _ => return Err(READER.bad("")),
    };
    let path = pathspec::from_top(repo, written)?;
    let from = match &start {
        Some(name) => revision::commit(repo, name)?,
        None => revision::commit(repo, b"HEAD")?,
    };
    let committed = match revision::entry_at(repo, &repo.odb.commit(&from)?.tree, &path)? {
        Some((_, oid)) => repo.odb.blob(&oid)?,
        None if start.is_some() => {
            fatal!("no such path {} in {}", text(&path), text(&start.unwrap_or_default()))
        }
        None => fatal!("no such path '{}' in HEAD", text(&path)),
    };
    let shown = match start {
        Some(_) => committed.clone(),
        None => match files::read(&repo.in_tree(&path)) {
            Ok(content) => content,
            Err(_) => fatal!("Cannot lstat '{}': No such file or directory", text(&path)),
        },
    };
    let (old, new) = (lines::split(&committed), lines::split(&shown));
    let mut search = Search { repo, found: vec![None; new.len()], same_space: options.has("w") };
    search.run(from, path.clone(), unchanged(&old, &new, options.has("w")))?;
    let range = range(&options, new.len(), &path)?;
    write(repo, &search.found, &new, range, &options, &path)
}

/// The lines that both have: their places in the old and the new one.
fn unchanged(old: &[&[u8]], new: &[&[u8]], ignore_space: bool) -> Places {
    let space = if ignore_space { lines::Space::None } else { lines::Space::All };
    let mut places = Vec::new();
    let (mut a, mut b) = (0, 0);
    for hunk in lines::hunks(old, new, space) {
        while a < hunk.old.start {
            places.push((a, b));
            (a, b) = (a + 1, b + 1);
        }
        (a, b) = (hunk.old.end, hunk.new.end);
    }
    while a < old.len() && b < new.len() {
        places.push((a, b));
        (a, b) = (a + 1, b + 1);
    }
    places
}

struct Search<'a> {
    repo: &'a Repo,
    /// For each line the commit that brought it, and the file's name there.
    found: Vec<Option<(Oid, Vec<u8>)>>,
    same_space: bool,
}

impl Search<'_> {
    /// Hands lines on to parents that have them, the newest commits first.
    fn run(&mut self, from: Oid, path: Vec<u8>, places: Places) -> Res<()> {
        let mut left: BTreeMap<(i64, Oid, Vec<u8>), Places> = BTreeMap::new();
        left.insert((self.repo.odb.commit(&from)?.committer.time, from, path), places);
        while let Some(((_, oid, path), mut places)) = left.pop_last() {
            let commit = self.repo.odb.commit(&oid)?;
            let Some((_, blob)) = revision::entry_at(self.repo, &commit.tree, &path)? else { continue };
            for parent in &commit.parents {
                if places.is_empty() {
                    break;
                }
                let before = self.repo.odb.commit(parent)?;
                let Some(old_path) = self.name_in(&before.tree, &commit.tree, &path)? else { continue };
                let Some((_, old_blob)) = revision::entry_at(self.repo, &before.tree, &old_path)? else {
                    continue;
                };
                let passed: Places = if old_blob == blob {
                    std::mem::take(&mut places)
                } else {
                    let (old, new) = (self.repo.odb.blob(&old_blob)?, self.repo.odb.blob(&blob)?);
                    let (old, new) = (lines::split(&old), lines::split(&new));
                    let same: BTreeMap<usize, usize> = unchanged(&old, &new, self.same_space)
                        .into_iter()
                        .map(|(old, new)| (new, old))
                        .collect();
                    let (passed, kept): (Places, Places) =
                        places.iter().partition(|(at, _)| same.contains_key(at));
                    places = kept;
                    passed.into_iter().filter_map(|(at, line)| Some((*same.get(&at)?, line))).collect()
                };
                if !passed.is_empty() {
                    left.entry((before.committer.time, *parent, old_path)).or_default().extend(passed);
                }
            }
            for (_, line) in places {
                self.found[line] = Some((oid, path.clone()));
            }
        }
        Ok(())
    }

    /// What a file was called in a parent.
    fn name_in(&self, old: &Oid, new: &Oid, path: &[u8]) -> Res<Option<Vec<u8>>> {
        if revision::entry_at(self.repo, old, path)?.is_some() {
            return Ok(Some(path.to_vec()));
        }
        let changes = change::trees(self.repo, Some(old), Some(new), &Default::default())?;
        let changes = rename::detect(self.repo, changes, 50, false)?;
        let renamed = changes.into_iter().find(|change| change.status == b'R' && change.new.path == path);
        Ok(renamed.map(|change| change.old.path))
    }
}

/// The lines asked for by `-L FROM,TO`.
fn range(options: &Parsed, count: usize, path: &[u8]) -> Res<std::ops::Range<usize>> {
    let Some(written) = options.text("L") else { return Ok(0..count) };
    let (from, to) = written.split_once(',').unwrap_or((&written, ""));
    let Ok(first) = (if from.is_empty() { Ok(1) } else { from.parse::<usize>() }) else {
        fatal!("git blame: '-L {written}' is not supported here: only numbers are");
    };
    let last = match to.strip_prefix('+') {
        Some(more) => more.parse::<usize>().map(|more| first + more - 1),
        None if to.is_empty() => Ok(count),
        None => to.parse::<usize>(),
    };
    let Ok(last) = last else { fatal!("git blame: '-L {written}' is not supported here: only numbers are") };
    if first > count || first == 0 {
        fatal!("file {} has only {count} line{}", text(path), if count == 1 { "" } else { "s" });
    }
    Ok(first - 1..last.clamp(first, count))
}

fn write(
    repo: &Repo,
    found: &[Option<(Oid, Vec<u8>)>],
    lines: &[&[u8]],
    range: std::ops::Range<usize>,
    options: &Parsed,
    path: &[u8],
) -> Res<i32> {
    let style = match options.text("date") {
        None => Style::Iso,
        Some(name) => match Style::named(&name) {
            Some(style) => style,
            None => fatal!("unknown date format {name}"),
        },
    };
    let now = date::now();
    let nobody = Person {
        name: b"Not Committed Yet".to_vec(),
        email: b"not.committed.yet".to_vec(),
        time: now.0,
        zone: now.1,
    };
    let mut rows = Vec::new();
    for at in range.clone() {
        let (oid, person, name, root) = match &found[at] {
            Some((oid, name)) => {
                let commit = repo.odb.commit(oid)?;
                (*oid, commit.author.clone(), name.clone(), commit.parents.is_empty() && !options.has("root"))
            }
            None => (Oid::NULL, nobody.clone(), path.to_vec(), false),
        };
        let who =
            if options.has("show-email") { format!("<{}>", text(&person.email)) } else { text(&person.name) };
        rows.push((oid, person, who, name, root, at));
    }
    let width = rows.iter().map(|row| row.2.chars().count()).max().unwrap_or(0);
    let names = options.has("show-name") || rows.iter().any(|row| row.3 != path);
    let name_width = rows.iter().map(|row| row.3.len()).max().unwrap_or(0);
    let digits = range.end.to_string().len();
    let length = options.number("abbrev")?.and_then(|length| usize::try_from(length).ok()).unwrap_or(7) + 1;
    for (oid, person, who, name, root, at) in rows {
        let length = if options.has("l") { 40 } else { length.min(40) };
        let hex = oid.hex();
        let shown = if root { format!("^{}", &hex[..length - 1]) } else { hex[..length].to_owned() };
        out::put(shown);
        if names {
            out::put(format!(" {:<name_width$}", text(&name)));
        }
        if options.has("s") {
            out::put(format!(" {:>digits$}) ", at + 1));
        } else {
            let pad = " ".repeat(width - who.chars().count());
            let when = date::show(person.time, person.zone, &style);
            out::put(format!(" ({who}{pad} {when} {:>digits$}) ", at + 1));
        }
        out::put(lines[at]);
        if !lines[at].ends_with(b"\n") {
            out::put(b"\n");
        }
    }
    Ok(0)
}
