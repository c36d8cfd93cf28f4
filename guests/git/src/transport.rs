//! Objects from one repository into another on the same machine.

use std::collections::HashSet;

use crate::commands::fsck::links;
use crate::fail::{Fail, Res, fatal};
use crate::files::{self, join, text};
use crate::hash::Oid;
use crate::object::Kind;
use crate::repo::Repo;

/// Opens the repository that an address names: a path, or `file://` and a path.
pub fn open(address: &[u8]) -> Res<Option<Repo>> {
    open_for(address, None)
}

/// The same for a repository that has some of its objects already.
pub fn open_for(address: &[u8], borrower: Option<&Repo>) -> Res<Option<Repo>> {
    if crate::http::is_address(address) {
        return crate::http::fetch(address, borrower).map(Some);
    }
    let shown = text(address);
    if let Some(path) = shown.strip_prefix("file://") {
        return Repo::at(path.as_bytes());
    }
    if let Some((scheme, _)) = shown.split_once("://") {
        fatal!("the transport '{scheme}' is not supported here: use http, https or a path");
    }
    let colon = shown.find(':');
    if colon.is_some_and(|colon| !shown[..colon].contains('/')) && !files::exists(address) {
        fatal!("ssh is not supported here: use an address with https:// or a path");
    }
    Repo::at(address)
}

/// Opens one that must be there.
pub fn must_open(address: &[u8], borrower: Option<&Repo>) -> Res<Repo> {
    match open_for(address, borrower)? {
        Some(repo) => Ok(repo),
        None => {
            crate::out::complain(format!(
                "fatal: '{}' does not appear to be a git repository",
                text(address)
            ));
            Err(Fail::Fatal(
                "Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the repository exists."
                    .to_owned(),
            ))
        }
    }
}

/// How an address is shown where changes come from.
pub fn shown(address: &[u8]) -> String {
    let name = text(address);
    let name = name.trim_end_matches('/');
    name.strip_suffix(".git").unwrap_or(name).to_owned()
}

/// Copies what tips need and the other repository lacks. A commit that is there already is there with all it needs.
pub fn copy(from: &Repo, to: &Repo, tips: &[Oid]) -> Res<()> {
    let mut seen: HashSet<Oid> = HashSet::new();
    let mut left: Vec<Oid> = tips.to_vec();
    let mut found = Vec::new();
    while let Some(oid) = left.pop() {
        if !seen.insert(oid) || to.odb.has(&oid) {
            continue;
        }
        let object = from.odb.read(&oid)?;
        match links(object.kind, &object.data) {
            Some(links) => left.extend(links),
            None => fatal!("bad object {oid}"),
        }
        found.push((object.kind, oid));
    }
    // Commits and tags come last: what they need is there before them if this is interrupted.
    let rank = |kind: Kind| match kind {
        Kind::Blob => 0,
        Kind::Tree => 1,
        Kind::Commit => 2,
        Kind::Tag => 3,
    };
    found.reverse();
    found.sort_by_key(|(kind, _)| rank(*kind));
    for (kind, oid) in found {
        to.odb.write(kind, &from.odb.read(&oid)?.data)?;
    }
    Ok(())
}

/// The objects that some commits need and others do not, those that need them last.
pub fn missing(repo: &Repo, tips: &[Oid], known: &[Oid]) -> Res<Vec<Oid>> {
    let mut commits = Vec::new();
    for oid in known {
        let (oid, kind) = repo.odb.peel(oid)?;
        commits.extend((kind == Kind::Commit).then_some(oid));
    }
    let mut seen: HashSet<Oid> = crate::walk::ancestors(repo, &commits)?;
    for commit in commits {
        let mut left = vec![repo.odb.commit(&commit)?.tree];
        while let Some(oid) = left.pop() {
            if seen.insert(oid) {
                let object = repo.odb.read(&oid)?;
                left.extend(links(object.kind, &object.data).unwrap_or_default());
            }
        }
    }
    let mut left = tips.to_vec();
    let mut found = Vec::new();
    while let Some(oid) = left.pop() {
        if !seen.insert(oid) {
            continue;
        }
        let object = repo.odb.read(&oid)?;
        match links(object.kind, &object.data) {
            Some(links) => left.extend(links),
            None => fatal!("bad object {oid}"),
        }
        found.push(oid);
    }
    Ok(found)
}

/// The settings of a remote: its address and what is fetched.
pub fn address(repo: &Repo, remote: &str) -> Option<Vec<u8>> {
    repo.config.get(&format!("remote.{remote}.url"))
}

/// The remote that is meant where none is named.
pub fn usual_remote(repo: &Repo) -> Res<String> {
    let branch = crate::refs::current_branch(repo)?;
    let followed = branch.and_then(|branch| repo.config.text(&format!("branch.{}.remote", text(&branch))));
    Ok(followed.unwrap_or_else(|| "origin".to_owned()))
}

/// A path from the root: remotes are found from everywhere.
pub fn absolute(path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") || path.windows(3).any(|part| part == b"://") {
        return path.to_vec();
    }
    let here = crate::repo::cwd().unwrap_or_default();
    toolkit::files::resolve(&join(&here, path))
}
