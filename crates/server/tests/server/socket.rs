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
async fn what_a_client_had_is_gone_when_it_leaves() {
    let listening = Listening::start(Options { max_sandboxes: 2, ..Options::default() }).await;
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
    assert_eq!(full, (-32602, "Maximum of 2 sandboxes reached".into()));
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
