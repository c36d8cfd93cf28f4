//! Dates as HTTP writes them.

use wardian_clock::Civil;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Reads a date such as `Tue, 15 Nov 2022 12:45:26 GMT`, `15-Nov-22 12:45:26`, `Nov 15 12:45:26 2022` or
/// `2022-11-15 12:45:26`, in UTC; the answer is in seconds since 1970.
pub fn parse(text: &str) -> Option<i64> {
    let mut civil = Civil { year: -1, month: -1, day: -1, hour: 0, minute: 0, second: 0 };
    for word in text.split([' ', ',', '-', '\t']).filter(|word| !word.is_empty()) {
        let lower = word.to_ascii_lowercase();
        if word.contains(':') {
            let mut fields =
                word.split(':').map(|field| field.parse::<i64>().ok().filter(|n| (0..=60).contains(n)));
            civil.hour = fields.next()??;
            civil.minute = fields.next()??;
            civil.second = fields.next().unwrap_or(Some(0))?;
        } else if let Ok(number) = word.parse::<i64>() {
            take_number(&mut civil, number, word.len())?;
        } else if let Some(month) = MONTHS.iter().position(|month| lower.starts_with(month)) {
            civil.month = month as i64 + 1;
        } else if !lower.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return None;
        }
    }
    (civil.year >= 0 && civil.month > 0 && civil.day > 0).then(|| civil.seconds()).flatten()
}

fn take_number(civil: &mut Civil, number: i64, digits: usize) -> Option<()> {
    match digits {
        4 if civil.year < 0 => civil.year = number,
        8 if civil.year < 0 && civil.day < 0 => {
            (civil.year, civil.month, civil.day) = (number / 10_000, number / 100 % 100, number % 100);
        }
        1 | 2 if civil.year >= 0 && civil.month < 0 => civil.month = number,
        1 | 2 if civil.day < 0 => civil.day = number,
        2 if civil.year < 0 => civil.year = number + if number < 70 { 2000 } else { 1900 },
        _ => return None,
    }
    Some(())
}

/// Writes a moment as headers have it.
pub fn format(seconds: i64) -> String {
    let civil = Civil::at(seconds);
    let day = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][civil.weekday().rem_euclid(7) as usize];
    let month = MONTHS[(civil.month - 1).rem_euclid(12) as usize];
    let month = format!("{}{}", month[..1].to_ascii_uppercase(), &month[1..]);
    format!(
        "{day}, {:02} {month} {:04} {:02}:{:02}:{:02} GMT",
        civil.day, civil.year, civil.hour, civil.minute, civil.second
    )
}

/// Returns the seconds since 1970.
pub fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_all_their_forms() {
        for text in [
            "Tue, 15 Nov 2022 12:45:26 GMT",
            "Tuesday, 15-Nov-22 12:45:26 GMT",
            "Tue Nov 15 12:45:26 2022",
            "2022-11-15 12:45:26",
            "20221115 12:45:26",
        ] {
            assert_eq!(parse(text), Some(1_668_516_326), "{text}");
        }
        assert_eq!(format(1_668_516_326), "Tue, 15 Nov 2022 12:45:26 GMT");
        for text in ["", "x", "99", "Tue", "::", "1 2 3 4 5", "é", "Nov 99999999999999999999"] {
            let _ = parse(text);
        }
    }
}
