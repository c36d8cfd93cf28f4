//! How all transfers of `-Z` go, in one line.

use super::meter::{amount, clock};
use std::time::{Duration, Instant};
use wardian_abi as abi;

const HEADING: &str = "DL% UL%  Dled  Uled  Xfers  Live Total     Current  Left    Speed\n";
const AGAIN: Duration = Duration::from_millis(500);

/// What is shown, if anything.
pub struct Overview {
    shown: bool,
    start: Instant,
    last: Option<Instant>,
    /// Transfers that were begun.
    pub added: u64,
    /// Of those that have ended: received, of how many, sent, of how many.
    done: [u64; 4],
    /// Whether it is known how much there is of all that have ended.
    known: [bool; 2],
}

impl Overview {
    pub fn new(shown: bool) -> Overview {
        Overview { shown, start: Instant::now(), last: None, added: 0, done: [0; 4], known: [true; 2] }
    }

    /// Counts a transfer that has ended.
    pub fn add(&mut self, progress: [u64; 4]) {
        for (sum, value) in self.done.iter_mut().zip(progress) {
            *sum += value;
        }
        self.known = [self.known[0] && progress[1] > 0, self.known[1] && progress[3] > 0];
    }

    /// Shows a line, twice in a second.
    pub fn show(&mut self, live: &[[u64; 4]], count: usize) {
        if self.shown && self.last.is_none_or(|last| last.elapsed() >= AGAIN) {
            self.line(live, count, "");
        }
    }

    /// Shows the last line.
    pub fn finish(&mut self, live: &[[u64; 4]], count: usize) {
        if self.shown {
            self.line(live, count, "\n");
        }
    }

    fn line(&mut self, live: &[[u64; 4]], count: usize, end: &str) {
        let heading = if self.last.is_none() { HEADING } else { "" };
        self.last = Some(Instant::now());
        let mut sums = self.done;
        let mut known = self.known;
        for progress in live {
            for (sum, value) in sums.iter_mut().zip(progress) {
                *sum += value;
            }
            known = [known[0] && progress[1] > 0, known[1] && progress[3] > 0];
        }
        let percent = |known: bool, part: u64, all: u64| match known && all > 0 {
            true => format!("{:3}", part.saturating_mul(100) / all),
            false => "-- ".to_owned(),
        };
        let spent = self.start.elapsed();
        let speed = (sums[0].max(sums[2]) as f64 / spent.as_secs_f64().max(0.000_001)) as u64;
        let whole = if known[0] && speed > 0 { sums[1] / speed } else { 0 };
        let line = format!(
            "{heading}\r{} {} {:>5} {:>5} {:5} {count:5}  {} {} {} {:>5} {end:>5}",
            percent(known[0], sums[0], sums[1]),
            percent(known[1], sums[2], sums[3]),
            amount(sums[0]),
            amount(sums[2]),
            self.added,
            clock(whole),
            clock(spent.as_secs()),
            clock(whole.saturating_sub(spent.as_secs())),
            amount(speed),
        );
        // There is nowhere to say that this failed.
        let _ = abi::write_all(2, line.as_bytes());
    }
}
