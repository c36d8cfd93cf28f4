//! Answers of the control plane and of a sandbox's files: JSON, errors with a code and a message.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use wardian::{Errno, Error};

use super::allowance::Allowance;
use crate::budget::Room;

/// A refusal: an HTTP status, and what to tell.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
}

impl Refused {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Refused {
        Refused { status, message: message.into() }
    }

    pub(crate) fn bad(message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, message)
    }

    /// Returns the word for programs: an errno, or the status in capitals.
    pub(crate) fn code(&self) -> String {
        let is_errno = |word: &str| {
            word.len() > 2
                && word.starts_with('E')
                && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
        };
        match self.message.split_once(": ") {
            Some((errno, _)) if is_errno(errno) => errno.to_owned(),
            _ => self.status.canonical_reason().unwrap_or("ERROR").to_uppercase().replace(' ', "_"),
        }
    }

    /// There is no room for what the request would keep.
    pub(crate) fn no_room() -> Refused {
        Refused::new(StatusCode::TOO_MANY_REQUESTS, "too many requests are waiting")
    }

    pub(super) fn unsupported(what: &str) -> Refused {
        Refused::new(StatusCode::NOT_IMPLEMENTED, format!("{what}: see docs/e2b.md"))
    }

    pub(super) fn no_sandbox(id: &str) -> Refused {
        let shown: String = id.chars().take(64).collect();
        Refused::new(StatusCode::NOT_FOUND, format!("sandbox \"{shown}\" was not found"))
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        let status = match error.errno() {
            Some(Errno::ENOENT) => StatusCode::NOT_FOUND,
            Some(Errno::ENOSPC | Errno::EDQUOT) => StatusCode::INSUFFICIENT_STORAGE,
            Some(Errno::EACCES | Errno::EPERM) => StatusCode::FORBIDDEN,
            Some(_) => StatusCode::BAD_REQUEST,
            None if matches!(error, Error::Destroyed) => StatusCode::BAD_GATEWAY,
            None if matches!(error, Error::Option(_) | Error::Unsupported(_)) => StatusCode::BAD_REQUEST,
            None => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let message = match error {
            Error::Destroyed => "The sandbox was not found".to_owned(),
            error => error.to_string(),
        };
        Refused { status, message }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        json_page(self.status, &json!({ "code": self.status.as_u16(), "message": self.message }))
    }
}

pub(super) fn json_page(status: StatusCode, value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, value.to_string()).into_response()
}

pub(super) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// A body that is a JSON object, and the room it takes.
pub(crate) struct Object {
    pub(crate) fields: Map<String, Value>,
    _rooms: Vec<Room>,
}

/// Reads a body of at most `most` bytes, and returns it with the room it takes.
pub(crate) async fn whole(
    allowance: &Allowance,
    body: Body,
    most: usize,
) -> Result<(Vec<u8>, Vec<Room>), Refused> {
    let mut arriving = allowance.arriving(body);
    let bytes = arriving.whole(most).await?;
    Ok((bytes, arriving.into_rooms()))
}

/// Reads a JSON object of at most `most` bytes; an empty body is an empty object.
pub(crate) async fn object(allowance: &Allowance, body: Body, most: usize) -> Result<Object, Refused> {
    let (bytes, _rooms) = whole(allowance, body, most).await?;
    let fields = if bytes.trim_ascii().is_empty() {
        Map::new()
    } else {
        match allowance.parse(bytes).await? {
            Value::Object(fields) => fields,
            _ => return Err(Refused::bad("the body must be a JSON object")),
        }
    };
    Ok(Object { fields, _rooms })
}
