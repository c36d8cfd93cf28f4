//! What one client keeps, waits for or does not finish is no burden on others.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::task::{JoinSet, coop};
use wardian_server::{Options, Server};

use crate::support::{Client, base64};

const MIB: usize = 1 << 20;

#[tokio::test]
async fn a_failed_create_keeps_nothing_of_what_it_was_given() {
    let mut client = Client::new(Options::default());
    let files = json!({ "a": base64(vec![7; 4 * MIB]) });
    let (_, message) = client
        .failure("create", json!({ "fsLimitBytes": MIB, "mounts": [{ "path": "/m", "files": files }] }))
        .await;
    assert!(message.starts_with("ENOSPC"), "{message}");
    // Another one follows as if there had been none, without what the first was given.
    client.call("create", json!({})).await;
    let named = client.call("sandbox.create", json!({})).await;
    let listed = client.call("run", json!({ "command": "ls /", "sandboxId": named["sandboxId"] })).await;
    assert!(!listed["stdout"].as_str().unwrap().contains("m\n"), "{listed}");
}

#[tokio::test]
async fn a_fork_that_waits_takes_no_capacity() {
    let server = Server::new(Options { max_sandboxes: 8, ..Options::default() });
    let (mut one, mut other) = (Client::of(&server), Client::of(&server));
    one.call("create", json!({})).await;
    other.call("create", json!({})).await;
    one.send("run", json!({ "command": "sleep 100" })).await;
    one.send("sandbox.fork", json!({ "count": 6 })).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..6 {
        other.call("sandbox.create", json!({})).await;
    }
    one.send("cancel", json!({})).await;
    let mut outcomes: Vec<Value> = Vec::new();
    for _ in 0..3 {
        outcomes.push(one.answers.next().await.unwrap());
    }
    let refused = outcomes.iter().find_map(|answer| answer["error"]["message"].as_str());
    assert_eq!(refused, Some("Maximum of 8 sandboxes reached"), "{outcomes:?}");
}

#[tokio::test]
async fn what_is_too_long_for_an_answer_is_refused_by_name() {
    let mut client =
        Client::created(json!({ "limits": { "rpcBytes": 32 * MIB, "stdoutBytes": 100 * MIB } })).await;
    let flood = json!({ "command": "head -c 70000000 /dev/zero | tr '\\0' x", "timeoutMs": 0 });
    let (_, message) = client.failure("run", flood).await;
    assert!(message.starts_with("EFBIG: "), "{message}");
    let script = "v=$(head -c 70000000 /dev/zero | tr '\\0' x)";
    client.call("run", json!({ "command": script, "timeoutMs": 0 })).await;
    let (code, message) = client.failure("env.get", json!({ "name": "v" })).await;
    assert_eq!((code, message.starts_with("EFBIG: env.get: ")), (1, true), "{message}");
    // What a message repeats of a request is cut.
    let long = "m".repeat(20 * MIB);
    for (method, params) in [(&long[..], json!({})), ("files.read", json!({ "path": &long }))] {
        let (_, message) = client.failure(method, params).await;
        assert!(message.len() < 10_000, "{} bytes", message.len());
    }
    assert_eq!(client.call("run", json!({ "command": "echo on" })).await["stdout"], "on\n");
}

#[tokio::test]
async fn a_pool_is_as_large_as_the_clients_want_that_are_there() {
    let server = Server::new(Options::default());
    let mut greedy = Client::of(&server);
    greedy.call("create", json!({ "pool": { "minSize": 1_000_000 } })).await;
    // It is given some, not that many: others have capacity for theirs.
    let mut other = Client::of(&server);
    other.call("create", json!({})).await;
    assert_eq!(other.call("run", json!({ "command": "echo on" })).await["stdout"], "on\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_extension_with_long_input_holds_up_nobody() {
    let server = Server::new(Options::default());
    let (mut client, mut neighbour) = (Client::of(&server), Client::of(&server));
    client
        .call("create", json!({ "extensions": [{ "name": "ext" }], "limits": { "memoryBytes": 1 << 30 } }))
        .await;
    neighbour.call("create", json!({})).await;
    // Too long to be sent: the command is told so, before anything is made of it.
    let script = "head -c 60000000 /dev/zero | tr '\\0' '\\377' | ext";
    let result = client.call("run", json!({ "command": script, "timeoutMs": 0 })).await;
    assert_eq!(result["exitCode"], 1, "{result}");
    let said = result["stderr"].as_str().unwrap();
    assert!(said.contains("extension.invoke would be longer than answerBytes"), "{said}");
    assert_eq!(neighbour.call("run", json!({ "command": "echo on" })).await["stdout"], "on\n");
}

/// An input without end that counts what is read of it.
struct Endless(Vec<u8>, Arc<AtomicUsize>);

impl AsyncRead for Endless {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // As a socket does it: so the runtime interrupts those who never wait.
        ready!(coop::poll_proceed(context)).made_progress();
        let part = &self.0[..buffer.remaining().min(self.0.len())];
        buffer.put_slice(part);
        self.1.fetch_add(part.len(), Ordering::SeqCst);
        Poll::Ready(Ok(()))
    }
}

/// The most that is read of so many clients, who never stop sending this, between two turns of a neighbour.
async fn most_at_once(clients: usize, byte: u8) -> usize {
    let (server, read) = (Server::new(Options::default()), Arc::<AtomicUsize>::default());
    let mut serving = JoinSet::new();
    for _ in 0..clients {
        let (server, input) = (server.clone(), Endless(vec![byte; 64 << 10], read.clone()));
        serving.spawn(async move { server.serve(input, tokio::io::sink()).await });
    }
    let (mut most, mut last) = (0, 0);
    for turn in 0..1000 {
        tokio::task::yield_now().await;
        let now = read.load(Ordering::SeqCst);
        // In the first turns all of them are new.
        if turn >= 100 {
            most = most.max(now - last);
        }
        last = now;
    }
    most
}

#[tokio::test]
async fn a_neighbour_of_many_busy_senders_waits_no_longer_than_of_a_few() {
    // One line without end, and lines without anything.
    for byte in [b'x', b'\n'] {
        let (one, many) = (most_at_once(1, byte).await, most_at_once(300, byte).await);
        assert!(one > 0, "it is read");
        assert!(many <= 8 * one, "{many} bytes of many between two turns, {one} of one");
    }
}
