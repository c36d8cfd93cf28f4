//! Answers of the control plane and of a sandbox's files: JSON, errors with a code and a message.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use wardian::{Errno, Error};

/// A refusal: an HTTP status, and what to tell.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl Refused {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Refused {
        Refused { status, message: message.into() }
    }

    pub(super) fn bad(message: impl Into<String>) -> Refused {
        Refused::new(StatusCode::BAD_REQUEST, message)
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

/// Reads a JSON object of at most `most` bytes; an empty body is an empty object.
pub(super) async fn object(body: Body, most: usize) -> Result<serde_json::Map<String, Value>, Refused> {
    let bytes = axum::body::to_bytes(body, most).await.map_err(|_| {
        Refused::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body cannot be read, or has more than {most} bytes"),
        )
    })?;
    if bytes.trim_ascii().is_empty() {
        return Ok(serde_json::Map::new());
    }
    match serde_json::from_slice(&bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Refused::bad("the body must be a JSON object")),
        Err(error) => Err(Refused::bad(format!("the body is not JSON: {error}"))),
    }
}
