//! Calls from the server to its client: extensions and storage.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::{Client, base64};

async fn with_extension(mut spec: Value, options: Value) -> Client {
    spec["description"] = json!("for the test");
    let mut params = options;
    params["extensions"] = json!([spec]);
    Client::created(params).await
}

async fn answer(client: &mut Client, id: Value, result: Value) {
    client.requests.line(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()).await;
}

#[tokio::test]
async fn an_extension_is_a_command_whose_answer_the_client_gives() {
    let mut client = with_extension(json!({ "name": "ask", "usage": "ask WORD" }), json!({})).await;
    let run = "export V=1; cd /tmp; printf 'in\\xff' | ask 'a b' c | tr a-z A-Z; echo ${PIPESTATUS[1]}";
    let run = client.send("run", json!({ "command": run })).await;
    let (id, params) = client.answers.callback("extension.invoke").await;
    assert_eq!(id, "cb_1");
    assert_eq!((&params["name"], &params["args"]), (&json!("ask"), &json!(["a b", "c"])));
    assert_eq!((&params["stdin"], &params["cwd"]), (&json!("in\u{fffd}"), &json!("/tmp")));
    assert_eq!((&params["env"]["V"], &params["env"]["HOME"]), (&json!("1"), &json!("/home/user")));
    answer(&mut client, id, json!({ "exitCode": 3, "stdout": "yes\n", "stderr": "but\n" })).await;
    let result = client.answer(run).await["result"].clone();
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("YES\n3\n"), &json!("but\n")));
    let help = client.stdout("ask --help").await;
    assert!(help.contains("ask - for the test") && help.contains("ask WORD"), "{help}");
    assert_eq!(client.stdout("type -p ask").await, "/usr/bin/ask\n");
}

#[tokio::test]
async fn answers_of_all_kinds() {
    let mut client = with_extension(json!({ "name": "ask", "hasCommand": true }), json!({})).await;
    let cases = [
        (json!({ "result": {} }), 0, ""),
        (json!({ "result": { "exitCode": -1 } }), 255, ""),
        (json!({ "result": { "exitCode": 256 } }), 0, ""),
        (json!({ "result": null }), 1, "ask: the client's answer is not an object\n"),
        (
            json!({ "result": { "exitCode": "0" } }),
            1,
            "ask: the client's answer: exitCode must be a whole number\n",
        ),
        (json!({ "result": { "stdout": 1 } }), 1, "ask: the client's answer: stdout must be a string\n"),
        (json!({ "error": { "code": -32603, "message": "out of order" } }), 1, "ask: out of order\n"),
        (json!({ "error": "?" }), 1, "ask: the client returned an error\n"),
    ];
    for (mut line, code, stderr) in cases {
        let run = client.send("run", json!({ "command": "ask" })).await;
        let (id, _) = client.answers.callback("extension.invoke").await;
        line["id"] = id;
        client.requests.line(line.to_string()).await;
        let result = client.answer(run).await["result"].clone();
        assert_eq!((&result["exitCode"], &result["stderr"]), (&json!(code), &json!(stderr)), "{line}");
    }
}

#[tokio::test]
async fn many_calls_at_once_are_not_mixed_up() {
    let mut client = with_extension(json!({ "name": "ask" }), json!({})).await;
    let script = "for i in 1 2 3 4 5 6 7 8; do { ask $i > $i; } & done; wait; cat 1 2 3 4 5 6 7 8";
    let run = client.send("run", json!({ "command": script })).await;
    let mut calls = BTreeMap::new();
    for _ in 0..8 {
        let (id, params) = client.answers.callback("extension.invoke").await;
        assert!(calls.insert(id.as_str().unwrap().to_owned(), params["args"][0].clone()).is_none());
    }
    for (id, arg) in calls.into_iter().rev() {
        let text = format!("<{}>", arg.as_str().unwrap());
        answer(&mut client, json!(id), json!({ "stdout": text })).await;
    }
    assert_eq!(client.answer(run).await["result"]["stdout"], "<1><2><3><4><5><6><7><8>");
}

#[tokio::test]
async fn a_call_ends_with_its_run_and_a_late_answer_is_ignored() {
    let mut client = with_extension(json!({ "name": "ask" }), json!({ "timeoutMs": 300 })).await;
    let run = client.send("run", json!({ "command": "ask" })).await;
    let (late, _) = client.answers.callback("extension.invoke").await;
    assert_eq!(client.answer(run).await["result"]["errorClass"], "TIMEOUT");
    let run = client.send("run", json!({ "command": "ask", "timeoutMs": 0 })).await;
    let (cancelled, _) = client.answers.callback("extension.invoke").await;
    client.call("cancel", json!({})).await;
    assert_eq!(client.answer(run).await["result"]["errorClass"], "CANCELLED");
    let run = client.send("run", json!({ "command": "ask", "timeoutMs": 0 })).await;
    let (id, _) = client.answers.callback("extension.invoke").await;
    for old in [late, cancelled] {
        answer(&mut client, old, json!({ "stdout": "late" })).await;
    }
    answer(&mut client, id, json!({ "stdout": "in time" })).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "in time");
}

#[tokio::test]
async fn a_client_that_leaves_instead_of_answering() {
    let mut client = with_extension(json!({ "name": "ask" }), json!({})).await;
    client.send("run", json!({ "command": "ask" })).await;
    client.answers.callback("extension.invoke").await;
    client.leave().await;
}

#[tokio::test]
async fn other_requests_are_served_while_a_call_waits() {
    let mut client = with_extension(json!({ "name": "ask" }), json!({})).await;
    let run = client.send("run", json!({ "command": "ask; cat f" })).await;
    let (id, _) = client.answers.callback("extension.invoke").await;
    client.call("files.write", json!({ "path": "f", "data": base64("meanwhile") })).await;
    let other = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    client.call("run", json!({ "command": "true", "sandboxId": other })).await;
    answer(&mut client, id, json!({})).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "meanwhile");
}

#[tokio::test]
async fn a_client_may_list_its_extensions_itself() {
    let mut client = with_extension(json!({ "name": "extensions" }), json!({})).await;
    let run = client.send("run", json!({ "command": "extensions list" })).await;
    let (id, params) = client.answers.callback("extension.invoke").await;
    assert_eq!(params["args"], json!(["list"]));
    answer(&mut client, id, json!({ "stdout": "ours" })).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "ours");
}

#[tokio::test]
async fn packages_of_extensions_are_files() {
    let package = json!({ "version": "1.2", "summary": "s", "files": { "tool/__init__.py": "x = 1\n" } });
    let spec = json!({ "name": "tool", "hasCommand": false, "pythonPackage": package });
    let mut client = with_extension(spec, json!({})).await;
    assert_eq!(client.stdout("cat /usr/lib/python3/site-packages/tool/__init__.py").await, "x = 1\n");
    assert_eq!(client.call("run", json!({ "command": "tool" })).await["exitCode"], 127);
}

#[tokio::test]
async fn a_sandbox_goes_to_the_clients_storage_and_comes_back() {
    let mut client = Client::created(json!({ "storage": true })).await;
    let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    client.call("run", json!({ "command": "x=kept; echo file > f", "sandboxId": fork })).await;
    let on_fork = json!({ "sandboxId": fork });
    assert_eq!(
        client.failure("rehydrate", on_fork.clone()).await,
        (-32602, "the sandbox is not offloaded".into())
    );

    let offload = client.send("offload", on_fork.clone()).await;
    let (id, saved) = client.answers.callback("storage.save").await;
    answer(&mut client, id, Value::Null).await;
    assert_eq!(client.answer(offload).await["result"], json!({ "ok": true }));
    let away = client.failure("run", json!({ "command": "true", "sandboxId": fork })).await;
    assert_eq!(away, (1, "EBUSY: the sandbox is offloaded: call rehydrate first".into()));
    assert_eq!(client.stdout("echo root is here").await, "root is here\n");

    let rehydrate = client.send("rehydrate", on_fork.clone()).await;
    let (id, wanted) = client.answers.callback("storage.load").await;
    assert_eq!(wanted, json!({ "sandbox_id": saved["sandbox_id"] }));
    answer(&mut client, id, saved["state"].clone()).await;
    assert_eq!(client.answer(rehydrate).await["result"], json!({ "ok": true }));
    let run = json!({ "command": "echo $x; cat f", "sandboxId": fork });
    assert_eq!(client.call("run", run).await["stdout"], "kept\nfile\n");
}

#[tokio::test]
async fn a_storage_that_fails_loses_nothing() {
    let mut client = Client::created(json!({ "storage": true })).await;
    client.stdout("x=kept").await;
    let offload = client.send("offload", json!({})).await;
    let (id, saved) = client.answers.callback("storage.save").await;
    let error = json!({ "id": id, "error": { "code": 1, "message": "disk full" } });
    client.requests.line(error.to_string()).await;
    let refused = client.answer(offload).await["error"].clone();
    assert_eq!((&refused["code"], &refused["message"]), (&json!(1), &json!("EIO: storage.save: disk full")));
    assert_eq!(client.stdout("echo $x").await, "kept\n", "it is still here");

    let offload = client.send("offload", json!({})).await;
    let (id, _) = client.answers.callback("storage.save").await;
    answer(&mut client, id, Value::Null).await;
    client.answer(offload).await;
    for bad in [Value::Null, json!("not base64!"), json!(base64("not a state"))] {
        let rehydrate = client.send("rehydrate", json!({})).await;
        let (id, _) = client.answers.callback("storage.load").await;
        answer(&mut client, id, bad.clone()).await;
        assert!(client.answer(rehydrate).await["error"]["code"].is_i64(), "{bad}");
    }
    let rehydrate = client.send("rehydrate", json!({})).await;
    let (id, _) = client.answers.callback("storage.load").await;
    answer(&mut client, id, saved["state"].clone()).await;
    client.answer(rehydrate).await;
    assert_eq!(client.stdout("echo $x").await, "kept\n");
}
