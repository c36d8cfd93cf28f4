//! The orders that lines or their keys are put in.

use std::cmp::Ordering;

/// How two texts are compared.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Order {
    Text,
    Numeric,
    General,
    Human,
    Month,
    Version,
    Random,
}

/// Which bytes count, and as which.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct Filter {
    pub dictionary: bool,
    pub fold: bool,
    pub printing: bool,
}

impl Filter {
    fn is_idle(self) -> bool {
        self == Filter::default()
    }

    fn keeps(self, byte: u8) -> bool {
        (!self.dictionary || byte.is_ascii_alphanumeric() || is_blank(byte))
            && (!self.printing || (b' '..=b'~').contains(&byte))
    }

    fn bytes(self, text: &[u8]) -> impl Iterator<Item = u8> {
        let kept = text.iter().copied().filter(move |byte| self.keeps(*byte));
        kept.map(move |byte| if self.fold { byte.to_ascii_uppercase() } else { byte })
    }
}

pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

impl Order {
    pub fn compare(self, left: &[u8], right: &[u8], filter: Filter, salt: u64) -> Ordering {
        match self {
            Order::Text if filter.is_idle() => left.cmp(right),
            Order::Text => filter.bytes(left).cmp(filter.bytes(right)),
            Order::Numeric => Number::read(left).compare(&Number::read(right)),
            Order::General => general(left).compare(&general(right)),
            Order::Human => {
                human(left).cmp(&human(right)).then_with(|| Number::read(left).compare(&Number::read(right)))
            }
            Order::Month => month(left).cmp(&month(right)),
            Order::Version => toolkit::version::compare(left, right),
            Order::Random => {
                let hashes = hash(left, filter, salt).cmp(&hash(right, filter, salt));
                hashes.then_with(|| filter.bytes(left).cmp(filter.bytes(right)))
            }
        }
    }

    /// A number that is smaller for what comes before, and says nothing where it is the same.
    pub fn prefix(self, text: &[u8], filter: Filter) -> u64 {
        match self {
            Order::Text if filter.is_idle() => leading(text),
            Order::Text if !filter.dictionary && !filter.printing => {
                let mut start = [0; 8];
                filter.bytes(text).zip(&mut start).for_each(|(byte, place)| *place = byte);
                u64::from_be_bytes(start)
            }
            Order::Numeric => Number::read(text).prefix(),
            Order::General => general(text).prefix(),
            Order::Human => (human(text) + 128) as u64,
            Order::Month => u64::from(month(text)),
            Order::Text | Order::Version | Order::Random => 0,
        }
    }
}

/// The first eight bytes as a number.
pub fn leading(text: &[u8]) -> u64 {
    match text.first_chunk::<8>() {
        Some(start) => u64::from_be_bytes(*start),
        None => {
            let mut start = [0; 8];
            start[..text.len()].copy_from_slice(text);
            u64::from_be_bytes(start)
        }
    }
}

/// A decimal number of any length, cut from the start of a text. What is none is zero.
struct Number<'a> {
    negative: bool,
    /// Without leading zeros.
    whole: &'a [u8],
    /// Without zeros at its end.
    part: &'a [u8],
}

impl Number<'_> {
    fn read(text: &[u8]) -> Number<'_> {
        let start = text.iter().position(|&byte| !is_blank(byte)).unwrap_or(text.len());
        let text = &text[start..];
        let (negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            text => (false, text),
        };
        let zeros = text.iter().take_while(|&&byte| byte == b'0').count();
        let text = &text[zeros..];
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (whole, rest) = text.split_at(digits);
        let part = match rest {
            [b'.', rest @ ..] => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let end = rest[..digits].iter().rposition(|&digit| digit != b'0').map_or(0, |at| at + 1);
                &rest[..end]
            }
            _ => &[],
        };
        Number { negative: negative && !(whole.is_empty() && part.is_empty()), whole, part }
    }

    fn compare(&self, other: &Number<'_>) -> Ordering {
        match (self.negative, other.negative) {
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (false, false) => self.compare_size(other),
            (true, true) => other.compare_size(self),
        }
    }

    fn compare_size(&self, other: &Number<'_>) -> Ordering {
        let by_length = self.whole.len().cmp(&other.whole.len());
        by_length.then_with(|| self.whole.cmp(other.whole)).then_with(|| self.part.cmp(other.part))
    }

    /// Its first eighteen digits, two of them behind the point.
    fn prefix(&self) -> u64 {
        const MIDDLE: u64 = 1 << 63;
        let digit = |at: usize| self.part.get(at).unwrap_or(&b'0');
        let behind = [*digit(0), *digit(1)];
        let size = match self.whole.len() {
            0..=16 => {
                let digits = self.whole.iter().chain(&behind);
                digits.fold(0, |size, digit| size * 10 + u64::from(digit - b'0'))
            }
            _ => MIDDLE - 1,
        };
        if self.negative { MIDDLE - size } else { MIDDLE + size }
    }
}

/// Which power a letter after a number stands for; negative for negative numbers.
fn human(text: &[u8]) -> i32 {
    let number = Number::read(text);
    if number.whole.is_empty() && number.part.is_empty() {
        return 0;
    }
    let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let start = text.iter().position(is_digit).unwrap_or(0);
    let letter = text[start..].iter().find(|byte| !is_digit(byte)).copied().unwrap_or(0);
    let letter = if letter == b'k' { b'K' } else { letter };
    let power = b"KMGTPEZY".iter().position(|&known| known == letter).map_or(0, |at| at as i32 + 1);
    if number.negative { -power } else { power }
}

/// 1 for January; 0 for what is no month.
fn month(text: &[u8]) -> u8 {
    const MONTHS: [&[u8; 3]; 12] =
        [b"JAN", b"FEB", b"MAR", b"APR", b"MAY", b"JUN", b"JUL", b"AUG", b"SEP", b"OCT", b"NOV", b"DEC"];
    let start = text.iter().position(|&byte| !is_blank(byte)).unwrap_or(text.len());
    let Some(name) = text[start..].first_chunk::<3>() else { return 0 };
    let name = name.to_ascii_uppercase();
    MONTHS.iter().position(|known| known[..] == name[..]).map_or(0, |at| at as u8 + 1)
}

/// What C's `strtold` makes of a text.
enum General {
    Nothing,
    NotANumber,
    Value(f64),
}

impl General {
    fn compare(&self, other: &General) -> Ordering {
        match (self, other) {
            (General::Value(left), General::Value(right)) => {
                left.partial_cmp(right).unwrap_or(Ordering::Equal)
            }
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            General::Nothing => 0,
            General::NotANumber => 1,
            General::Value(_) => 2,
        }
    }

    fn prefix(&self) -> u64 {
        match self {
            General::Value(value) => {
                // Adding zero makes one of the two zeros.
                let bits = (value + 0.0).to_bits();
                let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
                ordered.max(2)
            }
            other => u64::from(other.rank()),
        }
    }
}

fn general(text: &[u8]) -> General {
    let start = text.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(text.len());
    let (sign, digits) = match &text[start..] {
        [b'-', rest @ ..] => (-1.0, rest),
        [b'+', rest @ ..] => (1.0, rest),
        rest => (1.0, rest),
    };
    let starts = |word: &[u8]| digits.len() >= word.len() && digits[..word.len()].eq_ignore_ascii_case(word);
    if starts(b"inf") {
        return General::Value(sign * f64::INFINITY);
    }
    if starts(b"nan") {
        return General::NotANumber;
    }
    let value = if starts(b"0x") { hexadecimal(&digits[2..]) } else { decimal(digits) };
    value.map_or(General::Nothing, |value| General::Value(sign * value))
}

fn decimal(text: &[u8]) -> Option<f64> {
    let count = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = count(text);
    let mut digits = end;
    if text.get(end) == Some(&b'.') {
        let part = count(&text[end + 1..]);
        digits += part;
        end += 1 + part;
    }
    if digits == 0 {
        return None;
    }
    if let Some([b'e' | b'E', rest @ ..]) = text.get(end..) {
        let sign = usize::from(matches!(rest.first(), Some(b'+' | b'-')));
        let exponent = count(&rest[sign..]);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

fn hexadecimal(text: &[u8]) -> Option<f64> {
    let digits = text.iter().map_while(|byte| char::from(*byte).to_digit(16));
    // "0x" alone is the zero before the letter.
    Some(digits.fold(0.0, |value, digit| value * 16.0 + f64::from(digit)))
}

/// A number that differs from run to run, the same for the same text.
fn hash(text: &[u8], filter: Filter, salt: u64) -> u64 {
    let mut hash = salt ^ 0xcbf2_9ce4_8422_2325;
    for byte in filter.bytes(text) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23) ^ salt;
    }
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ (hash >> 32)
}
