//! Sandboxes with names, which outlive the server.

use std::time::Duration;

use serde_json::{Value, json};
use wardian::Store;
use wardian_server::Options;

use crate::support::Client;
use crate::table::{check, error};

fn options(directory: &std::path::Path) -> Options {
    Options { store: Some(Store::open(directory).expect("a store")), ..Options::default() }
}

/// Opens a sandbox, once the server that had it has let go.
async fn open(client: &mut Client, name: &str) -> Value {
    for _ in 0..500 {
        let answer = client.ask("sandbox.open", json!({ "name": name })).await;
        match answer.get("result") {
            Some(opened) => return opened["sandboxId"].clone(),
            None => assert!(answer["error"]["data"]["errno"] == "EBUSY", "{answer}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{name} is still in use");
}

#[tokio::test]
async fn a_named_sandbox_survives_its_server() {
    let directory = tempfile::tempdir().unwrap();
    {
        let mut client = Client::new(options(directory.path()));
        client.call("create", json!({ "persistence": { "name": "root" } })).await;
        client.stdout("x=kept; echo data > f").await;
        client.call("files.write", json!({ "path": "g", "data": "aGk=" })).await;
        let log = client.call("persistence.log", json!({ "name": "root" })).await;
        let commands: Vec<&str> = log["commits"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|commit| commit["command"].as_str())
            .collect();
        assert_eq!(commands, ["write g", "x=kept; echo data > f", ""]);
        let busy = "EBUSY: default/root is in use by this process";
        check(&mut client, vec![("sandbox.open", json!({ "name": "root" }), busy_error(busy))]).await;
    }
    let mut client = Client::new(options(directory.path()));
    client.call("create", json!({})).await;
    let id = open(&mut client, "root").await;
    let ran = client.call("run", json!({ "command": "echo $x; cat f g", "sandboxId": id })).await;
    assert_eq!(ran["stdout"], "kept\ndata\nhi");
    let log = client.call("persistence.log", json!({ "name": "root", "limit": 2 })).await;
    let before = log["commits"][1]["commit"].to_string();
    client.call("run", json!({ "command": "rm f; x=lost", "sandboxId": id })).await;
    let changes = client.call("persistence.diff", json!({ "name": "root", "from": before })).await;
    assert_eq!(changes["changes"], json!([{ "path": "/home/user/f", "change": "D" }]));
    client.call("persistence.checkout", json!({ "sandboxId": id, "commit": before })).await;
    let ran = client.call("run", json!({ "command": "echo $x; cat f", "sandboxId": id })).await;
    assert_eq!(ran["stdout"], "kept\ndata\n");
    client.call("persistence.branch", json!({ "name": "root", "newName": "other" })).await;
    let listed = client.call("persistence.sandboxes", json!({})).await;
    let names: Vec<&str> =
        listed["sandboxes"].as_array().unwrap().iter().filter_map(|each| each["name"].as_str()).collect();
    assert_eq!(names, ["default/other", "default/root"]);
    client.call("persistence.delete", json!({ "name": "other" })).await;
    let rows = vec![
        ("sandbox.open", json!({ "name": "other" }), missing("default/other")),
        ("sandbox.open", json!({}), error(-32602, "Missing required param: name")),
        (
            "sandbox.create",
            json!({ "persistence": { "name": "a", "mode": "other" } }),
            error(-32602, "persistence.mode must be \"ephemeral\", \"session\" or \"persistent\""),
        ),
        (
            "sandbox.create",
            json!({ "persistence": { "name": "a", "idleSeconds": 5 } }),
            error(
                -32602,
                "persistence.idleSeconds is not supported: an open sandbox stays in memory until it is removed",
            ),
        ),
    ];
    check(&mut client, rows).await;
    let mut without = Client::created(json!({})).await;
    let none = error(-32602, "the server was started without --store");
    check(&mut without, vec![("sandbox.open", json!({ "name": "root" }), none)]).await;
}

fn busy_error(message: &str) -> Value {
    json!({ "error": { "code": 1, "message": message, "data": { "errno": "EBUSY" } } })
}

fn missing(name: &str) -> Value {
    let message = format!("ENOENT: {name}: no such name in the store");
    json!({ "error": { "code": 1, "message": message, "data": { "errno": "ENOENT" } } })
}
