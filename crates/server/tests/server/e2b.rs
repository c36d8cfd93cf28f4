//! E2B's protocol as a client without manners speaks it: what it begins and does not finish is no burden on others.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wardian_server::{Http, Options, PortLimits, Server};

const MIB: usize = 1 << 20;
/// So long that only an answer that never comes takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A sandbox of a key, on a server with HTTP.
struct Hosted {
    at: SocketAddr,
    id: String,
    token: String,
}

async fn listen() -> SocketAddr {
    serve(Options::default()).await.0
}

/// A server, and how to end it in order.
async fn serve(options: Options) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    let http = Http { ports: PortLimits::default(), ..Http::default() };
    let server = Server::new(options);
    let (end, ends) = oneshot::channel();
    let ends = async move {
        // One that nobody ends goes on as long as the test does.
        if ends.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let serving =
        tokio::spawn(async move { server.serve_http(listener, http, ends).await.expect("it serves") });
    (at, end, serving)
}

async fn open(at: SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(at).await.expect("it listens");
    // A request may be refused before all of it is sent.
    let _ = stream.write_all(request).await;
    stream
}

/// The status and the body of the answer to a request.
async fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    let _ = read.expect("it is answered");
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    (status, text.split_once("\r\n\r\n").map_or(String::new(), |(_, body)| body.to_owned()))
}

async fn create(at: SocketAddr, key: &str, wanted: Value) -> (u16, String) {
    let body = wanted.to_string();
    let head = format!(
        "POST /sandboxes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-KEY: {key}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    answer(open(at, (head + &body).as_bytes()).await).await
}

impl Hosted {
    async fn new(at: SocketAddr, key: &str) -> Hosted {
        let (status, body) = create(at, key, json!({ "templateID": "base" })).await;
        assert_eq!(status, 201, "{body}");
        let made: Value = serde_json::from_str(&body).expect("JSON");
        let text = |name: &str| made[name].as_str().expect("text").to_owned();
        Hosted { at, id: text("sandboxID"), token: text("envdAccessToken") }
    }

    /// Sends the head of a request that announces so many bytes, and what is `sent` of them.
    async fn begin(&self, path: &str, kind: &str, length: usize, sent: &[u8]) -> TcpStream {
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nE2b-Sandbox-Id: {}\r\nX-Access-Token: {}\r\n\
             Content-Type: {kind}\r\nContent-Length: {length}\r\n\r\n",
            self.id, self.token
        );
        open(self.at, &[head.as_bytes(), sent].concat()).await
    }

    async fn send(&self, path: &str, kind: &str, body: &[u8]) -> (u16, String) {
        answer(self.begin(path, kind, body.len(), body).await).await
    }

    /// A call that is answered by a stream: all that it was answered.
    async fn start(&self, message: &Value) -> String {
        let message = message.to_string();
        let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
        let frame = [&[0][..], &length, message.as_bytes()].concat();
        self.send("/process.Process/Start", "application/connect+json", &frame).await.1
    }

    async fn call(&self, method: &str, message: &Value) -> (u16, String) {
        self.send(&format!("/{method}"), "application/json", message.to_string().as_bytes()).await
    }
}

const MULTIPART: &str = "multipart/form-data; boundary=x";

fn upload(name: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\r\n")
        .into_bytes();
    [&head[..], content, b"\r\n--x--\r\n"].concat()
}

#[tokio::test]
async fn uploads_that_are_never_finished_keep_no_other_waiting() {
    let at = listen().await;
    let (slow, other) = (Hosted::new(at, "slow").await, Hosted::new(at, "other").await);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(slow.begin("/files", MULTIPART, 64 * MIB, &upload("/tmp/never", b"")[..40]).await);
    }
    // Neither those of another key, nor more of the same.
    for hosted in [&other, &slow] {
        let content = vec![b'y'; 3 * MIB];
        let (status, told) = hosted.send("/files", MULTIPART, &upload("/tmp/a", &content)).await;
        assert_eq!((status, told.contains("\"/tmp/a\"")), (200, true), "{told}");
        let (_, stat) = hosted.call("filesystem.Filesystem/Stat", &json!({ "path": "/tmp/a" })).await;
        assert!(stat.contains(&format!("\"size\":\"{}\"", content.len())), "{stat}");
    }
    drop(held);
}

#[tokio::test]
async fn half_bodies_of_one_key_do_not_exhaust_anothers_memory() {
    let at = listen().await;
    let (greedy, other) = (Hosted::new(at, "greedy").await, Hosted::new(at, "other").await);
    let half = vec![b' '; 3 * MIB];
    let mut held = Vec::new();
    for _ in 0..100 {
        let begun = greedy.begin("/process.Process/List", "application/json", 4 * MIB, &half);
        // One whose room is not there yet is not read further.
        held.extend(tokio::time::timeout(Duration::from_millis(200), begun).await);
        if held.len() >= 60 {
            break;
        }
    }
    let long = json!({ "path": "/tmp", "padding": " ".repeat(3 * MIB) });
    let (status, told) = other.call("filesystem.Filesystem/Stat", &long).await;
    assert_eq!(status, 200, "{told}");
}

#[tokio::test]
async fn what_a_process_is_started_with_has_limits_that_are_named() {
    let hosted = Hosted::new(listen().await, "key").await;
    let long = "x".repeat(MIB);
    for (message, refusal) in [
        (
            json!({ "process": { "cmd": "true", "envs": { "A": long } } }),
            "process.envs may have 131072 bytes",
        ),
        (json!({ "process": { "cmd": "true" }, "tag": long }), "tag may have 256 bytes"),
        (json!({ "process": { "cmd": "true", "args": [long] } }), "the command is too long"),
        (json!({ "process": { "cmd": "true", "args": vec![0; 40_000] } }), "more than 16384 values"),
    ] {
        let told = hosted.start(&message).await;
        assert!(told.contains(refusal) && told.contains("invalid_argument"), "{told}");
    }
    // What is not known is not kept.
    let message = json!({
        "process": { "cmd": "sleep", "args": ["1000"], "envs": { "A": "b" }, "unknown": long },
        "tag": "mine", "stdin": false,
    });
    let message = message.to_string();
    let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    let frame = [&[0][..], &length, message.as_bytes()].concat();
    let mut stream =
        hosted.begin("/process.Process/Start", "application/connect+json", frame.len(), &frame).await;
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains("\"start\"") {
        begun.push(stream.read_u8().await.expect("it starts"));
    }
    let (_, listed) = hosted.call("process.Process/List", &json!({})).await;
    assert!(listed.contains("\"tag\":\"mine\"") && listed.contains("\"A\":\"b\""), "{listed}");
    assert!(listed.len() < 1000, "{} bytes", listed.len());
}

#[tokio::test]
async fn what_a_sandbox_is_created_with_has_limits_that_are_named() {
    let at = listen().await;
    let long = "x".repeat(100_000);
    for (wanted, refusal) in [
        (json!({ "templateID": format!("base:{long}") }), "templateID must be a string of at most 256 bytes"),
        (json!({ "templateID": "base", "network": { "denyOut": [long] } }), "network may have 65536 bytes"),
    ] {
        let (status, told) = create(at, "key", wanted).await;
        assert_eq!((status, told.contains(refusal)), (400, true), "{told}");
    }
}

#[tokio::test]
async fn input_comes_in_frames_however_they_are_cut() {
    let hosted = Hosted::new(listen().await, "key").await;
    let start = json!({ "process": { "cmd": "sh", "args": ["-c", "wc -c > /tmp/count"] }, "tag": "counts" });
    let message = start.to_string();
    let frame = |message: &str| {
        let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
        [&[0][..], &length, message.as_bytes()].concat()
    };
    let started = frame(&message);
    let process =
        hosted.begin("/process.Process/Start", "application/connect+json", started.len(), &started).await;
    let mut listed = String::new();
    while !listed.contains("counts") {
        listed = hosted.call("process.Process/List", &json!({})).await.1;
    }
    let mut input = frame(&json!({ "start": { "process": { "tag": "counts" } } }).to_string());
    for length in [1, 20_000, 3, 900_000, 0, 5] {
        let stdin = crate::support::base64(vec![b'z'; length]);
        input.extend(frame(&json!({ "data": { "input": { "stdin": stdin } } }).to_string()));
    }
    let path = "/process.Process/StreamInput";
    let mut stream = hosted.begin(path, "application/connect+json", input.len(), &input[..70]).await;
    for piece in input[70..].chunks(77_777) {
        stream.write_all(piece).await.expect("it reads");
    }
    let (status, told) = answer(stream).await;
    assert_eq!((status, told.contains("error")), (200, false), "{told}");
    let (_, closed) =
        hosted.call("process.Process/CloseStdin", &json!({ "process": { "tag": "counts" } })).await;
    assert_eq!(closed, "{}");
    let (_, end) = answer(process).await;
    assert!(end.contains("\"exited\":true"), "{end}");
    let request = format!(
        "GET /files?path=/tmp/count HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nE2b-Sandbox-Id: {}\r\n\
         X-Access-Token: {}\r\n\r\n",
        hosted.id, hosted.token
    );
    assert_eq!(answer(open(hosted.at, request.as_bytes()).await).await, (200, "920009\n".to_owned()));
}

async fn control(at: SocketAddr, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-API-KEY: key\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let (status, body) = answer(open(at, (head + &body).as_bytes()).await).await;
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

async fn execute(at: SocketAddr, access: &Value, code: &str) -> String {
    let body = json!({ "code": code }).to_string();
    let head = format!(
        "POST /execute HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nE2b-Sandbox-Id: {}\r\nE2b-Sandbox-Port: 49999\r\n\
         X-Access-Token: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        access["sandboxID"].as_str().expect("an id"),
        access["envdAccessToken"].as_str().expect("a token"),
        body.len()
    );
    answer(open(at, (head + &body).as_bytes()).await).await.1
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_paused_survives_the_server() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = || Options {
        store: Some(wardian::Store::open(directory.path()).expect("a store")),
        ..Options::default()
    };
    let (at, end, serving) = serve(options()).await;
    let wanted = json!({ "templateID": "base", "metadata": { "who": "me" }, "envVars": { "A": "b" } });
    let (_, quiet) = control(at, "POST", "/sandboxes", &wanted).await;
    let (_, busy) = control(at, "POST", "/sandboxes", &wanted).await;
    let (_, running) = control(at, "POST", "/sandboxes", &wanted).await;
    let path =
        |one: &Value, rest: &str| format!("/sandboxes/{}{rest}", one["sandboxID"].as_str().expect("an id"));
    execute(at, &quiet, "x = 42; open('/tmp/f', 'w').write('kept')").await;
    execute(at, &busy, "y = 43").await;
    let hosted = Hosted {
        at,
        id: busy["sandboxID"].as_str().expect("an id").to_owned(),
        token: busy["envdAccessToken"].as_str().expect("a token").to_owned(),
    };
    let start = json!({ "process": { "cmd": "sleep", "args": ["1000"] } }).to_string();
    let frame = [&[0][..], &(start.len() as u32).to_be_bytes(), start.as_bytes()].concat();
    let kind = "application/connect+json";
    let mut started = hosted.begin("/process.Process/Start", kind, frame.len(), &frame).await;
    let mut head = [0; 1];
    started.read_exact(&mut head).await.expect("it has started");
    let pids = || async { hosted.call("process.Process/List", &json!({})).await.1 };
    while !pids().await.contains("sleep") {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    for paused in [&quiet, &busy] {
        assert_eq!(control(at, "POST", &path(paused, "/pause"), &json!({})).await.0, 204);
        assert_eq!(control(at, "POST", &path(paused, "/pause"), &json!({})).await.0, 409);
        // It is still there, awake or not.
        assert_eq!(control(at, "GET", &path(paused, ""), &json!({})).await.1["state"], "paused");
    }
    // While the server lives, its processes do as well.
    assert_eq!(control(at, "POST", &path(&busy, "/connect"), &json!({ "timeout": 300 })).await.0, 201);
    assert!(pids().await.contains("sleep"));
    assert_eq!(control(at, "POST", &path(&busy, "/pause"), &json!({})).await.0, 204);
    drop(started);
    end.send(()).expect("it runs");
    tokio::time::timeout(PATIENCE, serving).await.expect("it ends").expect("without a panic");

    let (at, end, serving) = serve(options()).await;
    let (_, listed) = control(at, "GET", "/v2/sandboxes", &json!({})).await;
    let found: Vec<(&str, &str)> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (one["state"].as_str().unwrap_or(""), one["metadata"]["who"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(found, [("paused", "me"), ("paused", "me")]);
    assert_eq!(control(at, "GET", &path(&running, ""), &json!({})).await.0, 404);
    // The secrets of then are nobody's now.
    let (status, access) = control(at, "POST", &path(&quiet, "/connect"), &json!({ "timeout": 300 })).await;
    assert_eq!((status, access.get("lostProcesses")), (201, None));
    assert!(execute(at, &quiet, "1").await.contains("token"));
    let result = execute(at, &access, "import os; print(x, open('/tmp/f').read(), os.environ['A'])").await;
    assert!(result.contains("42 kept b"), "{result}");
    let (status, access) = control(at, "POST", &path(&busy, "/connect"), &json!({ "timeout": 300 })).await;
    assert_eq!((status, &access["lostProcesses"][0]["cmd"]), (201, &json!("sleep 1000")));
    assert!(execute(at, &access, "print(y)").await.contains("43"));
    // One that is killed is gone from the store, and so is one that ran when the server ended.
    assert_eq!(control(at, "DELETE", &path(&quiet, ""), &json!({})).await.0, 204);
    end.send(()).expect("it runs");
    tokio::time::timeout(PATIENCE, serving).await.expect("it ends").expect("without a panic");
    let store = wardian::Store::open(directory.path()).expect("a store");
    assert_eq!(store.list().expect("a list"), []);
}

impl Hosted {
    /// Runs a command to its end.
    async fn run(&self, command: &str) {
        let message = json!({ "process": { "cmd": "sh", "args": ["-c", command] } });
        let told = self.start(&message).await;
        assert!(told.contains("\"exited\":true"), "{told}");
    }

    /// What the sandbox is charged for.
    async fn charged(&self) -> u64 {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nE2b-Sandbox-Id: {}\r\nX-Access-Token: {}\r\n\r\n",
            self.id, self.token
        );
        let (status, told) = answer(open(self.at, request.as_bytes()).await).await;
        assert_eq!(status, 200, "{told}");
        serde_json::from_str::<Value>(&told).expect("JSON")["mem_used"].as_u64().expect("a number")
    }
}

/// Makes files whose paths are long.
const MANY: &str =
    "mkdir -p /tmp/many; cd /tmp/many; long=$(printf %0240d 0); seq -f \"$long%05g\" 1 9000 | xargs touch";

#[tokio::test]
async fn a_sandbox_is_charged_for_what_its_watchers_remember() {
    let hosted = Hosted::new(listen().await, "key").await;
    hosted.run(MANY).await;
    let before = hosted.charged().await;
    let each = 9_000 * (240 + 5 + "/tmp/many/".len() as u64);
    let mut watchers = Vec::new();
    for count in 1..=8 {
        let (status, told) =
            hosted.call("filesystem.Filesystem/CreateWatcher", &json!({ "path": "/tmp/many" })).await;
        assert_eq!(status, 200, "{told}");
        watchers.push(serde_json::from_str::<Value>(&told).expect("JSON")["watcherId"].clone());
        let charged = hosted.charged().await;
        assert!(charged >= before + count * each, "{count} watchers: {charged} bytes");
    }
    // What they see next takes the place of what they saw.
    hosted.run("cd /tmp/many; seq 1 500 | xargs touch").await;
    let (_, told) =
        hosted.call("filesystem.Filesystem/GetWatcherEvents", &json!({ "watcherId": watchers[0] })).await;
    assert_eq!(told.matches("EVENT_TYPE_CREATE").count(), 500, "{}", &told[..told.len().min(1000)]);
    assert!(hosted.charged().await < before + 10 * 2 * each);
    for id in watchers {
        hosted.call("filesystem.Filesystem/RemoveWatcher", &json!({ "watcherId": id })).await;
    }
    let after = hosted.charged().await;
    assert!(after < before + each, "{after} bytes are still charged, {before} were before");
}

#[tokio::test]
async fn unread_responses_are_bounded_for_each_key() {
    let at = listen().await;
    let (deaf, other) = (Hosted::new(at, "deaf").await, Hosted::new(at, "other").await);
    for hosted in [&deaf, &other] {
        hosted.run(MANY).await;
    }
    let list = json!({ "path": "/tmp/many" }).to_string();
    let mut unread = Vec::new();
    let refused = loop {
        let path = "/filesystem.Filesystem/ListDir";
        unread.push(deaf.begin(path, "application/json", list.len(), list.as_bytes()).await);
        let (status, told) =
            deaf.call("filesystem.Filesystem/ListDir", &json!({ "path": "/tmp/many" })).await;
        if status != 200 {
            break (status, told);
        }
        assert!(unread.len() < 100, "nothing is refused");
    };
    assert_eq!(
        (refused.0, refused.1.contains("too many answers wait to be read")),
        (429, true),
        "{}",
        refused.1
    );
    // Short answers go on, and so do another key's long ones.
    assert_eq!(deaf.call("filesystem.Filesystem/Stat", &json!({ "path": "/tmp" })).await.0, 200);
    let (status, told) = other.call("filesystem.Filesystem/ListDir", &json!({ "path": "/tmp/many" })).await;
    assert_eq!((status, told.matches("\"name\"").count()), (200, 9000));
    drop(unread);
    while deaf.call("filesystem.Filesystem/ListDir", &json!({ "path": "/tmp/many" })).await.0 != 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
