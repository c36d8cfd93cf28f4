//! The formats of `hexdump -e`: strings of units, each printing some bytes some times.
//!
//! A block is as long as the longest format; each format prints each block from its beginning. The last unit of a shorter
//! one is repeated as often as it fits, unless it says how often. What lies beyond the end of the input shows as blanks.

use toolkit::out::Out;

/// Formats, and the length of the block that each of them prints.
pub struct Rows {
    formats: Vec<Vec<Unit>>,
    block: usize,
}

/// Some conversions for some bytes, some times.
struct Unit {
    times: usize,
    /// The unit itself says so.
    is_fixed: bool,
    bytes: usize,
    pieces: Vec<Piece>,
}

/// Text with at most one conversion in it.
struct Piece {
    before: String,
    conversion: Option<Conversion>,
    after: String,
    /// How many bytes it takes.
    bytes: usize,
}

struct Conversion {
    flags: String,
    width: usize,
    precision: Option<usize>,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Char,
    Signed,
    /// By radix; capital letters.
    Unsigned(u32, bool),
    /// The letter of `printf`'s.
    Float(u8),
    Text,
    /// `_a` and, at the very end, `_A`; by radix.
    Address(u32),
    LastAddress(u32),
    /// `_c`, `_p`, `_u`.
    Escaped,
    Printable,
    Named,
}

/// What the options by letter stand for.
pub fn of_letter(letter: char) -> Vec<&'static str> {
    match letter {
        'b' => vec![r#""%07.7_Ax\n""#, r#""%07.7_ax " 16/1 "%03o " "\n""#],
        'c' => vec![r#""%07.7_Ax\n""#, r#""%07.7_ax " 16/1 "%3_c " "\n""#],
        'C' => vec![
            r#""%08.8_Ax\n""#,
            r#""%08.8_ax  " 8/1 "%02x " "  " 8/1 "%02x " "#,
            r#""  |" 16/1 "%_p" "|\n""#,
        ],
        'd' => vec![r#""%07.7_Ax\n""#, r#""%07.7_ax " 8/2 "  %05u " "\n""#],
        'o' => vec![r#""%07.7_Ax\n""#, r#""%07.7_ax " 8/2 " %06o " "\n""#],
        'x' => vec![r#""%07.7_Ax\n""#, r#""%07.7_ax " 8/2 "   %04x " "\n""#],
        _ => Vec::new(),
    }
}

impl Rows {
    pub fn parse(texts: &[Vec<u8>]) -> Result<Rows, String> {
        let mut formats = Vec::new();
        for text in texts {
            formats.push(parse_units(&String::from_utf8_lossy(text))?);
        }
        let length = |units: &Vec<Unit>| units.iter().map(|unit| unit.bytes * unit.times).sum::<usize>();
        let block = formats.iter().map(length).max().unwrap_or(0);
        for units in &mut formats {
            let own = length(units);
            if let Some(last) = units.last_mut()
                && own < block
                && !last.is_fixed
                && last.bytes > 0
            {
                last.times += (block - own) / last.bytes;
            }
        }
        Ok(Rows { formats, block })
    }

    pub fn dump(&self, content: &[u8], start: usize, squeezes: bool, out: &mut Out) {
        let (mut before, mut starred): (Option<&[u8]>, bool) = (None, false);
        // Formats that take no bytes print nothing.
        if self.block == 0 {
            return;
        }
        for (row, block) in content.chunks(self.block).enumerate() {
            if squeezes && before == Some(block) && block.len() == self.block {
                if !starred {
                    out.put("*\n");
                }
                starred = true;
                continue;
            }
            (before, starred) = (Some(block), false);
            for units in &self.formats {
                print_units(units, block, start + row * self.block, out);
            }
        }
        let end = start + content.len();
        let is_last = |piece: &&Piece| matches!(piece.kind(), Some(Kind::LastAddress(_)));
        let mut all = self.formats.iter().flatten();
        if let Some(unit) = all.find(|unit| unit.pieces.iter().any(|piece| is_last(&piece)))
            && !content.is_empty()
        {
            for piece in &unit.pieces {
                out.put(piece.print(&[], end));
            }
        }
    }
}

fn print_units(units: &[Unit], block: &[u8], start: usize, out: &mut Out) {
    let mut at = 0;
    for unit in units {
        if unit.pieces.iter().any(|piece| matches!(piece.kind(), Some(Kind::LastAddress(_)))) {
            continue;
        }
        for turn in 1..=unit.times {
            for (index, piece) in unit.pieces.iter().enumerate() {
                let mut text = match block.get(at..) {
                    Some(rest) if !rest.is_empty() || piece.bytes == 0 && at <= block.len() => {
                        piece.print(&rest[..rest.len().min(piece.bytes)], start + at)
                    }
                    _ if piece.bytes == 0 => piece.print(&[], start + at),
                    _ => piece.blank(),
                };
                // Of what is repeated the last has no blank at its end.
                let is_end = turn == unit.times && unit.times > 1 && index + 1 == unit.pieces.len();
                if is_end && text.last().is_some_and(u8::is_ascii_whitespace) && piece.ends_in_blank() {
                    text.pop();
                }
                out.put(text);
                at += piece.bytes;
            }
        }
    }
}

/// `[count/][bytes] "text"`, one after the other.
fn parse_units(text: &str) -> Result<Vec<Unit>, String> {
    let bad = || format!("bad format {{{text}}}");
    let mut units = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (mut times, mut is_fixed, mut bytes) = (1, false, None);
        if let Some((number, after)) = take_digits(rest) {
            if !after.starts_with(|next: char| next.is_ascii_whitespace() || next == '/') {
                return Err(bad());
            }
            (times, is_fixed, rest) = (number, true, after);
        }
        rest = rest.trim_start();
        rest = rest.strip_prefix('/').unwrap_or(rest).trim_start();
        if let Some((number, after)) = take_digits(rest) {
            if !after.starts_with(|next: char| next.is_ascii_whitespace()) {
                return Err(bad());
            }
            (bytes, rest) = (Some(number), after.trim_start());
        }
        let inside = rest.strip_prefix('"').ok_or_else(bad)?;
        let end = inside.find('"').ok_or_else(bad)?;
        units.push(Unit::parse(&inside[..end], times, is_fixed, bytes)?);
        rest = inside[end + 1..].trim_start();
    }
    Ok(units)
}

fn take_digits(text: &str) -> Option<(usize, &str)> {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..end].parse::<usize>().ok()?;
    Some((number.min(1 << 20), &text[end..]))
}

impl Unit {
    fn parse(text: &str, times: usize, is_fixed: bool, bytes: Option<usize>) -> Result<Unit, String> {
        let text = unescape(text);
        let mut pieces: Vec<Piece> = Vec::new();
        let mut literal = String::new();
        let mut rest = text.as_str();
        while let Some(char) = rest.chars().next() {
            rest = &rest[char.len_utf8()..];
            if char != '%' {
                literal.push(char);
                continue;
            }
            if let Some(after) = rest.strip_prefix('%') {
                literal.push('%');
                rest = after;
                continue;
            }
            // Text goes with the conversion before it, or with the first.
            if let Some(last) = pieces.last_mut() {
                last.after = std::mem::take(&mut literal);
            }
            let (conversion, after) = Conversion::parse(rest)?;
            rest = after;
            let taken = conversion.bytes(bytes)?;
            let before = std::mem::take(&mut literal);
            pieces.push(Piece { before, conversion: Some(conversion), after: String::new(), bytes: taken });
        }
        match pieces.last_mut() {
            Some(last) => last.after = literal,
            None => {
                let bytes = bytes.unwrap_or(0);
                pieces.push(Piece { before: literal, conversion: None, after: String::new(), bytes });
            }
        }
        let taking = pieces.iter().filter(|piece| piece.conversion.is_some() && piece.bytes > 0).count();
        if bytes.is_some_and(|bytes| bytes > 0) && taking > 1 {
            return Err("byte count with multiple conversion characters".into());
        }
        let bytes = pieces.iter().map(|piece| piece.bytes).sum();
        Ok(Unit { times, is_fixed, bytes, pieces })
    }
}

fn unescape(text: &str) -> String {
    let mut result = String::new();
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            result.push(char);
            continue;
        }
        match chars.next() {
            Some('a') => result.push('\x07'),
            Some('b') => result.push('\x08'),
            Some('f') => result.push('\x0c'),
            Some('n') => result.push('\n'),
            Some('r') => result.push('\r'),
            Some('t') => result.push('\t'),
            Some('v') => result.push('\x0b'),
            Some(other) => result.push(other),
            None => result.push('\\'),
        }
    }
    result
}

impl Conversion {
    fn parse(text: &str) -> Result<(Conversion, &str), String> {
        let count = text.bytes().take_while(|byte| b"#-+ 0".contains(byte)).count();
        let (flags, rest) = text.split_at(count);
        let (width, rest) = take_digits(rest).unwrap_or((0, rest));
        let (precision, rest) = match rest.strip_prefix('.') {
            Some(rest) => take_digits(rest).map_or((Some(0), rest), |(number, rest)| (Some(number), rest)),
            None => (None, rest),
        };
        let bad =
            |count| format!("bad conversion character %{}", rest.chars().take(count).collect::<String>());
        let radix = |letter: Option<u8>| match letter {
            Some(b'd') => Some(10),
            Some(b'o') => Some(8),
            Some(b'x') => Some(16),
            _ => None,
        };
        let letters = rest.as_bytes();
        let (kind, length) = match letters.first() {
            Some(b'c') => (Kind::Char, 1),
            Some(b'd' | b'i') => (Kind::Signed, 1),
            Some(b'o') => (Kind::Unsigned(8, false), 1),
            Some(b'u') => (Kind::Unsigned(10, false), 1),
            Some(b'x') => (Kind::Unsigned(16, false), 1),
            Some(b'X') => (Kind::Unsigned(16, true), 1),
            Some(letter @ (b'e' | b'E' | b'f' | b'g' | b'G')) => (Kind::Float(*letter), 1),
            Some(b's') => (Kind::Text, 1),
            Some(b'_') => match letters.get(1) {
                Some(b'a') => match radix(letters.get(2).copied()) {
                    Some(radix) => (Kind::Address(radix), 3),
                    None => return Err(bad(3)),
                },
                Some(b'A') => match radix(letters.get(2).copied()) {
                    Some(radix) => (Kind::LastAddress(radix), 3),
                    None => return Err(bad(3)),
                },
                Some(b'c') => (Kind::Escaped, 2),
                Some(b'p') => (Kind::Printable, 2),
                Some(b'u') => (Kind::Named, 2),
                _ => return Err(bad(2)),
            },
            _ => return Err(bad(1)),
        };
        Ok((Conversion { flags: flags.to_owned(), width, precision, kind }, &rest[length..]))
    }

    /// How many bytes it takes, if the unit says so or not.
    fn bytes(&self, given: Option<usize>) -> Result<usize, String> {
        let given = given.filter(|given| *given > 0);
        let (usual, allowed): (usize, &[usize]) = match self.kind {
            Kind::Address(_) | Kind::LastAddress(_) => return Ok(0),
            Kind::Char | Kind::Escaped | Kind::Printable | Kind::Named => (1, &[1]),
            Kind::Signed | Kind::Unsigned(..) => (4, &[1, 2, 4, 8]),
            Kind::Float(_) => (8, &[4, 8]),
            Kind::Text => {
                return given
                    .or(self.precision)
                    .ok_or_else(|| "%s requires a precision or a byte count".into());
            }
        };
        let letter = match self.kind {
            Kind::Char => "c",
            Kind::Escaped => "_c",
            Kind::Printable => "_p",
            Kind::Named => "_u",
            Kind::Signed => "d",
            Kind::Float(_) => "f",
            _ => "x",
        };
        match given.unwrap_or(usual) {
            bytes if allowed.contains(&bytes) => Ok(bytes),
            _ => Err(format!("bad byte count for conversion character {letter}")),
        }
    }

    /// Puts a number or a text where the width and the flags want it.
    fn placed(&self, sign: &str, digits: String, is_number: bool) -> String {
        let missing = self.width.saturating_sub(sign.len() + digits.chars().count());
        let has = |flag: char| self.flags.contains(flag);
        if has('-') {
            format!("{sign}{digits}{}", " ".repeat(missing))
        } else if has('0') && is_number {
            format!("{sign}{}{digits}", "0".repeat(missing))
        } else {
            format!("{}{sign}{digits}", " ".repeat(missing))
        }
    }

    fn integer(&self, sign: &str, digits: String) -> String {
        let missing = self.precision.unwrap_or(0).saturating_sub(digits.len());
        let digits = "0".repeat(missing) + &digits;
        self.placed(sign, digits, self.precision.is_none())
    }

    fn unsigned(&self, value: u64, radix: u32, capital: bool) -> String {
        let digits = match (radix, capital) {
            (8, _) => format!("{value:o}"),
            (10, _) => value.to_string(),
            (_, false) => format!("{value:x}"),
            (_, true) => format!("{value:X}"),
        };
        let sign = match (self.flags.contains('#') && value != 0, radix, capital) {
            (true, 8, _) => "0",
            (true, 16, false) => "0x",
            (true, 16, true) => "0X",
            _ => "",
        };
        self.integer(sign, digits)
    }

    fn sign_of(&self, is_negative: bool) -> &'static str {
        match (is_negative, self.flags.contains('+'), self.flags.contains(' ')) {
            (true, _, _) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        }
    }

    fn float(&self, letter: u8, value: f64) -> String {
        let size = crate::extended::Extended::parse(format!("{:e}", value.abs()).as_bytes());
        let (precision, keep) = (self.precision.unwrap_or(6), self.flags.contains('#'));
        let text = match (size, letter.to_ascii_lowercase()) {
            _ if value.is_nan() => "nan".to_owned(),
            (None, _) => "inf".to_owned(),
            (Some(size), b'e') => size.scientific(precision, keep),
            (Some(size), b'f') => size.fixed(precision),
            (Some(size), _) => size.general(precision, keep),
        };
        let text = if letter.is_ascii_uppercase() { text.to_ascii_uppercase() } else { text };
        self.placed(self.sign_of(value.is_sign_negative()), text, value.is_finite())
    }
}

impl Piece {
    fn kind(&self) -> Option<Kind> {
        self.conversion.as_ref().map(|conversion| conversion.kind)
    }

    fn ends_in_blank(&self) -> bool {
        let end = if self.conversion.is_some() { &self.after } else { &self.before };
        end.ends_with(|last: char| last.is_ascii_whitespace())
    }

    /// Its bytes as it prints them; those that are missing count as zero.
    fn print(&self, bytes: &[u8], address: usize) -> Vec<u8> {
        let Some(conversion) = &self.conversion else { return self.before.clone().into_bytes() };
        let byte = bytes.first().copied().unwrap_or(0);
        let mut wide = [0; 8];
        wide[..bytes.len().min(8)].copy_from_slice(&bytes[..bytes.len().min(8)]);
        let value = u64::from_le_bytes(wide);
        let shown = match conversion.kind {
            Kind::Address(radix) | Kind::LastAddress(radix) => {
                conversion.unsigned(address as u64, radix, false)
            }
            Kind::Char => {
                let cell = conversion.placed("", "?".to_owned(), false);
                let at = cell.find('?').unwrap_or(0);
                let text =
                    [self.before.as_bytes(), &cell.as_bytes()[..at], &[byte], &cell.as_bytes()[at + 1..]];
                return [text.concat(), self.after.clone().into_bytes()].concat();
            }
            Kind::Signed => {
                let unused = 64 - 8 * self.bytes.min(8) as u32;
                let value = (value << unused) as i64 >> unused;
                let sign = conversion.sign_of(value < 0);
                conversion.integer(sign, value.unsigned_abs().to_string())
            }
            Kind::Unsigned(radix, capital) => conversion.unsigned(value, radix, capital),
            Kind::Float(letter) => match self.bytes {
                4 => conversion.float(letter, f64::from(f32::from_bits(value as u32))),
                _ => conversion.float(letter, f64::from_bits(value)),
            },
            Kind::Text => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                let end = end.min(conversion.precision.unwrap_or(usize::MAX));
                conversion.placed("", String::from_utf8_lossy(&bytes[..end]).into_owned(), false)
            }
            Kind::Escaped => conversion.placed("", super::letter(byte), false),
            Kind::Printable => {
                let char = if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' };
                conversion.placed("", char.to_string(), false)
            }
            Kind::Named => conversion.placed("", name_of(byte), false),
        };
        format!("{}{shown}{}", self.before, self.after).into_bytes()
    }

    /// Blanks in place of what lies beyond the end.
    fn blank(&self) -> Vec<u8> {
        let Some(conversion) = &self.conversion else { return self.before.clone().into_bytes() };
        format!("{}{}{}", self.before, " ".repeat(conversion.width), self.after).into_bytes()
    }
}

/// The name of a control character; others are themselves, or hexadecimal.
fn name_of(byte: u8) -> String {
    const NAMES: [&str; 32] = [
        "nul", "soh", "stx", "etx", "eot", "enq", "ack", "bel", "bs", "ht", "lf", "vt", "ff", "cr", "so",
        "si", "dle", "dc1", "dc2", "dc3", "dc4", "nak", "syn", "etb", "can", "em", "sub", "esc", "fs", "gs",
        "rs", "us",
    ];
    match byte {
        0..=31 => NAMES[usize::from(byte)].to_owned(),
        127 => "del".to_owned(),
        32..=126 => char::from(byte).to_string(),
        _ => format!("{byte:02x}"),
    }
}
