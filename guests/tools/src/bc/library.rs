//! The functions of `-l`: exponential, logarithm, sine, cosine, arctangent and Bessel's.
//!
//! Each is worked out with more digits than are wanted, as whole numbers in units of `10^-precision`, and cut off.

use super::number::{Number, power_of_ten};
use num_bigint::{BigInt, Sign};

/// Digits that the sums below may lose, and some.
const SPARE: usize = 12;

/// A number with a fixed count of digits after the point.
struct Fixed {
    one: BigInt,
    precision: usize,
}

impl Fixed {
    fn new(precision: usize) -> Fixed {
        Fixed { one: power_of_ten(precision), precision }
    }

    fn of(&self, number: &Number) -> BigInt {
        number.scaled(self.precision)
    }

    fn times(&self, left: &BigInt, right: &BigInt) -> BigInt {
        left * right / &self.one
    }

    fn result(&self, value: BigInt, scale: usize) -> Number {
        Number::new(value, self.precision).truncated(scale)
    }

    /// `1 + x + x²/2! + …` for a small x.
    fn exponential(&self, x: &BigInt) -> BigInt {
        let (mut sum, mut term, mut n) = (self.one.clone(), self.one.clone(), 1u32);
        while term.sign() != Sign::NoSign {
            term = self.times(&term, x) / n;
            sum += &term;
            n += 1;
        }
        sum
    }

    /// `x - x³/3 ± …` for a small x, with the signs of the arctangent (-1) or of its hyperbolic sister (1).
    fn odd_series(&self, x: &BigInt, sign: i32) -> BigInt {
        let square = self.times(x, x) * sign;
        let (mut sum, mut power, mut n) = (x.clone(), x.clone(), 1u32);
        while power.sign() != Sign::NoSign {
            power = self.times(&power, &square);
            n += 2;
            sum += &power / n;
        }
        sum
    }

    fn root(&self, x: &BigInt) -> BigInt {
        (x * &self.one).sqrt()
    }

    /// Machin's: 16 atan(1/5) - 4 atan(1/239).
    fn pi(&self) -> BigInt {
        let part = |n: u32| self.odd_series(&(&self.one / n), -1);
        part(5) * 16 - part(239) * 4
    }

    /// `x - x³/3! + …` or `1 - x²/2! + …` for a small x.
    fn sine_or_cosine(&self, x: &BigInt, is_sine: bool) -> BigInt {
        let square = -self.times(x, x);
        let mut term = if is_sine { x.clone() } else { self.one.clone() };
        let (mut sum, mut n) = (term.clone(), if is_sine { 1u32 } else { 0 });
        while term.sign() != Sign::NoSign {
            term = self.times(&term, &square) / ((n + 1) * (n + 2));
            sum += &term;
            n += 2;
        }
        sum
    }
}

/// Digits before the point.
fn whole_digits(number: &Number) -> usize {
    number.integer().magnitude().to_string().len()
}

/// `e(x)`; nothing if it would be too large to write down.
pub fn exponential(x: &Number, scale: usize) -> Option<Number> {
    /// Beyond this e(x) has millions of digits.
    const MOST: i64 = 20_000_000;
    let whole = x.to_i64().filter(|whole| whole.abs() < MOST)?;
    let digits_before = if whole > 0 { whole as usize * 44 / 100 + 2 } else { 0 };
    // Halved so often that the series is short, which is made good by squaring.
    let halvings = 64 - whole.unsigned_abs().leading_zeros() as usize + 8;
    let fixed = Fixed::new(scale + digits_before + halvings + SPARE);
    let mut value = fixed.exponential(&(fixed.of(x) >> halvings));
    for _ in 0..halvings {
        value = fixed.times(&value, &value);
    }
    Some(fixed.result(value, scale))
}

/// `l(x)`: for what has no logarithm, the most negative number of that many digits.
pub fn logarithm(x: &Number, scale: usize) -> Number {
    if x.is_zero() || x.is_negative() {
        let least = Number::new(BigInt::from(1u8) - power_of_ten(scale), 0);
        return Number::new(least.scaled(scale), scale);
    }
    if *x == Number::from(1) {
        return Number::zero();
    }
    let fixed = Fixed::new(scale.max(x.scale) + 2 * whole_digits(x) + SPARE);
    let (mut value, mut doublings) = (fixed.of(x), 0u32);
    // Roots bring it close to one, where atanh((x-1)/(x+1)) is quick.
    let near = &fixed.one / 10u8;
    while (&value - &fixed.one).magnitude() > near.magnitude() {
        value = fixed.root(&value);
        doublings += 1;
    }
    let ratio = (&value - &fixed.one) * &fixed.one / (&value + &fixed.one);
    let sum = fixed.odd_series(&ratio, 1);
    fixed.result(sum << (doublings + 1), scale)
}

pub fn sine(x: &Number, scale: usize) -> Number {
    if x.is_zero() { Number::zero() } else { circular(x, scale, true) }
}

pub fn cosine(x: &Number, scale: usize) -> Number {
    circular(x, scale, false)
}

/// Turns back to the first quarter of a circle, and sums up there.
fn circular(x: &Number, scale: usize, is_sine: bool) -> Number {
    let fixed = Fixed::new(scale.max(x.scale) + 2 * whole_digits(x) + SPARE);
    let quarter = fixed.pi() / 2u8;
    let value = fixed.of(x);
    let negative = value.sign() == Sign::Minus;
    let value = BigInt::from(value.magnitude().clone());
    let turns = &value / &quarter;
    let rest = value - &turns * &quarter;
    let turn = u8::try_from(turns % 4u8).unwrap_or(0) + u8::from(!is_sine);
    let result = match turn % 4 {
        0 => fixed.sine_or_cosine(&rest, true),
        1 => fixed.sine_or_cosine(&rest, false),
        2 => -fixed.sine_or_cosine(&rest, true),
        _ => -fixed.sine_or_cosine(&rest, false),
    };
    fixed.result(if negative && is_sine { -result } else { result }, scale)
}

pub fn arctangent(x: &Number, scale: usize) -> Number {
    if x.is_zero() {
        return Number::zero();
    }
    let fixed = Fixed::new(scale.max(x.scale) + 2 * whole_digits(x) + SPARE);
    let (mut value, mut doublings) = (fixed.of(x), 0u32);
    // Half of the angle, until it is small: tan(a/2) = tan(a) / (1 + sqrt(1 + tan²(a))).
    let small = &fixed.one / 10u8;
    while value.magnitude() > small.magnitude() {
        let square = fixed.times(&value, &value);
        value = &value * &fixed.one / (&fixed.one + fixed.root(&(&fixed.one + square)));
        doublings += 1;
    }
    let sum = fixed.odd_series(&value, -1);
    fixed.result(sum << doublings, scale)
}

/// `j(n,x)`, Bessel's function of a whole order; nothing if the order is too large to count to.
pub fn bessel(order: &Number, x: &Number, scale: usize) -> Option<Number> {
    let order = order.to_i64().filter(|order| order.unsigned_abs() < 1_000_000)?;
    let n = order.unsigned_abs() as u32;
    // The terms grow with x before they shrink.
    let growth = x.to_i64().filter(|x| x.unsigned_abs() < 1_000_000)?.unsigned_abs() as usize;
    let fixed = Fixed::new(scale.max(x.scale) + growth + SPARE + n as usize);
    let half = fixed.of(x) / 2u8;
    let mut term = fixed.one.clone();
    for k in 1..=n {
        term = fixed.times(&term, &half) / k;
    }
    let square = -fixed.times(&half, &half);
    let (mut sum, mut k) = (term.clone(), 1u32);
    while term.sign() != Sign::NoSign {
        term = fixed.times(&term, &square) / k / (k + n);
        sum += &term;
        k += 1;
    }
    let sum = if order < 0 && n % 2 == 1 { -sum } else { sum };
    Some(fixed.result(sum, scale))
}
