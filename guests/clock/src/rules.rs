//! Zones that are described by their rules, as POSIX writes them: `EST5EDT,M3.2.0,M11.1.0`.

use crate::civil::{Civil, DAY, days_of};

/// What the clock shows in a zone for part of the year: its name, and seconds east of Greenwich.
#[derive(Clone, Debug)]
struct Time {
    name: String,
    offset: i64,
}

#[derive(Clone, Debug)]
pub struct Rules {
    standard: Time,
    summer: Option<Summer>,
}

#[derive(Clone, Debug)]
struct Summer {
    time: Time,
    start: Change,
    end: Change,
}

/// A day of the year when clocks change, and the second of that day.
#[derive(Clone, Debug)]
struct Change {
    day: Day,
    time: i64,
}

#[derive(Clone, Debug)]
enum Day {
    /// From 0, with the 29th of February.
    Plain(i64),
    /// From 1, without it.
    Julian(i64),
    /// A month, which of its weeks (5 is the last), and the day of the week.
    Weekday(i64, i64, i64),
}

impl Rules {
    /// Reads a description; `None` when it is wrong.
    pub fn parse(text: &str) -> Option<Rules> {
        let mut text = Rest(text.as_bytes());
        let name = text.name()?;
        let standard = Time { name, offset: -text.time(24)? };
        if text.0.is_empty() {
            return Some(Rules { standard, summer: None });
        }
        let name = text.name()?;
        let offset = match text.0 {
            [] | [b',', ..] => standard.offset + 3600,
            _ => -text.time(24)?,
        };
        let (start, end) = match text.0 {
            // The rules of the United States, which the C library falls back on.
            [] => (Change::on(3, 2), Change::on(11, 1)),
            _ => (text.change()?, text.change()?),
        };
        let whole = text.0.is_empty();
        whole.then_some(Rules { standard, summer: Some(Summer { time: Time { name, offset }, start, end }) })
    }

    /// The name, the seconds east of Greenwich, and whether it is summer time.
    pub fn at(&self, seconds: i64) -> (&str, i64, bool) {
        let standard = (self.standard.name.as_str(), self.standard.offset, false);
        let Some(summer) = &self.summer else { return standard };
        let year = Civil::at(seconds.saturating_add(self.standard.offset)).year;
        let start = summer.start.moment(year).saturating_sub(self.standard.offset);
        let end = summer.end.moment(year).saturating_sub(summer.time.offset);
        let within =
            if start < end { (start..end).contains(&seconds) } else { !(end..start).contains(&seconds) };
        if within { (&summer.time.name, summer.time.offset, true) } else { standard }
    }
}

impl Change {
    /// At two o'clock on one of the Sundays of a month.
    fn on(month: i64, week: i64) -> Change {
        Change { day: Day::Weekday(month, week, 0), time: 7200 }
    }

    /// When it is in a year, were the zone UTC.
    fn moment(&self, year: i64) -> i64 {
        let first = days_of(year, 1, 1);
        let leap = days_of(year, 3, 1) - days_of(year, 2, 1) == 29;
        let day = match self.day {
            Day::Plain(day) => first + day,
            Day::Julian(day) => first + day - 1 + i64::from(leap && day > 59),
            Day::Weekday(month, week, weekday) => {
                let start = days_of(year, month, 1);
                let length = days_of(year, month + 1, 1) - start;
                let skip = (weekday - (start + 4)).rem_euclid(7) + 7 * (week - 1);
                start + if skip < length { skip } else { skip - 7 }
            }
        };
        day.saturating_mul(DAY).saturating_add(self.time)
    }
}

/// What is left to read of a description.
struct Rest<'t>(&'t [u8]);

impl Rest<'_> {
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        self.0 = &self.0[usize::from(found)..];
        found
    }

    /// Three letters or more, or letters, digits and signs between angle brackets.
    fn name(&mut self) -> Option<String> {
        let quoted = self.eat(b'<');
        let named = |byte: &&u8| match quoted {
            true => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-'),
            false => byte.is_ascii_alphabetic(),
        };
        let length = self.0.iter().take_while(named).count();
        let (name, rest) = self.0.split_at(length);
        self.0 = rest;
        let closed = !quoted || self.eat(b'>');
        (length >= 3 && closed).then(|| String::from_utf8_lossy(name).into_owned())
    }

    /// A number of at most three digits within bounds.
    fn number(&mut self, least: i64, most: i64) -> Option<i64> {
        let length = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count().min(3);
        let (digits, rest) = self.0.split_at(length);
        self.0 = rest;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        (least..=most).contains(&number).then_some(number)
    }

    /// `[+-]hh[:mm[:ss]]` in seconds.
    fn time(&mut self, most_hours: i64) -> Option<i64> {
        let negative = self.eat(b'-');
        if !negative {
            self.eat(b'+');
        }
        let mut seconds = self.number(0, most_hours)? * 3600;
        for unit in [60, 1] {
            if self.eat(b':') {
                seconds += self.number(0, 59)? * unit;
            }
        }
        Some(if negative { -seconds } else { seconds })
    }

    /// `,M3.2.0/2`, `,J60` or `,59`.
    fn change(&mut self) -> Option<Change> {
        if !self.eat(b',') {
            return None;
        }
        let day = if self.eat(b'M') {
            let month = self.number(1, 12)?;
            let week = self.eat(b'.').then(|| self.number(1, 5)).flatten()?;
            Day::Weekday(month, week, self.eat(b'.').then(|| self.number(0, 6)).flatten()?)
        } else if self.eat(b'J') {
            Day::Julian(self.number(1, 365)?)
        } else {
            Day::Plain(self.number(0, 365)?)
        };
        let time = if self.eat(b'/') { self.time(167)? } else { 7200 };
        Some(Change { day, time })
    }
}
