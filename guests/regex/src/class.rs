//! Characters and their classes, for patterns of every kind.

// Each class is called what POSIX calls it.
#![allow(missing_docs)]

/// A class of characters, as brackets name them.
#[derive(Debug, Clone, Copy)]
pub enum Class {
    Alpha,
    Digit,
    Alnum,
    Upper,
    Lower,
    Space,
    Blank,
    Punct,
    Print,
    Graph,
    Cntrl,
    Xdigit,
    Ascii,
    Word,
}

impl Class {
    /// The class with a name.
    pub fn named(name: &[u8]) -> Option<Class> {
        Some(match name {
            b"alpha" => Class::Alpha,
            b"digit" => Class::Digit,
            b"alnum" => Class::Alnum,
            b"upper" => Class::Upper,
            b"lower" => Class::Lower,
            b"space" => Class::Space,
            b"blank" => Class::Blank,
            b"punct" => Class::Punct,
            b"print" => Class::Print,
            b"graph" => Class::Graph,
            b"cntrl" => Class::Cntrl,
            b"xdigit" => Class::Xdigit,
            b"ascii" => Class::Ascii,
            b"word" => Class::Word,
            _ => return None,
        })
    }

    /// Whether a character belongs to it; what is above all characters belongs to none.
    pub fn contains(self, c: u32) -> bool {
        let Some(c) = char::from_u32(c) else { return false };
        match self {
            Class::Alpha => c.is_alphabetic(),
            Class::Digit => c.is_ascii_digit(),
            Class::Alnum => c.is_alphanumeric(),
            Class::Upper => c.is_uppercase(),
            Class::Lower => c.is_lowercase(),
            Class::Space => c.is_whitespace(),
            Class::Blank => c == ' ' || c == '\t',
            Class::Punct => c.is_ascii_punctuation(),
            Class::Print => !c.is_control(),
            Class::Graph => !c.is_control() && !c.is_whitespace(),
            Class::Cntrl => c.is_control(),
            Class::Xdigit => c.is_ascii_hexdigit(),
            Class::Ascii => c.is_ascii(),
            Class::Word => c.is_alphanumeric() || c == '_',
        }
    }
}

/// The character at a position and its length. A byte that is no UTF-8 is a character by itself.
pub fn char_at(text: &[u8], at: usize, utf8: bool) -> (u32, usize) {
    let first = text[at];
    if !utf8 || first < 0x80 {
        return (u32::from(first), 1);
    }
    let len = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => return (0x11_0000 + u32::from(first), 1),
    };
    match text
        .get(at..at + len)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .and_then(|s| s.chars().next())
    {
        Some(character) => (character as u32, len),
        None => (0x11_0000 + u32::from(first), 1),
    }
}
