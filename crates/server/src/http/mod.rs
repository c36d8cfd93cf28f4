//! HTTP in addition to the protocol: monitoring, and native tools through the host-tool gateway.
//!
//! ```text
//!  GET  /health     that the server is alive, and how busy it is
//!  GET  /ready      whether to send it work
//!  GET  /metrics    the same for Prometheus
//!  POST /tools/run  a native tool, if tools are offered
//!  /sandboxes/NAME/ports/PORT/…  what a program in a sandbox serves
//!  /v1/…            sandboxes by REST, with /openapi.json (`rest`)
//!  GET  /rpc        the protocol over a WebSocket
//!  /mcp             sandboxes as tools of language models (`mcp`)
//!  with the headers of E2B's SDKs: sandboxes that belong to a key (`e2b`)
//! ```
//!
//! What monitors waits for neither sandboxes nor tools, so it responds however busy they are.

mod access;
mod connections;
mod cors;
// A refusal is a whole response, and moving one costs nothing beside a request.
#[allow(clippy::result_large_err)]
mod forward;
mod frames;
mod guard;
mod health;
mod mcp;
mod metrics;
mod moving;
#[allow(clippy::result_large_err)]
mod ports;
mod rest;
mod shares;
mod tokens;
mod tools;
mod websocket;
mod whole;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use wardian_hosttools::ToolSandbox;

pub use access::AccessLog;
pub use ports::PortLimits;
pub use tokens::{Tokens, TokensError};

use crate::Server;
use crate::admission::clients;
use crate::e2b::Boxes;
use crate::session::Shared;
use shares::Shares;

/// What is offered over HTTP, and to whom.
#[derive(Clone, Default)]
pub struct Http {
    /// The token that clients must send: `Authorization: Bearer TOKEN`. Without one only this machine is served.
    pub token: Option<String>,
    /// Several of them, from a file, instead of the one.
    pub tokens: Option<Tokens>,
    /// Where each request is noted.
    pub access_log: Option<AccessLog>,
    /// Native tools. Anyone who can reach the server may use them.
    pub door: Option<ToolSandbox>,
    /// How much may be connected to ports of sandboxes.
    pub ports: PortLimits,
}

/// Why HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Anyone could connect.
    #[error("{0} can be reached from other machines: a token is required")]
    NoToken(SocketAddr),
    /// The token can be guessed, or cannot be sent.
    #[error("the token must be at least {MIN_TOKEN} printable characters")]
    WeakToken,
    /// One of the two would be ignored.
    #[error("there is one token and a file of tokens: give one of the two")]
    TwoKinds,
    /// The listener is unusable.
    #[error("cannot serve HTTP: {0}")]
    Io(#[from] io::Error),
}

/// Shorter tokens can be guessed.
const MIN_TOKEN: usize = 16;

/// What the handlers share.
struct Site {
    http: Http,
    shared: Arc<Shared>,
    /// Sandboxes of clients that speak E2B's protocol.
    boxes: Arc<Boxes>,
    /// Sandboxes that were created by REST.
    hosts: Arc<rest::Hosts>,
    /// Sandboxes of language models.
    mcp: mcp::Owners,
    /// Room for clients by WebSocket.
    clients: Shares,
    /// Room for requests to ports of sandboxes.
    ports: Shares,
    started: Instant,
    /// Whether the sandboxes' programs are compiled.
    ready: AtomicBool,
    stopping: AtomicBool,
    /// Tells clients by WebSocket that it is over.
    stopped: watch::Sender<bool>,
}

impl Server {
    /// Serves HTTP until `end`; then shuts down the gateway and the server, and returns.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        http: Http,
        end: impl Future<Output = ()>,
    ) -> Result<(), HttpError> {
        let place = listener.local_addr()?;
        http.check(place)?;
        self.0.doors.open(place);
        let quotas = http.tokens.as_ref().map(Tokens::quotas).unwrap_or_default();
        let site = Arc::new(Site {
            ports: Shares::new(http.ports.connections),
            http,
            shared: self.0.clone(),
            boxes: Boxes::new(self.0.clone(), quotas),
            hosts: Arc::default(),
            mcp: mcp::Owners::default(),
            clients: Shares::new(self.0.max_clients.min(clients())),
            started: Instant::now(),
            ready: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            stopped: watch::Sender::new(false),
        });
        site.boxes.find_paused().await;
        tokio::spawn(get_ready(site.clone()));
        let closing = async {
            end.await;
            self.0.doors.close();
            site.stopping.store(true, Ordering::SeqCst);
            if let Some(door) = &site.http.door {
                door.shutdown().await;
            }
            site.stopped.send_replace(true);
            tokio::join!(site.boxes.end(), site.hosts.end(), site.mcp.end());
        };
        connections::serve(listener, router(site.clone()), closing).await;
        if let Some(log) = &site.http.access_log {
            log.end().await;
        }
        Ok(())
    }
}

impl Http {
    /// Whether clients have to show a token.
    fn asks_for_token(&self) -> bool {
        self.token.is_some() || self.tokens.is_some()
    }

    /// Checks that it may be served at this address.
    pub fn check(&self, address: SocketAddr) -> Result<(), HttpError> {
        if self.token.is_some() && self.tokens.is_some() {
            return Err(HttpError::TwoKinds);
        }
        match &self.token {
            None if self.tokens.is_some() => Ok(()),
            None if !address.ip().is_loopback() => Err(HttpError::NoToken(address)),
            Some(token) if token.len() < MIN_TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) => {
                Err(HttpError::WeakToken)
            }
            _ => Ok(()),
        }
    }
}

/// On a new machine the sandboxes' programs are compiled first, which takes seconds. Clients should not have to wait for
/// that.
async fn get_ready(site: Arc<Site>) {
    let prepared = tokio::task::spawn_blocking(|| wardian::prepare(|step| tracing::info!("{step}"))).await;
    match prepared {
        Ok(Ok(())) => site.ready.store(true, Ordering::SeqCst),
        Ok(Err(error)) => tracing::error!(%error, "cannot create sandboxes"),
        Err(error) => tracing::error!(%error, "cannot create sandboxes"),
    }
}

fn router(site: Arc<Site>) -> Router {
    rest::routes(Router::new())
        .route("/rpc", any(websocket::rpc))
        .route("/mcp", any(mcp::answer))
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .route("/metrics", get(metrics::metrics))
        .route("/tools/run", post(tools::run))
        .route("/sandboxes/{*rest}", any(ports::pass_on))
        .fallback(|| async { refusal(StatusCode::NOT_FOUND, "NOT_FOUND", "not found") })
        .method_not_allowed_fallback(|| async {
            refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "METHOD_NOT_ALLOWED",
                "that cannot be done with this page",
            )
        })
        .layer(middleware::from_fn_with_state(site.clone(), guard::admit))
        .layer(middleware::from_fn_with_state(site.clone(), access::record))
        .with_state(site)
}

fn page(status: StatusCode, value: &Value) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, format!("{value}\n")).into_response()
}

fn refusal(status: StatusCode, code: &str, message: impl std::fmt::Display) -> Response {
    page(status, &json!({ "error": { "code": code, "message": message.to_string() } }))
}
