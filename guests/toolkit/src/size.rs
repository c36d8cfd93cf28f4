//! Sizes as people read them.

/// Rounded up to two digits or more with a letter: `1.5K`, `20M`. `unit` is 1024 or 1000.
pub fn human(bytes: u128, unit: u128) -> String {
    if bytes < unit {
        return bytes.to_string();
    }
    let letters = if unit == 1000 { b"kMGTPEZY" } else { b"KMGTPEZY" };
    let mut divisor = unit;
    for letter in letters {
        let letter = char::from(*letter);
        let tenths = (bytes * 10).div_ceil(divisor);
        if tenths < 100 {
            return format!("{}.{}{letter}", tenths / 10, tenths % 10);
        }
        let whole = bytes.div_ceil(divisor);
        if whole < unit || letter == 'Y' {
            return format!("{whole}{letter}");
        }
        divisor *= unit;
    }
    bytes.to_string()
}

/// How sizes are shown.
#[derive(Clone, Copy, PartialEq)]
pub enum Scale {
    /// As people read them, by powers of this.
    Human(u128),
    /// In blocks of so many bytes, rounded up, followed by a letter.
    Blocks(u128, &'static str),
}

impl Scale {
    pub fn show(self, bytes: u128) -> String {
        match self {
            Scale::Human(unit) => human(bytes, unit),
            Scale::Blocks(size, suffix) => format!("{}{suffix}", bytes.div_ceil(size)),
        }
    }

    /// Reads the argument of `--block-size`.
    pub fn parse(text: &[u8]) -> Option<Scale> {
        match text {
            b"human-readable" => return Some(Scale::Human(1024)),
            b"si" => return Some(Scale::Human(1000)),
            _ => {}
        }
        let text = std::str::from_utf8(text).ok()?.trim_start_matches('\'');
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: u128 = if digits == 0 { 1 } else { text[..digits].parse().ok()? };
        let (unit, suffix) = unit_of(&text[digits..])?;
        let size = number.checked_mul(unit).filter(|size| *size > 0)?;
        Some(Scale::Blocks(size, if digits == 0 { suffix } else { "" }))
    }
}

fn unit_of(text: &str) -> Option<(u128, &'static str)> {
    const UNITS: [(&str, u128, &str); 19] = [
        ("", 1, ""),
        ("K", 1 << 10, "K"),
        ("k", 1 << 10, "K"),
        ("M", 1 << 20, "M"),
        ("G", 1 << 30, "G"),
        ("T", 1 << 40, "T"),
        ("P", 1 << 50, "P"),
        ("KiB", 1 << 10, "KiB"),
        ("MiB", 1 << 20, "MiB"),
        ("GiB", 1 << 30, "GiB"),
        ("TiB", 1 << 40, "TiB"),
        ("KB", 1000, "kB"),
        ("kB", 1000, "kB"),
        ("MB", 1_000_000, "MB"),
        ("GB", 1_000_000_000, "GB"),
        ("TB", 1_000_000_000_000, "TB"),
        ("b", 512, ""),
        ("c", 1, ""),
        ("B", 1, ""),
    ];
    UNITS.iter().find(|(name, _, _)| *name == text).map(|(_, unit, suffix)| (*unit, *suffix))
}

/// The two numbers of a device.
pub fn device(number: u64) -> (u64, u64) {
    ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xfff00))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up() {
        let shown = [1023, 1024, 1025, 10_240, 10_241, 1_048_575].map(|bytes| human(bytes, 1024));
        assert_eq!(shown, ["1023", "1.0K", "1.1K", "10K", "11K", "1.0M"]);
    }
}
