//! What has happened, in numbers. They only grow, and cost a few atomic additions for each request.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// The upper ends of the buckets of a histogram, in milliseconds.
pub(crate) const BUCKETS_MS: [u64; 14] =
    [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 10_000, 30_000, 120_000];

/// The outcomes of runs.
pub(crate) const OUTCOMES: [&str; 7] =
    ["success", "failure", "timeout", "cancelled", "limit", "denied", "refused"];

/// The limits that a run can hit, as the protocol names them.
pub(crate) const LIMITS: [&str; 10] = [
    "stdoutBytes",
    "stderrBytes",
    "commandBytes",
    "fsLimitBytes",
    "fileCount",
    "memoryBytes",
    "processes",
    "openFiles",
    "engineMemoryBytes",
    "compile",
];

/// The errors that requests are refused with.
pub(crate) const CODES: [i64; 6] = [-32700, -32600, -32601, -32602, -32603, 1];

/// How often something took how long.
#[derive(Default)]
pub(crate) struct Histogram {
    buckets: [AtomicU64; BUCKETS_MS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Histogram {
    pub(crate) fn add(&self, duration: Duration) {
        let millis = duration.as_secs_f64() * 1000.0;
        if let Some(at) = BUCKETS_MS.iter().position(|end| millis <= *end as f64) {
            self.buckets[at].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Returns how many took at most as long as each bucket says, how many there were, and seconds in total.
    pub(crate) fn read(&self) -> ([u64; BUCKETS_MS.len()], u64, f64) {
        let mut sum = 0;
        let buckets = std::array::from_fn(|at| {
            sum += self.buckets[at].load(Ordering::Relaxed);
            sum
        });
        (buckets, self.count.load(Ordering::Relaxed), self.micros.load(Ordering::Relaxed) as f64 / 1e6)
    }
}

/// The numbers of a server.
#[derive(Default)]
pub(crate) struct Metrics {
    clients: AtomicUsize,
    turned_away: AtomicU64,
    waiting: AtomicUsize,
    requests: AtomicU64,
    refused: [AtomicU64; CODES.len()],
    outcomes: [AtomicU64; OUTCOMES.len()],
    limits: [AtomicU64; LIMITS.len()],
    /// How long commands ran, and how long they waited before.
    pub(crate) ran: Histogram,
    pub(crate) waited: Histogram,
}

impl Metrics {
    pub(crate) fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self, code: i64) {
        count(&CODES, &self.refused, &code);
    }

    pub(crate) fn outcome(&self, outcome: &str) {
        count(&OUTCOMES, &self.outcomes, &outcome);
    }

    pub(crate) fn limit(&self, limit: &str) {
        count(&LIMITS, &self.limits, &limit);
    }

    /// Counts a client until this is dropped.
    pub(crate) fn client(&self) -> Counted<'_> {
        Counted::new(&self.clients)
    }

    /// Counts a request that runs or waits until this is dropped.
    pub(crate) fn waits(&self) -> Counted<'_> {
        Counted::new(&self.waiting)
    }

    pub(crate) fn read(&self) -> Numbers {
        let all = |counters: &[AtomicU64]| counters.iter().map(|one| one.load(Ordering::Relaxed)).collect();
        Numbers {
            clients: self.clients.load(Ordering::Relaxed),
            turned_away: self.turned_away.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            refused: all(&self.refused),
            outcomes: all(&self.outcomes),
            limits: all(&self.limits),
        }
    }
}

fn count<T: PartialEq>(names: &[T], counters: &[AtomicU64], name: &T) {
    if let Some(at) = names.iter().position(|other| other == name) {
        counters[at].fetch_add(1, Ordering::Relaxed);
    }
}

/// The same at one moment; lists are in the order of their names.
pub(crate) struct Numbers {
    pub(crate) clients: usize,
    pub(crate) turned_away: u64,
    pub(crate) waiting: usize,
    pub(crate) requests: u64,
    pub(crate) refused: Vec<u64>,
    pub(crate) outcomes: Vec<u64>,
    pub(crate) limits: Vec<u64>,
}

/// One more of something, until it is dropped.
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(count: &'a AtomicUsize) -> Counted<'a> {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_counts_up_to_each_bucket() {
        let histogram = Histogram::default();
        for millis in [1, 3, 3, 700, 500_000] {
            histogram.add(Duration::from_millis(millis));
        }
        let (buckets, count, seconds) = histogram.read();
        assert_eq!(buckets, [1, 1, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4]);
        assert_eq!((count, seconds), (5, 500.707));
    }
}
