//! Durations on the command line: `200ms`, `1.5s`, `2m`, `1h`, or plain seconds.

use std::time::Duration;

/// Reads a duration; `0` means none.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("not a duration: '{text}' (try 200ms, 1.5s, 2m, 1h)");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "" | "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn units() {
        assert_eq!(parse("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(parse("2"), Ok(Duration::from_secs(2)));
        assert_eq!(parse("3m"), Ok(Duration::from_secs(180)));
        assert_eq!(parse("1h"), Ok(Duration::from_secs(3600)));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "ms", "1x", "-1", "1e99", ".", "1.2.3", "9999999999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
