//! The options that grant a sandbox a way out.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener};
use std::process::Command;

use serde_json::json;

use crate::{shown, wardian};

/// A proxy that leads to a web server, whatever the host, so that no name is looked up and no address connected. Serves so many
/// connections, with one request each, and returns what was asked for.
fn proxy(connections: usize) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let one = |_| {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(&stream);
            let connect = head(&mut reader);
            (&stream).write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            let request = head(&mut reader);
            let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
            (&stream).write_all(answer).unwrap();
            // It answers before it reads a body, which must be read all the same: a connection that is closed with something unread
            // is reset, and the answer may be lost.
            stream.shutdown(Shutdown::Write).unwrap();
            let _ = std::io::copy(&mut reader, &mut std::io::sink());
            format!("{connect}, {request}")
        };
        (0..connections).map(one).collect()
    };
    (port, std::thread::spawn(serve))
}

/// Reads the head of a request and returns its first line.
fn head(reader: &mut impl BufRead) -> String {
    let mut lines = reader.lines().map(Result::unwrap).take_while(|line| !line.is_empty());
    let first = lines.next().unwrap();
    lines.for_each(drop);
    first
}

/// `wardian run` with these options, through the proxy.
fn run(proxy: u16, options: &[&str], script: &str) -> (i32, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("policy.json");
    let policy = json!({ "proxy": { "url": format!("http://127.0.0.1:{proxy}"), "resolvesNames": true } });
    std::fs::write(&file, policy.to_string()).unwrap();
    shown(wardian(&[&["run", "--network", file.to_str().unwrap()], options, &[script]].concat()))
}

#[test]
fn hosts_ports_and_networks_are_granted_by_options() {
    let (proxy, served) = proxy(1);
    let (host, network, port) =
        (["--allow-host", "10.1.2.3"], ["--allow-private", "10.0.0.0/8"], ["--allow-port", "8080"]);
    let script = "curl -s http://10.1.2.3:8080/a";
    // Each of the three is needed, and what is missing is named.
    let refused: [(&[&str], &str); 4] = [
        (&[], ""),
        (&network, ""),
        (&[host, network].concat(), " (ports)"),
        (&[host, port].concat(), " (allowPrivate)"),
    ];
    for (options, field) in refused {
        let (code, stdout, stderr) = run(proxy, options, script);
        assert_eq!((code, stdout.as_str()), (7, ""), "{options:?}: {stderr}");
        assert_eq!(stderr, format!("wardian: host not allowed: 10.1.2.3:8080{field}\n"), "{options:?}");
    }
    let (code, stdout, stderr) = run(proxy, &[host, network, port].concat(), script);
    assert_eq!((code, stdout.as_str()), (0, "hello\n"), "{stderr}");
    assert_eq!(served.join().unwrap(), ["CONNECT 10.1.2.3:8080 HTTP/1.1, GET /a HTTP/1.1"]);
}

#[test]
fn a_run_is_recorded_and_repeated_without_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let cassette = directory.path().join("cassette");
    let path = cassette.to_str().unwrap();
    let (port, served) = proxy(2);
    let script = "curl -sS http://server.test/a; curl -sS -d text http://server.test/b";
    let recorded = run(port, &["--allow-host", "server.test", "--record", path], script);
    assert_eq!((recorded.0, recorded.1.as_str()), (0, "hello\nhello\n"), "{}", recorded.2);
    let asked = ["GET /a HTTP/1.1", "POST /b HTTP/1.1"];
    let asked = asked.map(|request| format!("CONNECT server.test:80 HTTP/1.1, {request}"));
    assert_eq!(served.join().unwrap(), asked);
    // The server is gone.
    let again = |script: &str| run(port, &["--allow-host", "server.test", "--replay", path], script);
    assert_eq!(again(script), recorded);
    let (_, _, stderr) = again("curl -s http://server.test/c");
    assert!(stderr.ends_with(": not in the cassette: GET http://server.test/c\n"), "{stderr}");
    // Only HTTP is recorded: a port that is opaque cannot be replayed, and is named as such.
    let options = ["--allow-host", "server.test", "--allow-port", "8080", "--replay", path];
    let (code, _, stderr) = run(port, &options, "curl -s http://server.test:8080/a");
    assert_eq!((code, stderr.as_str()), (7, "wardian: host not allowed: server.test:8080 (replay)\n"));
    let (code, _, stderr) = run(port, &["--record", path, "--replay", path], "true");
    assert!(code == 2 && stderr.contains("--replay"), "{code} {stderr}");
}

#[test]
fn a_secret_comes_from_a_variable_and_is_not_shown() {
    let run = |option: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wardian"));
        command.args(["run", "--allow-host", "api.test", "--secret", option, "echo $KEY"]);
        shown(command.env("KEY", "a-real-secret").output().unwrap())
    };
    let (code, stdout, stderr) = run("api.test=ENV:KEY");
    assert!(code == 0 && stdout.starts_with("wardian-secret-"), "{stdout}{stderr}");
    for (option, message) in [
        ("api.test=ENV:NO_SUCH_VARIABLE", "the variable NO_SUCH_VARIABLE is not set"),
        ("api.test=a-real-secret", "not HOST=ENV:NAME"),
    ] {
        let (code, stdout, stderr) = run(option);
        assert!(code == 2 && stdout.is_empty() && stderr.contains(message), "{option}: {code} {stderr}");
    }
}
