//! Values of options.

use std::time::Duration;

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn number(bytes: &[u8]) -> Option<u64> {
    std::str::from_utf8(bytes).ok()?.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok())
}

/// A time in seconds, with a fraction; none for 0.
pub fn seconds(bytes: &[u8]) -> Option<Option<Duration>> {
    let text = std::str::from_utf8(bytes).ok()?;
    if !text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    Some((number > 0.0 && number < 1e9).then(|| Duration::from_secs_f64(number)))
}

/// A size with a unit: `10`, `4k`, `2M`.
pub fn size(bytes: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(bytes).ok()?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match &text[digits..] {
        "" | "b" | "B" => 1,
        "k" | "K" => 1 << 10,
        "m" | "M" => 1 << 20,
        "g" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

/// The protocols that are left of all by `=http,https`, `-ftp` and the like.
pub fn protocols(text: &str) -> Option<Vec<String>> {
    const ALL: [&str; 3] = ["file", "http", "https"];
    let mut left: Vec<String> = ALL.map(str::to_owned).to_vec();
    for (at, word) in text.split(',').enumerate() {
        let (sign, name) = match word.split_at_checked(1) {
            Some((sign @ ("=" | "+" | "-"), name)) => (sign, name),
            _ => ("+", word),
        };
        let named = |item: &str| name.eq_ignore_ascii_case("all") || name.eq_ignore_ascii_case(item);
        let fitting = ALL.iter().filter(|item| named(item)).map(|item| (*item).to_owned());
        match sign {
            "=" if at == 0 || sign == "=" => left = fitting.collect(),
            "-" => left.retain(|item| !named(item)),
            _ => {
                let more: Vec<String> = fitting.filter(|item| !left.contains(item)).collect();
                left.extend(more);
            }
        }
    }
    Some(left)
}
