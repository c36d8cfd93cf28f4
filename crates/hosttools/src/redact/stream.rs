//! Redacting streamed output: a secret may be split between any two pieces.
//!
//! Complete lines are passed on as they arrive, since no format spans lines. Held back are an incomplete line, an
//! incomplete private key, and what could be the beginning of a secret of several lines.

use std::ops::Range;

use super::named::{LOOK_BEHIND, Reading};
use super::{Redactor, beginning_at_end, keys, replaced};

/// A line longer than this is passed on without its end;
const LONGEST_LINE: usize = 64 << 10;
/// this much is held back, more than any secret.
const KEPT_OF_LINE: usize = 16 << 10;
/// If more than this is held back, it must grow by a fraction before it is examined again: examining all of it for every
/// few bytes would let the writer control how long it takes.
const MUCH: usize = 4 << 10;

/// Removes secrets from streamed output.
#[derive(Debug)]
pub struct StreamRedactor {
    redactor: Redactor,
    /// What has not been passed on. Its first `seen` bytes have been; they are kept as context for what follows.
    held: Vec<u8>,
    seen: usize,
    /// Whether what was passed on last is a private key that may continue.
    in_key: bool,
    /// Whether a line has ended since the last examination.
    line_ended: bool,
    /// How much must be held before it is examined again.
    enough: usize,
}

impl StreamRedactor {
    pub(super) fn new(redactor: Redactor) -> StreamRedactor {
        StreamRedactor { redactor, held: Vec::new(), seen: 0, in_key: false, line_ended: false, enough: 0 }
    }

    /// Takes a piece; returns what can be passed on now.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        // Only the end of a line decides anything; looking at every byte of one again and again would be slow.
        self.line_ended |= piece.contains(&b'\n');
        let undecided = !self.line_ended && self.held.len() < LONGEST_LINE;
        if undecided || self.held.len() < self.enough {
            return Vec::new();
        }
        self.line_ended = false;
        self.skip_key(false);
        let passed = if self.in_key { Vec::new() } else { self.look() };
        self.enough = if self.held.len() > MUCH { self.held.len() + self.held.len() / 4 } else { 0 };
        passed
    }

    fn look(&mut self) -> Vec<u8> {
        let found = self.redactor.found(&self.held, self.reading());
        let end = outside(&found.known_by, self.decided());
        self.in_key = end > self.seen && keys::reaches(&self.held, end);
        self.pass_on(end, &found.secrets)
    }

    /// Drops the continuation of a key whose beginning was removed.
    fn skip_key(&mut self, complete: bool) {
        if self.in_key {
            let (length, ended) = keys::continued(&self.held[self.seen..], complete);
            self.held.drain(self.seen..self.seen + length);
            self.in_key = !ended;
        }
    }

    /// Returns how many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the rest. If the output was truncated, a partial secret at its end is removed as well.
    pub fn finish(mut self, cut: bool) -> Vec<u8> {
        self.skip_key(true);
        let mut secrets = self.redactor.found(&self.held, self.reading()).secrets;
        if let Some(start) = self.redactor.cut_at(&self.held).filter(|_| cut) {
            secrets.push(start..self.held.len());
            secrets = super::merged(secrets);
        }
        self.pass_on(self.held.len(), &secrets)
    }

    fn reading(&self) -> Reading {
        Reading {
            from: self.seen,
            at_line_start: self.seen == 0 || self.held.first() == Some(&b'\n'),
            eager: false,
        }
    }

    /// Returns the place up to which nothing that follows can make a difference.
    fn decided(&self) -> usize {
        let line = self.held.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let mut end = match self.held.len() - line {
            0..LONGEST_LINE => line,
            length => line + length - KEPT_OF_LINE,
        };
        let of_several_lines = self.redactor.secrets.iter().filter(|secret| secret.contains(&b'\n'));
        let beginnings = of_several_lines.filter_map(|secret| beginning_at_end(&self.held, secret, 1));
        for start in beginnings.chain(keys::open_at(&self.held)) {
            end = end.min(start);
        }
        end
    }

    /// Passes on what is before `end`.
    fn pass_on(&mut self, end: usize, secrets: &[Range<usize>]) -> Vec<u8> {
        let end = end.max(self.seen);
        let before: Vec<Range<usize>> = secrets
            .iter()
            .filter(|secret| secret.end <= end && secret.start >= self.seen)
            .map(|secret| secret.start - self.seen..secret.end - self.seen)
            .collect();
        let passed = replaced(&self.held[self.seen..end], &before);
        // A little of the line stays, to tell what a word behind it is part of.
        let line =
            self.held[..end.saturating_sub(1)].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let kept = match end.checked_sub(1) {
            Some(last) if self.held[last] == b'\n' => last,
            _ => line.max(end.saturating_sub(2 * LOOK_BEHIND)),
        };
        self.held.drain(..kept);
        self.seen = end - kept;
        passed
    }
}

/// Returns the same place, or the beginning of the range that contains it.
fn outside(ranges: &[Range<usize>], end: usize) -> usize {
    ranges.iter().find(|range| range.start < end && end < range.end).map_or(end, |range| range.start)
}
