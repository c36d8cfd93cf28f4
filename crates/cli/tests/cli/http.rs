//! `wardian serve --http`: health, metrics and native tools, with a real process and real sockets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::shown;

/// `yes` spins for as long as it is let.
const POLICY: &str = "[programs.yes]\nabout = \"spin\"\n[programs.cat]\nabout = \"show\"\n";

struct Server {
    child: Child,
    address: String,
    /// Holds the jail, the policy and the log.
    home: tempfile::TempDir,
}

fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut wardian = Command::new(env!("CARGO_BIN_EXE_wardian"));
    wardian.arg("serve").args(arguments).env("XDG_STATE_HOME", home.join("state"));
    wardian.env("WARDIAN_TOOLS_POLICY", home.join("policy.toml")).env_remove("WARDIAN_HTTP_TOKEN");
    wardian.env("WARDIAN_TOOLS_INTERACTIVE_WORKERS", "1").env("WARDIAN_TOOLS_QUEUE_DEPTH", "3");
    wardian
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory");
    fs::create_dir(home.path().join("jail")).expect("a directory");
    fs::write(home.path().join("jail/file"), "inside\n").expect("a file");
    fs::write(home.path().join("policy.toml"), POLICY).expect("a file");
    fs::write(home.path().join("token"), "0123456789abcdef\n").expect("a file");
    home
}

impl Server {
    fn start(arguments: &[&str]) -> Server {
        let home = home();
        let jail = home.path().join("jail");
        let token = home.path().join("token");
        let place = |argument: &&str| match *argument {
            "JAIL" => jail.display().to_string(),
            "TOKEN" => token.display().to_string(),
            other => other.to_owned(),
        };
        let arguments: Vec<String> = arguments.iter().map(place).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let command = command(home.path(), &arguments);
        Server::started(command, home)
    }

    fn started(mut command: Command, home: tempfile::TempDir) -> Server {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        stderr.read_line(&mut line).expect("text");
        let address = line.trim().strip_prefix("wardian: listening on http://").expect(&line);
        let address = address.replace("0.0.0.0", "127.0.0.1");
        std::thread::spawn(move || std::io::copy(&mut stderr, &mut std::io::stderr()));
        Server { child, address, home }
    }

    fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
    }

    fn run(&self, body: Value) -> Answer {
        self.send(&run_request(&body.to_string()))
    }

    fn send(&self, request: &str) -> Answer {
        answer(self.connect(request))
    }

    /// The request is sent; the answer is still to be read.
    fn connect(&self, request: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        stream
    }

    /// Asks until the answer is as wanted; the test's own end is the only deadline.
    fn wait_until(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        loop {
            let answer = self.get(path);
            if wanted(&answer) {
                return answer;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn terminate(mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().expect("kill").success());
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn code(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

fn run_request(body: &str) -> String {
    let length = body.len();
    let head =
        "POST /tools/run HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json";
    format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}")
}

fn answer(mut stream: TcpStream) -> Answer {
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).expect("a status").parse().expect("a number");
    Answer { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
}

#[test]
fn health_has_the_documented_format() {
    let server = Server::start(&["--http", "0", "--tools", "JAIL"]);
    let health = server.get("/health");
    assert_eq!(health.status, 200);
    assert!(health.head.contains("content-type: application/json"), "{}", health.head);
    let mut health = health.json();
    assert!(health["uptimeSeconds"].is_u64() && health["sandboxes"].is_u64());
    assert_eq!(health["totals"].take(), Value::Null);
    assert_eq!(health["status"], "ok");
    assert_eq!(health["children"], 0);
    assert_eq!(
        health["workerPool"],
        json!({
            "interactive": { "active": 0, "idle": 1, "queued": 0 },
            "system": { "active": 0, "queued": 0 },
            "totals": { "completed": 0, "failed": 0, "timedOut": 0, "cancelled": 0, "avgExecMs": 0.0 },
        })
    );
    let ready = server.wait_until("/ready", |answer| answer.status == 200);
    assert_eq!(ready.json(), json!({ "ready": true }));
    assert_eq!(server.get("/nothing").code(), (404, "NOT_FOUND".to_owned()));
    let post = server.send("POST /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert_eq!(post.status, 405);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn metrics_are_prometheus_text() {
    let server = Server::start(&["--http", "0", "--tools", "JAIL"]);
    assert_eq!(server.run(json!({ "command": "cat file" })).status, 200);
    let metrics = server.get("/metrics");
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.head);
    let mut families = Vec::new();
    for line in metrics.body.lines() {
        if let Some(family) = line.strip_prefix("# TYPE ") {
            families.push(family.split(' ').next().expect("a name"));
        } else if !line.starts_with("# HELP ") {
            let (sample, value) = line.rsplit_once(' ').expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let name = sample.split('{').next().expect("a name");
            let family = families.last().copied().unwrap_or_default();
            let parts = ["", "_bucket", "_sum", "_count"].map(|part| format!("{family}{part}"));
            assert!(parts.iter().any(|part| part == name), "{line}: not behind its type");
        }
    }
    assert!(
        metrics.body.contains("\nwardian_tool_calls_total{outcome=\"completed\"} 1\n"),
        "{}",
        metrics.body
    );
    assert!(metrics.body.contains("\nwardian_tool_workers{lane=\"interactive\",state=\"idle\"} 1\n"));
    assert!(metrics.body.contains("\nwardian_sandboxes "));
}

#[test]
fn metrics_tell_of_clients_runs_and_limits() {
    let home = home();
    let socket = home.path().join("socket");
    let arguments = ["--http", "0", "--max-clients", "1", "--socket", socket.to_str().expect("text")];
    let server = Server::started(command(home.path(), &arguments), home);
    let mut client = loop {
        match UnixStream::connect(&socket) {
            Ok(client) => break client,
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let mut answers = BufReader::new(client.try_clone().expect("a second handle")).lines();
    for line in [
        r#"{"id":1,"method":"create","params":{"limits":{"stdoutBytes":4}}}"#,
        r#"{"id":2,"method":"run","params":{"command":"true"}}"#,
        r#"{"id":3,"method":"run","params":{"command":"echo long output; exit 3"}}"#,
        r#"{"id":4,"method":"run","params":{"command":"sleep 100","timeoutMs":20}}"#,
        r#"{"id":5,"method":"run","params":{"comand":"true"}}"#,
    ] {
        writeln!(client, "{line}").expect("it reads");
        answers.next().expect("an answer").expect("text");
    }
    let surplus = UnixStream::connect(&socket).expect("it listens");
    let told = BufReader::new(surplus).lines().next().expect("a line").expect("text");
    assert!(told.contains("too many clients"), "{told}");
    let metrics = server.get("/metrics").body;
    for line in [
        "wardian_clients 1",
        "wardian_clients_refused_total 1",
        "wardian_requests_total 5",
        "wardian_requests_refused_total{code=\"-32602\"} 1",
        "wardian_runs_total{outcome=\"success\"} 1",
        "wardian_runs_total{outcome=\"failure\"} 1",
        "wardian_runs_total{outcome=\"timeout\"} 1",
        "wardian_runs_total{outcome=\"refused\"} 1",
        "wardian_limits_hit_total{limit=\"stdoutBytes\"} 1",
        "wardian_run_seconds_count 3",
        "wardian_run_seconds_bucket{le=\"+Inf\"} 3",
        "wardian_run_wait_seconds_count 3",
        "wardian_sandboxes 1",
        "wardian_processes 1",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line}\n{metrics}");
    }
}

#[test]
fn a_tool_answers_or_is_refused_by_the_stage_that_did() {
    let server = Server::start(&["--http", "0", "--tools", "JAIL"]);
    let ran = server.run(json!({ "args": ["cat", "file"], "session": "me" })).json();
    assert_eq!(
        (&ran["exitCode"], &ran["stdout"], &ran["timedOut"]),
        (&json!(0), &json!("inside\n"), &json!(false))
    );
    let failed = server.run(json!({ "command": "cat nothing" })).json();
    assert_eq!(failed["exitCode"], 1);
    assert!(failed["stderr"].as_str().expect("text").contains("No such file"), "{failed}");
    let late = server.run(json!({ "command": "yes", "timeoutMs": 50 })).json();
    assert_eq!(
        (&late["timedOut"], &late["truncated"], &late["signal"]),
        (&json!(true), &json!(true), &json!(15))
    );
    for (body, status, code) in [
        (json!({ "command": "cat ../policy.toml" }), 403, "PATH_DENIED"),
        (json!({ "command": "sh -c id" }), 403, "PROGRAM_DENIED"),
        (json!({ "command": "cat file; id" }), 400, "SYNTAX_DENIED"),
        (json!({ "command": "cat", "cwd": "/" }), 403, "PATH_DENIED"),
        (json!({ "command": "cat", "args": [] }), 400, "BAD_REQUEST"),
        (json!({ "command": "cat", "timeoutMs": -1 }), 400, "BAD_REQUEST"),
        (json!({ "command": "cat", "shell": true }), 400, "BAD_REQUEST"),
        (json!([]), 400, "BAD_REQUEST"),
    ] {
        assert_eq!(server.run(body.clone()).code(), (status, code.to_owned()), "{body}");
    }
    let stage = server.run(json!({ "command": "cat file; id" })).json();
    assert_eq!(stage["error"]["stage"], "tokenize");
    let huge = json!({ "command": "x".repeat(2 << 20) });
    assert_eq!(server.run(huge).code(), (400, "BAD_REQUEST".to_owned()));

    let closed = Server::start(&["--http", "0"]);
    assert_eq!(closed.run(json!({ "command": "cat file" })).code(), (404, "SANDBOX_DISABLED".to_owned()));
    assert_eq!(closed.get("/health").json()["workerPool"], Value::Null);
}

#[test]
fn others_need_the_token() {
    let server = Server::start(&["--http", "0.0.0.0:0", "--token-file", "TOKEN", "--tools", "JAIL"]);
    let with = |authorization: &str| {
        let head = "GET /ready HTTP/1.1\r\nHost: example.org\r\nConnection: close";
        server.send(&format!("{head}\r\n{authorization}\r\n\r\n"))
    };
    for right in ["Authorization: Bearer 0123456789abcdef", "authorization: bearer 0123456789abcdef"] {
        assert_ne!(with(right).status, 401);
    }
    for wrong in ["X-Nothing: 1", "Authorization: 0123456789abcdef", "Authorization: Basic 0123456789abcdef"]
    {
        let refused = with(wrong);
        assert_eq!(refused.code(), (401, "UNAUTHORIZED".to_owned()), "{wrong}");
        assert!(refused.head.contains("www-authenticate: bearer"), "{}", refused.head);
    }
    for token in ["0123456789abcdeF", "0123456789abcde", "0123456789abcdef0", ""] {
        assert_eq!(with(&format!("Authorization: Bearer {token}")).status, 401, "{token}");
    }
    assert_eq!(server.run(json!({ "command": "cat file" })).status, 401);
    for path in ["/metrics", "/ready", "/nothing", "/health/", "/tools/run"] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
}

#[test]
fn without_the_token_a_client_learns_only_whether_the_server_is_alive() {
    let server = Server::start(&["--http", "0.0.0.0:0", "--token-file", "TOKEN", "--tools", "JAIL"]);
    let health = server.get("/health");
    assert_eq!((health.status, health.json()), (200, json!({ "status": "ok" })));
    let with = |token: &str| {
        let authorization = format!("Authorization: Bearer {token}");
        server
            .send(&format!("GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{authorization}\r\n\r\n"))
    };
    assert!(with("0123456789abcdef").json()["workerPool"].is_object());
    assert_eq!(
        with("0123456789abcdeF").code(),
        (401, "UNAUTHORIZED".to_owned()),
        "a wrong one is worth knowing of"
    );
    let post = "POST /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!(server.send(post).status, 401);
}

/// Lets this process have so many descriptors.
fn descriptors(needed: u64) {
    let mut limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    if limit.current.is_some_and(|current| current < needed) {
        limit.current = Some(needed);
        rustix::process::setrlimit(rustix::process::Resource::Nofile, limit).expect("enough descriptors");
    }
}

/// A client that has sent nothing, half a head, or half a body.
fn stuck(server: &Server, number: usize) -> TcpStream {
    server.connect(match number % 3 {
        0 => "",
        1 => "GET /health HTTP/1.1\r\nHost: local",
        _ => "POST /tools/run HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
    })
}

/// How long `/health` takes to answer as a rule, beside other connections.
fn health_delay(server: &Server, others: usize) -> Duration {
    let mut times: Vec<Duration> = (0..5)
        .map(|_| {
            let start = Instant::now();
            assert_eq!(server.get("/health").status, 200, "beside {others} connections");
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

/// Asks for `/health` a few times, each time while nobody but the server can have closed any of `others`: it answers about
/// as soon as it does beside nobody.
fn health_answers<T>(server: &Server, alone: Duration, others: &[T]) {
    /// Less than this is nobody's delay but the system's.
    const NOTHING: Duration = Duration::from_millis(100);
    let delay = health_delay(server, others.len());
    let told = format!("{delay:.1?} beside {} connections, {alone:.1?} alone", others.len());
    assert!(delay <= alone.max(NOTHING) * 10, "{told}");
}

#[test]
fn health_responds_despite_more_stuck_connections_than_the_server_accepts() {
    descriptors(4096);
    let server = Server::start(&["--http", "0", "--tools", "JAIL"]);
    let alone = health_delay(&server, 0);
    let mut others = Vec::new();
    for number in 0..1150 {
        others.push(stuck(&server, number));
        if number % 100 == 0 {
            health_answers(&server, alone, &others);
        }
    }
    health_answers(&server, alone, &others);
    // The first of them were closed for the others, and none of them was answered: their time was not up.
    let mut first = &others[0];
    first.set_read_timeout(Some(Duration::from_secs(30))).expect("a timeout");
    assert_eq!(first.read(&mut [0; 1]).ok(), Some(0), "the oldest is still open");
    let mut last = &others[1149];
    last.set_nonblocking(true).expect("a socket");
    let error = last.read(&mut [0; 1]).expect_err("the newest was closed, or timed out");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn health_answers_where_descriptors_are_few() {
    let home = home();
    let mut wardian = Command::new("prlimit");
    let binary = env!("CARGO_BIN_EXE_wardian");
    wardian.args(["--nofile=128:128", binary, "serve", "--http", "0"]).env("XDG_STATE_HOME", home.path());
    let server = Server::started(wardian, home);
    let alone = health_delay(&server, 0);
    let others: Vec<TcpStream> = (0..300).map(|number| stuck(&server, number)).collect();
    health_answers(&server, alone, &others);
}

#[test]
fn health_answers_beside_idle_clients_of_the_socket() {
    descriptors(4096);
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let server = Server::start(&["--http", "0", "--socket", path.to_str().expect("text")]);
    let connect = || std::os::unix::net::UnixStream::connect(&path);
    while connect().is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let alone = health_delay(&server, 0);
    let others: Vec<_> = (0..1150).map_while(|_| connect().ok()).collect();
    assert!(others.len() > 1024, "{}", others.len());
    health_answers(&server, alone, &others);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_server_without_protection_does_not_start() {
    let home = home();
    let refused = |arguments: &[&str], token: Option<&str>| -> (i32, String, String) {
        let mut wardian = command(home.path(), arguments);
        let output: Output =
            wardian.envs(token.map(|token| ("WARDIAN_HTTP_TOKEN", token))).output().expect("it starts");
        shown(output)
    };
    let (exit, _, err) = refused(&["--http", "0.0.0.0:0"], None);
    assert!(exit != 0 && err.contains("a token is required"), "{exit} {err}");
    let (exit, _, err) = refused(&["--http", "0.0.0.0:0"], Some("short"));
    assert!(exit != 0 && err.contains("at least 16"), "{exit} {err}");
    let (exit, _, err) = refused(&["--http", "not a place"], None);
    assert!(exit != 0 && err.contains("invalid listen address"), "{exit} {err}");
    let (exit, _, err) = refused(&["--http", "0", "--tools", "nowhere"], None);
    assert!(exit != 0 && err.contains("nowhere"), "{exit} {err}");
}

#[test]
fn pages_of_the_web_are_kept_out() {
    let server = Server::start(&["--http", "0", "--tools", "JAIL"]);
    let named = |host: &str| {
        server.send(&format!("GET /health HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")).status
    };
    for host in ["localhost", "localhost:80", "127.0.0.1", "127.0.0.1:8080", "[::1]:1"] {
        assert_eq!(named(host), 200, "{host}");
    }
    for host in ["evil.example", "evil.example:80", "localhost.evil.example", "10.0.0.1", ""] {
        assert_eq!(named(host), 403, "{host}");
    }
    let form = run_request("{\"command\":\"cat file\"}").replace("application/json", "text/plain");
    assert_eq!(server.send(&form).code(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
}

#[test]
fn health_answers_while_every_worker_spins_and_the_queue_is_full() {
    let server = Server::start(&["--http", "0", "--tools", "JAIL"]);
    let spin = run_request(&json!({ "command": "yes", "timeoutMs": 600_000 }).to_string());
    // As clients do that mean to ask more: only of those can a server tell that they went away.
    let spin = spin.replace("Connection: close\r\n", "");
    let mut spinning = vec![server.connect(&spin)];
    let pool = |answer: &Answer| answer.json()["workerPool"]["interactive"].clone();
    server.wait_until("/health", |answer| pool(answer)["active"] == 1);
    spinning.extend((0..3).map(|_| server.connect(&spin)));
    let full = json!({ "active": 1, "idle": 0, "queued": 3 });
    let health = server.wait_until("/health", |answer| pool(answer) == full);
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")));
    assert_eq!(health.json()["children"], 1);
    let refused = server.run(json!({ "command": "cat file" }));
    assert_eq!(refused.code(), (503, "WORKER_UNAVAILABLE".to_owned()));
    assert!(refused.head.contains("retry-after: "), "{}", refused.head);
    assert_eq!(server.get("/metrics").status, 200);

    // A caller who goes away takes its call along.
    drop(spinning.pop());
    server.wait_until("/health", |answer| pool(answer)["queued"] == 2);

    // The pool first, so that all callers have their answers; then the server.
    let log = server.home.path().join("state/wardian/tools.jsonl");
    let pid = server.child.id();
    assert!(Command::new("kill").arg(pid.to_string()).status().expect("kill").success());
    let answers: Vec<(u16, String)> = spinning.into_iter().map(|stream| answer(stream).code()).collect();
    assert_eq!(answers[1..], vec![(503, "POOL_SHUTTING_DOWN".to_owned()); 2]);
    assert_eq!(answers[0].0, 503, "{answers:?}");
    let mut server = server;
    assert_eq!(server.child.wait().expect("it ends").code(), Some(0));
    let log = fs::read_to_string(log).expect("a log");
    let ends = ["complete", "failed", "cancelled"].map(|end| log.matches(&format!("\"tool.{end}\"")).count());
    assert_eq!(log.matches("\"tool.start\"").count(), ends.iter().sum::<usize>(), "{log}");
}

#[test]
fn half_a_request_does_not_delay_shutdown() {
    let server = Server::start(&["--http", "0"]);
    let _half = server.connect("GET /health HTTP/1.1\r\nHost: local");
    assert_eq!(server.get("/health").status, 200);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_server_of_lines_is_watched_in_the_same_process() {
    let socket = tempfile::tempdir().expect("a directory");
    let path = socket.path().join("socket");
    let server = Server::start(&["--http", "0", "--socket", path.to_str().expect("text")]);
    let mut client = loop {
        match std::os::unix::net::UnixStream::connect(&path) {
            Ok(client) => break client,
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    client.write_all(b"{\"id\":1,\"method\":\"create\"}\n").expect("it reads");
    let mut lines = BufReader::new(client.try_clone().expect("a clone")).lines();
    assert!(lines.next().expect("an answer").expect("text").contains("\"ok\":true"));
    server.wait_until("/health", |answer| answer.json()["sandboxes"] == 1);
    drop((client, lines));
    server.wait_until("/health", |answer| answer.json()["sandboxes"] == 0);
    assert_eq!(server.terminate(), Some(0));
    assert!(!path.exists(), "the socket is left over");
}

#[test]
fn tokens_are_read_again_on_a_hangup() {
    let home = home();
    let file = home.path().join("tokens.toml");
    let log = home.path().join("access.log");
    let write = |secret: &str| {
        fs::write(&file, format!("[[token]]\nname = 'a'\nsecret = '{secret}'\n")).expect("a file");
    };
    write("0123456789abcdef");
    let (path, log_path) = (file.display().to_string(), log.display().to_string());
    let arguments = ["--http", "0.0.0.0:0", "--tokens", &path, "--access-log", &log_path];
    let server = Server::started(command(home.path(), &arguments), home);
    let status = |token: &str| {
        let head = format!(
            "GET /v1/sandboxes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer {token}"
        );
        server.send(&format!("{head}\r\n\r\n")).status
    };
    assert_eq!([status("0123456789abcdef"), status("fedcba9876543210")], [200, 401]);
    let hang_up = || {
        let pid = server.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill").success());
    };
    write("fedcba9876543210");
    fs::rename(&log, server.home.path().join("access.old")).expect("a log");
    hang_up();
    while status("fedcba9876543210") != 200 {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(status("0123456789abcdef"), 401);
    while !fs::read_to_string(&log).is_ok_and(|text| text.contains("\"token\":\"a\"")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    // One that is not valid changes nothing.
    fs::write(&file, "nonsense").expect("a file");
    hang_up();
    assert_eq!(status("fedcba9876543210"), 200);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_token_beside_a_file_of_tokens_does_not_start() {
    let home = home();
    let file = home.path().join("tokens.toml");
    fs::write(&file, "[[token]]\nname = 'a'\nsecret = 'short'\n").expect("a file");
    let path = file.display().to_string();
    let refused = |wardian: &mut Command| {
        let output = wardian.stdin(Stdio::null()).output().expect("it ends");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let arguments = ["--http", "0", "--tokens", &path];
    let message = refused(&mut command(home.path(), &arguments));
    assert!(message.contains("the secret of a must have from 16 to 1024 printable characters"), "{message}");
    fs::write(&file, "").expect("a file");
    let message = refused(command(home.path(), &arguments).env("WARDIAN_HTTP_TOKEN", "0123456789abcdef"));
    assert!(message.contains("there is one token and a file of tokens"), "{message}");
}
