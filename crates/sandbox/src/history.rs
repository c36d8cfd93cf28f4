//! The commands that were run in a sandbox.

use std::time::{SystemTime, UNIX_EPOCH};

use imbl::Vector;

use crate::sandbox::Sandbox;

/// How many commands are kept.
const KEPT: usize = 1000;

/// One command.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    last: u64,
}

impl History {
    pub(crate) fn add(&mut self, command: &[u8]) {
        self.last += 1;
        let entry = HistoryEntry { index: self.last, command: command.to_vec(), timestamp: now_ms() };
        self.entries.push_back(entry);
        if self.entries.len() > KEPT {
            self.entries.pop_front();
        }
    }

    /// Returns the last number used, and the entries.
    pub(crate) fn parts(&self) -> (u64, impl ExactSizeIterator<Item = &HistoryEntry>) {
        (self.last, self.entries.iter())
    }

    /// Rebuilds the history from them, up to its maximum length.
    pub(crate) fn from_parts(last: u64, mut entries: Vec<HistoryEntry>) -> History {
        let surplus = entries.len().saturating_sub(KEPT);
        entries.drain(..surplus);
        History { entries: entries.into(), last }
    }
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

impl Sandbox {
    /// Returns the last thousand commands, oldest first. A fork starts with those of its original.
    pub fn history(&self) -> Vec<HistoryEntry> {
        self.inner().history.lock().entries.iter().cloned().collect()
    }

    /// Clears the history.
    pub fn clear_history(&self) {
        *self.inner().history.lock() = History::default();
    }
}
