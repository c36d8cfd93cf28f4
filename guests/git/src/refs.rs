//! Names of commits: branches, tags, `HEAD`, in files of their own or packed together.

use std::collections::BTreeMap;

use crate::fail::{Fail, Res, error, fatal};
use crate::files::{self, Lock, join, text};
use crate::hash::Oid;
use crate::reflog;
use crate::repo::Repo;

/// A symbolic name that leads to another, and so on, ends here.
const LONGEST: usize = 5;

/// What a name holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Oid(Oid),
    /// Another name.
    Symbolic(Vec<u8>),
}

/// Which directory a name is in: those of one work tree are its own, the others are shared.
fn directory<'a>(repo: &'a Repo, name: &[u8]) -> &'a [u8] {
    let own = !name.starts_with(b"refs/")
        || name.starts_with(b"refs/bisect/")
        || name.starts_with(b"refs/worktree/");
    if own { &repo.git_dir } else { &repo.common_dir }
}

pub fn file_of(repo: &Repo, name: &[u8]) -> Vec<u8> {
    join(directory(repo, name), name)
}

/// What a name holds, if it exists.
pub fn read(repo: &Repo, name: &[u8]) -> Res<Option<Value>> {
    if let Some(content) = files::read_if_there(&file_of(repo, name))? {
        let content = content.trim_ascii_end();
        if let Some(target) = content.strip_prefix(b"ref:") {
            return Ok(Some(Value::Symbolic(target.trim_ascii().to_vec())));
        }
        return match Oid::from_hex(content.get(..40).unwrap_or(b"")) {
            Some(oid) => Ok(Some(Value::Oid(oid))),
            None => Ok(None),
        };
    }
    Ok(packed(repo)?.get(name).map(|oid| Value::Oid(*oid)))
}

/// All names in `packed-refs`.
fn packed(repo: &Repo) -> Res<BTreeMap<Vec<u8>, Oid>> {
    let content = files::read_if_there(&join(&repo.common_dir, b"packed-refs"))?.unwrap_or_default();
    let mut refs = BTreeMap::new();
    for line in content.split(|&byte| byte == b'\n') {
        if let (Some(oid), Some(b' ')) = (Oid::from_hex(line.get(..40).unwrap_or(b"")), line.get(40)) {
            refs.insert(line[41..].to_vec(), oid);
        }
    }
    Ok(refs)
}

/// Follows symbolic names to the last one, which may not exist yet.
pub fn follow(repo: &Repo, name: &[u8]) -> Res<Vec<u8>> {
    let mut name = name.to_vec();
    for _ in 0..LONGEST {
        match read(repo, &name)? {
            Some(Value::Symbolic(target)) => name = target,
            _ => return Ok(name),
        }
    }
    fatal!("too many symbolic refs: {}", text(&name))
}

/// The object that a name leads to.
pub fn resolve(repo: &Repo, name: &[u8]) -> Res<Option<Oid>> {
    match read(repo, &follow(repo, name)?)? {
        Some(Value::Oid(oid)) => Ok(Some(oid)),
        _ => Ok(None),
    }
}

/// All names below a prefix that ends with a slash (or `refs/`), with what they lead to, in order.
pub fn list(repo: &Repo, prefix: &[u8]) -> Res<Vec<(Vec<u8>, Oid)>> {
    let mut found = packed(repo)?;
    found.retain(|name, _| name.starts_with(prefix));
    let mut names = Vec::new();
    collect(&repo.common_dir, prefix.strip_suffix(b"/").unwrap_or(prefix), 0, &mut names);
    for name in names {
        if let Some(oid) = resolve(repo, &name)? {
            found.insert(name, oid);
        } else if !files::read(&file_of(repo, &name)).is_ok_and(|content| content.starts_with(b"ref:")) {
            crate::out::complain(format!("warning: ignoring broken ref {}", text(&name)));
        }
    }
    Ok(found.into_iter().collect())
}

fn collect(root: &[u8], name: &[u8], depth: usize, names: &mut Vec<Vec<u8>>) {
    let directory = join(root, name);
    if depth > 64 {
        return;
    }
    for entry in files::names_in(&directory).unwrap_or_default() {
        let name = join(name, &entry);
        match files::lstat(&join(root, &name)) {
            Some(stat) if stat.is_dir() => collect(root, &name, depth + 1, names),
            Some(_) if !entry.ends_with(b".lock") => names.push(name),
            _ => {}
        }
    }
}

/// Whether a name may be one, by the rules of `git check-ref-format`.
pub fn is_valid(name: &[u8]) -> bool {
    let bad_byte = |byte: &u8| {
        *byte < 0x20 || matches!(byte, 0x7f | b' ' | b'~' | b'^' | b':' | b'?' | b'*' | b'[' | b'\\')
    };
    let has = |what: &[u8]| name.windows(what.len()).any(|part| part == what);
    let bad_part = |part: &[u8]| part.is_empty() || part.starts_with(b".") || part.ends_with(b".lock");
    !(name.iter().any(bad_byte)
        || has(b"..")
        || has(b"@{")
        || name == b"@"
        || name.ends_with(b".")
        || name.split(|&byte| byte == b'/').any(bad_part))
}

/// What an update expects to find.
#[derive(Clone, Copy, PartialEq)]
pub enum Expect {
    Anything,
    /// No such name.
    Nothing,
    Value(Oid),
}

/// Sets a name (through symbolic ones, `HEAD` for instance) and writes what happened into the logs.
pub fn update(repo: &Repo, name: &[u8], new: Oid, expect: Expect, why: &str) -> Res<()> {
    let target = follow(repo, name)?;
    set(repo, &target, new, expect, why)?;
    let old = |log: &[u8]| reflog::last(repo, log).unwrap_or(Oid::NULL);
    if target != name {
        let old = old(name);
        reflog::append(repo, name, old, new, why)?;
    } else if name != b"HEAD" && read(repo, b"HEAD")? == Some(Value::Symbolic(name.to_vec())) {
        let old = old(b"HEAD");
        reflog::append(repo, b"HEAD", old, new, why)?;
    }
    Ok(())
}

/// Sets a name itself, even a symbolic one: how `HEAD` is detached.
pub fn set(repo: &Repo, name: &[u8], new: Oid, expect: Expect, why: &str) -> Res<()> {
    if !repo.odb.has(&new) {
        error!(
            "cannot update ref '{}': trying to write ref '{}' with nonexistent object {new}",
            text(name),
            text(name)
        );
    }
    check_room(repo, name)?;
    let file = file_of(repo, name);
    files::make_dirs(&files::parent(&file))?;
    let mut lock = Lock::take(&file)?;
    let old = resolve(repo, name)?;
    match (expect, old) {
        (Expect::Nothing, Some(_)) => {
            fatal!("cannot lock ref '{0}': reference already exists", text(name))
        }
        (Expect::Value(expected), found) if found != Some(expected) => match found {
            Some(found) => fatal!("cannot lock ref '{}': is at {found} but expected {expected}", text(name)),
            None => fatal!("cannot lock ref '{0}': unable to resolve reference '{0}'", text(name)),
        },
        _ => {}
    }
    lock.write(format!("{new}\n").as_bytes())?;
    reflog::append(repo, name, old.unwrap_or(Oid::NULL), new, why)?;
    if files::is_dir(&file) {
        remove_empty_dirs(&file, 0);
    }
    lock.commit()
}

fn remove_empty_dirs(directory: &[u8], depth: usize) {
    if depth < 64 {
        for name in files::names_in(directory).unwrap_or_default() {
            remove_empty_dirs(&join(directory, &name), depth + 1);
        }
        // One that is not empty stays, and then the rename says so.
        let _ = files::rmdir(directory);
    }
}

/// A name can be a file or a directory, not both.
fn check_room(repo: &Repo, name: &[u8]) -> Res<()> {
    if !name.starts_with(b"refs/") {
        return Ok(());
    }
    let clash = |other: &[u8]| {
        let (name, other) = (text(name), text(other));
        Fail::Fatal(format!("cannot lock ref '{name}': '{other}' exists; cannot create '{name}'"))
    };
    let mut end = name.len();
    while let Some(slash) = name[..end].iter().rposition(|&byte| byte == b'/') {
        end = slash;
        if name[..end].iter().filter(|&&byte| byte == b'/').count() > 0 && read(repo, &name[..end])?.is_some()
        {
            return Err(clash(&name[..end]));
        }
    }
    match list(repo, &[name, b"/"].concat())?.first() {
        Some((other, _)) => Err(clash(other)),
        None => Ok(()),
    }
}

/// Makes a name lead to another.
pub fn set_symbolic(repo: &Repo, name: &[u8], target: &[u8], why: Option<&str>) -> Res<()> {
    let old = resolve(repo, name)?;
    let file = file_of(repo, name);
    files::make_dirs(&files::parent(&file))?;
    files::replace(&file, &[b"ref: ", target, b"\n"].concat())?;
    match (why, resolve(repo, target)?) {
        (Some(why), Some(new)) => reflog::append(repo, name, old.unwrap_or(Oid::NULL), new, why),
        _ => Ok(()),
    }
}

/// Removes a name itself, its log too.
pub fn delete(repo: &Repo, name: &[u8], expect: Expect) -> Res<()> {
    let old = resolve(repo, name)?;
    if let Expect::Value(expected) = expect
        && old != Some(expected)
    {
        fatal!("cannot lock ref '{}': unable to resolve reference or it has another value", text(name));
    }
    let mut packed_refs = packed(repo)?;
    if packed_refs.remove(name).is_some() {
        // A name may lead to what only another repository has; then the list does not claim to know all targets.
        let targets: Vec<Option<Oid>> =
            packed_refs.values().map(|oid| repo.odb.peel(oid).ok().map(|(oid, _)| oid)).collect();
        let known = if targets.contains(&None) { "" } else { "peeled fully-peeled " };
        let mut content = format!("# pack-refs with: {known}sorted \n").into_bytes();
        for ((name, oid), target) in packed_refs.iter().zip(&targets) {
            content.extend_from_slice(format!("{oid} ").as_bytes());
            content.extend_from_slice(name);
            content.push(b'\n');
            if let Some(peeled) = target.filter(|peeled| peeled != oid) {
                content.extend_from_slice(format!("^{peeled}\n").as_bytes());
            }
        }
        files::replace(&join(&repo.common_dir, b"packed-refs"), &content)?;
    }
    let file = file_of(repo, name);
    let lock = Lock::take(&file);
    files::remove_if_there(&file)?;
    drop(lock);
    if name.starts_with(b"refs/") {
        let stop = |name: &[u8]| {
            let mut parts = name.splitn(3, |&byte| byte == b'/');
            join(
                directory(repo, name),
                &[parts.next().unwrap_or(b""), b"/", parts.next().unwrap_or(b"")].concat(),
            )
        };
        files::prune_upwards(&file, &stop(name));
        reflog::remove(repo, name)?;
    }
    Ok(())
}

/// The current branch, without `refs/heads/`; none where `HEAD` is detached.
pub fn current_branch(repo: &Repo) -> Res<Option<Vec<u8>>> {
    Ok(match read(repo, b"HEAD")? {
        Some(Value::Symbolic(name)) => Some(name.strip_prefix(b"refs/heads/").unwrap_or(&name).to_vec()),
        _ => None,
    })
}

/// A name as people write it: without `refs/heads/`, `refs/tags/` or `refs/remotes/`.
pub fn short(name: &[u8]) -> &[u8] {
    [&b"refs/heads/"[..], b"refs/tags/", b"refs/remotes/", b"refs/"]
        .iter()
        .find_map(|prefix| name.strip_prefix(*prefix))
        .unwrap_or(name)
}
