//! Nothing is accepted and ignored: every option is honoured, or refused by name.

use serde_json::json;
use wardian_server::Options;

use crate::support::{Client, base64};

#[tokio::test]
async fn unknown_params_are_refused_by_name() {
    let refused = [
        (json!({ "unheard": { "of": [] } }), "Unknown param: unheard"),
        (json!({ "timeoutMS": 1 }), "Unknown param: timeoutMS (did you mean timeoutMs?)"),
        (
            json!({ "limits": { "memorybytes": 1 } }),
            "Unknown param: limits.memorybytes (did you mean memoryBytes?)",
        ),
        (
            json!({ "security": { "limits": { "proceses": 1 } } }),
            "Unknown param: security.limits.proceses (did you mean processes?)",
        ),
        (
            json!({ "security": { "tool_allowlist": [] } }),
            "Unknown param: security.tool_allowlist (did you mean toolAllowlist?)",
        ),
        (
            json!({ "network": { "allowed_hosts": [] } }),
            "Unknown param: network.allowed_hosts (did you mean allowedHosts?)",
        ),
        (
            json!({ "mounts": [{ "path": "/m", "files": {}, "writeable": true }] }),
            "Unknown param: mounts[0].writeable (did you mean writable?)",
        ),
        (json!({ "pool": { "min": 1 } }), "Unknown param: pool.min (did you mean minSize?)"),
        (json!({ "extensions": [{ "name": "a", "help": "" }] }), "Unknown param: extensions[0].help"),
        (json!({ "persistence": true }), "persistence must be an object"),
        (json!({ "persistence": { "name": "a" } }), "the server was started without --store"),
        (json!({ "image": "a" }), "the server was started without --store"),
        (json!({ "onKill": "undo" }), "onKill must be \"keep\" or \"rollback\""),
        (json!({ "cwd": "work" }), "cwd is not an absolute path: \"work\""),
        (
            json!({ "writablePaths": ["/tmp/../etc"] }),
            "writablePaths has \"/tmp/../etc\", which is not an absolute path without '.', '..' and '//'",
        ),
        (
            json!({ "limits": { "processes": 9 }, "security": { "limits": { "processes": 9 } } }),
            "processes is given twice: in limits and in security.limits",
        ),
        (
            json!({ "security": { "toolAllowlist": ["cat", "gerp"] } }),
            "toolAllowlist: there is no program called \"gerp\" (did you mean grep?)",
        ),
        (
            json!({ "limits": { "memoryBytes": 1000 } }),
            "memoryBytes is 1000, which is too little for a shell: at least 2097152",
        ),
        (
            json!({ "limits": { "processes": 0 } }),
            "processes is 0, which is too little for a shell: at least 1",
        ),
        (json!({ "limits": { "openFiles": 400_000_000 } }), "openFiles is 400000000: at most 4096"),
    ];
    for (params, message) in refused {
        let mut client = Client::new(Options::default());
        assert_eq!(client.failure("create", params.clone()).await, (-32602, message.to_owned()), "{params}");
    }
    let least = json!({ "limits": { "memoryBytes": 2_097_152, "openFiles": 16, "processes": 4 } });
    let mut client = Client::created(least).await;
    assert_eq!(client.stdout("seq 3 | sort | wc -l").await, "3\n", "the least that is accepted works");
}

/// Every method of the contract, so that none is forgotten.
#[tokio::test]
async fn every_method_refuses_what_it_does_not_know() {
    let methods = wardian_contract::methods::METHODS.iter().map(|method| method.name.to_owned());
    let methods: Vec<String> = methods.filter(|name| name != "create").collect();
    assert!(methods.len() > 25, "{methods:?}");
    let mut client = Client::created(json!({ "storage": true })).await;
    for method in &methods {
        let params = json!({
            "command": "echo", "code": "1", "path": "/tmp/x", "data": "", "name": "A", "value": "b", "files": {}, "id": "1",
            "file": "f", "port": 80, "streamId": "1", "watchId": "1", "bytes": 0, "sandboxId": null, "surprise": 1,
            "commit": "1", "from": "1", "newName": "B", "tag": "t",
            "to": "/tmp/y", "mode": 420, "target": "x", "processId": "1", "signal": "TERM", "rows": 24, "columns": 80,
        });
        let taken = params_of(method);
        let mut given = params.as_object().unwrap().clone();
        given.retain(|name, _| taken.contains(&name.as_str()) || name == "sandboxId" || name == "surprise");
        if matches!(method.as_str(), "sandbox.destroy" | "sandbox.remove") {
            given.insert("sandboxId".into(), json!("1"));
        }
        let (code, message) = client.failure(method, given.into()).await;
        assert_eq!((code, message.as_str()), (-32602, "Unknown param: surprise"), "{method}");
    }
    assert_eq!(client.stdout("ls /tmp; echo $A").await, "\n", "and nothing was done");
}

/// The params that a method needs.
fn params_of(method: &str) -> &'static [&'static str] {
    match method {
        "run" => &["command"],
        "python.run" => &["code"],
        "files.write" => &["path", "data"],
        "env.get" | "env.unset" => &["name"],
        "files.rename" | "files.copy" => &["path", "to"],
        "files.chmod" => &["path", "mode"],
        "files.symlink" => &["path", "target"],
        "files.unwatch" => &["watchId"],
        "process.start" => &["command"],
        "process.write" => &["processId", "data"],
        "process.ack" => &["processId", "bytes"],
        "process.signal" => &["processId", "signal"],
        "process.resize" => &["processId", "rows", "columns"],
        "process.closeStdin" | "process.wait" => &["processId"],
        "env.set" => &["name", "value"],
        "mount" => &["path", "files"],
        "mount.diff" | "mount.apply" => &["path"],
        "snapshot.restore" => &["id"],
        "persistence.import" => &["data"],
        "net.connect" | "net.url" => &["port"],
        "net.write" => &["streamId", "data"],
        "net.ack" => &["streamId", "bytes"],
        "net.close" | "net.closeWrite" => &["streamId"],
        "persistence.remove" => &["file"],
        "sandbox.open" | "persistence.log" | "persistence.delete" => &["name"],
        "image.save" | "image.delete" | "image.export" => &["name"],
        "image.import" => &["name", "data"],
        "persistence.diff" => &["name", "from"],
        "persistence.branch" => &["name", "newName"],
        "persistence.tag" => &["name", "tag", "commit"],
        "persistence.checkout" => &["commit"],
        method if method.starts_with("files.") => &["path"],
        _ => &[],
    }
}

#[tokio::test]
async fn options_that_have_other_names_too() {
    let mut client = Client::created(json!({
        "security": { "limits": { "stdoutBytes": 4 } },
        "network": { "allowedHosts": [] },
        "cwd": "/tmp",
        "writablePaths": ["/tmp/"],
        "onKill": "rollback",
    }))
    .await;
    assert_eq!(client.stdout("pwd").await, "/tmp");
    client.call("files.write", json!({ "path": "f", "data": base64("old") })).await;
    let refused = client.failure("files.write", json!({ "path": "/home/user/f", "data": "" })).await;
    assert_eq!(refused, (1, "EROFS: read-only file system: /home/user/f".to_owned()));
    let killed = json!({ "command": "echo new > f; while :; do :; done", "timeoutMs": 300 });
    assert_eq!(client.call("run", killed).await["errorClass"], "TIMEOUT");
    assert_eq!(client.stdout("cat f").await, "old", "what a killed command did is undone");
}
