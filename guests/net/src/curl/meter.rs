//! The progress meter.

use super::worker::Teller;
use std::time::{Duration, Instant};
use wardian_abi as abi;

/// How much has been moved, and whether someone wants to see it.
pub struct Meter {
    shown: bool,
    bar: bool,
    start: Instant,
    last: Instant,
    pub expected: Option<u64>,
    pub down: u64,
    pub up: u64,
    pub up_expected: u64,
    teller: Option<Teller>,
}

/// How often a parent is told.
const TELL: Duration = Duration::from_millis(500);

const HEADING: &str = "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n                                 \
                       Dload  Upload   Total   Spent    Left  Speed\n";

fn put(text: &str) {
    let _ = abi::write_all(2, text.as_bytes());
}

impl Meter {
    pub fn new(shown: bool, bar: bool, heading: bool) -> Meter {
        let now = Instant::now();
        let meter = Meter {
            shown,
            bar,
            start: now,
            last: now,
            expected: None,
            down: 0,
            up: 0,
            up_expected: 0,
            teller: None,
        };
        if shown && !bar {
            if heading {
                put(HEADING);
            }
            meter.line();
        }
        meter
    }

    /// Has a parent told, who shows it.
    pub fn telling(self, teller: Option<Teller>) -> Meter {
        Meter { teller, ..self }
    }

    fn tell(&self) {
        if let Some(teller) = &self.teller {
            teller.progress([self.down, self.expected.unwrap_or(0), self.up, self.up_expected]);
        }
    }

    /// Shows how it goes, once in a second.
    pub fn tick(&mut self) {
        if self.teller.is_some() && self.last.elapsed() >= TELL {
            self.last = Instant::now();
            self.tell();
        }
        if self.shown && self.last.elapsed() >= Duration::from_secs(1) {
            self.last = Instant::now();
            self.show();
        }
    }

    /// Shows how it went.
    pub fn finish(&mut self) {
        self.tell();
        if std::mem::take(&mut self.shown) {
            self.show();
            put("\n");
        }
    }

    fn show(&self) {
        if self.bar { self.draw() } else { self.line() }
    }

    fn draw(&self) {
        let total = self.expected.unwrap_or(0) + self.up_expected;
        if total == 0 {
            return;
        }
        let part = ((self.down + self.up) as f64 / total as f64).min(1.0);
        let width = 72;
        let filled = "#".repeat((part * f64::from(width)) as usize);
        put(&format!("\r{} {:5.1}%", toolkit::pad::after(filled, ' ', 72), part * 100.0));
    }

    fn line(&self) {
        let spent = self.start.elapsed().as_secs_f64().max(0.000_001);
        let percent =
            |done: u64, all: u64| if all == 0 { 0 } else { (done as f64 / all as f64 * 100.0) as u64 };
        let down_expected = self.expected.unwrap_or(0);
        let total = down_expected.max(self.down) + self.up_expected.max(self.up);
        let (down_speed, up_speed) = ((self.down as f64 / spent) as u64, (self.up as f64 / spent) as u64);
        let speed = down_speed.max(up_speed);
        let whole = if speed > 0 && self.expected.is_some() { total / speed } else { 0 };
        let time = |seconds: u64| clock(seconds);
        put(&format!(
            "\r{:3} {:>5}  {:3} {:>5}  {:3} {:>5}  {:>5}  {:>5} {} {} {} {:>5}",
            percent(self.down + self.up, total),
            amount(total),
            percent(self.down, down_expected),
            amount(self.down),
            percent(self.up, self.up_expected),
            amount(self.up),
            amount(down_speed),
            amount(up_speed),
            time(whole),
            time(spent as u64),
            time(whole.saturating_sub(spent as u64)),
            amount(speed)
        ));
    }
}

pub(super) fn clock(seconds: u64) -> String {
    match seconds {
        0 => "--:--:--".to_owned(),
        seconds if seconds < 360_000 => {
            format!("{:2}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
        seconds => format!("{:3}d {:02}h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// An amount in at most five letters.
pub(super) fn amount(bytes: u64) -> String {
    const K: u64 = 1024;
    if bytes < 100_000 {
        return bytes.to_string();
    }
    if bytes < 10_000 * K {
        return format!("{}k", bytes / K);
    }
    for (unit, letter) in [(K * K, 'M'), (K * K * K, 'G'), (K * K * K * K, 'T')] {
        if bytes < 100 * unit {
            return format!("{}.{}{letter}", bytes / unit, bytes % unit / (unit / 10).max(1));
        }
        if bytes < 10_000 * unit {
            return format!("{}{letter}", bytes / unit);
        }
    }
    format!("{}P", bytes >> 50)
}
