//! `files.watch`: being told of what changes.

use serde_json::{Value, json};

use crate::support::{Client, base64};

/// The events that a watcher tells until one of them is of this path.
async fn events_until(client: &mut Client, id: &Value, last: &str) -> Vec<(String, String)> {
    let mut events = Vec::new();
    loop {
        let told = client.answers.told().await;
        assert_eq!(told["method"], "files.changed", "{told}");
        assert_eq!(&told["params"]["watchId"], id, "{told}");
        let text = |event: &Value, name: &str| event[name].as_str().expect("a string").to_owned();
        let told = told["params"]["events"].as_array().expect("events");
        events.extend(told.iter().map(|event| (text(event, "path"), text(event, "change"))));
        if events.iter().any(|(path, _)| path == last) {
            return events;
        }
    }
}

fn event(path: &str, change: &str) -> (String, String) {
    (path.to_owned(), change.to_owned())
}

#[tokio::test]
async fn changes_are_told_until_they_are_no_longer_asked_for() {
    let mut client = Client::created(json!({})).await;
    client.call("files.mkdir", json!({ "path": "/tmp/w/deep" })).await;
    let flat = client.call("files.watch", json!({ "path": "/tmp/w" })).await["watchId"].clone();
    client.call("files.write", json!({ "path": "/tmp/w/deep/unseen", "data": "" })).await;
    client.call("files.write", json!({ "path": "/tmp/w/f", "data": base64("x") })).await;
    assert_eq!(events_until(&mut client, &flat, "f").await, [event("f", "create"), event("f", "write")]);
    client.stdout("cd /tmp/w; mv f g; echo more > last").await;
    let events = events_until(&mut client, &flat, "last").await;
    assert!(events.contains(&event("f", "rename")) && events.contains(&event("g", "create")), "{events:?}");
    assert_eq!(client.call("files.unwatch", json!({ "watchId": flat })).await["ok"], true);
    let missing = (1, "ENOENT: no such watcher: 1".to_owned());
    assert_eq!(client.failure("files.unwatch", json!({ "watchId": flat })).await, missing);
    let deep = json!({ "path": "/tmp/w", "recursive": true });
    let deep = client.call("files.watch", deep).await["watchId"].clone();
    client.call("files.rm", json!({ "path": "/tmp/w/deep/unseen" })).await;
    let events = events_until(&mut client, &deep, "deep/unseen").await;
    assert_eq!(events, [event("deep/unseen", "remove")], "nothing of the other one");
    // The directory goes, and the watcher with it.
    client.call("files.rm", json!({ "path": "/tmp/w" })).await;
    loop {
        let told = client.answers.told().await;
        if told["method"] == "files.watchEnd" {
            assert_eq!(told["params"], json!({ "watchId": deep, "error": "ENOENT" }));
            break;
        }
    }
}

#[tokio::test]
async fn a_watcher_ends_with_its_sandbox_and_is_charged_to_it() {
    let mut client = Client::created(json!({})).await;
    let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    let many = "mkdir /tmp/w; cd /tmp/w; for i in {1..2000}; do : > f$i; done";
    client.call("run", json!({ "command": many, "sandboxId": fork, "timeoutMs": 0 })).await;
    let used = json!({ "sandboxId": fork });
    let before = client.call("usage", used.clone()).await["memoryBytes"].as_u64().expect("a number");
    let watch = json!({ "path": "/tmp/w", "sandboxId": fork });
    let id = client.call("files.watch", watch.clone()).await["watchId"].clone();
    let after = client.call("usage", used).await["memoryBytes"].as_u64().expect("a number");
    assert!(after >= before + 2000 * 192, "{before} {after}");
    client.call("sandbox.destroy", json!({ "sandboxId": fork })).await;
    let told = client.answers.told().await;
    assert_eq!(told["method"], "files.watchEnd");
    assert_eq!(told["params"], json!({ "watchId": id }));
    client.leave().await;
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_and_watchers_are_capped() {
    let mut client = Client::created(json!({})).await;
    let refused = |path: &str, why: &str| (json!({ "path": path }), (1, format!("{why}: {path}")));
    client.call("files.write", json!({ "path": "/tmp/f", "data": "" })).await;
    for (params, expected) in [
        refused("/no/such", "ENOENT: no such file or directory"),
        refused("/tmp/f", "ENOTDIR: not a directory"),
    ] {
        assert_eq!(client.failure("files.watch", params).await, expected);
    }
    for _ in 0..64 {
        client.call("files.watch", json!({ "path": "/tmp" })).await;
    }
    let most = (1, "EAGAIN: a client has at most 64 watchers".to_owned());
    assert_eq!(client.failure("files.watch", json!({ "path": "/tmp" })).await, most);
    client.call("files.unwatch", json!({ "watchId": "7" })).await;
    // Its place is free once it has stopped.
    while client.ask("files.watch", json!({ "path": "/tmp" })).await.get("error").is_some() {}
    let many = "mkdir /tmp/many; cd /tmp/many; for i in {1..10001}; do : > f$i; done";
    client.call("run", json!({ "command": many, "timeoutMs": 0 })).await;
    client.call("files.unwatch", json!({ "watchId": "8" })).await;
    let too_many = (1, "EFBIG: file too large: /tmp/many".to_owned());
    assert_eq!(client.failure("files.watch", json!({ "path": "/tmp/many" })).await, too_many);
}

/// A client that does not read has one notification of each watcher, and all that matters once it reads.
#[tokio::test]
async fn a_client_that_does_not_read_is_told_the_rest_later() {
    let mut client = Client::created(json!({})).await;
    client.call("files.mkdir", json!({ "path": "/tmp/w" })).await;
    let id = client.call("files.watch", json!({ "path": "/tmp/w" })).await["watchId"].clone();
    let long = "cd /tmp/w; n=$(printf 'n%.0s' {1..200}); for i in {1..9000}; do : > $n$i; done; for i in {1..9000}; do rm $n$i; done; : > last";
    client.call("run", json!({ "command": long, "timeoutMs": 0 })).await;
    let events = events_until(&mut client, &id, "last").await;
    assert!(events.contains(&event("last", "create")));
}
