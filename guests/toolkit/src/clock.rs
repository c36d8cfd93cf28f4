//! Times as the tools print them, in the zone that `TZ` names.

use super::when;
use std::time::{SystemTime, UNIX_EPOCH};
use wardian_clock::{Civil, Dialect, When, Zone};

/// Turns nanoseconds since 1970 into text.
pub struct Clock(Zone);

impl Clock {
    pub fn new() -> Clock {
        Clock(Zone::local())
    }

    /// Without regard to `TZ`.
    pub fn utc() -> Clock {
        Clock(Zone::utc())
    }

    /// The date and time in this zone.
    pub fn at(&self, nanos: i64) -> Civil {
        self.0.civil(When::from_nanos(nanos).seconds)
    }

    /// The first moment of the next day.
    pub fn end_of_day(&self, nanos: i64) -> i64 {
        let today = self.at(nanos);
        let next = Civil { day: today.day + 1, hour: 0, minute: 0, second: 0, ..today };
        let moment = next.normal().and_then(|next| self.0.moment(&next));
        moment.and_then(|seconds| seconds.checked_mul(1_000_000_000)).unwrap_or(nanos)
    }

    /// By a format of `strftime`.
    pub fn format(&self, nanos: i64, format: &str) -> String {
        let text = wardian_clock::format(format.as_bytes(), When::from_nanos(nanos), &self.0, Dialect::Gnu);
        String::from_utf8_lossy(&text).into_owned()
    }

    /// `2024-01-31 12:00:00.000000000 +0000`, as `stat` prints it.
    pub fn full(&self, nanos: i64) -> String {
        self.format(nanos, "%Y-%m-%d %H:%M:%S.%N %z")
    }

    /// As `ls -l` prints it: the time of day for the last half year, else the year.
    pub fn short(&self, nanos: i64, now: i64) -> String {
        let recent = nanos <= now && now.saturating_sub(nanos) < HALF_YEAR;
        self.format(nanos, if recent { "%b %e %H:%M" } else { "%b %e  %Y" })
    }
}

/// Up to which age `ls` shows the time of day.
pub const HALF_YEAR: i64 = 31_556_952 / 2 * 1_000_000_000;

/// A point in time as people write it, in nanoseconds since 1970: all that `date -d` takes.
pub fn parse(text: &str, now: i64) -> Option<i64> {
    let found = when::parse(text, When::from_nanos(now), &Zone::local())?;
    found.seconds.checked_mul(1_000_000_000)?.checked_add(found.nanos)
}

/// Now, in nanoseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
