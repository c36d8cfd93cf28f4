//! The params of a request, each asked for by name and type.
//!
//! A param that is `null` is not there. One of another type is an error that names it; one nobody asks for is ignored.

use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::{Map, Value};

use crate::rpc::RpcError;

/// Writes `=` at the end, and does not insist on it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Bytes as base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    BASE64.encode(bytes)
}

/// The bytes that base64 stands for, if it does.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// Bytes as text; those that are no UTF-8 become U+FFFD.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Params by name. What is taken is gone.
pub(crate) struct Params {
    values: Map<String, Value>,
    /// What stands before a name in a message: `limits.` within `limits`.
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

    /// What must be there.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, RpcError> {
        value.ok_or_else(|| RpcError::params(format!("Missing required param: {}", self.named(name))))
    }

    /// Whether it was given at all.
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

    /// A whole number from 0; `4.0` is one, too.
    pub(crate) fn number(&mut self, name: &str) -> Result<Option<u64>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            (number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(63)).then_some(number as u64)
        });
        whole.map(Some).ok_or_else(|| self.ill_typed(name, "a whole number, not negative"))
    }

    /// The same where it counts things in memory.
    pub(crate) fn size(&mut self, name: &str) -> Result<Option<usize>, RpcError> {
        Ok(self.number(name)?.map(|number| usize::try_from(number).unwrap_or(usize::MAX)))
    }

    /// A whole number of either sign.
    pub(crate) fn integer(&mut self, name: &str) -> Result<Option<i64>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| self.ill_typed(name, "a whole number"))
    }

    /// Milliseconds; 0 is no limit at all.
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

    /// An object within, whose params are then named `name.…`.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Params>, RpcError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(values)) => {
                Ok(Some(Params { values, prefix: format!("{}.", self.named(name)) }))
            }
            Some(_) => Err(self.ill_typed(name, "an object")),
        }
    }

    /// An array of objects within.
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

    /// All of them, each a string.
    pub(crate) fn all_strings(mut self) -> Result<Vec<(String, String)>, RpcError> {
        let names: Vec<String> = self.values.keys().cloned().collect();
        names.into_iter().map(|name| Ok((name.clone(), self.required_string(&name)?))).collect()
    }

    /// All of them, each bytes.
    pub(crate) fn all_bytes(mut self) -> Result<Vec<(String, Vec<u8>)>, RpcError> {
        let names: Vec<String> = self.values.keys().cloned().collect();
        names.into_iter().map(|name| Ok((name.clone(), self.required_bytes(&name)?))).collect()
    }
}
