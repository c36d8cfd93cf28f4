//! One table of requests and answers, over every transport: standard streams, the socket, a WebSocket and HTTP. They must not
//! differ.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, duplex, split};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use wardian_contract::methods;
use wardian_server::{Http, Options, Server};

use crate::rest::Site;
use crate::support::{Client, base64};
use crate::table::matches;

/// A method, its params, and its result, or the message of its error.
type Row = (&'static str, Value, Result<Value, &'static str>);

fn ok() -> Result<Value, &'static str> {
    Ok(json!({ "ok": true }))
}

/// Every method that is the same everywhere.
fn rows() -> Vec<Row> {
    let ran = |code: u8, stdout: &str| {
        Ok(json!({ "exitCode": code, "stdout": stdout, "stderr": "", "executionTimeMs": "*" }))
    };
    vec![
        ("capabilities", json!({}), Ok(json!("*"))),
        ("run", json!({ "command": "echo hi; exit 3" }), ran(3, "hi\n")),
        ("run", json!({ "command": "cat", "stdin": base64("a b") }), ran(0, "a b")),
        ("run", json!({}), Err("Missing required param: command")),
        ("run", json!({ "command": 1 }), Err("command must be a string")),
        (
            "run",
            json!({ "command": "", "tiemoutMs": 1 }),
            Err("Unknown param: tiemoutMs (did you mean timeoutMs?)"),
        ),
        ("run", json!({ "command": "", "cwd": "/no" }), Err("ENOENT: no such file or directory: /no")),
        ("cancel", json!({}), Ok(json!({ "ok": true, "cancelled": false }))),
        ("isRunning", json!({}), Ok(json!({ "running": false }))),
        ("usage", json!({}), Ok(json!({ "processes": "*", "memoryBytes": "*", "fsBytes": "*" }))),
        ("files.mkdir", json!({ "path": "/tmp/d e/f" }), ok()),
        ("files.write", json!({ "path": "/tmp/d e/ü", "data": base64("hello"), "mode": 0o640 }), ok()),
        ("files.read", json!({ "path": "/tmp/d e/ü" }), Ok(json!({ "data": base64("hello") }))),
        (
            "files.read",
            json!({ "path": "/tmp/d e/ü", "offset": 1, "length": 2 }),
            Ok(json!({ "data": base64("el"), "size": 5 })),
        ),
        ("files.read", json!({ "path": "/tmp/no" }), Err("ENOENT: no such file or directory: /tmp/no")),
        ("files.read", json!({}), Err("Missing required param: path")),
        (
            "files.stat",
            json!({ "path": "/tmp/d e/ü" }),
            Ok(json!({ "name": "ü", "type": "file", "size": 5, "mode": 0o640, "mtimeMs": "*" })),
        ),
        ("files.copy", json!({ "path": "/tmp/d e/ü", "to": "/tmp/c" }), ok()),
        ("files.rename", json!({ "path": "/tmp/c", "to": "/tmp/r" }), ok()),
        ("files.chmod", json!({ "path": "/tmp/r", "mode": 0o600 }), ok()),
        ("files.symlink", json!({ "path": "/tmp/l", "target": "r" }), ok()),
        (
            "files.list",
            json!({ "path": "/tmp", "recursive": true }),
            Ok(json!({ "entries": [
                { "name": "d e", "type": "dir", "size": "*" },
                { "name": "d e/f", "type": "dir", "size": "*" },
                { "name": "d e/ü", "type": "file", "size": 5 },
                { "name": "l", "type": "symlink", "size": 1 },
                { "name": "r", "type": "file", "size": 5 },
            ] })),
        ),
        ("files.list", json!({ "path": "/tmp", "recursive": "yes" }), Err("recursive must be true or false")),
        ("files.rm", json!({ "path": "/tmp/d e" }), ok()),
        ("mount", json!({ "path": "/m", "files": { "a": base64("b") } }), ok()),
        ("env.set", json!({ "name": "A", "value": "b c" }), ok()),
        ("env.get", json!({ "name": "A" }), Ok(json!({ "value": "b c" }))),
        ("env.unset", json!({ "name": "A" }), ok()),
        ("env.get", json!({ "name": "A" }), Ok(json!({ "value": null }))),
        ("env.list", json!({}), Ok(json!({ "variables": "*" }))),
        ("snapshot.create", json!({}), Ok(json!({ "id": "1" }))),
        ("run", json!({ "command": "rm /tmp/r" }), ran(0, "")),
        ("snapshot.restore", json!({ "id": "1" }), ok()),
        ("run", json!({ "command": "cat /tmp/r /m/a" }), ran(0, "hellob")),
        ("snapshot.restore", json!({ "id": "7" }), Err("Unknown snapshot: 7")),
        (
            "python.run",
            json!({ "code": "20 + 22" }),
            Ok(json!({
                "exitCode": 0, "stdout": "", "stderr": "", "executionTimeMs": "*", "value": { "repr": "42" },
            })),
        ),
        ("sandbox.suspend", json!({}), ok()),
        ("sandbox.resume", json!({}), ok()),
        (
            "process.start",
            json!({ "command": "cat", "stdin": true }),
            Ok(json!({ "processId": "1", "pid": "*" })),
        ),
        (
            "process.list",
            json!({}),
            Ok(json!({ "processes": [
            { "processId": "1", "pid": "*", "command": "*", "pty": false },
        ] })),
        ),
        ("process.write", json!({ "processId": "1", "data": base64("x") }), ok()),
        ("process.closeStdin", json!({ "processId": "1" }), ok()),
        ("process.wait", json!({ "processId": "1" }), Ok(json!({ "exitCode": 0, "executionTimeMs": "*" }))),
        ("process.signal", json!({ "processId": "9", "signal": "TERM" }), Err("Unknown processId: 9")),
        (
            "process.resize",
            json!({ "processId": "1", "rows": 0, "columns": 80 }),
            Err("rows must be a number from 1 to 4096"),
        ),
        ("persistence.save", json!({}), Err("*")),
        ("persistence.checkout", json!({}), Err("Missing required param: commit")),
        ("image.save", json!({ "script": "x" }), Err("Missing required param: name")),
        (
            "persistence.export",
            json!({ "file": "a" }),
            Err("file: the server was started without --state-dir"),
        ),
        ("persistence.export", json!({}), Ok(json!({ "data": "*" }))),
        ("persistence.import", json!({}), Err("Missing required param: data")),
        ("mount.diff", json!({ "path": "/tmp", "patch": true }), Err("EINVAL: invalid argument: /tmp")),
        ("mount.apply", json!({ "path": "/tmp" }), Err("EINVAL: invalid argument: /tmp")),
        ("net.url", json!({ "port": 0 }), Err("port must be a port, from 1 to 65535")),
        ("shell.history.list", json!({}), Ok(json!({ "entries": "*" }))),
        ("shell.history.clear", json!({}), ok()),
        ("sandbox.fork", json!({ "count": 0 }), Err("count must be at least 1")),
    ]
}

fn check(method: &str, params: &Value, found: Result<Value, String>, expected: &Result<Value, &str>) {
    let fits = match (&found, expected) {
        (Ok(found), Ok(expected)) => matches(found, expected),
        (Err(found), Err(expected)) => *expected == "*" || found == expected,
        _ => false,
    };
    assert!(fits, "{method} {params}\n  answers {found:?}\n not      {expected:?}");
    if let (Ok(result), Some(method)) = (found, methods::find(method)) {
        (method.check)(result).unwrap_or_else(|error| panic!("{}: {error}", method.name));
    }
}

async fn over_lines<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(mut client: Client<R, W>) {
    assert_eq!(client.call("create", json!({})).await, json!({ "ok": true }));
    for (method, params, expected) in rows() {
        let answer = client.ask(method, params.clone()).await;
        let found = match answer.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(answer["error"]["message"].as_str().expect("a message").to_owned()),
        };
        check(method, &params, found, &expected);
    }
}

#[tokio::test]
async fn over_standard_streams() {
    over_lines(Client::new(Options::default())).await;
}

#[tokio::test]
async fn over_the_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let socket = wardian_server::Socket::bind(&path).expect("a socket");
    let server = Server::new(Options::default());
    tokio::spawn(async move { server.serve_clients(socket, std::future::pending()).await });
    let (answers, requests) = UnixStream::connect(&path).await.expect("it listens").into_split();
    over_lines(Client::over(answers, requests)).await;
}

#[tokio::test]
async fn over_http() {
    let site = Site::start().await;
    let sandbox = site.create(json!({})).await;
    let mut reached = 0;
    for (method, params, expected) in rows() {
        let route = methods::find(method).and_then(|method| method.route);
        assert!(route.is_some(), "{method} cannot be reached by HTTP");
        let found = site.ask(&sandbox, method, params.clone()).await;
        check(method, &params, found.map_err(|(_, message)| message), &expected);
        reached += 1;
    }
    let all: Vec<&str> =
        methods::METHODS.iter().filter(|method| method.route.is_some()).map(|m| m.name).collect();
    let tested: Vec<&str> = rows().iter().map(|row| row.0).collect();
    let forgotten: Vec<_> = all.iter().filter(|name| **name != "create" && !tested.contains(name)).collect();
    assert!(forgotten.is_empty(), "{forgotten:?} are not in the table of {reached} rows");
}

#[tokio::test]
async fn over_a_websocket() {
    let at = listen().await;
    let (answers, requests) = split(websocket(at, "").await);
    over_lines(Client::over(answers, requests)).await;
}

async fn listen() -> SocketAddr {
    listen_with(Options::default()).await
}

async fn listen_with(options: Options) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let server = Server::new(options);
    tokio::spawn(async move { server.serve_http(listener, Http::default(), std::future::pending()).await });
    at
}

/// Asks for a WebSocket; returns the head of the answer.
async fn shake_hands(at: SocketAddr, more: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(at).await.expect("it listens");
    let request = format!(
        "GET /rpc HTTP/1.1\r\nHost: {at}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    );
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("an answer"));
    }
    (stream, String::from_utf8(head).expect("text"))
}

/// Returns a WebSocket as lines: each line that is written is a message, and each message is a line.
pub(crate) async fn websocket(at: SocketAddr, more: &str) -> tokio::io::DuplexStream {
    let (stream, head) = shake_hands(at, more).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "{head}");
    assert!(head.to_lowercase().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
    let (ours, theirs) = duplex(1 << 20);
    let (mut reader, mut writer) = stream.into_split();
    let (mut lines, mut answers) = split(theirs);
    tokio::spawn(async move {
        let (mut buffer, mut number) = (vec![0; 1000], 0u8);
        loop {
            let count = lines.read(&mut buffer).await.unwrap_or(0);
            if count == 0 {
                return;
            }
            // A frame for each piece of a line, masked, and a ping now and then.
            for part in buffer[..count].split_inclusive(|&byte| byte == b'\n') {
                number = number.wrapping_add(1);
                let text = part.strip_suffix(b"\n").unwrap_or(part);
                let frame = client_frame(number, text, part.len() != text.len());
                writer.write_all(&frame).await.expect("it reads");
            }
        }
    });
    tokio::spawn(async move {
        while let Some((opcode, last, payload)) = server_frame(&mut reader).await {
            match opcode {
                0 | 1 => answers.write_all(&payload).await.expect("room"),
                8 => return,
                _ => continue,
            }
            if last {
                answers.write_all(b"\n").await.expect("room");
            }
        }
    });
    ours
}

thread_local! {
    static IN_MESSAGE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

fn client_frame(number: u8, text: &[u8], last: bool) -> Vec<u8> {
    let opcode = u8::from(!IN_MESSAGE.replace(!last));
    let mut frame = Vec::new();
    if number.is_multiple_of(8) {
        frame.extend_from_slice(&[0x89, 0x81, 0, 0, 0, 0, b'?']);
    }
    frame.push(if last { 0x80 | opcode } else { opcode });
    match text.len() {
        0..=125 => frame.push(0x80 | text.len() as u8),
        length => {
            frame.push(0x80 | 126);
            frame.extend_from_slice(&(length as u16).to_be_bytes());
        }
    }
    let mask = [number, 1, 2, 3];
    frame.extend_from_slice(&mask);
    frame.extend(text.iter().enumerate().map(|(at, byte)| byte ^ mask[at % 4]));
    frame
}

async fn server_frame(reader: &mut (impl AsyncRead + Unpin)) -> Option<(u8, bool, Vec<u8>)> {
    let (first, second) = (reader.read_u8().await.ok()?, reader.read_u8().await.ok()?);
    assert!(second & 0x80 == 0, "servers do not mask");
    let length = match second {
        126 => u64::from(reader.read_u16().await.ok()?),
        127 => reader.read_u64().await.ok()?,
        length => u64::from(length),
    };
    let mut payload = vec![0; usize::try_from(length).expect("a length")];
    reader.read_exact(&mut payload).await.ok()?;
    Some((first & 0x0f, first & 0x80 != 0, payload))
}

#[tokio::test]
async fn websockets_end_as_they_should() {
    let at = listen().await;
    let (_, head) = shake_hands(at, "Origin: https://evil.test\r\n").await;
    assert!(head.starts_with("HTTP/1.1 403 "), "a page of another site: {head}");
    let (_, head) = shake_hands(at, &format!("Origin: http://{at}\r\n")).await;
    assert!(head.starts_with("HTTP/1.1 101 "), "a page of this server: {head}");
    // Each breach of the protocol is told by its code.
    let cases: [(&[u8], u16); 3] = [
        (&[0x81, 1, b'a'], 1002),
        (&[0x82, 0x81, 0, 0, 0, 0, b'a'], 1003),
        (&[0x88, 0x80, 0, 0, 0, 0], 1000),
    ];
    for (bytes, code) in cases {
        let (mut stream, _) = shake_hands(at, "").await;
        stream.write_all(bytes).await.expect("it reads");
        let mut frames = VecDeque::new();
        while let Some(frame) = server_frame(&mut stream).await {
            frames.push_back(frame);
        }
        let (opcode, _, payload) = frames.pop_back().expect("a frame");
        assert_eq!((opcode, payload), (8, code.to_be_bytes().to_vec()));
    }
}

#[tokio::test]
async fn a_message_that_is_too_long_is_refused_and_the_websocket_lives() {
    let (answers, requests) = split(websocket(listen().await, "").await);
    let mut client = Client::over(answers, requests);
    client.call("create", json!({ "limits": { "rpcBytes": 2000 } })).await;
    client.requests.send("run", json!({ "command": format!("# {}", "x".repeat(5000)) })).await;
    // It was not read, so nobody knows which request it was.
    let long = client.answers.next().await.expect("an answer");
    assert_eq!(long["id"], Value::Null);
    assert_eq!(long["error"], json!({ "code": -32700, "message": "Request too large" }));
    assert_eq!(client.call("run", json!({ "command": "echo on" })).await["stdout"], "on\n");
}

/// The message of a client, in one frame.
fn message(text: &str) -> Vec<u8> {
    let mut frame = vec![0x81, 0xff];
    frame.extend_from_slice(&(text.len() as u64).to_be_bytes());
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Connects as soon as there is room.
async fn shake_hands_at_last(at: SocketAddr) -> TcpStream {
    loop {
        let (stream, head) = shake_hands(at, "").await;
        if head.starts_with("HTTP/1.1 101 ") {
            return stream;
        }
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_runs_ends_with_its_websocket() {
    let at = listen_with(Options { max_clients: 1, max_sandboxes: 1, ..Options::default() }).await;
    let create = message(r#"{"id":1,"method":"create","params":{"timeoutMs":0}}"#);
    for _ in 0..2 {
        let mut stream = shake_hands_at_last(at).await;
        stream.write_all(&create).await.expect("it reads");
        let (.., created) = server_frame(&mut stream).await.expect("an answer");
        assert!(String::from_utf8_lossy(&created).contains(r#""ok":true"#), "{created:?}");
        let run = message(r#"{"id":2,"method":"run","params":{"command":"while :; do :; done"}}"#);
        stream.write_all(&run).await.expect("it reads");
        let asked = message(r#"{"id":3,"method":"isRunning"}"#);
        stream.write_all(&asked).await.expect("it reads");
        let (.., running) = server_frame(&mut stream).await.expect("an answer");
        assert!(String::from_utf8_lossy(&running).contains(r#""running":true"#), "{running:?}");
        // The connection breaks. The next client finds both its place and that of its sandbox.
        drop(stream);
    }
}

/// How many runs have succeeded.
async fn runs_done(at: SocketAddr) -> u64 {
    let mut stream = TcpStream::connect(at).await.expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {at}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("an answer");
    let line = "wardian_runs_total{outcome=\"success\"} ";
    page.lines().find_map(|found| found.strip_prefix(line)?.parse().ok()).unwrap_or_default()
}

#[tokio::test]
async fn a_client_that_never_reads_loses_its_websocket_when_it_closes_it() {
    let at = listen_with(Options { max_clients: 1, ..Options::default() }).await;
    let (mut stream, _) = shake_hands(at, "").await;
    stream.write_all(&message(r#"{"id":1,"method":"create"}"#)).await.expect("it reads");
    let params = r#"{"command":"head -c 1000000 /dev/zero | tr '\\0' x"}"#;
    for id in 2..40 {
        let run = format!(r#"{{"id":{id},"method":"run","params":{params}}}"#);
        stream.write_all(&message(&run)).await.expect("it reads");
    }
    // More than the connection takes: the writer waits.
    while runs_done(at).await < 24 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.expect("it reads");
    // It neither reads nor goes away; the next client gets its place all the same.
    shake_hands_at_last(at).await;
    drop(stream);
}
