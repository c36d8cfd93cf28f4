//! Connections to ports of a sandbox, over the protocol.

use std::time::Duration;

use serde_json::{Value, json};
use wardian_server::{Options, Server};

use crate::support::{Client, base64, decode};

/// A server that echoes what it receives and, at the end, says goodbye.
pub(crate) const ECHO: &str = "
import socket
listener = socket.create_server(('127.0.0.1', 7), backlog=64)
while True:
    with listener.accept()[0] as one:
        while data := one.recv(65536):
            one.sendall(data)
        one.sendall(b'bye')
";
/// One that sends without end, and one that accepts nobody.
const ENDLESS: &str = "
import socket
with socket.create_server(('127.0.0.1', 8)).accept()[0] as one:
    while True:
        one.sendall(b'x' * 65536)
";
const DEAF: &str = "
import socket, time
listener = socket.create_server(('127.0.0.1', 9), backlog=1000)
time.sleep(1000)
";

/// Starts a server in the background and waits until it listens.
pub(crate) async fn start(client: &mut Client, script: &str, port: u16) {
    client.call("files.write", json!({ "path": format!("/tmp/{port}.py"), "data": base64(script) })).await;
    client
        .call("run", json!({ "command": format!("python3 /tmp/{port}.py > /tmp/{port}.log 2>&1 &") }))
        .await;
    loop {
        let listening = client.stdout("ss -ltn").await;
        if listening.contains(&format!(":{port} ")) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn connect(client: &mut Client, port: u16) -> Value {
    client.call("net.connect", json!({ "port": port })).await["streamId"].clone()
}

/// The next thing that a connection says: bytes, or nothing and an error at the end.
async fn hear(client: &mut Client, stream: &Value) -> Result<Vec<u8>, Option<String>> {
    let message = client.answers.told().await;
    assert_eq!(&message["params"]["streamId"], stream, "{message}");
    match message["method"].as_str() {
        Some("net.data") => Ok(decode(&message["params"]["data"])),
        Some("net.end") => Err(message["params"]["error"].as_str().map(str::to_owned)),
        _ => panic!("{message}"),
    }
}

#[tokio::test]
async fn a_port_is_reached_and_each_side_ends_its_own_direction() {
    let mut client = Client::created(json!({})).await;
    start(&mut client, ECHO, 7).await;
    let stream = connect(&mut client, 7).await;
    client.call("net.write", json!({ "streamId": stream, "data": base64("hello") })).await;
    assert_eq!(hear(&mut client, &stream).await, Ok(b"hello".to_vec()));
    client.call("net.ack", json!({ "streamId": stream, "bytes": 5 })).await;
    // The guest still answers after the client has ended its direction.
    client.call("net.closeWrite", json!({ "streamId": stream })).await;
    assert_eq!(hear_all(&mut client, &stream).await, b"bye");
    let (code, message) = client.failure("net.write", json!({ "streamId": stream, "data": "" })).await;
    assert_eq!((code, message.as_str()), (1, "EBADF: the connection 1 is closed"));
    assert_eq!(client.call("net.close", json!({ "streamId": stream })).await, json!({ "ok": true }));
    client.leave().await;
}

#[tokio::test]
async fn connections_one_after_the_other_end_in_any_order() {
    let mut client = Client::created(json!({})).await;
    start(&mut client, ECHO, 7).await;
    for number in 0..60 {
        let stream = connect(&mut client, 7).await;
        let named = json!({ "streamId": stream });
        match number % 3 {
            0 => assert_eq!(client.call("net.close", named).await, json!({ "ok": true })),
            1 => {
                client.call("net.closeWrite", named).await;
                assert_eq!(hear_all(&mut client, &stream).await, b"bye");
            }
            _ => {
                client.send("net.closeWrite", named.clone()).await;
                assert_eq!(hear_all(&mut client, &stream).await, b"bye");
                client.call("net.close", named).await;
            }
        }
    }
    client.leave().await;
}

#[tokio::test]
async fn long_data_is_echoed_complete() {
    let mut client = Client::created(json!({})).await;
    start(&mut client, ECHO, 7).await;
    let stream = connect(&mut client, 7).await;
    let data: Vec<u8> = (0..600_000u32).map(|number| (number % 251) as u8).collect();
    client.send("net.write", json!({ "streamId": stream, "data": base64(&data) })).await;
    client.send("net.closeWrite", json!({ "streamId": stream })).await;
    let mut heard = hear_all(&mut client, &stream).await;
    assert_eq!(heard.split_off(data.len()), b"bye");
    assert!(heard == data);
    client.leave().await;
}

/// What runs in the background ends at its timeout; without one it stays as long as the sandbox.
#[tokio::test]
async fn a_background_timeout_of_zero_is_none() {
    let mut client = Client::created(json!({ "backgroundTimeoutMs": 300 })).await;
    let alive = "kill -0 $job 2> /dev/null && echo alive";
    client.call("run", json!({ "command": "sleep 1000 & job=$!" })).await;
    while client.stdout(alive).await == "alive\n" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    client.leave().await;
    let mut client = Client::created(json!({ "backgroundTimeoutMs": 0 })).await;
    start(&mut client, ECHO, 7).await;
    // Longer than the other one's job stayed.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let stream = connect(&mut client, 7).await;
    client.call("net.closeWrite", json!({ "streamId": stream })).await;
    assert_eq!(hear_all(&mut client, &stream).await, b"bye");
    client.leave().await;
}

/// Everything up to the end, acknowledged, while answers come as well.
async fn hear_all(client: &mut Client, stream: &Value) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let message = client.answers.next().await.expect("a message");
        match message["method"].as_str() {
            Some("net.data") => {
                let bytes = decode(&message["params"]["data"]);
                client.send("net.ack", json!({ "streamId": stream, "bytes": bytes.len() })).await;
                all.extend(bytes);
            }
            Some("net.end") => return all,
            // An acknowledgement may come too late.
            _ => assert!(
                message["error"]["data"]["errno"].as_str().is_none_or(|errno| errno == "EBADF"),
                "{message}"
            ),
        }
    }
}

#[tokio::test]
async fn what_cannot_be_connected_is_refused_by_name() {
    let mut client = Client::created(json!({})).await;
    for port in [json!(0), json!(65536), json!(1u64 << 40)] {
        let (code, message) = client.failure("net.connect", json!({ "port": port })).await;
        assert_eq!((code, message.as_str()), (-32602, "port must be a port, from 1 to 65535"), "{port}");
    }
    for port in [json!(-1), json!(1.5), json!("80")] {
        assert_eq!(client.failure("net.connect", json!({ "port": port })).await.0, -32602, "{port}");
    }
    let (code, message) = client.failure("net.connect", json!({ "port": 80 })).await;
    assert!(code == 1 && message.starts_with("ECONNREFUSED"), "{message}");
    for id in ["1", "01", "x", ""] {
        let (code, message) = client.failure("net.close", json!({ "streamId": id })).await;
        assert_eq!((code, message), (-32602, format!("Unknown streamId: {id}")));
    }
    let (code, message) = client.failure("net.url", json!({ "port": 80 })).await;
    assert_eq!((code, message.split(':').next()), (1, Some("ENOTSUP")));
}

#[tokio::test]
async fn connections_are_a_clients_own() {
    let server = Server::new(Options::default());
    let (mut one, mut other) = (Client::of(&server), Client::of(&server));
    one.call("create", json!({})).await;
    other.call("create", json!({})).await;
    start(&mut one, ECHO, 7).await;
    let stream = connect(&mut one, 7).await;
    for method in ["net.close", "net.closeWrite"] {
        let (code, _) = other.failure(method, json!({ "streamId": stream })).await;
        assert_eq!(code, -32602, "{method}");
    }
    assert!(other.failure("net.connect", json!({ "port": 7 })).await.1.starts_with("ECONNREFUSED"));
}

#[tokio::test]
async fn a_client_that_acknowledges_nothing_is_sent_no_more_than_the_window() {
    let mut client = Client::created(json!({})).await;
    start(&mut client, ENDLESS, 8).await;
    let stream = connect(&mut client, 8).await;
    let mut heard = 0;
    while heard < 256 << 10 {
        heard += hear(&mut client, &stream).await.expect("bytes").len();
    }
    assert_eq!(heard, 256 << 10);
    // Everything else goes on, and nothing more of it comes.
    assert_eq!(client.stdout("echo hi").await, "hi\n");
    assert!(client.answers.is_empty(), "more than the window came");
    let (code, _) = client.failure("net.ack", json!({ "streamId": stream, "bytes": (256 << 10) + 1 })).await;
    assert_eq!(code, -32602, "more than was sent cannot be acknowledged");
    client.call("net.ack", json!({ "streamId": stream, "bytes": 1000 })).await;
    assert_eq!(hear(&mut client, &stream).await.expect("bytes").len(), 1000);
    client.call("net.close", json!({ "streamId": stream })).await;
    client.leave().await;
}

#[tokio::test]
async fn a_guest_that_does_not_read_makes_the_client_wait_and_not_the_server_keep_it() {
    let mut client = Client::created(json!({})).await;
    start(&mut client, DEAF, 9).await;
    let stream = connect(&mut client, 9).await;
    let too_long = json!({ "streamId": stream, "data": base64(vec![0; (1 << 20) + 1]) });
    assert_eq!(client.failure("net.write", too_long).await.0, -32602);
    let piece = json!({ "streamId": stream, "data": base64(vec![0; 1 << 20]) });
    let (mut sent, mut refused) = (Vec::new(), None);
    for _ in 0..16 {
        sent.push(client.send("net.write", piece.clone()).await);
    }
    while refused.is_none() {
        let message = client.answers.next().await.expect("an answer");
        refused = message["error"]["message"].as_str().map(str::to_owned);
    }
    assert!(refused.unwrap().starts_with("EAGAIN"));
    // Closing ends what waits.
    client.call("net.close", json!({ "streamId": stream })).await;
    client.leave().await;
}

#[tokio::test]
async fn a_thousand_connects_are_capped_and_closing_frees_one() {
    let mut client = Client::created(json!({})).await;
    start(&mut client, DEAF, 9).await;
    let mut ids = Vec::new();
    for _ in 0..1000 {
        ids.push(client.send("net.connect", json!({ "port": 9 })).await);
    }
    let (mut open, mut refused) = (Vec::new(), 0);
    for id in ids {
        let answer = client.answer(id).await;
        match answer["error"]["data"]["errno"].as_str() {
            None => open.push(answer["result"]["streamId"].clone()),
            Some(errno) => {
                assert!(matches!(errno, "EMFILE" | "ETIMEDOUT" | "EAGAIN"), "{answer}");
                refused += 1;
            }
        }
    }
    assert!(open.len() <= 256 && refused >= 744, "{} {refused}", open.len());
    for stream in open {
        client.call("net.close", json!({ "streamId": stream })).await;
    }
    client.leave().await;
}

#[tokio::test]
async fn connections_end_with_their_sandbox() {
    let mut client = Client::created(json!({})).await;
    let fork = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    client.call("files.write", json!({ "sandboxId": fork, "path": "/tmp/s.py", "data": base64(ECHO) })).await;
    client.call("run", json!({ "sandboxId": fork, "command": "python3 /tmp/s.py &" })).await;
    let stream = loop {
        let answer = client.ask("net.connect", json!({ "sandboxId": fork, "port": 7 })).await;
        if answer.get("error").is_none() {
            break answer["result"]["streamId"].clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    client.call("sandbox.remove", json!({ "sandboxId": fork })).await;
    assert!(matches!(hear(&mut client, &stream).await, Err(Some(_) | None)));
    let (code, _) = client.failure("net.write", json!({ "streamId": stream, "data": base64("x") })).await;
    assert_eq!(code, 1);
    client.leave().await;
}
