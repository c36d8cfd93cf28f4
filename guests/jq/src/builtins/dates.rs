//! Times: seconds since 1970, and the same taken apart.

mod parse;

use wardian_clock::{Civil, Dialect, Fields, When, Zone};

use crate::run::{Outcome, raise};
use crate::value::Value;
use crate::world::World;

use super::Run;

pub const TABLE: &[(&str, usize, Run)] = &[
    ("now", 0, |_, _, _| Ok(Value::Number(toolkit::clock::now() as f64 / 1e9))),
    ("gmtime", 0, |_, input, _| apart(&input, "gmtime", &Zone::utc())),
    ("localtime", 0, |_, input, _| apart(&input, "localtime", &Zone::local())),
    ("mktime", 0, together),
    ("strftime", 1, |_, input, arguments| formatted(&input, &arguments[0], "strftime", &Zone::utc())),
    ("strflocaltime", 1, |_, input, arguments| {
        formatted(&input, &arguments[0], "strflocaltime", &Zone::local())
    }),
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
        let civil = Civil::at(seconds);
        Parts {
            year: civil.year,
            month: civil.month - 1,
            day: civil.day,
            hour: civil.hour,
            minute: civil.minute,
            second: civil.second,
            weekday: civil.weekday(),
            yearday: civil.day_of_year() - 1,
        }
    }

    fn civil(&self) -> Civil {
        let Parts { year, month, day, hour, minute, second, .. } = *self;
        Civil { year, month: month.saturating_add(1), day, hour, minute, second }
    }

    /// Seconds since 1970; a month or an hour beyond the last runs over into the next.
    pub fn seconds(&self) -> i64 {
        self.civil().seconds().unwrap_or(0)
    }
}

/// The furthest a time may be from 1970: beyond, C cannot count its years.
const FURTHEST: f64 = 6.7e16;

fn apart(input: &Value, name: &str, zone: &Zone) -> Outcome {
    let Some(number) = input.as_number() else {
        return raise(format!("{name}() requires numeric inputs"));
    };
    if number.is_nan() || number.abs() > FURTHEST {
        return raise("error converting number of seconds since epoch to datetime");
    }
    let whole = number.floor();
    let east = zone.offset(whole as i64);
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

fn formatted(input: &Value, format: &Value, name: &str, zone: &Zone) -> Outcome {
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
    let local = zone.at(parts.seconds());
    let fields = Fields {
        when: When::at(parts.seconds().saturating_sub(local.offset)),
        civil: parts.civil(),
        weekday: parts.weekday,
        day_of_year: parts.yearday.saturating_add(1),
        offset: local.offset,
        zone: local.name,
    };
    let text = fields.format(format.as_bytes(), Dialect::C);
    Ok(Value::from(String::from_utf8_lossy(&text).into_owned()))
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
