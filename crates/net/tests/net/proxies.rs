//! Connections through a proxy of the host.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wardian_net::{ConnectError, NetworkPolicy, ProxyPolicy, Roots};

use crate::servers::{self, Authority, Server};
use crate::world::{World, last, local};

/// What a proxy was asked: the whole head.
type Asked = Arc<Mutex<Vec<String>>>;

/// A proxy that leads everything to one port, after it has said something.
async fn proxy(answer: &'static [u8], leads_to: u16) -> (Server, Asked) {
    let asked = Asked::default();
    let log = asked.clone();
    let server = servers::raw(move |mut client| {
        let log = log.clone();
        async move {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match client.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => return,
                }
            }
            log.lock().push(String::from_utf8_lossy(&head).into_owned());
            if client.write_all(answer).await.is_err() || !answer.starts_with(b"HTTP/1.1 2") {
                return;
            }
            let Ok(mut server) = TcpStream::connect(("127.0.0.1", leads_to)).await else { return };
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
    })
    .await;
    (server, asked)
}

const YES: &[u8] = b"HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n";

fn through(proxy: u16, resolves_names: bool, port: u16) -> NetworkPolicy {
    let url = format!("http://me:p%40ss@127.0.0.1:{proxy}");
    let proxy = Some(ProxyPolicy { url, resolves_names });
    local(NetworkPolicy { proxy, connect_timeout_ms: 500, ..Default::default() }, port)
}

#[tokio::test]
async fn a_proxy_is_given_an_address_that_was_checked() {
    let server = servers::http().await;
    let (proxy, asked) = proxy(YES, server.port).await;
    let world = World::new(through(proxy.port, false, server.port));
    let answer = world.ask("api.test", server.port, &last("/echo")).await;
    assert!(answer.contains("GET /echo HTTP/1.1") && !answer.contains("X-Proxy"), "{answer}");
    let place = format!("127.0.0.1:{}", server.port);
    let expected = format!(
        "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
    );
    assert_eq!(*asked.lock(), [expected]);
    // An address that is not allowed is not asked of the proxy, nor is a name that has one.
    world
        .liar
        .answers
        .lock()
        .insert("x.test".into(), vec![vec!["169.254.169.254".parse().expect("an address")]]);
    for host in ["x.test", "10.0.0.1", "evil.example"] {
        let denied = world.connect(host, server.port).await.err().expect("denied");
        assert!(matches!(denied, ConnectError::Denied(_)), "{host}: {denied}");
    }
    assert_eq!(asked.lock().len(), 1);
    // What it is asked with is in no record.
    assert!(!format!("{:?}", world.events.lock()).contains("p@ss"));
}

#[tokio::test]
async fn a_proxy_that_resolves_names_is_given_the_name_and_nothing_is_looked_up() {
    let authority = Authority::new();
    let (file, server) = (authority.file(), authority.https(&["only.test"], &[]).await);
    let (proxy, asked) = proxy(YES, server.port).await;
    let policy = through(proxy.port, true, 443);
    let world =
        World::new(NetworkPolicy { roots: Roots::CaFile, ca_file: Some(file.path().into()), ..policy });
    // TLS is with the server: the proxy sees nothing of it, and cannot be the server.
    let mut guest = world.connect("only.test", 443).await.expect("a connection");
    assert!(guest.tls("only.test", true, &[]).await.starts_with("ok\n"));
    guest.send(last("/echo").replace("api.test", "only.test")).await;
    assert!(guest.rest().await.contains("GET /echo HTTP/1.1"));
    let mut guest = world.connect("other.test", 443).await.expect("a connection");
    assert!(guest.tls("other.test", true, &[]).await.starts_with("error name\n"));
    let lines: Vec<String> =
        asked.lock().iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect();
    assert_eq!(lines, ["CONNECT only.test:443 HTTP/1.1", "CONNECT other.test:443 HTTP/1.1"]);
    assert!(world.liar.asked.lock().is_empty());
    // An address is checked by the gateway in any case.
    assert!(matches!(world.connect("169.254.169.254", 443).await, Err(ConnectError::Denied(_))));
}

#[tokio::test]
async fn a_proxy_that_refuses_or_does_not_speak_http_is_an_error_without_its_password() {
    let server = servers::http().await;
    let long: &'static [u8] = Box::leak([b"HTTP/1.1 200 OK\r\nX: ", &[b'x'; 9_000][..]].concat().into());
    for (answer, why) in [
        (&b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n"[..], "the proxy refused: 407"),
        (b"HTTP/1.1 302 Elsewhere\r\nLocation: http://x/\r\n\r\n", "the proxy refused: 302"),
        (b"SSH-2.0-x\r\n\r\n", "the proxy does not speak HTTP"),
        (b"", ""),
        (long, "the proxy's answer is too long"),
    ] {
        let (proxy, _) = proxy(answer, server.port).await;
        let world = World::new(through(proxy.port, false, server.port));
        let error = world.connect("api.test", server.port).await.err().expect("no connection");
        let text = format!("{error} {error:?}");
        assert!(text.contains(why) && !text.contains("p@ss") && !text.contains("p%40ss"), "{text}");
    }
    assert!(server.seen.lock().is_empty());
    // One that says nothing is given up, and one that is not there is said so.
    let silent = servers::raw(|stream| async move {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let world = World::new(through(silent.port, false, server.port));
    assert!(matches!(world.connect("api.test", server.port).await, Err(ConnectError::TimedOut)));
    let world = World::new(through(1, false, server.port));
    assert!(matches!(world.connect("api.test", server.port).await, Err(ConnectError::Io(_))));
}

#[tokio::test]
async fn what_comes_behind_the_proxys_answer_is_the_servers() {
    // The server speaks first, and its words may come in one packet with the proxy's.
    let server = servers::raw(|mut stream| async move {
        let _ = stream.read_u8().await;
    })
    .await;
    let (proxy, _) = proxy(b"HTTP/1.1 200 OK\r\n\r\n220 hello\r\n", server.port).await;
    let mut policy = through(proxy.port, false, 80);
    policy.ports.push(2525);
    let world = World::new(policy);
    let mut guest = world.connect("api.test", 2525).await.expect("a connection");
    assert_eq!(guest.until("\r\n").await, "220 hello\r\n");
}
