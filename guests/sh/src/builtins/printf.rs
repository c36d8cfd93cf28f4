//! `printf`

use super::float::{Float, Kind};
use super::{fail, invalid_option, output};
use crate::expand::quote;
use crate::parser::ansi_c;
use crate::shell::{Exec, Shell};

const USAGE: &str = "printf [-v var] format [arguments]";

pub fn printf(shell: &mut Shell, args: &[Vec<u8>]) -> Exec {
    let mut operands = &args[1..];
    let mut variable = None;
    match operands.first().map(Vec::as_slice) {
        Some(b"-v") => {
            let Some(name) = operands.get(1) else {
                fail(shell, b"printf", &[b"-v: option requires an argument"], 2);
                return Ok(super::usage(b"printf", USAGE));
            };
            variable = Some(name.clone());
            operands = &operands[2..];
        }
        Some(arg) if arg.starts_with(b"-v") && arg.len() > 2 => {
            variable = Some(arg[2..].to_vec());
            operands = &operands[1..];
        }
        Some([b'-', letter, ..]) if *letter != b'-' => {
            return Ok(invalid_option(shell, b"printf", &[b'-', *letter], USAGE));
        }
        _ => {}
    }
    if operands.first().is_some_and(|arg| arg == b"--") {
        operands = &operands[1..];
    }
    if let Some(name) = &variable {
        let base = &name[..name.iter().position(|&byte| byte == b'[').unwrap_or(name.len())];
        if !crate::parser::is_assignment_name(base) {
            return Ok(fail(shell, b"printf", &[b"`", name, b"': not a valid identifier"], 2));
        }
    }
    let Some(format) = operands.first() else {
        return Ok(super::usage(b"printf", USAGE));
    };
    let mut run = Run { shell, args: &operands[1..], at: 0, out: Vec::new(), status: 0, stopped: false };
    run.all(format);
    let (out, mut status) = (run.out, run.status);
    match variable {
        Some(name) => shell.assign_target(&name, &out)?,
        None if out.is_empty() => {}
        None => status = status.max(output(shell, b"printf", &out)),
    }
    Ok(status)
}

/// The widest field.
const MOST: usize = 1 << 25;

struct Run<'a> {
    shell: &'a mut Shell,
    args: &'a [Vec<u8>],
    at: usize,
    out: Vec<u8>,
    status: i32,
    stopped: bool,
}

/// A conversion's flags, width and precision.
#[derive(Default, Clone)]
struct Spec {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

impl Run<'_> {
    /// The format, again and again until the arguments are used up.
    fn all(&mut self, format: &[u8]) {
        loop {
            let before = self.at;
            self.once(format);
            if self.stopped || self.at >= self.args.len() || self.at == before {
                return;
            }
        }
    }

    fn once(&mut self, format: &[u8]) {
        let mut at = 0;
        while at < format.len() && !self.stopped {
            match format[at] {
                b'%' if format.get(at + 1) == Some(&b'%') => {
                    self.out.push(b'%');
                    at += 2;
                }
                b'%' => match self.conversion(&format[at..]) {
                    Some(used) => at += used,
                    None => return,
                },
                b'\\' => {
                    let end = escape_end(format, at);
                    self.complain_of_hex(&format[at..end]);
                    let (text, cut) = ansi_c_format(&format[at..end]);
                    self.out.extend_from_slice(&text);
                    self.stopped = cut;
                    at = end;
                }
                byte => {
                    self.out.push(byte);
                    at += 1;
                }
            }
        }
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let arg = self.args.get(self.at)?.clone();
        self.at += 1;
        Some(arg)
    }

    /// A conversion at the start of `format`; answers its length.
    fn conversion(&mut self, format: &[u8]) -> Option<usize> {
        let mut at = 1;
        let mut spec = self.spec(format, &mut at);
        if self.stopped {
            return None;
        }
        let Some(&kind) = format.get(at) else {
            self.complain(&[b"`", format, b"': missing format character"]);
            return None;
        };
        at += 1;
        match kind {
            b's' => {
                let text = self.next().unwrap_or_default();
                self.string(&spec, &text);
            }
            b'b' => {
                let text = self.next().unwrap_or_default();
                self.complain_of_hex(&text);
                let (text, cut) = ansi_c(&text, false);
                self.string(&spec, &text);
                self.stopped = cut;
            }
            b'q' => {
                let text = self.next().map_or_else(|| b"''".to_vec(), |text| quote::backslash(&text));
                self.string(&spec, &text);
            }
            b'Q' => {
                let mut text = self.next().unwrap_or_default();
                if let Some(precision) = spec.precision.take() {
                    text.truncate(precision);
                }
                self.string(&spec, &quote::backslash(&text));
            }
            b'c' => {
                let text = self.next().unwrap_or_default();
                let first: &[u8] = if text.is_empty() { &[0] } else { &text[..1] };
                self.string(&Spec { precision: None, ..spec }, first);
            }
            b'd' | b'i' => {
                let value = self.integer();
                self.signed(&spec, value);
            }
            b'u' | b'o' | b'x' | b'X' => {
                let value = self.integer();
                self.unsigned(&spec, kind, value as u64);
            }
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                let value = self.float();
                self.floating(&spec, kind, &value);
            }
            b'(' => return self.time(&spec, format, at),
            b'n' => {
                if let Some(name) = self.next() {
                    let count = self.out.len().to_string();
                    let _ = self.shell.assign_target(&name, count.as_bytes());
                }
            }
            other => {
                self.complain(&[b"`", &[other], b"': invalid format character"]);
                self.stopped = true;
                return None;
            }
        }
        Some(at)
    }

    /// Flags, width, precision and the size letters nobody needs; `at` ends up at the conversion's letter.
    fn spec(&mut self, format: &[u8], at: &mut usize) -> Spec {
        let mut spec = Spec::default();
        while let Some(&flag) = format.get(*at) {
            match flag {
                b'-' => spec.left = true,
                b'0' => spec.zero = true,
                b'+' => spec.plus = true,
                b' ' => spec.space = true,
                b'#' => spec.alternate = true,
                b'\'' => {}
                _ => break,
            }
            *at += 1;
        }
        let width = self.count(format, at);
        if let Some(width) = width {
            spec.left |= width < 0;
            spec.width = self.limited(width.unsigned_abs());
        }
        if format.get(*at) == Some(&b'.') {
            *at += 1;
            let precision = self.count(format, at).unwrap_or(0);
            spec.precision = u64::try_from(precision).ok().map(|precision| self.limited(precision));
        }
        while matches!(format.get(*at), Some(b'l' | b'h' | b'L' | b'j' | b'z' | b't')) {
            *at += 1;
        }
        spec
    }

    /// A width or precision that a field may have. All output is in memory before it is written: one that would fill it is
    /// refused, and nothing after it is printed.
    fn limited(&mut self, size: u64) -> usize {
        match usize::try_from(size) {
            Ok(size) if size <= MOST => size,
            _ => {
                self.complain(&[size.to_string().as_bytes(), b": field is too wide"]);
                self.stopped = true;
                0
            }
        }
    }

    /// A width or precision: digits, or `*` for an argument.
    fn count(&mut self, format: &[u8], at: &mut usize) -> Option<i64> {
        if format.get(*at) == Some(&b'*') {
            *at += 1;
            return Some(self.integer());
        }
        let digits = format[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let text = std::str::from_utf8(&format[*at..*at + digits]).unwrap_or("0");
        *at += digits;
        Some(text.parse().unwrap_or(i64::MAX))
    }

    fn complain(&mut self, message: &[&[u8]]) {
        self.status = fail(self.shell, b"printf", message, 1);
    }

    fn pad(&mut self, spec: &Spec, text: &[u8], count: usize) {
        let fill = spec.width.saturating_sub(count);
        if !spec.left {
            self.out.extend(std::iter::repeat_n(b' ', fill));
        }
        self.out.extend_from_slice(text);
        if spec.left {
            self.out.extend(std::iter::repeat_n(b' ', fill));
        }
    }

    /// Width and precision of a string count bytes.
    fn string(&mut self, spec: &Spec, text: &[u8]) {
        let utf8 = self.shell.utf8();
        let mut text = text.to_vec();
        if let Some(precision) = spec.precision {
            text.truncate(precision.min(text.len()));
            let _ = utf8;
        }
        let count = text.len();
        self.pad(spec, &text, count);
    }

    /// Sign and digits, padded with zeros or blanks.
    fn digits(&mut self, spec: &Spec, prefix: &str, digits: String) {
        let mut digits = digits;
        if let Some(precision) = spec.precision {
            if digits.len() < precision {
                digits.insert_str(0, &"0".repeat(precision - digits.len()));
            }
        } else if spec.zero && !spec.left {
            let room = spec.width.saturating_sub(prefix.len());
            if digits.len() < room {
                digits.insert_str(0, &"0".repeat(room - digits.len()));
            }
        }
        let text = format!("{prefix}{digits}");
        self.pad(spec, text.as_bytes(), text.len());
    }

    fn signed(&mut self, spec: &Spec, value: i64) {
        let prefix = match value {
            value if value < 0 => "-",
            _ if spec.plus => "+",
            _ if spec.space => " ",
            _ => "",
        };
        let digits = if value == 0 && spec.precision == Some(0) {
            String::new()
        } else {
            value.unsigned_abs().to_string()
        };
        self.digits(spec, prefix, digits);
    }

    fn unsigned(&mut self, spec: &Spec, kind: u8, value: u64) {
        let mut digits = match kind {
            _ if value == 0 && spec.precision == Some(0) => String::new(),
            b'o' => format!("{value:o}"),
            b'x' => format!("{value:x}"),
            b'X' => format!("{value:X}"),
            _ => value.to_string(),
        };
        let prefix = match kind {
            b'x' if spec.alternate && value != 0 => "0x",
            b'X' if spec.alternate && value != 0 => "0X",
            _ => "",
        };
        // To octal digits a zero is added, unless there is one to spare.
        let padded = spec.precision.is_some_and(|precision| precision > digits.len());
        if kind == b'o' && spec.alternate && !padded && !digits.starts_with('0') {
            digits.insert(0, '0');
        }
        self.digits(spec, prefix, digits);
    }

    /// The next argument as an integer: decimal, octal, hexadecimal, or a character after a quote.
    fn integer(&mut self) -> i64 {
        let Some(text) = self.next() else { return 0 };
        if let [b'\'' | b'"', rest @ ..] = text.as_slice() {
            return if rest.is_empty() { 0 } else { i64::from(crate::pattern::char_at(rest, 0, true).0) };
        }
        let trimmed = text.trim_ascii_start();
        let (negative, digits) = match trimmed {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, trimmed),
        };
        let (radix, digits) = match digits {
            [b'0', b'x' | b'X', rest @ ..] => (16, rest),
            [b'0', rest @ ..] if !rest.is_empty() => (8, rest),
            _ => (10, digits),
        };
        let len = digits.iter().take_while(|byte| (**byte as char).is_digit(radix)).count();
        if (len < digits.len() || (len == 0 && radix == 10)) && !text.is_empty() {
            self.complain_number(&text);
        }
        let mut value: i128 = 0;
        for byte in &digits[..len] {
            value = value.saturating_mul(i128::from(radix))
                + i128::from((*byte as char).to_digit(radix).unwrap_or(0));
        }
        if negative {
            value = -value;
        }
        if value > i128::from(u64::MAX) || value < i128::from(i64::MIN) {
            fail(self.shell, b"printf", &[b"warning: ", &text, b": Numerical result out of range"], 0);
            return if negative { i64::MIN } else { i64::MAX };
        }
        match i64::try_from(value) {
            Ok(value) => value,
            Err(_) => value as u64 as i64,
        }
    }

    fn float(&mut self) -> Float {
        let Some(text) = self.next() else { return Float::integer(0) };
        if let [b'\'' | b'"', rest @ ..] = text.as_slice() {
            let c = if rest.is_empty() { 0 } else { crate::pattern::char_at(rest, 0, true).0 };
            return Float::integer(u64::from(c));
        }
        let (value, len) = Float::read(&text);
        if len < text.len() {
            self.complain_number(&text);
        }
        value
    }

    fn floating(&mut self, spec: &Spec, kind: u8, value: &Float) {
        let sign = match value.negative {
            true => "-",
            false if spec.plus => "+",
            false if spec.space => " ",
            false => "",
        };
        let digits = value.digits(kind.to_ascii_lowercase(), spec.precision, spec.alternate);
        let upper = |text: String| if kind.is_ascii_uppercase() { text.to_uppercase() } else { text };
        match digits {
            Some(digits) => self.digits(&Spec { precision: None, ..spec.clone() }, sign, upper(digits)),
            None => {
                let name = if matches!(value.kind, Kind::Infinite) { "inf" } else { "nan" };
                let text = format!("{sign}{}", upper(name.to_string()));
                self.pad(spec, text.as_bytes(), text.len());
            }
        }
    }

    /// `\x` wants digits.
    fn complain_of_hex(&mut self, text: &[u8]) {
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.iter().position(|&byte| byte == b'\\')) {
            at += found + 2;
            let is_hex = text.get(at - 1) == Some(&b'x');
            if is_hex && !text.get(at).is_some_and(u8::is_ascii_hexdigit) {
                self.shell.complain(b"printf: missing hex digit for \\x");
            }
        }
    }

    /// Complains of a number in the words its first digits ask for.
    fn complain_number(&mut self, text: &[u8]) {
        let message: &[u8] = match text {
            [b'0', b'0'..=b'9', ..] => b": invalid octal number",
            [b'0', b'x', ..] => b": invalid hex number",
            _ => b": invalid number",
        };
        self.complain(&[text, message]);
    }

    /// `%(format)T`
    fn time(&mut self, spec: &Spec, format: &[u8], at: usize) -> Option<usize> {
        let mut depth = 1;
        let mut end = at;
        while depth > 0 {
            match format.get(end) {
                Some(b'(') => depth += 1,
                Some(b')') => depth -= 1,
                Some(_) => {}
                None => return None,
            }
            end += 1;
        }
        if format.get(end) != Some(&b'T') {
            let letter = &format[end..(end + 1).min(format.len())];
            self.shell.complain_parts(&[
                b"printf: warning: `",
                letter,
                b"': invalid time format specification",
            ]);
            self.out.extend_from_slice(b"%(");
            self.out.extend_from_slice(&format[at..(end + 1).min(format.len())]);
            return Some((end + 1).min(format.len()));
        }
        let inner = &format[at..end - 1];
        let seconds = match self.args.get(self.at).map(Vec::as_slice) {
            None => crate::dynamic::since_epoch().as_secs() as i64,
            Some(b"-1") => {
                self.at += 1;
                crate::dynamic::since_epoch().as_secs() as i64
            }
            Some(b"-2") => {
                self.at += 1;
                (crate::dynamic::since_epoch().as_secs() as i64)
                    - self.shell.started.elapsed().as_secs() as i64
            }
            Some(_) => self.integer(),
        };
        let text = self.shell.local_time(if inner.is_empty() { b"%X" } else { inner }, seconds);
        self.string(spec, &text);
        Some(end + 1)
    }
}

/// Where the escape at `at` ends.
fn escape_end(format: &[u8], at: usize) -> usize {
    let digits = |from: usize, most: usize, radix: u32| {
        let rest = &format[from.min(format.len())..];
        from + rest.iter().take(most).take_while(|byte| (**byte as char).is_digit(radix)).count()
    };
    match format.get(at + 1) {
        None => at + 1,
        Some(b'x') => digits(at + 2, 2, 16),
        Some(b'u') => digits(at + 2, 4, 16),
        Some(b'U') => digits(at + 2, 8, 16),
        Some(b'0'..=b'7') => digits(at + 1, 3, 8),
        Some(b'%') => at + 1,
        Some(_) => at + 2,
    }
}

/// Escapes in a format: octal needs no leading zero, quotes may be escaped, and `\c` means nothing.
fn ansi_c_format(escape: &[u8]) -> (Vec<u8>, bool) {
    match escape {
        [b'\\', b'c'] => (escape.to_vec(), false),
        [b'\\', quote @ (b'"' | b'\'' | b'?')] => (vec![*quote], false),
        [b'\\', b'0'..=b'7', ..] => {
            let text = std::str::from_utf8(&escape[1..]).unwrap_or("0");
            (vec![u32::from_str_radix(text, 8).unwrap_or(0) as u8], false)
        }
        _ => ansi_c(escape, false),
    }
}
