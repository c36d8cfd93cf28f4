//! Where in a file a hunk belongs.

use super::parse::{Hunk, Kind};

/// How a hunk was placed.
pub struct Placed {
    /// The line it was applied at, from 0, in the file as it was.
    pub at: usize,
    /// How many lines of its context did not count.
    pub fuzz: usize,
}

/// Finds the lines a hunk wants, near where it expects them, with as little fuzz as possible.
pub fn place(
    hunk: &Hunk,
    lines: &[Vec<u8>],
    expected: isize,
    from: usize,
    most_fuzz: usize,
) -> Option<Placed> {
    let wanted = hunk.side(Kind::Added);
    let before = hunk.lines.iter().take_while(|(kind, _)| *kind == Kind::Context).count();
    let after = hunk.lines.iter().rev().take_while(|(kind, _)| *kind == Kind::Context).count();
    let context = before.max(after);
    for fuzz in 0..=most_fuzz.min(context) {
        // Fuzz eats the longer context first.
        let skip = (fuzz + before).saturating_sub(context);
        let cut = (fuzz + after).saturating_sub(context);
        if skip + cut > wanted.len() {
            break;
        }
        let core = &wanted[skip..wanted.len() - cut];
        // A hunk with less context before it than after begins its file, and so for the end.
        let begins = fuzz == 0 && before < after && hunk.old_start <= 1;
        let ends = fuzz == 0 && after < before;
        let fits = |start: isize| {
            let Ok(start) = usize::try_from(start) else { return false };
            let at = start + skip;
            start >= from
                && (!begins || start == 0)
                && (!ends || at + core.len() == lines.len())
                && lines
                    .get(at..at + core.len())
                    .is_some_and(|found| found.iter().zip(core).all(|(a, b)| a == b))
        };
        let farthest = lines.len() as isize + expected.abs() + 1;
        let found = (0..=farthest)
            .find_map(|offset| [expected + offset, expected - offset].into_iter().find(|&start| fits(start)));
        if let Some(start) = found {
            return Some(Placed { at: start as usize, fuzz });
        }
    }
    None
}

/// The lines a hunk leaves, with the file's own context.
pub fn replacement(hunk: &Hunk, lines: &[Vec<u8>], at: usize) -> (usize, Vec<Vec<u8>>) {
    let (mut place, mut result) = (at, Vec::new());
    for (kind, line) in &hunk.lines {
        match kind {
            Kind::Context => {
                result.push(lines.get(place).unwrap_or(line).clone());
                place += 1;
            }
            Kind::Removed => place += 1,
            Kind::Added => result.push(line.clone()),
        }
    }
    (place - at, result)
}
