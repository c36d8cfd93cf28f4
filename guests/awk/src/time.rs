//! Times: `systime`, `strftime` and `mktime`, in the zone that `TZ` names.

use jiff::civil::DateTime;
use jiff::fmt::strtime::{BrokenDownTime, Config, PosixCustom};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn zone(utc: bool) -> TimeZone {
    let named = std::env::var("TZ").ok().filter(|name| !name.is_empty());
    match named {
        _ if utc => TimeZone::UTC,
        Some(name) => {
            let name = name.trim_start_matches(':');
            TimeZone::get(name).or_else(|_| TimeZone::posix(name)).unwrap_or(TimeZone::UTC)
        }
        None if cfg!(target_os = "wasi") => TimeZone::UTC,
        None => TimeZone::system(),
    }
}

/// A time by a format.
pub fn strftime(format: &[u8], seconds: i64, utc: bool) -> Vec<u8> {
    let moment = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH).to_zoned(zone(utc));
    let config = Config::new().custom(PosixCustom::new()).lenient(true);
    let time = BrokenDownTime::from(&moment);
    time.to_string_with_config(&config, format).map_or_else(|_| format.to_vec(), String::into_bytes)
}

/// The time that `YYYY MM DD HH MM SS [DST]` says, each number maybe beyond its bounds; -1 for what is none.
pub fn mktime(text: &[u8], utc: bool) -> i64 {
    moment(text, utc).unwrap_or(-1)
}

fn moment(text: &[u8], utc: bool) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let numbers: Vec<i64> = text.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [year, month, day, hour, minute, second, ..] = numbers[..] else { return None };
    let years = year.checked_add((month.checked_sub(1)?).div_euclid(12))?;
    let month = (month - 1).rem_euclid(12) + 1;
    let first = DateTime::new(i16::try_from(years).ok()?, month as i8, 1, 0, 0, 0, 0).ok()?;
    let span = Span::new()
        .try_days(day.checked_sub(1)?)
        .and_then(|span| span.try_hours(hour))
        .and_then(|span| span.try_minutes(minute))
        .and_then(|span| span.try_seconds(second))
        .ok()?;
    let local = first.checked_add(span).ok()?;
    Some(local.to_zoned(zone(utc)).ok()?.timestamp().as_second())
}
