//! States in files on the server.

use serde_json::json;
use wardian_server::Options;

use crate::support::{Client, base64};
use crate::table::{check, error, ok};

#[tokio::test]
async fn states() {
    let directory = tempfile::tempdir().unwrap();
    let mut client =
        Client::new(Options { state_dir: Some(directory.path().to_owned()), ..Options::default() });
    client.call("create", json!({})).await;
    client.stdout("x=exported; echo data > f").await;
    let data = client.call("persistence.export", json!({})).await["data"].clone();
    assert_eq!(
        client.call("persistence.export", json!({ "file": "one.state" })).await,
        json!({ "ok": true })
    );
    for params in [json!({ "data": data }), json!({ "file": "one.state" })] {
        client.stdout("x=changed; rm -f f").await;
        assert_eq!(client.call("persistence.import", params).await, json!({ "ok": true }));
        assert_eq!(client.stdout("echo $x; cat f").await, "exported\ndata\n");
    }
    // Into another server, and nothing of a damaged one.
    let mut other = Client::created(json!({})).await;
    other.call("persistence.import", json!({ "data": data })).await;
    assert_eq!(other.stdout("echo $x; cat f").await, "exported\ndata\n");
    let rows = vec![
        ("persistence.import", json!({}), error(-32602, "Missing required param: data")),
        ("persistence.import", json!({ "data": base64("no") }), error(-32602, "not an archive of a sandbox")),
        (
            "persistence.import",
            json!({ "data": "", "file": "one.state" }),
            error(-32602, "data and file cannot both be given"),
        ),
        ("persistence.import", json!({ "file": "two" }), error(-32602, "file: state two not found")),
        ("persistence.export", json!({ "file": "../one" }), error(-32602, "file must be a plain file name")),
        ("persistence.export", json!({ "file": ".." }), error(-32602, "file must be a plain file name")),
        ("persistence.export", json!({ "file": "" }), error(-32602, "file must be a plain file name")),
        ("persistence.export", json!({ "file": 1 }), error(-32602, "file must be a string")),
    ];
    check(&mut client, rows).await;
    assert_eq!(client.stdout("echo $x").await, "exported\n");
    let without = "file: the server was started without --state-dir";
    check(&mut other, vec![("persistence.export", json!({ "file": "one" }), error(-32602, without))]).await;
    let names: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["one.state"]);
    let listed = client.call("persistence.list", json!({})).await;
    assert_eq!(listed["states"][0]["file"], "one.state");
    let size = std::fs::metadata(directory.path().join("one.state")).unwrap().len();
    assert_eq!(listed["states"][0]["bytes"], size);
    let rows = vec![
        ("persistence.remove", json!({}), error(-32602, "Missing required param: file")),
        (
            "persistence.remove",
            json!({ "file": "../one.state" }),
            error(-32602, "file must be a plain file name"),
        ),
        ("persistence.remove", json!({ "file": "one.state" }), ok()),
        (
            "persistence.remove",
            json!({ "file": "one.state" }),
            error(-32602, "file: state one.state not found"),
        ),
        ("persistence.list", json!({}), json!({ "result": { "states": [] } })),
    ];
    check(&mut client, rows).await;
}

/// For all writers and all names together.
#[tokio::test]
async fn all_states_together_have_one_limit() {
    let directory = tempfile::tempdir().unwrap();
    let of_another = directory.path().join(".tenants/someone");
    std::fs::create_dir_all(&of_another).unwrap();
    std::fs::write(of_another.join("state"), vec![0; 60_000]).unwrap();
    let mut client = Client::new(Options {
        state_dir: Some(directory.path().to_owned()),
        state_bytes: 100_000,
        ..Options::default()
    });
    client.call("create", json!({})).await;
    client.stdout("head -c 30000 /dev/urandom > f").await;
    for _ in 0..3 {
        // The same name takes its space once.
        assert_eq!(client.call("persistence.export", json!({ "file": "a" })).await, json!({ "ok": true }));
    }
    let (code, message) = client.failure("persistence.export", json!({ "file": "b" })).await;
    assert_eq!(code, 1);
    assert!(message.starts_with("ENOSPC: the state b: the states would take"), "{message}");
    client.call("persistence.remove", json!({ "file": "a" })).await;
    assert_eq!(client.call("persistence.export", json!({ "file": "b" })).await, json!({ "ok": true }));
}
