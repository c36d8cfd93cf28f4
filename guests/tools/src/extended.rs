//! Numbers as C's `long double` has them on x86: 64 bits and an exponent. `seq` and `numfmt` compute with these, and
//! what they print shows it.

use num_bigint::BigUint;
use std::cmp::Ordering;

/// A number of 64 significant bits, never one that is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extended {
    is_negative: bool,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Zero,
    /// `mantissa * 2^exponent`; the mantissa's first bit is set.
    Finite {
        mantissa: u64,
        exponent: i32,
    },
    Infinite,
}

/// Beyond these powers of ten there is nothing but zero and infinity.
const MOST_DIGITS: i64 = 5000;
/// The exponents of the greatest and the least number.
const GREATEST: i32 = 16384 - 64;
const LEAST: i32 = -16445;

pub const ZERO: Extended = Extended { is_negative: false, kind: Kind::Zero };

impl Extended {
    pub fn is_finite(self) -> bool {
        self.kind != Kind::Infinite
    }

    pub fn is_zero(self) -> bool {
        self.kind == Kind::Zero
    }

    pub fn is_negative(self) -> bool {
        self.is_negative && !self.is_zero()
    }

    /// Whether it has a sign, which a zero may have too.
    pub fn has_minus(self) -> bool {
        self.is_negative
    }

    pub fn absolute(self) -> Extended {
        Extended { is_negative: false, ..self }
    }

    pub fn opposite(self) -> Extended {
        Extended { is_negative: !self.is_negative, ..self }
    }

    /// The nearest to a number of many bits, with a bit that stands for all that follow.
    fn nearest(is_negative: bool, bits: u128, exponent: i64) -> Extended {
        if bits == 0 {
            return Extended { is_negative, kind: Kind::Zero };
        }
        let length = 128 - bits.leading_zeros() as i64;
        let drop = length - 64;
        let (mut mantissa, mut exponent) = if drop <= 0 {
            (bits << -drop, exponent + drop)
        } else {
            let kept = bits >> drop;
            let (rest, half) = (bits & ((1 << drop) - 1), 1u128 << (drop - 1));
            let up = rest > half || rest == half && kept & 1 == 1;
            (kept + u128::from(up), exponent + drop)
        };
        if mantissa >> 64 != 0 {
            (mantissa, exponent) = (mantissa >> 1, exponent + 1);
        }
        let kind = if exponent > i64::from(GREATEST) {
            Kind::Infinite
        } else if exponent < i64::from(LEAST) {
            Kind::Zero
        } else {
            Kind::Finite { mantissa: mantissa as u64, exponent: exponent as i32 }
        };
        Extended { is_negative, kind }
    }

    /// The nearest to a fraction of whole numbers.
    fn of_fraction(is_negative: bool, above: BigUint, below: BigUint) -> Extended {
        // At least 66 bits of the quotient, and one for what is left over.
        let shift = (below.bits() as i64 - above.bits() as i64 + 67).max(0);
        let above = above << shift as u64;
        let quotient = &above / &below;
        let is_exact = &quotient * &below == above;
        let drop = (quotient.bits() as i64 - 120).max(0);
        let kept = &quotient >> drop as u64;
        let is_exact = is_exact && (&kept << drop as u64) == quotient;
        let bits = kept.iter_u64_digits().rev().fold(0u128, |bits, digit| bits << 64 | u128::from(digit));
        Extended::nearest(is_negative, bits << 1 | u128::from(!is_exact), drop - shift - 1)
    }

    /// Reads a number as `strtold` does; nothing may follow it.
    pub fn parse(text: &[u8]) -> Option<Extended> {
        let text = text.trim_ascii_start();
        let (is_negative, text) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            text => (false, text),
        };
        if text.eq_ignore_ascii_case(b"inf") || text.eq_ignore_ascii_case(b"infinity") {
            return Some(Extended { is_negative, kind: Kind::Infinite });
        }
        match text {
            [b'0', b'x' | b'X', digits @ ..] => parse_scaled(is_negative, digits, 16, b'p'),
            digits => parse_scaled(is_negative, digits, 10, b'e'),
        }
    }

    pub fn plus(self, other: Extended) -> Extended {
        let (large, small) = match self.absolute().compare(other.absolute()) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        let (Kind::Finite { mantissa: a, exponent }, Kind::Finite { mantissa: b, exponent: low }) =
            (large.kind, small.kind)
        else {
            return if small.is_zero() && large.is_zero() { ZERO } else { large };
        };
        let distance = (exponent - low).min(100) as u32;
        let a = u128::from(a) << 62;
        let wide = u128::from(b) << 62;
        let mut b = wide.checked_shr(distance).unwrap_or(0);
        if distance > 0 && b << distance != wide {
            b |= 1;
        }
        let sum = if large.is_negative == small.is_negative { a + b } else { a - b };
        match sum {
            0 => ZERO,
            sum => Extended::nearest(large.is_negative, sum, i64::from(exponent) - 62),
        }
    }

    pub fn minus(self, other: Extended) -> Extended {
        self.plus(other.opposite())
    }

    pub fn times(self, other: Extended) -> Extended {
        let is_negative = self.is_negative != other.is_negative;
        match (self.kind, other.kind) {
            (Kind::Finite { mantissa: a, exponent: left }, Kind::Finite { mantissa: b, exponent: right }) => {
                let exponent = i64::from(left) + i64::from(right);
                Extended::nearest(is_negative, u128::from(a) * u128::from(b), exponent)
            }
            (Kind::Zero, _) | (_, Kind::Zero) => Extended { is_negative, kind: Kind::Zero },
            _ => Extended { is_negative, kind: Kind::Infinite },
        }
    }

    pub fn over(self, other: Extended) -> Extended {
        let is_negative = self.is_negative != other.is_negative;
        let (Kind::Finite { mantissa: a, exponent: left }, Kind::Finite { mantissa: b, exponent: right }) =
            (self.kind, other.kind)
        else {
            let kind = if self.is_zero() || !other.is_finite() { Kind::Zero } else { Kind::Infinite };
            return Extended { is_negative, kind };
        };
        let quotient = Extended::of_fraction(is_negative, BigUint::from(a), BigUint::from(b));
        match quotient.kind {
            Kind::Finite { mantissa, exponent } => Extended::nearest(
                is_negative,
                u128::from(mantissa),
                i64::from(exponent) + i64::from(left) - i64::from(right),
            ),
            _ => quotient,
        }
    }

    pub fn compare(self, other: Extended) -> Ordering {
        match (self.is_negative(), other.is_negative()) {
            (true, false) => return Ordering::Less,
            (false, true) => return Ordering::Greater,
            (true, true) => return other.absolute().compare(self.absolute()),
            (false, false) => {}
        }
        match (self.kind, other.kind) {
            (Kind::Zero, Kind::Zero) | (Kind::Infinite, Kind::Infinite) => Ordering::Equal,
            (Kind::Zero, _) | (_, Kind::Infinite) => Ordering::Less,
            (_, Kind::Zero) | (Kind::Infinite, _) => Ordering::Greater,
            (Kind::Finite { mantissa: a, exponent: left }, Kind::Finite { mantissa: b, exponent: right }) => {
                (left, a).cmp(&(right, b))
            }
        }
    }

    /// The whole number next to it on the way to zero, and whether it is that.
    pub fn whole(self) -> (Extended, bool) {
        let Kind::Finite { mantissa, exponent } = self.kind else { return (self, true) };
        if exponent >= 0 {
            return (self, true);
        }
        if exponent <= -64 {
            return (Extended { is_negative: self.is_negative, kind: Kind::Zero }, false);
        }
        let kept = mantissa >> -exponent;
        let is_exact = kept << -exponent == mantissa;
        (Extended::nearest(self.is_negative, u128::from(kept), 0), is_exact)
    }

    /// The absolute value times a power of ten, to the nearest whole number; of two as near, the even one.
    fn scaled(self, power: i64) -> BigUint {
        let Kind::Finite { mantissa, exponent } = self.kind else { return BigUint::ZERO };
        let ten = |power: i64| BigUint::from(10u32).pow(power.max(0) as u32);
        let above = (BigUint::from(mantissa) * ten(power)) << exponent.max(0) as u64;
        let below = ten(-power) << (-exponent).max(0) as u64;
        let whole = &above / &below;
        let rest = (above - &whole * &below) << 1u32;
        match rest.cmp(&below) {
            Ordering::Greater => whole + 1u32,
            Ordering::Equal if whole.bit(0) => whole + 1u32,
            _ => whole,
        }
    }

    /// `%.Nf` without a sign.
    pub fn fixed(self, precision: usize) -> String {
        if !self.is_finite() {
            return "inf".into();
        }
        let digits = self.scaled(precision as i64).to_string();
        if precision == 0 {
            return digits;
        }
        let digits = toolkit::pad::before(digits, '0', precision + 1);
        let (whole, fraction) = digits.split_at(digits.len() - precision);
        format!("{whole}.{fraction}")
    }

    /// The digits of `%.Ne` and its exponent.
    fn significant(self, precision: usize) -> (String, i64) {
        let Kind::Finite { mantissa, exponent } = self.kind else { return ("0".repeat(precision + 1), 0) };
        let log = (mantissa as f64).log10() + f64::from(exponent) * std::f64::consts::LOG10_2;
        let mut power = log.floor() as i64;
        // The guess is wrong by one at most.
        if self.scaled(-power + 30) < BigUint::from(10u32).pow(30) {
            power -= 1;
        }
        loop {
            let digits = self.scaled(precision as i64 - power).to_string();
            if digits.len() <= precision + 1 {
                return (digits, power);
            }
            power += 1;
        }
    }

    /// `%.Ne` without a sign.
    pub fn scientific(self, precision: usize, point: bool) -> String {
        if !self.is_finite() {
            return "inf".into();
        }
        let (digits, power) = self.significant(precision);
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() && !point { "" } else { "." };
        let sign = if power < 0 { '-' } else { '+' };
        format!("{first}{point}{rest}e{sign}{:02}", power.abs())
    }

    /// `%.Ng` without a sign; `keep` is the flag `#`.
    pub fn general(self, precision: usize, keep: bool) -> String {
        if !self.is_finite() {
            return "inf".into();
        }
        let precision = precision.max(1);
        let (_, power) = self.significant(precision - 1);
        let is_fixed = power >= -4 && power < precision as i64;
        let text = match is_fixed {
            true => self.fixed((precision as i64 - 1 - power) as usize),
            false => self.scientific(precision - 1, keep),
        };
        if keep {
            return if text.contains('.') { text } else { text + "." };
        }
        let (number, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
        let number = match number.contains('.') {
            true => number.trim_end_matches('0').trim_end_matches('.'),
            false => number,
        };
        format!("{number}{exponent}")
    }

    /// `%a` without a sign.
    pub fn hexadecimal(self, precision: Option<usize>, point: bool) -> String {
        let (mut mantissa, mut power) = match self.kind {
            Kind::Infinite => return "inf".into(),
            Kind::Zero => (0, 0),
            Kind::Finite { mantissa, exponent } => (u128::from(mantissa), exponent + 60),
        };
        if let Some(digits) = precision.filter(|digits| *digits < 15) {
            let drop = 60 - 4 * digits as u32;
            let (kept, rest, half) = (mantissa >> drop, mantissa & ((1 << drop) - 1), 1u128 << (drop - 1));
            mantissa = (kept + u128::from(rest > half || rest == half && kept & 1 == 1)) << drop;
            if mantissa >> 64 != 0 {
                (mantissa, power) = (mantissa >> 4, power + 4);
            }
        }
        let digits = format!("{mantissa:016x}");
        let (first, rest) = digits.split_at(1);
        let rest = match precision {
            Some(precision) => toolkit::pad::after(&rest[..precision.min(15)], '0', precision),
            None => rest.trim_end_matches('0').to_owned(),
        };
        let dot = if rest.is_empty() && !point { "" } else { "." };
        format!("0x{first}{dot}{rest}p{power:+}")
    }
}

impl From<u64> for Extended {
    fn from(number: u64) -> Extended {
        Extended::nearest(false, u128::from(number), 0)
    }
}

/// Digits with a point and an exponent, by powers of ten or, for sixteen, of two.
fn parse_scaled(is_negative: bool, text: &[u8], radix: u32, mark: u8) -> Option<Extended> {
    let end = text.iter().position(|byte| byte.to_ascii_lowercase() == mark).unwrap_or(text.len());
    let (number, exponent) = text.split_at(end);
    let mut exponent = match exponent.get(1..) {
        None => 0,
        Some(text) => {
            let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
            if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
                return None;
            }
            let size =
                digits.iter().fold(0i64, |size, digit| (size * 10 + i64::from(digit - b'0')).min(1 << 40));
            if text.starts_with(b"-") { -size } else { size }
        }
    };
    let point = number.iter().position(|&byte| byte == b'.').unwrap_or(number.len());
    let fraction = number.get(point + 1..).unwrap_or_default();
    let digits = [&number[..point], fraction].concat();
    if digits.is_empty() || !digits.iter().all(|digit| char::from(*digit).is_digit(radix)) {
        return None;
    }
    let digits = &digits[digits.iter().take_while(|&&digit| digit == b'0').count()..];
    exponent -= fraction.len() as i64 * if radix == 16 { 4 } else { 1 };
    let magnitude = digits.len() as i64 + exponent;
    let most = if radix == 16 { MOST_DIGITS * 4 } else { MOST_DIGITS };
    if magnitude > most {
        return Some(Extended { is_negative, kind: Kind::Infinite });
    }
    let number = BigUint::parse_bytes(digits, radix).filter(|_| magnitude >= -most);
    let Some(number) = number else { return Some(Extended { is_negative, kind: Kind::Zero }) };
    let base = BigUint::from(if radix == 16 { 2u32 } else { 10 });
    let (above, below) = match exponent {
        0.. => (number * base.pow(exponent as u32), BigUint::from(1u32)),
        _ => (number, base.pow(exponent.unsigned_abs() as u32)),
    };
    Some(Extended::of_fraction(is_negative, above, below))
}
