//! Joining changes: three texts line by line, three trees file by file.

use std::collections::BTreeSet;

use crate::change::{self, Change};
use crate::fail::Res;
use crate::files::text;
use crate::hash::Oid;
use crate::index::{Entry, Files, flatten, write_trees};
use crate::lines::{self, Hunk};
use crate::object::{Commit, Kind, LINK, SUBMODULE};
use crate::rename;
use crate::repo::Repo;
use crate::walk;

/// How conflicts are written.
#[derive(Clone)]
pub struct Labels {
    pub ours: String,
    pub base: String,
    pub theirs: String,
    pub diff3: bool,
    /// Where both changed the same lines, take `ours` or `theirs`.
    pub favour: Favour,
    pub size: usize,
}

#[derive(Clone, Copy, PartialEq, Default)]
pub enum Favour {
    #[default]
    None,
    Ours,
    Theirs,
}

impl Labels {
    pub fn new(repo: &Repo, ours: &str, base: &str, theirs: &str) -> Labels {
        let diff3 = matches!(repo.config.text("merge.conflictstyle").as_deref(), Some("diff3" | "zdiff3"));
        Labels {
            ours: ours.into(),
            base: base.into(),
            theirs: theirs.into(),
            diff3,
            favour: Favour::None,
            size: 7,
        }
    }
}

/// A stretch of the result.
#[derive(Debug)]
enum Part {
    /// Lines of ours, unchanged or changed there alone.
    Ours(std::ops::Range<usize>),
    Theirs(std::ops::Range<usize>),
    Conflict {
        base: std::ops::Range<usize>,
        ours: std::ops::Range<usize>,
        theirs: std::ops::Range<usize>,
    },
}

/// Merges texts; answers the result and whether it has conflicts.
pub fn texts(base: &[u8], ours: &[u8], theirs: &[u8], labels: &Labels) -> (Vec<u8>, bool) {
    let (base, ours, theirs) = (lines::split(base), lines::split(ours), lines::split(theirs));
    let parts = align(&base, &ours, &theirs);
    let parts = if labels.diff3 { parts } else { join_near(refine(parts, &ours, &theirs)) };
    let mut result = Vec::new();
    let mut conflicts = false;
    let add =
        |result: &mut Vec<u8>, lines: &[&[u8]]| lines.iter().for_each(|line| result.extend_from_slice(line));
    for part in parts {
        match part {
            Part::Ours(range) => add(&mut result, &ours[range]),
            Part::Theirs(range) => add(&mut result, &theirs[range]),
            Part::Conflict { base: b, ours: o, theirs: t } => match labels.favour {
                Favour::Ours => add(&mut result, &ours[o]),
                Favour::Theirs => add(&mut result, &theirs[t]),
                Favour::None => {
                    conflicts = true;
                    mark(&mut result, b'<', &labels.ours, labels.size);
                    add(&mut result, &ours[o]);
                    end_line(&mut result);
                    if labels.diff3 {
                        mark(&mut result, b'|', &labels.base, labels.size);
                        add(&mut result, &base[b]);
                        end_line(&mut result);
                    }
                    mark(&mut result, b'=', "", labels.size);
                    add(&mut result, &theirs[t]);
                    end_line(&mut result);
                    mark(&mut result, b'>', &labels.theirs, labels.size);
                }
            },
        }
    }
    (result, conflicts)
}

fn end_line(result: &mut Vec<u8>) {
    if result.last().is_some_and(|byte| *byte != b'\n') {
        result.push(b'\n');
    }
}

fn mark(result: &mut Vec<u8>, sign: u8, label: &str, size: usize) {
    result.extend(std::iter::repeat_n(sign, size));
    if !label.is_empty() {
        result.extend_from_slice(format!(" {label}").as_bytes());
    }
    result.push(b'\n');
}

/// Puts the changes of both sides beside each other.
fn align(base: &[&[u8]], ours: &[&[u8]], theirs: &[&[u8]]) -> Vec<Part> {
    let (left, right) = (lines::plain_hunks(base, ours), lines::plain_hunks(base, theirs));
    let (mut i, mut j) = (0, 0);
    // Where the next unchanged line is, in each text.
    let (mut at, mut our_at, mut their_at) = (0, 0, 0);
    let mut parts = Vec::new();
    while i < left.len() || j < right.len() {
        let start = |hunks: &[Hunk], n: usize| hunks.get(n).map_or(usize::MAX, |hunk| hunk.old.start);
        let first = start(&left, i).min(start(&right, j));
        parts.push(Part::Ours(our_at..our_at + (first - at)));
        our_at += first - at;
        their_at += first - at;
        let (i0, j0) = (i, j);
        let mut end = first;
        // All changes that touch each other are one.
        loop {
            let before = (i, j);
            // A change that starts where the other side's ends touches it; one of the same side cannot.
            while i < left.len()
                && (left[i].old.start < end || left[i].old.start == end && (i == i0 || j > j0))
            {
                end = end.max(left[i].old.end);
                i += 1;
            }
            while j < right.len()
                && (right[j].old.start < end || right[j].old.start == end && (i > i0 || j == j0))
            {
                end = end.max(right[j].old.end);
                j += 1;
            }
            if before == (i, j) {
                break;
            }
        }
        let length = |hunks: &[Hunk]| -> isize {
            hunks.iter().map(|hunk| hunk.new.len() as isize - hunk.old.len() as isize).sum()
        };
        let span = |delta: isize| ((end - first) as isize + delta).max(0) as usize;
        let o = our_at..our_at + span(length(&left[i0..i]));
        let t = their_at..their_at + span(length(&right[j0..j]));
        let part = match (i > i0, j > j0) {
            (true, false) => Part::Ours(o.clone()),
            (false, true) => Part::Theirs(t.clone()),
            _ if ours[o.clone()] == theirs[t.clone()] => Part::Ours(o.clone()),
            _ => Part::Conflict { base: first..end, ours: o.clone(), theirs: t.clone() },
        };
        parts.push(part);
        (at, our_at, their_at) = (end, o.end, t.end);
    }
    parts.push(Part::Ours(our_at..ours.len()));
    parts
}

/// Within a conflict, lines that both sides have alike are none.
fn refine(parts: Vec<Part>, ours: &[&[u8]], theirs: &[&[u8]]) -> Vec<Part> {
    let mut refined = Vec::new();
    for part in parts {
        let Part::Conflict { base, ours: o, theirs: t } = part else {
            refined.push(part);
            continue;
        };
        if o.is_empty() || t.is_empty() {
            refined.push(Part::Conflict { base, ours: o, theirs: t });
            continue;
        }
        let mut at = o.start;
        for hunk in lines::plain_hunks(&ours[o.clone()], &theirs[t.clone()]) {
            let our = o.start + hunk.old.start..o.start + hunk.old.end;
            let their = t.start + hunk.new.start..t.start + hunk.new.end;
            refined.push(Part::Ours(at..our.start));
            at = our.end;
            refined.push(Part::Conflict { base: base.clone(), ours: our, theirs: their });
        }
        refined.push(Part::Ours(at..o.end));
    }
    refined
}

/// Conflicts with at most three lines between them are one: so much is easier to read together.
fn join_near(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::new();
    let mut between: Vec<std::ops::Range<usize>> = Vec::new();
    for part in parts {
        match part {
            Part::Ours(range) => between.push(range),
            Part::Conflict { base, ours, theirs } => {
                let gap: usize = between.iter().map(std::iter::ExactSizeIterator::len).sum();
                match joined.last_mut() {
                    Some(Part::Conflict { base: b, ours: o, theirs: t })
                        if gap <= 3 && theirs.start - t.end == gap && ours.start - o.end == gap =>
                    {
                        (b.end, o.end, t.end) = (base.end, ours.end, theirs.end);
                    }
                    _ => {
                        joined.extend(between.drain(..).map(Part::Ours));
                        joined.push(Part::Conflict { base, ours, theirs });
                    }
                }
                between.clear();
            }
            Part::Theirs(range) => {
                joined.extend(between.drain(..).map(Part::Ours));
                joined.push(Part::Theirs(range));
            }
        }
    }
    joined.extend(between.into_iter().map(Part::Ours));
    joined
}

/// What joining trees led to.
#[derive(Default)]
pub struct Merged {
    /// Files without conflict.
    pub files: Files,
    /// Versions of files with conflicts, by stages.
    pub unmerged: Vec<Entry>,
    /// What the work tree gets for those: mode and content.
    pub left: Vec<(Vec<u8>, u32, Oid)>,
    pub messages: Vec<String>,
}

impl Merged {
    pub fn is_clean(&self) -> bool {
        self.unmerged.is_empty()
    }

    /// A tree with the files as the work tree gets them.
    pub fn tree(&self, repo: &Repo) -> Res<Oid> {
        let mut files = self.files.clone();
        files.extend(self.left.iter().map(|(path, mode, oid)| (path.clone(), (*mode, *oid))));
        let list: Vec<(&[u8], u32, Oid)> =
            files.iter().map(|(path, (mode, oid))| (path.as_slice(), *mode, *oid)).collect();
        write_trees(&repo.odb, &list)
    }
}

/// Merges trees.
pub fn trees(repo: &Repo, base: &Oid, ours: &Oid, theirs: &Oid, labels: &Labels) -> Res<Merged> {
    let mut merge = Merge { repo, labels, merged: Merged::default() };
    let renames = |side: &Oid| -> Res<Vec<Change>> {
        let changes = change::trees(repo, Some(base), Some(side), &Default::default())?;
        let changes = rename::detect(repo, changes, 50, false)?;
        Ok(changes.into_iter().filter(|change| change.status == b'R').collect())
    };
    let (our_renames, their_renames) = (renames(ours)?, renames(theirs)?);
    let (mut b, mut o, mut t) =
        (flatten(&repo.odb, base)?, flatten(&repo.odb, ours)?, flatten(&repo.odb, theirs)?);
    // A file that one side renamed is taken to its new name on all sides, so that the other's changes follow it.
    for (renames, other, ours_renamed) in
        [(&our_renames, &their_renames, true), (&their_renames, &our_renames, false)]
    {
        for change in renames.iter() {
            let elsewhere =
                other.iter().any(|twin| twin.old.path == change.old.path && twin.new.path != change.new.path);
            let side = if ours_renamed { &mut t } else { &mut o };
            if elsewhere
                || side.contains_key(&change.new.path)
                    && !other.iter().any(|twin| twin.new.path == change.new.path)
            {
                continue;
            }
            if let Some(file) = side.remove(&change.old.path) {
                side.insert(change.new.path.clone(), file);
            } else if !other.iter().any(|twin| twin.new.path == change.new.path) {
                merge.rename_delete(change, ours_renamed);
            }
            if let Some(file) = b.remove(&change.old.path) {
                b.insert(change.new.path.clone(), file);
            }
        }
    }
    let paths: BTreeSet<&Vec<u8>> = b.keys().chain(o.keys()).chain(t.keys()).collect();
    for path in paths {
        merge.file(path, b.get(path).copied(), o.get(path).copied(), t.get(path).copied())?;
    }
    Ok(merge.merged)
}

struct Merge<'a> {
    repo: &'a Repo,
    labels: &'a Labels,
    merged: Merged,
}

type Version = Option<(u32, Oid)>;

impl Merge<'_> {
    fn rename_delete(&mut self, change: &Change, ours: bool) {
        let (renamer, deleter) = if ours {
            (&self.labels.ours, &self.labels.theirs)
        } else {
            (&self.labels.theirs, &self.labels.ours)
        };
        self.merged.messages.push(format!(
            "CONFLICT (rename/delete): {0} renamed to {1} in {renamer}, but deleted in {deleter}.",
            text(&change.old.path),
            text(&change.new.path)
        ));
    }

    fn file(&mut self, path: &[u8], base: Version, ours: Version, theirs: Version) -> Res<()> {
        let clean = match () {
            () if ours == theirs => ours,
            () if base == ours => theirs,
            () if base == theirs => ours,
            () => return self.conflict(path, base, ours, theirs),
        };
        if let Some(file) = clean {
            self.merged.files.insert(path.to_vec(), file);
        }
        Ok(())
    }

    fn conflict(&mut self, path: &[u8], base: Version, ours: Version, theirs: Version) -> Res<()> {
        let shown = text(path);
        let (Some(o), Some(t)) = (ours, theirs) else {
            let (deleter, changer) = match ours {
                None => (&self.labels.ours, &self.labels.theirs),
                Some(_) => (&self.labels.theirs, &self.labels.ours),
            };
            self.merged.messages.push(format!(
                "CONFLICT (modify/delete): {shown} deleted in {deleter} and modified in {changer}.  Version {changer} of {shown} left in tree."
            ));
            let (mode, oid) = ours.or(theirs).unwrap_or_default();
            self.keep(path, base, ours, theirs, mode, oid);
            return Ok(());
        };
        let plain = |mode: u32| mode != LINK && mode != SUBMODULE;
        if !plain(o.0) || !plain(t.0) {
            self.merged.messages.push(format!(
                "CONFLICT ({}): Merge conflict in {shown}",
                if base.is_some() { "content" } else { "add/add" }
            ));
            self.keep(path, base, ours, theirs, o.0, o.1);
            return Ok(());
        }
        let mode = if base.is_some_and(|base| base.0 == o.0) { t.0 } else { o.0 };
        let (content, conflicts) = self.contents(path, base, o.1, t.1)?;
        let oid = self.repo.odb.write(Kind::Blob, &content)?;
        if !conflicts {
            self.merged.files.insert(path.to_vec(), (mode, oid));
            return Ok(());
        }
        let kind = if base.is_some() { "content" } else { "add/add" };
        self.merged.messages.push(format!("CONFLICT ({kind}): Merge conflict in {shown}"));
        self.keep(path, base, ours, theirs, mode, oid);
        Ok(())
    }

    /// The merged content, and whether it has conflicts.
    fn contents(&mut self, path: &[u8], base: Version, ours: Oid, theirs: Oid) -> Res<(Vec<u8>, bool)> {
        if ours == theirs || base.is_some_and(|base| base.1 == theirs) {
            return Ok((self.repo.odb.blob(&ours)?, false));
        }
        if base.is_some_and(|base| base.1 == ours) {
            return Ok((self.repo.odb.blob(&theirs)?, false));
        }
        self.merged.messages.push(format!("Auto-merging {}", text(path)));
        let old = base.map_or(Ok(Vec::new()), |(_, oid)| self.repo.odb.blob(&oid))?;
        let (our_text, their_text) = (self.repo.odb.blob(&ours)?, self.repo.odb.blob(&theirs)?);
        if [&old, &our_text, &their_text].into_iter().any(|text| lines::is_binary(text)) {
            let line = format!(
                "warning: Cannot merge binary files: {} ({} vs. {})",
                text(path),
                self.labels.ours,
                self.labels.theirs
            );
            self.merged.messages.insert(self.merged.messages.len() - 1, line);
            return Ok((our_text, true));
        }
        Ok(texts(&old, &our_text, &their_text, self.labels))
    }

    fn keep(&mut self, path: &[u8], base: Version, ours: Version, theirs: Version, mode: u32, oid: Oid) {
        for (stage, version) in [(1, base), (2, ours), (3, theirs)] {
            if let Some((mode, oid)) = version {
                self.merged.unmerged.push(Entry { stage, ..Entry::new(path, mode, oid) });
            }
        }
        self.merged.left.push((path.to_vec(), mode, oid));
    }
}

/// The tree that stands for the common ancestors of two commits: if there are several they are merged first.
pub fn base_tree(repo: &Repo, one: &Oid, two: &Oid, depth: usize) -> Res<(Oid, String)> {
    let bases = walk::merge_bases(repo, one, two)?;
    match bases.as_slice() {
        [] => Ok((crate::odb::EMPTY_TREE, "empty tree".to_owned())),
        [base] => Ok((repo.odb.commit(base)?.tree, repo.short(base))),
        many if depth > 20 => Ok((repo.odb.commit(&many[0])?.tree, repo.short(&many[0]))),
        many => {
            let mut all: Vec<Oid> = many.to_vec();
            all.reverse();
            let mut at = all[0];
            for next in &all[1..] {
                let (base, _) = base_tree(repo, &at, next, depth + 1)?;
                let labels = Labels {
                    size: 7 + 2 * (depth + 1),
                    ..Labels::new(
                        repo,
                        "Temporary merge branch 1",
                        "merged common ancestors",
                        "Temporary merge branch 2",
                    )
                };
                let (left, right) = (repo.odb.commit(&at)?.tree, repo.odb.commit(next)?.tree);
                let tree = trees(repo, &base, &left, &right, &labels)?.tree(repo)?;
                let person = repo.odb.commit(&at)?.committer.clone();
                let commit = Commit {
                    tree,
                    parents: vec![at, *next],
                    author: person.clone(),
                    committer: person,
                    extra: Vec::new(),
                    message: b"merged tree\n".to_vec(),
                };
                at = repo.odb.write(Kind::Commit, &commit.write())?;
            }
            Ok((repo.odb.commit(&at)?.tree, "merged common ancestors".to_owned()))
        }
    }
}
