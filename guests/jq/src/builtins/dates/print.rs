//! `strftime` in the C locale.

use super::Parts;

pub const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A time by a format, in a zone of this name and distance from Greenwich.
pub fn print(parts: &Parts, format: &str, zone: &(String, i64)) -> String {
    let mut text = String::new();
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '%' {
            text.push(letter);
            continue;
        }
        let mut flag = None;
        let mut directive = letters.next();
        while let Some(found @ ('_' | '-' | '0' | '^' | '#' | 'E' | 'O')) = directive {
            flag = Some(found);
            directive = letters.next();
        }
        match directive {
            Some(directive) => directive_text(parts, directive, flag, zone, &mut text),
            None => text.push('%'),
        }
    }
    text
}

fn directive_text(
    parts: &Parts,
    directive: char,
    flag: Option<char>,
    zone: &(String, i64),
    text: &mut String,
) {
    let name = |names: &'static [&'static str], at: i64| {
        usize::try_from(at).ok().and_then(|at| names.get(at)).copied()
    };
    let inner = |format: &str| print(parts, format, zone);
    let hour12 = (parts.hour + 11).rem_euclid(12) + 1;
    let plain = match directive {
        'a' => name(&DAYS, parts.weekday).map_or("?", |name| &name[..3]).to_owned(),
        'A' => name(&DAYS, parts.weekday).unwrap_or("?").to_owned(),
        'b' | 'h' => name(&MONTHS, parts.month).map_or("?", |name| &name[..3]).to_owned(),
        'B' => name(&MONTHS, parts.month).unwrap_or("?").to_owned(),
        'c' => inner("%a %b %e %H:%M:%S %Y"),
        'C' => number(parts.year.div_euclid(100), 2, '0', flag),
        'd' => number(parts.day, 2, '0', flag),
        'D' | 'x' => inner("%m/%d/%y"),
        'e' => number(parts.day, 2, ' ', flag),
        'F' => inner("%Y-%m-%d"),
        'g' => number(iso_week(parts).0.rem_euclid(100), 2, '0', flag),
        'G' => number(iso_week(parts).0, 1, '0', flag),
        'H' => number(parts.hour, 2, '0', flag),
        'I' => number(hour12, 2, '0', flag),
        'j' => number(parts.yearday + 1, 3, '0', flag),
        'k' => number(parts.hour, 2, ' ', flag),
        'l' => number(hour12, 2, ' ', flag),
        'm' => number(parts.month + 1, 2, '0', flag),
        'M' => number(parts.minute, 2, '0', flag),
        'n' => "\n".into(),
        'p' => if parts.hour >= 12 { "PM" } else { "AM" }.into(),
        'P' => if parts.hour >= 12 { "pm" } else { "am" }.into(),
        'r' => inner("%I:%M:%S %p"),
        'R' => inner("%H:%M"),
        's' => (parts.seconds() - zone.1).to_string(),
        'S' => number(parts.second, 2, '0', flag),
        't' => "\t".into(),
        'T' | 'X' => inner("%H:%M:%S"),
        'u' => number((parts.weekday + 6).rem_euclid(7) + 1, 1, '0', flag),
        'U' => number((parts.yearday + 7 - parts.weekday).div_euclid(7), 2, '0', flag),
        'V' => number(iso_week(parts).1, 2, '0', flag),
        'w' => number(parts.weekday, 1, '0', flag),
        'W' => number((parts.yearday + 7 - (parts.weekday + 6).rem_euclid(7)).div_euclid(7), 2, '0', flag),
        'y' => number(parts.year.rem_euclid(100), 2, '0', flag),
        'Y' => number(parts.year, 1, '0', flag),
        'z' => {
            let minutes = zone.1.abs() / 60;
            let sign = if zone.1 < 0 { '-' } else { '+' };
            format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
        }
        'Z' => zone.0.clone(),
        '%' => "%".into(),
        other => format!("%{other}"),
    };
    match flag {
        Some('^') => text.push_str(&plain.to_uppercase()),
        _ => text.push_str(&plain),
    }
}

/// A number filled up to a width, unless a flag wants otherwise.
fn number(number: i64, width: usize, fill: char, flag: Option<char>) -> String {
    match flag {
        Some('-') => number.to_string(),
        Some('_') => format!("{number:>width$}"),
        Some('0') => format!("{number:0>width$}"),
        _ if fill == '0' => format!("{number:0>width$}"),
        _ => format!("{number:>width$}"),
    }
}

/// The year and the week, which begins on a Monday and belongs to the year of its Thursday.
fn iso_week(parts: &Parts) -> (i64, i64) {
    let from_monday = (parts.weekday + 6).rem_euclid(7);
    let thursday = parts.yearday - from_monday + 3;
    let length = |year: i64| if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) { 366 } else { 365 };
    if thursday < 0 {
        let year = parts.year - 1;
        (year, (thursday + length(year)) / 7 + 1)
    } else if thursday >= length(parts.year) {
        (parts.year + 1, (thursday - length(parts.year)) / 7 + 1)
    } else {
        (parts.year, thursday / 7 + 1)
    }
}
