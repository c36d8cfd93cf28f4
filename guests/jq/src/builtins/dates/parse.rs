//! `strptime` in the C locale.

use super::Parts;
use wardian_clock::{Civil, DAYS, MONTHS};

/// The time that a text says in a format, and what is left of the text; `None` if it does not.
pub fn parse<'a>(text: &'a str, format: &str) -> Option<(Parts, &'a str)> {
    let parts = Parts { year: 1900, ..Parts::default() };
    let mut reading =
        Reading { text, parts, afternoon: None, has_date: false, has_yearday: false, has_weekday: false };
    reading.follow(format)?;
    let Reading { mut parts, afternoon, has_date, has_yearday, has_weekday, text } = reading;
    if let Some(afternoon) = afternoon {
        parts.hour = parts.hour % 12 + if afternoon { 12 } else { 0 };
    }
    if has_yearday && !has_date {
        let date =
            Civil { year: parts.year, month: 1, day: 1 + parts.yearday, hour: 0, minute: 0, second: 0 };
        let date = Parts::of(date.seconds().unwrap_or(0));
        (parts.month, parts.day) = (date.month, date.day);
    }
    fill(&mut parts, has_weekday);
    Some((parts, text))
}

/// The day of the week and of the year, by a formula that is also asked about day 0.
fn fill(parts: &mut Parts, has_weekday: bool) {
    let civil = parts.civil();
    parts.yearday = civil.day_of_year() - 1;
    if !has_weekday {
        parts.weekday = civil.weekday();
    }
}

struct Reading<'a> {
    text: &'a str,
    parts: Parts,
    afternoon: Option<bool>,
    has_date: bool,
    has_yearday: bool,
    has_weekday: bool,
}

impl Reading<'_> {
    fn follow(&mut self, format: &str) -> Option<()> {
        let mut letters = format.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '%' => {
                    let mut directive = letters.next()?;
                    while matches!(directive, 'E' | 'O' | '-' | '_' | '0' | '^') {
                        directive = letters.next()?;
                    }
                    self.directive(directive)?;
                }
                blank if blank.is_ascii_whitespace() => self.skip_blanks(),
                other => self.text = self.text.strip_prefix(other)?,
            }
        }
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.text = self.text.trim_start_matches(|letter: char| letter.is_ascii_whitespace());
    }

    /// A number of at most so many digits within bounds.
    fn number(&mut self, digits: usize, from: i64, to: i64) -> Option<i64> {
        self.skip_blanks();
        let length = self.text.bytes().take(digits).take_while(u8::is_ascii_digit).count();
        let number: i64 = self.text[..length].parse().ok()?;
        if !(from..=to).contains(&number) {
            return None;
        }
        self.text = &self.text[length..];
        Some(number)
    }

    /// One of several names, whole or by its first three letters.
    fn name(&mut self, names: &[&str]) -> Option<i64> {
        let fits =
            |name: &str| self.text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        for (at, name) in names.iter().enumerate() {
            let length = if fits(name) {
                name.len()
            } else if fits(&name[..3]) {
                3
            } else {
                continue;
            };
            self.text = &self.text[length..];
            return Some(at as i64);
        }
        None
    }

    fn directive(&mut self, directive: char) -> Option<()> {
        match directive {
            'a' | 'A' => {
                self.parts.weekday = self.name(&DAYS)?;
                self.has_weekday = true;
            }
            'b' | 'B' | 'h' => {
                self.parts.month = self.name(&MONTHS)?;
                self.has_date = true;
            }
            'c' => self.follow("%a %b %e %H:%M:%S %Y")?,
            'C' => self.parts.year = self.number(2, 0, 99)? * 100,
            'd' | 'e' => {
                self.parts.day = self.number(2, 1, 31)?;
                self.has_date = true;
            }
            'D' | 'x' => self.follow("%m/%d/%y")?,
            'F' => self.follow("%Y-%m-%d")?,
            'H' | 'k' => self.parts.hour = self.number(2, 0, 23)?,
            'I' | 'l' => self.parts.hour = self.number(2, 1, 12)?,
            'j' => {
                self.parts.yearday = self.number(3, 1, 366)? - 1;
                self.has_yearday = true;
            }
            'm' => {
                self.parts.month = self.number(2, 1, 12)? - 1;
                self.has_date = true;
            }
            'M' => self.parts.minute = self.number(2, 0, 59)?,
            'n' | 't' => self.skip_blanks(),
            'p' | 'P' => self.afternoon = Some(self.half_of_day()?),
            'r' => self.follow("%I:%M:%S %p")?,
            'R' => self.follow("%H:%M")?,
            's' => {
                let seconds = self.number(18, 0, i64::MAX)?;
                self.parts = Parts::of(seconds);
                (self.has_date, self.has_weekday) = (true, true);
            }
            'S' => self.parts.second = self.number(2, 0, 61)?,
            'T' | 'X' => self.follow("%H:%M:%S")?,
            'u' => self.weekday(1, 7)?,
            'w' => self.weekday(0, 6)?,
            'U' | 'V' | 'W' => drop(self.number(2, 0, 53)?),
            'y' => {
                let year = self.number(2, 0, 99)?;
                self.parts.year = if year >= 69 { 1900 + year } else { 2000 + year };
            }
            'Y' | 'G' => self.parts.year = self.year()?,
            'z' => self.offset()?,
            'Z' => self.text = self.text.trim_start_matches(|letter: char| letter.is_ascii_alphabetic()),
            '%' => self.text = self.text.strip_prefix('%')?,
            _ => return None,
        }
        Some(())
    }

    fn weekday(&mut self, from: i64, to: i64) -> Option<()> {
        self.parts.weekday = self.number(1, from, to)? % 7;
        self.has_weekday = true;
        Some(())
    }

    fn year(&mut self) -> Option<i64> {
        self.skip_blanks();
        match self.text.strip_prefix('-') {
            Some(rest) => {
                self.text = rest;
                self.number(4, 0, 9999).map(|year| -year)
            }
            None => self.number(4, 0, 9999),
        }
    }

    fn half_of_day(&mut self) -> Option<bool> {
        let start = self.text.get(..2)?.to_ascii_uppercase();
        self.text = &self.text[2..];
        match start.as_str() {
            "AM" => Some(false),
            "PM" => Some(true),
            _ => None,
        }
    }

    /// `Z`, `+01`, `+0100` or `+01:00`: understood, but what is taken apart has no place for it.
    fn offset(&mut self) -> Option<()> {
        self.skip_blanks();
        if let Some(rest) = self.text.strip_prefix('Z') {
            self.text = rest;
            return Some(());
        }
        self.text = self.text.strip_prefix(['+', '-'])?;
        let length =
            self.text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b':').count().min(5);
        if length < 2 {
            return None;
        }
        self.text = &self.text[length..];
        Some(())
    }
}
