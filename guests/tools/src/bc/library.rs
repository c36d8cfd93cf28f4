//! The functions of `-l`: exponential, logarithm, sine, cosine, arctangent and Bessel's.
//!
//! All but sine and cosine are worked out with more digits than are wanted, as whole numbers in units of
//! `10^-precision`, and cut off.

use super::number::{Impossible, Number, power_of_ten};
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

/// `s(x)`, in bc's own arithmetic: of an angle of many turns GNU's knows no more than that of pi/4 it takes away, and so
/// do we.
pub fn sine(x: &Number, scale: usize) -> Result<Number, Impossible> {
    let quarter = arctangent(&Number::from(1), scale * 11 / 10 + 2);
    let angle = if x.is_negative() { x.negated() } else { x.clone() };
    let halves = angle.over(&quarter, 0)?.plus(&Number::from(2)).over(&Number::from(4), 0)?;
    let mut rest = angle.minus(&halves.times(&Number::from(4), 0).times(&quarter, 0));
    if !halves.modulo(&Number::from(2), 0)?.is_zero() {
        rest = rest.negated();
    }
    let working = scale + 2;
    let square = rest.times(&rest, working).negated();
    let (mut sum, mut term, mut n) = (rest.clone(), rest, 3);
    loop {
        term = term.times(&square.over(&Number::from(n * (n - 1)), working)?, working);
        if term.is_zero() {
            break;
        }
        sum = sum.plus(&term);
        n += 2;
    }
    let sum = if x.is_negative() { sum.negated() } else { sum };
    sum.over(&Number::from(1), scale)
}

/// `c(x)`, a sine a quarter of a turn ahead.
pub fn cosine(x: &Number, scale: usize) -> Result<Number, Impossible> {
    let working = scale * 12 / 10;
    let quarter = arctangent(&Number::from(1), working).times(&Number::from(2), working);
    sine(&x.plus(&quarter), working)?.over(&Number::from(1), scale)
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
