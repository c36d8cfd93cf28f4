//! How differences are printed.

use super::compare::Hunk;
use super::text::Text;
use toolkit::out::Out;

/// The form of the output.
#[derive(Clone, Copy, PartialEq)]
pub enum Format {
    Normal,
    Unified(usize),
    Context(usize),
    SideBySide,
    Ed,
    Rcs,
}

/// The two files, as their headings name them, and their lines.
pub struct Pair<'a> {
    pub old: &'a Text,
    pub new: &'a Text,
    pub old_heading: String,
    pub new_heading: String,
}

/// What `-y` is told.
#[derive(Clone, Copy)]
pub struct Sides {
    pub width: usize,
    pub left_only: bool,
    pub without_common: bool,
}

impl Pair<'_> {
    pub fn show(&self, hunks: &[Hunk], format: Format, sides: Sides, out: &mut Out) {
        match format {
            Format::Normal => hunks.iter().for_each(|hunk| self.normal(hunk, out)),
            Format::Ed => hunks.iter().rev().for_each(|hunk| self.ed(hunk, out)),
            Format::Rcs => hunks.iter().for_each(|hunk| self.rcs(hunk, out)),
            Format::Unified(context) => {
                out.put(format!("--- {}\n+++ {}\n", self.old_heading, self.new_heading));
                grouped(hunks, context).for_each(|group| self.unified(group, context, out));
            }
            Format::Context(context) => {
                out.put(format!("*** {}\n--- {}\n", self.old_heading, self.new_heading));
                grouped(hunks, context).for_each(|group| self.context(group, context, out));
            }
            Format::SideBySide => self.side_by_side(hunks, sides, out),
        }
    }

    fn normal(&self, hunk: &Hunk, out: &mut Out) {
        let letter = match (hunk.old.0 == hunk.old.1, hunk.new.0 == hunk.new.1) {
            (true, _) => 'a',
            (_, true) => 'd',
            _ => 'c',
        };
        out.put(format!("{}{letter}{}\n", span(hunk.old), span(hunk.new)));
        (hunk.old.0..hunk.old.1).for_each(|at| self.old.put(at, b"< ", out));
        if letter == 'c' {
            out.put("---\n");
        }
        (hunk.new.0..hunk.new.1).for_each(|at| self.new.put(at, b"> ", out));
    }

    fn ed(&self, hunk: &Hunk, out: &mut Out) {
        let (letter, has_text) = match (hunk.old.0 == hunk.old.1, hunk.new.0 == hunk.new.1) {
            (true, _) => ('a', true),
            (_, true) => ('d', false),
            _ => ('c', true),
        };
        out.put(format!("{}{letter}\n", span(hunk.old)));
        if has_text {
            (hunk.new.0..hunk.new.1).for_each(|at| out.put([self.new.line(at), b"\n"].concat()));
            out.put(".\n");
        }
    }

    /// The script of `-n`: what is deleted and added, by line and count.
    fn rcs(&self, hunk: &Hunk, out: &mut Out) {
        let (deleted, added) = (hunk.old.1 - hunk.old.0, hunk.new.1 - hunk.new.0);
        if deleted > 0 {
            out.put(format!("d{} {deleted}\n", hunk.old.0 + 1));
        }
        if added > 0 {
            out.put(format!("a{} {added}\n", hunk.old.1));
            (hunk.new.0..hunk.new.1).for_each(|at| out.put([self.new.line(at), b"\n"].concat()));
        }
    }

    /// The lines around a group of hunks, in both files.
    fn around(&self, group: &[Hunk], context: usize) -> Hunk {
        let (first, last) = (group[0], group[group.len() - 1]);
        let before = first.old.0.min(context);
        let after = (self.old.lines.len() - last.old.1).min(context);
        Hunk {
            old: (first.old.0 - before, last.old.1 + after),
            new: (first.new.0 - before, last.new.1 + after),
        }
    }

    fn unified(&self, group: &[Hunk], context: usize, out: &mut Out) {
        let around = self.around(group, context);
        out.put(format!("@@ -{} +{} @@\n", counted(around.old), counted(around.new)));
        let mut at = around.old.0;
        for hunk in group {
            (at..hunk.old.0).for_each(|at| self.old.put(at, b" ", out));
            (hunk.old.0..hunk.old.1).for_each(|at| self.old.put(at, b"-", out));
            (hunk.new.0..hunk.new.1).for_each(|at| self.new.put(at, b"+", out));
            at = hunk.old.1;
        }
        (at..around.old.1).for_each(|at| self.old.put(at, b" ", out));
    }

    fn context(&self, group: &[Hunk], context: usize, out: &mut Out) {
        let around = self.around(group, context);
        out.put(format!("***************\n*** {} ****\n", lines_of(around.old)));
        let is_change = |hunk: &Hunk| hunk.old.0 < hunk.old.1 && hunk.new.0 < hunk.new.1;
        if group.iter().any(|hunk| hunk.old.0 < hunk.old.1) {
            let mut at = around.old.0;
            for hunk in group {
                (at..hunk.old.0).for_each(|at| self.old.put(at, b"  ", out));
                let mark: &[u8] = if is_change(hunk) { b"! " } else { b"- " };
                (hunk.old.0..hunk.old.1).for_each(|at| self.old.put(at, mark, out));
                at = hunk.old.1;
            }
            (at..around.old.1).for_each(|at| self.old.put(at, b"  ", out));
        }
        out.put(format!("--- {} ----\n", lines_of(around.new)));
        if group.iter().any(|hunk| hunk.new.0 < hunk.new.1) {
            let mut at = around.new.0;
            for hunk in group {
                (at..hunk.new.0).for_each(|at| self.new.put(at, b"  ", out));
                let mark: &[u8] = if is_change(hunk) { b"! " } else { b"+ " };
                (hunk.new.0..hunk.new.1).for_each(|at| self.new.put(at, mark, out));
                at = hunk.new.1;
            }
            (at..around.new.1).for_each(|at| self.new.put(at, b"  ", out));
        }
    }

    fn side_by_side(&self, hunks: &[Hunk], sides: Sides, out: &mut Out) {
        let layout = Columns::new(sides.width);
        let (mut x, mut y) = (0, 0);
        let end = Hunk {
            old: (self.old.lines.len(), self.old.lines.len()),
            new: (self.new.lines.len(), self.new.lines.len()),
        };
        for hunk in hunks.iter().chain([&end]) {
            while x < hunk.old.0 {
                if !sides.without_common {
                    let (old, new) = (&self.old.lines[x][..], &self.new.lines[y][..]);
                    match sides.left_only {
                        true => layout.put(Some(old), b'(', None, out),
                        false => layout.put(Some(old), b' ', Some(new), out),
                    }
                }
                (x, y) = (x + 1, y + 1);
            }
            while x < hunk.old.1 || y < hunk.new.1 {
                let old = (x < hunk.old.1).then(|| &self.old.lines[x][..]);
                let new = (y < hunk.new.1).then(|| &self.new.lines[y][..]);
                let is_whole = |line: &[u8]| line.ends_with(b"\n");
                let mark = match (old, new) {
                    (Some(old), Some(new)) if is_whole(old) && !is_whole(new) => b'/',
                    (Some(old), Some(new)) if !is_whole(old) && is_whole(new) => b'\\',
                    (Some(_), Some(_)) => b'|',
                    (Some(_), None) => b'<',
                    _ => b'>',
                };
                layout.put(old, mark, new, out);
                (x, y) = (x + usize::from(old.is_some()), y + usize::from(new.is_some()));
            }
        }
    }
}

/// Hunks whose lines around them touch go together.
fn grouped(hunks: &[Hunk], context: usize) -> impl Iterator<Item = &[Hunk]> {
    hunks.chunk_by(move |left, right| right.old.0 - left.old.1 <= 2 * context)
}

/// Lines as a normal diff counts them: `3`, `3,5`, or the one before for none.
fn span((start, end): (usize, usize)) -> String {
    match end - start {
        0 => start.to_string(),
        1 => end.to_string(),
        _ => format!("{},{end}", start + 1),
    }
}

/// Lines as a unified diff counts them: the first and how many.
fn counted((start, end): (usize, usize)) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => end.to_string(),
        count => format!("{},{count}", start + 1),
    }
}

/// Lines as a context diff counts them: the first and the last.
fn lines_of((start, end): (usize, usize)) -> String {
    if end - start <= 1 { end.to_string() } else { format!("{},{end}", start + 1) }
}

/// Where the two halves of a line stand.
struct Columns {
    half: usize,
    second: usize,
}

impl Columns {
    fn new(width: usize) -> Columns {
        // The second column starts at a tab stop, with three columns between.
        let width = width as isize;
        let offset = ((width + 8 + 3) / 16 * 8).max(0);
        let half = (offset - 3).min(width - offset).max(0) as usize;
        Columns { half, second: if half == 0 { width as usize } else { offset as usize } }
    }

    /// Prints two lines side by side, with a newline if one of them has it.
    fn put(&self, old: Option<&[u8]>, mark: u8, new: Option<&[u8]>, out: &mut Out) {
        let is_whole = [old, new].iter().flatten().any(|line| line.ends_with(b"\n"));
        let without = |line: &'_ [u8]| line.strip_suffix(b"\n").map_or(line.len(), <[u8]>::len);
        let (old, new) = (old.map(|line| &line[..without(line)]), new.map(|line| &line[..without(line)]));
        let mut line = Vec::new();
        let mut column = old.map_or(0, |old| fill(old, self.half, 0, &mut line));
        if mark != b' ' || new.is_some_and(|new| !new.is_empty()) {
            let at = if mark == b' ' { self.second } else { (self.half + self.second - 1) / 2 };
            column = pad(column, at, &mut line);
            if mark != b' ' {
                line.push(mark);
                column += 1;
            }
        }
        if let Some(new) = new.filter(|new| !new.is_empty()) {
            pad(column, self.second, &mut line);
            fill(new, self.half, self.second, &mut line);
        }
        if is_whole {
            line.push(b'\n');
        }
        out.put(line);
    }
}

/// Goes on to a column, by tabs as far as they go.
fn pad(mut column: usize, to: usize, line: &mut Vec<u8>) -> usize {
    while (column / 8 + 1) * 8 <= to {
        line.push(b'\t');
        column = (column / 8 + 1) * 8;
    }
    line.resize(line.len() + to.saturating_sub(column), b' ');
    to.max(column)
}

/// As much of a line as fits; answers the column it ends at.
fn fill(text: &[u8], width: usize, start: usize, line: &mut Vec<u8>) -> usize {
    let mut column = 0;
    for chunk in text.utf8_chunks() {
        for char in chunk.valid().chars() {
            if char == '\t' {
                let next = (column / 8 + 1) * 8;
                if next > width {
                    return start + column;
                }
                line.resize(line.len() + next - column, b' ');
                column = next;
            } else if column < width {
                line.extend(char.encode_utf8(&mut [0; 4]).bytes());
                column += 1;
            } else {
                return start + column;
            }
        }
        line.extend_from_slice(chunk.invalid());
        column += chunk.invalid().len();
    }
    start + column
}
