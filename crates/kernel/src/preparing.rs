//! Which program is being compiled for this machine right now, to show to those who wait.

use std::time::Instant;

use parking_lot::Mutex;

/// Programs that are being compiled, the oldest first.
static NOW: Mutex<Vec<(String, Instant)>> = Mutex::new(Vec::new());

/// Returns the name of the program that has been compiled for the longest, and since when; `None` if there is none.
pub fn preparing() -> Option<(String, Instant)> {
    NOW.lock().first().cloned()
}

/// Says that a program is being compiled, until it is dropped.
pub(crate) struct Preparing(Instant);

impl Preparing {
    pub(crate) fn begin(name: &str) -> Preparing {
        let since = Instant::now();
        NOW.lock().push((name.to_owned(), since));
        Preparing(since)
    }
}

impl Drop for Preparing {
    fn drop(&mut self) {
        NOW.lock().retain(|(_, since)| *since != self.0);
    }
}
