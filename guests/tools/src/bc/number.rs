//! Decimal numbers of any length, with the rules that bc has for the digits after the point.

use num_bigint::{BigInt, BigUint, Sign};
use std::cmp::Ordering;
use std::rc::Rc;

/// `digits / 10^scale`.
#[derive(Clone, Debug)]
pub struct Number {
    digits: Rc<BigInt>,
    pub scale: usize,
}

/// Why there is no result.
#[derive(Debug, PartialEq)]
pub enum Impossible {
    DivideByZero,
    ModuloByZero,
    /// To a negative exponent.
    PowerOfZero,
    NegativeRoot,
    TooLarge,
}

pub fn power_of_ten(exponent: usize) -> BigInt {
    BigInt::from(10u8).pow(exponent as u32)
}

impl Number {
    pub fn new(digits: BigInt, scale: usize) -> Number {
        Number { digits: Rc::new(digits), scale }
    }

    pub fn zero() -> Number {
        Number::from(0)
    }

    pub fn is_zero(&self) -> bool {
        self.digits.sign() == Sign::NoSign
    }

    pub fn is_negative(&self) -> bool {
        self.digits.sign() == Sign::Minus
    }

    /// The digits as they would be with another scale: cut off, or filled up with zeros.
    pub fn scaled(&self, scale: usize) -> BigInt {
        match scale.cmp(&self.scale) {
            Ordering::Equal => (*self.digits).clone(),
            Ordering::Greater => &*self.digits * power_of_ten(scale - self.scale),
            Ordering::Less => &*self.digits / power_of_ten(self.scale - scale),
        }
    }

    /// The number without the digits after so many.
    pub fn truncated(self, scale: usize) -> Number {
        if scale >= self.scale { self } else { Number::new(self.scaled(scale), scale) }
    }

    /// What stands before the point.
    pub fn integer(&self) -> BigInt {
        self.scaled(0)
    }

    /// What stands before the point, if it is small enough to count or to index with.
    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(self.integer()).ok()
    }

    pub fn negated(&self) -> Number {
        Number::new(-&*self.digits, self.scale)
    }

    pub fn plus(&self, other: &Number) -> Number {
        let scale = self.scale.max(other.scale);
        Number::new(self.scaled(scale) + other.scaled(scale), scale)
    }

    pub fn minus(&self, other: &Number) -> Number {
        let scale = self.scale.max(other.scale);
        Number::new(self.scaled(scale) - other.scaled(scale), scale)
    }

    pub fn times(&self, other: &Number, scale: usize) -> Number {
        let full = self.scale + other.scale;
        let kept = full.min(scale.max(self.scale).max(other.scale));
        Number::new(&*self.digits * &*other.digits, full).truncated(kept)
    }

    pub fn over(&self, other: &Number, scale: usize) -> Result<Number, Impossible> {
        if other.is_zero() {
            return Err(Impossible::DivideByZero);
        }
        let wanted = scale + other.scale;
        let quotient = if wanted >= self.scale {
            &*self.digits * power_of_ten(wanted - self.scale) / &*other.digits
        } else {
            &*self.digits / (&*other.digits * power_of_ten(self.scale - wanted))
        };
        Ok(Number::new(quotient, scale))
    }

    /// What is left after a division to so many digits.
    pub fn modulo(&self, other: &Number, scale: usize) -> Result<Number, Impossible> {
        let quotient = self.over(other, scale)?;
        let kept = self.scale.max(other.scale + scale);
        let product = Number::new(&*quotient.digits * &*other.digits, scale + other.scale);
        Ok(Number::new(self.scaled(kept) - product.scaled(kept), kept))
    }

    /// The power to a whole exponent.
    pub fn to_the(&self, exponent: i64, scale: usize) -> Result<Number, Impossible> {
        /// Bits and decimals of a result, beyond which nobody would wait for it.
        const MOST: (u64, u64) = (1 << 31, 1 << 26);
        if exponent == 0 {
            return Ok(Number::from(1));
        }
        let times = u32::try_from(exponent.unsigned_abs()).map_err(|_| Impossible::TooLarge);
        let is_trivial = self.digits.magnitude() <= &BigUint::from(1u8) && self.scale == 0;
        if is_trivial && !self.is_zero() {
            let unit = Number::from(if self.is_negative() && exponent % 2 != 0 { -1 } else { 1 });
            return if exponent > 0 { Ok(unit) } else { unit.over(&Number::from(1), scale) };
        }
        let times = if self.is_zero() { 1 } else { times? };
        let digits_after = (self.scale as u64).saturating_mul(u64::from(times));
        let bits = self.digits.bits().saturating_mul(u64::from(times));
        if bits > MOST.0 || digits_after > MOST.1 {
            return Err(Impossible::TooLarge);
        }
        let power = Number::new(self.digits.pow(times), self.scale * times as usize);
        if exponent < 0 {
            return Number::from(1).over(&power, scale);
        }
        let kept = power.scale.min(scale.max(self.scale));
        Ok(power.truncated(kept))
    }

    pub fn root(&self, scale: usize) -> Result<Number, Impossible> {
        if self.is_negative() {
            return Err(Impossible::NegativeRoot);
        }
        if self.is_zero() || *self == Number::from(1) {
            return Ok(Number::new(self.integer(), 0));
        }
        let scale = scale.max(self.scale);
        Ok(Number::new(self.scaled(2 * scale).sqrt(), scale))
    }

    /// How many digits it has.
    pub fn length(&self) -> usize {
        let text = self.digits.magnitude().to_string();
        if self.is_zero() { self.scale.max(1) } else { text.len().max(self.scale) }
    }

    /// The digits, sign and point, in base ten.
    pub fn to_decimal(&self) -> String {
        if self.is_zero() {
            return "0".into();
        }
        let mut text = self.digits.magnitude().to_string();
        if text.len() < self.scale {
            text.insert_str(0, &"0".repeat(self.scale - text.len()));
        }
        if self.scale > 0 {
            text.insert(text.len() - self.scale, '.');
        }
        if self.is_negative() { format!("-{text}") } else { text }
    }

    /// The digits in another base: those before the point, and as many after it as the number has meaning for.
    pub fn to_base(&self, base: u32) -> (Vec<u32>, Vec<u32>) {
        let whole = self.integer();
        let one = power_of_ten(self.scale);
        let mut rest =
            BigInt::from((*self.digits).magnitude().clone()) - BigInt::from(whole.magnitude().clone()) * &one;
        let mut fraction = Vec::new();
        let mut reached = BigInt::from(1u8);
        // As long as a step of this base is no finer than the last decimal.
        while self.scale > 0 && reached.to_string().len() <= self.scale {
            rest *= base;
            let digit = &rest / &one;
            rest -= &digit * &one;
            fraction.push(u32::try_from(digit).unwrap_or(0));
            reached *= base;
        }
        (digits_in(whole.magnitude(), base), fraction)
    }

    /// Reads digits of a base, of which those too great for it count as its greatest.
    pub fn parse(text: &str, base: u32) -> Number {
        let value = |digit: char| digit.to_digit(36).unwrap_or(0);
        if text.len() == 1 {
            return Number::from(i64::from(value(text.chars().next().unwrap_or('0'))));
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let digits: String = whole.chars().chain(fraction.chars()).collect();
        if base == 10 && !digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
            return Number::new(digits.parse().unwrap_or_default(), fraction.len());
        }
        let small: Vec<u8> = digits.chars().map(|digit| value(digit).min(base - 1) as u8).collect();
        let number = BigInt::from_radix_be(Sign::Plus, &small, base).unwrap_or_default();
        if fraction.is_empty() {
            return Number::new(number, 0);
        }
        let divisor = Number::new(BigInt::from(base).pow(fraction.len() as u32), 0);
        Number::new(number, 0).over(&divisor, fraction.len()).unwrap_or_else(|_| Number::zero())
    }
}

/// The digits of a whole number, the greatest first; none for zero.
fn digits_in(number: &BigUint, base: u32) -> Vec<u32> {
    if number.bits() == 0 {
        return Vec::new();
    }
    if base <= 256 {
        return number.to_radix_be(base).into_iter().map(u32::from).collect();
    }
    let (mut rest, mut digits) = (number.clone(), Vec::new());
    while rest.bits() > 0 {
        digits.push(u32::try_from(&rest % base).unwrap_or(0));
        rest /= base;
    }
    digits.reverse();
    digits
}

impl From<i64> for Number {
    fn from(number: i64) -> Number {
        Number::new(BigInt::from(number), 0)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        let scale = self.scale.max(other.scale);
        Some(self.scaled(scale).cmp(&other.scaled(scale)))
    }
}
