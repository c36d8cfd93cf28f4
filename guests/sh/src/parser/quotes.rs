//! Quotes: `'…'`, `"…"`, `$'…'`, and what a backslash means in each.

use super::word::Builder;
use super::*;

impl Parser {
    pub(super) fn single_quoted(&mut self) -> Parsed<Vec<u8>> {
        let opened = self.line;
        self.at += 1;
        let mut text = Vec::new();
        loop {
            match self.next() {
                Some(b'\'') => return Ok(text),
                Some(byte) => text.push(byte),
                None => return Err(SyntaxError::Unclosed { line: opened, what: "'" }),
            }
        }
    }

    pub(super) fn double_quoted(&mut self) -> Parsed<Vec<Piece>> {
        self.quoted_by_steps(|parser, builder| parser.quoted_step(builder, b"$`\"\\"))
    }

    /// What stands between double quotes, taken step by step.
    fn quoted_by_steps(
        &mut self,
        step: impl Fn(&mut Parser, &mut Builder) -> Parsed<()>,
    ) -> Parsed<Vec<Piece>> {
        let opened = self.line;
        self.enter()?;
        self.at += 1;
        let mut builder = Builder::default();
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(_) => step(self, &mut builder)?,
                None => return Err(SyntaxError::Unclosed { line: opened, what: "\"" }),
            }
        }
        self.at += 1;
        self.depth -= 1;
        Ok(builder.finish().pieces)
    }

    /// One step inside double quotes or a here-document; `escapable` is what a backslash acts on.
    pub(super) fn quoted_step(&mut self, builder: &mut Builder, escapable: &[u8]) -> Parsed<()> {
        match self.peek() {
            Some(b'\\') => match self.peek_at(1) {
                Some(b'\n') => {
                    self.at += 2;
                    self.line += 1;
                }
                Some(byte) if escapable.contains(&byte) => {
                    self.at += 2;
                    builder.text.push(byte);
                }
                _ => {
                    self.at += 1;
                    builder.text.push(b'\\');
                }
            },
            Some(b'$') => self.dollar(builder, true)?,
            Some(b'`') => self.backquote(builder, true)?,
            _ => builder.text.extend(self.next()),
        }
        Ok(())
    }

    /// `"…"` in the operand of `${x:-…}` inside double quotes: bash then takes every backslash away.
    fn quoted_again(&mut self) -> Parsed<Vec<Piece>> {
        self.quoted_by_steps(|parser, builder| {
            if parser.peek() == Some(b'\\') && parser.peek_at(1).is_some_and(|byte| byte != b'\n') {
                parser.at += 1;
                builder.text.extend(parser.next());
                return Ok(());
            }
            parser.quoted_step(builder, b"")
        })
    }

    /// The operand of `${x:-…}` inside double quotes.
    pub(super) fn quoted_operand(&mut self, builder: &mut Builder) -> Parsed<()> {
        loop {
            match self.peek() {
                None | Some(b'}') => return Ok(()),
                Some(b'"') => {
                    let pieces = self.quoted_again()?;
                    builder.push(Piece::Double(pieces));
                }
                Some(b'$') if self.peek_at(1) == Some(b'\'') && self.dialect.extquote => {
                    self.at += 1;
                    let text = self.ansi_c_quoted()?;
                    builder.push(Piece::Quoted(text));
                }
                // To POSIX a single quote is a character like any other there.
                Some(b'\'') if self.dialect.posix => builder.text.extend(self.next()),
                Some(b'\'') => self.quotes_kept(builder)?,
                Some(b'\\') if self.peek_at(1) == Some(b'\'') => {
                    builder.text.extend_from_slice(b"\\'");
                    self.at += 2;
                }
                Some(_) => self.quoted_step(builder, b"$`\"\\}")?,
            }
        }
    }

    /// `'…'` in the operand of `${x:-…}` inside double quotes: the quotes stay, and hide what would end the operand.
    fn quotes_kept(&mut self, builder: &mut Builder) -> Parsed<()> {
        let opened = self.line;
        builder.text.extend(self.next());
        loop {
            match self.peek() {
                Some(b'\'') => {
                    builder.text.extend(self.next());
                    return Ok(());
                }
                // It quotes nothing there, and does not stay.
                Some(b'"') => self.at += 1,
                Some(_) => self.quoted_step(builder, b"$`\"\\}")?,
                None => return Err(SyntaxError::Unclosed { line: opened, what: "'" }),
            }
        }
    }

    /// `$'…'`, at its quote.
    pub(super) fn ansi_c_quoted(&mut self) -> Parsed<Vec<u8>> {
        let opened = self.line;
        self.at += 1;
        let mut raw = Vec::new();
        loop {
            match self.next() {
                Some(b'\'') => return Ok(ansi_c(&raw, true).0),
                Some(b'\\') => {
                    raw.push(b'\\');
                    raw.extend(self.next());
                }
                Some(byte) => raw.push(byte),
                None => return Err(SyntaxError::Unclosed { line: opened, what: "'" }),
            }
        }
    }
}

/// Resolves backslash escapes as `$'…'` does (`quote`) or as `echo -e` and `%b` do. Says whether `\c` cut it short.
pub fn ansi_c(raw: &[u8], quote: bool) -> (Vec<u8>, bool) {
    let mut out = Vec::with_capacity(raw.len());
    let mut at = 0;
    while at < raw.len() {
        let byte = raw[at];
        at += 1;
        if byte != b'\\' || at == raw.len() {
            out.push(byte);
            continue;
        }
        let escape = raw[at];
        at += 1;
        match escape {
            b'a' => out.push(7),
            b'b' => out.push(8),
            b'e' | b'E' => out.push(27),
            b'f' => out.push(12),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(11),
            b'\\' => out.push(b'\\'),
            b'\'' | b'"' | b'?' if quote => out.push(escape),
            b'c' if quote => {
                if let Some(&control) = raw.get(at) {
                    at += 1;
                    // A backslash is written as two there too.
                    at += usize::from(control == b'\\' && raw.get(at) == Some(&b'\\'));
                    out.push(if control == b'?' { 127 } else { control & 0x1f });
                }
            }
            b'c' => return (out, true),
            b'x' if quote && raw.get(at) == Some(&b'{') => {
                at += 1;
                let mut value = 0;
                radix_digits(raw, &mut at, 16, usize::MAX, &mut value);
                at += usize::from(raw.get(at) == Some(&b'}'));
                out.push(value as u8);
            }
            b'x' => numeric(raw, &mut at, 16, 2, &mut out, b"\\x"),
            b'u' => unicode(raw, &mut at, 4, &mut out, b"\\u"),
            b'U' => unicode(raw, &mut at, 8, &mut out, b"\\U"),
            b'0' if !quote => {
                let mut value = 0_u32;
                radix_digits(raw, &mut at, 8, 3, &mut value);
                out.push(value as u8);
            }
            b'0'..=b'7' => {
                at -= 1;
                let mut value = 0_u32;
                radix_digits(raw, &mut at, 8, 3, &mut value);
                out.push(value as u8);
            }
            other => out.extend_from_slice(&[b'\\', other]),
        }
    }
    if quote && let Some(nul) = out.iter().position(|&byte| byte == 0) {
        out.truncate(nul);
    }
    (out, false)
}

/// Digits of a radix, at most so many; answers how many there were.
pub fn radix_digits(raw: &[u8], at: &mut usize, radix: u32, most: usize, value: &mut u32) -> usize {
    let start = *at;
    while *at - start < most {
        let Some(digit) = raw.get(*at).and_then(|&byte| (byte as char).to_digit(radix)) else { break };
        *value = value.wrapping_mul(radix).wrapping_add(digit);
        *at += 1;
    }
    *at - start
}

fn numeric(raw: &[u8], at: &mut usize, radix: u32, most: usize, out: &mut Vec<u8>, otherwise: &[u8]) {
    let mut value = 0;
    match radix_digits(raw, at, radix, most, &mut value) {
        0 => out.extend_from_slice(otherwise),
        _ => out.push(value as u8),
    }
}

fn unicode(raw: &[u8], at: &mut usize, most: usize, out: &mut Vec<u8>, otherwise: &[u8]) {
    let mut value = 0;
    if radix_digits(raw, at, 16, most, &mut value) == 0 {
        out.extend_from_slice(otherwise);
    } else if let Some(character) = char::from_u32(value) {
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
