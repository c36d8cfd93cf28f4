//! What a sandbox reaches outside: nothing, or what its policy grants.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::Duration;

use wardian::net::{BoxFuture, Resolve};
use wardian::{AuditLog, AuditRotation, ErrorClass, NetworkPolicy, RunResult, Sandbox};

/// Fetches a page and prints its body, or the error.
const FETCH: &str = r#"import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())
except Exception as error:
    print(type(error).__name__, error)
"#;

/// Every name is this machine.
struct Here;

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
