//! Sandboxes by REST.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wardian_contract::{methods, pages};
use wardian_server::{Http, Options, Server};

/// So long that only an answer that never comes takes longer.
const PATIENCE: Duration = Duration::from_secs(120);
const TOKEN: &str = "0123456789abcdef";

/// A server with HTTP, and what a client of it sends along.
pub(crate) struct Site {
    pub(crate) at: SocketAddr,
    pub(crate) head: String,
}

impl Site {
    pub(crate) async fn start() -> Site {
        Site::with(Http::default(), Options::default(), "").await
    }

    pub(crate) async fn with(http: Http, options: Options, head: &str) -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let at = listener.local_addr().expect("an address");
        let server = Server::new(options);
        tokio::spawn(async move { server.serve_http(listener, http, std::future::pending()).await });
        Site { at, head: head.to_owned() }
    }

    pub(crate) async fn open(&self, verb: &str, path: &str, body: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.at).await.expect("it listens");
        let request = format!(
            "{verb} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{}{more}\r\n{body}",
            body.len(),
            self.head
        );
        stream.write_all(request.as_bytes()).await.expect("it reads");
        stream
    }

    pub(crate) async fn send(&self, verb: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = read(self.open(verb, path, &body, "").await).await;
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub(crate) async fn create(&self, options: Value) -> String {
        let (status, made) = self.send("POST", "/v1/sandboxes", &options).await;
        assert_eq!(status, 201, "{made}");
        made["sandboxId"].as_str().expect("an id").to_owned()
    }

    /// Calls a method at its route; returns its result, or the status and the message.
    pub(crate) async fn ask(
        &self,
        sandbox: &str,
        method: &str,
        mut params: Value,
    ) -> Result<Value, (u16, String)> {
        let route = methods::find(method).and_then(|method| method.route).expect("a route");
        let mut path = route.path.replace("{sandbox}", sandbox);
        let fields = params.as_object_mut().expect("an object");
        for name in pages::placeholders(route.path).filter(|name| *name != "sandbox") {
            let value = fields.remove(name).unwrap_or_default();
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            path = path.replace(&format!("{{{name}}}"), &encoded(&text));
        }
        if matches!(route.verb, "GET" | "DELETE") {
            let pairs: Vec<String> = fields
                .iter()
                .map(|(name, value)| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    format!("{name}={}", encoded(&text))
                })
                .collect();
            path = if pairs.is_empty() { path } else { format!("{path}?{}", pairs.join("&")) };
            params = Value::Null;
        }
        let (status, answer) = self.send(route.verb, &path, &params).await;
        match status {
            200 => Ok(answer),
            _ => Err((status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())),
        }
    }

    /// The events that a request is answered with.
    async fn events(&self, verb: &str, path: &str, body: &Value) -> Vec<(String, Value)> {
        let stream = self.open(verb, path, &body.to_string(), "Accept: text/event-stream\r\n").await;
        let (status, text) = read(stream).await;
        assert_eq!(status, 200, "{text}");
        let event = |block: &str| {
            let (_, rest) = block.split_once("event: ")?;
            let (name, data) = rest.split_once("\ndata: ")?;
            Some((name.to_owned(), serde_json::from_str(data).expect("JSON")))
        };
        text.split("\n\n").filter_map(event).collect()
    }
}

fn encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte.is_ascii_alphanumeric() {
            true => encoded.push(byte as char),
            false => write!(encoded, "%{byte:02x}").expect("a string"),
        }
        encoded
    })
}

/// The status and the body, whose chunks are put together.
pub(crate) async fn read(mut stream: TcpStream) -> (u16, String) {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    read.expect("it is answered").expect("it can be read");
    let text = String::from_utf8(bytes).expect("text");
    let (head, mut rest) = text.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    if !head.to_lowercase().contains("transfer-encoding: chunked") {
        return (status, rest.to_owned());
    }
    let mut body = String::new();
    while let Some((length, after)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).expect("a length");
        body.push_str(&after[..length]);
        rest = after[length..].strip_prefix("\r\n").unwrap_or_default();
    }
    (status, body)
}

#[tokio::test]
async fn sandboxes_outlive_connections_until_they_are_destroyed() {
    let site = Site::start().await;
    let sandbox = site.create(json!({ "env": { "A": "b" }, "lifetimeMs": 60_000 })).await;
    let run = |command: &str| json!({ "command": command });
    assert_eq!(site.ask(&sandbox, "run", run("echo $A > f; x=1")).await.expect("it runs")["exitCode"], 0);
    assert_eq!(site.ask(&sandbox, "run", run("cat f; echo $x")).await.expect("it runs")["stdout"], "b\n1\n");
    let forks = site.ask(&sandbox, "sandbox.fork", json!({ "count": 2 })).await.expect("forks");
    assert_eq!(forks["sandboxIds"], json!([format!("{sandbox}.1"), format!("{sandbox}.2")]));
    let fork = forks["sandboxId"].as_str().expect("an id");
    site.ask(fork, "run", run("echo fork > f")).await.expect("it runs");
    assert_eq!(site.ask(fork, "run", run("cat f")).await.expect("it runs")["stdout"], "fork\n");
    assert_eq!(site.ask(&sandbox, "run", run("cat f")).await.expect("it runs")["stdout"], "b\n");
    let (_, listed) = site.send("GET", "/v1/sandboxes", &Value::Null).await;
    assert_eq!(listed["sandboxes"][0]["sandboxId"], json!(sandbox));
    let lifetime = format!("/v1/sandboxes/{sandbox}/lifetime");
    assert_eq!(site.send("PUT", &lifetime, &json!({ "lifetimeMs": 90_000_000 })).await.0, 400);
    assert_eq!(site.send("PUT", &lifetime, &json!({ "lifetimeMs": 80_000 })).await.0, 200);
    let (_, shown) = site.send("GET", &format!("/v1/sandboxes/{fork}"), &Value::Null).await;
    assert_eq!(shown["sandboxId"], json!(fork));
    let of_fork = format!("/v1/sandboxes/{fork}/lifetime");
    assert_eq!(site.send("PUT", &of_fork, &json!({ "lifetimeMs": 80_000 })).await.0, 400);
    let (status, _) = site.send("DELETE", &format!("/v1/sandboxes/{fork}"), &Value::Null).await;
    assert_eq!(status, 200);
    assert_eq!(site.ask(fork, "run", run("cat f")).await, Err((404, format!("Unknown sandboxId: {fork}"))));
    let (status, _) = site.send("DELETE", &format!("/v1/sandboxes/{sandbox}"), &Value::Null).await;
    assert_eq!(status, 200);
    let gone = format!("Unknown sandboxId: {sandbox}");
    assert_eq!(site.ask(&sandbox, "run", run("cat f")).await, Err((404, gone)));
}

#[tokio::test]
async fn a_sandbox_ends_with_its_lifetime() {
    let site = Site::start().await;
    site.create(json!({ "lifetimeMs": 1 })).await;
    while site.send("GET", "/v1/sandboxes", &Value::Null).await.1["sandboxes"] != json!([]) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn output_comes_as_events() {
    let site = Site::start().await;
    let sandbox = site.create(json!({})).await;
    let path = format!("/v1/sandboxes/{sandbox}");
    let events = site
        .events("POST", &format!("{path}/run"), &json!({ "command": "echo a; echo b >&2; exit 4" }))
        .await;
    let (last, told) = events.split_last().expect("a result");
    assert_eq!(
        (last.0.as_str(), &last.1["exitCode"], &last.1["stdout"]),
        ("result", &json!(4), &json!("a\n"))
    );
    let expected =
        [json!({ "stream": "stdout", "data": "a\n" }), json!({ "stream": "stderr", "data": "b\n" })];
    assert_eq!(told, expected.map(|data| ("output".to_owned(), data)));
    // More than a process may have on its way to a client that has to confirm what it takes.
    let start = json!({ "command": "head -c 1000000 /dev/zero; exit 3" });
    let events = site.events("POST", &format!("{path}/processes"), &start).await;
    assert_eq!(events.first().expect("events").0, "started");
    assert_eq!(events.last().expect("events").1["exitCode"], 3);
    let bytes = |data: &Value| crate::support::decode(&data["data"]).len();
    let heard: usize = events.iter().filter(|(name, _)| name == "output").map(|(_, data)| bytes(data)).sum();
    assert_eq!(heard, 1_000_000);
    // What nobody listens to is dropped, and the process goes on.
    let started = site.ask(&sandbox, "process.start", start).await.expect("it starts");
    let wait = json!({ "processId": started["processId"] });
    assert_eq!(site.ask(&sandbox, "process.wait", wait).await.expect("it ends")["exitCode"], 3);
}

#[tokio::test]
async fn a_run_whose_client_goes_away_is_cancelled() {
    let site = Site::start().await;
    let sandbox = site.create(json!({ "timeoutMs": 0 })).await;
    for accept in ["", "Accept: text/event-stream\r\n"] {
        let body = json!({ "command": "echo begun > /tmp/begun; while :; do :; done" }).to_string();
        let running = site.open("POST", &format!("/v1/sandboxes/{sandbox}/run"), &body, accept).await;
        while site.ask(&sandbox, "files.stat", json!({ "path": "/tmp/begun" })).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(running);
        let removed = site.ask(&sandbox, "run", json!({ "command": "rm /tmp/begun" })).await;
        assert_eq!(removed.expect("its turn comes")["exitCode"], 0);
    }
}

#[tokio::test]
async fn options_that_need_a_connection_are_refused_by_name() {
    let site = Site::start().await;
    let only = "only over a connection (WebSocket at /rpc, socket, stdio)";
    let refused = [
        (json!({ "extensions": [{ "name": "a" }] }), format!("extensions: {only}")),
        (json!({ "storage": true }), format!("storage: {only}")),
        (json!({ "network": { "onRequest": true } }), format!("network.onRequest: {only}")),
        (json!({ "limits": { "rpcBytes": 5000 } }), format!("limits.rpcBytes: {only}")),
        (json!({ "lifetimeMs": 0 }), "lifetimeMs must be a whole number from 1 to 86400000".to_owned()),
        (json!({ "sandboxId": "x" }), "sandboxId: the sandbox is in the path".to_owned()),
        (json!({ "niec": 1 }), "Unknown param: niec (did you mean nice?)".to_owned()),
    ];
    for (options, message) in refused {
        let (status, answer) = site.send("POST", "/v1/sandboxes", &options).await;
        assert_eq!((status, answer["error"]["message"].as_str()), (400, Some(message.as_str())), "{options}");
    }
    assert_eq!(site.send("GET", "/v1/sandboxes", &Value::Null).await.1, json!({ "sandboxes": [] }));
    let sandbox = site.create(json!({})).await;
    let path = format!("/v1/sandboxes/{sandbox}");
    assert_eq!(site.send("POST", &format!("{path}/run?command=echo"), &json!({})).await.0, 400);
    assert_eq!(site.send("GET", &format!("{path}/files?path=/&surprise=1"), &Value::Null).await.0, 400);
    assert_eq!(site.send("PUT", &format!("{path}/env/A"), &json!({ "name": "B", "value": "" })).await.0, 400);
    assert_eq!(site.send("PATCH", &format!("{path}/run"), &json!({})).await.0, 405);
    // Params where nobody reads them.
    assert_eq!(site.send("GET", "/v1/sandboxes?limit=1", &Value::Null).await.0, 400);
    assert_eq!(site.send("DELETE", &path, &json!({ "force": true })).await.0, 400);
    assert_eq!(site.send("GET", &format!("{path}/files"), &json!({ "path": "/" })).await.0, 400);
    let (status, text) =
        read(site.open("GET", "/v1/sandboxes", "", "Origin: https://evil.test\r\n").await).await;
    assert_eq!(status, 403, "{text}");
}

#[tokio::test]
async fn a_token_is_needed_where_there_is_one() {
    let http = || Http { token: Some(TOKEN.to_owned()), ..Http::default() };
    let head = format!("Authorization: Bearer {TOKEN}\r\n");
    let mut site = Site::with(http(), Options::default(), &head).await;
    let sandbox = site.create(json!({})).await;
    assert!(site.ask(&sandbox, "usage", json!({})).await.is_ok());
    let (status, document) = site.send("GET", "/openapi.json", &Value::Null).await;
    assert_eq!((status, document["openapi"].as_str()), (200, Some("3.1.0")));
    site.head = "Authorization: Bearer fedcba9876543210\r\n".to_owned();
    for path in ["/v1/sandboxes".to_owned(), format!("/v1/sandboxes/{sandbox}"), "/rpc".to_owned()] {
        assert_eq!(site.send("GET", &path, &Value::Null).await.0, 401, "{path}");
    }
}

/// How many sandboxes, and how many requests to each.
const SANDBOXES: usize = 24;
const REQUESTS: usize = 12;

/// Each request has a connection of its own. Whatever its order, it must reach its sandbox, once, and bring back its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_over_many_sandboxes_lose_nothing_and_misroute_nothing() {
    let times = std::env::var("WARDIAN_LOAD").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let site = std::sync::Arc::new(Site::start().await);
    let root = site.create(json!({ "timeoutMs": 0, "lifetimeMs": 3_600_000 })).await;
    let count = SANDBOXES * times;
    let mut sandboxes = Vec::new();
    // Half of them forks of one, half of their own.
    let forks = site.ask(&root, "sandbox.fork", json!({ "count": count / 2 })).await.expect("forks");
    sandboxes.extend(
        forks["sandboxIds"].as_array().expect("ids").iter().filter_map(Value::as_str).map(str::to_owned),
    );
    while sandboxes.len() < count {
        sandboxes.push(site.create(json!({ "timeoutMs": 0, "lifetimeMs": 3_600_000 })).await);
    }
    let mut clients = tokio::task::JoinSet::new();
    // As many at once as a token may have.
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(256));
    for request in 0..REQUESTS {
        for (number, sandbox) in sandboxes.iter().enumerate() {
            let (site, sandbox) = (site.clone(), sandbox.clone());
            let places = places.clone();
            clients.spawn(async move {
                let _place = places.acquire().await.expect("a place");
                let mark = format!("{number}.{request}");
                match (number + request) % 3 {
                    0 => {
                        let run = json!({ "command": format!("echo {mark} >> log; echo {mark}") });
                        let ran = site.ask(&sandbox, "run", run).await.expect("it runs");
                        assert_eq!(ran["stdout"], format!("{mark}\n"));
                    }
                    1 => {
                        let run = json!({ "command": format!("echo {mark} >> log; echo {mark}") });
                        let path = format!("/v1/sandboxes/{sandbox}/run");
                        let events = site.events("POST", &path, &run).await;
                        let (last, told) = events.split_last().expect("events");
                        let heard: String =
                            told.iter().filter_map(|(_, data)| data["data"].as_str()).collect();
                        let result = last.1["stdout"].as_str().unwrap_or_default();
                        assert_eq!((heard, result), (format!("{mark}\n"), format!("{mark}\n").as_str()));
                    }
                    _ => {
                        let path = format!("/tmp/{mark}");
                        let data = crate::support::base64(&mark);
                        let write = json!({ "path": path, "data": data });
                        site.ask(&sandbox, "files.write", write).await.expect("it is written");
                        let read = site.ask(&sandbox, "files.read", json!({ "path": path })).await;
                        assert_eq!(read.expect("it is read")["data"], data);
                        let append = json!({ "command": format!("cat {path} >> log; echo >> log") });
                        site.ask(&sandbox, "run", append).await.expect("it runs");
                    }
                }
            });
        }
    }
    while let Some(client) = clients.join_next().await {
        client.expect("its own answer");
    }
    for (number, sandbox) in sandboxes.iter().enumerate() {
        let log = site.ask(sandbox, "run", json!({ "command": "cat log" })).await.expect("it runs");
        let mut lines: Vec<&str> = log["stdout"].as_str().unwrap_or_default().lines().collect();
        let mut expected: Vec<String> = (0..REQUESTS).map(|request| format!("{number}.{request}")).collect();
        lines.sort_unstable();
        expected.sort_unstable();
        assert_eq!(lines, expected, "each request was done once, in its own sandbox");
    }
}
