//! Numbers with all their digits, as SQLite 3.40 writes them where a number must read back as the same one.
//!
//! It takes the digits from an 80-bit floating number, as an x86 processor has them, and so shows the 64 bits of that
//! number's rounding, not of the decimal. A dump is the same to the byte only with the same arithmetic.

/// A number that is not negative: `mantissa * 2^exponent`, where the mantissa's top bit is set unless it is zero.
#[derive(Clone, Copy)]
struct Extended {
    mantissa: u64,
    exponent: i32,
}

/// How many digits are shown: `%!.20g`.
const PRECISION: i32 = 20;

/// The digits of a number, such that they read back as the same.
pub fn all_digits(number: f64) -> String {
    if number == 0.0 {
        return "0.0".into();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    if number.is_infinite() {
        return format!("{sign}Inf");
    }
    let (digits, exponent) = Extended::from(number.abs()).digits();
    format!("{sign}{}", arranged(&digits, exponent))
}

/// Puts a point, and where it is far away an exponent, to digits of which the first stands for `10^exponent`.
fn arranged(digits: &str, exponent: i32) -> String {
    let significant = digits.trim_end_matches('0');
    if !(-4..PRECISION).contains(&exponent) {
        let (first, rest) = significant.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{first}.{rest}e{sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("0.{}{significant}", "0".repeat((-exponent - 1) as usize));
    }
    let (whole, fraction) = digits.split_at((exponent + 1) as usize);
    let fraction = fraction.trim_end_matches('0');
    format!("{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

impl From<f64> for Extended {
    fn from(number: f64) -> Extended {
        let bits = number.to_bits();
        let (exponent, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
        if exponent == 0 {
            return Extended::normal(u128::from(fraction), -1074, false);
        }
        Extended::normal(u128::from(fraction | 1 << 52), exponent - 1075, false)
    }
}

impl Extended {
    /// Rounds to 64 bits, to even where it is in the middle; `more` says that the number is a little greater.
    fn normal(mantissa: u128, exponent: i32, more: bool) -> Extended {
        let excess = 64 - mantissa.leading_zeros() as i32;
        if mantissa == 0 {
            return Extended { mantissa: 0, exponent: 0 };
        }
        if excess <= 0 {
            return Extended { mantissa: (mantissa << -excess) as u64, exponent: exponent + excess };
        }
        let (kept, lost) = ((mantissa >> excess) as u64, mantissa & ((1 << excess) - 1));
        let half = 1u128 << (excess - 1);
        let up = lost > half || lost == half && (more || kept & 1 == 1);
        match kept.checked_add(u64::from(up)) {
            Some(mantissa) => Extended { mantissa, exponent: exponent + excess },
            None => Extended { mantissa: 1 << 63, exponent: exponent + excess + 1 },
        }
    }

    fn times(self, other: Extended) -> Extended {
        let product = u128::from(self.mantissa) * u128::from(other.mantissa);
        Extended::normal(product, self.exponent + other.exponent, false)
    }

    fn over(self, other: Extended) -> Extended {
        let (dividend, divisor) = (u128::from(self.mantissa) << 64, u128::from(other.mantissa));
        let (quotient, rest) = (dividend / divisor, dividend % divisor);
        // Two more bits, since the quotient may have no more than the 64 that are kept.
        let fine = (quotient << 2) | ((rest << 2) / divisor);
        let more = (rest << 2) % divisor != 0;
        Extended::normal(fine, self.exponent - other.exponent - 66, more)
    }

    fn is_below(self, other: Extended) -> bool {
        (self.exponent, self.mantissa) < (other.exponent, other.mantissa)
    }

    /// The digits, and the power of ten that the first of them stands for.
    fn digits(self) -> (String, i32) {
        let (mut value, mut exponent) = (self, 0);
        let mut scale = Extended::from(1.0);
        for (power, step) in [(1e100, 100), (1e10, 10), (10.0, 1)] {
            let power = Extended::from(power);
            while !value.is_below(power.times(scale)) && exponent <= 350 {
                scale = scale.times(power);
                exponent += step;
            }
        }
        value = value.over(scale);
        for (power, least, step) in [(1e8, 1e-8, 8), (10.0, 1.0, 1)] {
            while value.is_below(Extended::from(least)) {
                value = value.times(Extended::from(power));
                exponent -= step;
            }
        }
        let digits = (0..PRECISION).map(|_| value.take_digit()).collect();
        (digits, exponent)
    }

    /// Takes the digit before the point away, and makes the one after it the next.
    fn take_digit(&mut self) -> char {
        let shift = -self.exponent;
        let whole = if (0..64).contains(&shift) { self.mantissa >> shift } else { 0 };
        if whole > 0 {
            let rest = self.mantissa - (whole << shift);
            *self = Extended::normal(u128::from(rest), self.exponent, false);
        }
        if self.mantissa != 0 {
            *self = self.times(Extended::from(10.0));
        }
        // What rounding carried to ten shows as nine and a half of one.
        char::from(b'0' + whole.min(9) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::all_digits;

    /// Each as sqlite3 3.40 on x86-64 has it in `.mode quote`.
    #[test]
    fn numbers_have_the_digits_of_the_processor() {
        for (number, digits) in [
            (0.1, "0.10000000000000000555"),
            (1.1, "1.1000000000000000888"),
            (2.15, "2.1499999999999999111"),
            (1e100, "1.0e+100"),
            (1.5e-10, "1.49999999999999999e-10"),
            (123456.789, "123456.7890000000043"),
            (2.5, "2.5"),
            (1e17, "100000000000000000.0"),
            (9.2e18, "9199999999999999999.8"),
            (1e19, "10000000000000000000.0"),
            (-0.0, "0.0"),
            (0.3, "0.29999999999999998889"),
            (1.0 / 3.0, "0.33333333333333331482"),
            (-100.7, "-100.70000000000000284"),
            (5e-324, "4.9406564584124654428e-324"),
            (f64::MAX, "1.7976931348623156223e+308"),
            (f64::MIN_POSITIVE, "2.2250738585072013834e-308"),
            (1e23, "9.9999999999999991612e+22"),
            (1e-5, "1.0000000000000000817e-05"),
            (0.0001, "0.00010000000000000000479"),
            (99999999999999990000.0, "99999999999999983615.0"),
            (f64::INFINITY, "Inf"),
        ] {
            assert_eq!(all_digits(number), digits);
        }
    }
}
