//! Pages of other origins: those that the file of tokens names may use the REST interface from a browser. They show a token
//! themselves; cookies play no part.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Site;
use super::guard::is_for_programs;

/// What a page may send, and read of an answer.
const METHODS: &str = "GET, POST, PUT, DELETE";
const SENT: &str = "authorization, content-type, accept, x-request-id, last-event-id, mcp-session-id, mcp-protocol-version, \
     mcp-method, mcp-name";
const READ: &str = "x-request-id, mcp-session-id";
/// How long a browser may remember that, in seconds.
const REMEMBERED: &str = "600";

/// Returns the origin of a request, if its pages may send it.
pub(super) fn allowed(site: &Site, request: &Request) -> Option<HeaderValue> {
    let origin = request.headers().get(header::ORIGIN)?;
    let tokens = site.http.tokens.as_ref().filter(|_| is_for_programs(request))?;
    tokens.allows(origin.to_str().ok()?).then(|| origin.clone())
}

/// Whether a browser asks what it may send.
pub(super) fn is_preflight(request: &Request) -> bool {
    *request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// Answers that. A browser shows no token here.
pub(super) fn preflight(origin: &HeaderValue) -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, METHODS),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, SENT),
        (header::ACCESS_CONTROL_MAX_AGE, REMEMBERED),
    ];
    allow((StatusCode::NO_CONTENT, headers, Body::empty()).into_response(), origin.clone())
}

/// Lets the page read an answer.
pub(super) fn allow(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    response
}
