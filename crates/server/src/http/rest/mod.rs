//! `/v1/…`: the methods of the protocol as a REST interface. Which path is which method is in the contract; what a method does
//! is in `methods`, as for every other client.
//!
//! ```text
//!  request ─► params from body, query and path ─► methods::prepare ─► the work ─► JSON, or events
//! ```

mod events;
mod hosts;

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{RawPathParams, Request, State};
use axum::http::{Method as Verb, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, get, on, put};
use axum::{Extension, Router};
use serde_json::{Map, Value, json};
use wardian_contract::methods::{METHODS, Method, Route};

pub(super) use hosts::Hosts;

use hosts::Host;

use super::connections::Seat;
use super::guard::Caller;
use super::{Site, page, refusal};
use crate::budget::LARGE;
use crate::connection::{carry_out, written};
use crate::e2b::{Allowance, Query, Refused, object, with_room};
use crate::entry::Entry;
use crate::methods::{self, Answer, Job, Task, Written, date};
use crate::params::Params;
use crate::rpc::{self, METHOD_NOT_FOUND, RpcError};
use crate::session::Session;
use crate::trace::Trace;

/// The longest body, as the longest line of a client of the socket.
const BODY: usize = 8 << 20;
/// What takes a connection, on which the server can call its client.
const NEEDS_A_CONNECTION: [&str; 2] = ["extensions", "storage"];

/// Adds all paths.
pub(super) fn routes(mut router: Router<Arc<Site>>) -> Router<Arc<Site>> {
    for method in METHODS {
        let Some(route) = method.route else { continue };
        let scalars = Arc::new(method.scalars());
        let handler = move |State(site): State<Arc<Site>>,
                            Extension(seat): Extension<Arc<Seat>>,
                            Extension(caller): Extension<Caller>,
                            path: RawPathParams,
                            request: Request| {
            let scalars = scalars.clone();
            async move {
                let kept = match (seat.keep_owned(), site.boxes.requests.clone().try_acquire_owned()) {
                    (Some(seat), Ok(place)) => (seat, place),
                    _ => return refused(&Refused::no_room()),
                };
                let call = Call { site: &site, method, route, scalars: &scalars, caller: &caller };
                call.answer(path, request, kept).await.unwrap_or_else(|refusal| refused(&refusal))
            }
        };
        let filter = Verb::from_str(route.verb).ok().and_then(|verb| MethodFilter::try_from(verb).ok());
        router = router.route(route.path, on(filter.unwrap_or(MethodFilter::POST), handler));
    }
    router
        .route("/openapi.json", get(openapi))
        .route("/v1/sandboxes", get(list))
        .route("/v1/sandboxes/{sandbox}", get(show).delete(destroy))
        .route("/v1/sandboxes/{sandbox}/lifetime", put(set_lifetime))
        .route("/v1/sandboxes/{sandbox}/processes/{processId}/output", get(events::output))
}

async fn openapi() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(wardian_contract::pages::openapi);
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT.as_str()).into_response()
}

async fn list(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let listed = || {
        takes_nothing(&request)?;
        let shown: Vec<Value> = site.hosts.all_of(&caller.owner).iter().map(|host| host.shown()).collect();
        Ok(page(StatusCode::OK, &json!({ "sandboxes": shown })))
    };
    listed().unwrap_or_else(|refusal: Refused| refused(&refusal))
}

async fn show(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    path: RawPathParams,
    request: Request,
) -> Response {
    let shown = || {
        takes_nothing(&request)?;
        let id = param(&path, "sandbox");
        let (host, fork) = find(&site, &caller, id)?;
        let mut shown = host.shown();
        if let Some(entry) = fork.and_then(|fork| host.session.entry(Some(&fork)).ok()) {
            shown["sandboxId"] = id.into();
            shown["createdAt"] = date(entry.created).into();
        }
        Ok(page(StatusCode::OK, &shown))
    };
    shown().unwrap_or_else(|refusal: Refused| refused(&refusal))
}

/// Destroys a sandbox with its forks, or one of its forks.
async fn destroy(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    path: RawPathParams,
    request: Request,
) -> Response {
    let allowed = takes_nothing(&request);
    drop(request);
    let destroyed = async {
        allowed?;
        let (host, fork) = find(&site, &caller, param(&path, "sandbox"))?;
        match fork {
            None => site.hosts.destroy(host).await,
            Some(fork) => {
                let gone = host.session.remove(&fork, |_| true).map_err(|error| of_rpc(&error))?;
                // To its end, also if the client does not wait for that.
                let _ = tokio::spawn(async move { gone.end().await }).await;
            }
        }
        Ok(page(StatusCode::OK, &json!({ "ok": true })))
    };
    destroyed.await.unwrap_or_else(|refusal: Refused| refused(&refusal))
}

/// Refuses by name what would be ignored.
fn takes_nothing(request: &Request) -> Result<(), Refused> {
    if let Some((name, _)) = Query::parse(request.uri().query().unwrap_or_default()).pairs().next() {
        return Err(Refused::bad(format!("Unknown param: {}", shown(name))));
    }
    has_no_body(request.body())
}

/// Refuses a body where params are in the query.
fn has_no_body(body: &Body) -> Result<(), Refused> {
    match body.is_end_stream() {
        true => Ok(()),
        false => Err(Refused::bad("params are in the query here, not in the body")),
    }
}

async fn set_lifetime(
    State(site): State<Arc<Site>>,
    Extension(caller): Extension<Caller>,
    path: RawPathParams,
    request: Request,
) -> Response {
    let set = async {
        let (host, fork) = find(&site, &caller, param(&path, "sandbox"))?;
        if fork.is_some() {
            return Err(Refused::bad("a fork ends with the sandbox that it comes from"));
        }
        let allowance = site.boxes.allowance(&caller.owner);
        let mut fields = object(&allowance, request.into_body(), 1 << 10).await?.fields;
        let lifetime = lifetime(&mut fields)?.ok_or_else(|| Refused::bad("lifetimeMs is missing"))?;
        if let Some(name) = fields.keys().next() {
            return Err(Refused::bad(format!("Unknown param: {}", shown(name))));
        }
        host.live_for(lifetime);
        Ok(page(StatusCode::OK, &host.shown()))
    };
    set.await.unwrap_or_else(|refusal| refused(&refusal))
}

/// Reads `lifetimeMs`.
fn lifetime(fields: &mut Map<String, Value>) -> Result<Option<Duration>, Refused> {
    let most = hosts::LONGEST.as_millis() as u64;
    match fields.remove("lifetimeMs") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|ms| (1..=most).contains(ms)) {
            Some(ms) => Ok(Some(Duration::from_millis(ms))),
            None => Err(Refused::bad(format!("lifetimeMs must be a whole number from 1 to {most}"))),
        },
    }
}

fn param<'p>(path: &'p RawPathParams, name: &str) -> &'p str {
    path.iter().find(|(other, _)| *other == name).map_or("", |(_, value)| value)
}

/// Returns the sandbox of `ID`, or of `ID.N`, and N.
fn find(site: &Site, caller: &Caller, id: &str) -> Result<(Arc<Host>, Option<String>), Refused> {
    let unknown = || Refused::new(StatusCode::NOT_FOUND, format!("Unknown sandboxId: {}", shown(id)));
    let (host, fork) = id.split_once('.').map_or((id, None), |(host, fork)| (host, Some(fork)));
    let host = site.hosts.of(&caller.owner, host).ok_or_else(unknown)?;
    match fork {
        Some(fork) if host.session.entry(Some(fork)).is_err() => Err(unknown()),
        fork => Ok((host, fork.map(str::to_owned))),
    }
}

/// One request.
struct Call<'c> {
    site: &'c Arc<Site>,
    method: &'static Method,
    route: Route,
    scalars: &'c BTreeMap<String, String>,
    caller: &'c Caller,
}

impl Call<'_> {
    /// Answers it. What it `holds` it has until the answer is sent.
    async fn answer<H: Unpin + Send + 'static>(
        &self,
        path: RawPathParams,
        request: Request,
        holds: H,
    ) -> Result<Response, Refused> {
        let allowance = self.site.boxes.allowance(&self.caller.owner);
        let place = allowance.place().ok_or_else(Refused::no_room)?;
        let wants_events = self.route.streams && accepts_events(&request);
        let (mut fields, size) = self.fields(&allowance, &path, request).await?;
        let keeping = allowance.keep(size).ok_or_else(Refused::no_room)?;
        let holds = (holds, place, keeping, allowance.clone());
        if self.method.name == "create" {
            return self.create(&allowance, fields).await;
        }
        if self.method.name == "capabilities" {
            let (session, _) = hosts::session(&self.site.shared, self.caller, &allowance);
            let answer = run(&session, self.method.name, None, fields).await?;
            return respond(&session, answer, holds).await;
        }
        let (host, fork) = find(self.site, self.caller, param(&path, "sandbox"))?;
        if let Some(fork) = &fork {
            fields.insert("sandboxId".into(), fork.as_str().into());
        }
        if wants_events {
            return events::answer(host, self.method.name, fork.as_deref(), fields, holds).await;
        }
        let id = host.request();
        let _cancels = self.route.streams.then(|| Cancels::new(&host.session, fork.as_deref(), &id));
        let mut answer = run(&host.session, self.method.name, Some(id), fields).await?;
        if let (Answer::Value(value), "sandbox.fork") = (&mut answer, self.method.name) {
            rename_forks(value, &host.id);
        }
        respond(&host.session, answer, holds).await
    }

    /// Reads the params: from the body or the query, and from the path.
    async fn fields(
        &self,
        allowance: &Allowance,
        path: &RawPathParams,
        request: Request,
    ) -> Result<(Map<String, Value>, usize), Refused> {
        let (head, body) = request.into_parts();
        let mut fields = Map::new();
        if matches!(self.route.verb, "GET" | "DELETE") {
            has_no_body(&body)?;
            for (name, value) in Query::parse(head.uri.query().unwrap_or_default()).pairs() {
                if fields.insert(name.to_owned(), self.scalar(name, value)).is_some() {
                    return Err(Refused::bad(format!("{} is given twice", shown(name))));
                }
            }
        } else if head.uri.query().is_some_and(|query| !query.is_empty()) {
            return Err(Refused::bad("params are in the body here, not in the query"));
        } else {
            fields = object(allowance, body, BODY).await?.fields;
        }
        let in_path = path.iter().filter(|(name, _)| *name != "sandbox");
        for (name, value) in in_path {
            if fields.insert(name.to_owned(), self.scalar(name, value)).is_some() {
                return Err(Refused::bad(format!("{name} is in the path")));
            }
        }
        if fields.contains_key("sandboxId") {
            return Err(Refused::bad("sandboxId: the sandbox is in the path"));
        }
        let size = fields.values().map(rpc::length).sum();
        Ok((fields, size))
    }

    /// Returns what a text of the query or the path means.
    fn scalar(&self, name: &str, text: &str) -> Value {
        let json = || serde_json::from_str(text).ok().filter(|value: &Value| !value.is_string());
        match self.scalars.get(name).map(String::as_str) {
            Some("integer" | "number" | "boolean") => json().unwrap_or_else(|| text.into()),
            _ => text.into(),
        }
    }

    /// Creates a sandbox of the token. It is carried through: a client that does not wait finds it in the list.
    async fn create(
        &self,
        allowance: &Allowance,
        mut fields: Map<String, Value>,
    ) -> Result<Response, Refused> {
        let lifetime = lifetime(&mut fields)?.unwrap_or(hosts::LIFETIME);
        refuse_what_needs_a_connection(&fields)?;
        let hosts = self.site.hosts.clone();
        let host =
            hosts.add(&self.caller.owner, hosts::session(&self.site.shared, self.caller, allowance))?;
        let creating = tokio::spawn(async move {
            let created = run(&host.session, "create", Some(host.request()), fields).await;
            match created {
                Ok(_) => {
                    host.live_for(lifetime);
                    Ok(page(StatusCode::CREATED, &host.shown()))
                }
                Err(refusal) => {
                    hosts.destroy(host).await;
                    Err(refusal)
                }
            }
        });
        creating.await.unwrap_or_else(|_| Err(of_rpc(&RpcError::internal("the server is shutting down"))))
    }
}

/// Refuses by name what would be ignored here.
fn refuse_what_needs_a_connection(fields: &Map<String, Value>) -> Result<(), Refused> {
    let given = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
    let nested = [("network", "onRequest"), ("limits", "rpcBytes")];
    let mut wrong = NEEDS_A_CONNECTION.iter().map(|name| (fields.get(*name), (*name).to_owned())).chain(
        nested.iter().map(|(outer, inner)| {
            (fields.get(*outer).and_then(|value| value.get(inner)), format!("{outer}.{inner}"))
        }),
    );
    if let Some((_, name)) = wrong.find(|(value, _)| value.is_some_and(given)) {
        return Err(Refused::bad(format!(
            "{name}: only over a connection (WebSocket at /rpc, socket, stdio)"
        )));
    }
    if fields.get("stateToken").is_some_and(given) {
        return Err(Refused::bad("stateToken: by HTTP the bearer token stands for what is yours"));
    }
    Ok(())
}

/// Carries out a method to its end, whether or not the client stays.
async fn run(
    session: &Arc<Session>,
    method: &'static str,
    id: Option<String>,
    fields: Map<String, Value>,
) -> Result<Answer, Refused> {
    let (task, trace) = prepare(session, method, id, fields).await.map_err(|error| of_rpc(&error))?;
    let session = session.clone();
    let Task { work, hold } = task;
    let done = tokio::spawn(async move {
        let answer = carry_out(&session, work, trace).await;
        drop(hold);
        answer
    });
    let done = done.await.unwrap_or_else(|_| Err(RpcError::internal("the server is shutting down")));
    done.map_err(|error| of_rpc(&error))
}

/// Takes the turn of a request. Params take as long to read as they are: many of them are read where others do not wait.
async fn prepare(
    session: &Arc<Session>,
    method: &'static str,
    id: Option<String>,
    fields: Map<String, Value>,
) -> Result<(Task, Trace), RpcError> {
    let is_long = fields.values().map(rpc::length).sum::<usize>() > LARGE;
    let asked = session.clone();
    let reading = move || prepare_now(&asked, method, id, fields);
    if is_long { session.aside(reading).await? } else { reading() }
}

fn prepare_now(
    session: &Arc<Session>,
    method: &'static str,
    id: Option<String>,
    fields: Map<String, Value>,
) -> Result<(Task, Trace), RpcError> {
    let params = Params::new(fields);
    let id = id.map(Value::String);
    let metrics = session.shared.metrics.clone();
    let trace = Trace::new(metrics, session.client, id.as_ref(), method, params.peek("sandboxId"));
    match methods::prepare(session, id.as_ref(), method, params) {
        Ok(Job::AtOnce(task) | Job::InTurn(task)) => Ok((task, trace)),
        Ok(Job::Kill) => Err(RpcError::new(METHOD_NOT_FOUND, "not by HTTP")),
        Err(error) => {
            trace.refused(&error);
            Err(error)
        }
    }
}

/// Cancels a run whose client has gone.
struct Cancels {
    entry: Option<Arc<Entry>>,
    id: Value,
}

impl Cancels {
    fn new(session: &Arc<Session>, fork: Option<&str>, id: &str) -> Cancels {
        Cancels { entry: session.entry(fork).ok(), id: id.into() }
    }
}

impl Drop for Cancels {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            // One that has ended is not there any more.
            entry.cancel(Some(&self.id));
        }
    }
}

/// Sends an answer. Its room is held until it is read, or given up.
async fn respond(session: &Session, answer: Answer, holds: impl Send + 'static) -> Result<Response, Refused> {
    let Written { json, room } = written(session, answer).await.map_err(|error| of_rpc(&error))?;
    let length = json.len();
    Ok(with_room(json_response(StatusCode::OK, json.into()), length, room, holds))
}

fn json_response(status: StatusCode, body: Body) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
    (status, headers, body).into_response()
}

/// Gives forks the names that they have here.
fn rename_forks(answer: &mut Value, host: &str) {
    let rename = |id: &mut Value| {
        if let Some(number) = id.as_str() {
            *id = format!("{host}.{number}").into();
        }
    };
    rename(&mut answer["sandboxId"]);
    if let Some(ids) = answer.get_mut("sandboxIds").and_then(Value::as_array_mut) {
        ids.iter_mut().for_each(rename);
    }
}

fn accepts_events(request: &Request) -> bool {
    let accepted =
        request.headers().get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("text/event-stream"))
    })
}

/// Returns the beginning of a name from a client.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn refused(refused: &Refused) -> Response {
    refusal(refused.status, &refused.code(), &refused.message)
}

/// What HTTP calls a failure of the protocol.
fn of_rpc(error: &RpcError) -> Refused {
    let status = match (error.code, error.errno()) {
        (_, Some("ENOENT" | "ESRCH")) => StatusCode::NOT_FOUND,
        (_, Some("EACCES" | "EPERM" | "EROFS")) => StatusCode::FORBIDDEN,
        (_, Some("EBUSY" | "EEXIST")) => StatusCode::CONFLICT,
        (_, Some("EFBIG" | "E2BIG")) => StatusCode::PAYLOAD_TOO_LARGE,
        (_, Some("ENOSPC" | "EDQUOT" | "ENOMEM")) => StatusCode::INSUFFICIENT_STORAGE,
        (_, Some("EAGAIN" | "ENFILE" | "EMFILE")) => StatusCode::TOO_MANY_REQUESTS,
        (_, Some("ENOTSUP")) => StatusCode::NOT_IMPLEMENTED,
        (_, Some("EIO")) | (rpc::INTERNAL_ERROR, None) => StatusCode::INTERNAL_SERVER_ERROR,
        _ if error.message.starts_with("Maximum of ") => StatusCode::TOO_MANY_REQUESTS,
        _ if error.message.starts_with("Unknown ") && !error.message.starts_with("Unknown param:") => {
            StatusCode::NOT_FOUND
        }
        _ => StatusCode::BAD_REQUEST,
    };
    Refused::new(status, error.message.clone())
}
