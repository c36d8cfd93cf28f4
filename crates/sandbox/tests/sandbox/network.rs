//! What a sandbox reaches outside: nothing, or what its policy grants.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use wardian::net::{BoxFuture, HttpRule, Resolve, Secret};
use wardian::{AuditLog, AuditRotation, ErrorClass, NetworkPolicy, Run, RunResult, Sandbox, verify_audit};

/// Fetches a page and prints its body, or the error.
const FETCH: &str = r#"import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except Exception as error:
    print(type(error).__name__, error)
"#;

/// Every name is this machine.
pub struct Here;

impl Resolve for Here {
    fn resolve<'a>(&'a self, _name: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async { Ok(vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]) })
    }
}

/// Serves the same page to so many clients, one after the other; returns its port.
fn server(times: usize) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for _ in 0..times {
            let Ok((mut client, _)) = listener.accept() else { return };
            let _ = client.set_read_timeout(Some(Duration::from_secs(5)));
            let mut request = Vec::new();
            let mut piece = [0; 1024];
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match client.read(&mut piece) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend_from_slice(&piece[..count]),
                }
            }
            let _ =
                client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello");
        }
    });
    port
}

fn granting(port: u16) -> NetworkPolicy {
    NetworkPolicy {
        allowed_hosts: vec!["server.test".into()],
        http_ports: vec![port],
        allow_private: vec!["127.0.0.0/8".parse().expect("a network")],
        ..NetworkPolicy::default()
    }
}

async fn fetch(sandbox: &Sandbox, url: &str) -> RunResult {
    sandbox.write_file("/tmp/fetch.py", FETCH).await.expect("there is room");
    sandbox.run(format!("python3 /tmp/fetch.py {url}")).await.expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn nothing_is_reached_by_default_and_the_result_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("audit.jsonl");
    let log = AuditLog::to_file(&file, AuditRotation::default()).expect("a log");
    let sandbox = Sandbox::builder().audit(&log).build().await.expect("it is built");
    let result = fetch(&sandbox, "http://server.test/").await;
    assert!(text(&result.stdout).starts_with("URLError"), "{}", text(&result.stdout));
    assert_eq!(result.error_class, Some(ErrorClass::CapabilityDenied));
    assert!(
        text(&result.stderr).ends_with("wardian: host not allowed: server.test\n"),
        "{}",
        text(&result.stderr)
    );
    let result = fetch(&sandbox, "http://93.184.216.34/").await;
    assert!(text(&result.stdout).contains("Connection refused"), "{}", text(&result.stdout));
    assert!(
        text(&result.stderr).ends_with("wardian: host not allowed: 93.184.216.34:80\n"),
        "{}",
        text(&result.stderr)
    );
    let records = std::fs::read_to_string(&file).expect("a log");
    assert_eq!(records.matches("net.denied").count(), 2, "{records}");
    // The next run is not blamed for it.
    assert_eq!(sandbox.run("true").await.expect("it runs").error_class, None);
}

#[tokio::test]
async fn what_is_granted_is_reached_also_by_forks() {
    let port = server(2);
    let building = Sandbox::builder().network(granting(port)).resolver(Here);
    let sandbox = building.build().await.expect("it is built");
    let url = format!("http://server.test:{port}/");
    let result = fetch(&sandbox, &url).await;
    assert_eq!(
        (text(&result.stdout).as_str(), result.error_class),
        ("hello\n", None),
        "{}",
        text(&result.stderr)
    );
    let fork = sandbox.fork().await.expect("it forks");
    assert_eq!(text(&fetch(&fork, &url).await.stdout), "hello\n");
    let other = fetch(&sandbox, "http://other.test/").await;
    assert_eq!(other.error_class, Some(ErrorClass::CapabilityDenied));
}

#[tokio::test]
async fn a_policy_that_makes_no_sense_is_refused() {
    let policy = NetworkPolicy { allowed_hosts: vec!["http://x.com/".into()], ..NetworkPolicy::default() };
    let error = Sandbox::builder().network(policy).build().await.expect_err("it is no host");
    assert!(error.to_string().starts_with("network: "), "{error}");
}

/// A server that reads what its first client sends, or not even that, and never answers. When a second one comes, it says
/// whether the first is gone.
fn silent(reads: bool) -> (u16, Receiver<()>, Receiver<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let ((asked, was_asked), (gone, was_gone)) = (channel(), channel());
    std::thread::spawn(move || {
        let Ok((mut first, _)) = listener.accept() else { return };
        let mut piece = vec![0; 1 << 20];
        let _ = first.read(&mut piece);
        let _ = asked.send(());
        let Ok(_second) = listener.accept() else { return };
        first.set_nonblocking(true).expect("a socket");
        // Nothing was read where it does not read, so that only an error says so, with which a closed connection answers the
        // next bytes. Both come long before the 10 seconds that are waited for a guest that leaves.
        let is_gone = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            if !reads {
                return first.write_all(b"H").is_err();
            }
            // What was on its way comes first.
            while let Ok(1..) = first.read(&mut piece) {}
            !matches!(first.read(&mut piece), Err(error) if error.kind() == ErrorKind::WouldBlock)
        });
        let _ = gone.send(is_gone);
    });
    (port, was_asked, was_gone)
}

/// Sends much, and waits for an answer.
const SEND: &str = r#"import socket, sys
s = socket.create_connection(("server.test", int(sys.argv[1])))
s.sendall(b"POST / HTTP/1.1\r\nHost: server.test:%s\r\nContent-Length: 50000000\r\n\r\n" % sys.argv[1].encode())
if sys.argv[2] == "much":
    s.sendall(b"x" * 50000000)
print(s.recv(100))
"#;

#[tokio::test]
async fn a_timeout_and_a_cancel_drop_connections_at_once() {
    for (amount, reads) in [("little", true), ("much", false)] {
        for cancelled in [false, true] {
            let (port, asked, gone) = silent(reads);
            let day = 86_400_000;
            let policy = NetworkPolicy { response_timeout_ms: day, idle_timeout_ms: day, ..granting(port) };
            let sandbox =
                Sandbox::builder().network(policy).resolver(Here).build().await.expect("it is built");
            sandbox.write_file("/tmp/send.py", SEND).await.expect("there is room");
            let run = Run::new(format!("python3 /tmp/send.py {port} {amount}"));
            let result = if cancelled {
                let running = sandbox.clone();
                let task = tokio::spawn(async move { running.run_with(run).await });
                tokio::task::spawn_blocking(move || asked.recv_timeout(Duration::from_secs(60)))
                    .await
                    .expect("no panic")
                    .expect("it is asked");
                sandbox.cancel();
                task.await.expect("no panic").expect("it runs")
            } else {
                sandbox.run_with(run.timeout(Some(Duration::from_secs(3)))).await.expect("it runs")
            };
            let expected = if cancelled { ErrorClass::Cancelled } else { ErrorClass::Timeout };
            assert_eq!(result.error_class, Some(expected), "{}", text(&result.stderr));
            // The next command finds the connection closed.
            sandbox.run(format!("curl -s http://server.test:{port}/")).await.expect("it runs");
            let gone = tokio::task::spawn_blocking(move || gone.recv_timeout(Duration::from_secs(60))).await;
            assert!(gone.expect("no panic").expect("the server looks"), "{amount}, cancelled: {cancelled}");
        }
    }
}

/// Runs a script and returns what Wardian itself says about it.
async fn told(sandbox: &Sandbox, script: &str) -> (Vec<String>, Option<ErrorClass>) {
    let result = sandbox.run(script).await.expect("it runs");
    let stderr = text(&result.stderr);
    let lines = stderr.lines().filter(|line| line.starts_with("wardian: ")).map(str::to_owned);
    (lines.collect(), result.error_class)
}

#[tokio::test]
async fn refusals_within_a_connection_are_in_the_result() {
    let port = server(10);
    let rule = HttpRule { host: "server.test".into(), methods: vec!["GET".into()], path_prefixes: vec![] };
    let secret = "a-secret-value".to_owned();
    let secret =
        Secret { name: "KEY".into(), host: "server.test".into(), value: secret, place: Default::default() };
    let policy = NetworkPolicy { http_rules: vec![rule], secrets: vec![secret], ..granting(port) };
    let sandbox = Sandbox::builder().network(policy).resolver(Here).build().await.expect("it is built");
    let denied = Some(ErrorClass::CapabilityDenied);
    let line = |why: &str| vec![format!("wardian: not allowed: server.test:{port}: {why}")];
    let post = format!("curl -s -d x http://server.test:{port}/path");
    assert_eq!(told(&sandbox, &post).await, (line("no HTTP rule allows POST /path"), denied));
    // The same thing is said once.
    let again = format!("{post}; {post}");
    assert_eq!(told(&sandbox, &again).await.0.len(), 1);
    let insecure = format!("curl -sk https://server.test:{port}/");
    let why = "the policy does not allow TLS without verification";
    assert_eq!(told(&sandbox, &insecure).await, (line(why), denied));
    let hello = format!("printf '\\x16\\x03\\x01\\x00\\x05hello' | nc -q 1 server.test {port}");
    let why = "TLS is the gateway's: ask for it with a control record, or have the host granted as raw";
    assert_eq!(told(&sandbox, &hello).await, (line(why), denied));
    let get = format!("curl -s http://server.test:{port}/");
    assert_eq!(told(&sandbox, &get).await, (vec![], None));
}

#[tokio::test]
async fn connections_above_a_limit_are_named_in_the_result() {
    let port = server(10);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("audit.jsonl");
    let log = AuditLog::to_file(&file, AuditRotation::default()).expect("a log");
    let policy = NetworkPolicy { max_connections: 1, total_bytes: Some(20), ..granting(port) };
    let building = Sandbox::builder().network(policy).resolver(Here).audit(&log);
    let sandbox = building.build().await.expect("it is built");
    let denied = Some(ErrorClass::CapabilityDenied);
    let line = |limit: &str| format!("wardian: not allowed: server.test:{port}: {limit} is used up");
    let two = format!("exec 3<> /dev/tcp/server.test/{port}; curl -s http://server.test:{port}/; echo $?");
    let result = sandbox.run(two.as_str()).await.expect("it runs");
    assert_eq!((text(&result.stdout).as_str(), result.error_class), ("7\n", denied));
    assert!(text(&result.stderr).ends_with(&(line("maxConnections") + "\n")), "{}", text(&result.stderr));
    // A request has more bytes than that. The place of the connection is free soon after its end.
    let get = format!("curl -s http://server.test:{port}/");
    sandbox.run(format!("exec 3>&-; until {get}; do sleep 0.05; done")).await.expect("it runs");
    assert_eq!(told(&sandbox, &get).await, (vec![line("totalBytes")], denied));
    let records = std::fs::read_to_string(&file).expect("a log");
    for limit in ["maxConnections", "totalBytes"] {
        let is_one =
            |line: &str| line.contains("net.denied") && line.contains(&format!(r#""rule":"{limit}""#));
        assert!(records.lines().any(is_one), "{limit}: {records}");
    }
}

#[tokio::test]
async fn a_placeholder_that_stands_for_nothing_is_refused_like_other_addresses() {
    for policy in [NetworkPolicy::default(), granting(80)] {
        let sandbox = Sandbox::builder().network(policy).resolver(Here).build().await.expect("it is built");
        let expected = vec!["wardian: host not allowed: 198.18.0.9:80".to_owned()];
        assert_eq!(
            told(&sandbox, "curl -s http://198.18.0.9/").await,
            (expected, Some(ErrorClass::CapabilityDenied))
        );
    }
}

#[tokio::test]
async fn connections_and_requests_are_recorded_without_secrets() {
    let port = server(3);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("audit.jsonl");
    let log = AuditLog::to_file(&file, AuditRotation::default()).expect("a log");
    let value = "a-secret-value".to_owned();
    let secret = Secret { name: "KEY".into(), host: "server.test".into(), value, place: Default::default() };
    let policy = NetworkPolicy { secrets: vec![secret], ..granting(port) };
    let building = Sandbox::builder().network(policy).resolver(Here).audit(&log);
    let sandbox = building.build().await.expect("it is built");
    let script = format!("curl -s -H \"X: $KEY\" http://server.test:{port}/a-secret-value?a-secret-value");
    assert_eq!(text(&sandbox.run(script).await.expect("it runs").stdout), "hello");
    sandbox.destroy().await;
    drop(log);
    verify_audit(&file).expect("an intact log");
    let records = std::fs::read_to_string(&file).expect("a log");
    let named = |name: &str| -> serde_json::Value {
        let records =
            records.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
        records.into_iter().find(|record| record["event"] == name).expect("a record")["data"].clone()
    };
    let connect = named("net.connect");
    assert_eq!((&connect["host"], &connect["port"]), (&"server.test".into(), &port.into()));
    assert_eq!(
        (&connect["address"], &connect["rule"]),
        (&format!("127.0.0.1:{port}").into(), &"server.test".into())
    );
    let request = named("net.request");
    assert_eq!((&request["method"], &request["status"]), (&"GET".into(), &200.into()));
    assert_eq!((&request["path"], &request["responseBytes"]), (&"/**************".into(), &5.into()));
    let secret = records.lines().filter(|line| line.contains("a-secret-value"));
    // The command itself is recorded as it was given; what the gateway says has none.
    assert!(secret.into_iter().all(|line| line.contains("command.start")), "{records}");
}

/// Redirects each of its clients to the next of these addresses.
fn redirecting(to: Vec<String>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    std::thread::spawn(move || {
        for place in to {
            let Ok((mut client, _)) = listener.accept() else { return };
            let mut request = Vec::new();
            let mut piece = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                match client.read(&mut piece) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => request.extend_from_slice(&piece[..count]),
                }
            }
            let head = "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nConnection: close";
            let _ = write!(client, "{head}\r\nLocation: {place}\r\n\r\n");
        }
    });
    port
}

#[tokio::test]
async fn a_redirect_to_this_machines_loopback_does_not_reach_it() {
    let target = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = target.local_addr().expect("it is bound").port();
    let hosts = [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "0.0.0.0",
    ];
    let places: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    let from = redirecting(places);
    // Everything is granted, this machine's network included: only that these addresses are the sandbox's own protects it.
    let everything = vec!["*".to_owned(), "127.0.0.0/8".to_owned()];
    let mut policy = NetworkPolicy { allowed_hosts: everything, ..granting(from) };
    policy.http_ports.push(port);
    let sandbox = Sandbox::builder().network(policy).resolver(Here).build().await.expect("it is built");
    for host in hosts {
        let script = format!("curl -sL -m 20 -w '%{{num_redirects}}' http://server.test:{from}/");
        let result = sandbox.run(script).await.expect("it runs");
        let said = (text(&result.stdout), result.exit_code);
        assert_eq!(said, ("1".to_owned(), 7), "{host}: {}", text(&result.stderr));
    }
    target.set_nonblocking(true).expect("a socket");
    let nobody = target.accept().expect_err("nobody has come");
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
}
