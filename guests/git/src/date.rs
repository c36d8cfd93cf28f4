//! Dates: as git writes them in its formats, and as people write them.

use toolkit::clock;
use wardian_clock::{Civil, DAYS, Dialect, MONTHS, When, Zone, format};

/// How dates are shown.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Style {
    #[default]
    Default,
    Relative,
    Iso,
    IsoStrict,
    Rfc,
    Short,
    Raw,
    Unix,
    Human,
    Format(String),
    /// One of the others, in the reader's zone.
    Local(Box<Style>),
}

impl Style {
    pub fn named(name: &str) -> Option<Style> {
        if let Some(inner) = name.strip_suffix("-local") {
            return Style::named(inner).map(|style| Style::Local(Box::new(style)));
        }
        Some(match name {
            "default" => Style::Default,
            "relative" => Style::Relative,
            "iso" | "iso8601" => Style::Iso,
            "iso-strict" | "iso8601-strict" => Style::IsoStrict,
            "rfc" | "rfc2822" => Style::Rfc,
            "short" => Style::Short,
            "raw" => Style::Raw,
            "unix" => Style::Unix,
            "human" => Style::Human,
            "local" => Style::Local(Box::new(Style::Default)),
            _ => Style::Format(name.strip_prefix("format:")?.to_owned()),
        })
    }
}

/// Seconds from UTC for a zone such as 130, which is an hour and a half.
fn seconds_of(zone: i32) -> i64 {
    let (zone, sign) = (i64::from(zone.unsigned_abs()), i64::from(zone.signum()));
    sign * (zone / 100 * 3600 + zone % 100 * 60)
}

fn zone_of(seconds: i64) -> i32 {
    let minutes = seconds.abs() / 60;
    let zone = i32::try_from(minutes / 60 * 100 + minutes % 60).unwrap_or(0);
    if seconds < 0 { -zone } else { zone }
}

/// The zone here at a moment.
pub fn local_zone(time: i64) -> i32 {
    zone_of(Zone::local().offset(time))
}

pub fn now() -> (i64, i32) {
    let time = clock::now() / 1_000_000_000;
    (time, local_zone(time))
}

pub fn show(time: i64, zone: i32, style: &Style) -> String {
    let civil = || Civil::at(time.saturating_add(seconds_of(zone)));
    let offset = crate::object::zone_text(zone);
    let names = |civil: &Civil| {
        let day = usize::try_from(civil.weekday()).unwrap_or(0);
        let month = usize::try_from(civil.month - 1).unwrap_or(0);
        (DAYS[day % 7][..3].to_owned(), MONTHS[month % 12][..3].to_owned())
    };
    let clock = |at: &Civil| format!("{:02}:{:02}:{:02}", at.hour, at.minute, at.second);
    match style {
        Style::Local(inner) if **inner == Style::Default => {
            let text = show(time, local_zone(time), &Style::Default);
            text.rsplit_once(' ').map_or(text.clone(), |(text, _)| text.to_owned())
        }
        Style::Local(inner) => show(time, local_zone(time), inner),
        Style::Default => {
            let at = civil();
            let (day, month) = names(&at);
            format!("{day} {month} {} {} {} {offset}", at.day, clock(&at), at.year)
        }
        Style::Iso => {
            let at = civil();
            format!("{:04}-{:02}-{:02} {} {offset}", at.year, at.month, at.day, clock(&at))
        }
        Style::IsoStrict => {
            let at = civil();
            let zone = if zone == 0 { "Z".to_owned() } else { format!("{}:{}", &offset[..3], &offset[3..]) };
            format!("{:04}-{:02}-{:02}T{}{zone}", at.year, at.month, at.day, clock(&at))
        }
        Style::Rfc => {
            let at = civil();
            let (day, month) = names(&at);
            format!("{day}, {} {month} {} {} {offset}", at.day, at.year, clock(&at))
        }
        Style::Short => {
            let at = civil();
            format!("{:04}-{:02}-{:02}", at.year, at.month, at.day)
        }
        Style::Raw => format!("{time} {offset}"),
        Style::Unix => time.to_string(),
        Style::Relative | Style::Human => relative(time),
        Style::Format(pattern) => {
            let shifted = When::at(time.saturating_add(seconds_of(zone)));
            let pattern = pattern.replace("%z", &offset).replace("%Z", "").replace("%s", &time.to_string());
            String::from_utf8_lossy(&format(pattern.as_bytes(), shifted, &Zone::utc(), Dialect::Gnu))
                .into_owned()
        }
    }
}

fn relative(time: i64) -> String {
    let age = clock::now() / 1_000_000_000 - time;
    if age < 0 {
        return "in the future".to_owned();
    }
    let count = |number: i64, unit: &str| format!("{number} {unit}{}", if number == 1 { "" } else { "s" });
    let (minutes, hours, days) = ((age + 30) / 60, (age + 30) / 60, (age + 30) / 60);
    let hours = (hours + 30) / 60;
    let days = ((days + 30) / 60 + 12) / 24;
    match () {
        () if age < 90 => format!("{} ago", count(age, "second")),
        () if minutes < 90 => format!("{} ago", count(minutes, "minute")),
        () if hours < 36 => format!("{} ago", count(hours, "hour")),
        () if days < 14 => format!("{} ago", count(days, "day")),
        () if days < 70 => format!("{} ago", count((days + 3) / 7, "week")),
        () if days < 365 => format!("{} ago", count((days + 15) / 30, "month")),
        () if days < 1825 => {
            let months = (days * 12 * 2 + 365) / (365 * 2);
            let (years, months) = (months / 12, months % 12);
            match months {
                0 => format!("{} ago", count(years, "year")),
                months => format!("{}, {} ago", count(years, "year"), count(months, "month")),
            }
        }
        () => format!("{} ago", count((days + 183) / 365, "year")),
    }
}

/// A date as git takes it for a commit: `@SECONDS ZONE`, `SECONDS ZONE`, ISO, RFC 2822, or what `date -d` takes.
pub fn parse(text: &str) -> Option<(i64, i32)> {
    let text = text.trim();
    let raw = text.strip_prefix('@').unwrap_or(text);
    let mut words = raw.split_ascii_whitespace();
    let first = words.next()?;
    if first.bytes().all(|byte| byte.is_ascii_digit()) && (text.starts_with('@') || first.len() >= 9) {
        let time = first.parse().ok()?;
        return match words.next() {
            None => Some((time, if text.starts_with('@') { 0 } else { local_zone(time) })),
            Some(zone) => Some((time, zone.parse().ok()?)),
        };
    }
    let nanos = clock::parse(&text.replace(['.', 'T'], " "), clock::now())
        .or_else(|| clock::parse(text, clock::now()))?;
    let time = nanos.div_euclid(1_000_000_000);
    Some((time, written_zone(text).unwrap_or_else(|| local_zone(time))))
}

/// The zone that a date ends with.
fn written_zone(text: &str) -> Option<i32> {
    if text.ends_with('Z') || text.ends_with("GMT") || text.ends_with("UTC") {
        return Some(0);
    }
    let at = text.rfind(['+', '-'])?;
    let digits: String = text[at + 1..].chars().filter(|char| *char != ':').collect();
    if digits.len() != 4 || !text[..at].contains(':') {
        return None;
    }
    let zone: i32 = digits.parse().ok()?;
    Some(if text[at..].starts_with('-') { -zone } else { zone })
}

/// A date as a limit: `2 weeks ago`, `yesterday`, `2024-01-01`.
pub fn parse_limit(text: &str) -> Option<i64> {
    let spaced = text.replace(['.', '_'], " ");
    let now = clock::now();
    if text == "never" {
        return Some(0);
    }
    let only_date = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if only_date {
        // A day without a time means this time of that day.
        let at = wardian_clock::Zone::local().civil(now / 1_000_000_000);
        let full = format!("{text} {:02}:{:02}:{:02}", at.hour, at.minute, at.second);
        return clock::parse(&full, now).map(|nanos| nanos / 1_000_000_000);
    }
    parse(text)
        .map(|(time, _)| time)
        .or_else(|| clock::parse(&spaced, now).map(|nanos| nanos.div_euclid(1_000_000_000)))
}
