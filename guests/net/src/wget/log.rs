//! Messages and progress of `wget`.

use super::options::{Options, Talk};
use crate::http::date;
use std::time::Instant;
use wardian_abi as abi;
use wardian_clock::Civil;

/// Where messages go.
pub struct Log {
    pub talk: Talk,
    fd: abi::Fd,
    show_progress: bool,
}

impl Log {
    pub fn open(options: &Options) -> Result<Log, std::io::Error> {
        let mut log = Log { talk: options.talk, fd: 2, show_progress: options.show_progress };
        if let Some((file, append)) = &options.log {
            let mut how = std::fs::OpenOptions::new();
            how.create(true).write(true).append(*append).truncate(!append);
            let file = how.open(toolkit::files::path(file))?;
            log.fd = abi::dup(std::os::fd::AsRawFd::as_raw_fd(&file), 3, true)?;
        }
        Ok(log)
    }

    /// Says what everyone but the quiet hears.
    pub fn always(&self, text: &str) {
        if self.talk != Talk::Quiet {
            self.raw(text);
        }
    }

    /// Says what only the curious hear.
    pub fn verbose(&self, text: &str) {
        if self.talk == Talk::Much {
            self.raw(text);
        }
    }

    /// Says what those who ask for little hear.
    pub fn brief(&self, text: &str) {
        if self.talk == Talk::Little {
            self.raw(text);
        }
    }

    pub fn raw(&self, text: &str) {
        let _ = abi::write_all(self.fd, text.as_bytes());
    }

    pub fn progress(&self, start: u64, total: Option<u64>) -> Dots<'_> {
        let shown = self.talk == Talk::Much || self.show_progress;
        let mut dots =
            Dots { log: self, shown, total, at: start - start % ROW, begun: Instant::now(), count: 0 };
        if shown && start > 0 {
            self.raw(&format!("\n{:6}K", dots.at / 1024));
        }
        dots.begin();
        dots
    }
}

/// Now, as messages have it.
pub fn now() -> String {
    let civil = Civil::at(date::now());
    format!(
        "{:04}-{:02}-{:02} {:02}:{:02}:{:02}",
        civil.year, civil.month, civil.day, civil.hour, civil.minute, civil.second
    )
}

/// A speed for messages.
pub fn speed(bytes: u64, seconds: f64) -> String {
    let rate = bytes as f64 / seconds.max(0.000_001);
    let (value, unit) = match rate {
        rate if rate < 1024.0 => (rate, "B/s"),
        rate if rate < 1024.0 * 1024.0 => (rate / 1024.0, "KB/s"),
        rate if rate < 1024.0 * 1024.0 * 1024.0 => (rate / 1024.0 / 1024.0, "MB/s"),
        rate => (rate / 1024.0 / 1024.0 / 1024.0, "GB/s"),
    };
    let digits = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// A size for people, as `1.2K`.
pub fn human(bytes: u64) -> String {
    if bytes < 1024 {
        return bytes.to_string();
    }
    let mut value = bytes as f64;
    for unit in ["K", "M", "G", "T", "P", "E"] {
        value /= 1024.0;
        if value < 1024.0 {
            let digits = usize::from(value < 9.95);
            return format!("{value:.digits$}{unit}");
        }
    }
    bytes.to_string()
}

const ROW: u64 = 50 * 1024;

/// Progress as dots, one for each KiB.
pub struct Dots<'a> {
    log: &'a Log,
    shown: bool,
    total: Option<u64>,
    /// How far the dots reach.
    at: u64,
    begun: Instant,
    count: u64,
}

impl Dots<'_> {
    fn begin(&mut self) {
        if self.shown {
            self.log.raw(&format!("\n{:6}K", self.at / 1024));
        }
    }

    /// Notes how far the download is.
    pub fn reach(&mut self, position: u64, more: u64) {
        self.count += more;
        while self.shown && self.at + 1024 <= position {
            let blank = if self.at.is_multiple_of(10 * 1024) { " " } else { "" };
            self.at += 1024;
            self.log.raw(&format!("{blank}."));
            if self.at.is_multiple_of(ROW) {
                let text = format!("{} {}", self.percent(self.at), self.rate());
                self.log.raw(&text);
                self.begin();
            }
        }
    }

    fn rate(&self) -> String {
        let text = speed(self.count, self.begun.elapsed().as_secs_f64());
        text.trim_end_matches("B/s").replace(' ', "")
    }

    fn percent(&self, position: u64) -> String {
        let part = |total: u64| (position as f64 / (total as f64).max(1.0) * 100.0) as u64;
        self.total.map(|total| format!("{:3}%", part(total))).unwrap_or_default()
    }

    /// Ends the progress.
    pub fn finish(&mut self, position: u64) {
        if !self.shown {
            return;
        }
        let begun_row = self.at - self.at % ROW;
        for place in 0..50 {
            if begun_row + place * 1024 >= self.at {
                self.log.raw(if place % 10 == 0 { "  " } else { " " });
            }
        }
        let time = self.begun.elapsed().as_secs_f64();
        let shown = if time < 0.000_5 { "0s".to_owned() } else { format!("{time:.1}s") };
        self.log.raw(&format!("{} {}={shown}\n\n", self.percent(position), self.rate()));
    }
}
