//! Characters in byte strings that need not be UTF-8.

/// The length of the character that begins here: that of a valid UTF-8 sequence, else one byte.
#[inline]
pub fn char_len(text: &[u8]) -> usize {
    match text.first() {
        None | Some(0..=0xc1) => 1,
        Some(first) => {
            let len = match first {
                0xc2..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf4 => 4,
                _ => 1,
            };
            let is_valid = text.get(..len).is_some_and(|bytes| std::str::from_utf8(bytes).is_ok());
            if is_valid { len } else { 1 }
        }
    }
}

/// A character, or a byte that belongs to none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// A character.
    Char(char),
    /// A byte, which is not ASCII where characters are UTF-8.
    Byte(u8),
}

/// The unit that begins a text, and its length; `bytes` where every byte is one of its own.
#[inline]
pub fn unit(text: &[u8], bytes: bool) -> Option<(Unit, usize)> {
    let first = *text.first()?;
    if first.is_ascii() {
        return Some((Unit::Char(char::from(first)), 1));
    }
    let length = if bytes { 1 } else { char_len(text) };
    let char = std::str::from_utf8(&text[..length]).ok().and_then(|text| text.chars().next());
    Some((char.map_or(Unit::Byte(first), Unit::Char), length))
}
