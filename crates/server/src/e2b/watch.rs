//! Watching a directory (`watching`) for E2B's SDKs: events that are fetched, or streamed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::response::Response;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use wardian::Sandbox;

use super::Asked;
use super::allowance::Allowance;
use super::filesystem::{self, FEW};
use super::hosted::Hosted;
use super::rpc::{self, RpcFailure, path, text};
use super::stream::{Pieces, streamed};
use crate::watching::{Event, PAUSE, Pace, Seen, What, compare};

/// How many watchers a sandbox may have, and how many streams.
const WATCHERS: usize = 64;

/// The watchers of a sandbox, by id.
#[derive(Default)]
pub(super) struct Watchers {
    table: Mutex<(u64, BTreeMap<String, Arc<Watcher>>)>,
    streams: Arc<()>,
    pace: Arc<Pace>,
}

struct Watcher {
    path: String,
    depth: usize,
    pace: Arc<Pace>,
    seen: tokio::sync::Mutex<Arc<Seen>>,
}

/// Looks at a directory, and says what is wrong as it is said here.
async fn look(pace: &Pace, sandbox: &Sandbox, path: &str, depth: usize) -> Result<Arc<Seen>, RpcFailure> {
    pace.look(sandbox, path.as_bytes(), depth).await.map_err(|error| filesystem::unlisted(path, error))
}

impl Watcher {
    async fn read(
        sandbox: &Sandbox,
        watchers: &Watchers,
        message: &Map<String, Value>,
    ) -> Result<Watcher, RpcFailure> {
        let path = path(message, "path")?;
        for name in ["includeEntry", "allowNetworkMounts"] {
            if message.get(name) == Some(&Value::Bool(true)) {
                return Err(RpcFailure::new("unimplemented", format!("{name} is not supported")));
            }
        }
        let recursive = message.get("recursive").and_then(Value::as_bool).unwrap_or(false);
        let depth = if recursive { 4096 } else { 1 };
        let pace = watchers.pace.clone();
        let seen = tokio::sync::Mutex::new(look(&pace, sandbox, &path, depth).await?);
        Ok(Watcher { path, depth, pace, seen })
    }

    /// Returns what has changed since it last looked, as JSON.
    async fn changes(&self, sandbox: &Sandbox, allowance: &Allowance) -> Result<Vec<Value>, RpcFailure> {
        let mut seen = self.seen.lock().await;
        let now = look(&self.pace, sandbox, &self.path, self.depth).await?;
        let (before, path) = (std::mem::replace(&mut *seen, now.clone()), self.path.clone());
        let all = move || compare(&before, &now).map(|event| shown(&event, &path)).collect();
        if seen.len() <= FEW {
            return Ok(all());
        }
        let all = allowance.turn().await?.run(all).await;
        all.map_err(|error| RpcFailure::new("internal", error.message))
    }
}

/// An event below a directory, as JSON.
fn shown(event: &Event<'_>, directory: &str) -> Value {
    let kind = match event.what {
        What::Create => "CREATE",
        What::Write => "WRITE",
        What::Remove => "REMOVE",
        What::Rename => "RENAME",
        What::Chmod => "CHMOD",
    };
    json!({ "name": crate::params::text(event.below(directory.as_bytes())), "type": format!("EVENT_TYPE_{kind}") })
}

pub(super) async fn create(
    hosted: &Hosted,
    sandbox: &Sandbox,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let watcher = Arc::new(Watcher::read(sandbox, &hosted.watchers, message).await?);
    let mut table = hosted.watchers.table.lock();
    if table.1.len() >= WATCHERS {
        return Err(RpcFailure::new("resource_exhausted", format!("a sandbox may have {WATCHERS} watchers")));
    }
    table.0 += 1;
    let id = format!("w{}", table.0);
    table.1.insert(id.clone(), watcher);
    Ok(json!({ "watcherId": id }))
}

pub(super) async fn events(
    hosted: &Hosted,
    sandbox: &Sandbox,
    allowance: &Allowance,
    message: &Map<String, Value>,
) -> Result<Value, RpcFailure> {
    let id = text(message, "watcherId").unwrap_or_default();
    let watcher = hosted.watchers.table.lock().1.get(id).cloned();
    let watcher = watcher.ok_or_else(|| RpcFailure::missing("watcher not found"))?;
    Ok(json!({ "events": watcher.changes(sandbox, allowance).await? }))
}

pub(super) fn remove(hosted: &Hosted, message: &Map<String, Value>) -> Result<Value, RpcFailure> {
    let id = text(message, "watcherId").unwrap_or_default();
    let removed = hosted.watchers.table.lock().1.remove(id);
    removed.map(|_| json!({})).ok_or_else(|| RpcFailure::missing("watcher not found"))
}

pub(super) async fn stream<H: Unpin + Send + 'static>(
    asked: Asked<'_>,
    headers: &HeaderMap,
    holds: H,
) -> Response {
    let Asked { hosted, sandbox, allowance, body } = asked;
    let place = hosted.watchers.streams.clone();
    let opened = async {
        rpc::as_root(headers)?;
        // The table's own is one.
        if Arc::strong_count(&place) > WATCHERS + 1 {
            return Err(RpcFailure::new(
                "resource_exhausted",
                format!("a sandbox may have {WATCHERS} watchers"),
            ));
        }
        let message = rpc::first_frame(allowance, body).await?;
        Watcher::read(&sandbox, &hosted.watchers, &message).await
    };
    match opened.await {
        Err(failure) => rpc::failed_stream(&failure),
        Ok(watcher) => {
            let (pieces, body) = streamed((holds, place));
            let (timeout, keepalive) = (rpc::timeout(headers), rpc::keepalive(headers));
            tokio::spawn(watcher.tell(sandbox, pieces, timeout, keepalive));
            rpc::stream(body)
        }
    }
}

impl Watcher {
    async fn tell(
        mut self,
        sandbox: Sandbox,
        pieces: Pieces,
        timeout: Option<Duration>,
        keepalive: Duration,
    ) {
        if !rpc::send(&pieces, &json!({ "start": {} })).await {
            return;
        }
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut alive = Instant::now() + keepalive;
        loop {
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                let late = RpcFailure::new("deadline_exceeded", "the timeout has passed");
                return rpc::finish(&pieces, Some(&late)).await;
            }
            tokio::select! {
                () = pieces.closed() => return,
                () = tokio::time::sleep(PAUSE) => {}
            }
            let now = match look(&self.pace, &sandbox, &self.path, self.depth).await {
                Ok(now) => now,
                // The directory itself is gone: nothing more will happen in it.
                Err(failure) if failure.code == "not_found" => return rpc::finish(&pieces, None).await,
                Err(failure) => return rpc::finish(&pieces, Some(&failure)).await,
            };
            let before = std::mem::replace(self.seen.get_mut(), now.clone());
            if Instant::now() >= alive {
                alive = Instant::now() + keepalive;
                if !rpc::send(&pieces, &json!({ "keepalive": {} })).await {
                    return;
                }
            }
            // One at a time: a client that does not read has no more of them waiting.
            for event in compare(&before, &now) {
                if !rpc::send(&pieces, &json!({ "filesystem": shown(&event, &self.path) })).await {
                    return;
                }
            }
        }
    }
}
