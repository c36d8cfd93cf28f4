//! `wardian audit`.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ::wardian::{AuditLog, AuditRotation as Rotation, Sandbox, blocking};

use serde_json::{Value, json};

use crate::{shown, wardian};

#[test]
fn a_whole_log_passes_and_a_changed_one_does_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    let sandbox = blocking::Sandbox::new(Sandbox::builder().audit(&log)).unwrap();
    sandbox.run("echo recorded").unwrap();
    sandbox.destroy().unwrap();
    let path = file.to_str().unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "verify", path]));
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(stdout.ends_with("intact; records: 4, files: 1\n"), "{stdout}");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("echo recorded", "echo innocent")).unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "verify", path]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("line 2: was changed"), "{stderr}");
    assert_eq!(shown(wardian(&["audit", "verify", "/nowhere"])).0, 2);
}

/// A policy file that replays a cassette with one page, so that nothing is connected.
fn policy(directory: &Path) -> PathBuf {
    let cassette = directory.join("cassette");
    let digest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let head = json!({ "id": 1, "method": "GET", "url": "http://api.test/a", "status": 200, "reason": "OK", "headers": [] });
    let end = json!({ "id": 1, "end": { "request": digest, "trailers": [] } });
    std::fs::write(&cassette, format!("{head}\n{end}\n")).unwrap();
    let file = directory.join("policy.json");
    std::fs::write(&file, json!({ "allowedHosts": ["api.test"], "replay": cassette }).to_string()).unwrap();
    file
}

/// The events of a log, which must be intact.
fn events(file: &Path) -> Vec<String> {
    let (code, stdout, stderr) = shown(wardian(&["audit", "verify", file.to_str().unwrap()]));
    assert_eq!(code, 0, "{stdout}{stderr}");
    let text = std::fs::read_to_string(file).unwrap();
    let event = |line| serde_json::from_str::<Value>(line).unwrap()["event"].as_str().unwrap().to_owned();
    text.lines().map(event).collect()
}

#[test]
fn run_and_serve_record_what_their_sandboxes_do() {
    let directory = tempfile::tempdir().unwrap();
    let (file, policy) = (directory.path().join("audit.jsonl"), policy(directory.path()));
    let (path, script) = (file.to_str().unwrap(), "curl -s http://api.test/a; curl -s http://other.test/");
    let (code, _, stderr) =
        shown(wardian(&["run", "--audit", path, "--network", policy.to_str().unwrap(), script]));
    assert_eq!(code, 6, "{stderr}");
    let network = ["net.connect", "net.request", "net.denied", "command.complete"];
    let expected = [&["sandbox.create", "command.start"], &network[..]].concat();
    let seen = events(&file);
    assert_eq!(seen[..expected.len()], expected, "{seen:?}");

    // The same log goes on with what a server's clients do.
    let mut child = Command::new(env!("CARGO_BIN_EXE_wardian"));
    let child =
        child.args(["serve", "--stdio", "--audit", path]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let network: Value = serde_json::from_slice(&std::fs::read(&policy).unwrap()).unwrap();
    let create = json!({ "jsonrpc": "2.0", "id": 1, "method": "create", "params": { "network": network } });
    let run = json!({ "jsonrpc": "2.0", "id": 2, "method": "run", "params": { "command": script } });
    let kill = json!({ "jsonrpc": "2.0", "id": 3, "method": "kill" });
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in [create, run, kill] {
        writeln!(stdin, "{line}").unwrap();
        let answer: Value = serde_json::from_str(&stdout.next().unwrap().unwrap()).unwrap();
        assert!(answer.get("error").is_none(), "{answer}");
    }
    assert!(child.wait().unwrap().success());
    let all = events(&file);
    assert_eq!(all[seen.len()..][..expected.len()], expected, "{all:?}");
    let (code, _, stderr) = shown(wardian(&["run", "--audit", "/nowhere/log", "true"]));
    assert!(code != 0 && stderr.contains("--audit /nowhere/log"), "{stderr}");
}

#[test]
fn repair_completes_an_interrupted_write_and_refuses_the_rest() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("audit.jsonl");
    let path = file.to_str().unwrap();
    let log = AuditLog::to_file(&file, Rotation::default()).unwrap();
    for _ in 0..3 {
        log.record("", "test", Default::default()).unwrap();
    }
    let (code, stdout, _) = shown(wardian(&["audit", "repair", path]));
    assert_eq!((code, stdout.contains("nothing to repair")), (0, true), "{stdout}");
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, [&whole[..], b"{\"hash\":\"0"].concat()).unwrap();
    let (code, _, stderr) = shown(wardian(&["audit", "verify", path]));
    assert!(
        code == 1 && stderr.contains("interrupted") && stderr.contains("wardian audit repair"),
        "{stderr}"
    );
    let (code, stdout, stderr) = shown(wardian(&["audit", "repair", path]));
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(
        stdout.contains("audit.jsonl.torn-4") && stdout.ends_with("intact; records: 4, files: 1\n"),
        "{stdout}"
    );
    assert_eq!(shown(wardian(&["audit", "verify", path])).0, 0);

    std::fs::write(&file, &whole).unwrap();
    let (code, stdout, stderr) = shown(wardian(&["audit", "repair", path]));
    assert_eq!((code, stdout.as_str()), (1, ""));
    assert!(stderr.contains("ends with record 3, but should with 4"), "{stderr}");
    assert_eq!(shown(wardian(&["audit", "repair", "/nowhere"])).0, 2);
}
