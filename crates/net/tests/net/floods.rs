//! Servers that send what belongs to no response, or take what they do not read, by HTTP/1.1 and by HTTP/2.

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use wardian_net::{Ending, NetworkPolicy, Roots};

use crate::servers::{self, Authority, Server};
use crate::world::{Guest, World, get, last, local, soon};

/// Nothing ends by waiting: what ends, ends by what it has sent.
fn patient() -> NetworkPolicy {
    let day = 86_400_000;
    NetworkPolicy { response_timeout_ms: day, idle_timeout_ms: day, ..Default::default() }
}

#[tokio::test]
async fn interim_responses_without_end_are_not_waited_for() {
    let early: &'static [u8] =
        Box::leak(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(100).into());
    let server = servers::raw(move |mut stream| async move {
        let _ = stream.read(&mut [0; 4096]).await;
        while stream.write_all(early).await.is_ok() {}
    })
    .await;
    let world = World::new(local(patient(), server.port));
    let answer = world.ask("api.test", server.port, &last("/")).await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("not a response"), "{answer}");
    // Some are usual, and are not passed on.
    let server = servers::canned(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    )
    .await;
    let world = World::new(local(patient(), server.port));
    let answer = world.ask("api.test", server.port, &last("/")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nok"), "{answer}");
}

#[tokio::test]
async fn a_server_that_answers_and_does_not_read_takes_no_second_request() {
    let server = servers::raw(|mut stream| async move {
        let _ = stream.read(&mut [0; 64]).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
        std::future::pending::<()>().await;
    })
    .await;
    let policy = NetworkPolicy { response_timeout_ms: 500, idle_timeout_ms: 500, ..Default::default() };
    let world = World::new(local(policy, server.port));
    // Somewhere among these sizes the body fits into buffers, but not into the socket's alone.
    for size in (1..=32).map(|step| step * 200_000) {
        let guest = world.connect("api.test", server.port).await.expect("a connection");
        let head = format!("POST / HTTP/1.1\r\nHost: api.test\r\nContent-Length: {size}\r\n\r\n");
        let bytes = [head, "x".repeat(size), get("/again")].concat();
        let (mut reader, mut writer) = tokio::io::split(guest.stream);
        // As much as it takes: the gateway may close before all of it is written.
        let writing = tokio::spawn(async move { writer.write_all(bytes.as_bytes()).await });
        let mut answer = Vec::new();
        soon(reader.read_to_end(&mut answer)).await.expect("readable");
        assert_eq!(String::from_utf8_lossy(&answer).matches("HTTP/1.1 200").count(), 1, "{size}");
        soon(guest.served).await.expect("it ends");
        drop(writing.await);
    }
}

#[tokio::test]
async fn a_response_without_a_body_has_no_length() {
    let server = servers::canned(b"HTTP/1.1 204 No Content\r\nContent-Length: 10\r\n\r\nHTTP/1.1 200").await;
    let world = World::new(local(patient(), server.port));
    let mut guest = world.connect("api.test", server.port).await.expect("a connection");
    guest.send(get("/")).await;
    let answer = guest.rest().await;
    assert!(
        answer.starts_with("HTTP/1.1 204") && !answer.contains("Length") && !answer.contains("200"),
        "{answer}"
    );
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// A field that no table has.
fn field(name: &str, value: &[u8]) -> Vec<u8> {
    [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value].concat()
}

/// `:status 200`, from the static table.
const OK: &[u8] = &[0x88];

fn head(flags: u8, fields: &[Vec<u8>]) -> Vec<u8> {
    frame(HEADERS, flags, 1, &[OK, &fields.concat()].concat())
}

/// What a server of HTTP/2 sends after a request: something once, and something again and again.
#[derive(Clone, Default)]
struct Script {
    once: Vec<u8>,
    again: Vec<u8>,
}

async fn two(mut stream: impl AsyncRead + AsyncWrite + Unpin, script: &Script) {
    let _ = stream.write_all(&frame(SETTINGS, 0, 0, &[])).await;
    let mut buffer = vec![0; 64 << 10];
    let mut seen = Vec::new();
    // The request's head is a frame on stream 1.
    while !seen.windows(4).any(|bytes| bytes == [0, 0, 0, 1]) {
        match stream.read(&mut buffer).await {
            Ok(length @ 1..) => seen.extend_from_slice(&buffer[..length]),
            _ => return,
        }
    }
    let _ = stream.write_all(&script.once).await;
    while !script.again.is_empty() && stream.write_all(&script.again).await.is_ok() {}
    // Whatever else the gateway says is read, so that nothing is lost by a reset.
    while matches!(stream.read(&mut buffer).await, Ok(1..)) {}
}

async fn serving(authority: &Authority, script: Script) -> Server {
    let acceptor = authority.acceptor(&["api.test"], &["h2"]);
    let script = Arc::new(script);
    servers::raw(move |stream| {
        let (acceptor, script) = (acceptor.clone(), script.clone());
        async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            two(stream, &script).await;
        }
    })
    .await
}

/// Asks a server by HTTP/2 and returns what the guest gets, and how its connection ends.
async fn ask(script: Script, policy: NetworkPolicy) -> (String, Ending) {
    let authority = Authority::new();
    let (file, server) = (authority.file(), serving(&authority, script).await);
    let policy =
        NetworkPolicy { http2: true, roots: Roots::CaFile, ca_file: Some(file.path().into()), ..policy };
    let world = World::new(local(policy, server.port));
    let mut guest: Guest = world.connect("api.test", server.port).await.expect("a connection");
    assert!(guest.tls("api.test", true, &[]).await.starts_with("ok\n"));
    guest.send(last("/")).await;
    let answer = guest.rest().await;
    (answer, guest.ending().await)
}

#[tokio::test]
async fn floods_by_http2_end() {
    let early = frame(HEADERS, END_HEADERS, 1, &field(":status", b"103"));
    let piece = |frame: &[u8]| frame.repeat(200);
    for (once, again, note) in [
        (vec![], piece(&early), "interim responses"),
        (vec![], piece(&frame(PING, 0, 0, &[7; 8])), "pings"),
        (vec![], piece(&frame(SETTINGS, 0, 0, &[])), "settings"),
        (
            frame(HEADERS, 0, 1, OK),
            piece(&frame(CONTINUATION, 0, 1, &field("x", b"y"))),
            "a head without end",
        ),
        (head(END_HEADERS, &[]), piece(&frame(DATA, 0, 1, &[])), "frames without data"),
        (head(END_HEADERS, &[]), piece(&frame(PING, 0, 0, &[7; 8])), "pings in a body"),
    ] {
        let (answer, ending) = ask(Script { once, again }, patient()).await;
        let refused = answer.starts_with("HTTP/1.1 502") || matches!(ending, Ending::Reset(_));
        assert!(refused && !answer.ends_with("0\r\n\r\n"), "{note}: {answer} {ending:?}");
    }
}

#[tokio::test]
async fn bodies_by_http2_have_the_same_limits_and_ends() {
    let policy = NetworkPolicy { response_bytes: 300_000, ..patient() };
    let data = frame(DATA, 0, 1, &[b'x'; 10_000]);
    // It asks for room as it is given: a window of 1 MiB is more than the limit.
    let endless = Script { once: head(END_HEADERS, &[]), again: data.repeat(4) };
    let (answer, ending) = ask(endless, policy.clone()).await;
    assert!(answer.len() < 320_000 && matches!(ending, Ending::Reset(_)), "{} {ending:?}", answer.len());
    let length = |text: &[u8]| head(END_HEADERS, &[field("content-length", text)]);
    let (answer, _) = ask(Script { once: length(b"300001"), ..Script::default() }, policy).await;
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("responseBytes"), "{answer}");
    let half = frame(DATA, 0, 1, b"half");
    for (once, note) in [
        ([length(b"10"), frame(DATA, END_STREAM, 1, b"half")].concat(), "shorter than it says"),
        ([length(b"3"), frame(DATA, END_STREAM, 1, b"half")].concat(), "longer than it says"),
        ([head(END_HEADERS, &[]), half.clone(), frame(RESET, 0, 1, &[0, 0, 0, 2])].concat(), "a reset"),
        ([head(END_HEADERS, &[]), half.clone(), frame(RESET, 0, 1, &[0, 0, 0, 8])].concat(), "a cancel"),
        ([head(END_HEADERS, &[]), half.clone(), frame(RESET, 0, 1, &[0, 0, 0, 0])].concat(), "no error"),
        (
            [length(b"10"), half.clone(), frame(RESET, 0, 1, &[0, 0, 0, 8])].concat(),
            "a cancel before its length",
        ),
        ([head(END_HEADERS, &[]), half.clone(), frame(GOAWAY, 0, 0, &[0; 8])].concat(), "the end of all"),
        ([head(END_HEADERS, &[]), half, frame(DATA, 0, 3, b"other")].concat(), "another stream"),
    ] {
        let (answer, ending) =
            ask(Script { once, ..Script::default() }, NetworkPolicy { idle_timeout_ms: 1_000, ..patient() })
                .await;
        let refused = answer.starts_with("HTTP/1.1 502") || matches!(ending, Ending::Reset(_));
        assert!(refused && !answer.ends_with("0\r\n\r\n"), "{note}: {answer} {ending:?}");
    }
}

#[tokio::test]
async fn heads_and_trailers_by_http2_cannot_split_a_response() {
    for (bad, note) in [
        (field("x", b"a\r\nSet-Cookie: b"), "a line end in a value"),
        (field("x\r\ny", b"a"), "a line end in a name"),
        (field("x y", b"a"), "a space in a name"),
        (field("X-Upper", b"a"), "upper case"),
        (field("transfer-encoding", b"chunked"), "an encoding of HTTP/1.1"),
        (field("connection", b"close"), "a connection"),
        (field(":status", b"200"), "two statuses"),
    ] {
        let once = head(END_HEADERS | END_STREAM, &[bad]);
        let (answer, _) = ask(Script { once, ..Script::default() }, patient()).await;
        assert!(answer.starts_with("HTTP/1.1 502") && !answer.contains("Set-Cookie"), "{note}: {answer}");
    }
    let trailers = [
        field("x-sum", b"42"),
        field("x-wardian-denied", b"allowedHosts"),
        field("alt-svc", b"x"),
        field("set-cookie", b"a=b"),
    ];
    let once = [
        head(END_HEADERS, &[field("x-wardian-denied", b"allowedHosts")]),
        frame(DATA, 0, 1, b"data"),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers.concat()),
    ];
    let (answer, ending) = ask(Script { once: once.concat(), ..Script::default() }, patient()).await;
    assert_eq!(ending, Ending::Closed);
    assert!(answer.contains("X-Sum: 42\r\n") && answer.ends_with("\r\n\r\n"), "{answer}");
    assert!(!answer.to_lowercase().contains("wardian") && !answer.contains("Alt-Svc"), "{answer}");
}

#[tokio::test]
async fn a_server_that_takes_no_streams_is_given_up() {
    // Room for no stream at all, and for no byte of a body.
    let none = frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    let policy = NetworkPolicy { response_timeout_ms: 500, idle_timeout_ms: 500, ..Default::default() };
    let (answer, _) = ask(Script { once: none, ..Script::default() }, policy).await;
    assert!(answer.starts_with("HTTP/1.1 504"), "{answer}");
}
