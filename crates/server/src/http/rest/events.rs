//! Answers as server-sent events: what a run or a process writes, as it is written, and last how it ended.
//!
//! A run whose client goes away is cancelled; a process stays, and what it writes while nobody listens is dropped.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{RawPathParams, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::hosts::Host;
use super::{Cancels, Site, find, of_rpc, param, prepare, refused, takes_nothing};
use crate::connection::{carry_out, written};
use crate::e2b::{Pieces, Refused, streamed};
use crate::http::connections::Seat;
use crate::http::guard::Caller;
use crate::methods::{Answer, Task, Written};
use crate::outbox::Notification;
use crate::rpc::RpcError;

/// How much of a result is sent at once, and how long it may take: so long, and a second more for each piece.
const PIECE: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(30);

/// Answers a request for which the client wants events.
pub(super) async fn answer<H: Unpin + Send + 'static>(
    host: Arc<Host>,
    method: &'static str,
    fork: Option<&str>,
    mut fields: Map<String, Value>,
    holds: H,
) -> Result<Response, Refused> {
    let id = host.request();
    if method != "process.start" {
        if fields.contains_key("stream") {
            return Err(Refused::bad("stream: events are a stream already"));
        }
        fields.insert("stream".into(), true.into());
    }
    let heard = host.listeners.to_run(&id);
    let cancels = (method != "process.start").then(|| Cancels::new(&host.session, fork, &id));
    let (task, trace) =
        prepare(&host.session, method, Some(id), fields).await.map_err(|error| of_rpc(&error))?;
    let (pieces, body) = streamed(holds);
    tokio::spawn(async move {
        let Task { work, hold } = task;
        let session = host.session.clone();
        let working = tokio::spawn(async move { carry_out(&session, work, trace).await });
        if method == "process.start" {
            let started = working.await;
            let Some(id) = told_of_start(started, &pieces).await else { return };
            let heard = host.listeners.to_process(&id);
            // Only now it begins to write.
            drop(hold);
            return process(&host, &id, heard, &pieces).await;
        }
        let ended = async { working.await.ok() };
        match until(ended, heard, &pieces).await.flatten() {
            Some(Ok(result)) => send_result(&host, result, &pieces).await,
            Some(Err(error)) => send_error(&pieces, &error).await,
            None => {}
        }
        drop((cancels, hold));
    });
    Ok(stream(body))
}

/// Tells how a process was started; returns its id.
async fn told_of_start(
    started: Result<Result<Answer, RpcError>, tokio::task::JoinError>,
    pieces: &Pieces,
) -> Option<String> {
    match started {
        Ok(Ok(Answer::Value(started))) => {
            send(pieces, "started", &started).await;
            started["processId"].as_str().map(str::to_owned)
        }
        Ok(Err(error)) => {
            send_error(pieces, &error).await;
            None
        }
        _ => None,
    }
}

/// `GET …/processes/ID/output`: what a process writes from now on, and how it ends.
pub(super) async fn output(
    State(site): State<Arc<Site>>,
    Extension(seat): Extension<Arc<Seat>>,
    Extension(caller): Extension<Caller>,
    path: RawPathParams,
    request: Request,
) -> Response {
    let listening = || {
        takes_nothing(&request)?;
        let (host, _) = find(&site, &caller, param(&path, "sandbox"))?;
        let id = param(&path, "processId").to_owned();
        host.session.processes.get(&id).map_err(|error| of_rpc(&error))?;
        let allowance = site.boxes.allowance(&caller.owner);
        let own = allowance.place().ok_or_else(Refused::no_room)?;
        let place = site.boxes.requests.clone().try_acquire_owned().map_err(|_| Refused::no_room())?;
        let (pieces, body) = streamed((place, own, allowance, seat.keep_owned()));
        tokio::spawn(async move {
            let heard = host.listeners.to_process(&id);
            process(&host, &id, heard, &pieces).await;
        });
        Ok(stream(body))
    };
    listening().unwrap_or_else(|refusal| refused(&refusal))
}

/// Tells what a process writes, up to its end.
async fn process(host: &Host, id: &str, heard: mpsc::Receiver<Notification>, pieces: &Pieces) {
    let Ok(handle) = host.session.processes.get(id) else { return };
    if let Some(Ok(end)) = until(handle.wait(), heard, pieces).await {
        send(pieces, "exit", &end).await;
    }
}

/// Passes on what is heard until something has happened; returns nothing if the client has gone first.
async fn until<T>(
    end: impl Future<Output = T>,
    mut heard: mpsc::Receiver<Notification>,
    pieces: &Pieces,
) -> Option<T> {
    let mut end = std::pin::pin!(end);
    let ended = loop {
        tokio::select! {
            biased;
            Some(notification) = heard.recv() => {
                if !pass_on(pieces, notification).await {
                    return None;
                }
            }
            ended = &mut end => break ended,
            () = pieces.closed() => return None,
        }
    };
    // All of it was put there before the end.
    while let Ok(notification) = heard.try_recv() {
        pass_on(pieces, notification).await;
    }
    Some(ended)
}

async fn pass_on(pieces: &Pieces, (method, mut params): Notification) -> bool {
    if method == "process.exit" {
        return true;
    }
    if let Some(params) = params.as_object_mut() {
        params.remove("request_id");
        params.remove("processId");
    }
    send(pieces, "output", &params).await
}

/// Sends one event; `false` if nobody is there.
async fn send(pieces: &Pieces, event: &str, data: &Value) -> bool {
    pieces.send(Bytes::from(format!("event: {event}\ndata: {data}\n\n"))).await.is_ok()
}

/// Sends the result of a run, which can be long: within room of the token's, and piece by piece.
async fn send_result(host: &Host, result: Answer, pieces: &Pieces) {
    match written(&host.session, result).await {
        Ok(Written { json, room: _room }) => {
            let patience = PATIENCE + Duration::from_secs((json.len() / PIECE) as u64);
            let sending = async {
                let parts: [&[u8]; 3] = [&b"event: result\ndata: "[..], &json, b"\n\n"];
                for piece in parts.iter().flat_map(|part| part.chunks(PIECE)) {
                    if pieces.send(Bytes::copy_from_slice(piece)).await.is_err() {
                        return;
                    }
                }
            };
            // A client that does not read returns its memory.
            let _ = tokio::time::timeout(patience, sending).await;
        }
        Err(error) => send_error(pieces, &error).await,
    }
}

async fn send_error(pieces: &Pieces, error: &RpcError) {
    let refused = of_rpc(error);
    send(pieces, "error", &json!({ "code": refused.code(), "message": refused.message })).await;
}

fn stream(body: axum::body::Body) -> Response {
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-store")];
    (StatusCode::OK, headers, body).into_response()
}
