//! Dates as `strftime` writes them, in UTC: a sandbox has no other time zone.

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

pub fn format(format: &[u8], seconds: i64) -> Vec<u8> {
    let date = date(seconds);
    let mut out = Vec::new();
    let mut bytes = format.iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        match bytes.next() {
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
        b'z' => "+0000".to_string(),
        b'Z' => "UTC".to_string(),
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
