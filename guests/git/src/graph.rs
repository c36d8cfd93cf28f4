//! Histories as drawings: `git log --graph`.
//!
//! Lines of history are columns, two characters wide. The commits of a column are those that the drawing still has to reach.
//! A commit replaces itself in the columns by its parents; `mapping` says, for each character of the line, which of the
//! new columns it leads to, and lines are written until each leads straight down.

use crate::hash::Oid;

#[derive(Clone, Copy, PartialEq, Default, Debug)]
enum Step {
    /// Nothing is to be drawn but the columns.
    #[default]
    Rest,
    /// A commit before this one is not finished, and its rest is not drawn.
    Skip,
    /// Room is made for a commit with many parents.
    Room,
    Commit,
    Branches,
    Collapse,
}

#[derive(Default)]
pub struct Graph {
    commit: Oid,
    parents: Vec<Oid>,
    mark: u8,
    step: Step,
    last_step: Step,
    columns: Vec<Oid>,
    new_columns: Vec<Oid>,
    mapping: Vec<Option<usize>>,
    old_mapping: Vec<Option<usize>>,
    at: usize,
    last_at: usize,
    /// Where the first parent of a merge is drawn: to the left (0) or below (1).
    layout: Option<usize>,
    edges: isize,
    last_edges: isize,
    rows: usize,
    width: usize,
}

impl Graph {
    /// Takes the next commit, with the parents that will be drawn.
    pub fn next_commit(&mut self, commit: Oid, parents: Vec<Oid>, mark: u8) {
        (self.commit, self.parents, self.mark) = (commit, parents, mark);
        self.last_at = self.at;
        self.update_columns();
        self.rows = 0;
        self.step = match () {
            () if self.step != Step::Rest => Step::Skip,
            () if self.needs_room() => Step::Room,
            () => Step::Commit,
        };
    }

    fn update_columns(&mut self) {
        self.columns = std::mem::take(&mut self.new_columns);
        self.mapping = vec![None; 2 * (self.columns.len() + self.parents.len()).max(1)];
        self.width = 0;
        self.last_edges = std::mem::take(&mut self.edges);
        let mut seen = false;
        for at in 0..=self.columns.len() {
            let oid = match self.columns.get(at) {
                Some(oid) => *oid,
                None if seen => break,
                None => self.commit,
            };
            if oid != self.commit {
                self.lead_to(oid, None);
                continue;
            }
            seen = true;
            self.at = at;
            self.layout = None;
            for parent in self.parents.clone() {
                self.lead_to(parent, Some(at));
            }
            if self.parents.is_empty() {
                self.width += 2;
            }
        }
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.mapping.len() > 1 && self.mapping.last() == Some(&None) {
            self.mapping.pop();
        }
    }

    /// The next characters lead to a commit's column, which is made if there is none.
    fn lead_to(&mut self, oid: Oid, from: Option<usize>) {
        let column = self.new_columns.iter().position(|known| *known == oid).unwrap_or_else(|| {
            self.new_columns.push(oid);
            self.new_columns.len() - 1
        });
        let count = self.parents.len() as isize;
        let place = match from {
            Some(from) if count > 1 && self.layout.is_none() => {
                // The first parent of a merge may be to the left of it, and then the others fit closer.
                let distance = from as isize - column as isize;
                let shift = if distance > 1 { 2 * distance - 3 } else { 1 };
                let layout = usize::from(distance <= 0);
                self.layout = Some(layout);
                self.edges = count + layout as isize - 2;
                let place = self.width as isize + (layout as isize - 1) * shift;
                self.width += 2 * layout;
                place.max(0) as usize
            }
            _ if self.edges > 0
                && self.width >= 2
                && self.mapping.get(self.width - 2) == Some(&Some(column)) =>
            {
                self.edges = -1;
                self.width - 2
            }
            _ => {
                self.width += 2;
                self.width - 2
            }
        };
        if self.mapping.len() <= place {
            self.mapping.resize(place + 1, None);
        }
        self.mapping[place] = Some(column);
    }

    fn is_straight(&self) -> bool {
        self.mapping.iter().enumerate().all(|(at, target)| target.is_none_or(|target| target == at / 2))
    }

    fn layout(&self) -> usize {
        self.layout.unwrap_or(0)
    }

    /// How many parents of a merge are reached by dashes.
    fn dashed(&self) -> usize {
        (self.parents.len() + self.layout()).saturating_sub(3)
    }

    fn needs_room(&self) -> bool {
        self.parents.len() >= 3 && self.at + 1 < self.columns.len() && self.rows < self.dashed() * 2
    }

    pub fn is_finished(&self) -> bool {
        self.step == Step::Rest
    }

    fn go(&mut self, step: Step) {
        self.last_step = self.step;
        self.step = step;
    }

    fn settle(&mut self) {
        self.go(if self.is_straight() { Step::Rest } else { Step::Collapse });
    }

    /// The next line, and whether it has the commit.
    pub fn line(&mut self) -> (Vec<u8>, bool) {
        let is_commit = self.step == Step::Commit;
        let mut line = match self.step {
            Step::Rest => b"| ".repeat(self.new_columns.len()),
            Step::Skip => {
                let next = if self.needs_room() { Step::Room } else { Step::Commit };
                self.go(next);
                b"...".to_vec()
            }
            Step::Room => self.room_line(),
            Step::Commit => self.commit_line(),
            Step::Branches => self.branches_line(),
            Step::Collapse => self.collapsing_line(),
        };
        self.pad(&mut line);
        (line, is_commit)
    }

    fn pad(&self, line: &mut Vec<u8>) {
        line.resize(line.len().max(self.width), b' ');
    }

    /// A line that changes nothing, for text that is not the commit's.
    pub fn padding(&mut self) -> Vec<u8> {
        if self.step != Step::Commit {
            return self.line().0;
        }
        let mut line = Vec::new();
        for oid in &self.columns {
            line.push(b'|');
            let wide = *oid == self.commit && self.parents.len() > 2;
            line.resize(line.len() + if wide { (self.parents.len() - 2) * 2 } else { 1 }, b' ');
        }
        self.pad(&mut line);
        self.last_step = Step::Rest;
        line
    }

    fn room_line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        let mut seen = false;
        for (at, oid) in self.columns.iter().enumerate() {
            let after_merge = self.last_step == Step::Branches && self.last_at < at;
            match () {
                () if *oid == self.commit => {
                    seen = true;
                    line.push(b'|');
                    line.resize(line.len() + self.rows, b' ');
                }
                () if seen && (self.rows > 0 || after_merge) => line.push(b'\\'),
                () => line.push(b'|'),
            }
            line.push(b' ');
        }
        self.rows += 1;
        if !self.needs_room() {
            self.go(Step::Commit);
        }
        line
    }

    /// The columns as they were, and at their end the commit if it is in none.
    fn with_commit(&self) -> Vec<Oid> {
        let mut columns = self.columns.clone();
        if !columns.contains(&self.commit) {
            columns.push(self.commit);
        }
        columns
    }

    fn commit_line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        let mut seen = false;
        for (at, oid) in self.with_commit().into_iter().enumerate() {
            let after_merge = self.last_step == Step::Branches && self.last_edges > 0 && self.last_at < at;
            let collapsing = self.last_step == Step::Collapse
                && self.old_mapping.get(2 * at + 1) == Some(&Some(at))
                && self.mapping.get(2 * at).is_some_and(|target| target.is_none_or(|target| target < at));
            match () {
                () if oid == self.commit => {
                    seen = true;
                    line.push(self.mark);
                    for dash in 0..if self.parents.len() > 2 { self.dashed() } else { 0 } {
                        line.extend_from_slice(if dash + 1 == self.dashed() { b"-." } else { b"--" });
                    }
                }
                () if seen && (self.edges > 1 || self.edges == 1 && after_merge) => line.push(b'\\'),
                () if seen && self.edges == 1 => line.push(b'|'),
                () if collapsing => line.push(b'/'),
                () => line.push(b'|'),
            }
            line.push(b' ');
        }
        if self.parents.len() > 1 {
            self.go(Step::Branches);
        } else {
            self.settle();
        }
        line
    }

    fn branches_line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        let mut seen = false;
        let mut first_parent = None;
        for (at, oid) in self.with_commit().into_iter().enumerate() {
            if oid == self.commit {
                seen = true;
                let mut sign = self.layout();
                for parent in 0..self.parents.len() {
                    line.push(b"/|\\"[sign]);
                    if sign < 2 {
                        sign += 1;
                    } else if self.edges > 0 || parent + 1 < self.parents.len() {
                        line.push(b' ');
                    }
                }
                if self.edges == 0 {
                    line.push(b' ');
                }
            } else if seen {
                line.extend_from_slice(if self.edges > 0 { b"\\ " } else { b"| " });
            } else {
                line.push(b'|');
                if self.layout() != 0 || at + 1 != self.at {
                    line.push(if first_parent.is_some() { b'_' } else { b' ' });
                }
            }
            if self.parents.first() == Some(&oid) {
                first_parent = Some(at);
            }
        }
        self.settle();
        line
    }

    fn collapsing_line(&mut self) -> Vec<u8> {
        let size = self.mapping.len();
        self.old_mapping = std::mem::replace(&mut self.mapping, vec![None; size]);
        let mut edge: Option<(usize, usize)> = None;
        for at in 0..size {
            let Some(target) = self.old_mapping[at] else { continue };
            let straight = target * 2 == at;
            let place = match () {
                () if straight || at == 0 => at,
                () if self.mapping[at - 1].is_none() || self.mapping[at - 1] == Some(target) => at - 1,
                () => at.saturating_sub(2),
            };
            let taken = self.mapping[place] == Some(target) && !straight;
            self.mapping[place] = Some(target);
            if !straight && !taken && edge.is_none() {
                edge = Some((place + 1, target));
                let mut between = target * 2 + 3;
                while between + 2 < at {
                    self.mapping[between] = Some(target);
                    between += 2;
                }
            }
        }
        self.old_mapping.clone_from(&self.mapping);
        if self.mapping.last() == Some(&None) {
            self.mapping.pop();
        }
        let mut line = Vec::new();
        let mut horizontal = false;
        for at in 0..self.mapping.len() {
            let Some(target) = self.mapping[at] else {
                line.push(b' ');
                continue;
            };
            if target * 2 == at {
                line.push(b'|');
            } else if edge.is_some_and(|(edge, to)| to == target && at + 1 != edge) {
                if at != target * 2 + 3 {
                    self.mapping[at] = None;
                }
                horizontal = true;
                line.push(b'_');
            } else {
                if horizontal && edge.is_some_and(|(edge, _)| at < edge) {
                    self.mapping[at] = None;
                }
                line.push(b'/');
            }
        }
        if self.is_straight() {
            self.go(Step::Rest);
        } else {
            self.go(Step::Collapse);
        }
        line
    }

    /// The lines up to the commit's own, which is left open for what is written behind it.
    pub fn up_to_commit(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        loop {
            if self.is_finished() {
                text.extend(self.padding());
                return text;
            }
            let (line, is_commit) = self.line();
            text.extend(line);
            if is_commit {
                return text;
            }
            text.push(b'\n');
        }
    }

    /// A commit's text beside its drawing, and what of the drawing is left then.
    pub fn beside(&mut self, text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        for (at, line) in text.split_inclusive(|&byte| byte == b'\n').enumerate() {
            if at > 0 {
                out.extend(self.line().0);
            }
            out.extend_from_slice(line);
        }
        if self.is_finished() {
            return out;
        }
        let ended = text.ends_with(b"\n");
        if !ended {
            out.push(b'\n');
        }
        loop {
            out.extend(self.line().0);
            if self.is_finished() {
                break;
            }
            out.push(b'\n');
        }
        if ended {
            out.push(b'\n');
        }
        out
    }
}
