//! `/metrics`: the same numbers for Prometheus.

use std::fmt::{Display, Write};
use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use wardian::UsageNow;
use wardian_hosttools::{LaneStats, Stats};

use super::Site;
use crate::metrics::{BUCKETS_MS, CODES, Histogram, LIMITS, Metrics, OUTCOMES};

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
    text.alone(
        "wardian_sandboxes_asleep",
        "gauge",
        "Saved sandboxes that left memory until their next call.",
        site.shared.dormitory.asleep(),
    );
    if let Some(bytes) = resident_bytes() {
        text.alone(
            "process_resident_memory_bytes",
            "gauge",
            "Memory of the server, its sandboxes included.",
            bytes,
        );
    }
    text.requests(&site.shared.metrics);
    text.used(site.shared.clients.usage());
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

    fn requests(&mut self, metrics: &Metrics) {
        let now = metrics.read();
        self.alone("wardian_clients", "gauge", "Clients connected.", now.clients);
        let refused = "Clients that were turned away because there were too many.";
        self.alone("wardian_clients_refused_total", "counter", refused, now.turned_away);
        self.alone("wardian_requests_total", "counter", "Requests.", now.requests);
        self.alone("wardian_requests_waiting", "gauge", "Requests that run or wait.", now.waiting);
        self.family(
            "wardian_requests_refused_total",
            "counter",
            "Requests that failed, by the error's code.",
        );
        for (code, count) in CODES.iter().zip(now.refused) {
            self.sample("wardian_requests_refused_total", &[("code", &code.to_string())], count);
        }
        self.family("wardian_runs_total", "counter", "Commands, by what came of them.");
        for (outcome, count) in OUTCOMES.iter().zip(now.outcomes) {
            self.sample("wardian_runs_total", &[("outcome", outcome)], count);
        }
        self.family(
            "wardian_limits_hit_total",
            "counter",
            "Commands that hit a limit, by the first they hit.",
        );
        for (limit, count) in LIMITS.iter().zip(now.limits) {
            self.sample("wardian_limits_hit_total", &[("limit", limit)], count);
        }
        self.histogram("wardian_run_seconds", "How long commands ran.", &metrics.ran);
        self.histogram(
            "wardian_run_wait_seconds",
            "How long commands waited before they ran.",
            &metrics.waited,
        );
    }

    fn used(&mut self, now: UsageNow) {
        self.alone("wardian_processes", "gauge", "Processes in sandboxes, shells included.", now.processes);
        let help = "Memory charged to the memoryBytes of sandboxes.";
        self.alone("wardian_sandbox_memory_bytes", "gauge", help, now.memory_bytes);
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        let (buckets, count, seconds) = histogram.read();
        self.family(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (end, up_to) in BUCKETS_MS.iter().zip(buckets) {
            self.sample(&bucket, &[("le", &format!("{}", *end as f64 / 1000.0))], up_to);
        }
        self.sample(&bucket, &[("le", "+Inf")], count);
        self.sample(&format!("{name}_sum"), &[], seconds);
        self.sample(&format!("{name}_count"), &[], count);
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
