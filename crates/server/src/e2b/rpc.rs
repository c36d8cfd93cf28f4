//! The Connect protocol with JSON: unary calls are plain JSON, streams are frames of a flag byte, four bytes of length and JSON.

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::ops::Deref;
use std::time::Duration;
use wardian::{Errno, Error};

use super::allowance::Allowance;
use super::answer::json_page;
use super::arriving::{Arriving, Unread};
use super::stream::Pieces;
use crate::budget::Room;

/// The longest message of a unary call, and the longest frame.
const MESSAGE: usize = 4 << 20;
/// The flag of the last frame.
const END: u8 = 2;
/// The bytes before a frame's message.
const HEAD: usize = 5;
/// How long a client may ask a stream to last.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// An error of a call.
#[derive(Debug)]
pub(super) struct RpcFailure {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl RpcFailure {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> RpcFailure {
        RpcFailure { code, message: message.into() }
    }

    pub(super) fn argument(message: impl Into<String>) -> RpcFailure {
        RpcFailure::new("invalid_argument", message)
    }

    /// There is no room for what the call would keep.
    pub(super) fn no_room() -> RpcFailure {
        RpcFailure::new("resource_exhausted", "too many requests are waiting")
    }

    pub(super) fn missing(message: impl Into<String>) -> RpcFailure {
        RpcFailure::new("not_found", message)
    }

    fn status(&self) -> StatusCode {
        match self.code {
            "invalid_argument" | "failed_precondition" | "out_of_range" => StatusCode::BAD_REQUEST,
            "unauthenticated" => StatusCode::UNAUTHORIZED,
            "permission_denied" => StatusCode::FORBIDDEN,
            "not_found" => StatusCode::NOT_FOUND,
            "already_exists" => StatusCode::CONFLICT,
            "resource_exhausted" => StatusCode::TOO_MANY_REQUESTS,
            "unimplemented" => StatusCode::NOT_IMPLEMENTED,
            "unavailable" => StatusCode::SERVICE_UNAVAILABLE,
            "deadline_exceeded" => StatusCode::GATEWAY_TIMEOUT,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn object(&self) -> Value {
        json!({ "code": self.code, "message": self.message })
    }
}

impl From<Error> for RpcFailure {
    fn from(error: Error) -> RpcFailure {
        let code = match error.errno() {
            Some(Errno::ENOENT | Errno::ESRCH) => "not_found",
            Some(Errno::EACCES | Errno::EPERM | Errno::EROFS) => "permission_denied",
            Some(Errno::EEXIST) => "already_exists",
            Some(Errno::EAGAIN | Errno::ENOMEM | Errno::ENOSPC | Errno::EDQUOT | Errno::EFBIG) => {
                "resource_exhausted"
            }
            Some(_) => "invalid_argument",
            None if matches!(error, Error::Destroyed) => "unavailable",
            None if matches!(error, Error::Option(_) | Error::Unsupported(_)) => "invalid_argument",
            None => "internal",
        };
        let message = match error {
            Error::Destroyed => "The sandbox was not found".to_owned(),
            error => error.to_string(),
        };
        RpcFailure { code, message }
    }
}

impl IntoResponse for RpcFailure {
    fn into_response(self) -> Response {
        json_page(self.status(), &self.object())
    }
}

/// Answers a unary call.
pub(super) fn unary(outcome: Result<Value, RpcFailure>) -> Response {
    match outcome {
        Ok(value) => json_page(StatusCode::OK, &value),
        Err(failure) => failure.into_response(),
    }
}

/// Answers a stream with what a task will put into it.
pub(super) fn stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "application/connect+json")], body).into_response()
}

/// Answers a stream that fails before it begins.
pub(super) fn failed_stream(failure: &RpcFailure) -> Response {
    stream(Body::from(last_frame(Some(failure))))
}

fn frame(flags: u8, value: &Value) -> Bytes {
    let json = value.to_string();
    let mut frame = Vec::with_capacity(json.len() + 5);
    frame.push(flags);
    // Pieces of output are far shorter than four gigabytes.
    frame.extend_from_slice(&u32::try_from(json.len()).unwrap_or(u32::MAX).to_be_bytes());
    frame.extend_from_slice(json.as_bytes());
    frame.into()
}

fn last_frame(failure: Option<&RpcFailure>) -> Bytes {
    frame(END, &failure.map_or_else(|| json!({}), |failure| json!({ "error": failure.object() })))
}

/// Sends a message; `false` if the client is gone.
pub(super) async fn send(pieces: &Pieces, value: &Value) -> bool {
    pieces.send(frame(0, value)).await.is_ok()
}

/// Sends the end.
pub(super) async fn finish(pieces: &Pieces, failure: Option<&RpcFailure>) {
    let _ = pieces.send(last_frame(failure)).await;
}

/// A message, and the room it takes.
pub(super) struct Message {
    fields: Map<String, Value>,
    _rooms: Vec<Room>,
}

impl Deref for Message {
    type Target = Map<String, Value>;

    fn deref(&self) -> &Map<String, Value> {
        &self.fields
    }
}

/// Reads the message of a unary call.
pub(super) async fn message(allowance: &Allowance, body: Body) -> Result<Message, RpcFailure> {
    let mut arriving = allowance.arriving(body);
    let bytes = arriving.whole(MESSAGE).await?;
    let fields = fields(allowance.parse(bytes).await?)?;
    Ok(Message { fields, _rooms: arriving.into_rooms() })
}

/// Reads the only message of a call that is answered by a stream.
pub(super) async fn first_frame(allowance: &Allowance, body: Body) -> Result<Message, RpcFailure> {
    let mut arriving = allowance.arriving(body);
    let missing = || RpcFailure::argument("the request has no message");
    let fields = next_frame(allowance, &mut arriving).await?.ok_or_else(missing)?;
    Ok(Message { fields, _rooms: arriving.into_rooms() })
}

/// Reads the next message of a client's stream; nothing at its end. Its room stays taken until the one after it is read.
pub(super) async fn next_frame(
    allowance: &Allowance,
    arriving: &mut Arriving,
) -> Result<Option<Map<String, Value>>, RpcFailure> {
    loop {
        // A piece may have thousands of them.
        tokio::task::coop::consume_budget().await;
        match whole_frame(arriving.bytes())? {
            Some((flags, length)) => {
                let bytes = arriving.bytes()[HEAD..HEAD + length].to_vec();
                arriving.consume(HEAD + length);
                if flags & END == 0 {
                    return Ok(Some(fields(allowance.parse(bytes).await?)?));
                }
            }
            None if arriving.more_messages(2 * MESSAGE).await? => {}
            None => return Ok(None),
        }
    }
}

/// Returns the flags and the length of the frame that bytes begin with, if all of it is there.
fn whole_frame(bytes: &[u8]) -> Result<Option<(u8, usize)>, RpcFailure> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD>() else { return Ok(None) };
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    if length > MESSAGE {
        return Err(Unread::TooLong(MESSAGE).into());
    }
    if head[0] & 1 != 0 {
        return Err(RpcFailure::new("unimplemented", "frames may not be compressed"));
    }
    Ok((rest.len() >= length).then_some((head[0], length)))
}

fn fields(value: Value) -> Result<Map<String, Value>, RpcFailure> {
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(RpcFailure::argument("the message must be a JSON object")),
    }
}

/// How long the client lets a call take.
pub(super) fn timeout(headers: &HeaderMap) -> Option<Duration> {
    let millis: u64 = headers.get("connect-timeout-ms")?.to_str().ok()?.parse().ok()?;
    Some(Duration::from_millis(millis).min(LONGEST))
}

/// How often the client wants to hear that the stream is alive.
pub(super) fn keepalive(headers: &HeaderMap) -> Duration {
    let asked = || headers.get("keepalive-ping-interval")?.to_str().ok()?.parse().ok();
    Duration::from_secs(asked().unwrap_or(90u64).clamp(1, 3600))
}

/// The user whom the request is made as: `Authorization: Basic`. Whether that is root.
pub(super) fn as_root(headers: &HeaderMap) -> Result<bool, RpcFailure> {
    let Some(given) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return Ok(false);
    };
    let name = given
        .strip_prefix("Basic ")
        .and_then(crate::params::decode)
        .and_then(|text| String::from_utf8(text).ok());
    user(name.as_deref().map(|name| name.split(':').next().unwrap_or_default()))
}

/// Whether a user is root, if there is such a user.
pub(super) fn user(name: Option<&str>) -> Result<bool, RpcFailure> {
    match name {
        None | Some("" | "user") => Ok(false),
        Some("root") => Ok(true),
        Some(other) => {
            let shown: String = other.chars().take(64).collect();
            Err(RpcFailure::new(
                "unauthenticated",
                format!("there is no user \"{shown}\": only user and root"),
            ))
        }
    }
}

/// A field that is a string.
pub(super) fn text<'v>(message: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    message.get(name).and_then(Value::as_str)
}

/// A field that must be a path; a relative one starts at home.
pub(super) fn path(message: &Map<String, Value>, name: &str) -> Result<String, RpcFailure> {
    text(message, name).map(at_home).ok_or_else(|| RpcFailure::argument(format!("{name} is missing")))
}

/// Where relative paths and `~` lead.
pub(super) fn at_home(path: &str) -> String {
    const HOME: &str = "/home/user";
    match path {
        "" | "~" => HOME.to_owned(),
        _ if path.starts_with('/') => path.to_owned(),
        _ => format!("{HOME}/{}", path.strip_prefix("~/").unwrap_or(path)),
    }
}
