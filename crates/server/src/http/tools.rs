//! `POST /tools/run`: one native tool, through the host-tool gateway.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use wardian_hosttools::{Ended, Finished, Request, ToolError};

use super::connections::Seat;
use super::{Site, page, refusal};

/// The maximum size of a request: a command line and a few parameters.
const BODY: usize = 1 << 20;
/// How long a client may take to send it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs the tool to its end; if the client disconnects, the tool is cancelled.
pub(super) async fn run(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let Some(door) = &site.http.door else {
        return refusal(StatusCode::NOT_FOUND, "SANDBOX_DISABLED", "no native tools are offered here");
    };
    // Also what keeps the web's pages out: they cannot send this type to others unasked.
    if !is_json(&headers) {
        let message = "the body must be application/json";
        return refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", message);
    }
    let body = match tokio::time::timeout(PATIENCE, to_bytes(body, BODY)).await {
        Ok(Ok(body)) => body,
        Ok(Err(error)) => return refusal(StatusCode::BAD_REQUEST, "BAD_REQUEST", error),
        Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", "the body did not come"),
    };
    let request = match parse(&body) {
        Ok(request) => request,
        Err(message) => return refusal(StatusCode::BAD_REQUEST, "BAD_REQUEST", message),
    };
    let Some(_kept) = seat.keep() else {
        let message = "this connection is being closed to let others in";
        return refusal(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_CONNECTIONS", message);
    };
    match door.run(request).await {
        Ok(finished) => page(StatusCode::OK, &shown(&finished)),
        Err(error) => refused(&error),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// `{"command": "git status"}` or `{"args": ["git", "status"]}`, and optional parameters.
fn parse(body: &[u8]) -> Result<Request, String> {
    let fields: Map<String, Value> = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let mut request = match (fields.get("command"), fields.get("args")) {
        (Some(Value::String(line)), None) => Request::line(line),
        (None, Some(Value::Array(words))) => Request::words(strings(words)?),
        _ => return Err("either command, a string, or args, a list of strings, is needed".to_owned()),
    };
    // For clients that share the server without saying who they are.
    request = request.session("http");
    for (name, value) in &fields {
        request = match (name.as_str(), value) {
            ("command" | "args", _) => request,
            ("cwd", Value::String(cwd)) => request.cwd(cwd),
            ("session", Value::String(session)) => request.session(session),
            ("timeoutMs", value) => match value.as_u64() {
                Some(milliseconds) if milliseconds > 0 => {
                    request.timeout(Duration::from_millis(milliseconds))
                }
                _ => return Err("timeoutMs must be a number of milliseconds".to_owned()),
            },
            ("cwd" | "session", _) => return Err(format!("{name} must be a string")),
            _ => return Err(format!("unknown field {name}")),
        };
    }
    Ok(request)
}

fn strings(words: &[Value]) -> Result<Vec<String>, String> {
    let word = |word: &Value| word.as_str().map(str::to_owned);
    words.iter().map(word).collect::<Option<_>>().ok_or_else(|| "args must be a list of strings".to_owned())
}

fn shown(finished: &Finished) -> Value {
    let mut object = Map::new();
    object.insert("exitCode".into(), json!(finished.status.code()));
    if let Ended::Signal(signal) = finished.status {
        object.insert("signal".into(), json!(signal));
    }
    for (name, bytes) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        object.insert(name.into(), json!(String::from_utf8_lossy(bytes)));
        if std::str::from_utf8(bytes).is_err() {
            object.insert(format!("{name}Base64"), json!(STANDARD.encode(bytes)));
        }
    }
    object.insert("durationMs".into(), json!(finished.duration.as_secs_f64() * 1000.0));
    object.insert("truncated".into(), json!(finished.truncated));
    object.insert("timedOut".into(), json!(finished.timed_out));
    Value::Object(object)
}

fn refused(error: &ToolError) -> Response {
    let status = match error {
        ToolError::Syntax(_) => StatusCode::BAD_REQUEST,
        ToolError::WorkerUnavailable { .. } | ToolError::ShuttingDown => StatusCode::SERVICE_UNAVAILABLE,
        ToolError::Disabled(_)
        | ToolError::ProgramDenied { .. }
        | ToolError::SubcommandDenied { .. }
        | ToolError::FlagDenied { .. }
        | ToolError::PathDenied { .. } => StatusCode::FORBIDDEN,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let fields = json!({ "code": error.code(), "stage": error.stage().name(), "message": error.to_string() });
    let mut response = page(status, &json!({ "error": fields }));
    if matches!(error, ToolError::WorkerUnavailable { .. }) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}
