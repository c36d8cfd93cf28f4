//! Sizes on the command line: `65536`, `64K`, `1.5M`, `2G`.

/// Reads a size in bytes. Units are powers of 1024.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let wrong = || format!("not a size: '{text}' (try 64M, 1.5G or a number of bytes)");
    let plain = text.trim_end_matches(['b', 'B', 'i']);
    let (number, unit) = match plain.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&plain[..at], 1_u64 << 10),
        Some((at, 'm' | 'M')) => (&plain[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&plain[..at], 1 << 30),
        _ if plain == text => (plain, 1),
        _ => return Err(wrong()),
    };
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(wrong);
    }
    let number: f64 = number.parse().map_err(|_| wrong())?;
    let bytes = number * unit as f64;
    if unit > 1 && bytes.is_finite() && (0.0..2f64.powi(63)).contains(&bytes) {
        Ok(bytes as u64)
    } else {
        Err(wrong())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        for (text, bytes) in [
            ("0", 0),
            ("65536", 65536),
            ("64K", 65536),
            ("64KiB", 65536),
            ("1.5m", 3 << 19),
            ("2GB", 2 << 30),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "M", "-1", "1.5", "1e99G", "nan M", "64X", "infG", "99999999999999G", "10B"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
