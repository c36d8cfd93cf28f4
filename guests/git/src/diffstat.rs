//! How much changed, file by file.

use crate::change::Change;
use crate::fail::Res;
use crate::files::text;
use crate::lines;
use crate::out;
use crate::patch::{self, Style};
use crate::quote;
use crate::repo::Repo;

pub struct Line {
    pub name: Vec<u8>,
    pub added: usize,
    pub removed: usize,
    pub binary: bool,
    pub unmerged: bool,
}

/// `a/{b => c}/d` for a rename.
pub fn rename_name(old: &[u8], new: &[u8]) -> Vec<u8> {
    if quote::path(old) != old || quote::path(new) != new {
        return [&quote::path(old)[..], b" => ", &quote::path(new)].concat();
    }
    let shared = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let prefix = old[..shared].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    // The slash that ends the prefix may be the one that starts the suffix.
    let least = prefix.saturating_sub(1).max(if prefix == 0 { 0 } else { prefix - 1 });
    let mut suffix = 0;
    let mut count = 0;
    while old.len() - count > least && new.len() - count > least {
        let (a, b) = (old[old.len() - count - 1], new[new.len() - count - 1]);
        if a != b {
            break;
        }
        count += 1;
        if a == b'/' {
            suffix = count;
        }
    }
    if prefix == 0 && suffix == 0 {
        return [old, b" => ", new].concat();
    }
    let middle = |path: &[u8]| {
        path[prefix.min(path.len())..]
            .get(..(path.len().saturating_sub(prefix + suffix)))
            .unwrap_or(b"")
            .to_vec()
    };
    [&old[..prefix], b"{", &middle(old), b" => ", &middle(new), b"}", &old[old.len() - suffix..]].concat()
}

pub fn count(repo: &Repo, changes: &[Change], style: &Style) -> Res<Vec<Line>> {
    let mut stat = Vec::new();
    for change in changes {
        let name = match change.status {
            b'R' | b'C' => rename_name(&change.old.path, &change.new.path),
            _ => quote::path(change.path()),
        };
        if change.status == b'U' {
            stat.push(Line { name, added: 0, removed: 0, binary: false, unmerged: true });
            continue;
        }
        let (old, new) = (change.old.content(repo)?, change.new.content(repo)?);
        if !style.as_text && (lines::is_binary(&old) || lines::is_binary(&new)) {
            let same = old == new;
            let (added, removed) = if same { (0, 0) } else { (new.len(), old.len()) };
            stat.push(Line { name, added, removed, binary: true, unmerged: false });
            continue;
        }
        let (old, new) = (lines::split(&old), lines::split(&new));
        let hunks = patch::hunks(&old, &new, style);
        let added = hunks.iter().map(|hunk| hunk.new.len()).sum();
        let removed = hunks.iter().map(|hunk| hunk.old.len()).sum();
        let nothing_left =
            added == 0 && removed == 0 && change.status == b'M' && change.old.mode == change.new.mode;
        if !nothing_left {
            stat.push(Line { name, added, removed, binary: false, unmerged: false });
        }
    }
    Ok(stat)
}

/// The widths that `--stat=WIDTH,NAME` gives, and how many files are listed.
#[derive(Clone, Copy, Default, Debug)]
pub struct Widths {
    pub total: Option<usize>,
    pub name: Option<usize>,
    pub count: Option<usize>,
    pub graph: Option<usize>,
}

fn scale(count: usize, width: usize, most: usize) -> usize {
    if count == 0 { 0 } else { 1 + count * (width - 1) / most }
}

fn digits(number: usize) -> usize {
    number.to_string().len()
}

/// Writes the table of `--stat`.
pub fn table(stat: &[Line], widths: Widths) {
    let columns = || {
        std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok()).filter(|_| wardian_abi::isatty(1))
    };
    let mut width = widths.total.or_else(columns).unwrap_or(80);
    let shown = &stat[..widths.count.unwrap_or(stat.len()).min(stat.len())];
    let display = |name: &[u8]| text(name).chars().count();
    let longest = shown.iter().map(|line| display(&line.name)).max().unwrap_or(0);
    let text_lines = || shown.iter().filter(|line| !line.binary && !line.unmerged);
    let most = text_lines().map(|line| line.added + line.removed).max().unwrap_or(0);
    let bin_width = shown
        .iter()
        .filter(|line| line.binary)
        .map(|line| 14 + digits(line.added) + digits(line.removed))
        .max();
    let unmerged_width = shown.iter().any(|line| line.unmerged).then_some(8);
    let bin_width = bin_width.unwrap_or(0).max(unmerged_width.unwrap_or(0));
    let number = digits(most).max(if shown.iter().any(|line| line.binary) { 3 } else { 0 });
    width = width.max(16 + 6 + number);
    let mut graph = if most + 4 > bin_width { most } else { bin_width - 4 };
    graph = graph.min(widths.graph.unwrap_or(graph));
    let mut name_width = widths.name.filter(|name| *name < longest).unwrap_or(longest);
    if name_width + number + 6 + graph > width {
        let limit = (width * 3 / 8).saturating_sub(number + 6);
        if graph > limit {
            graph = limit.max(6);
        }
        if name_width > width - number - 6 - graph {
            name_width = width - number - 6 - graph;
        } else {
            graph = width - number - 6 - name_width;
        }
    }
    for line in shown {
        row(line, name_width, number, graph, most);
    }
    if shown.len() < stat.len() {
        out::line(" ...");
    }
    summary(stat);
}

fn row(line: &Line, name_width: usize, number: usize, graph: usize, most: usize) {
    let full = text(&line.name);
    let length = full.chars().count();
    let mut name = full.clone();
    if length > name_width {
        let tail: String = full.chars().skip(length - name_width.saturating_sub(3)).collect();
        let tail = tail.find('/').map_or(tail.clone(), |at| tail[at..].to_owned());
        name = format!("...{tail}");
    }
    let pad = " ".repeat(name_width.saturating_sub(name.chars().count()));
    if line.unmerged {
        // The line does not end here in native git either.
        out::put(format!(" {name}{pad} | {:>number$}", "Unmerged"));
        return;
    }
    if line.binary {
        let sizes = match line.added + line.removed {
            0 => String::new(),
            _ => format!(" {} -> {} bytes", line.removed, line.added),
        };
        out::line(format_args!(" {name}{pad} | {:>number$}{sizes}", "Bin"));
        return;
    }
    let (mut added, mut removed) = (line.added, line.removed);
    if graph <= most {
        let mut total = scale(added + removed, graph, most);
        if total < 2 && added > 0 && removed > 0 {
            total = 2;
        }
        if added < removed {
            added = scale(added, graph, most);
            removed = total - added;
        } else {
            removed = scale(removed, graph, most);
            added = total - removed;
        }
    }
    let space = if line.added + line.removed > 0 { " " } else { "" };
    let bars = "+".repeat(added) + &"-".repeat(removed);
    out::line(format_args!(" {name}{pad} | {:>number$}{space}{bars}", line.added + line.removed));
}

/// The same with wider numbers, as `git apply --stat` has it.
pub fn wide_table(stat: &[Line]) {
    let longest = stat.iter().map(|line| text(&line.name).chars().count()).max().unwrap_or(0).min(50);
    let most = stat.iter().map(|line| line.added + line.removed).max().unwrap_or(0);
    stat.iter().for_each(|line| row(line, longest, 4, most.min(70 - longest), most));
    summary(stat);
}

/// ` 2 files changed, 3 insertions(+)`
pub fn summary(stat: &[Line]) {
    let merged = || stat.iter().filter(|line| !line.unmerged);
    let files = merged().count();
    let added: usize = merged().filter(|line| !line.binary).map(|line| line.added).sum();
    let removed: usize = merged().filter(|line| !line.binary).map(|line| line.removed).sum();
    out::line(summary_text(files, added, removed));
}

pub fn summary_text(files: usize, added: usize, removed: usize) -> String {
    if files == 0 {
        return " 0 files changed".to_owned();
    }
    let many = |count: usize| if count == 1 { "" } else { "s" };
    let mut text = format!(" {files} file{} changed", many(files));
    if added > 0 || removed == 0 {
        text += &format!(", {added} insertion{}(+)", many(added));
    }
    if removed > 0 || added == 0 {
        text += &format!(", {removed} deletion{}(-)", many(removed));
    }
    text
}

/// The lines of `--numstat`.
pub fn numbers(stat: &[Line], changes: &[Change], zero: bool) {
    for (line, change) in stat.iter().zip(changes) {
        let counts =
            if line.binary { "-\t-".to_owned() } else { format!("{}\t{}", line.added, line.removed) };
        let renamed = matches!(change.status, b'R' | b'C');
        match (zero, renamed) {
            (true, true) => out::put(
                [counts.as_bytes(), b"\t\0", &change.old.path, b"\0", &change.new.path, b"\0"].concat(),
            ),
            (true, false) => out::put([counts.as_bytes(), b"\t", change.path(), b"\0"].concat()),
            _ => out::put([counts.as_bytes(), b"\t", &line.name, b"\n"].concat()),
        }
    }
}

/// The lines of `--summary`: files that came, went or changed their mode or name.
pub fn events(changes: &[Change]) {
    for change in changes {
        let (old, new) = (&change.old, &change.new);
        match change.status {
            b'A' => out::put(
                [format!(" create mode {:06o} ", new.mode).as_bytes(), &quote::path(&new.path), b"\n"]
                    .concat(),
            ),
            b'D' => out::put(
                [format!(" delete mode {:06o} ", old.mode).as_bytes(), &quote::path(&old.path), b"\n"]
                    .concat(),
            ),
            b'R' | b'C' => {
                let verb = if change.status == b'R' { " rename " } else { " copy " };
                let name = rename_name(&old.path, &new.path);
                out::put([verb.as_bytes(), &name, format!(" ({}%)\n", change.score).as_bytes()].concat());
                if old.mode != new.mode {
                    out::line(format_args!(" mode change {:06o} => {:06o}", old.mode, new.mode));
                }
            }
            _ if old.mode != new.mode && old.mode != 0 && new.mode != 0 => {
                let modes = format!(" mode change {:06o} => {:06o} ", old.mode, new.mode);
                out::put([modes.as_bytes(), &quote::path(&new.path), b"\n"].concat());
            }
            _ => {}
        }
    }
}
