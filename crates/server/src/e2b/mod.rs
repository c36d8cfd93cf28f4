//! The wire that the E2B SDKs speak (docs/e2b.md), beside the other pages of `serve --http`.
//!
//! ```text
//!  X-API-KEY ────────────────► control    sandboxes of that key: create, list, pause, fork, …
//!  E2b-Sandbox-Id and -Port,
//!  or PORT-ID.DOMAIN ────────► 49983      process.Process, filesystem.Filesystem, /files
//!                              49999      /execute, /contexts
//!                              any other  a port that a program in the sandbox listens at
//! ```
//! A sandbox belongs to the key that created it, and outlives connections.

mod allowance;
mod answer;
mod arriving;
mod boxes;
mod control;
mod create;
mod filesystem;
mod hosted;
mod interpreter;
mod multipart;
mod paused;
mod processes;
mod query;
mod rpc;
mod stream;
mod transfer;
mod unread;
mod watch;

use std::sync::Arc;
use std::time::Instant;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub(crate) use allowance::Allowance;
pub(crate) use answer::{Refused, object, whole};
pub(crate) use boxes::Boxes;
pub(crate) use query::Query;
pub(crate) use stream::{Pieces, streamed};
pub(crate) use unread::{passed_on, with_room};

use answer::{empty, json_page};
use hosted::Hosted;

use crate::tenant::hashed;

/// The port of a sandbox's own agent, and that of the code interpreter.
const AGENT: u16 = 49983;
const INTERPRETER: u16 = 49999;

/// Where a request leads.
pub(crate) enum Way {
    /// To the control plane, with a key.
    Control(String),
    /// To a port of a sandbox.
    Sandbox { id: String, port: u16 },
    /// To a file of a sandbox that only the signature names.
    Signed,
}

impl Way {
    /// Returns whether a request is one of these, and which.
    pub(crate) fn of(request: &Request) -> Option<Way> {
        let headers = request.headers();
        if let Some(id) = field(headers, "e2b-sandbox-id") {
            let port = field(headers, "e2b-sandbox-port").map_or(Some(AGENT), |port| port.parse().ok())?;
            return Some(Way::Sandbox { id: id.to_owned(), port });
        }
        let host = field(headers, "host").unwrap_or_default();
        if let Some((port, id)) = host.split('.').next().and_then(|label| label.split_once('-'))
            && let Ok(port) = port.parse()
            && hosted::is_id(id)
        {
            return Some(Way::Sandbox { id: id.to_owned(), port });
        }
        // Programs in sandboxes may have keys of their own.
        let passes_on =
            request.uri().path().starts_with("/sandboxes/") && request.uri().path().contains("/ports/");
        if let Some(key) = field(headers, "x-api-key").filter(|_| !passes_on) {
            return Some(Way::Control(key.to_owned()));
        }
        let query = request.uri().query().unwrap_or_default();
        (request.uri().path() == "/files" && query.contains("signature=")).then_some(Way::Signed)
    }
}

fn field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// What came of a request: an answer, or a port of a sandbox to pass it on to.
pub(crate) enum Outcome {
    Answer(Response),
    Port(Port, Request),
}

/// A port of a sandbox, and whose sandbox it is.
pub(crate) struct Port {
    pub(crate) entry: Arc<crate::entry::Entry>,
    pub(crate) owner: String,
    pub(crate) number: u16,
}

/// A request to a sandbox by a client that may make it.
struct Asked<'a> {
    hosted: &'a Arc<Hosted>,
    sandbox: wardian::Sandbox,
    allowance: &'a Arc<Allowance>,
    body: axum::body::Body,
}

/// Answers a request. Its client has shown the server's token, or needs none, or knows a sandbox. What a stream `holds` it has
/// until it is over.
pub(crate) async fn answer<H: Unpin + Send + 'static>(
    boxes: &Arc<Boxes>,
    way: Way,
    request: Request,
    holds: H,
) -> Outcome {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let (id, port) = match way {
        Way::Control(key) => {
            let (head, body) = request.into_parts();
            let key = hashed(&key);
            let allowance = boxes.allowance_of_key(&key);
            let Some(_place) = allowance.place() else { return refused(Refused::no_room()) };
            let call =
                control::Call { boxes, key: &key, allowance: &allowance, headers: &head.headers, query };
            let answered = control::answer(call, head.method, &head.uri, body).await;
            let answered = answered.unwrap_or_else(IntoResponse::into_response);
            return Outcome::Answer(unread::within(answered, &allowance));
        }
        Way::Sandbox { id, port } => (id, port),
        Way::Signed => match transfer::signer(boxes, &query, request.method()) {
            Some(hosted) => (hosted.id.clone(), AGENT),
            None => return refused(Refused::new(StatusCode::UNAUTHORIZED, "the signature is not valid")),
        },
    };
    let not_found = || {
        let shown: String = id.chars().take(64).collect();
        refused(Refused::new(StatusCode::BAD_GATEWAY, format!("The sandbox {shown} was not found")))
    };
    let Some(hosted) = boxes.find(&id).filter(|hosted| !hosted.is_paused() || hosted.described.auto_resume)
    else {
        return not_found();
    };
    if !may_use(&hosted, port, &request, &query) {
        return refused(Refused::new(StatusCode::UNAUTHORIZED, "the access token is missing or wrong"));
    }
    // Only those who may use it wake it.
    let awake = match boxes.running(&hosted).await {
        Ok(awake) => awake,
        Err(_) if hosted.is_paused() || hosted.entry.has_ended() => return not_found(),
        Err(why) => return refused(why),
    };
    let (sandbox, awake) = (wardian::Sandbox::clone(&awake), Arc::new(awake));
    if port != AGENT && port != INTERPRETER {
        let mut request = request;
        for name in ["x-access-token", "e2b-traffic-access-token", "e2b-sandbox-id", "e2b-sandbox-port"] {
            request.headers_mut().remove(name);
        }
        let port = Port { entry: hosted.entry.clone(), owner: hosted.key.clone(), number: port };
        return Outcome::Port(port, request);
    }
    if starts_something(request.uri().path())
        && let Some(Err(error)) = boxes.quota(&hosted.key).map(|quota| quota.run(Instant::now()))
    {
        return refused(Refused::new(StatusCode::TOO_MANY_REQUESTS, error.message));
    }
    let allowance = boxes.allowance_of_key(&hosted.key);
    let Some(place) = allowance.place() else { return refused(Refused::no_room()) };
    let holds = (holds, place, allowance.clone(), awake.clone());
    let (head, body) = request.into_parts();
    let (path, headers) = (head.uri.path(), &head.headers);
    let asked = Asked { hosted: &hosted, sandbox, allowance: &allowance, body };
    if port == INTERPRETER {
        let answered = interpreter::answer(asked, &head.method, path, holds).await;
        let answered = answered.unwrap_or_else(IntoResponse::into_response);
        return Outcome::Answer(unread::within(answered, &allowance));
    }
    let call = path.strip_prefix('/').and_then(|path| path.split_once('/'));
    let answered = match (head.method.as_str(), call, path) {
        ("POST", Some(("process.Process", method)), _) => {
            processes::answer(asked, method, headers, holds).await
        }
        ("POST", Some(("filesystem.Filesystem", method)), _) => {
            filesystem::answer(asked, method, headers, holds).await
        }
        (_, _, "/files") => transfer::answer(asked, &head.method, headers, &query, holds)
            .await
            .unwrap_or_else(IntoResponse::into_response),
        ("GET", _, "/health") => empty(StatusCode::NO_CONTENT),
        ("GET", _, "/metrics") => json_page(StatusCode::OK, &agent_metrics(&hosted).await),
        ("GET", _, "/envs") => json_page(StatusCode::OK, &json!(envs(&hosted))),
        _ => Refused::new(StatusCode::NOT_FOUND, "not found").into_response(),
    };
    Outcome::Answer(unread::within(answered, &allowance))
}

/// Whether a request to a sandbox counts as a run for the quota of its tenant.
fn starts_something(path: &str) -> bool {
    matches!(path, "/process.Process/Start" | "/execute")
}

fn refused(refused: Refused) -> Outcome {
    Outcome::Answer(refused.into_response())
}

/// Whether the request has the secret that this port asks for.
fn may_use(hosted: &Hosted, port: u16, request: &Request, query: &Query) -> bool {
    let headers = request.headers();
    let has = |name: &str, secret: &str| {
        field(headers, name).is_some_and(|given| is_same(given.as_bytes(), secret.as_bytes()))
    };
    let path = request.uri().path();
    match port {
        AGENT if path == "/health" => true,
        AGENT if path == "/files" && transfer::is_signed(hosted, query, request.method()) => true,
        AGENT => has("x-access-token", &hosted.token),
        INTERPRETER => {
            has("x-access-token", &hosted.token) || has("e2b-traffic-access-token", &hosted.traffic)
        }
        _ => hosted.described.public || has("e2b-traffic-access-token", &hosted.traffic),
    }
}

/// Takes the same time for a nearly correct secret as for a completely wrong one.
pub(crate) fn is_same(given: &[u8], secret: &[u8]) -> bool {
    let differing = given.iter().zip(secret).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == secret.len() && differing == 0
}

async fn agent_metrics(hosted: &Hosted) -> serde_json::Value {
    let metric = hosted.metric().await;
    json!({
        "ts": metric["timestampUnix"],
        "cpu_count": metric["cpuCount"],
        "cpu_used_pct": metric["cpuUsedPct"],
        "mem_total": metric["memTotal"],
        "mem_used": metric["memUsed"],
        "disk_used": metric["diskUsed"],
        "disk_total": metric["diskTotal"],
    })
}

fn envs(hosted: &Hosted) -> std::collections::BTreeMap<String, String> {
    hosted.described.env.iter().cloned().collect()
}

/// Whether a request without the server's token may pass: it has to show a sandbox's own secret further on.
pub(crate) fn needs_no_token(way: &Way) -> bool {
    matches!(way, Way::Sandbox { .. } | Way::Signed)
}

/// A refusal in the words of the control plane.
pub(crate) fn unauthorized() -> Response {
    Refused::new(StatusCode::UNAUTHORIZED, "the key is not known: X-API-KEY must be this server's token")
        .into_response()
}
