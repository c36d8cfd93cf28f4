//! Times: `systime`, `strftime` and `mktime`, in the zone that `TZ` names.

use std::time::{SystemTime, UNIX_EPOCH};
use wardian_clock::{Civil, Dialect, When, Zone};

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn zone(utc: bool) -> Zone {
    if utc { Zone::utc() } else { Zone::local() }
}

/// A time by a format.
pub fn strftime(format: &[u8], seconds: i64, utc: bool) -> Vec<u8> {
    wardian_clock::format(format, When::at(seconds), &zone(utc), Dialect::C)
}

/// The time that `YYYY MM DD HH MM SS [DST]` says, each number maybe beyond its bounds; -1 for what is none.
pub fn mktime(text: &[u8], utc: bool) -> i64 {
    moment(text, utc).unwrap_or(-1)
}

fn moment(text: &[u8], utc: bool) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let numbers: Vec<i64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [year, month, day, hour, minute, second, ..] = numbers[..] else { return None };
    let local = Civil { year, month, day, hour, minute, second }.normal()?;
    zone(utc).moment(&local)
}
