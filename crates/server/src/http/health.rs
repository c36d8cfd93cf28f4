//! `/health` and `/ready`: for whoever restarts the server, and for whoever sends it work.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::{Value, json};
use wardian_hosttools::Stats;

use super::{Site, page};

/// For those who do not know the token: that it answers, and nothing else.
pub(super) fn alive(site: &Site) -> Response {
    page(StatusCode::OK, &json!({ "status": status(site) }))
}

fn status(site: &Site) -> &'static str {
    if site.stopping.load(Ordering::SeqCst) { "stopping" } else { "ok" }
}

/// That it answers at all is the news; the rest says how busy it is.
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

/// Whether work sent now would be taken.
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
    /// The pool behind the door. Children are counted in `/proc`, which must not keep the runtime waiting.
    pub(super) async fn tool_stats(&self) -> Option<Stats> {
        let door = self.http.door.clone()?;
        tokio::task::spawn_blocking(move || door.stats()).await.ok().flatten()
    }
}
