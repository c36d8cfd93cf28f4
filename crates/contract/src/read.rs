//! Params, read into types.
//!
//! A deserializer with the protocol's own rules: `null` is absent, an unknown name is refused at every level, and whatever is
//! wrong is said with the full name of the param that it is about. Fields are read in the order of their declaration, so of
//! several mistakes always the same one is told.

use std::fmt::{self, Display, Formatter};

use serde::de::value::StringDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// How much of a name is shown in a message.
const NAME_SHOWN: usize = 100;
/// What a type asks for that is a string or an object: see [`crate::kinds::MountFile`].
pub(crate) const STRING_OR_OBJECT: &str = "$string-or-object";

/// Returns ` (did you mean …?)`, or nothing, for a name that is not among the others.
pub type Hint = fn(&str, &[&'static str]) -> String;

/// Why params could not be read.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// What a value must be, before its name is known.
    Wanted(String),
    /// A whole sentence.
    Said(String),
}

impl Refusal {
    fn named(self, name: &str) -> Refusal {
        match self {
            Refusal::Wanted(what) => Refusal::Said(format!("{name} {what}")),
            said => said,
        }
    }

    /// Returns the message.
    pub fn message(self) -> String {
        let (Refusal::Wanted(message) | Refusal::Said(message)) = self;
        message
    }
}

impl Display for Refusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let (Refusal::Wanted(message) | Refusal::Said(message)) = self;
        formatter.write_str(message)
    }
}

impl std::error::Error for Refusal {}

impl de::Error for Refusal {
    fn custom<T: Display>(message: T) -> Refusal {
        Refusal::Wanted(message.to_string())
    }

    fn unknown_variant(_: &str, expected: &'static [&'static str]) -> Refusal {
        let quoted: Vec<String> = expected.iter().map(|name| format!("\"{name}\"")).collect();
        let list = match quoted.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            _ => quoted.concat(),
        };
        Refusal::Wanted(format!("must be {list}"))
    }
}

fn wanted(what: &str) -> Refusal {
    Refusal::Wanted(format!("must be {what}"))
}

/// Reads params, all of them.
pub fn read<T: DeserializeOwned>(values: Map<String, Value>, hint: Hint) -> Result<T, Refusal> {
    T::deserialize(Reader { value: Some(Value::Object(values)), path: String::new(), hint })
}

/// One value, or the place of one that is absent.
struct Reader {
    value: Option<Value>,
    /// Its full name.
    path: String,
    hint: Hint,
}

impl Reader {
    /// Returns the value, which has to be there.
    fn take(&mut self) -> Result<Value, Refusal> {
        let missing = || Refusal::Said(format!("Missing required param: {}", self.path));
        self.value.take().ok_or_else(missing)
    }

    fn within(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    fn object(&mut self) -> Result<Map<String, Value>, Refusal> {
        match self.take()? {
            Value::Object(values) => Ok(values),
            _ => Err(wanted("an object")),
        }
    }
}

impl<'de> de::Deserializer<'de> for Reader {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refusal> {
        self.take()?.deserialize_any(visitor).map_err(de::Error::custom)
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refusal> {
        match self.take()? {
            Value::Bool(flag) => visitor.visit_bool(flag),
            _ => Err(wanted("true or false")),
        }
    }

    /// A whole number from 0; `4.0` is one as well.
    fn deserialize_u64<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refusal> {
        let value = self.take()?;
        let whole = value.as_u64().or_else(|| {
            let number = value.as_f64()?;
            (number >= 0.0 && number.fract() == 0.0 && number < 2f64.powi(63)).then_some(number as u64)
        });
        visitor.visit_u64(whole.ok_or_else(|| wanted("a whole number, not negative"))?)
    }

    fn deserialize_string<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refusal> {
        match self.take()? {
            Value::String(text) => visitor.visit_string(text),
            _ => Err(wanted("a string")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value {
            None | Some(Value::Null) => visitor.visit_none(),
            Some(_) => visitor.visit_some(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        match self.take()? {
            Value::String(text) => {
                let variant: StringDeserializer<Refusal> = text.into_deserializer();
                visitor.visit_enum(variant)
            }
            _ => Err(wanted("a string")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        let values = self.object()?;
        visitor.visit_map(Fields { reader: self, fields, next: 0, values })
    }

    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refusal> {
        let values = self.object()?.into_iter();
        visitor.visit_map(Entries { reader: self, values, value: None })
    }

    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Refusal> {
        let (values, is_array) = match self.take()? {
            Value::Array(values) => (values, true),
            // Its first element says what the others would have to be.
            _ => (vec![Value::Bool(false)], false),
        };
        let items = Items { reader: &self, values: values.into_iter(), next: 0, is_array };
        visitor.visit_seq(items)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refusal> {
        if name != STRING_OR_OBJECT {
            return visitor.visit_newtype_struct(self);
        }
        match self.take()? {
            Value::String(text) => visitor.visit_string(text),
            Value::Object(values) => {
                self.value = Some(Value::Object(values));
                visitor.visit_newtype_struct(self)
            }
            _ => Err(wanted("a string")),
        }
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct identifier
        ignored_any
    }
}

/// The fields of a struct, each of them, present or not; then what is left is refused.
struct Fields {
    reader: Reader,
    fields: &'static [&'static str],
    next: usize,
    values: Map<String, Value>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        if let Some(name) = self.fields.get(self.next) {
            return seed.deserialize((*name).into_deserializer()).map(Some);
        }
        let Some(name) = self.values.keys().next() else { return Ok(None) };
        let hint = (self.reader.hint)(name, self.fields);
        let name: String = self.reader.within(name).chars().take(NAME_SHOWN).collect();
        Err(Refusal::Said(format!("Unknown param: {name}{hint}")))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        let name = self.fields[self.next];
        self.next += 1;
        let value = self.values.remove(name).filter(|value| !value.is_null());
        let path = self.reader.within(name);
        let field = Reader { value, path: path.clone(), hint: self.reader.hint };
        seed.deserialize(field).map_err(|refusal| refusal.named(&path))
    }
}

/// The entries of an object whose names are the client's.
struct Entries {
    reader: Reader,
    values: serde_json::map::IntoIter,
    value: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Entries {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        let Some((name, value)) = self.values.next() else { return Ok(None) };
        self.value = Some((self.reader.within(&name), value));
        seed.deserialize(name.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        let (path, value) = self.value.take().unwrap_or_default();
        let value = Some(value).filter(|value| !value.is_null());
        let entry = Reader { value, path: path.clone(), hint: self.reader.hint };
        seed.deserialize(entry).map_err(|refusal| refusal.named(&path))
    }
}

/// The elements of an array. One of the wrong type is said of the array.
struct Items<'r> {
    reader: &'r Reader,
    values: std::vec::IntoIter<Value>,
    next: usize,
    is_array: bool,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Refusal;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refusal> {
        let Some(value) = self.values.next() else { return Ok(None) };
        let path = format!("{}[{}]", self.reader.path, self.next);
        self.next += 1;
        let element = Reader { value: Some(value), path, hint: self.reader.hint };
        match seed.deserialize(element) {
            Ok(_) if !self.is_array => Err(wanted("an array")),
            Err(Refusal::Wanted(what)) => {
                let what = what.strip_prefix("must be ").unwrap_or(&what);
                let what = what.strip_prefix("a ").or_else(|| what.strip_prefix("an ")).unwrap_or(what);
                Err(wanted(&format!("an array of {what}s")))
            }
            other => other.map(Some),
        }
    }
}
