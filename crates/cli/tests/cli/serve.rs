//! `wardian serve`: the process around the server. What it answers is tested with the server itself.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::{shown, wardian};

struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
}

impl Server {
    fn start() -> Server {
        let mut server = Server::silent(&[]);
        server.send(1, "create", json!({ "limits": { "stdoutBytes": 1u64 << 40 } }));
        assert_eq!(server.next()["result"], json!({ "ok": true }));
        server
    }

    /// One that has been asked nothing yet.
    fn silent(flags: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wardian"))
            .args(["serve", "--stdio"])
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Server { child, stdin, stdout }
    }

    fn send(&mut self, id: u64, method: &str, params: Value) {
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(self.stdin.as_mut().expect("open"), "{line}").expect("the server reads");
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.as_mut().expect("open").read_line(&mut line).expect("text");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    /// What is left on its standard output, and its exit code.
    fn end(mut self) -> (Vec<Value>, i32) {
        let mut rest = String::new();
        if let Some(mut stdout) = self.stdout.take() {
            stdout.read_to_string(&mut rest).expect("text");
        }
        let messages = rest.lines().map(|line| serde_json::from_str(line).expect("protocol only")).collect();
        (messages, self.child.wait().expect("it ends").code().expect("an exit code"))
    }
}

#[test]
fn the_end_of_the_input_ends_everything() {
    let mut server = Server::start();
    server.send(2, "run", json!({ "command": "while :; do :; done", "timeoutMs": 0 }));
    server.send(3, "files.write", json!({ "path": "f", "data": "" }));
    assert_eq!(server.next()["id"], 3);
    server.stdin = None;
    let (messages, code) = server.end();
    assert_eq!(code, 0);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!((&messages[0]["id"], &messages[0]["result"]["errorClass"]), (&json!(2), &json!("CANCELLED")));
}

#[test]
fn half_a_line_and_the_end() {
    let mut server = Server::start();
    server.stdin.as_mut().unwrap().write_all(b"{\"id\":2,\"method\":\"kil").unwrap();
    server.stdin = None;
    assert_eq!(server.end(), (vec![], 0));
}

#[test]
fn kill_is_answered_and_the_process_ends() {
    let mut server = Server::start();
    server.send(2, "run", json!({ "command": "sleep 1000" }));
    server.send(3, "kill", json!({}));
    // The input stays open: it need not be closed.
    let stdin = server.stdin.take();
    let (messages, code) = server.end();
    drop(stdin);
    assert_eq!(code, 0);
    assert_eq!(messages[0]["result"]["errorClass"], "CANCELLED");
    assert_eq!(messages[1], json!({ "jsonrpc": "2.0", "id": 3, "result": { "ok": true } }));
    assert_eq!(messages.len(), 2);
}

#[test]
fn a_client_that_no_longer_reads_or_is_gone() {
    let mut server = Server::start();
    server.send(2, "run", json!({ "command": "yes", "stream": true, "timeoutMs": 0 }));
    server.next();
    // Alive but not reading, with the pipe full: the end of the input is the end all the same.
    server.stdin = None;
    assert_eq!(server.child.wait().unwrap().code(), Some(0));

    let mut server = Server::start();
    server.send(2, "run", json!({ "command": "yes", "stream": true, "timeoutMs": 0 }));
    server.next();
    server.stdout = None;
    assert_eq!(server.child.wait().unwrap().code(), Some(0), "with its input still open");
}

#[test]
fn mounts_are_allowed_below_named_directories() {
    let all = tempfile::tempdir().unwrap();
    let (one, two) = (all.path().join("one"), all.path().join("two"));
    std::fs::create_dir_all(one.join("inside")).unwrap();
    std::fs::create_dir(&two).unwrap();
    let read_only = format!("{}:ro", two.display());
    let mut server = Server::silent(&["--allow-mount", one.to_str().unwrap(), "--allow-mount", &read_only]);
    let mount = |host: &std::path::Path, mode| json!([{ "host": host, "path": "/m", "mode": mode }]);
    for (host, mode) in [(&two, "rw"), (&all.path().to_owned(), "ro")] {
        server.send(1, "create", json!({ "hostMounts": mount(host, mode) }));
        assert_eq!(server.next()["error"]["code"], -32602, "{}", host.display());
    }
    server.send(2, "create", json!({ "hostMounts": mount(&one.join("inside"), "rw") }));
    assert_eq!(server.next()["result"], json!({ "ok": true }));
    server.send(3, "files.write", json!({ "path": "/m/f", "data": "aGk=" }));
    assert_eq!(server.next()["result"], json!({ "ok": true }));
    assert_eq!(std::fs::read(one.join("inside/f")).unwrap(), b"hi");
    server.stdin = None;
    assert_eq!(server.end(), (vec![], 0));
    let states = format!("{}/states", one.display());
    std::fs::create_dir(&states).unwrap();
    for (flags, why) in [
        (vec!["--allow-mount", "/"], "it is the whole machine"),
        (vec!["--allow-mount", "/no/such"], "No such file or directory"),
        (vec!["--allow-mount", one.to_str().unwrap(), "--state-dir", &states], "keep it elsewhere"),
        (vec!["--allow-tenant-mount", one.to_str().unwrap()], "--tokens"),
    ] {
        let (code, _, said) = shown(wardian(&[&["serve", "--stdio"], &flags[..]].concat()));
        assert!(code != 0 && said.contains(why), "{flags:?}: {code} {said}");
    }
}

#[test]
fn only_this_user_can_open_the_socket_until_the_server_stops() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_wardian")).arg("serve").arg("--socket").arg(&path).spawn().unwrap();
    let connect = || loop {
        match UnixStream::connect(&path) {
            Ok(stream) => return stream,
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    };
    let mut clients = [connect(), connect()];
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for (number, client) in clients.iter_mut().enumerate() {
        writeln!(client, r#"{{"id":1,"method":"create"}}"#).unwrap();
        writeln!(client, r#"{{"id":2,"method":"run","params":{{"command":"echo {number} > f; cat f"}}}}"#)
            .unwrap();
        let mut lines = BufReader::new(&*client).lines();
        assert!(lines.next().unwrap().unwrap().contains(r#""ok":true"#));
        assert!(lines.next().unwrap().unwrap().contains(&format!(r#""stdout":"{number}\n""#)));
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!path.exists());
    assert_eq!(clients[0].read(&mut [0; 1]).unwrap(), 0, "its clients see the end");
}

#[test]
fn a_signal_answers_running_requests() {
    let mut server = Server::start();
    server.send(2, "run", json!({ "command": "while :; do :; done", "timeoutMs": 0 }));
    server.send(3, "files.list", json!({ "path": "/" }));
    assert_eq!(server.next()["id"], 3);
    // The input stays open: the signal alone is the end.
    let stdin = server.stdin.take();
    let pid = server.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let (messages, code) = server.end();
    drop(stdin);
    assert_eq!((messages.len(), code), (1, 0), "{messages:?}");
    assert_eq!(messages[0]["result"]["errorClass"], "CANCELLED");
}

#[test]
fn the_log_has_a_line_for_what_is_created_run_and_refused() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_wardian"))
        .args(["serve", "--stdio"])
        .env("WARDIAN_LOG", "info")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in [
        r#"{"id":1,"method":"create"}"#,
        r#"{"id":2,"method":"run","params":{"command":"echo secret; exit 3"}}"#,
        r#"{"id":3,"method":"sandbox.fork"}"#,
        r#"{"id":4,"method":"sandbox.destroy","params":{"sandboxId":"1"}}"#,
        r#"{"id":5,"method":"run","params":{"command":"x","sandboxId":"7"}}"#,
        r#"{"id":6,"method":"files.list","params":{"path":"/"}}"#,
    ] {
        writeln!(stdin, "{line}").unwrap();
        // Each is done before the next is sent: a fork has to be there before it is destroyed.
        answers.next().unwrap().unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let line =
        |words: &[&str]| log.lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    for words in [
        &[": connected", "client=1"][..],
        &["done", "method=create", "request=1", "ms="],
        &["done", "method=run", "request=2", "exit_code=3", "outcome=\"failure\"", "waited_ms="],
        &["done", "method=sandbox.fork", "forks=1"],
        &["done", "method=sandbox.destroy", "sandbox=1"],
        &["refused", "method=run", "sandbox=7", "code=-32602"],
        &["disconnected", "its input ended"],
    ] {
        assert_eq!(line(words), 1, "{words:?}\n{log}");
    }
    assert_eq!(line(&["files.list"]), 0, "that is for debug\n{log}");
    assert!(!log.contains("secret"), "commands are nobody's business\n{log}");
}

#[test]
fn a_log_level_that_does_not_exist_is_refused() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_wardian")).args(["run", "true"]).env("WARDIAN_LOG", "inof").output();
    let (code, _, stderr) = shown(output.unwrap());
    assert_eq!(code, 0);
    assert!(
        stderr.starts_with("wardian: WARDIAN_LOG=inof is not one of") && stderr.contains("info?"),
        "{stderr}"
    );
}

#[test]
fn bad_flags_are_one_clear_error_and_exit_2() {
    let directory = tempfile::tempdir().unwrap();
    let weak = directory.path().join("token");
    std::fs::write(&weak, "short").unwrap();
    let weak = weak.to_str().unwrap();
    let cases: [&[&str]; 11] = [
        &["serve", "--stdio", "--max-clients", "9"],
        &["serve", "--socket", "s", "--max-clients", "0"],
        &["serve", "--socket", "s", "--max-clients", "999999999"],
        &["serve", "--stdio", "--state-dir", "/proc"],
        &["serve", "--http", "0", "--token-file", weak],
        &["serve", "--http", "0", "--token-file", "/no/such/file"],
        &["serve"],
        &["serve", "--stdio", "--socket", "s"],
        &["serve", "--stdio", "--max-sandboxes", "many"],
        &["serve", "--stdio", "--state-dir", "/no/such/directory"],
        &["serve", "--socket", "/no/such/directory/socket"],
    ];
    for words in cases {
        let (code, stdout, stderr) = shown(wardian(words));
        assert_eq!((code, stdout.as_str()), (2, ""), "{words:?}");
        assert_eq!(stderr.lines().count(), 1, "{words:?}: {stderr}");
        assert!(stderr.starts_with("wardian: "), "{words:?}: {stderr}");
    }
}
