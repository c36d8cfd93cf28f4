//! The logs of what names held.

use std::io::Write;

use toolkit::files::path;

use crate::fail::{Res, system};
use crate::files::{self, join, text};
use crate::hash::Oid;
use crate::ident;
use crate::object::Person;
use crate::repo::Repo;

pub struct Line {
    pub old: Oid,
    pub new: Oid,
    pub who: Person,
    pub message: Vec<u8>,
}

fn file_of(repo: &Repo, name: &[u8]) -> Vec<u8> {
    let root = if name.starts_with(b"refs/") { &repo.common_dir } else { &repo.git_dir };
    join(&join(root, b"logs"), name)
}

pub fn exists(repo: &Repo, name: &[u8]) -> bool {
    files::is_file(&file_of(repo, name))
}

/// Whether changes of a name are logged where it has no log yet.
fn is_wanted(repo: &Repo, name: &[u8]) -> bool {
    let usual = name == b"HEAD"
        || [&b"refs/heads/"[..], b"refs/remotes/", b"refs/notes/"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
    match repo.config.text("core.logallrefupdates").as_deref() {
        Some("always") => true,
        Some(value) => usual && crate::config::as_bool(value.as_bytes()).unwrap_or(true),
        None => usual && !repo.is_bare(),
    }
}

pub fn append(repo: &Repo, name: &[u8], old: Oid, new: Oid, why: &str) -> Res<()> {
    if !exists(repo, name) && !is_wanted(repo, name) && name != b"refs/stash" {
        return Ok(());
    }
    let file = file_of(repo, name);
    files::make_dirs(&files::parent(&file))?;
    let mut line = format!("{old} {new} ").into_bytes();
    line.extend_from_slice(&ident::committer_or_any(repo).line());
    let why: Vec<&str> = why.split_ascii_whitespace().collect();
    if !why.is_empty() {
        line.extend_from_slice(format!("\t{}", why.join(" ")).as_bytes());
    }
    line.push(b'\n');
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path(&file));
    opened.and_then(|mut log| log.write_all(&line)).map_err(system(format_args!(
        "cannot update the ref '{}': unable to append to '{}'",
        text(name),
        text(&file)
    )))
}

/// All lines, the oldest first.
pub fn read(repo: &Repo, name: &[u8]) -> Res<Vec<Line>> {
    let content = files::read_if_there(&file_of(repo, name))?.unwrap_or_default();
    Ok(content.split(|&byte| byte == b'\n').filter_map(parse).collect())
}

fn parse(line: &[u8]) -> Option<Line> {
    let old = Oid::from_hex(line.get(..40)?)?;
    let new = Oid::from_hex(line.get(41..81)?)?;
    let rest = line.get(82..)?;
    let tab = rest.iter().position(|&byte| byte == b'\t').unwrap_or(rest.len());
    let message = rest.get(tab + 1..).unwrap_or(b"").to_vec();
    Some(Line { old, new, who: Person::parse(&rest[..tab]), message })
}

/// What a name held last.
pub fn last(repo: &Repo, name: &[u8]) -> Option<Oid> {
    read(repo, name).ok()?.last().map(|line| line.new)
}

/// Replaces a log.
pub fn rewrite(repo: &Repo, name: &[u8], lines: &[Line]) -> Res<()> {
    let mut content = Vec::new();
    for line in lines {
        content.extend_from_slice(format!("{} {} ", line.old, line.new).as_bytes());
        content.extend_from_slice(&line.who.line());
        content.push(b'\t');
        content.extend_from_slice(&line.message);
        content.push(b'\n');
    }
    files::replace(&file_of(repo, name), &content)
}

pub fn remove(repo: &Repo, name: &[u8]) -> Res<()> {
    let file = file_of(repo, name);
    files::remove_if_there(&file)?;
    files::prune_upwards(&file, &join(&repo.common_dir, b"logs/refs"));
    Ok(())
}

/// A branch takes its log along.
pub fn rename(repo: &Repo, from: &[u8], to: &[u8]) -> Res<()> {
    let (from, to) = (file_of(repo, from), file_of(repo, to));
    if files::is_file(&from) {
        // By a name of its own: `a` can become `a/b`.
        let aside = join(&repo.common_dir, b"logs/refs/.tmp-renamed-log");
        files::rename(&from, &aside).map_err(system("cannot move the log"))?;
        files::prune_upwards(&from, &join(&repo.common_dir, b"logs/refs"));
        files::make_dirs(&files::parent(&to))?;
        files::rename(&aside, &to).map_err(system("cannot move the log"))?;
    }
    Ok(())
}
