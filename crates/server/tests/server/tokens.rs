//! Several tokens: whose sandboxes are whose, what a tenant may take, and what is written of each request.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::TcpStream;
use wardian::Store;
use wardian_server::{AccessLog, Http, Options, Tokens};

use crate::rest::{Site, read};
use crate::support::Client;
use crate::transports::websocket;

const FILE: &str = r#"
origins = ["https://app.example.com"]

[[token]]
name = "one"
secret = "token-number-one"
tenant = "acme"

[[token]]
name = "two"
secret = "token-number-two"
tenant = "acme"

[[token]]
name = "other"
secret = "token-of-another"
admin = true

[tenant.acme]
sandboxes = 2
memory-bytes = 3000000000
runs-per-second = 0.0001
"#;

pub(crate) struct Tenants {
    file: NamedTempFile,
    tokens: Tokens,
    pub(crate) site: Site,
}

impl Tenants {
    pub(crate) async fn start() -> Tenants {
        Tenants::with(None, Options::default()).await
    }

    pub(crate) async fn with(log: Option<&Path>, options: Options) -> Tenants {
        let file = NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), FILE).expect("it is written");
        let tokens = Tokens::open(file.path()).expect("it is valid");
        let access_log = log.map(|path| AccessLog::open(path).expect("a log"));
        let http = Http { tokens: Some(tokens.clone()), access_log, ..Http::default() };
        Tenants { file, tokens, site: Site::with(http, options, "").await }
    }

    pub(crate) fn show(&mut self, token: &str) {
        self.site.head = format!("Authorization: Bearer {token}\r\n");
    }

    fn replace(&self, from: &str, to: &str) {
        std::fs::write(self.file.path(), FILE.replace(from, to)).expect("it is written");
        self.tokens.reload().expect("it is valid");
    }
}

#[tokio::test]
async fn tokens_of_a_tenant_share_its_sandboxes_and_others_do_not_see_them() {
    let mut tenants = Tenants::start().await;
    tenants.show("token-number-one");
    let sandbox = tenants.site.create(json!({})).await;
    tenants.show("token-number-two");
    assert!(tenants.site.ask(&sandbox, "usage", json!({})).await.is_ok());
    tenants.show("token-of-another");
    let unknown = Err((404, format!("Unknown sandboxId: {sandbox}")));
    assert_eq!(tenants.site.ask(&sandbox, "usage", json!({})).await, unknown);
    let listed = tenants.site.send("GET", "/v1/sandboxes", &Value::Null).await;
    assert_eq!(listed, (200, json!({ "sandboxes": [] })));
    // What is no tenant's is for admins.
    assert_eq!(tenants.site.send("GET", "/metrics", &Value::Null).await.0, 200);
    tenants.show("token-number-one");
    assert_eq!(tenants.site.send("GET", "/metrics", &Value::Null).await.0, 403);
    assert_eq!(tenants.site.send("POST", "/tools/run", &json!({})).await.0, 403);
    let (_, health) = tenants.site.send("GET", "/health", &Value::Null).await;
    assert_eq!(health, json!({ "status": "ok" }));
    for wrong in ["token-number-onE", "tenant: acme", ""] {
        tenants.show(wrong);
        assert_eq!(tenants.site.send("GET", "/v1/sandboxes", &Value::Null).await.0, 401, "{wrong}");
    }
}

#[tokio::test]
async fn a_tenant_takes_no_more_than_its_quota() {
    let mut tenants = Tenants::start().await;
    tenants.show("token-number-one");
    let wanted = |megabytes: u64| json!({ "limits": { "memoryBytes": megabytes << 20 } });
    let (status, answer) = tenants.site.send("POST", "/v1/sandboxes", &wanted(3000)).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (507, Some("ENOMEM")), "{answer}");
    // Files are in memory, too.
    let files = json!({ "fsLimitBytes": 1u64 << 40, "limits": { "memoryBytes": 64 << 20 } });
    let (status, answer) = tenants.site.send("POST", "/v1/sandboxes", &files).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (507, Some("ENOMEM")), "{answer}");
    let first = tenants.site.create(wanted(1000)).await;
    // Also of the tenant's other token, and as a fork.
    tenants.show("token-number-two");
    let fork = tenants.site.ask(&first, "sandbox.fork", json!({})).await.expect("there is room");
    let full = "Maximum of 2 sandboxes of tenant acme reached";
    let (status, answer) = tenants.site.send("POST", "/v1/sandboxes", &wanted(64)).await;
    assert_eq!((status, answer["error"]["message"].as_str()), (429, Some(full)));
    assert_eq!(
        tenants.site.ask(&first, "sandbox.fork", json!({})).await,
        Err((429, full.to_owned())),
        "a fork is a sandbox"
    );
    let fork = fork["sandboxId"].as_str().expect("an id");
    assert_eq!(tenants.site.send("DELETE", &format!("/v1/sandboxes/{fork}"), &Value::Null).await.0, 200);
    tenants.site.create(wanted(64)).await;
    // One run, and then none for hours.
    let run = json!({ "command": "true" });
    assert!(tenants.site.ask(&first, "run", run.clone()).await.is_ok());
    let refused = tenants.site.ask(&first, "run", run.clone()).await.expect_err("too many runs");
    assert_eq!(refused, (429, "EAGAIN: tenant acme may begin 0.0001 runs per second".to_owned()));
    assert!(tenants.site.ask(&first, "files.list", json!({ "path": "/" })).await.is_ok());
    tenants.replace("runs-per-second = 0.0001", "");
    assert!(tenants.site.ask(&first, "run", run).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_sleeps_still_counts_for_its_tenant() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Some(wardian::Store::open(directory.path()).expect("a store"));
    let idle = Some(Duration::from_millis(1));
    let mut tenants = Tenants::with(None, Options { store, idle, ..Options::default() }).await;
    tenants.show("token-number-one");
    let wanted = |name: &str| json!({ "persistence": { "name": name }, "fsLimitBytes": 64 << 20, "limits": { "memoryBytes": 64 << 20 } });
    let (first, second) = (tenants.site.create(wanted("a")).await, tenants.site.create(wanted("b")).await);
    let write = json!({ "path": "f", "data": "aGk=" });
    tenants.site.ask(&first, "files.write", write).await.expect("it is written");
    for name in ["c", "d"] {
        until_asleep(&mut tenants, 2).await;
        let full = "Maximum of 2 sandboxes of tenant acme reached";
        let (status, answer) = tenants.site.send("POST", "/v1/sandboxes", &wanted(name)).await;
        assert_eq!((status, answer["error"]["message"].as_str()), (429, Some(full)), "{name}");
        // It wakes with the place that it has.
        let read = tenants.site.ask(&first, "files.read", json!({ "path": "f" })).await.expect("it wakes");
        assert_eq!(read["data"], "aGk=");
    }
    until_asleep(&mut tenants, 2).await;
    let path = format!("/v1/sandboxes/{second}");
    assert_eq!(tenants.site.send("DELETE", &path, &Value::Null).await.0, 200);
    tenants.site.create(wanted("e")).await;
}

/// Waits until so many sandboxes are out of memory.
async fn until_asleep(tenants: &mut Tenants, wanted: usize) {
    let line = format!("\nwardian_sandboxes_asleep {wanted}\n");
    tenants.show("token-of-another");
    loop {
        let mut page = String::new();
        let mut stream = tenants.site.open("GET", "/metrics", "", "").await;
        stream.read_to_string(&mut page).await.expect("a page");
        if page.contains(&line) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tenants.show("token-number-one");
}

/// A client by WebSocket with the token of the first tenant.
async fn client(at: SocketAddr) -> Client<impl AsyncRead, impl AsyncWrite> {
    let (answers, requests) = split(websocket(at, "Authorization: Bearer token-number-one\r\n").await);
    Client::over(answers, requests)
}

/// Creates a sandbox, once there is room: that of a client that has left is free soon.
async fn create_at_last(
    client: &mut Client<impl AsyncRead + Unpin, impl AsyncWrite + Unpin>,
    options: Value,
) {
    loop {
        let answer = client.ask("create", options.clone()).await;
        if answer.get("result").is_some() {
            return;
        }
        let message = answer["error"]["message"].as_str().expect("a message").to_owned();
        assert!(["EBUSY", "ENOMEM", "Maximum"].iter().any(|why| message.starts_with(why)), "{message}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_saved_sandbox_and_its_forks_count_with_the_limits_that_it_was_saved_with() {
    let directory = tempfile::tempdir().expect("a directory");
    let options =
        Options { store: Some(Store::open(directory.path()).expect("a store")), ..Options::default() };
    let tenants = Tenants::with(None, options).await;
    tenants.replace("sandboxes = 2", "sandboxes = 9");
    let sized =
        |megabytes: u64| json!({ "fsLimitBytes": 64 << 20, "limits": { "memoryBytes": megabytes << 20 } });
    let mut first = client(tenants.site.at).await;
    let mut large = sized(1200);
    large["persistence"] = json!({ "name": "large" });
    first.call("create", large).await;
    drop(first);
    let mut second = client(tenants.site.at).await;
    create_at_last(&mut second, sized(64)).await;
    // Its name is free soon, too.
    let opened = loop {
        let answer = second.ask("sandbox.open", json!({ "name": "large" })).await;
        if answer["error"]["data"]["errno"] != "EBUSY" {
            break answer["result"]["sandboxId"].clone();
        }
    };
    // Two of them fit, whatever the root has that they were opened beside.
    second.call("sandbox.fork", json!({ "sandboxId": opened })).await;
    let refused = second.ask("sandbox.fork", json!({ "sandboxId": opened })).await;
    assert_eq!(refused["error"]["data"]["errno"], "ENOMEM", "{refused}");
    second.call("sandbox.fork", json!({})).await;
}

#[tokio::test]
async fn a_stream_ends_with_its_token() {
    let mut tenants = Tenants::start().await;
    tenants.show("token-number-one");
    let sandbox = tenants.site.create(json!({})).await;
    let process = tenants.site.ask(&sandbox, "process.start", json!({ "command": "sleep 1000" })).await;
    let id = process.expect("it is started")["processId"].as_str().expect("an id").to_owned();
    let path = format!("/v1/sandboxes/{sandbox}/processes/{id}/output");
    let mut stream = tenants.site.open("GET", &path, "", "").await;
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 200");
    tenants.replace("token-number-one", "token-that-is-new");
    // Without an end, which would say that it is complete.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest).await;
    assert!(!rest.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&rest));
}

#[tokio::test]
async fn a_token_that_is_taken_away_ends_its_websocket() {
    let tenants = Tenants::start().await;
    let mut stream = TcpStream::connect(tenants.site.at).await.expect("it listens");
    let upgrade = "GET /rpc HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer token-number-one\r\n\
                   Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                   Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(upgrade.as_bytes()).await.expect("it reads");
    let mut head = [0; 12];
    stream.read_exact(&mut head).await.expect("an answer");
    assert_eq!(&head, b"HTTP/1.1 101");
    let create = br#"{"id":1,"method":"create","params":{"stateToken":"0123456789abcdef"}}"#;
    stream.write_all(&[0x81, 0x80 | create.len() as u8, 0, 0, 0, 0]).await.expect("it reads");
    stream.write_all(create).await.expect("it reads");
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("stateToken: the bearer token stands for what is yours") {
        text.push(stream.read_u8().await.expect("an answer"));
    }
    tenants.replace("token-number-one", "token-that-is-new");
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).await.expect("an end");
    assert!(rest.ends_with(&[0x88, 2, 0x03, 0xe9]), "going away: {rest:?}");
}

#[tokio::test]
async fn pages_of_named_origins_may_use_it_and_others_not() {
    let mut tenants = Tenants::start().await;
    tenants.show("token-number-one");
    let answer = async |verb: &str, path: &str, more: &str| {
        let mut stream = tenants.site.open(verb, path, "", more).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("an answer");
        answer.to_lowercase()
    };
    let asks = "Origin: https://app.example.com\r\nAccess-Control-Request-Method: POST\r\n";
    let allowed = answer("OPTIONS", "/v1/sandboxes", asks).await;
    assert!(allowed.starts_with("http/1.1 204 "), "{allowed}");
    assert!(allowed.contains("access-control-allow-headers: authorization, "), "{allowed}");
    let listed = answer("GET", "/v1/sandboxes", "Origin: https://app.example.com\r\n").await;
    assert!(listed.starts_with("http/1.1 200 "), "{listed}");
    assert!(listed.contains("access-control-allow-origin: https://app.example.com"), "{listed}");
    for (verb, path, origin) in [
        ("GET", "/v1/sandboxes", "https://app.example.com.evil.test"),
        ("OPTIONS", "/v1/sandboxes", "https://evil.test"),
        ("OPTIONS", "/metrics", "https://app.example.com"),
    ] {
        let asks = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
        let refused = answer(verb, path, &asks).await;
        assert!(!refused.contains("access-control-allow-origin"), "{verb} {path} {origin}: {refused}");
    }
}

#[tokio::test]
async fn each_request_has_an_id_and_a_line_without_secrets() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let mut tenants = Tenants::with(Some(&path), Options::default()).await;
    tenants.show("token-number-one");
    let sandbox = tenants.site.create(json!({})).await;
    let more = "X-Request-Id: mine-1\r\n";
    let (status, _) =
        read(tenants.site.open("GET", &format!("/v1/sandboxes/{sandbox}/usage"), "", more).await).await;
    assert_eq!(status, 200);
    assert_eq!(tenants.site.send("GET", "/sandboxes/SECRET/ports/80/?q=SECRET", &Value::Null).await.0, 404);
    tenants.show("no-such-token-SECRET");
    assert_eq!(tenants.site.send("GET", "/v1/sandboxes", &Value::Null).await.0, 401);
    let lines = loop {
        let text = std::fs::read_to_string(&path).expect("a log");
        if text.lines().count() == 4 {
            assert!(!text.contains("SECRET") && !text.contains("token-number"), "{text}");
            break text;
        }
        tokio::task::yield_now().await;
    };
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let shown = |line: &Value, name: &str| line[name].clone();
    assert_eq!(shown(&lines[0], "status"), 201);
    assert_eq!([shown(&lines[0], "token"), shown(&lines[0], "tenant")], [json!("one"), json!("acme")]);
    assert_eq!([shown(&lines[1], "id"), shown(&lines[1], "complete")], [json!("mine-1"), json!(true)]);
    assert_eq!(shown(&lines[2], "path"), json!("/sandboxes/*/ports/80"));
    assert_eq!([shown(&lines[3], "status"), shown(&lines[3], "token")], [json!(401), Value::Null]);
}
