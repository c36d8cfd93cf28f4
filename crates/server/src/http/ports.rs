//! `/sandboxes/NAME/ports/PORT/…`: what a program in a sandbox serves, passed on.
//!
//! ```text
//!  client ══ HTTP/1.1 ══► heads rewritten, bodies streamed ══ HTTP/1.1 ══► a port of the sandbox
//!         ◄═ WebSocket ═══════════════ bytes ══════════════ WebSocket ═►
//! ```
//! Each request has a connection of its own to the guest. Everything that holds a place (the connection, the seat) belongs to the
//! task that drives that connection, which ends with the sandbox, and when nothing has moved for long.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::OwnedSemaphorePermit;
use wardian::{Error, PortStream};

use super::connections::{KeptSeat, Seat};
use super::forward::{self, Target};
use super::guard::Caller;
use super::moving::{Moved, Moving};
use super::shares::Share;
use super::whole::Cut;
use super::{Site, refusal};
use crate::entry::Entry;
use crate::hibernation::Awake;
use crate::methods::CONNECT;

/// The longest head of a guest's response, and how many fields it may have.
pub(super) const HEAD_BYTES: usize = 64 << 10;
const HEAD_FIELDS: usize = 128;

/// How much of the server connections to ports of sandboxes may take by HTTP.
#[derive(Clone, Copy, Debug)]
pub struct PortLimits {
    /// How many requests may be in progress, for all sandboxes.
    pub connections: usize,
    /// How many of them for one sandbox.
    pub per_sandbox: usize,
    /// How long a guest may take from the end of a request to the head of its response.
    pub response: Duration,
    /// How long a connection lives on which nothing moves.
    pub idle: Duration,
}

impl Default for PortLimits {
    fn default() -> PortLimits {
        PortLimits {
            connections: 256,
            per_sandbox: 64,
            response: Duration::from_secs(60),
            idle: Duration::from_secs(300),
        }
    }
}

/// What a request holds until it is over.
struct Holds {
    _of_server: Share,
    _of_sandbox: OwnedSemaphorePermit,
    _seat: KeptSeat,
}

pub(super) async fn pass_on(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let target = match Target::of(request.uri()) {
        Ok(target) => target,
        Err(refused) => return *refused,
    };
    let Some(entry) = site.shared.doors.find(&target.name) else { return no_sandbox() };
    if target.rest.is_empty() {
        return redirect(&target, request.uri().query());
    }
    pass_to(&site, (&seat, caller.tenant()), entry, &target, request).await
}

/// Passes a request on to a port of a sandbox. It takes a place of its tenant's.
pub(super) async fn pass_to(
    site: &Site,
    (seat, tenant): (&Arc<Seat>, Option<&str>),
    entry: Arc<Entry>,
    target: &Target,
    request: Request,
) -> Response {
    let holds = match hold(site, &entry, seat, tenant) {
        Ok(holds) => Arc::new(holds),
        Err(refused) => return *refused,
    };
    match connect(&entry, target.port).await {
        Ok((awake, stream)) => exchange(site, (entry, Arc::new(awake)), holds, stream, target, request).await,
        Err(refused) => refused,
    }
}

fn no_sandbox() -> Response {
    refusal(StatusCode::NOT_FOUND, "NO_SANDBOX", "there is no sandbox of that name, or it is gone")
}

fn bad_gateway(code: &str, message: impl std::fmt::Display) -> Response {
    refusal(StatusCode::BAD_GATEWAY, code, message)
}

/// Relative links need the slash at the end.
fn redirect(target: &Target, query: Option<&str>) -> Response {
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    let place = format!("{}/{query}", target.prefix());
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, place)]).into_response()
}

fn hold(site: &Site, entry: &Entry, seat: &Arc<Seat>, tenant: Option<&str>) -> Result<Holds, Box<Response>> {
    let busy =
        |message: &str| Box::new(refusal(StatusCode::SERVICE_UNAVAILABLE, "TOO_MANY_CONNECTIONS", message));
    let _of_server = (site.ports.take(tenant))
        .ok_or_else(|| busy("too many requests to ports of sandboxes are in progress"))?;
    let of_sandbox = entry.http(site.http.ports.per_sandbox).try_acquire_owned();
    let _of_sandbox =
        of_sandbox.map_err(|_| busy("too many requests to ports of this sandbox are in progress"))?;
    let seat = seat.clone().keep_owned();
    let _seat = seat.ok_or_else(|| busy("this connection is being closed to let others in"))?;
    Ok(Holds { _of_server, _of_sandbox, _seat })
}

async fn connect(entry: &Arc<Entry>, port: u16) -> Result<(Awake, PortStream), Response> {
    let sandbox = entry.awake().await.map_err(|error| match entry.has_ended() {
        true => no_sandbox(),
        false => refusal(StatusCode::SERVICE_UNAVAILABLE, "NOT_AVAILABLE", error.message),
    })?;
    let connected = tokio::select! {
        () = entry.ended() => return Err(no_sandbox()),
        connected = tokio::time::timeout(CONNECT, sandbox.connect(port)) => connected,
    };
    match connected {
        Ok(Ok(stream)) => Ok((sandbox, stream)),
        Ok(Err(Error::Destroyed)) => Err(no_sandbox()),
        Ok(Err(error)) => Err(bad_gateway("NOT_LISTENING", format!("nothing answers there: {error}"))),
        Err(_) => {
            let message = format!("the server at port {port} does not accept connections");
            Err(refusal(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT", message))
        }
    }
}

/// Sends the request and returns the response, whose body follows as it comes.
async fn exchange(
    site: &Site,
    (entry, awake): (Arc<Entry>, Arc<Awake>),
    holds: Arc<Holds>,
    stream: PortStream,
    target: &Target,
    mut request: Request,
) -> Response {
    let moved = Arc::<Moved>::default();
    let stream = TokioIo::new(Moving::new(stream, moved.clone()));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_BYTES).max_headers(HEAD_FIELDS);
    let (mut sender, connection) = match builder.handshake::<_, Body>(stream).await {
        Ok(both) => both,
        Err(error) => return bad_gateway("BROKEN", error),
    };
    let limits = site.http.ports;
    let cut = Cut::not_yet(entry.clone());
    let watched = Watched { entry, _awake: awake, holds, moved: moved.clone(), idle: limits.idle, cut };
    let driven = watched.clone();
    tokio::spawn(async move {
        driven.until_the_end(async { drop(connection.with_upgrades().await) }).await;
    });
    let upgrade = forward::wants_websocket(request.headers()).then(|| hyper::upgrade::on(&mut request));
    let request = match forward::request(request, target, site.http.asks_for_token()) {
        Ok(request) => request,
        Err(refused) => return *refused,
    };
    let answered = tokio::select! {
        answered = sender.send_request(request) => answered,
        () = moved.nothing_written_for(limits.response) => {
            let message = "the server in the sandbox did not respond in time";
            return refusal(StatusCode::GATEWAY_TIMEOUT, "TIMEOUT", message);
        }
    };
    match answered {
        Ok(response) => answer(response, upgrade, watched, target),
        Err(_) if watched.entry.has_ended() => no_sandbox(),
        Err(error) => {
            bad_gateway("BAD_RESPONSE", format!("the server in the sandbox gave no response: {error}"))
        }
    }
}

fn answer(
    mut response: hyper::Response<hyper::body::Incoming>,
    upgrade: Option<hyper::upgrade::OnUpgrade>,
    watched: Watched,
    target: &Target,
) -> Response {
    let cut = watched.cut.clone();
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some(client) = upgrade else {
            return bad_gateway("BAD_RESPONSE", "the server in the sandbox changed the protocol unasked");
        };
        let guest = hyper::upgrade::on(&mut response);
        tokio::spawn(async move {
            let joined = async {
                if let (Ok(client), Ok(guest)) = (client.await, guest.await) {
                    let (mut client, mut guest) = (TokioIo::new(client), TokioIo::new(guest));
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut guest).await;
                }
            };
            watched.clone().until_the_end(joined).await;
        });
    }
    forward::response(response, target, cut)
}

/// What ends a connection early.
#[derive(Clone)]
struct Watched {
    entry: Arc<Entry>,
    /// It stays in memory.
    _awake: Arc<Awake>,
    holds: Arc<Holds>,
    moved: Arc<Moved>,
    idle: Duration,
    cut: Cut,
}

impl Watched {
    async fn until_the_end(self, work: impl Future<Output = ()>) {
        tokio::select! {
            () = work => {}
            () = self.ended_early() => {}
        }
        drop(self.holds);
    }

    /// Ends before the work is dropped, and leaves word for the reader of what the work passes on.
    async fn ended_early(&self) {
        tokio::select! {
            () = self.entry.ended() => {}
            () = self.moved.nothing_for(self.idle) => tracing::debug!("a connection to a port was idle too long"),
        }
        self.cut.now();
    }
}
