//! The params of a request, each read by name and type.
//!
//! A param that is `null` is treated as absent. One of the wrong type is an error that names it; unknown ones are
//! ignored.

use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use crate::rpc::RpcError;

/// Writes the `=` padding, but does not require it.
pub(crate) static BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes as base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// Decodes base64, if it is valid.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Returns bytes as text; those that are not UTF-8 become U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Params by name. Reading a param removes it.
pub(crate) struct Params {
    values: Map<String, Value>,
    /// The prefix of a name in messages: `limits.` within `limits`.
    prefix: String,
}

impl Params {
    pub(crate) fn new(values: Map<String, Value>) -> Params {
        Params { values, prefix: String::new() }
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn ill_typed(&self, name: &str, wanted: &str) -> RpcError {
        RpcError::params(format!("{} must be {wanted}", self.named(name)))
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name).filter(|value| !value.is_null())
    }

    /// Returns a param that is required.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, RpcError> {
        value.ok_or_else(|| RpcError::params(format!("Missing required param: {}", self.named(name))))
    }

    /// Returns whether it was given at all.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.get(name).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn string(&mut self, name: &str) -> Result<Option<String>, RpcError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.ill_typed(name, "a string")),
        }
    }

    pub(crate) fn required_string(&mut self, name: &str) -> Result<String, RpcError> {
        let value = self.string(name)?;
        self.required(name, value)
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, RpcError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.ill_typed(name, "true or false")),
        }
    }

    /// Returns a whole number from 0; `4.0` is one as well.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            (number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(63)).then_some(number as u64)
        });
        whole.map(Some).ok_or_else(|| self.ill_typed(name, "a whole number, not negative"))
    }

    /// Returns the same as a size in memory.
    pub(crate) fn size(&mut self, name: &str) -> Result<Option<usize>, RpcError> {
        Ok(self.number(name)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    /// Returns a whole number of either sign.
    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<i64>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| self.ill_typed(name, "a whole number"))
    }

    /// Returns milliseconds; 0 means no limit.
    pub(crate) fn timeout(&mut self, name: &str) -> Result<Option<Option<Duration>>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let millis = value.as_f64().filter(|millis| *millis >= 0.0);
        let duration = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
        match duration {
            Some(duration) => Ok(Some((!duration.is_zero()).then_some(duration))),
            None => Err(self.ill_typed(name, "a number of milliseconds")),
        }
    }

    pub(crate) fn bytes(&mut self, name: &str) -> Result<Option<Vec<u8>>, RpcError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        decode(&text).map(Some).ok_or_else(|| self.ill_typed(name, "base64"))
    }

    pub(crate) fn required_bytes(&mut self, name: &str) -> Result<Vec<u8>, RpcError> {
        let value = self.bytes(name)?;
        self.required(name, value)
    }

    /// Returns a nested object, whose params are then named `name.…`.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Params>, RpcError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(values)) => {
                Ok(Some(Params { values, prefix: format!("{}.", self.named(name)) }))
            }
            Some(_) => Err(self.ill_typed(name, "an object")),
        }
    }

    /// Returns an array of nested objects.
    pub(crate) fn objects(&mut self, name: &str) -> Result<Vec<Params>, RpcError> {
        let wanted = "an array of objects";
        match self.take(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) => {
                let object = |(number, value)| match value {
                    Value::Object(values) => {
                        Ok(Params { values, prefix: format!("{}[{number}].", self.named(name)) })
                    }
                    _ => Err(self.ill_typed(name, wanted)),
                };
                values.into_iter().enumerate().map(object).collect()
            }
            Some(_) => Err(self.ill_typed(name, wanted)),
        }
    }

    pub(crate) fn strings(&mut self, name: &str) -> Result<Option<Vec<String>>, RpcError> {
        let wanted = "an array of strings";
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(values)) => {
                let string = |value| match value {
                    Value::String(text) => Ok(text),
                    _ => Err(self.ill_typed(name, wanted)),
                };
                values.into_iter().map(string).collect::<Result<_, _>>().map(Some)
            }
            Some(_) => Err(self.ill_typed(name, wanted)),
        }
    }

    /// Returns all of them as strings.
    pub(crate) fn all_strings(mut self) -> Result<Vec<(String, String)>, RpcError> {
        let names: Vec<String> = self.values.keys().cloned().collect();
        names.into_iter().map(|name| Ok((name.clone(), self.required_string(&name)?))).collect()
    }

    /// Returns all of them as bytes.
    pub(crate) fn all_bytes(mut self) -> Result<Vec<(String, Vec<u8>)>, RpcError> {
        let names: Vec<String> = self.values.keys().cloned().collect();
        names.into_iter().map(|name| Ok((name.clone(), self.required_bytes(&name)?))).collect()
    }
}
