//! What a string stands for: bytes, ranges, classes and repetitions.

use toolkit::{complain, quote};

/// One of the things a string is made of.
#[derive(Clone, Copy)]
pub enum Element {
    Byte(u8),
    Range(u8, u8),
    Class(Class),
    /// `[=c=]`
    Equivalent(u8),
    /// `[c*n]`; with 0 as often as needed.
    Repeat(u8, u64),
}

#[derive(Clone, Copy)]
pub enum Class {
    Upper,
    Lower,
    Other(fn(u8) -> bool),
}

/// A string, taken apart.
#[derive(Default)]
pub struct Set {
    pub elements: Vec<Element>,
}

/// A string after its escapes were replaced.
#[derive(Default)]
struct Unescaped {
    bytes: Vec<u8>,
    /// Which of them were escaped, and so mean nothing but themselves.
    escaped: Vec<bool>,
}

impl Set {
    /// Takes a string apart; the error is the message for it.
    pub fn parse(text: &[u8]) -> Result<Set, String> {
        let text = Unescaped::of(text);
        let bytes = &text.bytes;
        let mut elements = Vec::new();
        let mut at = 0;
        // Anything but a byte takes three at least.
        while at + 2 < bytes.len() {
            let (element, next) = match text.bracketed(at)? {
                Some(found) => found,
                None if text.is(at + 1, b'-') => (range(bytes[at], bytes[at + 2])?, at + 3),
                None => (Element::Byte(bytes[at]), at + 1),
            };
            elements.push(element);
            at = next;
        }
        elements.extend(bytes[at..].iter().map(|byte| Element::Byte(*byte)));
        Ok(Set { elements })
    }

    /// Which bytes it has, or has not.
    pub fn members(&self, complement: bool) -> [bool; 256] {
        let mut members = [complement; 256];
        for byte in self.elements.iter().flat_map(|element| element.distinct()) {
            members[usize::from(byte)] = !complement;
        }
        members
    }

    /// How many bytes it stands for, not counting what is repeated as often as needed.
    pub fn len(&self) -> Option<u64> {
        self.elements.iter().try_fold(0_u64, |sum, element| sum.checked_add(element.len()))
    }
}

impl Element {
    fn has(self, byte: u8) -> bool {
        match self {
            Element::Byte(own) | Element::Equivalent(own) | Element::Repeat(own, _) => own == byte,
            Element::Range(first, last) => (first..=last).contains(&byte),
            Element::Class(class) => class.has(byte),
        }
    }

    fn distinct(self) -> impl Iterator<Item = u8> {
        let is_there = !matches!(self, Element::Repeat(_, 0));
        (0..=u8::MAX).filter(move |byte| is_there && self.has(*byte))
    }

    fn len(self) -> u64 {
        match self {
            Element::Repeat(_, count) => count,
            other => other.distinct().count() as u64,
        }
    }

    /// One of its bytes, by its place.
    pub fn nth(self, place: u64) -> Option<u8> {
        match self {
            Element::Repeat(byte, count) => (place < count).then_some(byte),
            other => other.distinct().nth(usize::try_from(place).ok()?),
        }
    }
}

impl Class {
    fn of(name: &[u8]) -> Option<Class> {
        Some(match name {
            b"alnum" => Class::Other(|byte| byte.is_ascii_alphanumeric()),
            b"alpha" => Class::Other(|byte| byte.is_ascii_alphabetic()),
            b"blank" => Class::Other(|byte| matches!(byte, b' ' | b'\t')),
            b"cntrl" => Class::Other(|byte| byte.is_ascii_control()),
            b"digit" => Class::Other(|byte| byte.is_ascii_digit()),
            b"graph" => Class::Other(|byte| byte.is_ascii_graphic()),
            b"lower" => Class::Lower,
            b"print" => Class::Other(|byte| matches!(byte, b' '..=b'~')),
            b"punct" => Class::Other(|byte| byte.is_ascii_punctuation()),
            b"space" => Class::Other(|byte| matches!(byte, b'\t'..=b'\r' | b' ')),
            b"upper" => Class::Upper,
            b"xdigit" => Class::Other(|byte| byte.is_ascii_hexdigit()),
            _ => return None,
        })
    }

    fn has(self, byte: u8) -> bool {
        match self {
            Class::Upper => byte.is_ascii_uppercase(),
            Class::Lower => byte.is_ascii_lowercase(),
            Class::Other(has) => has(byte),
        }
    }
}

fn range(first: u8, last: u8) -> Result<Element, String> {
    if first <= last {
        return Ok(Element::Range(first, last));
    }
    let shown = |byte: u8| match byte {
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    };
    let (first, last) = (shown(first), shown(last));
    Err(format!("range-endpoints of '{first}-{last}' are in reverse collating sequence order"))
}

impl Unescaped {
    fn of(text: &[u8]) -> Unescaped {
        let mut unescaped = Unescaped::default();
        let mut rest = text;
        while let [byte, after @ ..] = rest {
            let (byte, escaped) = match (byte, after) {
                (b'\\', []) => {
                    complain("tr", "warning: an unescaped backslash at end of string is not portable");
                    (b'\\', false)
                }
                (b'\\', _) => (take_escape(&mut rest), true),
                (byte, _) => (*byte, false),
            };
            rest = &rest[1..];
            unescaped.bytes.push(byte);
            unescaped.escaped.push(escaped);
        }
        unescaped
    }

    /// Whether a byte is there and means what it usually does.
    fn is(&self, at: usize, byte: u8) -> bool {
        self.bytes.get(at) == Some(&byte) && !self.escaped[at]
    }

    /// What a bracket at a place begins, if it begins something, and where that ends.
    fn bracketed(&self, at: usize) -> Result<Option<(Element, usize)>, String> {
        if !self.is(at, b'[') {
            return Ok(None);
        }
        let kind = [b':', b'='].into_iter().find(|kind| self.is(at + 1, *kind));
        if let Some(kind) = kind
            && let Some(end) = self.closing(at + 2, kind)
        {
            match named(kind, &self.bytes[at + 2..end]) {
                Ok(element) => return Ok(Some((element, end + 2))),
                // It may yet be a colon or an equals sign that is repeated.
                Err(_) if end > at + 2 && self.looks_repeated(at + 2) => {}
                Err(message) => return Err(message),
            }
        }
        self.repetition(at + 1)
    }

    /// Where `:]` or `=]` is.
    fn closing(&self, from: usize, kind: u8) -> Option<usize> {
        (from..self.bytes.len().saturating_sub(1)).find(|&at| self.is(at, kind) && self.is(at + 1, b']'))
    }

    /// Whether here is `*`, digits and `]`.
    fn looks_repeated(&self, at: usize) -> bool {
        let rest = self.bytes.get(at + 1..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.is(at, b'*') && self.is(at + 1 + digits, b']')
    }

    /// `c*n]` at a place.
    fn repetition(&self, at: usize) -> Result<Option<(Element, usize)>, String> {
        if !self.is(at + 1, b'*') {
            return Ok(None);
        }
        let start = at + 2;
        let plain = self.escaped[start..].iter().take_while(|escaped| !**escaped).count();
        let Some(length) = self.bytes[start..start + plain].iter().position(|&byte| byte == b']') else {
            return Ok(None);
        };
        let digits = &self.bytes[start..start + length];
        let Some(count) = count_of(digits) else {
            let digits = quote::word(printable(digits).as_bytes());
            return Err(format!("invalid repeat count {digits} in [c*n] construct"));
        };
        Ok(Some((Element::Repeat(self.bytes[at], count), start + length + 1)))
    }
}

/// What stands for one escape; `rest` begins with it, and is left at its last byte.
fn take_escape(rest: &mut &[u8]) -> u8 {
    let [_, after @ ..] = *rest else { return b'\\' };
    *rest = after;
    match after[0] {
        b'a' => 0x07,
        b'b' => 0x08,
        b'f' => 0x0c,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 0x0b,
        b'0'..=b'7' => take_octal(rest),
        other => other,
    }
}

fn take_octal(rest: &mut &[u8]) -> u8 {
    let digits: Vec<u8> =
        rest.iter().copied().take_while(|byte| matches!(byte, b'0'..=b'7')).take(3).collect();
    let value = |digits: &[u8]| digits.iter().fold(0, |sum, digit| sum * 8 + u32::from(digit - b'0'));
    let mut used = digits.len();
    if value(&digits) > 255 {
        let [one, two, three] = [0, 1, 2].map(|at| char::from(digits[at]));
        complain(
            "tr",
            format_args!(
                "warning: the ambiguous octal escape \\{one}{two}{three} is being\n\t\
                 interpreted as the 2-byte sequence \\0{one}{two}, {three}"
            ),
        );
        used = 2;
    }
    *rest = &rest[used - 1..];
    value(&digits[..used]) as u8
}

/// A class or what is equivalent to a byte, by what stands between the signs.
fn named(kind: u8, name: &[u8]) -> Result<Element, String> {
    match (kind, name) {
        (b':', []) => Err("missing character class name '[::]'".into()),
        (_, []) => Err("missing equivalence class character '[==]'".into()),
        (b':', name) => Class::of(name)
            .map(Element::Class)
            .ok_or_else(|| format!("invalid character class {}", quote::word(printable(name).as_bytes()))),
        (_, [byte]) => Ok(Element::Equivalent(*byte)),
        (_, name) => {
            Err(format!("{}: equivalence class operand must be a single character", printable(name)))
        }
    }
}

/// A number, octal with a leading zero; nothing is 0.
fn count_of(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return Some(0);
    }
    let radix = if digits[0] == b'0' { 8 } else { 10 };
    let count = u64::from_str_radix(std::str::from_utf8(digits).ok()?, radix).ok()?;
    (count < u64::MAX).then_some(count)
}

/// Bytes as the messages show them.
fn printable(bytes: &[u8]) -> String {
    let shown = bytes.iter().map(|&byte| match byte {
        b'\\' => "\\\\".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        b'\t' => "\\t".to_owned(),
        0x0b => "\\v".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\{byte:03o}"),
    });
    shown.collect()
}
