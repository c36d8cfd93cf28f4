//! A number of `seq`'s command line: its value, and how it was written.

use crate::extended::Extended;
use toolkit::quote;

pub struct Operand {
    pub value: Extended,
    /// How many digits follow the point; unknown for hexadecimal fractions.
    pub places: Option<usize>,
    /// How many characters it takes, written out.
    pub width: i64,
    /// Without blanks and `+` before it.
    text: Vec<u8>,
}

impl Operand {
    pub fn parse(text: &[u8]) -> Result<Operand, String> {
        let bare = text.trim_ascii_start();
        let unsigned = bare.strip_prefix(b"-").or(bare.strip_prefix(b"+")).unwrap_or(bare);
        if unsigned.eq_ignore_ascii_case(b"nan") {
            return Err(format!("invalid 'not-a-number' argument: {}", quote::word(text)));
        }
        // A number beyond the greatest is none, unless it says so itself.
        let says_infinite = unsigned.first().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'i'));
        let value = Extended::parse(text)
            .filter(|value| value.is_finite() || says_infinite)
            .ok_or_else(|| format!("invalid floating point argument: {}", quote::word(text)))?;
        let bare = bare.strip_prefix(b"+").unwrap_or(bare);
        let is_hex = bare.iter().any(|byte| b"xX".contains(byte));
        let point = bare.iter().position(|&byte| byte == b'.');
        let is_binary = bare.contains(&b'p');
        let mut operand = Operand {
            value,
            places: (point.is_none() && !is_binary).then_some(0),
            width: 0,
            text: bare.to_vec(),
        };
        if !is_hex && value.is_finite() {
            operand.measure(point);
        }
        Ok(operand)
    }

    /// Counts the digits of a decimal number as they would be without an exponent.
    fn measure(&mut self, point: Option<usize>) {
        let mark = self.text.iter().position(|byte| b"eE".contains(byte));
        let end = mark.unwrap_or(self.text.len());
        self.width = end as i64;
        let fraction = point.map_or(0, |point| end - point - 1);
        if let Some(point) = point {
            self.width += match fraction {
                0 => -1,
                _ => i64::from(point == 0 || !self.text[point - 1].is_ascii_digit()),
            };
        }
        self.places = Some(fraction);
        let Some(mark) = mark else { return };
        let exponent =
            std::str::from_utf8(&self.text[mark + 1..]).ok().and_then(|text| text.parse::<i64>().ok());
        let exponent = exponent.unwrap_or(0).clamp(-100_000, 100_000);
        let fraction = fraction as i64;
        if exponent < 0 {
            self.places = Some((fraction - exponent) as usize);
            // The point is new, or is not dropped after all.
            self.width += i64::from(point.is_none() || fraction == 0) - exponent;
        } else {
            let left = (fraction - exponent).max(0);
            self.places = Some(left as usize);
            self.width += (exponent - fraction).max(0) - i64::from(left == 0 && fraction > 0);
        }
    }

    pub fn is_infinite(&self) -> bool {
        !self.value.is_finite() && !self.value.is_negative()
    }

    pub fn is_minus_zero(&self) -> bool {
        self.value.is_zero() && self.text.starts_with(b"-")
    }

    /// Its digits without leading zeros, if it is a whole number, not negative and written as such or not too large.
    pub fn digits(&self) -> Option<Vec<u8>> {
        let zeros =
            |digits: &[u8]| digits.iter().take(digits.len() - 1).take_while(|&&digit| digit == b'0').count();
        if !self.text.is_empty() && self.text.iter().all(u8::is_ascii_digit) {
            return Some(self.text[zeros(&self.text)..].to_vec());
        }
        let is_whole = self.places == Some(0) && self.value.is_finite() && !self.text.starts_with(b"-");
        is_whole.then(|| self.value.fixed(0).into_bytes())
    }

    /// The number in units of so many places behind the point, if it is exact and not too large.
    pub fn units(&self, places: usize) -> Option<i64> {
        let (units, is_exact) = self.scaled(places)?;
        is_exact.then_some(units)
    }

    /// The last of these units that does not go beyond it in the direction of a step.
    pub fn floor_units(&self, places: usize, step: &Operand) -> Option<i64> {
        let (units, is_exact) = self.scaled(places)?;
        let is_negative = self.text.starts_with(b"-");
        Some(match (is_exact, is_negative, step.value.is_negative()) {
            (false, true, false) => units - 1,
            (false, false, true) => units + 1,
            _ => units,
        })
    }

    /// In units, towards zero, and whether that is all of it. Only for what is written in plain digits.
    fn scaled(&self, places: usize) -> Option<(i64, bool)> {
        let (sign, digits) = match self.text.as_slice() {
            [b'-', rest @ ..] => (-1, rest),
            digits => (1, digits),
        };
        let point = digits.iter().position(|&byte| byte == b'.').unwrap_or(digits.len());
        let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
        if !whole.iter().chain(fraction).all(u8::is_ascii_digit) || places > 17 {
            return None;
        }
        let kept = fraction.iter().copied().chain(std::iter::repeat(b'0')).take(places);
        let units = whole
            .iter()
            .copied()
            .chain(kept)
            .try_fold(0i64, |units, digit| units.checked_mul(10)?.checked_add(i64::from(digit - b'0')))?;
        let is_exact = fraction.iter().skip(places).all(|&digit| digit == b'0');
        Some((sign * units, is_exact))
    }
}
