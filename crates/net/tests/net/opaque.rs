//! Connections that are not parsed.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wardian_net::{Ending, NetworkPolicy};

use crate::servers::{self, Server};
use crate::world::{World, local};

async fn echo() -> Server {
    servers::raw(|mut stream| async move {
        let (mut reader, mut writer) = stream.split();
        let _ = tokio::io::copy(&mut reader, &mut writer).await;
        let _ = writer.write_all(b"end").await;
    })
    .await
}

fn opaque(port: u16) -> NetworkPolicy {
    let mut policy = local(NetworkPolicy::default(), 1);
    policy.ports = vec![port];
    policy
}

#[tokio::test]
async fn bytes_pass_unchanged_and_halves_close_on_their_own() {
    let server = echo().await;
    let world = World::new(opaque(server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    let sent: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
    let (mut reader, mut writer) = tokio::io::split(guest.stream);
    let copy = sent.clone();
    let sending = tokio::spawn(async move {
        writer.write_all(&copy).await.expect("written");
        writer.shutdown().await.expect("shut down");
        writer
    });
    let mut got = Vec::new();
    reader.read_to_end(&mut got).await.expect("read");
    guest.stream = reader.unsplit(sending.await.expect("sent"));
    assert!(got.ends_with(b"end") && got[..got.len() - 3] == sent);
    assert_eq!(guest.ending().await, Ending::Closed);
    assert_eq!(world.gateway.bytes_moved(), 8_000_003);
}

#[tokio::test]
async fn a_server_may_speak_first_and_a_protocol_may_start_with_zero() {
    let server = servers::raw(|mut stream| async move {
        let _ = stream.write_all(b"220 hello\r\n").await;
        let mut buffer = [0; 100];
        let length = stream.read(&mut buffer).await.unwrap_or(0);
        let _ = stream.write_all(&buffer[..length]).await;
    })
    .await;
    let world = World::new(opaque(server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    assert_eq!(guest.until("\r\n").await, "220 hello\r\n");
    guest.send("QUIT").await;
    assert_eq!(guest.rest().await, "QUIT");
    let server = echo().await;
    let world = World::new(opaque(server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send(b"\0\0\0\x08").await;
    assert_eq!(guest.until("\x08").await, "\0\0\0\x08");
}

#[tokio::test]
async fn a_guest_speaks_tls_itself_with_raw_hosts_alone() {
    let server = echo().await;
    let hello = b"\x16\x03\x01\x00\x05hello";
    for policy in [opaque(server.port), local(NetworkPolicy::default(), server.port)] {
        let world = World::new(policy.clone());
        let mut guest = world.connect("api.test", server.port).await.expect("a connection");
        guest.send(hello).await;
        assert_eq!(guest.bytes().await, [21, 3, 3, 0, 2, 2, 40]);
        assert!(matches!(guest.ending().await, Ending::Reset(_)));
        assert_eq!(world.named("net.denied")[0]["rule"], "rawHosts");
        let world = World::new(NetworkPolicy { raw_hosts: vec!["api.test".into()], ..policy });
        let mut guest = world.connect("api.test", server.port).await.expect("a connection");
        guest.send(hello).await;
        assert!(guest.until("hello").await.ends_with("hello"));
    }
}

#[tokio::test]
async fn silence_and_limits_end_a_stream() {
    let server = servers::raw(|stream| async move {
        let _keep = stream;
        std::future::pending::<()>().await;
    })
    .await;
    let world = World::new(NetworkPolicy { idle_timeout_ms: 300, ..opaque(server.port) });
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send("x").await;
    assert_eq!(guest.rest().await, "");
    assert_eq!(guest.ending().await, Ending::Reset("nothing moved for too long".into()));
    let server = echo().await;
    let world = World::new(NetworkPolicy { total_bytes: Some(10), ..opaque(server.port) });
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send("123456").await;
    guest.rest().await;
    assert_eq!(guest.ending().await, Ending::Reset("totalBytes is used up".into()));
}

#[tokio::test]
async fn dropping_the_future_closes_the_servers_end() {
    let server = servers::raw(|mut stream| async move {
        let mut buffer = Vec::new();
        let _ = stream.read_to_end(&mut buffer).await;
        CLOSED.notify_one();
    })
    .await;
    static CLOSED: tokio::sync::Notify = tokio::sync::Notify::const_new();
    let world = World::new(opaque(server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send("x").await;
    guest.served.abort();
    crate::world::soon(CLOSED.notified()).await;
}
