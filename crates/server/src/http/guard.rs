//! Access control: clients with a token are admitted or, if there is none, programs on this machine. Anyone may learn
//! whether the server is alive: whatever restarts it need not know the token.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::BoxError;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::connections::Seat;
use super::forward::Target;
use super::tokens::{self, Known};
use super::{Site, cors, health, ports, refusal};
use crate::e2b::{self, Outcome, Way, is_same};
use crate::tenant::{Member, Tenant};

/// Who sends a request.
#[derive(Clone)]
pub(super) struct Caller {
    /// What stands for it where sandboxes are told apart: its tenant or, of a server with one token, that; empty if there is none.
    pub(super) owner: String,
    /// Its token, if it is one of several.
    pub(super) known: Option<Known>,
}

/// What tokens stand for where there are none: this machine.
const NO_TOKEN: &str = "this machine, without a token";

impl Caller {
    /// Returns whose states it reads and writes, and its quota.
    pub(super) fn member(&self) -> Member {
        match &self.known {
            Some(known) => {
                let (tenant, quota) = (Tenant::named(&known.tenant), known.quota.clone());
                Member { tenant, quota, is_tenant: true }
            }
            None if self.owner.is_empty() => Tenant::of_token(NO_TOKEN).into(),
            None => Tenant::of_token(&self.owner).into(),
        }
    }

    /// Returns its tenant, where several share the server.
    pub(super) fn tenant(&self) -> Option<&str> {
        self.known.as_ref().map(|_| self.owner.as_str())
    }

    /// Whether it may use what is not of one tenant.
    fn is_admin(&self) -> bool {
        self.known.as_ref().is_none_or(|known| known.admin)
    }
}

impl Site {
    /// Returns who shows a token, if it is valid.
    fn caller(&self, token: Option<&str>) -> Option<Caller> {
        let token = token.unwrap_or_default();
        if let Some(tokens) = &self.http.tokens {
            let known = tokens.known(token)?;
            return Some(Caller { owner: tokens::owner(&known.tenant), known: Some(known) });
        }
        match &self.http.token {
            None => Some(Caller { owner: String::new(), known: None }),
            Some(wanted) => is_same(token.as_bytes(), wanted.as_bytes())
                .then(|| Caller { owner: wanted.clone(), known: None }),
        }
    }

    /// Waits until a token is not valid any more.
    pub(super) async fn revoked(&self, caller: &Caller) {
        match (&self.http.tokens, &caller.known) {
            (Some(tokens), Some(known)) => tokens.revoked(known.clone()).await,
            _ => std::future::pending().await,
        }
    }
}

pub(super) async fn admit(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    if let Some(seat) = request.extensions().get::<Arc<Seat>>() {
        seat.touch();
    }
    if let Some(way) = Way::of(&request) {
        return speak_e2b(&site, way, request).await;
    }
    let headers = request.headers();
    let origin = cors::allowed(&site, &request);
    if is_for_programs(&request) && origin.is_none() && is_of_another_site(headers) {
        return refusal(StatusCode::FORBIDDEN, "FORBIDDEN", "pages of other sites may not use this server");
    }
    if let Some(origin) = origin.as_ref().filter(|_| cors::is_preflight(&request)) {
        return cors::preflight(origin);
    }
    if site.http.asks_for_token() && is_probe(&request) {
        return health::alive(&site);
    }
    let answer = match site.caller(bearer(headers)) {
        None => {
            let mut response = refusal(StatusCode::UNAUTHORIZED, "UNAUTHORIZED", "a bearer token is needed");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            response
        }
        Some(_) if !site.http.asks_for_token() && !names_this_machine(headers) => refusal(
            StatusCode::FORBIDDEN,
            "FORBIDDEN",
            "without a token this server answers to localhost only",
        ),
        Some(caller) if !caller.is_admin() && is_for_admins(&request) => {
            let mut response =
                refusal(StatusCode::FORBIDDEN, "FORBIDDEN", "this page needs a token with admin = true");
            response.extensions_mut().insert(caller);
            response
        }
        Some(caller) if !caller.is_admin() && request.uri().path() == "/health" => health::alive(&site),
        Some(caller) => {
            request.extensions_mut().insert(caller.clone());
            let mut response = while_valid(&site, &caller, next.run(request).await);
            response.extensions_mut().insert(caller);
            response
        }
    };
    match origin {
        Some(origin) => cors::allow(answer, origin),
        None => answer,
    }
}

/// Has a stream end when the token that it was asked for with is not valid any more. What is short may be read.
fn while_valid(site: &Arc<Site>, caller: &Caller, response: Response) -> Response {
    if caller.known.is_none() || response.body().size_hint().exact().is_some() {
        return response;
    }
    let (site, caller) = (site.clone(), caller.clone());
    let revoked = Box::pin(async move { site.revoked(&caller).await });
    response.map(|body| Body::new(WhileValid { body, revoked }))
}

struct WhileValid {
    body: Body,
    revoked: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl HttpBody for WhileValid {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.revoked.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err("the token is not valid any more".into())));
        }
        Pin::new(&mut self.body).poll_frame(context).map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Answers a client that speaks E2B's protocol. Its key is a token of the server's; a sandbox has a secret of its own.
async fn speak_e2b(site: &Arc<Site>, mut way: Way, request: Request) -> Response {
    let headers = request.headers();
    let caller = match &way {
        Way::Control(key) => site.caller(Some(key)),
        _ => None,
    };
    let admitted = if site.http.asks_for_token() {
        e2b::needs_no_token(&way) || caller.is_some()
    } else {
        // A name that has a sandbox's id in it is known to nobody else.
        names_this_machine(headers) || !headers.contains_key("e2b-sandbox-id") && e2b::needs_no_token(&way)
    };
    if !admitted {
        return e2b::unauthorized();
    }
    if let (Way::Control(key), Some(caller)) =
        (&mut way, caller.as_ref().filter(|caller| !caller.owner.is_empty()))
    {
        // All tokens of a tenant have its sandboxes.
        key.clone_from(&caller.owner);
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
    let mut response = match e2b::answer(&site.boxes, way, request, (kept, place)).await {
        Outcome::Answer(response) => response,
        Outcome::Port(port, request) => match seat {
            Some(seat) => {
                let tenant = site.http.tokens.is_some().then_some(port.owner.as_str());
                let target = Target::whole(port.number, request.uri());
                ports::pass_to(site, (&seat, tenant), port.entry, &target, request).await
            }
            None => refusal(StatusCode::BAD_GATEWAY, "BROKEN", "there is no connection"),
        },
    };
    if let Some(caller) = caller {
        response.extensions_mut().insert(caller);
    }
    response
}

/// Returns whether a path is for programs, not for pages.
pub(super) fn is_for_programs(request: &Request) -> bool {
    let path = request.uri().path();
    path.starts_with("/v1/") || matches!(path, "/rpc" | "/mcp" | "/openapi.json")
}

/// Returns whether a path shows or does what is no tenant's.
fn is_for_admins(request: &Request) -> bool {
    matches!(request.uri().path(), "/metrics" | "/tools/run")
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

/// Returns the token that a request shows.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, given) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| given.trim())
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
