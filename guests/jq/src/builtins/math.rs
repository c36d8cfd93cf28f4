//! Numbers.

use crate::run::ops::described;
use crate::run::{Outcome, raise};
use crate::value::Value;

use super::Run;

/// A function of one number.
macro_rules! one {
    ($name:literal, $function:expr) => {
        ($name, 0, |_, input, _| {
            let function: fn(f64) -> f64 = $function;
            Ok(Value::Number(function(number(&input)?)))
        })
    };
}

/// A function of two numbers.
macro_rules! two {
    ($name:literal, $function:expr) => {
        ($name, 2, |_, _, arguments| {
            let function: fn(f64, f64) -> f64 = $function;
            Ok(Value::Number(function(number(&arguments[0])?, number(&arguments[1])?)))
        })
    };
}

/// A question about a number.
macro_rules! asks {
    ($name:literal, $function:expr) => {
        ($name, 0, |_, input, _| {
            let function: fn(f64) -> bool = $function;
            Ok(Value::Bool(function(number(&input)?)))
        })
    };
}

pub const TABLE: &[(&str, usize, Run)] = &[
    one!("floor", f64::floor),
    one!("ceil", f64::ceil),
    one!("round", f64::round),
    one!("trunc", f64::trunc),
    one!("rint", f64::round_ties_even),
    one!("nearbyint", f64::round_ties_even),
    one!("sqrt", f64::sqrt),
    one!("cbrt", libm::cbrt),
    one!("fabs", f64::abs),
    one!("sin", libm::sin),
    one!("cos", libm::cos),
    one!("tan", libm::tan),
    one!("asin", libm::asin),
    one!("acos", libm::acos),
    one!("atan", libm::atan),
    one!("sinh", libm::sinh),
    one!("cosh", libm::cosh),
    one!("tanh", libm::tanh),
    one!("asinh", libm::asinh),
    one!("acosh", libm::acosh),
    one!("atanh", libm::atanh),
    one!("exp", libm::exp),
    one!("exp2", libm::exp2),
    one!("exp10", power_of_ten),
    one!("pow10", power_of_ten),
    one!("expm1", libm::expm1),
    one!("log", libm::log),
    one!("log2", libm::log2),
    one!("log10", libm::log10),
    one!("log1p", libm::log1p),
    one!("logb", |x| {
        if x == 0.0 {
            f64::NEG_INFINITY
        } else if x.is_finite() {
            f64::from(libm::ilogb(x))
        } else {
            x * x
        }
    }),
    one!("significand", significand),
    one!("gamma", libm::lgamma),
    one!("lgamma", libm::lgamma),
    one!("tgamma", libm::tgamma),
    one!("erf", libm::erf),
    one!("erfc", libm::erfc),
    one!("j0", libm::j0),
    one!("j1", libm::j1),
    one!("y0", libm::y0),
    one!("y1", libm::y1),
    two!("pow", libm::pow),
    two!("atan2", libm::atan2),
    two!("fmod", libm::fmod),
    two!("fmin", f64::min),
    two!("fmax", f64::max),
    two!("fdim", libm::fdim),
    two!("hypot", libm::hypot),
    two!("copysign", f64::copysign),
    two!("drem", libm::remainder),
    two!("remainder", libm::remainder),
    two!("nextafter", libm::nextafter),
    two!("nexttoward", libm::nextafter),
    two!("ldexp", |x, by| libm::ldexp(x, whole(by))),
    two!("scalb", |x, by| libm::scalbn(x, whole(by))),
    two!("scalbln", |x, by| libm::scalbn(x, whole(by))),
    two!("jn", |n, x| libm::jn(whole(n), x)),
    two!("yn", |n, x| libm::yn(whole(n), x)),
    ("fma", 3, |_, _, arguments| {
        let [x, y, z] = [number(&arguments[0])?, number(&arguments[1])?, number(&arguments[2])?];
        Ok(Value::Number(libm::fma(x, y, z)))
    }),
    ("frexp", 0, |_, input, _| {
        let number = number(&input)?;
        let (part, exponent) = if number.is_finite() { libm::frexp(number) } else { (number, 0) };
        Ok(Value::array(vec![part.into(), Value::Number(f64::from(exponent))]))
    }),
    ("modf", 0, |_, input, _| {
        let number = number(&input)?;
        let part = if number.is_infinite() { 0.0 } else { number.fract() };
        Ok(Value::array(vec![part.copysign(number).into(), number.trunc().into()]))
    }),
    ("lgamma_r", 0, |_, input, _| {
        let (value, sign) = libm::lgamma_r(number(&input)?);
        Ok(Value::array(vec![value.into(), Value::Number(f64::from(sign))]))
    }),
    ("abs", 0, |_, input, _| match &input {
        Value::Number(number) if *number < 0.0 => Ok(Value::Number(-number)),
        Value::Literal(literal) if literal.double < 0.0 => Ok(Value::Number(-literal.double)),
        _ => Ok(input),
    }),
    ("infinite", 0, |_, _, _| Ok(Value::Number(f64::INFINITY))),
    ("nan", 0, |_, _, _| Ok(Value::Number(f64::NAN))),
    asks!("isinfinite", f64::is_infinite),
    asks!("isnan", f64::is_nan),
    asks!("isnormal", f64::is_normal),
    ("have_literal_numbers", 0, |_, _, _| Ok(Value::Bool(true))),
    ("have_decnum", 0, |_, _, _| Ok(Value::Bool(true))),
];

fn number(value: &Value) -> Outcome<f64> {
    match value.as_number() {
        Some(number) => Ok(number),
        None => raise(format!("{} number required", described(value))),
    }
}

/// A number where C takes an integer.
fn whole(number: f64) -> i32 {
    number as i32
}

/// Exact where the power is.
fn power_of_ten(exponent: f64) -> f64 {
    if exponent.fract() == 0.0 && exponent.abs() <= 308.0 {
        return format!("1e{exponent}").parse().unwrap_or(f64::NAN);
    }
    libm::exp10(exponent)
}

fn significand(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return number;
    }
    libm::scalbn(number, -libm::ilogb(number))
}
