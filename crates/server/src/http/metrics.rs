//! `/metrics`: the same numbers for Prometheus.

use std::fmt::{Display, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use wardian_hosttools::{LaneStats, Stats};

use super::Site;

pub(super) async fn metrics(State(site): State<Arc<Site>>) -> Response {
    let mut text = Text::default();
    text.family("wardian_build_info", "gauge", "Which version this is.");
    text.sample("wardian_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    text.alone(
        "wardian_uptime_seconds",
        "gauge",
        "Since the server was started.",
        site.started.elapsed().as_secs(),
    );
    text.alone("wardian_sandboxes", "gauge", "Sandboxes alive.", wardian::live_sandboxes());
    if let Some(bytes) = resident_bytes() {
        text.alone(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the server, its sandboxes included.",
            bytes,
        );
    }
    if let Some(stats) = site.tool_stats().await {
        text.tools(&stats);
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text.0).into_response()
}

/// The text format: each family of samples after its help and type.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        match labels.as_slice() {
            [] => self.line(format_args!("{name} {value}")),
            labels => self.line(format_args!("{name}{{{}}} {value}", labels.join(","))),
        }
    }

    fn alone(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn line(&mut self, line: impl Display) {
        // A string takes anything.
        let _ = writeln!(self.0, "{line}");
    }

    fn tools(&mut self, stats: &Stats) {
        let lanes: [(&str, &LaneStats); 2] = [("interactive", &stats.interactive), ("system", &stats.system)];
        self.family("wardian_tool_workers", "gauge", "Workers for native tools, by what they do.");
        for (lane, now) in lanes {
            self.sample("wardian_tool_workers", &[("lane", lane), ("state", "active")], now.active);
            self.sample("wardian_tool_workers", &[("lane", lane), ("state", "idle")], now.idle);
        }
        self.family("wardian_tool_queued", "gauge", "Calls that wait for a worker.");
        for (lane, now) in lanes {
            self.sample("wardian_tool_queued", &[("lane", lane)], now.queued);
        }
        let totals = stats.totals;
        self.family("wardian_tool_calls_total", "counter", "Calls that got a worker, by what came of them.");
        for (outcome, calls) in [
            ("completed", totals.completed),
            ("failed", totals.failed),
            ("timed_out", totals.timed_out),
            ("cancelled", totals.cancelled),
        ] {
            self.sample("wardian_tool_calls_total", &[("outcome", outcome)], calls);
        }
        let seconds = totals.avg_exec_ms / 1000.0;
        self.alone("wardian_tool_seconds_average", "gauge", "How long completed calls ran.", seconds);
        self.alone("wardian_tool_children", "gauge", "Processes of native tools alive.", stats.children);
    }
}

fn resident_bytes() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let resident: u64 = pages.split(' ').nth(1)?.parse().ok()?;
    Some(resident * rustix::param::page_size() as u64)
}
