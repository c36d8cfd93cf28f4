//! A socket with many clients.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wardian_server::{Options, Server, SocketError};

use crate::support::Client;

/// A server at a socket, and how to end it.
struct Listening {
    directory: tempfile::TempDir,
    end: oneshot::Sender<()>,
    serving: JoinHandle<Result<(), SocketError>>,
}

impl Listening {
    async fn start(options: Options) -> Listening {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let (end, ended) = oneshot::channel();
        let at = path.clone();
        let serving =
            tokio::spawn(
                async move { Server::new(options).serve_socket(&at, async { drop(ended.await) }).await },
            );
        while !path.exists() {
            tokio::task::yield_now().await;
        }
        Listening { directory, end, serving }
    }

    fn path(&self) -> std::path::PathBuf {
        self.directory.path().join("socket")
    }

    async fn client(&self) -> Client<OwnedReadHalf, OwnedWriteHalf> {
        let (input, output) = UnixStream::connect(self.path()).await.unwrap().into_split();
        Client::over(input, output)
    }

    async fn end(self) {
        let path = self.path();
        self.end.send(()).unwrap();
        self.serving.await.unwrap().unwrap();
        assert!(!path.exists(), "the socket is gone with its server");
    }
}

#[tokio::test]
async fn many_clients_each_with_its_own_sandboxes() {
    let listening = Listening::start(Options::default()).await;
    let mode = std::fs::metadata(listening.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let mut clients = Vec::new();
    for number in 0..20 {
        let mut client = listening.client().await;
        client.call("create", json!({ "env": { "N": number.to_string() } })).await;
        clients.push(client);
    }
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.stdout("echo $N; ls").await, format!("{number}\n"));
        client.stdout("touch mine").await;
        // Each counts its own.
        assert_eq!(client.call("sandbox.fork", json!({})).await, json!({ "sandboxId": "1" }));
    }
    assert_eq!(clients[0].call("kill", json!({})).await, json!({ "ok": true }));
    assert_eq!(clients[0].answers.next().await, None);
    assert_eq!(clients[1].stdout("ls").await, "mine\n", "one client's end is not another's");
    listening.end().await;
    assert_eq!(clients[2].answers.next().await, None);
}

#[tokio::test]
async fn a_clients_sandboxes_end_when_it_disconnects() {
    let listening = Listening::start(Options { max_sandboxes: 4, ..Options::default() }).await;
    let mut first = listening.client().await;
    first.call("create", json!({})).await;
    for sandbox in [json!("1"), json!("2")] {
        assert_eq!(first.call("sandbox.fork", json!({})).await["sandboxId"], sandbox);
        first
            .send("run", json!({ "command": "while :; do :; done", "timeoutMs": 0, "sandboxId": sandbox }))
            .await;
    }
    let mut second = listening.client().await;
    second.call("create", json!({})).await;
    let full = second.failure("sandbox.fork", json!({})).await;
    assert_eq!(full, (-32602, "Maximum of 4 sandboxes reached".into()));
    drop(first);
    // Its room is free again as soon as the server has noticed.
    let fork = loop {
        let answer: Value = second.ask("sandbox.fork", json!({ "count": 2 })).await;
        if answer.get("result").is_some() {
            break answer["result"]["sandboxIds"].clone();
        }
    };
    assert_eq!(fork, json!(["1", "2"]));
    listening.end().await;
}

#[tokio::test]
async fn a_client_beyond_the_limit_gets_an_error_immediately() {
    let listening = Listening::start(Options { max_clients: 2, ..Options::default() }).await;
    let (mut first, mut second) = (listening.client().await, listening.client().await);
    first.call("create", json!({})).await;
    second.call("create", json!({})).await;
    for _ in 0..3 {
        let mut surplus = listening.client().await;
        let told = surplus.answers.next().await.expect("an error");
        let why = "EAGAIN: too many clients: this server has at most 2 at once (--max-clients)";
        let error = json!({ "code": 1, "message": why, "data": { "errno": "EAGAIN" } });
        assert_eq!((&told["id"], &told["error"]), (&Value::Null, &error));
    }
    assert_eq!(first.stdout("echo served").await, "served\n");
    drop(second);
    // Its place is free as soon as the server has noticed.
    loop {
        let mut next = listening.client().await;
        let id = next.send_if_open("create", json!({})).await;
        if next.answers.next().await.is_some_and(|answer| answer["id"] == json!(id)) {
            break;
        }
    }
    listening.end().await;
}

#[tokio::test]
async fn states_belong_to_clients_with_the_token() {
    let states = tempfile::tempdir().unwrap();
    let options = Options { state_dir: Some(states.path().to_owned()), ..Options::default() };
    let listening = Listening::start(options).await;
    let (mine, other) = ("the token of the first", "the token of the other");
    let client = async |token: Option<&str>| {
        let mut client = listening.client().await;
        client.call("create", json!({ "stateToken": token })).await;
        client
    };
    let mut first = client(Some(mine)).await;
    first.stdout("x=first").await;
    first.call("persistence.export", json!({ "file": "state" })).await;
    let mut second = client(Some(other)).await;
    let unknown = second.failure("persistence.import", json!({ "file": "state" })).await;
    assert_eq!(unknown, (-32602, "file: state state not found".to_owned()));
    second.stdout("x=second").await;
    second.call("persistence.export", json!({ "file": "state" })).await;
    let mut nobody = client(None).await;
    for method in ["persistence.export", "persistence.import"] {
        let (code, message) = nobody.failure(method, json!({ "file": "state" })).await;
        assert!(code == -32602 && message.contains("pass a stateToken to create"), "{message}");
    }
    drop(first);
    // A client that reconnects finds its own states, and no others.
    let mut again = client(Some(mine)).await;
    again.call("persistence.import", json!({ "file": "state" })).await;
    assert_eq!(again.stdout("echo $x").await, "first\n");
    let mut short = listening.client().await;
    let refused = short.failure("create", json!({ "stateToken": "short" })).await;
    assert_eq!(refused, (-32602, "stateToken must have from 16 to 256 bytes".to_owned()));
    listening.end().await;
}

#[tokio::test]
async fn running_requests_are_answered_at_shutdown() {
    let listening = Listening::start(Options::default()).await;
    let mut client = listening.client().await;
    client.call("create", json!({})).await;
    let running = client.send("run", json!({ "command": "while :; do :; done", "timeoutMs": 0 })).await;
    let queued = client.send("run", json!({ "command": "echo never" })).await;
    client.call("files.list", json!({ "path": "/" })).await;
    listening.end().await;
    for id in [running, queued] {
        assert_eq!(client.answer(id).await["result"]["errorClass"], "CANCELLED");
    }
    assert_eq!(client.answers.next().await, None);
}

#[tokio::test]
async fn a_socket_is_taken_over_from_the_dead_and_from_nobody_else() {
    let end = || std::future::ready(());
    let listening = Listening::start(Options::default()).await;
    let server = Server::new(Options::default());
    let refused = server.serve_socket(&listening.path(), end()).await;
    assert!(matches!(refused, Err(SocketError::InUse(_))), "{refused:?}");
    let file = listening.directory.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let refused = server.serve_socket(&file, end()).await;
    assert!(matches!(refused, Err(SocketError::Io { .. })), "{refused:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let dead = listening.directory.path().join("dead");
    drop(std::os::unix::net::UnixListener::bind(&dead).unwrap());
    server.serve_socket(&dead, end()).await.unwrap();
    assert!(server.serve_socket(Path::new("/no/such/directory/socket"), end()).await.is_err());
    listening.end().await;
}
