//! What a scalar without quotes means: the core schema of YAML 1.2.

use crate::number;
use crate::value::Value;

/// The value of a plain scalar.
pub fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Value::Number(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Value::Number(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Number(f64::NEG_INFINITY),
        _ => {}
    }
    number_of(text).unwrap_or_else(|| Value::string(text))
}

fn number_of(text: &str) -> Option<Value> {
    let radix =
        |digits: &str, radix: u32| i64::from_str_radix(digits, radix).ok().map(|n| Value::Number(n as f64));
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    number::parse(text.strip_prefix('+').unwrap_or(text).as_bytes())
}

/// The value of a scalar that has a tag.
pub fn tagged(text: &str, tag: &str, plain: bool) -> Value {
    match tag {
        "!!str" | "!" => Value::string(text),
        _ if plain || tag.starts_with("!!") => resolve(text),
        _ => Value::string(text),
    }
}
