//! Which paths a command is about.

use toolkit::files::resolve;

use crate::fail::{Res, fatal};
use crate::files::text;
use crate::pattern;
use crate::repo::Repo;

#[derive(Clone, Debug)]
struct Item {
    /// From the top of the work tree; empty for all of it.
    path: Vec<u8>,
    original: Vec<u8>,
    glob: bool,
    /// Stars stop at slashes.
    slashes: bool,
    fold: bool,
    exclude: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Pathspec {
    items: Vec<Item>,
}

/// A path as it was written, seen from the top of the work tree.
pub fn from_top(repo: &Repo, written: &[u8]) -> Res<Vec<u8>> {
    let tree = repo.work_tree.clone().unwrap_or_default();
    let outside = || {
        crate::fail::Fail::Fatal(format!(
            "{0}: '{0}' is outside repository at '{1}'",
            text(written),
            text(&tree)
        ))
    };
    if written.starts_with(b"/") {
        let strip = |path: &[u8]| {
            if path == tree {
                Some(Vec::new())
            } else {
                path.strip_prefix(&tree[..]).and_then(|rest| rest.strip_prefix(b"/")).map(<[u8]>::to_vec)
            }
        };
        let resolved = || {
            let mut whole = resolve(&crate::files::parent(written));
            whole.push(b'/');
            whole.extend_from_slice(toolkit::files::base_name(written));
            strip(&whole)
        };
        return strip(written)
            .or_else(resolved)
            .ok_or_else(outside)
            .map(|path| path.strip_suffix(b"/").unwrap_or(&path).to_vec());
    }
    let mut parts: Vec<&[u8]> =
        repo.prefix.split(|&byte| byte == b'/').filter(|part| !part.is_empty()).collect();
    for part in written.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                if parts.pop().is_none() {
                    return Err(outside());
                }
            }
            part => parts.push(part),
        }
    }
    Ok(parts.join(&b'/'))
}

impl Pathspec {
    pub fn new(repo: &Repo, written: &[Vec<u8>]) -> Res<Pathspec> {
        let mut items = Vec::new();
        for text in written {
            if text.is_empty() {
                fatal!(
                    "empty string is not a valid pathspec. please use . instead if you meant to match all paths"
                );
            }
            items.push(item(repo, text)?);
        }
        if !items.is_empty() && items.iter().all(|item| item.exclude) {
            let all = Item {
                path: repo.prefix.strip_suffix(b"/").unwrap_or(b"").to_vec(),
                original: b".".to_vec(),
                glob: false,
                slashes: false,
                fold: false,
                exclude: false,
            };
            items.push(all);
        }
        Ok(Pathspec { items })
    }

    /// From paths that are from the top already.
    pub fn exactly(paths: &[Vec<u8>]) -> Pathspec {
        let item = |path: &Vec<u8>| Item {
            path: path.clone(),
            original: path.clone(),
            glob: false,
            slashes: false,
            fold: false,
            exclude: false,
        };
        Pathspec { items: paths.iter().map(item).collect() }
    }

    /// The path, if there is only one and it is no pattern.
    pub fn only(&self) -> Option<Vec<u8>> {
        match self.items.as_slice() {
            [item] if !item.glob && !item.exclude => Some(item.path.clone()),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn matches(&self, path: &[u8]) -> bool {
        self.is_empty()
            || self.items.iter().any(|item| !item.exclude && item.matches(path))
                && !self.items.iter().any(|item| item.exclude && item.matches(path))
    }

    /// Whether something below a directory may match.
    pub fn may_match_below(&self, directory: &[u8]) -> bool {
        let leads_to = |item: &Item| {
            item.glob
                || item.matches(directory)
                || item.path.strip_prefix(directory).is_some_and(|rest| rest.starts_with(b"/"))
        };
        self.is_empty() || self.items.iter().any(|item| !item.exclude && leads_to(item))
    }

    /// What was written for those items that match none of the paths.
    pub fn unmatched(&self, mut paths: impl FnMut(&dyn Fn(&[u8]) -> bool) -> bool) -> Option<Vec<u8>> {
        self.items
            .iter()
            .filter(|item| !item.exclude)
            .find(|item| !paths(&|path: &[u8]| item.matches(path)))
            .map(|item| item.original.clone())
    }
}

impl Item {
    fn matches(&self, path: &[u8]) -> bool {
        let same = |a: &[u8], b: &[u8]| if self.fold { a.eq_ignore_ascii_case(b) } else { a == b };
        let prefix = path.get(..self.path.len()).is_some_and(|start| same(start, &self.path));
        let literal =
            self.path.is_empty() || prefix && matches!(path.get(self.path.len()), None | Some(b'/'));
        literal || self.glob && pattern::matches(&self.path, path, self.slashes, self.fold)
    }
}

fn item(repo: &Repo, written: &[u8]) -> Res<Item> {
    let (mut exclude, mut top, mut literal, mut slashes, mut fold) = (false, false, false, false, false);
    let mut rest = written;
    if let Some(long) = written.strip_prefix(b":(") {
        let Some(end) = long.iter().position(|&byte| byte == b')') else {
            fatal!("Missing ')' at the end of pathspec magic in '{}'", text(written))
        };
        for word in long[..end].split(|&byte| byte == b',').filter(|word| !word.is_empty()) {
            match word {
                b"exclude" => exclude = true,
                b"top" => top = true,
                b"literal" => literal = true,
                b"glob" => slashes = true,
                b"icase" => fold = true,
                word => fatal!("Invalid pathspec magic '{}' in '{}'", text(word), text(written)),
            }
        }
        rest = &long[end + 1..];
    } else if written.starts_with(b":") {
        rest = &rest[1..];
        loop {
            match rest.first() {
                Some(b'!' | b'^') => exclude = true,
                Some(b'/') => top = true,
                Some(b':') => {
                    rest = &rest[1..];
                    break;
                }
                _ => break,
            }
            rest = &rest[1..];
        }
    }
    let path = if top { rest.strip_suffix(b"/").unwrap_or(rest).to_vec() } else { from_top(repo, rest)? };
    Ok(Item {
        glob: !literal && pattern::is_glob(&path),
        path,
        original: written.to_vec(),
        slashes,
        fold,
        exclude,
    })
}
