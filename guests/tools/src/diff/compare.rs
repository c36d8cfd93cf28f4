//! Which lines differ: Myers' shortest edit script, found from both ends at once, in linear space.
//!
//! Where several scripts are equally short the choice is GNU's: what cannot match at all is set aside first, and a run
//! of changes is moved as far down as it goes, unless it can then face a run on the other side.

use std::collections::HashMap;

/// For each line of the two files whether it is part of a change.
pub struct Changes {
    pub old: Vec<bool>,
    pub new: Vec<bool>,
}

/// A run of lines that differ: those from `old.0` up to `old.1` became those from `new.0` up to `new.1`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hunk {
    pub old: (usize, usize),
    pub new: (usize, usize),
}

/// The hunks that lead from one list of lines to another; lines are the same when their keys are.
pub fn hunks(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<Hunk> {
    let (old, new) = numbered(old, new);
    let mut changes = Changes { old: vec![false; old.len()], new: vec![false; new.len()] };
    let (kept_old, kept_new) = (kept(&old, &new, &mut changes.old), kept(&new, &old, &mut changes.new));
    let lines = |kept: &[usize], all: &[u32]| kept.iter().map(|&at| all[at]).collect::<Vec<_>>();
    let (x, y) = (lines(&kept_old, &old), lines(&kept_new, &new));
    let mut search = Search::new(&x, &y);
    search.compare(0, x.len(), 0, y.len());
    search.deleted.iter().for_each(|&at| changes.old[kept_old[at]] = true);
    search.inserted.iter().for_each(|&at| changes.new[kept_new[at]] = true);
    settle(&old, &mut changes.old, &changes.new);
    settle(&new, &mut changes.new, &changes.old);
    changes.hunks()
}

/// Lines as numbers, the same for the same line.
fn numbered(old: &[Vec<u8>], new: &[Vec<u8>]) -> (Vec<u32>, Vec<u32>) {
    let mut known: HashMap<&[u8], u32> = HashMap::new();
    let numbers: Vec<u32> = old
        .iter()
        .chain(new)
        .map(|line| {
            let next = known.len() as u32;
            *known.entry(line).or_insert(next)
        })
        .collect();
    let (left, right) = numbers.split_at(old.len());
    (left.to_vec(), right.to_vec())
}

/// The places of the lines that the other file has too; the others are changes for certain.
fn kept(lines: &[u32], others: &[u32], changed: &mut [bool]) -> Vec<usize> {
    let known: std::collections::HashSet<u32> = others.iter().copied().collect();
    let mut kept = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if known.contains(line) {
            kept.push(at);
        } else {
            changed[at] = true;
        }
    }
    kept
}

impl Changes {
    fn hunks(&self) -> Vec<Hunk> {
        let mut hunks = Vec::new();
        let (mut x, mut y) = (0, 0);
        while x < self.old.len() || y < self.new.len() {
            let start = (x, y);
            x += self.old[x..].iter().take_while(|changed| **changed).count();
            y += self.new[y..].iter().take_while(|changed| **changed).count();
            if (x, y) == start {
                (x, y) = (x + 1, y + 1);
            } else {
                hunks.push(Hunk { old: (start.0, x), new: (start.1, y) });
            }
        }
        hunks
    }
}

/// The furthest reaching paths on each diagonal, from the start and from the end.
struct Search<'a> {
    x: &'a [u32],
    y: &'a [u32],
    forward: Vec<isize>,
    backward: Vec<isize>,
    deleted: Vec<usize>,
    inserted: Vec<usize>,
    /// After so many steps a good script is taken for the best.
    patience: usize,
}

impl<'a> Search<'a> {
    fn new(x: &'a [u32], y: &'a [u32]) -> Search<'a> {
        let diagonals = x.len() + y.len() + 3;
        Search {
            x,
            y,
            forward: vec![0; diagonals],
            backward: vec![0; diagonals],
            deleted: Vec::new(),
            inserted: Vec::new(),
            patience: diagonals.isqrt().max(4096),
        }
    }

    /// Where a diagonal's entry is.
    fn at(&self, diagonal: isize) -> usize {
        (diagonal + self.y.len() as isize + 1) as usize
    }

    fn compare(&mut self, mut x: usize, mut x_end: usize, mut y: usize, mut y_end: usize) {
        while x < x_end && y < y_end && self.x[x] == self.y[y] {
            (x, y) = (x + 1, y + 1);
        }
        while x < x_end && y < y_end && self.x[x_end - 1] == self.y[y_end - 1] {
            (x_end, y_end) = (x_end - 1, y_end - 1);
        }
        if x == x_end {
            self.inserted.extend(y..y_end);
        } else if y == y_end {
            self.deleted.extend(x..x_end);
        } else {
            let (x_middle, y_middle) = self.middle(x, x_end, y, y_end);
            self.compare(x, x_middle, y, y_middle);
            self.compare(x_middle, x_end, y_middle, y_end);
        }
    }

    /// A point on a shortest path, where the searches from both ends meet.
    fn middle(&mut self, x: usize, x_end: usize, y: usize, y_end: usize) -> (usize, usize) {
        let (x, x_end, y, y_end) = (x as isize, x_end as isize, y as isize, y_end as isize);
        let (lowest, highest) = (x - y_end, x_end - y);
        let (start, end) = (x - y, x_end - y_end);
        let odd = (start - end) & 1 != 0;
        let (mut f_low, mut f_high, mut b_low, mut b_high) = (start, start, end, end);
        let (f_at, b_at) = (self.at(start), self.at(end));
        self.forward[f_at] = x;
        self.backward[b_at] = x_end;
        for step in 1.. {
            widen(&mut f_low, &mut f_high, lowest, highest, |diagonal| {
                let at = self.at(diagonal);
                self.forward[at] = -1;
            });
            let mut diagonal = f_high;
            while diagonal >= f_low {
                let reached = self.advance(diagonal, x_end, y_end);
                if odd && (b_low..=b_high).contains(&diagonal) && self.backward[self.at(diagonal)] <= reached
                {
                    return (reached as usize, (reached - diagonal) as usize);
                }
                diagonal -= 2;
            }
            widen(&mut b_low, &mut b_high, lowest, highest, |diagonal| {
                let at = self.at(diagonal);
                self.backward[at] = isize::MAX;
            });
            let mut diagonal = b_high;
            while diagonal >= b_low {
                let reached = self.retreat(diagonal, x, y);
                if !odd && (f_low..=f_high).contains(&diagonal) && reached <= self.forward[self.at(diagonal)]
                {
                    return (reached as usize, (reached - diagonal) as usize);
                }
                diagonal -= 2;
            }
            if step >= self.patience {
                return self.furthest((f_low, f_high), (x_end, y_end));
            }
        }
        unreachable!("the searches meet before they leave the square")
    }

    fn advance(&mut self, diagonal: isize, x_end: isize, y_end: isize) -> isize {
        let (below, above) = (self.forward[self.at(diagonal - 1)], self.forward[self.at(diagonal + 1)]);
        let mut x = if below < above { above } else { below + 1 };
        while x < x_end && x - diagonal < y_end && self.x[x as usize] == self.y[(x - diagonal) as usize] {
            x += 1;
        }
        let at = self.at(diagonal);
        self.forward[at] = x;
        x
    }

    fn retreat(&mut self, diagonal: isize, x_start: isize, y_start: isize) -> isize {
        let (below, above) = (self.backward[self.at(diagonal - 1)], self.backward[self.at(diagonal + 1)]);
        let mut x = if below < above { below } else { above - 1 };
        while x_start < x
            && y_start < x - diagonal
            && self.x[x as usize - 1] == self.y[(x - diagonal) as usize - 1]
        {
            x -= 1;
        }
        let at = self.at(diagonal);
        self.backward[at] = x;
        x
    }

    /// The point that the search from the start got furthest to.
    fn furthest(&self, (low, high): (isize, isize), (x_end, y_end): (isize, isize)) -> (usize, usize) {
        let points = (low..=high).rev().step_by(2).map(|diagonal| {
            let x = self.forward[self.at(diagonal)].min(x_end);
            let y = x - diagonal;
            if y > y_end { (y_end + diagonal, y_end) } else { (x, y) }
        });
        let (x, y) = points.max_by_key(|(x, y)| x + y).unwrap_or((x_end, y_end));
        (x as usize, y as usize)
    }
}

/// One more diagonal on each side, or one less where the square ends; the entries beyond are told.
fn widen(low: &mut isize, high: &mut isize, lowest: isize, highest: isize, mut beyond: impl FnMut(isize)) {
    if *low > lowest {
        *low -= 1;
        beyond(*low - 1);
    } else {
        *low += 1;
    }
    if *high < highest {
        *high += 1;
        beyond(*high + 1);
    } else {
        *high -= 1;
    }
}

/// Moves runs of changes down while the line after a run is the run's first, joining those it meets; back up to where
/// it faces a run in the other file, if it passed such a place.
fn settle(lines: &[u32], changed: &mut [bool], others: &[bool]) {
    let other_changed = |at: usize| others.get(at).copied().unwrap_or(false);
    let (mut at, mut other, end) = (0, 0, lines.len());
    loop {
        // To the next run, and to the line of the other file that it stands before.
        while at < end && !changed[at] {
            while other_changed(other) {
                other += 1;
            }
            other += 1;
            at += 1;
        }
        if at == end {
            return;
        }
        let mut start = at;
        while at < end && changed[at] {
            at += 1;
        }
        while other_changed(other) {
            other += 1;
        }
        loop {
            let length = at - start;
            // Up as far as it goes, so that runs above join.
            while start > 0 && lines[start - 1] == lines[at - 1] {
                start -= 1;
                at -= 1;
                changed[start] = true;
                changed[at] = false;
                while start > 0 && changed[start - 1] {
                    start -= 1;
                }
                other -= 1;
                while other > 0 && other_changed(other) {
                    other -= 1;
                }
            }
            // Where the run ends beside a run of the other file, if it does so on its way down.
            let mut facing = if other > 0 && other_changed(other - 1) { at } else { end };
            while at < end && lines[start] == lines[at] {
                changed[start] = false;
                changed[at] = true;
                start += 1;
                at += 1;
                while at < end && changed[at] {
                    at += 1;
                }
                other += 1;
                while other_changed(other) {
                    facing = at;
                    other += 1;
                }
            }
            if at - start == length {
                while facing < at {
                    start -= 1;
                    at -= 1;
                    changed[start] = true;
                    changed[at] = false;
                    other -= 1;
                    while other > 0 && other_changed(other) {
                        other -= 1;
                    }
                }
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(old: &str, new: &str) -> Vec<Hunk> {
        let lines = |text: &str| text.bytes().map(|byte| vec![byte]).collect::<Vec<_>>();
        hunks(&lines(old), &lines(new))
    }

    #[test]
    fn a_run_is_moved_down() {
        assert_eq!(found("abc", "ababc"), [Hunk { old: (2, 2), new: (2, 4) }]);
        assert_eq!(found("aab", "ab"), [Hunk { old: (1, 2), new: (1, 1) }]);
        assert_eq!(found("abc", "abc"), []);
        assert_eq!(found("abc", "xyz"), [Hunk { old: (0, 3), new: (0, 3) }]);
    }
}
