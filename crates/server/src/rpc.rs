//! JSON-RPC 2.0: the kinds of lines, and the lines sent in response.

use serde_json::{Map, Value, json};
use wardian::{ArchiveError, Error, StoreError};

/// Not JSON, or too long.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// Not a request, or not allowed now.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
/// A param is missing, has the wrong type, or names something that does not exist.
const INVALID_PARAMS: i64 = -32602;
/// An internal error.
pub(crate) const INTERNAL_ERROR: i64 = -32603;
/// The operation failed.
const REFUSED: i64 = 1;

/// How many values a request may have, names and nested ones included.
const VALUES_MAX: usize = 1 << 18;
/// The longest message of an error: a path is shorter.
const MESSAGE_MAX: usize = 8 << 10;
/// What a value takes in memory, about, beyond its text.
const VALUE_BYTES: usize = 48;
/// The longest id: it is sent with every piece of output.
const ID_MAX: usize = 1 << 10;

/// Why a request failed, as reported to the client.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RpcError {
    pub(crate) code: i64,
    pub(crate) message: String,
    /// The errno's name, if there is one.
    errno: Option<&'static str>,
}

impl RpcError {
    pub(crate) fn new(code: i64, message: impl Into<String>) -> RpcError {
        RpcError { code, message: shortened(message.into()), errno: None }
    }

    pub(crate) fn params(message: impl Into<String>) -> RpcError {
        RpcError::new(INVALID_PARAMS, message)
    }

    pub(crate) fn internal(message: impl Into<String>) -> RpcError {
        RpcError::new(INTERNAL_ERROR, message)
    }

    /// The operation failed; the message starts with the errno's name.
    pub(crate) fn refused(errno: &'static str, message: impl Into<String>) -> RpcError {
        RpcError { code: REFUSED, message: shortened(message.into()), errno: Some(errno) }
    }

    /// Returns the errno's name, if there is one.
    pub(crate) fn errno(&self) -> Option<&'static str> {
        self.errno
    }

    fn object(&self) -> Value {
        let mut object = json!({ "code": self.code, "message": self.message });
        if let Some(errno) = self.errno {
            object["data"] = json!({ "errno": errno });
        }
        object
    }
}

/// Cuts a message that repeats something long.
fn shortened(mut message: String) -> String {
    if message.len() > MESSAGE_MAX {
        message.truncate(message.floor_char_boundary(MESSAGE_MAX));
        message.push_str(" [cut]");
        message.shrink_to_fit();
    }
    message
}

impl From<Error> for RpcError {
    fn from(error: Error) -> RpcError {
        let message = error.to_string();
        match error {
            Error::Refused { errno, .. } => RpcError::refused(errno.name(), message),
            Error::Archive(ArchiveError::TooLarge(_)) => {
                RpcError::refused("ENOSPC", format!("ENOSPC: {message}"))
            }
            Error::Archive(ArchiveError::TooLong(_)) => {
                RpcError::refused("EFBIG", format!("EFBIG: {message}"))
            }
            Error::Archive(ArchiveError::Write(_)) => RpcError::internal(message),
            Error::Store(error) => of_store(&error, &message),
            Error::Archive(_) | Error::Option(_) | Error::Unsupported(_) | Error::Destroyed => {
                RpcError::params(message)
            }
            _ => RpcError::internal(message),
        }
    }
}

/// What the store refused, with the errno that fits.
fn of_store(error: &StoreError, message: &str) -> RpcError {
    let errno = match error {
        StoreError::Missing(_) => "ENOENT",
        StoreError::Exists(_) => "EEXIST",
        StoreError::Busy { .. }
        | StoreError::Lost(_)
        | StoreError::Conflict(_)
        | StoreError::Elsewhere { .. } => "EBUSY",
        StoreError::Behind { .. } => "EAGAIN",
        StoreError::Full => "ENOSPC",
        StoreError::ReadOnly(_) => "EROFS",
        StoreError::Damaged { .. } | StoreError::Malformed(_) | StoreError::Remote { .. } => "EIO",
        StoreError::Name(_) | StoreError::Key(_) | StoreError::Version { .. } => {
            return RpcError::params(message);
        }
        _ => return RpcError::internal(message),
    };
    RpcError::refused(errno, format!("{errno}: {message}"))
}

/// The kinds of lines.
#[derive(Debug, PartialEq)]
pub(crate) enum Message {
    Request(Request),
    /// A response to a call of the server; `Err` has the client's message.
    Answer {
        id: String,
        outcome: Result<Value, String>,
    },
}

/// A request.
#[derive(Debug, PartialEq)]
pub(crate) struct Request {
    /// None for a notification, which gets no response.
    pub(crate) id: Option<Value>,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
}

/// An invalid line, with the id to respond to, if a response is due.
#[derive(Debug, PartialEq)]
pub(crate) struct Misfit {
    pub(crate) id: Option<Value>,
    pub(crate) error: RpcError,
}

/// Parses a line.
pub(crate) fn parse(line: &[u8]) -> Result<Message, Misfit> {
    let misfit =
        |id: Value, code, message: &str| Misfit { id: Some(id), error: RpcError::new(code, message) };
    if line.len() > VALUES_MAX && values(line) > VALUES_MAX {
        let why = format!("Parse error: more than {VALUES_MAX} values");
        return Err(misfit(Value::Null, PARSE_ERROR, &why));
    }
    let value: Value = serde_json::from_slice(line)
        .map_err(|error| misfit(Value::Null, PARSE_ERROR, &format!("Parse error: {error}")))?;
    let mut object = match value {
        Value::Object(object) => object,
        Value::Array(_) => {
            return Err(misfit(
                Value::Null,
                INVALID_REQUEST,
                "batches are not supported: one request a line",
            ));
        }
        _ => return Err(misfit(Value::Null, INVALID_REQUEST, "not a request object")),
    };
    let id = object.remove("id");
    if matches!(id, Some(Value::Bool(_) | Value::Array(_) | Value::Object(_))) {
        return Err(misfit(Value::Null, INVALID_REQUEST, "id must be a string or a number"));
    }
    if matches!(&id, Some(Value::String(id)) if id.len() > ID_MAX) {
        let why = format!("id must have at most {ID_MAX} bytes");
        return Err(misfit(Value::Null, INVALID_REQUEST, &why));
    }
    let shown = id.clone().unwrap_or_default();
    // Clients that leave it out are understood all the same.
    if object.get("jsonrpc").is_some_and(|version| version != "2.0") {
        return Err(misfit(shown, INVALID_REQUEST, "jsonrpc must be \"2.0\""));
    }
    let method = match object.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return Err(misfit(shown, INVALID_REQUEST, "method must be a string")),
        None if object.contains_key("result") || object.contains_key("error") => {
            return Ok(answer(shown, &mut object));
        }
        None => return Err(misfit(shown, INVALID_REQUEST, "method is missing")),
    };
    let params = match object.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Misfit { id, error: RpcError::params("params must be an object") }),
    };
    Ok(Message::Request(Request { id, method, params }))
}

fn answer(id: Value, object: &mut Map<String, Value>) -> Message {
    let outcome = match object.remove("error") {
        None | Some(Value::Null) => Ok(object.remove("result").unwrap_or_default()),
        Some(error) => match error.get("message").and_then(Value::as_str) {
            Some(message) => Err(message.to_owned()),
            None => Err("the client returned an error".to_owned()),
        },
    };
    let id = if let Value::String(id) = id { id } else { id.to_string() };
    Message::Answer { id, outcome }
}

/// Returns the beginning of a response whose result follows.
pub(crate) fn response_head(id: &Value) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":").into_bytes()
}

/// Returns how many bytes of JSON a value has, about.
pub(crate) fn size(value: &Value) -> usize {
    sum(value, &|text| text.len() + escapes(text))
}

/// Does the same as if nothing in it needed an escape. Takes no time for long strings.
pub(crate) fn length(value: &Value) -> usize {
    sum(value, &str::len)
}

fn sum(value: &Value, string: &dyn Fn(&str) -> usize) -> usize {
    const EACH: usize = 8;
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => EACH,
        Value::String(text) => EACH + string(text),
        Value::Array(values) => EACH + values.iter().map(|value| sum(value, string)).sum::<usize>(),
        Value::Object(values) => {
            EACH + values.iter().map(|(name, value)| EACH + name.len() + sum(value, string)).sum::<usize>()
        }
    }
}

/// Returns how many bytes the escapes of a string take at most.
fn escapes(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, 0..=0x1f | b'"' | b'\\')).count() * 5
}

/// Returns how many values a line has, names and nested ones included.
pub(crate) fn values(line: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b':' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns how much memory a line takes once it is parsed, about.
pub(crate) fn weight(line: &[u8]) -> usize {
    line.len() + values(line) * VALUE_BYTES
}

/// Returns the line that responds to a request.
pub(crate) fn response(id: Value, outcome: Result<Value, RpcError>) -> Vec<u8> {
    line(match outcome {
        Ok(result) => [("id", id), ("result", result)].into(),
        Err(error) => [("id", id), ("error", error.object())].into(),
    })
}

/// Returns the line for a notification to the client.
pub(crate) fn notification(method: &str, params: Value) -> Vec<u8> {
    line(vec![("method", method.into()), ("params", params)])
}

/// Returns the line that calls the client.
pub(crate) fn call(id: &str, method: &str, params: Value) -> Vec<u8> {
    line(vec![("id", id.into()), ("method", method.into()), ("params", params)])
}

/// Writes a message. Its values are moved: they can be long.
fn line(members: Vec<(&str, Value)>) -> Vec<u8> {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), "2.0".into());
    message.extend(members.into_iter().map(|(name, value)| (name.to_owned(), value)));
    let mut line = Value::Object(message).to_string().into_bytes();
    line.push(b'\n');
    line
}
