//! The network: what the sandbox and its gateway add to a request, and what they cost at rest and in a crowd.
//!
//! Every server is a process of its own on the machine's loopback network, so that its memory and its threads are not counted as
//! ours. Guests reach it as `server.test` through the gateway; native programs reach it directly.

mod crowd;
mod idle;
mod programs;
mod web;

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use wardian::net::{BoxFuture, Resolve};
use wardian::{Limits, NetworkPolicy, Sandbox};

use crate::table::{Table, show};
use programs::{LOOPBACK, ROUND_TRIP};
pub(crate) use web::{SERVER, serve};

/// Requests on one connection.
const REQUESTS: u32 = 5_000;
/// Bytes of a download, and of what is sent over the loopback network.
const DOWNLOAD: u64 = 512 << 20;
/// Rounds, of which the middle one counts.
const ROUNDS: usize = 3;

pub(crate) async fn measure() -> Result<Table> {
    let columns = &["what", "ours", "native", "ours to native", "goal"];
    let mut table = Table::new("net", columns).about(
        "The server is a native process on loopback; ours is the same program in a sandbox, through the gateway. The \
         middle of three rounds. The programs of the crowd end together, when all are done: their end is a row of its own, \
         since the first to print and exit would delay the last requests of the others.",
    );
    let web = web::Web::start()?;
    let bench = Bench { sandbox: sandbox(web.port).await?, port: web.port };
    let wanted = std::env::args().nth(2).unwrap_or_default();
    let wants = |row: &str| row.contains(&wanted);
    if wants("round trip") {
        bench.round_trips(&mut table).await?;
    }
    if wants("download") {
        bench.downloads(&mut table).await?;
    }
    if wants("loopback") {
        bench.loopback(&mut table).await?;
    }
    if wants("idle") {
        idle::measure(&mut table, web.port).await?;
    }
    if wants("crowd") {
        crowd::measure(&mut table, &bench.sandbox, web.port).await?;
    }
    Ok(table)
}

/// Every name is this machine.
struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

/// A sandbox that reaches the server, with the programs in it.
async fn sandbox(port: u16) -> Result<Sandbox> {
    let policy = NetworkPolicy {
        allowed_hosts: vec!["server.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.0/8".parse().context("a network")?],
        response_bytes: 4 << 30,
        max_connections: 2_000,
        ..NetworkPolicy::default()
    };
    let limits = Limits { open_files: 2_000, ..Limits::default() };
    let builder = Sandbox::builder().network(policy).resolver(Here).limits(limits).timeout(None);
    let sandbox = builder.build().await?;
    for (path, text) in programs::ALL {
        sandbox.write_file(path, *text).await?;
    }
    Ok(sandbox)
}

struct Bench {
    sandbox: Sandbox,
    port: u16,
}

impl Bench {
    async fn ours(&self, script: &str) -> Result<String> {
        said(&self.sandbox, script).await
    }

    async fn round_trips(&self, table: &mut Table) -> Result<()> {
        let (mut ours, mut natives) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let words = format!("{} {REQUESTS}", self.port);
            ours.push(seconds(&self.ours(&format!("python3 /tmp/round.py server.test {words}")).await?)?);
            natives.push(seconds(&natively(ROUND_TRIP, &format!("127.0.0.1 {words}"))?)?);
        }
        added(table, "round trip of a keep-alive request, Python's sockets", ours, natives);
        let (mut ours, mut natives) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(self.per_request(|script| self.timed(script)).await?);
            natives.push(self.per_request(|script| async move { timed_natively(&script) }).await?);
        }
        added(table, "the same with curl, all of what it does for a request", ours, natives);
        Ok(())
    }

    /// Returns what each further request of curl's takes.
    async fn per_request<F, R>(&self, run: F) -> Result<Duration>
    where
        F: Fn(String) -> R,
        R: Future<Output = Result<Duration>>,
    {
        let line = |last: u32| format!("curl -s -o /dev/null 'http://HOST:{}/?[1-{last}]'", self.port);
        let one = run(line(1)).await?;
        let many = run(line(REQUESTS + 1)).await?;
        Ok(many.saturating_sub(one) / REQUESTS)
    }

    async fn timed(&self, script: String) -> Result<Duration> {
        let start = Instant::now();
        self.ours(&script.replace("HOST", "server.test")).await?;
        Ok(start.elapsed())
    }

    async fn downloads(&self, table: &mut Table) -> Result<()> {
        let line = format!("curl -s -o /dev/null http://HOST:{}/bytes/{DOWNLOAD}", self.port);
        let (mut ours, mut natives) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(self.timed(line.clone()).await?);
            natives.push(timed_natively(&line)?);
        }
        rate(table, "one download, curl", ours, natives, "400 MB/s, or half");
        Ok(())
    }

    async fn loopback(&self, table: &mut Table) -> Result<()> {
        let (mut bulk, mut bulk_natively) = (Vec::new(), Vec::new());
        let (mut trip, mut trip_natively) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let both = |text: String| -> Result<(Duration, Duration)> {
                let (bulk, trip) = text.trim().split_once(' ').context("two figures")?;
                Ok((seconds(bulk)?, seconds(trip)?))
            };
            let (one, other) = both(self.ours(&format!("python3 /tmp/loopback.py {DOWNLOAD}")).await?)?;
            bulk.push(one);
            trip.push(other);
            let (one, other) = both(natively(LOOPBACK, &DOWNLOAD.to_string())?)?;
            bulk_natively.push(one);
            trip_natively.push(other);
        }
        rate(table, "loopback within the sandbox, two Pythons: bytes", bulk, bulk_natively, "half");
        let (ours, native) = (middle(trip), middle(trip_natively));
        let ratio = format!("{:.2}x", ours.as_secs_f64() / native.as_secs_f64());
        let what = "loopback within the sandbox, two Pythons: round trip";
        table.push(&[what, &show(ours), &show(native), &ratio, "2x"]);
        Ok(())
    }
}

async fn said(sandbox: &Sandbox, script: &str) -> Result<String> {
    let result = sandbox.run(script).await?;
    let error = String::from_utf8_lossy(&result.stderr);
    ensure!(result.exit_code == 0, "'{script}' failed: {error}");
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Runs a Python program on the machine.
fn natively(program: &str, words: &str) -> Result<String> {
    let file = tempfile::Builder::new().suffix(".py").tempfile()?;
    std::fs::write(file.path(), program)?;
    let output = Command::new("python3").arg(file.path()).args(words.split(' ')).output()?;
    ensure!(output.status.success(), "natively: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn timed_natively(script: &str) -> Result<Duration> {
    let start = Instant::now();
    let status = Command::new("bash").args(["-c", &script.replace("HOST", "127.0.0.1")]).status()?;
    ensure!(status.success(), "natively: {script}");
    Ok(start.elapsed())
}

fn seconds(text: &str) -> Result<Duration> {
    Ok(Duration::from_secs_f64(text.trim().parse().with_context(|| format!("not a number: '{text}'"))?))
}

fn middle(mut rounds: Vec<Duration>) -> Duration {
    rounds.sort();
    rounds[rounds.len() / 2]
}

/// A row about what is added to a request.
fn added(table: &mut Table, what: &str, ours: Vec<Duration>, natives: Vec<Duration>) {
    let (ours, native) = (middle(ours), middle(natives));
    let added = format!("+{}", show(ours.saturating_sub(native)));
    table.push(&[what, &show(ours), &show(native), &added, "+150 µs"]);
}

/// A row about bytes in a second.
fn rate(table: &mut Table, what: &str, ours: Vec<Duration>, natives: Vec<Duration>, goal: &str) {
    let rate = |time: Duration| DOWNLOAD as f64 / 1e6 / time.as_secs_f64();
    let (ours, native) = (rate(middle(ours)), rate(middle(natives)));
    let ratio = format!("{:.2}x", ours / native);
    table.push(&[what, &format!("{ours:.0} MB/s"), &format!("{native:.0} MB/s"), &ratio, goal]);
}
