//! TLS that a guest asks for.

use wardian_net::{NetworkPolicy, Roots};

use crate::servers::{self, Authority};
use crate::world::{World, last, local};

fn trusting(file: &tempfile::NamedTempFile, port: u16) -> NetworkPolicy {
    let policy =
        NetworkPolicy { roots: Roots::CaFile, ca_file: Some(file.path().into()), ..Default::default() };
    local(policy, port)
}

#[tokio::test]
async fn the_gateway_shakes_hands_and_says_with_whom() {
    let authority = Authority::new();
    let (file, server) = (authority.file(), authority.https(&["api.test"], &[]).await);
    let world = World::new(trusting(&file, server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    let answer = guest.tls("API.test.", true, &["http/1.1"]).await;
    let lines: Vec<&str> = answer.lines().collect();
    assert_eq!(lines[..2], ["ok", "version TLSv1.3"]);
    assert!(
        lines[2].starts_with("cipher TLS_")
            && lines[3] == "alpn http/1.1"
            && lines[4].starts_with("certificate MII"),
        "{answer}"
    );
    guest.send(last("/echo")).await;
    let answer = guest.rest().await;
    assert!(answer.contains("GET /echo HTTP/1.1"), "{answer}");
    assert_eq!(world.named("net.request")[0]["tls"], true);
}

#[tokio::test]
async fn http2_is_between_gateway_and_server() {
    let authority = Authority::new();
    let (file, server) = (authority.file(), authority.https(&["api.test"], &["h2", "http/1.1"]).await);
    let world = World::new(NetworkPolicy { http2: true, ..trusting(&file, server.port) });
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    assert!(guest.tls("api.test", true, &["http/1.1"]).await.contains("alpn http/1.1\n"));
    let upload =
        "POST /echo HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
    guest.send(upload.to_owned() + &crate::world::get("/chunks/30000") + &last("/trailers")).await;
    let answer = guest.rest().await;
    assert!(
        answer.contains("HTTP/2.0") && answer.contains("\nabc") && answer.matches('y').count() == 30_000,
        "{answer}"
    );
    assert!(answer.contains("X-Sum: 42"), "{answer}");
    assert!(server.seen.lock().iter().all(|line| line.ends_with("HTTP/2.0")));
    // Without the option the same server speaks HTTP/1.1, and so a WebSocket works.
    let world = World::new(trusting(&file, server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.tls("api.test", true, &[]).await;
    guest.send(last("/echo")).await;
    assert!(guest.rest().await.contains("GET /echo HTTP/1.1"));
}

#[tokio::test]
async fn certificates_and_names_are_checked() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let file = authority.file();
    let other = authority.https(&["other.test"], &[]).await;
    let unknown = stranger.https(&["api.test"], &[]).await;
    let plain = servers::canned(b"HTTP/1.1 400 no TLS here\r\n\r\n").await;
    for (port, name, code) in [
        (other.port, "api.test", "error name\n"),
        (unknown.port, "api.test", "error certificate\n"),
        (other.port, "other.test", "error name\n"),
        (other.port, "not a name", "error bad-request\n"),
        (plain.port, "api.test", "error handshake\n"),
    ] {
        let world = World::new(trusting(&file, port));
        let mut guest = world.connect("api.test", port).await.expect("a connection");
        let answer = guest.tls(name, true, &[]).await;
        assert!(answer.starts_with(code) && answer.contains("\nmessage "), "{name}: {answer}");
        assert_eq!(guest.rest().await, "");
    }
    assert!(other.seen.lock().is_empty() && unknown.seen.lock().is_empty());
}

#[tokio::test]
async fn verification_is_skipped_only_if_the_policy_says_so() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let (file, server) = (authority.file(), stranger.https(&["elsewhere.test"], &[]).await);
    let world = World::new(trusting(&file, server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    assert!(guest.tls("api.test", false, &[]).await.starts_with("error denied\n"));
    assert_eq!(world.named("net.denied").len(), 1);
    let world = World::new(NetworkPolicy { allow_unverified_tls: true, ..trusting(&file, server.port) });
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    assert!(guest.tls("api.test", false, &[]).await.starts_with("ok\n"));
    guest.send(last("/echo")).await;
    assert!(guest.rest().await.contains("GET /echo"));
}

#[tokio::test]
async fn malformed_records_are_refused() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    for record in [
        &b"\0WTLS\x01\0\0\0\x05hello"[..],
        b"\0WTLS\x01\0\x02\0\0",
        b"\0WTLS\x01\0\0\0\x16server-name x.test\nx y\n",
    ] {
        let mut guest = world.connect("api.test", server.port).await.expect("a connection");
        guest.send(record).await;
        assert!(guest.rest().await.contains("error bad-request\n"));
    }
    // A guest that asks for HTTP/2 alone would not get it.
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    assert!(guest.tls("api.test", true, &["h2"]).await.starts_with("error handshake\n"));
}
