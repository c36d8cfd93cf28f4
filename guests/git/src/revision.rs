//! The names people give commits: `HEAD~3`, `main@{1}`, `v1.0^{tree}`, `:/words`, `HEAD:file`.

use crate::date;
use crate::fail::{Fail, Res, fatal};
use crate::files::text;
use crate::hash::Oid;
use crate::index::Index;
use crate::object::Kind;
use crate::reflog;
use crate::refs::{self, Value};
use crate::repo::Repo;

/// The full name that a short one stands for, if there is such a name.
pub fn full_name(repo: &Repo, name: &[u8]) -> Res<Option<Vec<u8>>> {
    let name = if name == b"@" { b"HEAD" } else { name };
    let prefixes: [&[u8]; 6] =
        [b"", b"refs/", b"refs/tags/", b"refs/heads/", b"refs/remotes/", b"refs/remotes/"];
    for (at, prefix) in prefixes.iter().enumerate() {
        let tail: &[u8] = if at == 5 { b"/HEAD" } else { b"" };
        let full = [prefix, name, tail].concat();
        let special = at == 0
            && !full.starts_with(b"refs/")
            && !full.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
        if special || !refs::is_valid(&full) {
            continue;
        }
        if let Some(value) = refs::read(repo, &full)? {
            let there = !matches!(value, Value::Symbolic(_)) || refs::resolve(repo, &full)?.is_some();
            if there {
                return Ok(Some(full));
            }
        }
    }
    Ok(None)
}

/// The object that a text means, if it means one.
pub fn find(repo: &Repo, written: &[u8]) -> Res<Option<Oid>> {
    if let Some(words) = written.strip_prefix(b":/") {
        let Some(head) = repo.head()? else { return Ok(None) };
        return by_message(repo, &head, words);
    }
    if let Some(rest) = written.strip_prefix(b":") {
        return in_index(repo, rest);
    }
    if let Some(colon) = top_level_colon(written) {
        let Some(start) = find(repo, &written[..colon])? else { return Ok(None) };
        return in_tree(repo, &start, &written[colon + 1..]);
    }
    let end = base_end(written);
    let Some(mut oid) = base(repo, &written[..end])? else { return Ok(None) };
    let mut rest = &written[end..];
    while !rest.is_empty() {
        match suffix(repo, oid, rest)? {
            Some((next, after)) => (oid, rest) = (next, after),
            None => return Ok(None),
        }
    }
    Ok(Some(oid))
}

/// The object that a text must mean.
pub fn get(repo: &Repo, written: &[u8]) -> Res<Oid> {
    match find(repo, written)? {
        Some(oid) => Ok(oid),
        None => Err(unknown(written)),
    }
}

pub fn unknown(written: &[u8]) -> Fail {
    Fail::Fatal(format!(
        "ambiguous argument '{}': unknown revision or path not in the working tree.\nUse '--' to separate paths from \
         revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'",
        text(written)
    ))
}

/// The commit that a text must mean.
pub fn commit(repo: &Repo, written: &[u8]) -> Res<Oid> {
    let Some(oid) = find(repo, written)? else { fatal!("bad revision '{}'", text(written)) };
    let (oid, kind) = repo.odb.peel(&oid)?;
    if kind != Kind::Commit {
        fatal!("{} does not point to a commit", text(written));
    }
    Ok(oid)
}

/// The tree of a commit, tag or tree.
pub fn tree_of(repo: &Repo, oid: &Oid) -> Res<Oid> {
    match repo.odb.peel(oid)? {
        (oid, Kind::Commit) => Ok(repo.odb.commit(&oid)?.tree),
        (oid, Kind::Tree) => Ok(oid),
        (oid, _) => fatal!("not a tree object: {oid}"),
    }
}

fn top_level_colon(written: &[u8]) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in written.iter().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b':' if depth == 0 => return Some(at),
            _ => {}
        }
    }
    None
}

/// Where the name ends and `^`, `~` or their like begin.
fn base_end(written: &[u8]) -> usize {
    written.iter().position(|&byte| byte == b'^' || byte == b'~').unwrap_or(written.len())
}

fn base(repo: &Repo, name: &[u8]) -> Res<Option<Oid>> {
    if let Some(at) = name.windows(2).position(|pair| pair == b"@{") {
        let Some(inner) = name[at + 2..].strip_suffix(b"}") else { return Ok(None) };
        return in_log(repo, &name[..at], &text(inner));
    }
    if let Some(oid) = Oid::from_hex(name) {
        return Ok(Some(oid));
    }
    if let Some(full) = full_name(repo, name)? {
        return refs::resolve(repo, &full);
    }
    let hex = |text: &[u8]| (4..40).contains(&text.len()) && text.iter().all(u8::is_ascii_hexdigit);
    let described = text(name);
    let digits = match described.rsplit_once("-g") {
        Some((_, digits)) if hex(digits.as_bytes()) => digits.as_bytes().to_vec(),
        _ => name.to_vec(),
    };
    if !hex(&digits) {
        return Ok(None);
    }
    let found = repo.odb.starting_with(&digits);
    match found.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(*one)),
        many => {
            let commits: Vec<&Oid> = many
                .iter()
                .filter(|oid| repo.odb.read(oid).is_ok_and(|object| object.kind == Kind::Commit))
                .collect();
            if let [one] = commits.as_slice() {
                return Ok(Some(**one));
            }
            crate::out::complain(format!("error: short object ID {} is ambiguous", text(&digits)));
            Ok(None)
        }
    }
}

/// `main@{1}`, `@{-1}`, `@{u}`, `main@{yesterday}`.
fn in_log(repo: &Repo, name: &[u8], inner: &str) -> Res<Option<Oid>> {
    if let Some(count) = inner.strip_prefix('-').and_then(|count| count.parse::<usize>().ok()) {
        return match previous_branch(repo, count)? {
            Some(branch) => base(repo, &branch),
            None => Ok(None),
        };
    }
    if matches!(inner.to_lowercase().as_str(), "u" | "upstream" | "push") {
        let branch = if name.is_empty() || name == b"HEAD" || name == b"@" {
            refs::current_branch(repo)?
        } else {
            Some(name.to_vec())
        };
        let Some(branch) = branch else { fatal!("HEAD does not point to a branch") };
        return match crate::remote::upstream(repo, &branch) {
            Some(upstream) => refs::resolve(repo, &upstream),
            None => fatal!("no upstream configured for branch '{}'", text(&branch)),
        };
    }
    let full = match name {
        b"" => refs::follow(repo, b"HEAD")?,
        name => match full_name(repo, name)? {
            Some(full) => full,
            None => return Ok(None),
        },
    };
    let log = reflog::read(repo, &full)?;
    if let Ok(count) = inner.parse::<usize>() {
        if count == 0 {
            return refs::resolve(repo, &full);
        }
        return match log.len().checked_sub(count) {
            Some(at) if at > 0 => Ok(Some(log[at - 1].new)),
            Some(0) if !log.is_empty() && !log[0].old.is_null() => Ok(Some(log[0].old)),
            _ => fatal!("log for '{}' only has {} entries", text(refs::short(&full)), log.len()),
        };
    }
    let Some(limit) = date::parse_limit(inner) else { return Ok(None) };
    let before = log.iter().rev().find(|line| line.who.time <= limit).map(|line| line.new);
    Ok(before.or_else(|| log.first().map(|line| line.new)))
}

/// The branch that was current so many checkouts ago.
pub fn previous_branch(repo: &Repo, count: usize) -> Res<Option<Vec<u8>>> {
    let log = reflog::read(repo, b"HEAD")?;
    let moves = log.iter().rev().filter_map(|line| {
        let rest = line.message.strip_prefix(b"checkout: moving from ")?;
        let end = rest.windows(4).position(|part| part == b" to ")?;
        Some(rest[..end].to_vec())
    });
    Ok(moves.into_iter().nth(count.saturating_sub(1)))
}

fn suffix<'a>(repo: &Repo, oid: Oid, rest: &'a [u8]) -> Res<Option<(Oid, &'a [u8])>> {
    let digits = rest[1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = text(&rest[1..=digits]).parse::<usize>().unwrap_or(1);
    let after = &rest[1 + digits..];
    if rest[0] == b'~' {
        let (mut at, _) = repo.odb.peel(&oid)?;
        for _ in 0..number {
            match repo.odb.commit(&at)?.parents.first() {
                Some(parent) => at = *parent,
                None => return Ok(None),
            }
        }
        return Ok(Some((at, after)));
    }
    if rest[0] != b'^' {
        return Ok(None);
    }
    if let Some(inner) = rest.strip_prefix(b"^{") {
        let Some(end) = inner.iter().position(|&byte| byte == b'}') else { return Ok(None) };
        return Ok(peel_to(repo, oid, &inner[..end])?.map(|oid| (oid, &inner[end + 1..])));
    }
    let (oid, kind) = repo.odb.peel(&oid)?;
    if kind != Kind::Commit {
        return Ok(None);
    }
    if number == 0 {
        return Ok(Some((oid, after)));
    }
    Ok(repo.odb.commit(&oid)?.parents.get(number - 1).map(|parent| (*parent, after)))
}

fn peel_to(repo: &Repo, oid: Oid, what: &[u8]) -> Res<Option<Oid>> {
    if let Some(words) = what.strip_prefix(b"/") {
        return by_message(repo, &oid, words);
    }
    let (peeled, kind) = repo.odb.peel(&oid)?;
    Ok(match what {
        b"" => Some(peeled),
        b"object" => Some(oid),
        b"commit" => (kind == Kind::Commit).then_some(peeled),
        b"tree" => Some(tree_of(repo, &oid)?),
        b"blob" => (kind == Kind::Blob).then_some(peeled),
        b"tag" => (repo.odb.read(&oid)?.kind == Kind::Tag).then_some(oid),
        _ => None,
    })
}

fn by_message(repo: &Repo, start: &Oid, words: &[u8]) -> Res<Option<Oid>> {
    let regex = crate::grep::regex(words, wardian_regex::Syntax::Basic, false)?;
    let mut walk = crate::walk::Walk::new(repo);
    walk.include(*start)?;
    for oid in walk.run()? {
        if regex.is_match(&repo.odb.commit(&oid)?.message) {
            return Ok(Some(oid));
        }
    }
    Ok(None)
}

fn in_index(repo: &Repo, rest: &[u8]) -> Res<Option<Oid>> {
    let (stage, path) = match rest {
        [stage @ b'0'..=b'3', b':', path @ ..] => (stage - b'0', path),
        path => (0, path),
    };
    let path = relative(repo, path)?;
    let index = Index::load(repo)?;
    Ok(index.position(&path, stage).ok().map(|at| index.entries[at].oid))
}

fn relative(repo: &Repo, path: &[u8]) -> Res<Vec<u8>> {
    if path.starts_with(b"./") || path.starts_with(b"../") || path == b"." || path == b".." {
        return crate::pathspec::from_top(repo, path);
    }
    Ok(path.to_vec())
}

fn in_tree(repo: &Repo, start: &Oid, path: &[u8]) -> Res<Option<Oid>> {
    let mut oid = tree_of(repo, start)?;
    let path = relative(repo, path)?;
    for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()) {
        let object = repo.odb.read(&oid)?;
        if object.kind != Kind::Tree {
            return Ok(None);
        }
        match crate::object::read_tree(&object.data)?.into_iter().find(|entry| entry.name == part) {
            Some(entry) => oid = entry.oid,
            None => return Ok(None),
        }
    }
    Ok(Some(oid))
}

/// The entry at a path of a tree.
pub fn entry_at(repo: &Repo, tree: &Oid, path: &[u8]) -> Res<Option<(u32, Oid)>> {
    let mut at = (crate::object::DIRECTORY, *tree);
    for part in path.split(|&byte| byte == b'/').filter(|part| !part.is_empty()) {
        if at.0 != crate::object::DIRECTORY {
            return Ok(None);
        }
        match repo.odb.tree(&at.1)?.into_iter().find(|entry| entry.name == part) {
            Some(entry) => at = (crate::index::canonical_mode(entry.mode), entry.oid),
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

/// A word that could be a revision and is a file too means neither.
pub fn refuse_ambiguous(repo: &Repo, word: &[u8]) -> Res<()> {
    if repo.is_bare() || word.starts_with(b"^") || word.contains(&b':') {
        return Ok(());
    }
    let there = crate::pathspec::from_top(repo, word)
        .is_ok_and(|top| !top.is_empty() && crate::files::exists(&repo.in_tree(&top)));
    if there {
        fatal!(
            "ambiguous argument '{}': both revision and filename\nUse '--' to separate paths from revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'",
            text(word)
        );
    }
    Ok(())
}
