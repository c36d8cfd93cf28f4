//! The kinds of values that params have beside JSON's own: each with its rule, its message and its schema.

use std::borrow::Cow;
use std::fmt::{self, Formatter};
use std::time::Duration;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde_json::{Map, Value};

use crate::read::STRING_OR_OBJECT;

/// Writes the `=` padding, but does not require it.
pub static BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Gives a kind its schema, written where it is used.
macro_rules! schema {
    ($kind:ty, $name:expr, $schema:tt) => {
        impl JsonSchema for $kind {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        }
    };
}

/// Bytes, sent as base64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Base64(pub Vec<u8>);

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Base64, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64.decode(text).map(Base64).map_err(|_| D::Error::custom("must be base64"))
    }
}

schema!(Base64, "Base64", { "type": "string", "contentEncoding": "base64" });

/// Milliseconds; none if 0, which means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout(pub Option<Duration>);

impl<'de> Deserialize<'de> for Timeout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Timeout, D::Error> {
        let millis = Value::deserialize(deserializer)?.as_f64().filter(|millis| *millis >= 0.0);
        let duration = millis.and_then(|millis| Duration::try_from_secs_f64(millis / 1000.0).ok());
        let duration = duration.ok_or_else(|| D::Error::custom("must be a number of milliseconds"))?;
        Ok(Timeout((!duration.is_zero()).then_some(duration)))
    }
}

schema!(Timeout, "Timeout", { "type": "number", "minimum": 0 });

/// The id of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestId(pub Value);

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RequestId, D::Error> {
        match Value::deserialize(deserializer)? {
            id @ (Value::String(_) | Value::Number(_)) => Ok(RequestId(id)),
            _ => Err(D::Error::custom("must be the id of a request")),
        }
    }
}

schema!(RequestId, "RequestId", { "type": ["string", "number"] });

/// An object that is read elsewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Object(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(values) => Ok(Object(values)),
            _ => Err(D::Error::custom("must be an object")),
        }
    }
}

schema!(Object, "Object", { "type": "object" });

/// A whole number within bounds; `$wanted` is the message for one that is not.
macro_rules! bounded {
    ($(#[$doc:meta])* $name:ident($number:ty), $bounds:expr, $least:literal, $most:literal, $wanted:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $number);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                let given = u64::deserialize(deserializer)?;
                let fits = <$number>::try_from(given).ok().filter(|number| $bounds.contains(number));
                fits.map($name).ok_or_else(|| D::Error::custom($wanted))
            }
        }

        schema!($name, stringify!($name), { "type": "integer", "minimum": $least, "maximum": $most });
    };
}

bounded!(
    /// Permission bits.
    Mode(u32), (0..=0o7777), 0, 4095, "must be permission bits, at most 4095 (octal 7777)"
);
bounded!(
    /// A TCP port.
    Port(u16), (1..=u16::MAX), 1, 65535, "must be a port, from 1 to 65535"
);
bounded!(
    /// Rows or columns of a terminal.
    Side(u16), (1..=4096), 1, 4096, "must be a number from 1 to 4096"
);
bounded!(
    /// How much less than others a sandbox may run.
    Nice(u8), (0..=19), 0, 19, "must be from 0 to 19"
);
bounded!(
    /// A number of things of which there is at least one.
    Count(u64), (1..=u64::MAX), 1, 18446744073709551615u64, "must be at least 1"
);

/// A file of a mount: its content, or an object that says more.
#[derive(Clone, Debug, PartialEq)]
pub enum MountFile {
    /// A file with the usual permissions.
    Content(Base64),
    /// Anything else.
    Described(MountEntry),
}

/// A file, a directory or a link; one of `data`, `dir` and `link`.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountEntry {
    /// The content of a file.
    pub data: Option<Base64>,
    /// Permission bits of a file (0644) or a directory (0755).
    pub mode: Option<Mode>,
    /// Whether it is a directory.
    pub dir: Option<bool>,
    /// What a symbolic link leads to.
    pub link: Option<String>,
}

impl<'de> Deserialize<'de> for MountFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MountFile, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = MountFile;

            fn expecting(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
                formatter.write_str("base64 or an object")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<MountFile, E> {
                let content = BASE64.decode(text).map_err(|_| E::custom("must be base64"))?;
                Ok(MountFile::Content(Base64(content)))
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(self, object: D) -> Result<MountFile, D::Error> {
                MountEntry::deserialize(object).map(MountFile::Described)
            }
        }

        deserializer.deserialize_newtype_struct(STRING_OR_OBJECT, Either)
    }
}

impl JsonSchema for MountFile {
    fn schema_name() -> Cow<'static, str> {
        "MountFile".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let described = generator.subschema_for::<MountEntry>();
        json_schema!({ "anyOf": [{ "type": "string", "contentEncoding": "base64" }, described] })
    }
}
