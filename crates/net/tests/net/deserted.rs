//! Guests that leave while a server has not answered: nothing is kept for them.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::sync::Notify;
use wardian_net::{Ending, NetworkPolicy, Roots};

use crate::servers::{self, Authority};
use crate::world::{World, get, local, soon};

/// Nothing here ends because time has passed.
fn patient(policy: NetworkPolicy) -> NetworkPolicy {
    let day = 86_400_000;
    NetworkPolicy { response_timeout_ms: day, idle_timeout_ms: day, ..policy }
}

struct Silent {
    server: servers::Server,
    asked: Arc<Notify>,
    closed: Arc<Notify>,
}

/// A server that reads to the end and says nothing.
async fn silent() -> Silent {
    let (asked, closed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (heard, ended) = (asked.clone(), closed.clone());
    let server = servers::raw(move |mut stream| {
        let (heard, ended) = (heard.clone(), ended.clone());
        async move {
            let mut buffer = [0; 1024];
            while let Ok(1..) = stream.read(&mut buffer).await {
                heard.notify_one();
            }
            ended.notify_one();
        }
    })
    .await;
    Silent { server, asked, closed }
}

#[tokio::test]
async fn an_unread_response_is_not_waited_for() {
    let silent = silent().await;
    let port = silent.server.port;
    let world = World::new(patient(local(NetworkPolicy::default(), port)));
    let (mut guest, left) = world.connect_until("api.test", port).await.expect("a connection");
    guest.send(get("/")).await;
    soon(silent.asked.notified()).await;
    // It has not left yet.
    assert!(tokio::time::timeout(Duration::from_millis(50), silent.closed.notified()).await.is_err());
    left.notify_one();
    soon(silent.closed.notified()).await;
    assert!(matches!(soon(guest.served).await, Ok(Ending::Reset(_))));
}

#[tokio::test]
async fn data_sent_before_disconnecting_arrives() {
    let (sender, mut received) = tokio::sync::mpsc::unbounded_channel();
    let server = servers::raw(move |mut stream| {
        let sender = sender.clone();
        async move {
            // Slower than the guest, which has left long before.
            let (mut total, mut buffer) = (0, vec![0; 20_000]);
            while let Ok(length @ 1..) = stream.read(&mut buffer).await {
                total += length;
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            let _ = sender.send(total);
        }
    })
    .await;
    let world = World::new(patient(local(NetworkPolicy::default(), server.port)));
    let (mut guest, left) = world.connect_until("api.test", server.port).await.expect("a connection");
    left.notify_one();
    let body = "x".repeat(1 << 20);
    guest
        .send(format!("POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: {}\r\n\r\n{body}", body.len()))
        .await;
    let total = soon(received.recv()).await.expect("it arrives");
    assert!(total > body.len(), "{total}");
}

#[tokio::test]
async fn a_connection_by_http2_ends_with_its_guest() {
    let authority = Authority::new();
    let (file, server) = (authority.file(), authority.https(&["api.test"], &["h2"]).await);
    let policy = NetworkPolicy {
        roots: Roots::CaFile,
        ca_file: Some(file.path().into()),
        http2: true,
        ..local(NetworkPolicy::default(), server.port)
    };
    let world = World::new(patient(policy));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.tls("api.test", true, &["http/1.1"]).await;
    guest.send(get("/never")).await;
    soon(async {
        while server.seen.lock().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(server.open(), 1);
    guest.served.abort();
    soon(async {
        while server.open() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
