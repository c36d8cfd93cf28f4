//! TLS as a gateway gives it: a small one that only answers the record.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};

const MARK: &[u8] = b"\0WTLS\x01";

fn record(text: &str) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Takes one connection: reads a record, answers, and if that is `ok` serves one response. Returns what was asked.
fn gateway(answer: Vec<u8>) -> (u16, std::thread::JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut head = [0; 10];
        stream.read_exact(&mut head).expect("a record");
        assert_eq!(&head[..6], MARK);
        let length = u32::from_be_bytes(head[6..].try_into().expect("four bytes"));
        let mut asked = vec![0; length as usize];
        stream.read_exact(&mut asked).expect("a whole record");
        stream.write_all(&answer).expect("it is read");
        let mut request = vec![0; 4096];
        let count = stream.read(&mut request).unwrap_or(0);
        request.truncate(count);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nsecret\n");
        (String::from_utf8_lossy(&asked).into_owned(), String::from_utf8_lossy(&request).into_owned())
    });
    (port, thread)
}

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_net"))
        .args(arguments)
        .env("HOME", "/nonexistent")
        .output()
        .expect("it runs")
}

const OK: &str = "ok\nversion TLSv1.3\ncipher TLS_AES_256_GCM_SHA384\nalpn http/1.1\ncertificate AAAA\n";

#[test]
fn a_request_goes_through_the_gateway() {
    let (port, thread) = gateway(record(OK));
    let done = run(&["curl", "-sSv", &format!("https://localhost:{port}/x")]);
    let (asked, request) = thread.join().expect("it ends");
    assert_eq!(asked, "server-name localhost\nalpn http/1.1\n");
    assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "secret\n");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(errors.contains("SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384"), "{errors}");
    assert_eq!(done.status.code(), Some(0));
}

#[test]
fn what_is_not_to_be_verified_is_said() {
    let (port, thread) = gateway(record(OK));
    let done = run(&["curl", "-sSk", "--no-alpn", &format!("https://localhost:{port}/x")]);
    assert_eq!(thread.join().expect("it ends").0, "server-name localhost\nverify no\n");
    assert_eq!(done.status.code(), Some(0));
    let (port, thread) = gateway(record(OK));
    let done =
        run(&["wget", "-q", "-O", "-", "--no-check-certificate", &format!("https://localhost:{port}/x")]);
    assert_eq!(thread.join().expect("it ends").0, "server-name localhost\nverify no\nalpn http/1.1\n");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "secret\n");
}

#[test]
fn what_the_gateway_refuses_has_the_codes_of_curl_and_wget() {
    for (answer, curl, wget) in [
        ("error certificate\nmessage expired\n", 60, 5),
        ("error name\nmessage other\n", 60, 5),
        ("error handshake\nmessage alert\n", 35, 4),
        ("error denied\nmessage policy\n", 7, 4),
        ("error bad-request\nmessage x\n", 35, 4),
        ("nonsense\n", 35, 4),
    ] {
        let (port, thread) = gateway(record(answer));
        let done = run(&["curl", "-sS", &format!("https://localhost:{port}/")]);
        assert_eq!(done.status.code(), Some(curl), "{answer}: {}", String::from_utf8_lossy(&done.stderr));
        drop(thread.join());
        let (port, thread) = gateway(record(answer));
        let done = run(&["wget", "-q", "-t", "1", "-O", "-", &format!("https://localhost:{port}/")]);
        assert_eq!(done.status.code(), Some(wget), "{answer}");
        drop(thread.join());
    }
}

#[test]
fn what_is_no_gateway_is_refused() {
    for answer in [
        b"HTTP/1.1 400 Bad\r\n\r\n".to_vec(),
        b"\0WTLS\x01\xff\xff\xff\xff".to_vec(),
        b"\0".to_vec(),
        record("\u{1}"),
    ] {
        let (port, thread) = gateway(answer);
        let done = run(&["curl", "-sS", "--connect-timeout", "2", &format!("https://localhost:{port}/")]);
        assert!(matches!(done.status.code(), Some(35 | 28)), "{done:?}");
        drop(thread.join());
    }
}
