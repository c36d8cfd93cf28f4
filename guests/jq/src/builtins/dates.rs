//! Times: seconds since 1970, and the same taken apart.

mod parse;
mod print;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::run::{Outcome, raise};
use crate::value::Value;
use crate::world::World;

use super::Run;

pub const TABLE: &[(&str, usize, Run)] = &[
    ("now", 0, |_, _, _| Ok(Value::Number(toolkit::clock::now() as f64 / 1e9))),
    ("gmtime", 0, |_, input, _| apart(&input, "gmtime", &TimeZone::UTC)),
    ("localtime", 0, |_, input, _| apart(&input, "localtime", &local())),
    ("mktime", 0, together),
    ("strftime", 1, |_, input, arguments| formatted(&input, &arguments[0], "strftime", &TimeZone::UTC)),
    ("strflocaltime", 1, |_, input, arguments| formatted(&input, &arguments[0], "strflocaltime", &local())),
    ("strptime", 1, parsed),
];

/// A time taken apart, as C has it: the month and the day of the year count from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parts {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub weekday: i64,
    pub yearday: i64,
}

impl Parts {
    fn of(seconds: i64) -> Parts {
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date_of(days);
        Parts {
            year,
            month: month - 1,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7),
            yearday: days - days_to(year, 1, 1),
        }
    }

    /// Seconds since 1970; a month or an hour beyond the last runs over into the next.
    pub fn seconds(&self) -> i64 {
        let year = self.year + self.month.div_euclid(12);
        let days = days_to(year, self.month.rem_euclid(12) + 1, 1) + self.day - 1;
        days * 86_400 + self.hour * 3600 + self.minute * 60 + self.second
    }
}

/// Days from 1970 to a date of the Gregorian calendar, counted in years that begin in March.
fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

/// The zone that `TZ` names.
fn local() -> TimeZone {
    toolkit::clock::Clock::new().at(0).time_zone().clone()
}

/// The name of a zone at a time, and its seconds east of Greenwich.
fn zone_at(zone: &TimeZone, seconds: i64) -> (String, i64) {
    let at = Timestamp::from_second(seconds).unwrap_or(Timestamp::UNIX_EPOCH);
    let info = zone.to_offset_info(at);
    (info.abbreviation().to_owned(), i64::from(info.offset().seconds()))
}

/// The furthest a time may be from 1970: beyond, C cannot count its years.
const FURTHEST: f64 = 6.7e16;

fn apart(input: &Value, name: &str, zone: &TimeZone) -> Outcome {
    let Some(number) = input.as_number() else {
        return raise(format!("{name}() requires numeric inputs"));
    };
    if number.is_nan() || number.abs() > FURTHEST {
        return raise("error converting number of seconds since epoch to datetime");
    }
    let whole = number.floor();
    let (_, east) = zone_at(zone, whole as i64);
    let parts = Parts::of(whole as i64 + east);
    Ok(listed(&parts, parts.second as f64 + (number - whole)))
}

fn listed(parts: &Parts, seconds: f64) -> Value {
    let Parts { year, month, day, hour, minute, weekday, yearday, .. } = *parts;
    let whole = |number: i64| Value::Number(number as f64);
    Value::array(vec![
        whole(year),
        whole(month),
        whole(day),
        whole(hour),
        whole(minute),
        Value::Number(seconds),
        whole(weekday),
        whole(yearday),
    ])
}

/// The parts that a value lists.
fn parts_of(value: &Value) -> Option<Parts> {
    let Value::Array(items) = value else { return None };
    let numbers: Vec<i64> = items.iter().map_while(Value::as_number).map(|number| number as i64).collect();
    let [year, month, day, hour, minute, second, weekday, yearday, ..] = numbers[..] else { return None };
    Some(Parts { year, month, day, hour, minute, second, weekday, yearday })
}

fn together(_: &mut World, input: Value, _: &mut [Value]) -> Outcome {
    if !matches!(input, Value::Array(_)) {
        return raise("mktime requires array inputs");
    }
    match parts_of(&input) {
        // A year that no clock reaches would not fit.
        Some(parts) if parts.year.abs() < 1 << 31 => Ok(Value::Number(parts.seconds() as f64)),
        Some(_) => raise("invalid gmtime representation"),
        None => raise("mktime requires parsed datetime inputs"),
    }
}

fn formatted(input: &Value, format: &Value, name: &str, zone: &TimeZone) -> Outcome {
    let taken = match input.as_number() {
        Some(_) => apart(input, name, zone)?,
        None => input.clone(),
    };
    let Some(parts) = parts_of(&taken) else {
        return raise(format!("{name}/1 requires parsed datetime inputs"));
    };
    let Value::String(format) = format else {
        return raise(format!("{name}/1 requires a string format"));
    };
    let zone = zone_at(zone, parts.seconds());
    Ok(Value::from(print::print(&parts, format, &zone)))
}

fn parsed(_: &mut World, input: Value, arguments: &mut [Value]) -> Outcome {
    let (Value::String(text), Value::String(format)) = (&input, &arguments[0]) else {
        return raise("strptime/1 requires string inputs and arguments");
    };
    match parse::parse(text, format) {
        Some((parts, rest)) => {
            let value = listed(&parts, parts.second as f64);
            match (value, rest) {
                (value, "") => Ok(value),
                (Value::Array(items), rest) => {
                    let mut items = items.to_vec();
                    items.push(Value::string(rest));
                    Ok(Value::array(items))
                }
                (value, _) => Ok(value),
            }
        }
        None => raise(format!("date \"{text}\" does not match format \"{format}\"")),
    }
}
