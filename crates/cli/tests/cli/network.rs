//! The options that grant a sandbox a way out.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::{shown, wardian};

/// Serves so many requests on loopback, one for each connection, and returns their heads.
fn server(requests: usize) -> (u16, std::thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = move || {
        let one = |_| {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut head, mut buffer) = (Vec::new(), [0; 1024]);
            while !head.ends_with(b"\r\n\r\n") {
                let count = stream.read(&mut buffer).unwrap();
                assert!(count > 0, "a whole request");
                head.extend_from_slice(&buffer[..count]);
            }
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n";
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8(head).unwrap()
        };
        (0..requests).map(one).collect()
    };
    (port, std::thread::spawn(serve))
}

/// `wardian run` with what lets a sandbox reach the server's port as HTTP.
fn run(policy: &Path, options: &[&str], script: &str) -> (i32, String, String) {
    let grant = [
        "--network",
        policy.to_str().unwrap(),
        "--allow-host",
        "127.0.0.1",
        "--allow-private",
        "127.0.0.0/8",
    ];
    shown(wardian(&[&["run"], &grant[..], options, &[script]].concat()))
}

fn policy(directory: &Path, port: u16) -> std::path::PathBuf {
    let file = directory.join("policy.json");
    std::fs::write(&file, json!({ "httpPorts": [port] }).to_string()).unwrap();
    file
}

#[test]
fn hosts_ports_and_networks_are_granted_by_options() {
    let (port, served) = server(1);
    let (url, port) = (format!("curl -sS http://127.0.0.1:{port}/a"), port.to_string());
    let host = ["run", "--allow-host", "127.0.0.1"];
    let network = ["--allow-private", "127.0.0.1/32"];
    // Each of the three is needed.
    for options in [
        &["run"][..],
        &host,
        &[&host[..], &network].concat(),
        &[&host[..], &["--allow-port", &port]].concat(),
    ] {
        let (code, stdout, stderr) = shown(wardian(&[options, &[&url]].concat()));
        assert_eq!((code, stdout.as_str()), (7, ""), "{options:?}: {stderr}");
        assert!(stderr.contains("wardian: not allowed: "), "{options:?}: {stderr}");
    }
    let (code, stdout, stderr) =
        shown(wardian(&[&host[..], &network, &["--allow-port", &port, &url]].concat()));
    assert_eq!((code, stdout.as_str()), (0, "hello\n"), "{stderr}");
    assert!(served.join().unwrap()[0].starts_with("GET /a HTTP/1.1\r\n"));
}

#[test]
fn a_run_is_recorded_and_repeated_without_its_server() {
    let directory = tempfile::tempdir().unwrap();
    let (port, served) = server(2);
    let (policy, cassette) = (policy(directory.path(), port), directory.path().join("cassette"));
    let script = format!("curl -sS http://127.0.0.1:{port}/a; curl -sS -d text http://127.0.0.1:{port}/b");
    let path = cassette.to_str().unwrap();
    let recorded = run(&policy, &["--record", path], &script);
    assert_eq!((recorded.0, recorded.1.as_str()), (0, "hello\nhello\n"), "{}", recorded.2);
    assert_eq!(served.join().unwrap().len(), 2);
    // The server is gone.
    assert_eq!(run(&policy, &["--replay", path], &script), recorded);
    let (_, stdout, stderr) = run(&policy, &["--replay", path], &script.replace("/b", "/c"));
    assert!(
        !stdout.contains("hello\nhello\n") && stderr.contains("wardian: not allowed: "),
        "{stdout}{stderr}"
    );
    let (code, _, stderr) = run(&policy, &["--record", path, "--replay", path], "true");
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
