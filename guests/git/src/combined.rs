//! What a merge differs in from all its parents, in one text: `git show` of a merge, `git diff` during one.

use std::ops::Range;

use crate::change::Change;
use crate::fail::Res;
use crate::hash::{self, Oid};
use crate::lines;
use crate::object::SUBMODULE;
use crate::out;
use crate::patch::{self, Style};
use crate::quote;
use crate::repo::Repo;

/// One side: a parent, or the result.
pub struct Version {
    pub mode: u32,
    pub content: Vec<u8>,
    pub oid: Oid,
}

impl Version {
    pub fn of(repo: &Repo, side: &crate::change::Side) -> Res<Version> {
        let content = side.content(repo)?;
        let oid = match (side.mode, side.oid) {
            (0, _) => Oid::NULL,
            (_, Some(oid)) => oid,
            // What is in the work tree alone has no name that others could know.
            (_, None) => Oid::NULL,
        };
        Ok(Version { mode: side.mode, content, oid })
    }
}

/// A line that the result lacks, and which parents had it.
struct Lost<'a> {
    text: &'a [u8],
    parents: u64,
}

/// A line of the result: which parents lack it, and what is lost before it.
#[derive(Default)]
struct Line<'a> {
    lacking: u64,
    lost: Vec<Lost<'a>>,
    shown: bool,
}

/// The changes of a merge, by path: those that differ from every parent. Each list is against one parent.
pub fn paths(lists: &[Vec<Change>]) -> Vec<Vec<&Change>> {
    let Some((first, others)) = lists.split_first() else { return Vec::new() };
    let mut all = Vec::new();
    for change in first {
        let mut row = vec![change];
        row.extend(others.iter().filter_map(|list| list.iter().find(|one| one.path() == change.path())));
        if row.len() == lists.len() {
            all.push(row);
        }
    }
    all
}

/// Writes one file. Without `dense` every difference counts; with it only those that no parent has.
pub fn write(
    repo: &Repo,
    path: &[u8],
    parents: &[Version],
    result: &Version,
    style: &Style,
    dense: bool,
) -> Res<()> {
    let is_text = |version: &Version| !lines::is_binary(&version.content);
    let text = style.as_text || parents.iter().all(is_text) && is_text(result);
    let gitlink = result.mode == SUBMODULE;
    let body = if text { body(parents, result, style, dense) } else { Vec::new() };
    let modes_differ = parents.iter().any(|parent| parent.mode != result.mode);
    if body.is_empty() && text && !modes_differ && !gitlink {
        return Ok(());
    }
    let word = if dense { "cc" } else { "combined" };
    out::put([format!("diff --{word} ").as_bytes(), &quote::path(path), b"\n"].concat());
    let short = |oid: &Oid| if style.full_index { oid.hex() } else { repo.short(oid) };
    let names: Vec<String> = parents.iter().map(|parent| short(&parent.oid)).collect();
    out::line(format_args!("index {}..{}", names.join(","), short(&result.oid)));
    modes(parents, result, modes_differ);
    if !text {
        return Ok(out::line("Binary files differ"));
    }
    if !body.is_empty() {
        let side = |prefix: &[u8], there: bool| match there {
            true => quote::path(&[prefix, path].concat()),
            false => b"/dev/null".to_vec(),
        };
        let added = parents.iter().all(|parent| parent.mode == 0);
        out::put([b"--- ", &side(&style.old_prefix, !added)[..], b"\n"].concat());
        out::put([b"+++ ", &side(&style.new_prefix, result.mode != 0)[..], b"\n"].concat());
        out::put(body);
    }
    Ok(())
}

fn modes(parents: &[Version], result: &Version, differ: bool) {
    if !differ {
        return;
    }
    let list: Vec<String> = parents.iter().map(|parent| format!("{:06o}", parent.mode)).collect();
    if result.mode == 0 {
        out::line(format_args!("deleted file mode {}", list.join(",")));
    } else if parents.iter().all(|parent| parent.mode == 0) {
        out::line(format_args!("new file mode {:06o}", result.mode));
    } else {
        out::line(format_args!("mode {}..{:06o}", list.join(","), result.mode));
    }
}

fn body(parents: &[Version], result: &Version, style: &Style, dense: bool) -> Vec<u8> {
    let new = lines::split(&result.content);
    let olds: Vec<Vec<&[u8]>> = parents.iter().map(|parent| lines::split(&parent.content)).collect();
    let mut all: Vec<Line<'_>> = Vec::new();
    all.resize_with(new.len() + 1, Line::default);
    // For each parent the number of its line that stands at, or would stand before, each line of the result.
    let mut numbers = vec![vec![0; new.len() + 2]; olds.len()];
    for (at, old) in olds.iter().enumerate() {
        compare(at, old, &new, style, &mut all, &mut numbers[at]);
    }
    mark(&mut all, olds.len(), style.context, dense);
    let mut text = Vec::new();
    let mut at = 0;
    while at < all.len() {
        if !all[at].shown {
            at += 1;
            continue;
        }
        let end = (at..all.len()).find(|next| !all[*next].shown).unwrap_or(all.len());
        hunk(&all, at..end, &olds, &new, &numbers, &mut text);
        at = end;
    }
    text
}

fn compare<'a>(
    parent: usize,
    old: &[&'a [u8]],
    new: &[&[u8]],
    style: &Style,
    all: &mut [Line<'a>],
    numbers: &mut [usize],
) {
    let mut old_at = 0;
    let mut new_at = 0;
    let hunks = lines::hunks_by(old, new, style.space, &style.algorithm);
    for hunk in &hunks {
        while new_at < hunk.new.start {
            numbers[new_at] = old_at;
            (old_at, new_at) = (old_at + 1, new_at + 1);
        }
        numbers[new_at] = old_at;
        lose(&mut all[new_at].lost, &old[hunk.old.clone()], 1 << parent);
        old_at = hunk.old.end;
        for at in hunk.new.clone() {
            all[at].lacking |= 1 << parent;
            if at > hunk.new.start {
                numbers[at] = old_at;
            }
        }
        new_at = hunk.new.end;
    }
    while new_at < new.len() {
        numbers[new_at] = old_at;
        (old_at, new_at) = (old_at + 1, new_at + 1);
    }
    numbers[new_at] = numbers[new_at].max(if hunks.last().is_some_and(|hunk| hunk.new.end == new.len()) {
        hunks.last().map_or(0, |hunk| if hunk.new.is_empty() { hunk.old.start } else { old_at })
    } else {
        old_at
    });
    numbers[new_at + 1] = old.len();
}

/// Adds lines that a parent had: those that another parent had too are shown once.
fn lose<'a>(lost: &mut Vec<Lost<'a>>, lines: &[&'a [u8]], parent: u64) {
    if lost.is_empty() {
        lost.extend(lines.iter().map(|text| Lost { text, parents: parent }));
        return;
    }
    // The longest common subsequence, from the ends of both.
    let (rows, columns) = (lost.len(), lines.len());
    if rows.saturating_mul(columns) > 4_000_000 {
        lost.extend(lines.iter().map(|text| Lost { text, parents: parent }));
        return;
    }
    let mut length = vec![vec![0u32; columns + 1]; rows + 1];
    for row in 0..rows {
        for column in 0..columns {
            length[row + 1][column + 1] = if lost[row].text == lines[column] {
                length[row][column] + 1
            } else {
                length[row + 1][column].max(length[row][column + 1])
            };
        }
    }
    let (mut row, mut column) = (rows, columns);
    let mut merged = Vec::new();
    let mut old: Vec<Lost<'a>> = std::mem::take(lost);
    while row > 0 || column > 0 {
        if row > 0 && column > 0 && old[row - 1].text == lines[column - 1] {
            let mut both = old.pop().expect("there is a row");
            both.parents |= parent;
            merged.push(both);
            (row, column) = (row - 1, column - 1);
        } else if column > 0 && (row == 0 || length[row][column - 1] >= length[row - 1][column]) {
            merged.push(Lost { text: lines[column - 1], parents: parent });
            column -= 1;
        } else {
            merged.push(old.pop().expect("there is a row"));
            row -= 1;
        }
    }
    merged.reverse();
    *lost = merged;
}

/// Decides which lines are shown.
fn mark(all: &mut [Line<'_>], parents: usize, context: usize, dense: bool) {
    let everybody = (1u64 << parents) - 1;
    let interesting = |line: &Line<'_>| line.lacking != 0 || !line.lost.is_empty();
    let mut keep: Vec<bool> = all.iter().map(interesting).collect();
    if dense {
        let mut at = 0;
        while at < all.len() {
            if !keep[at] {
                at += 1;
                continue;
            }
            let mut end = at;
            // Differences that are closer than this are looked at together.
            let mut last = at;
            while end < all.len() && end - last <= context + 1 {
                if keep[end] {
                    last = end;
                }
                end += 1;
            }
            let range = at..last + 1;
            if !tells(&all[range.clone()], everybody) {
                keep[range].fill(false);
            }
            at = last + 1;
        }
    }
    let count = all.len();
    for at in (0..count).filter(|at| keep[*at]) {
        let end = (at + context + usize::from(all[at].lacking != 0)).min(count);
        all[at.saturating_sub(context)..end].iter_mut().for_each(|line| line.shown = true);
        all[at].shown = true;
    }
}

/// Whether what differs is not simply what one of the parents has.
fn tells(lines: &[Line<'_>], everybody: u64) -> bool {
    let mut same = None;
    let differences = lines.iter().flat_map(|line| {
        let own = (line.lacking != 0).then_some(line.lacking);
        own.into_iter().chain(line.lost.iter().map(|lost| lost.parents))
    });
    for parents in differences {
        if *same.get_or_insert(parents) != parents {
            return true;
        }
    }
    same == Some(everybody)
}

fn hunk(
    all: &[Line<'_>],
    range: Range<usize>,
    olds: &[Vec<&[u8]>],
    new: &[&[u8]],
    numbers: &[Vec<usize>],
    text: &mut Vec<u8>,
) {
    let signs = "@".repeat(olds.len() + 1);
    text.extend_from_slice(signs.as_bytes());
    for numbers in numbers {
        let start = numbers[range.start];
        let end = numbers[if range.end > new.len() { new.len() + 1 } else { range.end }];
        let start_shown = if end == start && start == 0 { 0 } else { start + 1 };
        text.extend_from_slice(format!(" -{start_shown},{}", end - start).as_bytes());
    }
    let rows = range.end.min(new.len()) - range.start.min(new.len());
    let first = if new.is_empty() { 0 } else { range.start + 1 };
    text.extend_from_slice(format!(" +{first},{rows} {signs}").as_bytes());
    if let Some(heading) = patch::heading(new, range.start) {
        text.push(b' ');
        text.extend_from_slice(&heading);
    }
    text.push(b'\n');
    let mut put = |signs: &mut dyn Iterator<Item = u8>, line: &[u8]| {
        text.extend(signs);
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    };
    let count = olds.len();
    for at in range {
        for lost in &all[at].lost {
            let sign = |parent: usize| if lost.parents >> parent & 1 == 1 { b'-' } else { b' ' };
            put(&mut (0..count).map(sign), lost.text);
        }
        if let Some(line) = new.get(at) {
            let sign = |parent: usize| if all[at].lacking >> parent & 1 == 1 { b'+' } else { b' ' };
            put(&mut (0..count).map(sign), line);
        }
    }
}

/// The parents' versions and the result of a path that a merge changed.
pub fn versions(repo: &Repo, row: &[&Change]) -> Res<(Vec<Version>, Version)> {
    let parents = row.iter().map(|change| Version::of(repo, &change.old)).collect::<Res<Vec<_>>>()?;
    Ok((parents, Version::of(repo, &row[0].new)?))
}

/// A file of the work tree against the two versions that are to be merged.
pub fn conflict(repo: &Repo, path: &[u8], sides: [&crate::index::Entry; 2], style: &Style) -> Res<()> {
    let version = |entry: &crate::index::Entry| -> Res<Version> {
        Version::of(repo, &crate::change::Side::of(path, entry.mode, entry.oid))
    };
    let parents = [version(sides[0])?, version(sides[1])?];
    let result = match crate::worktree::stat(repo, path) {
        Some(stat) => {
            let mode = crate::worktree::mode_in(repo, &stat, Some(sides[0]));
            let content = crate::worktree::content(&repo.in_tree(path), &stat)?;
            let oid = hash::of_object("blob", &content);
            let known = parents.iter().any(|parent| parent.oid == oid && parent.mode == mode);
            Version { mode, content, oid: if known { oid } else { Oid::NULL } }
        }
        None => Version { mode: 0, content: Vec::new(), oid: Oid::NULL },
    };
    write(repo, path, &parents, &result, style, true)
}
