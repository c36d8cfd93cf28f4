//! Connections between two requests, when only their wires are kept.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wardian_net::{Ending, NetworkPolicy};

use crate::servers;
use crate::world::{World, get, last, local, soon};

const WEBSOCKET: &str =
    "GET /ws HTTP/1.1\r\nHost: api.test\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";

#[tokio::test]
async fn a_kept_connection_takes_requests_of_every_kind() {
    let server = servers::http().await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    let body = "x".repeat(300_000);
    for _ in 0..3 {
        guest.send(get("/echo")).await;
        guest.until("GET /echo HTTP/1.1").await;
        guest
            .send(format!("POST /echo HTTP/1.1\r\nHost: api.test\r\nContent-Length: {}\r\n\r\n", body.len()))
            .await;
        // Written and read at once: what is echoed is as long as what is sent.
        let (mut reader, mut writer) = tokio::io::split(&mut guest.stream);
        let (sent, read) = tokio::join!(writer.write_all(body.as_bytes()), async {
            let (mut count, mut piece) = (0, vec![0; 64 << 10]);
            while count < body.len() {
                let length = soon(reader.read(&mut piece)).await.expect("readable");
                count += piece[..length].iter().filter(|byte| **byte == b'x').count();
            }
            count
        });
        sent.expect("the gateway reads");
        assert!(read >= body.len());
    }
    assert_eq!(server.open(), 1);
    guest.send(WEBSOCKET).await;
    assert!(guest.until("\r\n\r\n").await.contains("HTTP/1.1 101"));
    guest.send("hello").await;
    assert_eq!(guest.until("HELLO").await, "HELLO");
    assert_eq!(server.seen.lock().len(), 7);
}

/// Answers one request, says something more or not, and closes when it is told to.
async fn once(more: &'static [u8], close: bool) -> servers::Server {
    servers::raw(move |mut stream| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        tokio::time::sleep(Duration::from_millis(100)).await;
        let _ = stream.write_all(more).await;
        if !close {
            let _ = stream.read_u8().await;
        }
    })
    .await
}

#[tokio::test]
async fn unsolicited_data_ends_a_kept_connection() {
    for (more, close) in [(&b""[..], true), (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nevil!", false)] {
        let server = once(more, close).await;
        let world = World::new(local(NetworkPolicy::default(), server.port));
        let mut guest = world.connect("api.test", server.port).await.expect("a connection");
        guest.send(get("/")).await;
        guest.until("ok").await;
        // The guest is told without asking for anything, and never sees what was not for it.
        assert_eq!(guest.rest().await, "");
        assert_eq!(guest.ending().await, Ending::Closed);
    }
    // One that closes while the next request is on its way is an error, not an answer.
    let server = once(b"", true).await;
    let world = World::new(local(NetworkPolicy::default(), server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send([get("/"), last("/")].concat()).await;
    let answer = guest.rest().await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
}
