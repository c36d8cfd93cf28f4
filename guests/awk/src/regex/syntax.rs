//! From the text of a pattern to its tree.

use crate::text::char_len;
use regex_syntax::hir::{
    Capture, Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Dot, Hir, Look, Repetition,
};

/// Groups nested deeper than this are refused: what follows recurses as deep.
const DEEPEST: usize = 200;

/// The most an interval may repeat, as in GNU's matcher.
const MOST: u32 = 32767;

/// What is to be made of a pattern beyond what it says.
#[derive(Clone, Copy)]
pub struct Flags {
    /// Letters match in either case.
    pub ignore_case: bool,
    /// Words may have letters beyond ASCII: the boundaries that a DFA cannot see.
    pub wide_words: bool,
}

/// Reads a pattern: its tree and how many groups it has.
pub fn parse(pattern: &[u8], flags: Flags) -> Result<(Hir, usize), String> {
    let mut parser = Parser { text: pattern, at: 0, depth: 0, groups: 0, flags };
    let hir = parser.alternation()?;
    match parser.peek() {
        Some(_) => Err("Unmatched ) or \\)".into()),
        None => Ok((hir, parser.groups)),
    }
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
    groups: usize,
    flags: Flags,
}

/// The members of a bracket expression: characters, and bytes that are none.
#[derive(Default)]
struct Set {
    chars: Vec<ClassUnicodeRange>,
    bytes: Vec<ClassBytesRange>,
}

/// A character, or a byte that belongs to none.
#[derive(Clone, Copy)]
enum Unit {
    Char(char),
    Byte(u8),
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn alternation(&mut self) -> Result<Hir, String> {
        let mut branches = vec![self.branch()?];
        while self.peek() == Some(b'|') {
            self.at += 1;
            branches.push(self.branch()?);
        }
        Ok(Hir::alternation(branches))
    }

    fn branch(&mut self) -> Result<Hir, String> {
        let mut parts = Vec::new();
        let mut repeatable = false;
        while let Some(byte) = self.peek() {
            if byte == b'|' || byte == b')' && self.depth > 0 {
                break;
            }
            if byte == b')' {
                return Err("Unmatched ) or \\)".into());
            }
            // An operator with nothing to repeat stands for itself.
            if repeatable && let Some((least, most)) = self.repetition()? {
                let last = parts.pop().unwrap_or_else(Hir::empty);
                parts.push(Hir::repetition(Repetition {
                    min: least,
                    max: most,
                    greedy: true,
                    sub: Box::new(last),
                }));
                continue;
            }
            let (part, can_repeat) = self.atom(byte)?;
            parts.push(part);
            repeatable = can_repeat;
        }
        Ok(Hir::concat(parts))
    }

    /// The repetition that stands here, if one does.
    fn repetition(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let bounds = match self.peek() {
            Some(b'*') => (0, None),
            Some(b'+') => (1, None),
            Some(b'?') => (0, Some(1)),
            Some(b'{') => return self.interval(),
            _ => return Ok(None),
        };
        self.at += 1;
        Ok(Some(bounds))
    }

    /// `{2}`, `{2,}`, `{,3}` or `{2,3}`; a brace that begins none of these stands for itself.
    fn interval(&mut self) -> Result<Option<(u32, Option<u32>)>, String> {
        let rest = &self.text[self.at + 1..];
        let Some(end) = rest.iter().position(|&byte| byte == b'}') else { return Ok(None) };
        let inside = &rest[..end];
        let number = |digits: &[u8]| -> Option<u32> { std::str::from_utf8(digits).ok()?.parse().ok() };
        let is_digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
        let comma = inside.iter().position(|&byte| byte == b',');
        let (least, most) = match comma {
            None if is_digits(inside) => (number(inside), Some(number(inside))),
            Some(at) => {
                let (low, high) = (&inside[..at], &inside[at + 1..]);
                let well_formed = (low.is_empty() || is_digits(low)) && (high.is_empty() || is_digits(high));
                if !well_formed || low.is_empty() && high.is_empty() {
                    return Ok(None);
                }
                let least = if low.is_empty() { Some(0) } else { number(low) };
                (least, (!high.is_empty()).then(|| number(high)))
            }
            _ => return Ok(None),
        };
        let too_big = || Err::<Option<(u32, Option<u32>)>, String>("Regular expression too big".into());
        let Some(least) = least.filter(|least| *least <= MOST) else { return too_big() };
        let most = match most {
            None => None,
            Some(Some(most)) if most <= MOST => Some(most),
            Some(_) => return too_big(),
        };
        if most.is_some_and(|most| most < least) {
            return Err("Invalid content of \\{\\}".into());
        }
        self.at += end + 2;
        Ok(Some((least, most)))
    }

    /// What stands here, and whether it can be repeated.
    fn atom(&mut self, byte: u8) -> Result<(Hir, bool), String> {
        let hir = match byte {
            b'(' => return self.group().map(|group| (group, true)),
            b'[' => return self.bracket().map(|set| (set, true)),
            b'\\' => return self.escape(),
            b'.' => Hir::dot(Dot::AnyChar),
            b'^' | b'$' => {
                self.at += 1;
                let look = if byte == b'^' { Look::Start } else { Look::End };
                return Ok((Hir::look(look), byte == b'$'));
            }
            _ => {
                let unit = self.unit();
                return Ok((self.literal(unit), true));
            }
        };
        self.at += 1;
        Ok((hir, true))
    }

    fn group(&mut self) -> Result<Hir, String> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("Regular expression too big".into());
        }
        self.groups += 1;
        let index = self.groups as u32;
        let inside = self.alternation()?;
        if self.peek() != Some(b')') {
            return Err("Unmatched ( or \\(".into());
        }
        self.at += 1;
        self.depth -= 1;
        Ok(Hir::capture(Capture { index, name: None, sub: Box::new(inside) }))
    }

    /// Takes the next character as it is.
    fn unit(&mut self) -> Unit {
        let length = char_len(&self.text[self.at..]);
        let bytes = &self.text[self.at..self.at + length];
        self.at += length;
        match std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next()) {
            Some(char) => Unit::Char(char),
            None => Unit::Byte(bytes[0]),
        }
    }

    fn literal(&self, unit: Unit) -> Hir {
        match unit {
            Unit::Char(char) if self.flags.ignore_case => {
                let mut class = ClassUnicode::new([ClassUnicodeRange::new(char, char)]);
                // Fails only where the tables of cases are left out, which they are not.
                let _ = class.try_case_fold_simple();
                Hir::class(Class::Unicode(class))
            }
            Unit::Char(char) => Hir::literal(char.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Byte(byte) => Hir::literal([byte]),
        }
    }

    /// A backslash and what it makes of the next character.
    fn escape(&mut self) -> Result<(Hir, bool), String> {
        let Some(&byte) = self.text.get(self.at + 1) else {
            return Err("Trailing backslash".into());
        };
        let look = match byte {
            b'y' if self.flags.wide_words => Look::WordUnicode,
            b'B' if self.flags.wide_words => Look::WordUnicodeNegate,
            b'<' if self.flags.wide_words => Look::WordStartUnicode,
            b'>' if self.flags.wide_words => Look::WordEndUnicode,
            b'y' => Look::WordAscii,
            b'B' => Look::WordAsciiNegate,
            b'<' => Look::WordStartAscii,
            b'>' => Look::WordEndAscii,
            b'`' => Look::Start,
            b'\'' => Look::End,
            b'w' | b'W' | b's' | b'S' => {
                self.at += 2;
                let mut set = Set::default();
                set.add_class(if byte.eq_ignore_ascii_case(&b'w') { "alnum" } else { "space" })?;
                if byte.eq_ignore_ascii_case(&b'w') {
                    set.add(Unit::Char('_'), Unit::Char('_'))?;
                }
                return Ok((set.into_hir(byte.is_ascii_uppercase(), false), true));
            }
            _ => {
                let unit = self.escaped_unit();
                return Ok((self.literal(unit), true));
            }
        };
        self.at += 2;
        Ok((Hir::look(look), false))
    }

    /// The character that a backslash and what follows it stand for.
    fn escaped_unit(&mut self) -> Unit {
        self.at += 1;
        if self.at == self.text.len() {
            return Unit::Char('\\');
        }
        if let Some((byte, length)) = crate::escape::byte_of(&self.text[self.at..]) {
            self.at += length;
            return if byte.is_ascii() { Unit::Char(char::from(byte)) } else { Unit::Byte(byte) };
        }
        self.unit()
    }

    fn bracket(&mut self) -> Result<Hir, String> {
        const UNMATCHED: &str = "Unmatched [, [^, [:, [., or [=";
        self.at += 1;
        let negated = self.peek() == Some(b'^');
        self.at += usize::from(negated);
        let mut set = Set::default();
        let first = self.at;
        loop {
            match self.peek() {
                None => return Err(UNMATCHED.into()),
                Some(b']') if self.at > first => break,
                Some(b'[') if self.text.get(self.at + 1) == Some(&b':') => {
                    let rest = &self.text[self.at + 2..];
                    let end = memchr::memmem::find(rest, b":]").ok_or(UNMATCHED)?;
                    set.add_class(&String::from_utf8_lossy(&rest[..end]))?;
                    self.at += end + 4;
                }
                Some(_) => {
                    let low = self.member()?;
                    let is_range = self.peek() == Some(b'-')
                        && self.text.get(self.at + 1).is_some_and(|byte| *byte != b']');
                    let high = if is_range {
                        self.at += 1;
                        self.member()?
                    } else {
                        low
                    };
                    set.add(low, high)?;
                }
            }
        }
        self.at += 1;
        Ok(set.into_hir(negated, self.flags.ignore_case))
    }

    /// One member of a bracket expression, or one end of a range.
    fn member(&mut self) -> Result<Unit, String> {
        for (open, close) in [(b"[.", b".]"), (b"[=", b"=]")] {
            if self.text[self.at..].starts_with(open) {
                let rest = &self.text[self.at + 2..];
                let end = memchr::memmem::find(rest, close).filter(|end| *end > 0);
                let end = end.ok_or("Invalid collation character")?;
                self.at += 2;
                let unit = self.unit();
                self.at += end + 2 - char_len(rest);
                return Ok(unit);
            }
        }
        match self.peek() {
            None => Err("Unmatched [, [^, [:, [., or [=".into()),
            Some(b'\\') if self.at + 1 < self.text.len() => Ok(self.escaped_unit()),
            Some(_) => Ok(self.unit()),
        }
    }
}

impl Set {
    fn add(&mut self, low: Unit, high: Unit) -> Result<(), String> {
        match (low, high) {
            (Unit::Char(low), Unit::Char(high)) if low <= high => {
                self.chars.push(ClassUnicodeRange::new(low, high));
            }
            (Unit::Byte(low), Unit::Byte(high)) if low <= high => {
                self.bytes.push(ClassBytesRange::new(low, high));
            }
            (Unit::Char(low), Unit::Byte(high)) => {
                self.chars.push(ClassUnicodeRange::new(low, '\u{7f}'.max(low)));
                self.bytes.push(ClassBytesRange::new(0x80, high));
            }
            _ => return Err("Invalid range end".into()),
        }
        Ok(())
    }

    fn add_class(&mut self, name: &str) -> Result<(), String> {
        // What the C library calls so, as far as Unicode's own properties say the same.
        let property = match name {
            "alpha" => r"\p{Alphabetic}",
            "digit" => "[0-9]",
            "alnum" => r"[\p{Alphabetic}0-9]",
            "upper" => r"\p{Uppercase}",
            "lower" => r"\p{Lowercase}",
            "space" => {
                r"[\t\n\x0B\f\r \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{2028}\x{2029}\x{205F}\x{3000}]"
            }
            "blank" => r"[\t \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200A}\x{205F}\x{3000}]",
            "punct" => r"[!-/:-@\[-`{-~\p{P}\p{S}]",
            "cntrl" => r"\p{Cc}",
            "xdigit" => "[0-9A-Fa-f]",
            "graph" => r"[^\p{Cc}\p{Cs}\p{Cn}\p{Z}]",
            "print" => r"[^\p{Cc}\p{Cs}\p{Cn}\p{Zl}\p{Zp}]",
            _ => return Err("Invalid character class name".into()),
        };
        let parsed = regex_syntax::parse(property).map_err(|error| error.to_string())?;
        if let regex_syntax::hir::HirKind::Class(Class::Unicode(class)) = parsed.kind() {
            self.chars.extend(class.ranges());
        }
        Ok(())
    }

    fn into_hir(self, negated: bool, ignore_case: bool) -> Hir {
        let mut chars = ClassUnicode::new(self.chars);
        if ignore_case {
            // Fails only where the tables of cases are left out, which they are not.
            let _ = chars.try_case_fold_simple();
        }
        if negated {
            chars.negate();
        }
        if self.bytes.is_empty() || negated {
            return Hir::class(Class::Unicode(chars));
        }
        let bytes = Hir::class(Class::Bytes(ClassBytes::new(self.bytes)));
        Hir::alternation(vec![Hir::class(Class::Unicode(chars)), bytes])
    }
}
