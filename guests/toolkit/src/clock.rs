//! Times as the tools print them, in the zone that `TZ` names.

use jiff::{Timestamp, Zoned, tz::TimeZone};
use std::time::{SystemTime, UNIX_EPOCH};

/// Turns nanoseconds since 1970 into text.
pub struct Clock(TimeZone);

impl Clock {
    pub fn new() -> Clock {
        let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
        let zone = match named {
            Some(name) => {
                let name = name.trim_start_matches(':');
                TimeZone::get(name).or_else(|_| TimeZone::posix(name)).unwrap_or(TimeZone::UTC)
            }
            None if cfg!(target_os = "wasi") => TimeZone::UTC,
            None => TimeZone::system(),
        };
        Clock(zone)
    }

    /// Without regard to `TZ`.
    pub fn utc() -> Clock {
        Clock(TimeZone::UTC)
    }

    /// The date and time in this zone; the first moment of 1970 for what no calendar reaches.
    pub fn at(&self, nanos: i64) -> Zoned {
        Timestamp::from_nanosecond(i128::from(nanos))
            .unwrap_or(Timestamp::UNIX_EPOCH)
            .to_zoned(self.0.clone())
    }

    /// The first moment of the next day.
    pub fn end_of_day(&self, nanos: i64) -> i64 {
        let day = self.at(nanos);
        let next = day.tomorrow().and_then(|next| next.start_of_day());
        next.map_or(nanos, |next| i64::try_from(next.timestamp().as_nanosecond()).unwrap_or(nanos))
    }

    /// By a format of `strftime`.
    pub fn format(&self, nanos: i64, format: &str) -> String {
        self.at(nanos).strftime(format).to_string()
    }

    /// `2024-01-31 12:00:00.000000000 +0000`, as `stat` prints it.
    pub fn full(&self, nanos: i64) -> String {
        self.format(nanos, "%Y-%m-%d %H:%M:%S.%9f %z")
    }

    /// As `ls -l` prints it: the time of day for the last half year, else the year.
    pub fn short(&self, nanos: i64, now: i64) -> String {
        let recent = nanos <= now && now.saturating_sub(nanos) < HALF_YEAR;
        self.format(nanos, if recent { "%b %e %H:%M" } else { "%b %e  %Y" })
    }
}

/// Up to which age `ls` shows the time of day.
pub const HALF_YEAR: i64 = 31_556_952 / 2 * 1_000_000_000;

/// A point in time as people write it: `@SECONDS`, `now`, a date, or a date and time.
pub fn parse(text: &str, now: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(seconds) = text.strip_prefix('@') {
        return Some((seconds.parse::<f64>().ok()? * 1e9) as i64);
    }
    let clock = Clock::new();
    let today = clock.at(now).date();
    let date = match text {
        "now" => return Some(now),
        "today" | "yesterday" => {
            let days = i64::from(text == "yesterday") * 86_400_000_000_000;
            return Some(now - days);
        }
        _ => text.parse::<jiff::civil::DateTime>().ok(),
    };
    let time_today = || text.parse::<jiff::civil::Time>().ok().map(|time| today.to_datetime(time));
    let nanos = match text.parse::<Timestamp>() {
        Ok(moment) => moment.as_nanosecond(),
        Err(_) => date.or_else(time_today)?.to_zoned(clock.0).ok()?.timestamp().as_nanosecond(),
    };
    i64::try_from(nanos).ok()
}

/// Now, in nanoseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
