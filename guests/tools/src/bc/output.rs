//! What bc writes: numbers in any base, on lines that are broken when they get long.

use super::number::Number;
use toolkit::out::Out;

pub struct Output {
    out: Out,
    column: usize,
    /// Characters on a line; 0 is no limit.
    width: usize,
}

impl Output {
    pub fn new() -> Output {
        let wanted = std::env::var("BC_LINE_LENGTH").ok().and_then(|text| text.parse().ok());
        let width = wanted.filter(|width| *width == 0 || *width > 2).unwrap_or(70);
        Output { out: Out::new("bc"), column: 0, width }
    }

    pub fn text(&mut self, text: &[u8]) {
        let mut broken = Vec::with_capacity(text.len());
        for &byte in text {
            if byte == b'\n' {
                self.column = 0;
            } else {
                self.column += 1;
                if self.column + 1 == self.width {
                    broken.extend(b"\\\n");
                    self.column = 1;
                }
            }
            broken.push(byte);
        }
        self.out.put(broken);
    }

    /// A text as it is, however long its lines are.
    pub fn raw(&mut self, text: &[u8]) {
        self.out.put(text);
        if let Some(end) = memchr::memrchr(b'\n', text) {
            self.column = text.len() - end - 1;
        }
    }

    pub fn number(&mut self, number: &Number, base: u32) {
        let text = if base == 10 || number.is_zero() { number.to_decimal() } else { in_base(number, base) };
        self.text(text.as_bytes());
    }

    pub fn flush(&mut self) {
        self.out.flush();
    }
}

fn in_base(number: &Number, base: u32) -> String {
    let (whole, fraction) = number.to_base(base);
    let mut text = String::from(if number.is_negative() { "-" } else { "" });
    if base <= 16 {
        let digit = |digit: &u32| char::from_digit(*digit, 16).unwrap_or('0').to_ascii_uppercase();
        text.extend(whole.iter().map(digit));
        if !fraction.is_empty() {
            text.push('.');
            text.extend(fraction.iter().map(digit));
        }
        return text;
    }
    let width = (base - 1).to_string().len();
    for digit in whole {
        text += &format!(" {digit:0width$}");
    }
    for (index, digit) in fraction.iter().enumerate() {
        text.push(if index == 0 { '.' } else { ' ' });
        text += &format!("{digit:0width$}");
    }
    text
}
