//! The params of a request, each read by name and type.
//!
//! A param that is `null` is treated as absent. One of the wrong type is an error that names it, and so is an unknown one:
//! [`Params::done`] refuses what nobody has asked for. Most methods read theirs into a type of the contract, by the same rules:
//! [`Params::read`].

use base64::Engine;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use wardian::did_you_mean;
pub(crate) use wardian_contract::kinds::BASE64;
use wardian_contract::read;

use crate::rpc::RpcError;

/// How much of a name is shown in a message.
const NAME_SHOWN: usize = 100;

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
    /// The names that were asked for.
    asked: Vec<&'static str>,
}

impl Params {
    pub(crate) fn new(values: Map<String, Value>) -> Params {
        Params::within(values, String::new())
    }

    fn within(values: Map<String, Value>, prefix: String) -> Params {
        Params { values, prefix, asked: Vec::new() }
    }

    /// Reads all of them into a type of the contract, which refuses what it does not know.
    pub(crate) fn read<T: DeserializeOwned>(&mut self) -> Result<T, RpcError> {
        let hint: read::Hint = |name, names| did_you_mean(name, names.iter().copied());
        let read = read::read(std::mem::take(&mut self.values), hint);
        read.map_err(|refusal| RpcError::params(refusal.message()))
    }

    /// Takes some params away, to be read for themselves.
    pub(crate) fn apart(&mut self, names: &[&str]) -> Params {
        let taken = names.iter().filter_map(|name| self.values.remove_entry(*name));
        Params::new(taken.collect())
    }

    /// Refuses what is left: nobody knows it. To be called when all params are read, before anything is done.
    pub(crate) fn done(&self) -> Result<(), RpcError> {
        let Some(name) = self.values.keys().next() else { return Ok(()) };
        let hint = did_you_mean(name, self.asked.iter().copied());
        let name: String = self.named(name).chars().take(NAME_SHOWN).collect();
        Err(RpcError::params(format!("Unknown param: {name}{hint}")))
    }

    /// Does the same, and returns what was read.
    pub(crate) fn done_with<T>(self, read: T) -> Result<T, RpcError> {
        self.done().map(|()| read)
    }

    fn named(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn ill_typed(&self, name: &str, wanted: &str) -> RpcError {
        RpcError::params(format!("{} must be {wanted}", self.named(name)))
    }

    fn take(&mut self, name: &'static str) -> Option<Value> {
        self.asked.push(name);
        self.values.remove(name).filter(|value| !value.is_null())
    }

    /// Returns a param that is required.
    pub(crate) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, RpcError> {
        value.ok_or_else(|| RpcError::params(format!("Missing required param: {}", self.named(name))))
    }

    /// Returns a string without reading it.
    pub(crate) fn peek(&self, name: &str) -> Option<&str> {
        self.values.get(name)?.as_str()
    }

    /// Reads a param whose value does not matter.
    pub(crate) fn ignore(&mut self, name: &'static str) {
        self.take(name);
    }

    pub(crate) fn string(&mut self, name: &'static str) -> Result<Option<String>, RpcError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(self.ill_typed(name, "a string")),
        }
    }

    pub(crate) fn required_string(&mut self, name: &'static str) -> Result<String, RpcError> {
        let value = self.string(name)?;
        self.required(name, value)
    }

    /// Returns a whole number from 0; `4.0` is one as well.
    pub(crate) fn number(&mut self, name: &'static str) -> Result<Option<u64>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            (number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(63)).then_some(number as u64)
        });
        whole.map(Some).ok_or_else(|| self.ill_typed(name, "a whole number, not negative"))
    }

    /// Returns a whole number of either sign.
    pub(crate) fn integer(&mut self, name: &'static str) -> Result<Option<i64>, RpcError> {
        let Some(value) = self.take(name) else { return Ok(None) };
        value.as_i64().map(Some).ok_or_else(|| self.ill_typed(name, "a whole number"))
    }

    pub(crate) fn bytes(&mut self, name: &'static str) -> Result<Option<Vec<u8>>, RpcError> {
        let Some(text) = self.string(name)? else { return Ok(None) };
        decode(&text).map(Some).ok_or_else(|| self.ill_typed(name, "base64"))
    }

    /// Returns a nested object, whose params are then named `name.…`.
    pub(crate) fn object(&mut self, name: &'static str) -> Result<Option<Params>, RpcError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Object(values)) => Ok(Some(Params::within(values, format!("{}.", self.named(name))))),
            Some(_) => Err(self.ill_typed(name, "an object")),
        }
    }

    /// Reads a flag of an object that is otherwise read as a whole, by [`Params::described`].
    pub(crate) fn flag_within(&mut self, name: &'static str, flag: &str) -> Result<Option<bool>, RpcError> {
        let object = self.values.get_mut(name).and_then(Value::as_object_mut);
        match object.and_then(|object| object.remove(flag)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Bool(given)) => Ok(Some(given)),
            Some(_) => Err(self.ill_typed(&format!("{name}.{flag}"), "true or false")),
        }
    }

    /// Returns an object as whatever it describes. What is wrong with it is an error that names the param.
    pub(crate) fn described<T>(&mut self, name: &'static str) -> Result<Option<T>, RpcError>
    where
        T: Default + Serialize + DeserializeOwned,
    {
        let given = match self.take(name) {
            None => return Ok(None),
            Some(Value::Object(given)) => given,
            Some(_) => return Err(self.ill_typed(name, "an object")),
        };
        let known = serde_json::to_value(T::default()).unwrap_or_default();
        let known = || known.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        if let Some(unknown) = given.keys().find(|key| !known().any(|known| known == *key)) {
            let hint = did_you_mean(unknown, known());
            let shown: String = self.named(&format!("{name}.{unknown}")).chars().take(NAME_SHOWN).collect();
            return Err(RpcError::params(format!("Unknown param: {shown}{hint}")));
        }
        let read = serde_json::from_value(Value::Object(given));
        read.map(Some).map_err(|error| RpcError::params(format!("{}: {error}", self.named(name))))
    }

    /// Returns all of them as strings.
    pub(crate) fn all_strings(mut self) -> Result<Vec<(String, String)>, RpcError> {
        let values = std::mem::take(&mut self.values);
        let string = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            Value::Null => self.required(&name, None).map(|text| (name, text)),
            _ => Err(self.ill_typed(&name, "a string")),
        };
        values.into_iter().map(string).collect()
    }
}
