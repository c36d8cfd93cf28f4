//! Differences as patches.

use crate::change::Change;
use crate::fail::Res;
use crate::hash::{self, Oid};
use crate::lines::{self, Hunk, Space};
use crate::out;
use crate::quote;
use crate::repo::Repo;

/// How patches are written.
#[derive(Clone, Debug)]
pub struct Style {
    pub context: usize,
    pub inter_hunk: usize,
    pub space: Space,
    pub ignore_blank_lines: bool,
    pub function_context: bool,
    pub algorithm: String,
    pub old_prefix: Vec<u8>,
    pub new_prefix: Vec<u8>,
    pub full_index: bool,
    pub abbrev: Option<usize>,
    pub as_text: bool,
}

impl Default for Style {
    fn default() -> Style {
        Style {
            context: 3,
            inter_hunk: 0,
            space: Space::All,
            ignore_blank_lines: false,
            function_context: false,
            algorithm: "myers".to_owned(),
            old_prefix: b"a/".to_vec(),
            new_prefix: b"b/".to_vec(),
            full_index: false,
            abbrev: None,
            as_text: false,
        }
    }
}

/// The line that says what is around a hunk: one that starts with a letter.
pub fn heading(lines: &[&[u8]], before: usize) -> Option<Vec<u8>> {
    let starts = |line: &&&[u8]| {
        line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'))
    };
    let line = lines[..before.min(lines.len())].iter().rev().find(starts)?;
    let mut line = line[..line.len().min(80)].trim_ascii_end().to_vec();
    while std::str::from_utf8(&line).is_err_and(|error| error.error_len().is_none()) {
        line.pop();
    }
    Some(line)
}

/// The hunks that count, given what is ignored.
pub fn hunks(old: &[&[u8]], new: &[&[u8]], style: &Style) -> Vec<Hunk> {
    let mut hunks = lines::hunks_by(old, new, style.space, &style.algorithm);
    if style.ignore_blank_lines {
        let blank = |lines: &[&[u8]]| lines.iter().all(|line| line.trim_ascii().is_empty());
        hunks.retain(|hunk| !(blank(&old[hunk.old.clone()]) && blank(&new[hunk.new.clone()])));
    }
    hunks
}

/// The text of all hunks, with `@@` lines.
pub fn body(old: &[u8], new: &[u8], style: &Style) -> Vec<u8> {
    let (old, new) = (lines::split(old), lines::split(new));
    let hunks = hunks(&old, &new, style);
    let mut text = Vec::new();
    let mut at = 0;
    while at < hunks.len() {
        let mut end = at + 1;
        let near = 2 * style.context + style.inter_hunk;
        while end < hunks.len() && hunks[end].old.start - hunks[end - 1].old.end <= near {
            end += 1;
        }
        group(&hunks[at..end], &old, &new, style, &mut text);
        at = end;
    }
    text
}

fn group(hunks: &[Hunk], old: &[&[u8]], new: &[&[u8]], style: &Style, text: &mut Vec<u8>) {
    let (first, last) = (&hunks[0], &hunks[hunks.len() - 1]);
    let mut before = style.context.min(first.old.start);
    let mut after = style.context.min(old.len() - last.old.end);
    if style.function_context {
        (before, after) = (first.old.start, old.len() - last.old.end);
    }
    let old_range = first.old.start - before..last.old.end + after;
    let new_range = first.new.start - before.min(first.new.start)..last.new.end + after;
    let range = |range: &std::ops::Range<usize>| match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        count => format!("{},{count}", range.start + 1),
    };
    text.extend_from_slice(format!("@@ -{} +{} @@", range(&old_range), range(&new_range)).as_bytes());
    if let Some(heading) = heading(old, old_range.start) {
        text.push(b' ');
        text.extend_from_slice(&heading);
    }
    text.push(b'\n');
    let mut put = |sign: u8, line: &[u8]| {
        text.push(sign);
        text.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            text.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    };
    // Where space is ignored the context is shown as it is in the new file.
    let (mut at, mut new_at) = (old_range.start, new_range.start);
    for hunk in hunks {
        while at < hunk.old.start {
            put(b' ', new.get(new_at).copied().unwrap_or(old[at]));
            at += 1;
            new_at += 1;
        }
        old[hunk.old.clone()].iter().for_each(|line| put(b'-', line));
        new[hunk.new.clone()].iter().for_each(|line| put(b'+', line));
        at = hunk.old.end;
        new_at = hunk.new.end;
    }
    while at < old_range.end {
        put(b' ', new.get(new_at).copied().unwrap_or(old[at]));
        at += 1;
        new_at += 1;
    }
}

fn name(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    quote::path(&[prefix, path].concat())
}

/// The name in a `---` or `+++` line: a tab shows where one with spaces ends.
fn file_name(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    let mut text = name(prefix, path);
    text.extend(path.contains(&b' ').then_some(b'\t'));
    text
}

/// Writes the patch of one change.
pub fn write(repo: &Repo, change: &Change, style: &Style) -> Res<()> {
    if change.status == b'U' && change.old.mode != 0 && change.new.mode != 0 {
        let entry = |side: &crate::change::Side| {
            crate::index::Entry::new(&side.path, side.mode, side.oid.unwrap_or_default())
        };
        return crate::combined::conflict(
            repo,
            change.path(),
            [&entry(&change.old), &entry(&change.new)],
            style,
        );
    }
    if change.status == b'U' {
        out::put(b"* Unmerged path ");
        out::bytes_line(&change.new.path);
        return Ok(());
    }
    if change.status == b'T' {
        let mut removed = change.clone();
        removed.new = crate::change::Side::none(&change.old.path);
        removed.status = b'D';
        write(repo, &removed, style)?;
        let mut added = change.clone();
        added.old = crate::change::Side::none(&change.new.path);
        added.status = b'A';
        return write(repo, &added, style);
    }
    let (old, new) = (change.old.content(repo)?, change.new.content(repo)?);
    let binary = !style.as_text && (lines::is_binary(&old) || lines::is_binary(&new));
    let text = if binary { Vec::new() } else { body(&old, &new, style) };
    let mode_changed = change.old.mode != change.new.mode;
    let differs = if binary { old != new } else { !text.is_empty() };
    if !differs && !mode_changed && change.status == b'M' {
        return Ok(());
    }
    header(repo, change, style, (&old, &new));
    let null = b"/dev/null".to_vec();
    let names = |tab: bool| {
        let show = if tab { file_name } else { name };
        let old_name =
            if change.old.mode == 0 { null.clone() } else { show(&style.old_prefix, &change.old.path) };
        let new_name =
            if change.new.mode == 0 { null.clone() } else { show(&style.new_prefix, &change.new.path) };
        (old_name, new_name)
    };
    if binary && differs {
        let (old_name, new_name) = names(false);
        out::put([b"Binary files ", &old_name[..], b" and ", &new_name, b" differ\n"].concat());
    } else if differs {
        let (old_name, new_name) = names(true);
        out::put([b"--- ", &old_name[..], b"\n+++ ", &new_name, b"\n"].concat());
        out::put(&text);
    }
    Ok(())
}

fn header(repo: &Repo, change: &Change, style: &Style, contents: (&[u8], &[u8])) {
    let (old, new) = (&change.old, &change.new);
    let (old_path, new_path) = (name(&style.old_prefix, &old.path), name(&style.new_prefix, &new.path));
    out::put([b"diff --git ", &old_path[..], b" ", &new_path, b"\n"].concat());
    match (old.mode, new.mode) {
        (0, mode) => out::line(format_args!("new file mode {mode:06o}")),
        (mode, 0) => out::line(format_args!("deleted file mode {mode:06o}")),
        (old, new) if old != new => out::put(format!("old mode {old:06o}\nnew mode {new:06o}\n")),
        _ => {}
    }
    if matches!(change.status, b'R' | b'C') {
        let verb = if change.status == b'R' { "rename" } else { "copy" };
        out::line(format_args!("similarity index {}%", change.score));
        out::put([verb.as_bytes(), b" from ", &quote::path(&old.path), b"\n"].concat());
        out::put([verb.as_bytes(), b" to ", &quote::path(&new.path), b"\n"].concat());
    }
    let oid = |side: &crate::change::Side, content: &[u8]| match (side.mode, side.oid) {
        (0, _) => Oid::NULL,
        (_, Some(oid)) => oid,
        (_, None) => hash::of_object("blob", content),
    };
    let (left, right) = (oid(old, contents.0), oid(new, contents.1));
    if left != right {
        let show = |oid: &Oid| if style.full_index { oid.hex() } else { abbreviated(repo, oid, style) };
        let mode = if old.mode == new.mode { format!(" {:06o}", old.mode) } else { String::new() };
        out::line(format_args!("index {}..{}{mode}", show(&left), show(&right)));
    }
}

fn abbreviated(repo: &Repo, oid: &Oid, style: &Style) -> String {
    match style.abbrev {
        Some(length) => repo.odb.abbreviate(oid, Some(length)),
        None => repo.short(oid),
    }
}
