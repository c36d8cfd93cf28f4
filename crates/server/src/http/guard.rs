//! Access control: clients with the token are admitted or, if there is none, programs on this machine. Anyone may learn
//! whether the server is alive: whatever restarts it need not know the token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

use super::connections::Seat;
use super::forward::Target;
use super::rest::Caller;
use super::{Site, health, ports, refusal};
use crate::e2b::{self, Outcome, Way};

pub(super) async fn admit(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    if let Some(seat) = request.extensions().get::<Arc<Seat>>() {
        seat.touch();
    }
    if let Some(way) = Way::of(&request) {
        return speak_e2b(&site, way, request).await;
    }
    request.extensions_mut().insert(Caller(site.http.token.clone().unwrap_or_default()));
    let headers = request.headers();
    match &site.http.token {
        _ if is_for_programs(&request) && is_of_another_site(headers) => {
            refusal(StatusCode::FORBIDDEN, "FORBIDDEN", "pages of other sites may not use this server")
        }
        Some(_) if is_probe(&request) => health::alive(&site),
        Some(token) if !knows(headers, token) => {
            let mut response = refusal(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "a bearer token is needed");
            let scheme = header::HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
            response
        }
        None if !names_this_machine(headers) => refusal(
            StatusCode::FORBIDDEN,
            "FORBIDDEN",
            "without a token this server answers to localhost only",
        ),
        _ => next.run(request).await,
    }
}

/// Answers a client that speaks E2B's protocol. Its key is the server's token; a sandbox has a secret of its own.
async fn speak_e2b(site: &Arc<Site>, way: Way, request: Request) -> Response {
    let headers = request.headers();
    let admitted = match &site.http.token {
        Some(token) => e2b::needs_no_token(&way) || e2b::shows(&way, token),
        // A name that has a sandbox's id in it is known to nobody else.
        None => {
            names_this_machine(headers)
                || !headers.contains_key("e2b-sandbox-id") && e2b::needs_no_token(&way)
        }
    };
    if !admitted {
        return e2b::unauthorized();
    }
    let seat = request.extensions().get::<Arc<Seat>>().cloned();
    let Ok(place) = site.boxes.requests.clone().try_acquire_owned() else {
        return refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "TOO_MANY_CONNECTIONS",
            "too many requests are in progress",
        );
    };
    let kept = seat.clone().and_then(Seat::keep_owned);
    match e2b::answer(&site.boxes, way, request, (kept, place)).await {
        Outcome::Answer(response) => response,
        Outcome::Port(entry, port, request) => match seat {
            Some(seat) => {
                ports::pass_to(site, &seat, entry, &Target::whole(port, request.uri()), request).await
            }
            None => refusal(StatusCode::BAD_GATEWAY, "BROKEN", "there is no connection"),
        },
    }
}

/// Returns whether a path is for programs, not for pages.
fn is_for_programs(request: &Request) -> bool {
    let path = request.uri().path();
    path.starts_with("/v1/") || path == "/rpc"
}

/// Returns whether a browser sends this for a page of another site, or of a sandbox. It would do so for any page, with what it
/// reaches; only the answer it would keep from it, and of a WebSocket not even that.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let Some(origin) = text(header::ORIGIN) else { return false };
    let host = text(header::HOST).unwrap_or_default();
    origin.split_once("://").is_none_or(|(_, origin)| !origin.eq_ignore_ascii_case(host))
}

/// Returns whether this is a request for `/health` without credentials.
fn is_probe(request: &Request) -> bool {
    let asks = matches!(*request.method(), Method::GET | Method::HEAD) && request.uri().path() == "/health";
    asks && !request.headers().contains_key(header::AUTHORIZATION)
}

fn knows(headers: &HeaderMap, token: &str) -> bool {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match value.split_once(' ') {
        Some((scheme, given)) => {
            scheme.eq_ignore_ascii_case("bearer") && e2b::is_same(given.trim().as_bytes(), token.as_bytes())
        }
        None => false,
    }
}

/// A web page can have its own name resolve to this machine, and would then be admitted through the browser.
fn names_this_machine(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}
