//! Strings as awk has them: bytes, cheap to copy, short ones without an allocation.

use std::rc::Rc;
pub use wardian_regex::char_len;

/// What fits into a [`Str`] itself.
const INLINE: usize = 22;

/// A string of bytes.
#[derive(Clone, Debug)]
pub enum Str {
    /// A short one.
    Inline {
        /// How many of the bytes count.
        len: u8,
        /// The bytes.
        bytes: [u8; INLINE],
    },
    /// A long one, shared until it is changed.
    Heap(Rc<Vec<u8>>),
}

impl Str {
    /// The string without a byte.
    pub const EMPTY: Str = Str::Inline { len: 0, bytes: [0; INLINE] };

    /// A copy of some bytes.
    #[inline]
    pub fn new(text: &[u8]) -> Str {
        if text.len() <= INLINE {
            let mut bytes = [0; INLINE];
            bytes[..text.len()].copy_from_slice(text);
            Str::Inline { len: text.len() as u8, bytes }
        } else {
            Str::Heap(Rc::new(text.to_vec()))
        }
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Str::Inline { len, bytes } => &bytes[..usize::from(*len)],
            Str::Heap(bytes) => bytes,
        }
    }

    /// Appends, in place where nobody else holds the string: a string grown piece by piece takes linear time.
    pub fn push(&mut self, more: &[u8]) {
        match self {
            Str::Inline { len, bytes } => {
                let old = usize::from(*len);
                let new = old + more.len();
                if new <= INLINE {
                    bytes[old..new].copy_from_slice(more);
                    *len = new as u8;
                } else {
                    let mut long = Vec::with_capacity(new * 2);
                    long.extend_from_slice(&bytes[..old]);
                    long.extend_from_slice(more);
                    *self = Str::Heap(Rc::new(long));
                }
            }
            Str::Heap(bytes) => Rc::make_mut(bytes).extend_from_slice(more),
        }
    }
}

impl PartialEq for Str {
    fn eq(&self, other: &Str) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Str {}

impl From<Vec<u8>> for Str {
    fn from(text: Vec<u8>) -> Str {
        if text.len() <= INLINE { Str::new(&text) } else { Str::Heap(Rc::new(text)) }
    }
}

/// How many characters a text has; a byte that belongs to none counts as one.
pub fn char_count(text: &[u8]) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.utf8_chunks().map(|chunk| chunk.valid().chars().count() + chunk.invalid().len()).sum()
}

/// Where the character number `count` (from 0) begins, or the end of a text with fewer.
pub fn char_offset(text: &[u8], count: usize) -> usize {
    let near = count.min(text.len());
    if text[..near].is_ascii() {
        return near;
    }
    let mut at = 0;
    for _ in 0..count {
        if at >= text.len() {
            break;
        }
        at += char_len(&text[at..]);
    }
    at
}

/// A text with each character changed; what is no character stays.
pub fn map_chars(text: &[u8], ascii: fn(&mut [u8]), change: fn(char, &mut String)) -> Vec<u8> {
    if text.is_ascii() {
        let mut text = text.to_vec();
        ascii(&mut text);
        return text;
    }
    let mut changed = Vec::with_capacity(text.len());
    let mut valid = String::new();
    for chunk in text.utf8_chunks() {
        valid.clear();
        chunk.valid().chars().for_each(|char| change(char, &mut valid));
        changed.extend_from_slice(valid.as_bytes());
        changed.extend_from_slice(chunk.invalid());
    }
    changed
}
