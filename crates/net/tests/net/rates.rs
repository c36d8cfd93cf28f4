//! Rates and timeouts of the policy, from a guest's request to the server. What is measured is only that nothing came too early.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::AsyncReadExt;
use wardian_net::{BoxFuture, ConnectError, Ending, NetworkPolicy, Resolve};

use crate::servers;
use crate::world::{World, get, last, local, soon};

/// Timers may be a little early.
const GRAIN: Duration = Duration::from_millis(20);

#[tokio::test]
async fn requests_above_their_rate_wait_also_on_several_connections() {
    let server = servers::http().await;
    let policy = NetworkPolicy { requests_per_second: Some(20), ..Default::default() };
    let world = Arc::new(World::new(local(policy, server.port)));
    let start = Instant::now();
    // A second's worth at once, and half as much again.
    let asking = (0..3).map(|_| {
        let (world, port) = (world.clone(), server.port);
        tokio::spawn(async move {
            let mut guest = world.connect("api.test", port).await.expect("a connection");
            guest.send(get("/echo").repeat(9) + &last("/echo")).await;
            guest.rest().await.matches("HTTP/1.1 200 OK").count()
        })
    });
    let mut answered = 0;
    for asked in asking.collect::<Vec<_>>() {
        answered += soon(asked).await.expect("no panic");
    }
    assert_eq!((answered, server.seen.lock().len()), (30, 30));
    assert!(start.elapsed() + GRAIN >= Duration::from_millis(500), "{:?}", start.elapsed());
}

#[tokio::test]
async fn bytes_above_their_rate_come_slowly_and_a_braked_connection_is_not_idle() {
    let server = servers::http().await;
    let policy = NetworkPolicy { bytes_per_second: Some(40_000), idle_timeout_ms: 300, ..Default::default() };
    let world = World::new(local(policy, server.port));
    let start = Instant::now();
    let answer = world.ask("api.test", server.port, &last("/bytes/90000")).await;
    assert!(answer.ends_with(&"x".repeat(90_000)), "{}", answer.len());
    // A second's worth comes at once.
    let due = Duration::from_secs_f64(50_000.0 / 40_000.0);
    assert!(start.elapsed() + GRAIN >= due, "{:?}", start.elapsed());
    // The rate is one for both directions and all connections.
    let body = "x".repeat(40_000);
    let start = Instant::now();
    let upload = format!(
        "POST /echo HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    let (mut reading, mut writing) = tokio::io::split(&mut guest.stream);
    let mut answer = Vec::new();
    let sent = tokio::io::AsyncWriteExt::write_all(&mut writing, upload.as_bytes());
    let (sent, received) = soon(async { tokio::join!(sent, reading.read_to_end(&mut answer)) }).await;
    sent.and(received).expect("it goes both ways");
    assert!(answer.len() > body.len());
    let due = Duration::from_secs_f64(80_000.0 / 40_000.0) - Duration::from_secs(1);
    assert!(start.elapsed() + GRAIN >= due, "{:?}", start.elapsed());
}

/// Never answers.
struct Stalled;

impl Resolve for Stalled {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::pending())
    }
}

fn impatient() -> NetworkPolicy {
    NetworkPolicy { connect_timeout_ms: 200, max_connections: 1, ..Default::default() }
}

#[tokio::test]
async fn a_stalled_look_up_ends_at_its_timeout_and_frees_its_place() {
    let world = World::with(local(impatient(), 80), |options| options.resolver = Arc::new(Stalled));
    for _ in 0..2 {
        let failed = soon(world.connect("api.test", 80)).await.err().expect("nobody answers");
        assert!(matches!(failed, ConnectError::TimedOut), "{failed}");
    }
    // It is no decision of the policy.
    assert!(world.named("net.denied").is_empty() && world.named("net.connect").is_empty());
}

#[tokio::test]
async fn a_stalled_handshake_ends_at_its_timeout_and_frees_its_place() {
    let server = servers::raw(|mut stream| async move {
        let mut buffer = [0; 4096];
        while let Ok(1..) = stream.read(&mut buffer).await {}
    })
    .await;
    let world = World::new(local(impatient(), server.port));
    for _ in 0..2 {
        let mut guest = world.connect("api.test", server.port).await.expect("a connection");
        let answer = guest.tls("api.test", true, &[]).await;
        assert_eq!(answer, "error handshake\nmessage the handshake timed out\n");
        assert!(guest.bytes().await.is_empty());
        assert_eq!(guest.ending().await, Ending::Closed);
    }
    while server.open() > 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
