//! Bytes as digits of a few bits each: base64 and base32.

/// The digits of a code, of 2 to the power of 5 or 6.
pub const BASE64: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
pub const BASE32: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// How many bits a digit has.
fn width(digits: &[u8]) -> u32 {
    digits.len().ilog2()
}

/// Digits for bytes, filled up to whole groups.
pub fn encode(bytes: &[u8], digits: &[u8]) -> String {
    let (width, group) = (width(digits), if digits.len() == 64 { 4 } else { 8 });
    let mut text = String::with_capacity(bytes.len() * 2);
    let (mut bits, mut count) = (0u32, 0);
    let mut push = |index: u32| text.push(char::from(digits[index as usize & (digits.len() - 1)]));
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= width {
            count -= width;
            push(bits >> count);
        }
    }
    if count > 0 {
        push(bits << (width - count));
    }
    while !text.len().is_multiple_of(group) {
        text.push('=');
    }
    text
}

/// The bytes that digits stand for; `None` if one is none.
pub fn decode(text: &str, digits: &[u8]) -> Option<Vec<u8>> {
    let width = width(digits);
    let mut bytes = Vec::with_capacity(text.len());
    let (mut bits, mut count) = (0u32, 0);
    for byte in text.bytes().take_while(|byte| *byte != b'=') {
        let digit = digits.iter().position(|digit| *digit == byte)?;
        bits = bits << width | digit as u32;
        count += width;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}
