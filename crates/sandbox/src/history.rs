//! The commands that were run in a sandbox.

use std::time::{SystemTime, UNIX_EPOCH};

use imbl::Vector;

use crate::sandbox::Sandbox;

/// How many commands are kept.
const KEPT: usize = 1000;
/// How many bytes their scripts may have together; the last one is kept whatever its length.
const KEPT_BYTES: usize = 1 << 20;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryEntry {
    /// Its number, from 1.
    pub index: u64,
    /// The script.
    pub command: Vec<u8>,
    /// When it started, in milliseconds since 1970.
    pub timestamp: u64,
}

/// The last commands, as a value.
#[derive(Clone, Default)]
pub(crate) struct History {
    entries: Vector<HistoryEntry>,
    bytes: usize,
    last: u64,
}

impl History {
    /// The highest number that a restored history may have reached.
    pub(crate) const LAST_MAX: u64 = 1 << 53;

    pub(crate) fn add(&mut self, command: &[u8]) {
        self.last += 1;
        let entry = HistoryEntry { index: self.last, command: command.to_vec(), timestamp: now_ms() };
        self.push(entry);
    }

    fn push(&mut self, entry: HistoryEntry) {
        self.bytes += entry.command.len();
        self.entries.push_back(entry);
        while self.entries.len() > KEPT || self.bytes > KEPT_BYTES && self.entries.len() > 1 {
            let oldest = self.entries.pop_front();
            self.bytes -= oldest.map_or(0, |oldest| oldest.command.len());
        }
    }

    /// Returns how many bytes of memory it takes, about.
    pub(crate) fn bytes(&self) -> u64 {
        (self.bytes + self.entries.len() * size_of::<HistoryEntry>()) as u64
    }

    /// Returns the last number used, and the entries.
    pub(crate) fn parts(&self) -> (u64, impl ExactSizeIterator<Item = &HistoryEntry>) {
        (self.last, self.entries.iter())
    }

    /// Rebuilds the history from them, up to its maximum length.
    pub(crate) fn from_parts(last: u64, entries: Vec<HistoryEntry>) -> History {
        let mut history = History { last, ..History::default() };
        entries.into_iter().for_each(|entry| history.push(entry));
        history
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Sandbox {
    /// Returns the last thousand commands, up to 1 MiB of them, oldest first. A fork starts with those of its original.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.inner().history.lock().entries.iter().cloned().collect()
    }

    /// Clears the history.
    pub fn clear_history(&self) {
        *self.inner().history.lock() = History::default();
        self.note_change();
    }
}
