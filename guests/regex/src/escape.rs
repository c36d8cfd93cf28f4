//! The escapes that awk knows in patterns and strings alike.

/// The byte that an escape stands for, and how many bytes of `text` (which begins after the backslash) it takes.
/// Nothing for one that stands for itself or means more than a byte.
pub fn byte_of(text: &[u8]) -> Option<(u8, usize)> {
    let byte = match text.first()? {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'v' => 0x0b,
        b'0'..=b'7' => {
            let digits = text.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let code = text[..digits].iter().fold(0u32, |code, digit| code * 8 + u32::from(digit - b'0'));
            return Some((code as u8, digits));
        }
        b'x' => {
            let is_hex = |byte: &&u8| byte.is_ascii_hexdigit();
            let digits = text[1..].iter().take(2).take_while(is_hex).count();
            let code = std::str::from_utf8(&text[1..1 + digits]).ok()?;
            return Some((u8::from_str_radix(code, 16).ok()?, 1 + digits));
        }
        _ => return None,
    };
    Some((byte, 1))
}
