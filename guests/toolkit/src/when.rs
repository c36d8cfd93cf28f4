//! Dates as people write them: `next friday 10:00`, `2 days ago`, `2024-02-29T12:00Z`, `@0`.
//!
//! The language is the one GNU's `date -d` takes, with its oddities: after a time of day a signed number is a zone, a
//! weekday beside a date is ignored, `next` is the number 1.

use wardian_clock::{Civil, Zone};

pub use wardian_clock::When;

/// The moment that a text means, seen from `now` in a zone.
pub fn parse(text: &str, now: When, zone: &Zone) -> Option<When> {
    let text = text.trim_start();
    if let Some(rest) = text.strip_prefix("TZ=\"") {
        let (name, rest) = zone_name(rest)?;
        return parse(rest, now, &Zone::named(&name));
    }
    if let Some(rest) = text.strip_prefix('@') {
        return match tokens(rest, zone, now)?.as_slice() {
            [Token::Number(number)] => Some(When { seconds: number.value, nanos: number.nanos }),
            _ => None,
        };
    }
    let tokens = tokens(text, zone, now)?;
    let mut reader = Reader { rest: &tokens, seen: Seen::new(&zone.civil(now.seconds), now.nanos) };
    while !reader.rest.is_empty() {
        reader.item()?;
    }
    reader.seen.resolve(zone)
}

/// What stands between `TZ="` and the quote, and what follows.
fn zone_name(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((name, &text[at + 1..])),
            '\\' => name.push(chars.next()?.1),
            char => name.push(char),
        }
    }
    None
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Unit {
    Year,
    Month,
    /// So many days.
    Days(i64),
    Hour,
    Minute,
    Second,
}

/// Digits, as they were written.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Number {
    value: i64,
    /// What a fraction adds, never negative.
    nanos: i64,
    digits: usize,
    signed: bool,
    negative: bool,
    fraction: bool,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token {
    Number(Number),
    /// `next`, `last`, `this`, `third`…
    Ordinal(i64),
    Month(i64),
    /// From 0 for Sunday.
    Weekday(i64),
    /// Hours to add to one that is not 12.
    Meridian(i64),
    Unit(Unit),
    /// `tomorrow` and its like.
    DayShift(i64),
    /// `ago`, `hence`.
    Ago(i64),
    /// Minutes east of Greenwich.
    Zone(i64),
    /// The same in summer, by the winter's offset.
    SummerZone(i64),
    /// A name that the local zone uses, in summer or not.
    LocalZone(bool),
    Dst,
    /// The letter that stands between a date and a time, or for a zone.
    T,
    Sign(char),
}

/// Cuts a text into tokens; comments in parentheses are none.
fn tokens(text: &str, zone: &Zone, now: When) -> Option<Vec<Token>> {
    let bytes = text.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b' ' | b'\t'..=b'\r' => at += 1,
            b'0'..=b'9' => tokens.push(Token::Number(number(bytes, &mut at, None)?)),
            b'+' | b'-' => {
                at += 1;
                while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                    at += 1;
                }
                // A sign before anything else is noise: `17-JUN-1992`.
                if bytes.get(at).is_some_and(u8::is_ascii_digit) {
                    tokens.push(Token::Number(number(bytes, &mut at, Some(byte == b'-'))?));
                }
            }
            b'(' => at = after_comment(bytes, at)?,
            byte if byte.is_ascii_alphabetic() => {
                let start = at;
                while bytes.get(at).is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'.') {
                    at += 1;
                }
                tokens.push(word(&text[start..at], zone, now)?);
            }
            byte => {
                tokens.push(Token::Sign(char::from(byte)));
                at += 1;
            }
        }
    }
    Some(tokens)
}

fn after_comment(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0;
    loop {
        match bytes.get(at) {
            None => return Some(at),
            Some(b'(') => depth += 1,
            Some(b')') => depth -= 1,
            Some(_) => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// Digits and a fraction. A negative number with a fraction is the second below, and the rest.
fn number(bytes: &[u8], at: &mut usize, negative: Option<bool>) -> Option<Number> {
    let start = *at;
    let mut value: i64 = 0;
    let is_negative = negative == Some(true);
    while let Some(digit) = bytes.get(*at).filter(|byte| byte.is_ascii_digit()) {
        let digit = i64::from(digit - b'0');
        value = value.checked_mul(10)?;
        value = if is_negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
        *at += 1;
    }
    let digits = *at - start;
    let (mut nanos, mut fraction) = (0, false);
    if matches!(bytes.get(*at), Some(b'.' | b',')) && bytes.get(*at + 1).is_some_and(u8::is_ascii_digit) {
        fraction = true;
        *at += 1;
        let mut place = 100_000_000;
        while let Some(digit) = bytes.get(*at).filter(|byte| byte.is_ascii_digit()) {
            nanos += i64::from(digit - b'0') * place;
            place /= 10;
            *at += 1;
        }
        if is_negative && nanos > 0 {
            value = value.checked_sub(1)?;
            nanos = 1_000_000_000 - nanos;
        }
    }
    Some(Number { value, nanos, digits, signed: negative.is_some(), negative: is_negative, fraction })
}

const MONTHS: [&str; 12] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];
const DAYS: [&str; 7] = ["SUNDAY", "MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY"];

/// Words with one meaning.
const WORDS: [(&str, Token); 31] = [
    ("AM", Token::Meridian(0)),
    ("A.M.", Token::Meridian(0)),
    ("PM", Token::Meridian(12)),
    ("P.M.", Token::Meridian(12)),
    ("SEPT", Token::Month(9)),
    ("TUES", Token::Weekday(2)),
    ("WEDNES", Token::Weekday(3)),
    ("THUR", Token::Weekday(4)),
    ("THURS", Token::Weekday(4)),
    ("DST", Token::Dst),
    ("TOMORROW", Token::DayShift(1)),
    ("YESTERDAY", Token::DayShift(-1)),
    ("TODAY", Token::DayShift(0)),
    ("NOW", Token::DayShift(0)),
    ("LAST", Token::Ordinal(-1)),
    ("THIS", Token::Ordinal(0)),
    ("NEXT", Token::Ordinal(1)),
    ("FIRST", Token::Ordinal(1)),
    ("THIRD", Token::Ordinal(3)),
    ("FOURTH", Token::Ordinal(4)),
    ("FIFTH", Token::Ordinal(5)),
    ("SIXTH", Token::Ordinal(6)),
    ("SEVENTH", Token::Ordinal(7)),
    ("EIGHTH", Token::Ordinal(8)),
    ("NINTH", Token::Ordinal(9)),
    ("TENTH", Token::Ordinal(10)),
    ("ELEVENTH", Token::Ordinal(11)),
    ("TWELFTH", Token::Ordinal(12)),
    ("AGO", Token::Ago(-1)),
    ("HENCE", Token::Ago(1)),
    ("T", Token::T),
];

const UNITS: [(&str, Unit); 10] = [
    ("YEAR", Unit::Year),
    ("MONTH", Unit::Month),
    ("FORTNIGHT", Unit::Days(14)),
    ("WEEK", Unit::Days(7)),
    ("DAY", Unit::Days(1)),
    ("HOUR", Unit::Hour),
    ("MINUTE", Unit::Minute),
    ("MIN", Unit::Minute),
    ("SECOND", Unit::Second),
    ("SEC", Unit::Second),
];

/// Zones by name: minutes east of Greenwich in winter, and whether the name is summer's.
const ZONES: [(&str, i64, bool); 51] = [
    ("GMT", 0, false),
    ("UT", 0, false),
    ("UTC", 0, false),
    ("WET", 0, false),
    ("WEST", 0, true),
    ("BST", 0, true),
    ("ART", -180, false),
    ("BRT", -180, false),
    ("BRST", -180, true),
    ("NST", -210, false),
    ("NDT", -210, true),
    ("AST", -240, false),
    ("ADT", -240, true),
    ("CLT", -240, false),
    ("CLST", -240, true),
    ("EST", -300, false),
    ("EDT", -300, true),
    ("CST", -360, false),
    ("CDT", -360, true),
    ("MST", -420, false),
    ("MDT", -420, true),
    ("PST", -480, false),
    ("PDT", -480, true),
    ("AKST", -540, false),
    ("AKDT", -540, true),
    ("HST", -600, false),
    ("HAST", -600, false),
    ("HADT", -600, true),
    ("SST", -720, false),
    ("WAT", 60, false),
    ("CET", 60, false),
    ("CEST", 60, true),
    ("MET", 60, false),
    ("MEZ", 60, false),
    ("MEST", 60, true),
    ("MESZ", 60, true),
    ("EET", 120, false),
    ("EEST", 120, true),
    ("CAT", 120, false),
    ("SAST", 120, false),
    ("EAT", 180, false),
    ("MSK", 180, false),
    ("MSD", 180, true),
    ("IST", 330, false),
    ("SGT", 480, false),
    ("KST", 540, false),
    ("JST", 540, false),
    ("GST", 600, false),
    ("NZST", 720, false),
    ("NZDT", 720, true),
    ("Z", 0, false),
];

fn word(word: &str, zone: &Zone, now: When) -> Option<Token> {
    let word = word.to_ascii_uppercase();
    let find = |name: &str| WORDS.iter().find(|(known, _)| *known == name).map(|(_, token)| *token);
    if let Some(token @ Token::Meridian(_)) = find(&word) {
        return Some(token);
    }
    // Months and days go by three letters as well, with or without a period.
    let short = word.len() == 3 || word.len() == 4 && word.ends_with('.');
    let position = |names: &[&str]| {
        let is = |name: &&str| **name == word || short && name[..3] == word[..3];
        names.iter().position(is).map(|at| at as i64)
    };
    if let Some(month) = position(&MONTHS) {
        return Some(Token::Month(month + 1));
    }
    if let Some(day) = position(&DAYS) {
        return Some(Token::Weekday(day));
    }
    if let Some(token) = zone_token(&word, zone, now).or_else(|| find(&word)) {
        return Some(token);
    }
    let singular = word.strip_suffix('S').unwrap_or(&word);
    if let Some((_, unit)) = UNITS.iter().find(|(name, _)| *name == singular || *name == word) {
        return Some(Token::Unit(*unit));
    }
    if let [letter] = word.as_bytes() {
        return military(*letter);
    }
    let plain = word.replace('.', "");
    if plain.len() < word.len() { zone_token(&plain, zone, now) } else { None }
}

fn zone_token(word: &str, zone: &Zone, now: When) -> Option<Token> {
    if matches!(word, "GMT" | "UT" | "UTC") {
        return Some(Token::Zone(0));
    }
    if let Some((_, summer)) = zone.names_around(now.seconds).iter().find(|(name, _)| name == word) {
        return Some(Token::LocalZone(*summer));
    }
    let (_, minutes, summer) = ZONES.iter().find(|(name, _, _)| *name == word)?;
    Some(if *summer { Token::SummerZone(*minutes) } else { Token::Zone(*minutes) })
}

/// The zones of one letter: `A` is an hour east, `N` an hour west.
fn military(letter: u8) -> Option<Token> {
    let hours = match letter {
        b'A'..=b'I' => i64::from(letter - b'A') + 1,
        b'K'..=b'M' => i64::from(letter - b'K') + 10,
        b'N'..=b'Y' => -(i64::from(letter - b'N') + 1),
        _ => return None,
    };
    Some(Token::Zone(hours * 60))
}

/// What has been read so far.
struct Seen {
    civil: Civil,
    nanos: i64,
    year_digits: usize,
    meridian: Option<i64>,
    weekday: (i64, i64),
    /// Minutes east of Greenwich.
    zone: Option<i64>,
    shift: Shift,
    times: u32,
    dates: u32,
    weekdays: u32,
    zones: u32,
    shifts: u32,
}

/// What is to be added.
#[derive(Clone, Copy, Default)]
struct Shift {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    nanos: i64,
}

struct Reader<'a> {
    rest: &'a [Token],
    seen: Seen,
}

/// A number that is a token; what follows decides what it means.
fn unsigned(token: &Token) -> Option<Number> {
    match token {
        Token::Number(number) if !number.signed && !number.fraction => Some(*number),
        _ => None,
    }
}

fn signed(token: Option<&Token>) -> Option<Number> {
    match token {
        Some(Token::Number(number)) if number.signed && !number.fraction => Some(*number),
        _ => None,
    }
}

impl Reader<'_> {
    fn take(&mut self, count: usize) {
        self.rest = &self.rest[count..];
    }

    /// Reads one thing that is said of the moment.
    fn item(&mut self) -> Option<()> {
        match (*self.rest.first()?, self.rest.get(1).copied()) {
            (Token::Number(number), Some(Token::Unit(unit))) => {
                self.take(2);
                self.shift(number, unit)
            }
            (Token::Number(number), next) if !number.signed && !number.fraction => {
                self.after_number(number, next)
            }
            (Token::Month(month), _) => self.after_month(month),
            (Token::Ordinal(count), Some(Token::Weekday(day))) => {
                self.take(2);
                self.weekday(count, day)
            }
            (Token::Ordinal(count), Some(Token::Unit(unit))) => {
                self.take(2);
                self.shift(whole(count), unit)
            }
            (Token::Unit(unit), _) => {
                self.take(1);
                self.shift(whole(1), unit)
            }
            (Token::DayShift(days), _) => {
                self.take(1);
                self.seen.shifts += 1;
                self.seen.shift.days = self.seen.shift.days.checked_add(days)?;
                Some(())
            }
            (Token::Weekday(day), next) => {
                self.take(if next == Some(Token::Sign(',')) { 2 } else { 1 });
                self.weekday(0, day)
            }
            (Token::T, _) => self.zone(-7 * 60),
            (Token::Zone(minutes), _) => self.zone(minutes),
            (Token::SummerZone(minutes), _) => {
                self.take(1);
                self.set_zone(minutes + 60)
            }
            (Token::LocalZone(_), next) => {
                self.take(if next == Some(Token::Dst) { 2 } else { 1 });
                self.seen.zones += 1;
                Some(())
            }
            _ => None,
        }
    }

    fn after_number(&mut self, number: Number, next: Option<Token>) -> Option<()> {
        match next {
            Some(Token::Meridian(meridian)) => {
                self.take(2);
                self.time([number.value, 0, 0], 0, Some(meridian))
            }
            Some(Token::Sign(':')) => self.clock(number),
            Some(Token::Sign('/')) => self.slashes(number),
            Some(Token::Month(month)) => self.day_and_month(number, month),
            Some(Token::Weekday(day)) => {
                self.take(2);
                self.weekday(number.value, day)
            }
            Some(Token::Number(second)) if second.signed && !second.fraction => {
                match (signed(self.rest.get(2)), self.rest.get(2)) {
                    (Some(third), _) => self.iso_date(number, second, third),
                    (None, Some(Token::Unit(_))) => {
                        self.take(1);
                        self.digits(number)
                    }
                    _ => {
                        self.take(1);
                        self.time([number.value, 0, 0], 0, None)?;
                        self.offset()
                    }
                }
            }
            _ => {
                self.take(1);
                self.digits(number)
            }
        }
    }

    /// `10:30`, `10:30:15.5`, with `am` or a zone after it.
    fn clock(&mut self, hour: Number) -> Option<()> {
        let minute = self.rest.get(2).and_then(unsigned)?;
        self.take(3);
        let (mut second, mut nanos) = (0, 0);
        if let [Token::Sign(':'), Token::Number(number), ..] = self.rest
            && !number.signed
        {
            (second, nanos) = (number.value, number.nanos);
            self.take(2);
        }
        if let Some(Token::Meridian(meridian)) = self.rest.first().copied() {
            self.take(1);
            return self.time([hour.value, minute.value, second], nanos, Some(meridian));
        }
        self.time([hour.value, minute.value, second], nanos, None)?;
        if signed(self.rest.first()).is_some() { self.offset() } else { Some(()) }
    }

    /// `+0200`, `+2`, `+02:30`.
    fn offset(&mut self) -> Option<()> {
        let hours = signed(self.rest.first())?;
        self.take(1);
        let minutes = self.colon_minutes();
        self.set_zone(offset_minutes(hours, minutes)?)
    }

    fn colon_minutes(&mut self) -> Option<i64> {
        let minutes = match self.rest {
            [Token::Sign(':'), number, ..] => unsigned(number)?.value,
            _ => return None,
        };
        self.take(2);
        Some(minutes)
    }

    /// `UTC`, `UTC+2`, `CET DST`; a number with a unit after it is no part of it.
    fn zone(&mut self, minutes: i64) -> Option<()> {
        self.take(1);
        if self.rest.first() == Some(&Token::Dst) {
            self.take(1);
            return self.set_zone(minutes + 60);
        }
        let number = signed(self.rest.first());
        match (number, self.rest.get(1)) {
            (Some(_), Some(Token::Unit(_))) | (None, _) => self.set_zone(minutes),
            (Some(hours), _) => {
                self.take(1);
                let extra = self.colon_minutes();
                self.set_zone(minutes + offset_minutes(hours, extra)?)
            }
        }
    }

    fn set_zone(&mut self, minutes: i64) -> Option<()> {
        self.seen.zones += 1;
        self.seen.zone = Some(minutes);
        Some(())
    }

    /// `2/29`, `2/29/2024`, `2024/2/29`.
    fn slashes(&mut self, first: Number) -> Option<()> {
        let second = self.rest.get(2).and_then(unsigned)?;
        match (self.rest.get(3), self.rest.get(4).and_then(unsigned)) {
            (Some(Token::Sign('/')), Some(third)) => {
                self.take(5);
                if first.digits >= 4 {
                    self.date(Some(first), second.value, third.value)
                } else {
                    self.date(Some(third), first.value, second.value)
                }
            }
            (Some(Token::Sign('/')), None) => None,
            _ => {
                self.take(3);
                self.date(None, first.value, second.value)
            }
        }
    }

    /// `29 Feb`, `29 Feb 2024`, `29-Feb-2024`.
    fn day_and_month(&mut self, day: Number, month: i64) -> Option<()> {
        match self.rest.get(2) {
            Some(Token::Number(year)) if !year.fraction => {
                self.take(3);
                self.date(Some(positive(*year)), month, day.value)
            }
            _ => {
                self.take(2);
                self.date(None, month, day.value)
            }
        }
    }

    /// `Feb 29`, `Feb 29, 2024`, `Feb-29-2024`.
    fn after_month(&mut self, month: i64) -> Option<()> {
        let Some(Token::Number(day)) = self.rest.get(1).copied() else { return None };
        if day.signed {
            let year = signed(self.rest.get(2))?;
            self.take(3);
            return self.date(Some(positive(year)), month, positive(day).value);
        }
        match (self.rest.get(2), self.rest.get(3).and_then(unsigned)) {
            (Some(Token::Sign(',')), Some(year)) => {
                self.take(4);
                self.date(Some(year), month, day.value)
            }
            _ => {
                self.take(2);
                self.date(None, month, day.value)
            }
        }
    }

    /// `2024-02-29`, and with a `T` the time after it.
    fn iso_date(&mut self, year: Number, month: Number, day: Number) -> Option<()> {
        self.take(3);
        self.date(Some(year), positive(month).value, positive(day).value)?;
        if self.rest.first() == Some(&Token::T) {
            let hour = self.rest.get(1).and_then(unsigned);
            let follows = matches!(self.rest.get(2), Some(Token::Sign(':')));
            if let (Some(hour), true) = (hour, follows) {
                self.take(1);
                return self.clock(hour);
            }
        }
        Some(())
    }

    fn date(&mut self, year: Option<Number>, month: i64, day: i64) -> Option<()> {
        self.seen.dates += 1;
        if let Some(year) = year {
            (self.seen.civil.year, self.seen.year_digits) = (year.value, year.digits);
        }
        (self.seen.civil.month, self.seen.civil.day) = (month, day);
        Some(())
    }

    fn time(&mut self, [hour, minute, second]: [i64; 3], nanos: i64, meridian: Option<i64>) -> Option<()> {
        self.seen.times += 1;
        self.seen.meridian = meridian;
        let civil = &mut self.seen.civil;
        (civil.hour, civil.minute, civil.second, self.seen.nanos) = (hour, minute, second, nanos);
        Some(())
    }

    /// A number alone: a year after a date, `YYYYMMDD`, `HHMM` or `HH`.
    fn digits(&mut self, number: Number) -> Option<()> {
        let Number { value, digits, .. } = number;
        let seen = &mut self.seen;
        if seen.dates > 0 && seen.year_digits == 0 && seen.shifts == 0 && (seen.times > 0 || digits > 2) {
            (seen.civil.year, seen.year_digits) = (value, digits);
            return Some(());
        }
        if digits > 4 {
            let year = Number { value: value / 10_000, digits: digits - 4, ..number };
            return self.date(Some(year), value / 100 % 100, value % 100);
        }
        let [hour, minute] = if digits <= 2 { [value, 0] } else { [value / 100, value % 100] };
        self.time([hour, minute, 0], 0, None)
    }

    fn weekday(&mut self, ordinal: i64, day: i64) -> Option<()> {
        self.seen.weekdays += 1;
        self.seen.weekday = (ordinal, day);
        Some(())
    }

    /// So many of a unit, back in time when `ago` follows.
    fn shift(&mut self, count: Number, unit: Unit) -> Option<()> {
        if count.fraction && unit != Unit::Second {
            return None;
        }
        let sign = match self.rest.first() {
            Some(Token::Ago(sign)) => {
                self.rest = &self.rest[1..];
                *sign
            }
            _ => 1,
        };
        self.seen.shifts += 1;
        let (value, shift) = (count.value.checked_mul(sign)?, &mut self.seen.shift);
        let (field, value) = match unit {
            Unit::Year => (&mut shift.years, value),
            Unit::Month => (&mut shift.months, value),
            Unit::Days(days) => (&mut shift.days, value.checked_mul(days)?),
            Unit::Hour => (&mut shift.hours, value),
            Unit::Minute => (&mut shift.minutes, value),
            Unit::Second => {
                shift.nanos += count.nanos * sign;
                (&mut shift.seconds, value)
            }
        };
        *field = field.checked_add(value)?;
        Some(())
    }
}

fn whole(value: i64) -> Number {
    Number { value, nanos: 0, digits: 1, signed: false, negative: false, fraction: false }
}

/// A number whose sign was a dash between two parts of a date.
fn positive(number: Number) -> Number {
    if number.negative { Number { value: number.value.saturating_neg(), ..number } } else { number }
}

fn offset_minutes(hours: Number, minutes: Option<i64>) -> Option<i64> {
    let total = match minutes {
        Some(minutes) if hours.negative => hours.value.checked_mul(60)?.checked_sub(minutes)?,
        Some(minutes) => hours.value.checked_mul(60)?.checked_add(minutes)?,
        None if hours.digits <= 2 => hours.value * 60,
        None => hours.value / 100 * 60 + hours.value % 100,
    };
    (total.abs() <= 24 * 60).then_some(total)
}

impl Seen {
    fn new(now: &Civil, nanos: i64) -> Seen {
        Seen {
            civil: *now,
            nanos,
            year_digits: 0,
            meridian: None,
            weekday: (0, 0),
            zone: None,
            shift: Shift::default(),
            times: 0,
            dates: 0,
            weekdays: 0,
            zones: 0,
            shifts: 0,
        }
    }

    /// The moment that all of it means.
    fn resolve(mut self, zone: &Zone) -> Option<When> {
        if [self.times, self.dates, self.weekdays, self.zones].iter().any(|count| *count > 1) {
            return None;
        }
        self.complete()?;
        let mut start = self.civil;
        let moment = match self.zone {
            // What clocks elsewhere show need not exist here.
            Some(_) => zone.moment(&start).filter(|_| start.normal() == Some(start))?,
            None => zone.moment(&start).filter(|moment| zone.civil(*moment) == start)?,
        };
        let mut seconds = moment;
        if self.weekdays > 0 && self.dates == 0 {
            let (ordinal, day) = self.weekday;
            let today = start.weekday();
            let weeks = ordinal - i64::from(ordinal > 0 && today != day);
            let days = (day - today).rem_euclid(7).checked_add(weeks.checked_mul(7)?)?;
            start.day = start.day.checked_add(days)?;
            start = start.normal()?;
            seconds = zone.moment(&start)?;
        }
        let shift = self.shift;
        if (shift.years, shift.months, shift.days) != (0, 0, 0) {
            start.year = start.year.checked_add(shift.years)?;
            start.month = start.month.checked_add(shift.months)?;
            start.day = start.day.checked_add(shift.days)?;
            seconds = zone.moment(&start)?;
        }
        if let Some(minutes) = self.zone {
            seconds = seconds.checked_add(zone.offset(seconds))?.checked_sub(minutes * 60)?;
        }
        let added = shift.hours.checked_mul(3600)?.checked_add(shift.minutes.checked_mul(60)?)?;
        let nanos = self.nanos + shift.nanos;
        seconds = seconds.checked_add(added)?.checked_add(shift.seconds)?;
        seconds = seconds.checked_add(nanos.div_euclid(1_000_000_000))?;
        Some(When { seconds, nanos: nanos.rem_euclid(1_000_000_000) })
    }

    /// Fills in what was not said.
    fn complete(&mut self) -> Option<()> {
        if self.year_digits == 2 && (0..100).contains(&self.civil.year) {
            self.civil.year += if self.civil.year < 69 { 2000 } else { 1900 };
        }
        let civil = &mut self.civil;
        if self.times > 0 {
            civil.hour = match self.meridian {
                None => civil.hour,
                Some(after) if (1..=12).contains(&civil.hour) => civil.hour % 12 + after,
                Some(_) => return None,
            };
        } else if self.shifts == 0 || self.dates > 0 || self.weekdays > 0 {
            (civil.hour, civil.minute, civil.second, self.nanos) = (0, 0, 0, 0);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_can_be_written_is_a_panic() {
        let now = When { seconds: 1_700_000_000, nanos: 0 };
        let words = [
            "9223372036854775807",
            "-9223372036854775808",
            "year",
            "ago",
            "T",
            ":",
            "/",
            "+1",
            "mon",
            "jan",
            "z",
        ];
        for first in words {
            for second in words {
                for third in words {
                    parse(&format!("{first} {second} {third}"), now, &Zone::utc());
                }
            }
        }
    }
}
