//! Dates as `strftime` writes them, in the zone that `TZ` describes by its rules (`EST5EDT,M3.2.0,M11.1.0`). A sandbox
//! has no table of places: by any other name it is UTC.

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
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

/// A moment taken apart.
struct Date {
    year: i64,
    month: usize,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    weekday: i64,
    year_day: i64,
}

/// Days to a civil date, by Howard Hinnant's algorithm.
fn date(seconds: i64) -> Date {
    let days = seconds.div_euclid(86_400);
    let time = seconds.rem_euclid(86_400);
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let part = (5 * day_of_year + 2) / 153;
    let month = if part < 10 { part + 3 } else { part - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334][(month - 1) as usize];
    let day = day_of_year - (153 * part + 2) / 5 + 1;
    Date {
        year,
        month: (month - 1) as usize,
        day,
        hour: time / 3600,
        minute: time / 60 % 60,
        second: time % 60,
        weekday: (days + 4).rem_euclid(7),
        year_day: before + day - 1 + i64::from(leap && month > 2),
    }
}

impl crate::shell::Shell {
    /// A moment as the variable `TZ` says that clocks show it.
    pub fn local_time(&self, format: &[u8], seconds: i64) -> Vec<u8> {
        self::format(format, seconds, self.text(b"TZ").as_deref().unwrap_or_default())
    }
}

fn format(format: &[u8], seconds: i64, zone: &[u8]) -> Vec<u8> {
    let local = Zone::parse(zone).unwrap_or_default().at(seconds);
    let date = date(seconds.saturating_add(local.offset));
    let mut out = Vec::new();
    let mut bytes = format.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'z') => {
                let minutes = local.offset.abs() / 60;
                let sign = if local.offset < 0 { '-' } else { '+' };
                out.extend(format!("{sign}{:02}{:02}", minutes / 60, minutes % 60).into_bytes());
            }
            Some(b'Z') => out.extend_from_slice(&local.name),
            Some(&kind) => out.extend(field(&date, kind, seconds).into_bytes()),
            None => out.push(b'%'),
        }
    }
    out
}

fn field(date: &Date, kind: u8, seconds: i64) -> String {
    let hour12 = if date.hour % 12 == 0 { 12 } else { date.hour % 12 };
    let day_name = DAYS[date.weekday as usize % 7];
    let month_name = MONTHS[date.month % 12];
    match kind {
        b'Y' => date.year.to_string(),
        b'C' => format!("{:02}", date.year / 100),
        b'y' => format!("{:02}", date.year.rem_euclid(100)),
        b'm' => format!("{:02}", date.month + 1),
        b'd' => format!("{:02}", date.day),
        b'e' => format!("{:2}", date.day),
        b'H' => format!("{:02}", date.hour),
        b'k' => format!("{:2}", date.hour),
        b'I' => format!("{hour12:02}"),
        b'l' => format!("{hour12:2}"),
        b'M' => format!("{:02}", date.minute),
        b'S' => format!("{:02}", date.second),
        b'p' => if date.hour < 12 { "AM" } else { "PM" }.to_string(),
        b'P' => if date.hour < 12 { "am" } else { "pm" }.to_string(),
        b'j' => format!("{:03}", date.year_day + 1),
        b'a' => day_name[..3].to_string(),
        b'A' => day_name.to_string(),
        b'b' | b'h' => month_name[..3].to_string(),
        b'B' => month_name.to_string(),
        b'u' => if date.weekday == 0 { 7 } else { date.weekday }.to_string(),
        b'w' => date.weekday.to_string(),
        b's' => seconds.to_string(),
        b'n' => "\n".to_string(),
        b't' => "\t".to_string(),
        b'%' => "%".to_string(),
        b'F' => format!("{}-{:02}-{:02}", date.year, date.month + 1, date.day),
        b'T' | b'X' => format!("{:02}:{:02}:{:02}", date.hour, date.minute, date.second),
        b'R' => format!("{:02}:{:02}", date.hour, date.minute),
        b'r' => format!(
            "{hour12:02}:{:02}:{:02} {}",
            date.minute,
            date.second,
            if date.hour < 12 { "AM" } else { "PM" }
        ),
        b'D' | b'x' => format!("{:02}/{:02}/{:02}", date.month + 1, date.day, date.year.rem_euclid(100)),
        b'c' => format!(
            "{} {} {:2} {:02}:{:02}:{:02} {}",
            &day_name[..3],
            &month_name[..3],
            date.day,
            date.hour,
            date.minute,
            date.second,
            date.year
        ),
        b'U' => format!("{:02}", (date.year_day + 7 - date.weekday) / 7),
        b'W' => format!("{:02}", (date.year_day + 7 - (date.weekday + 6) % 7) / 7),
        b'G' | b'g' | b'V' => iso_week(date, kind),
        other => format!("%{}", other as char),
    }
}

/// ISO 8601's week and its year.
fn iso_week(date: &Date, kind: u8) -> String {
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let weekday = (date.weekday + 6) % 7;
    let mut year = date.year;
    let mut week = (date.year_day - weekday + 10) / 7;
    if week < 1 {
        year -= 1;
        let days = 365 + i64::from(leap(year));
        week = (date.year_day + days - weekday + 10) / 7;
    } else if week == 53 {
        let days = 365 + i64::from(leap(year));
        if date.year_day - weekday + 3 >= days {
            week = 1;
            year += 1;
        }
    }
    match kind {
        b'G' => year.to_string(),
        b'g' => format!("{:02}", year.rem_euclid(100)),
        _ => format!("{week:02}"),
    }
}

// --- zones ---

/// What the clock shows in a zone for part of the year: its name, and seconds east of Greenwich.
#[derive(Clone)]
struct Clock {
    name: Vec<u8>,
    offset: i64,
}

struct Zone {
    standard: Clock,
    summer: Option<Summer>,
}

struct Summer {
    clock: Clock,
    start: Change,
    end: Change,
}

/// A day of the year when clocks change, and the second of that day.
struct Change {
    day: Day,
    time: i64,
}

enum Day {
    /// From 0, with the 29th of February.
    Plain(i64),
    /// From 1, without it.
    Julian(i64),
    /// A month, which of its weeks (5 is the last), and the day of the week.
    Weekday(i64, i64, i64),
}

impl Default for Zone {
    fn default() -> Zone {
        Zone { standard: Clock { name: b"UTC".to_vec(), offset: 0 }, summer: None }
    }
}

impl Zone {
    fn parse(text: &[u8]) -> Option<Zone> {
        let mut text = Rest(text);
        let name = text.name()?;
        let standard = Clock { name, offset: -text.time()? };
        let Some(name) = text.name() else { return Some(Zone { standard, summer: None }) };
        let offset = text.time().map_or(standard.offset + 3600, |west| -west);
        let (start, end) = match text.0 {
            [] => (Change::second_sunday_of_march(), Change::first_sunday_of_november()),
            _ => (text.change()?, text.change()?),
        };
        Some(Zone { standard, summer: Some(Summer { clock: Clock { name, offset }, start, end }) })
    }

    fn at(self, seconds: i64) -> Clock {
        let Some(summer) = self.summer else { return self.standard };
        let year = date(seconds.saturating_add(self.standard.offset)).year;
        let start = summer.start.moment(year) - self.standard.offset;
        let end = summer.end.moment(year) - summer.clock.offset;
        let within =
            if start < end { (start..end).contains(&seconds) } else { !(end..start).contains(&seconds) };
        if within { summer.clock } else { self.standard }
    }
}

impl Change {
    fn second_sunday_of_march() -> Change {
        Change { day: Day::Weekday(3, 2, 0), time: 7200 }
    }

    fn first_sunday_of_november() -> Change {
        Change { day: Day::Weekday(11, 1, 0), time: 7200 }
    }

    /// When it is, by a clock of Greenwich.
    fn moment(&self, year: i64) -> i64 {
        let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let before = year - 1;
        let first = 365 * (year - 1970) + before.div_euclid(4) - before.div_euclid(100)
            + before.div_euclid(400)
            - 477;
        let lengths = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        let day = match self.day {
            Day::Plain(day) => day,
            Day::Julian(day) => day - 1 + i64::from(leap && day > 59),
            Day::Weekday(month, week, weekday) => {
                let month = (month - 1).clamp(0, 11) as usize;
                let start: i64 = lengths[..month].iter().sum();
                let skip = (weekday - (first + start + 4)).rem_euclid(7) + 7 * (week - 1);
                start + if skip < lengths[month] { skip } else { skip - 7 }
            }
        };
        (first + day) * 86_400 + self.time
    }
}

/// What is left to read of a zone's description.
struct Rest<'t>(&'t [u8]);

impl Rest<'_> {
    fn eat(&mut self, byte: u8) -> bool {
        let found = self.0.first() == Some(&byte);
        self.0 = &self.0[usize::from(found)..];
        found
    }

    /// Three letters or more, or anything between angle brackets.
    fn name(&mut self) -> Option<Vec<u8>> {
        let quoted = self.eat(b'<');
        let named = |byte: &&u8| if quoted { **byte != b'>' } else { byte.is_ascii_alphabetic() };
        let len = self.0.iter().take_while(named).count();
        let (name, rest) = self.0.split_at(len);
        self.0 = rest;
        let closed = !quoted || self.eat(b'>');
        (len >= 3 && closed).then(|| name.to_vec())
    }

    fn number(&mut self) -> Option<i64> {
        let len = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count().min(6);
        let (digits, rest) = self.0.split_at(len);
        self.0 = rest;
        std::str::from_utf8(digits).ok()?.parse().ok()
    }

    /// `[+-]hh[:mm[:ss]]` in seconds.
    fn time(&mut self) -> Option<i64> {
        let negative = self.eat(b'-');
        if !negative {
            self.eat(b'+');
        }
        let mut seconds = self.number()? * 3600;
        for unit in [60, 1] {
            if self.eat(b':') {
                seconds += self.number()? * unit;
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
            let month = self.number()?;
            let week = self.eat(b'.').then(|| self.number()).flatten()?;
            Day::Weekday(month, week, self.eat(b'.').then(|| self.number()).flatten()?)
        } else if self.eat(b'J') {
            Day::Julian(self.number()?)
        } else {
            Day::Plain(self.number()?)
        };
        let time = if self.eat(b'/') { self.time()? } else { 7200 };
        Some(Change { day, time })
    }
}
