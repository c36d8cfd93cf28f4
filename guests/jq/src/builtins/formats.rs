//! `@csv`, `@sh` and the other ways to write a value into a text.

use crate::json;
use crate::run::ops::described;
use crate::run::{Outcome, raise};
use crate::value::{Str, Value};
use crate::yaml;
use toolkit::digits;

use super::Run;
use super::objects::text_of;

pub const TABLE: &[(&str, usize, Run)] = &[("format", 1, |_, input, arguments| match &arguments[0] {
    Value::String(name) => Ok(Value::String(format(name, &input)?)),
    other => raise(format!("{} is not a valid format", described(other))),
})];

/// A value in a format.
pub fn format(name: &str, value: &Value) -> Outcome<Str> {
    let text = match name {
        "text" => return Ok(text_of(value)),
        "json" => json::to_text(value),
        "csv" => row(value, "csv", ",", |text| format!("\"{}\"", text.replace('"', "\"\"")))?,
        "tsv" => row(value, "tsv", "\t", |text| {
            let text = text.replace('\\', "\\\\").replace('\t', "\\t");
            text.replace('\n', "\\n").replace('\r', "\\r")
        })?,
        "html" => escaped(&text_of(value), |letter| match letter {
            '<' => Some("&lt;"),
            '>' => Some("&gt;"),
            '&' => Some("&amp;"),
            '\'' => Some("&apos;"),
            '"' => Some("&quot;"),
            _ => None,
        }),
        "uri" => percent(&text_of(value)),
        "sh" => shell(value)?,
        "base64" => digits::encode(text_of(value).as_bytes(), digits::BASE64),
        "base64d" => from_base64(value)?,
        "yaml" => yaml(value).trim_end_matches('\n').to_owned(),
        "base32" => digits::encode(text_of(value).as_bytes(), digits::BASE32),
        "base32d" => from_base32(value)?,
        _ => return raise(format!("{name} is not a valid format")),
    };
    Ok(text.into())
}

fn row(value: &Value, name: &str, between: &str, quote: fn(&str) -> String) -> Outcome<String> {
    let Value::Array(cells) = value else {
        return raise(format!("{} cannot be {name}-formatted, only array", described(value)));
    };
    let mut texts = Vec::with_capacity(cells.len());
    for cell in cells.iter() {
        texts.push(match cell {
            Value::Null => String::new(),
            Value::Bool(truth) => truth.to_string(),
            Value::Number(number) if number.is_nan() => String::new(),
            Value::Number(_) | Value::Literal(_) => json::to_text(cell),
            Value::String(text) => quote(text),
            // The same words for both formats.
            other => return raise(format!("{} is not valid in a csv row", described(other))),
        });
    }
    Ok(texts.join(between))
}

fn escaped(text: &str, escape: fn(char) -> Option<&'static str>) -> String {
    let mut result = String::with_capacity(text.len());
    for letter in text.chars() {
        match escape(letter) {
            Some(escape) => result.push_str(escape),
            None => result.push(letter),
        }
    }
    result
}

fn percent(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            result.push(char::from(byte));
        } else {
            result += &format!("%{byte:02X}");
        }
    }
    result
}

fn shell(value: &Value) -> Outcome<String> {
    let words = match value {
        Value::Array(items) => items.to_vec(),
        other => vec![other.clone()],
    };
    let mut texts = Vec::with_capacity(words.len());
    for word in &words {
        texts.push(match word {
            Value::String(text) => format!("'{}'", text.replace('\'', "'\\''")),
            Value::Array(_) | Value::Object(_) => {
                return raise(format!("{} can not be escaped for shell", described(word)));
            }
            other => json::to_text(other),
        });
    }
    Ok(texts.join(" "))
}

fn from_base64(value: &Value) -> Outcome<String> {
    let text = text_of(value);
    match digits::decode(&text, digits::BASE64) {
        None => raise(format!("{} is not valid base64 data", described(value))),
        // One digit alone says nothing.
        Some(_) if text.trim_end_matches('=').len() % 4 == 1 => {
            raise(format!("{} trailing base64 byte found", described(value)))
        }
        Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

fn from_base32(value: &Value) -> Outcome<String> {
    match digits::decode(&text_of(value), digits::BASE32) {
        Some(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        None => raise(format!("{} is not valid base32 data", described(value))),
    }
}

/// A value as YAML.
pub fn yaml(value: &Value) -> String {
    let options = yaml::Options { indent: 2, pretty: true, unwrap: false, explode: true };
    yaml::write(value, None, &options)
}
