//! `/health` and `/ready`: for whatever restarts the server, and for whatever sends it work.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use wardian_hosttools::Stats;

use super::{Site, page};

/// For clients without the token: only that the server responds.
pub(super) fn alive(site: &Site) -> Response {
    page(StatusCode::OK, &json!({ "status": status(site) }))
}

fn status(site: &Site) -> &'static str {
    if site.stopping.load(Ordering::SeqCst) { "stopping" } else { "ok" }
}

/// What matters is that it responds at all; the rest says how busy it is.
pub(super) async fn health(State(site): State<Arc<Site>>) -> Response {
    let stats = site.tool_stats().await;
    let mut health = json!({
        "status": status(&site),
        "version": env!("CARGO_PKG_VERSION"),
        "uptimeSeconds": site.started.elapsed().as_secs(),
        "sandboxes": wardian::live_sandboxes(),
        "children": stats.as_ref().map_or(0, |stats| stats.children),
        "workerPool": stats.as_ref().map_or(Value::Null, worker_pool),
    });
    if let Some(warning) = stats.and_then(|stats| stats.warning) {
        health["warning"] = json!(warning);
    }
    page(StatusCode::OK, &health)
}

fn worker_pool(stats: &Stats) -> Value {
    let (interactive, system) = (&stats.interactive, &stats.system);
    json!({
        "interactive": { "active": interactive.active, "idle": interactive.idle, "queued": interactive.queued },
        "system": { "active": system.active, "queued": system.queued },
        "totals": stats.totals,
    })
}

/// Returns whether work sent now would be accepted.
pub(super) async fn ready(State(site): State<Arc<Site>>) -> Response {
    let why_not = if site.stopping.load(Ordering::SeqCst) {
        Some("stopping")
    } else if !site.ready.load(Ordering::SeqCst) {
        Some("starting")
    } else {
        None
    };
    match why_not {
        None => page(StatusCode::OK, &json!({ "ready": true })),
        Some(reason) => page(StatusCode::SERVICE_UNAVAILABLE, &json!({ "ready": false, "reason": reason })),
    }
}

impl Site {
    /// The gateway's pool. Children are counted in `/proc`, which must not block the runtime.
    pub(super) async fn tool_stats(&self) -> Option<Stats> {
        let door = self.http.door.clone()?;
        tokio::task::spawn_blocking(move || door.stats()).await.ok().flatten()
    }
}
