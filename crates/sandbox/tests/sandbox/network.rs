//! What a sandbox reaches outside: nothing, or what its policy grants.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::Duration;

use wardian::net::{BoxFuture, Resolve};
use wardian::{AuditLog, AuditRotation, ErrorClass, NetworkPolicy, Run, RunResult, Sandbox};

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

/// A server that reads what it is sent, or not even that, and never answers. Says when its clients are gone.
fn silent(reads: bool) -> (u16, std::sync::mpsc::Receiver<()>, std::sync::mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    let ((asked, was_asked), (closed, was_closed)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let Ok((mut client, _)) = listener.accept() else { return };
        let mut piece = [0; 1024];
        let _ = client.read(&mut piece);
        let _ = asked.send(());
        if reads {
            while let Ok(1..) = client.read(&mut piece) {}
        } else {
            // It takes nothing: only an error says that the other side has gone.
            client.set_nonblocking(false).expect("a socket");
            while client.take_error().is_ok_and(|error| error.is_none())
                && client.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").is_ok()
            {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let _ = closed.send(());
    });
    (port, was_asked, was_closed)
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
            let (port, asked, closed) = silent(reads);
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
            let gone =
                tokio::task::spawn_blocking(move || closed.recv_timeout(Duration::from_secs(60))).await;
            gone.expect("no panic").expect("the server sees the end");
        }
    }
}
