//! Heads on their way to a sandbox and back: what passes, and what does not.
//!
//! All sandboxes share this server's origin, and in a browser cookies belong to the machine's name, whatever the port. So cookies
//! pass in neither direction, the server's own token never reaches a guest, and a page of a guest has an origin of its own
//! (`Content-Security-Policy: sandbox`): it reaches neither other sandboxes nor the server's other pages.

use axum::body::Body;
use axum::extract::Request;
use axum::http::uri::{PathAndQuery, Uri};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::response::Response;

use super::refusal;
use super::whole::{Cut, Whole};

/// What concerns one connection only.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// What a browser would remember for all of the server, not for one sandbox alone: other addresses of it, that it has to be
/// reached in another way, where to report what happens on it (with the names of other sandboxes), and what to forget.
const OF_THE_SERVER: [&str; 14] = [
    "accept-ch",
    "alt-svc",
    "clear-site-data",
    "critical-ch",
    "expect-ct",
    "nel",
    "origin-agent-cluster",
    "public-key-pins",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
];
/// What a page of a guest may do in a browser. Without `allow-same-origin` its origin is nobody's.
const CONFINED: &str = "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts";

/// Where a request leads.
pub(super) struct Target {
    pub(super) name: String,
    pub(super) port: u16,
    /// The path there, as it was sent; empty if even the slash is missing.
    pub(super) rest: String,
}

impl Target {
    /// Reads `/sandboxes/NAME/ports/PORT/…`.
    pub(super) fn of(uri: &Uri) -> Result<Target, Box<Response>> {
        let missing = || Box::new(refusal(StatusCode::NOT_FOUND, "NOT_FOUND", "not found"));
        let path = uri.path().strip_prefix("/sandboxes/").ok_or_else(missing)?;
        let (name, path) = path.split_once('/').ok_or_else(missing)?;
        let path = path.strip_prefix("ports/").ok_or_else(missing)?;
        let (port, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
        let number = port.parse().ok().filter(|number: &u16| *number > 0 && number.to_string() == port);
        let bad =
            || Box::new(refusal(StatusCode::NOT_FOUND, "NO_PORT", "a port is a number from 1 to 65535"));
        Ok(Target { name: name.to_owned(), port: number.ok_or_else(bad)?, rest: rest.to_owned() })
    }

    /// The port of a sandbox that the name of the host names: its path is the guest's own.
    pub(super) fn whole(port: u16, uri: &Uri) -> Target {
        Target { name: String::new(), port, rest: uri.path().to_owned() }
    }

    pub(super) fn prefix(&self) -> String {
        if self.name.is_empty() {
            return String::new();
        }
        format!("/sandboxes/{}/ports/{}", self.name, self.port)
    }
}

/// Returns whether a request asks for a WebSocket.
pub(super) fn wants_websocket(headers: &HeaderMap) -> bool {
    let asks = |name: HeaderName, wanted: &str| {
        let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case(wanted))
    };
    asks(header::CONNECTION, "upgrade") && asks(header::UPGRADE, "websocket")
}

/// Returns the request that the guest gets.
pub(super) fn request(
    from: Request,
    target: &Target,
    has_token: bool,
) -> Result<Request<Body>, Box<Response>> {
    let bad = |message: &str| Box::new(refusal(StatusCode::BAD_REQUEST, "BAD_REQUEST", message));
    let (mut head, body) = from.into_parts();
    if head.method == Method::CONNECT {
        return Err(bad("CONNECT leads nowhere"));
    }
    let websocket = wants_websocket(&head.headers);
    let host = head.headers.get(header::HOST).cloned();
    remove_hop_by_hop(&mut head.headers);
    head.headers.remove(header::EXPECT);
    head.headers.remove(header::COOKIE);
    if has_token {
        head.headers.remove(header::AUTHORIZATION);
    }
    if websocket {
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        head.headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    let own = |text: &str| HeaderValue::from_str(text).map_err(|_| bad("its target cannot be passed on"));
    head.headers.insert(header::HOST, own(&format!("localhost:{}", target.port))?);
    head.headers.insert("x-forwarded-prefix", own(&target.prefix())?);
    head.headers.insert("x-forwarded-proto", HeaderValue::from_static("http"));
    if let Some(host) = host {
        head.headers.insert("x-forwarded-host", host);
    }
    let query = head.uri.query().map_or(String::new(), |query| format!("?{query}"));
    let place = PathAndQuery::try_from(format!("{}{query}", target.rest));
    head.uri = Uri::from(place.map_err(|_| bad("its target cannot be passed on"))?);
    head.version = Version::HTTP_11;
    head.extensions.clear();
    Ok(Request::from_parts(head, body))
}

/// Returns the response that the client gets.
pub(super) fn response(from: hyper::Response<hyper::body::Incoming>, target: &Target, cut: Cut) -> Response {
    let (mut head, body) = from.into_parts();
    let switches = head.status == StatusCode::SWITCHING_PROTOCOLS;
    remove_hop_by_hop(&mut head.headers);
    if switches {
        head.headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
        head.headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    }
    for name in OF_THE_SERVER {
        head.headers.remove(name);
    }
    head.headers.append(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONFINED));
    let place = head.headers.get(header::LOCATION).and_then(|place| place.to_str().ok());
    // A path of the guest's is one below its prefix.
    if let Some(place) = place.filter(|place| place.starts_with('/') && !place.starts_with("//"))
        && let Ok(place) = HeaderValue::from_str(&format!("{}{place}", target.prefix()))
    {
        head.headers.insert(header::LOCATION, place);
    }
    head.version = Version::HTTP_11;
    head.extensions.clear();
    let body = if switches { Body::empty() } else { Body::new(Whole { body, cut }) };
    Response::from_parts(head, body)
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = (headers.get_all(header::CONNECTION).into_iter())
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed {
        headers.remove(name);
    }
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
}
