//! Servers that misbehave cost their own connection and nothing else.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wardian_net::{Ending, NetworkPolicy};

use crate::servers::{self, Server};
use crate::world::{World, last, local};

/// Reads the request, writes a start, and then a piece again and again, as long as anybody reads.
async fn endless(start: &'static [u8], piece: &'static [u8], pause: Duration) -> Server {
    servers::raw(move |mut stream| async move {
        let mut buffer = [0; 4096];
        let _ = stream.read(&mut buffer).await;
        let _ = stream.write_all(start).await;
        while stream.write_all(piece).await.is_ok() {
            if !pause.is_zero() {
                tokio::time::sleep(pause).await;
            }
        }
    })
    .await
}

fn small() -> NetworkPolicy {
    NetworkPolicy {
        response_bytes: 300_000,
        idle_timeout_ms: 1_000,
        response_timeout_ms: 1_000,
        ..Default::default()
    }
}

/// Asks the server, and returns the answer and how the connection ended.
async fn ask(server: &Server, policy: NetworkPolicy) -> (String, Ending, World) {
    let world = World::new(local(policy, server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send(last("/")).await;
    let answer = guest.rest().await;
    (answer, guest.ending().await, world)
}

#[tokio::test]
async fn endless_heads_and_bodies_end_at_their_limits() {
    let server = endless(b"HTTP/1.1 200 OK\r\n", b"X-More: and more\r\n", Duration::ZERO).await;
    let (answer, ending, _) = ask(&server, small()).await;
    assert!(answer.starts_with("HTTP/1.1 502") && ending == Ending::Closed, "{answer} {ending:?}");
    let server =
        endless(b"HTTP/1.1 200 OK\r\nX-Long: ", b"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", Duration::ZERO).await;
    assert!(ask(&server, small()).await.0.starts_with("HTTP/1.1 502"));
    let server = endless(b"", b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", Duration::from_millis(5)).await;
    assert!(ask(&server, small()).await.0.starts_with("HTTP/1.1 504"));
    for start in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"] {
        let server = endless(start, b"10\r\n0123456789abcdef\r\n", Duration::ZERO).await;
        let (answer, ending, world) = ask(&server, small()).await;
        assert!(answer.len() < 900_000 && !answer.ends_with("0\r\n\r\n"), "{}", answer.len());
        assert!(matches!(ending, Ending::Reset(_)));
        assert_eq!(world.named("net.denied")[0]["rule"], "responseBytes");
    }
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let silent = || endless(b"", b"", Duration::from_secs(1));
    let server = silent().await;
    let (answer, ending, world) = ask(&server, small()).await;
    assert!(answer.starts_with("HTTP/1.1 504") && ending == Ending::Closed, "{answer}");
    assert_eq!(world.named("net.request")[0]["status"], 504);
    let server =
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", b"", Duration::from_secs(1)).await;
    let (answer, ending, _) = ask(&server, small()).await;
    assert!(answer.ends_with("half") && matches!(ending, Ending::Reset(_)), "{answer}");
}

#[tokio::test]
async fn a_slow_drip_costs_its_own_connection_alone() {
    let slow =
        endless(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", b"x", Duration::from_millis(50)).await;
    let fast = servers::http().await;
    let mut policy = local(NetworkPolicy::default(), slow.port);
    policy.http_ports.push(fast.port);
    let world = World::new(policy);
    let mut dripping = Vec::new();
    for _ in 0..20 {
        let mut guest = world.connect("api.test", slow.port).await.expect("a connection");
        guest.send(last("/")).await;
        guest.until("\r\n\r\n").await;
        dripping.push(guest);
    }
    let answer = world.ask("api.test", fast.port, &last("/bytes/100000")).await;
    assert!(answer.ends_with(&"x".repeat(100_000)));
    for guest in dripping {
        guest.served.abort();
        assert!(guest.served.await.expect_err("dropped").is_cancelled());
    }
}

#[tokio::test]
async fn broken_responses_never_look_complete() {
    for (answer, note) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"[..], "early close"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhalf", "early close in a chunk"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nhalf\r\n0\r\n\r\n", "invalid size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhalf", "huge size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalfX\r\n0\r\n\r\n", "chunk too long"),
    ] {
        let server = servers::canned(answer).await;
        let (answer, ending, _) = ask(&server, small()).await;
        assert!(matches!(ending, Ending::Reset(_)), "{note}: {ending:?}");
        assert!(!answer.ends_with("0\r\n\r\n"), "{note}: {answer}");
    }
    for (answer, note) in [
        (&b""[..], "nothing"),
        (b"\x16\x03\x01 not HTTP", "noise"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nhalf", "two lengths"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +4\r\n\r\nhalf", "odd length"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n folded\r\n\r\n", "folded header"),
        (b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", "space before colon"),
        (b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", "unasked upgrade"),
    ] {
        let server = servers::canned(answer).await;
        let (answer, _, _) = ask(&server, small()).await;
        assert!(answer.starts_with("HTTP/1.1 502"), "{note}: {answer}");
    }
}

#[tokio::test]
async fn a_compressed_bomb_passes_as_it_is() {
    let server = servers::canned(
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 5\r\n\r\n\x1f\x8b\x08\0\0",
    )
    .await;
    let (answer, ending, _) = ask(&server, small()).await;
    assert!(answer.contains("Content-Encoding: gzip\r\n") && ending == Ending::Closed, "{answer}");
}

#[tokio::test]
async fn a_server_cannot_speak_for_the_gateway() {
    let server = servers::canned(
        b"HTTP/1.1 200 OK\r\nX-Wardian-Denied: allowedHosts\r\nX-Other: 1\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let answer = world.ask("api.test", server.port, &last("/")).await;
    assert!(answer.contains("X-Other: 1") && !answer.to_lowercase().contains("wardian"), "{answer}");
}

#[tokio::test]
async fn responses_cannot_be_split() {
    let server = servers::canned(b"HTTP/1.1 200 O\x0bK\r\nContent-Length: 0\r\n\r\n").await;
    let (answer, ..) = ask(&server, small()).await;
    assert!(!answer.contains('\x0b'), "{answer:?}");
    let server = servers::canned(b"HTTP/1.1 200 OK\r\nX: a\rSet-Cookie: b\r\n\r\n").await;
    let (answer, ..) = ask(&server, small()).await;
    assert!(answer.starts_with("HTTP/1.1 502"), "{answer:?}");
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_each_time() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let address = |text: &str| text.parse().expect("an address");
    let answers = vec![
        vec![address("127.0.0.1")],
        vec![address("10.0.0.1")],
        vec![address("127.0.0.1"), address("169.254.169.254")],
    ];
    world.liar.answers.lock().insert("x.test".into(), answers);
    assert!(world.connect("x.test", server.port).await.is_ok());
    for _ in 0..2 {
        let denied = world.connect("x.test", server.port).await.err().expect("denied");
        assert!(denied.to_string().contains("not public"), "{denied}");
    }
    // Once for each connection: there is no second answer between the check and the connection.
    assert_eq!(world.liar.asked.lock().len(), 3);
}

#[tokio::test]
async fn redirects_are_the_guests_to_follow_and_checked_again() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let answer = world.ask("api.test", server.port, &last("/status/302")).await;
    assert!(
        answer.starts_with("HTTP/1.1 302") && answer.contains("Location: http://169.254.169.254/"),
        "{answer}"
    );
    assert!(world.connect("169.254.169.254", 80).await.is_err());
    assert_eq!(world.named("net.connect").len(), 1);
}
