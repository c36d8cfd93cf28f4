//! Whatever a client asks for or has kept, others are served meanwhile and memory stays within what was declared.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wardian_server::{Options, Server};

use crate::support::{Client, base64};

const MIB: usize = 1 << 20;

/// A directory with so many names.
async fn wide(client: &mut Client, names: usize) {
    let script = format!(
        "awk 'BEGIN {{ for (i = 0; i < {names}; i++) {{ f = \"/tmp/\" i; printf \"\" > f; close(f) }} }}'"
    );
    let result = client.call("run", json!({ "command": script, "timeoutMs": 0 })).await;
    assert_eq!(result["exitCode"], 0, "{result}");
}

/// The longest that a request of a neighbour took while `client` waits for its answer, and how long that took.
async fn beside(client: &mut Client, neighbour: &mut Client, method: &str, params: Value) -> [Duration; 2] {
    let (start, mut longest) = (Instant::now(), Duration::ZERO);
    client.send(method, params).await;
    let mut answered = Box::pin(client.answers.next_length());
    loop {
        let asked = Instant::now();
        tokio::select! {
            length = &mut answered => {
                assert!(length > MIB, "{method}: {length} bytes");
                return [longest.max(asked.elapsed()), start.elapsed()];
            }
            _ = neighbour.ask("files.stat", json!({ "path": "/tmp" })) => {}
        }
        longest = longest.max(asked.elapsed());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn beside_large_answers_a_neighbour_is_served() {
    let server = Server::new(Options::default());
    let (mut client, mut neighbour) = (Client::of(&server), Client::of(&server));
    client.call("create", json!({})).await;
    neighbour.call("create", json!({})).await;
    wide(&mut client, 150_000).await;
    client.call("run", json!({ "command": "mkdir d; truncate -s 40M d/x" })).await;
    for (method, path) in [("files.list", "/tmp"), ("files.read", "d/x")] {
        let [longest, took] = beside(&mut client, &mut neighbour, method, json!({ "path": path })).await;
        assert!(longest < took / 2, "{method} took {took:?}, of which a neighbour waited {longest:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_long_is_refused_before_it_is_built() {
    let mut client = Client::created(json!({ "fsLimitBytes": 1 << 30 })).await;
    client
        .call("run", json!({ "command": "truncate -s 200M a; truncate -s 4000G b; truncate -s 47M c" }))
        .await;
    for file in ["a", "b"] {
        let (code, message) = client.failure("files.read", json!({ "path": file })).await;
        assert_eq!(code, 1);
        let wanted = "EFBIG: files.read: the answer would be longer than answerBytes, 67108864";
        assert_eq!(message, wanted);
    }
    client.send("files.read", json!({ "path": "c" })).await;
    assert!(client.answers.next_length().await > 60 * MIB);
    client.call("run", json!({ "command": "head -c 60000000 /dev/urandom > d", "timeoutMs": 0 })).await;
    let (_, message) = client.failure("persistence.export", json!({})).await;
    assert!(message.starts_with("EFBIG: the archive would be longer than "), "{message}");
}

#[tokio::test]
async fn what_a_client_stores_has_limits_that_are_named() {
    let mut client = Client::new(Options::default());
    let long = "x".repeat(2 * MIB);
    let refused = [
        (json!({ "env": { "A": long } }), "env takes "),
        (json!({ "security": { "toolAllowlist": [long] } }), "toolAllowlist takes "),
        (json!({ "extensions": [{ "name": "e", "description": long }] }), "extensions takes "),
        (
            json!({ "fsLimitBytes": 100_000, "mounts": [{ "path": "/m", "files": { "a": base64(&long) } }] }),
            "ENOSPC",
        ),
        (
            json!({ "fsLimitBytes": 100_000,
                "extensions": [{ "name": "e", "pythonPackage": { "files": { "e.py": long } } }] }),
            "ENOSPC",
        ),
    ];
    for (params, start) in refused {
        let (_, message) = client.failure("create", params).await;
        assert!(message.starts_with(start), "{message}");
    }
    client.call("create", json!({ "fsLimitBytes": 8 * MIB, "limits": { "memoryBytes": 16 * MIB } })).await;
    let (code, message) = client.failure("sandbox.create", json!({ "label": "x".repeat(257) })).await;
    assert_eq!((code, &message[..]), (-32602, "label must have at most 256 bytes"));
    client.requests.send_as(json!("i".repeat(1025)), "run", json!({ "command": ":" })).await;
    let answer = client.answers.next().await.unwrap();
    assert_eq!(answer["error"]["message"], "id must have at most 1024 bytes");
    client.requests.line(format!("{{\"id\":1,\"method\":\"run\",\"x\":[{}0]}}", "0,".repeat(300_000))).await;
    let answer = client.answers.next().await.unwrap();
    assert_eq!(answer["error"]["message"], "Parse error: more than 262144 values");
}

#[tokio::test]
async fn mounts_snapshots_and_history_stay_within_limits() {
    let mut client =
        Client::created(json!({ "fsLimitBytes": 8 * MIB, "limits": { "memoryBytes": 16 * MIB } })).await;
    let mut mounted = 0;
    let failed = loop {
        let files = json!({ "a": base64(vec![1; MIB]) });
        let answer = client.ask("mount", json!({ "path": format!("/m{mounted}"), "files": files })).await;
        match answer.get("error") {
            Some(error) => break error.clone(),
            None => mounted += 1,
        }
        assert!(mounted < 100, "mounts are not charged");
    };
    assert_eq!((failed["data"]["errno"].as_str(), mounted), (Some("ENOSPC"), 7), "{failed}");
    // Each snapshot keeps what the next replaces; one of what is there already keeps little.
    let named = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    let mut taken = 0;
    let failed = loop {
        let script = "head -c 4000000 /dev/urandom > f";
        client.call("run", json!({ "command": script, "sandboxId": named })).await;
        let answer = client.ask("snapshot.create", json!({ "sandboxId": named })).await;
        match answer["error"]["message"].as_str() {
            Some(message) => break message.to_owned(),
            None => taken += 1,
        }
        assert!(taken < 100, "snapshots are not charged");
    };
    assert!(failed.starts_with("ENOSPC: the snapshots of this sandbox would keep "), "{failed}");
    assert!(failed.contains("limit snapshotBytes 25165824"), "{failed}");
    assert!((3..=6).contains(&taken), "{taken} snapshots");
    let still = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    client.call("run", json!({ "command": "head -c 4000000 /dev/urandom > f", "sandboxId": still })).await;
    for _ in 0..50 {
        client.call("snapshot.create", json!({ "sandboxId": still })).await;
    }
    let command = format!(": {}", "y".repeat(60_000));
    for _ in 0..40 {
        client.call("run", json!({ "command": command })).await;
    }
    let entries = client.call("shell.history.list", json!({})).await["entries"].as_array().unwrap().clone();
    assert_eq!(entries.len(), MIB / command.len());
    assert_eq!(entries.last().unwrap()["index"], 40);
}

/// Runs a test in a process of its own, where memory is this test's alone.
fn alone(name: &str) -> bool {
    const MARK: &str = "WARDIAN_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let run = Command::new(program).args(["--exact", name, "--nocapture"]).env(MARK, "1").output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    false
}

/// The most memory this process had since the last call.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    kib << 10
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listing_takes_little_more_memory_than_its_answer() {
    if !alone("sizes::a_listing_takes_little_more_memory_than_its_answer") {
        return;
    }
    let mut client = Client::created(json!({})).await;
    wide(&mut client, 200_000).await;
    client.call("run", json!({ "command": ":" })).await;
    peak();
    client.call("run", json!({ "command": ":" })).await;
    let before = peak();
    client.send("files.list", json!({ "path": "/tmp" })).await;
    let length = client.answers.next_length().await;
    let took = peak().saturating_sub(before);
    // The client here has a copy, or two while it grows.
    assert!(took < 8 * length, "an answer of {length} bytes took {took} bytes");
}
