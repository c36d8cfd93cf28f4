//! Who waits for whom.

use serde_json::{Value, json};
use wardian_server::Options;

use crate::support::{Client, base64, decode};

#[tokio::test]
async fn requests_right_behind_create_wait_for_it() {
    let mut client = Client::new(Options::default());
    let create = client.send("create", json!({})).await;
    let write = client.send("files.write", json!({ "path": "f", "data": base64("x") })).await;
    let run = client.send("run", json!({ "command": "cat f" })).await;
    let fork = client.send("sandbox.create", json!({})).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "x");
    for id in [create, write, fork] {
        assert!(client.answer(id).await.get("result").is_some());
    }
}

#[tokio::test]
async fn runs_of_one_sandbox_go_in_the_order_of_their_lines() {
    let mut client = Client::created(json!({})).await;
    let mut runs = Vec::new();
    for number in 0..50 {
        runs.push(client.send("run", json!({ "command": format!("echo {number} >> order") })).await);
    }
    let last = client.send("run", json!({ "command": "cat order" })).await;
    let expected: String = (0..50).map(|number| format!("{number}\n")).collect();
    assert_eq!(client.answer(last).await["result"]["stdout"], expected);
    // The answers come in that order, too.
    let mut answered = Vec::new();
    for _ in &runs {
        answered.push(client.answers.next().await.unwrap()["id"].as_u64().unwrap());
    }
    assert_eq!(answered, runs);
}

#[tokio::test]
async fn file_calls_go_in_the_order_of_their_lines_and_before_later_runs() {
    let mut client = Client::created(json!({})).await;
    for number in 0..20 {
        for text in ["first", "second", &number.to_string()] {
            client.send("files.write", json!({ "path": "f", "data": base64(text) })).await;
        }
        let run = client.send("run", json!({ "command": "cat f; echo run > f" })).await;
        assert_eq!(client.answer(run).await["result"]["stdout"], number.to_string());
    }
}

#[tokio::test]
async fn file_calls_act_while_a_command_runs() {
    let mut client = Client::created(json!({})).await;
    let run = client.send("run", json!({ "command": "until [ -e go ]; do sleep 0.01; done; cat go" })).await;
    client.call("files.mkdir", json!({ "path": "d" })).await;
    client.call("files.write", json!({ "path": "d/f", "data": base64("x") })).await;
    assert_eq!(decode(&client.call("files.read", json!({ "path": "d/f" })).await["data"]), b"x");
    client.call("shell.history.list", json!({})).await;
    client.call("files.write", json!({ "path": "go", "data": base64("went") })).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "went");
}

#[tokio::test]
async fn fork_snapshot_export_env_and_mount_wait_for_the_run() {
    let mut client = Client::created(json!({})).await;
    let run = client.send("run", json!({ "command": "until [ -e go ]; do sleep 0.01; done; x=after" })).await;
    let mut waiting = Vec::new();
    for (method, params) in [
        ("env.get", json!({ "name": "x" })),
        ("sandbox.fork", json!({})),
        ("snapshot.create", json!({})),
        ("persistence.export", json!({})),
        ("mount", json!({ "path": "/m", "files": {} })),
    ] {
        waiting.push(client.send(method, params).await);
    }
    // This answer comes at once, and before any of theirs.
    let write = client.send("files.write", json!({ "path": "go", "data": "" })).await;
    assert_eq!(client.answers.next().await.unwrap()["id"], write);
    assert_eq!(client.answers.next().await.unwrap()["id"], run);
    assert_eq!(client.answer(waiting[0]).await["result"]["value"], "after");
    let fork = client.answer(waiting[1]).await["result"]["sandboxId"].clone();
    for id in &waiting[2..] {
        assert!(client.answer(*id).await.get("result").is_some());
    }
    let run = json!({ "command": "echo $x", "sandboxId": fork });
    assert_eq!(client.call("run", run).await["stdout"], "after\n");
}

#[tokio::test]
async fn a_long_run_delays_no_other_sandbox() {
    let mut client = Client::created(json!({})).await;
    let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    let endless = client.send("run", json!({ "command": "while :; do :; done", "sandboxId": fork })).await;
    assert_eq!(client.stdout("echo here").await, "here\n");
    let other = client.call("sandbox.create", json!({})).await["sandboxId"].clone();
    let run = json!({ "command": "echo there", "sandboxId": other });
    assert_eq!(client.call("run", run).await["stdout"], "there\n");
    assert_eq!(client.call("sandbox.destroy", json!({ "sandboxId": fork })).await, json!({ "ok": true }));
    assert_eq!(client.answer(endless).await["result"]["errorClass"], "CANCELLED");
}

#[tokio::test]
async fn cancel_ends_the_run_whose_turn_it_is_and_no_other() {
    let mut client = Client::created(json!({})).await;
    for command in ["sleep 100", "while :; do :; done", "cat | cat", "read x < /dev/tty; sleep 100 & wait"] {
        let run = client.send("run", json!({ "command": format!("{command}; sleep 100") })).await;
        let next = client.send("run", json!({ "command": "echo next" })).await;
        let cancel = client.send("cancel", json!({})).await;
        assert_eq!(client.answer(cancel).await["result"], json!({ "ok": true, "cancelled": true }));
        let result = client.answer(run).await["result"].clone();
        assert_eq!(
            (&result["exitCode"], &result["errorClass"]),
            (&json!(125), &json!("CANCELLED")),
            "{command}"
        );
        assert!(result["stderr"].as_str().unwrap().ends_with("wardian: cancelled\n"));
        assert_eq!(client.answer(next).await["result"]["stdout"], "next\n", "{command}");
    }
    let cancelled = client.call("cancel", json!({})).await;
    assert_eq!(cancelled, json!({ "ok": true, "cancelled": false }), "nothing runs");
    assert_eq!(client.stdout("echo on").await, "on\n", "and nothing was kept for later");
}

#[tokio::test]
async fn a_runs_clock_starts_when_it_does() {
    let mut client = Client::created(json!({})).await;
    let first = client.send("run", json!({ "command": "sleep 3" })).await;
    let second = client.send("run", json!({ "command": "echo in time", "timeoutMs": 2000 })).await;
    assert_eq!(client.answer(first).await["result"]["exitCode"], 0);
    assert_eq!(client.answer(second).await["result"]["stdout"], "in time\n");
}

#[tokio::test]
async fn a_suspended_run_stands_still_and_can_be_ended() {
    let mut client = Client::created(json!({})).await;
    let count = "i=0; while :; do i=$((i+1)); echo $i > count; done";
    let run = client.send("run", json!({ "command": count, "timeoutMs": 0 })).await;
    while client.ask("files.read", json!({ "path": "count" })).await.get("result").is_none() {}
    client.call("sandbox.suspend", json!({})).await;
    let read = json!({ "path": "count" });
    let stopped: Value = client.call("files.read", read.clone()).await;
    for _ in 0..50 {
        assert_eq!(client.call("files.read", read.clone()).await, stopped);
    }
    client.call("sandbox.resume", json!({})).await;
    while client.call("files.read", read.clone()).await == stopped {}
    client.call("sandbox.suspend", json!({})).await;
    assert_eq!(client.call("cancel", json!({})).await["cancelled"], true);
    assert_eq!(client.answer(run).await["result"]["exitCode"], 125);
    client.call("sandbox.resume", json!({})).await;
    assert_eq!(client.stdout("echo on").await, "on\n");
}

#[tokio::test]
async fn what_waits_in_a_destroyed_sandbox_is_answered() {
    let mut client = Client::created(json!({})).await;
    let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(client.send("run", json!({ "command": "sleep 100", "sandboxId": fork })).await);
    }
    let env = client.send("env.get", json!({ "name": "x", "sandboxId": fork })).await;
    client.call("sandbox.destroy", json!({ "sandboxId": fork })).await;
    for id in runs {
        let result = client.answer(id).await["result"].clone();
        assert_eq!((&result["exitCode"], &result["errorClass"]), (&json!(125), &json!("CANCELLED")));
        assert_eq!(result["stderr"], "wardian: cancelled\n");
    }
    assert_eq!(client.answer(env).await["error"]["code"], -32602);
}

#[tokio::test]
async fn a_client_that_does_not_read_makes_the_guest_wait() {
    let mut client = Client::created(json!({ "limits": { "stdoutBytes": 1u64 << 40 } })).await;
    let run = client.send("run", json!({ "command": "yes", "stream": true, "timeoutMs": 0 })).await;
    // Time for hundreds of megabytes, if somebody kept them.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    client.send("cancel", json!({})).await;
    let (mut streamed, mut result) = (0, None);
    while result.is_none() {
        let message = client.answers.next().await.unwrap();
        streamed += message["params"]["data"].as_str().map_or(0, str::len);
        result = (message["id"] == run).then(|| message["result"].clone());
    }
    assert!(0 < streamed && streamed < 32 << 20, "{streamed} bytes lay between the guest and its client");
    assert_eq!(result.unwrap()["stdout"].as_str().unwrap().len() + "wardian: cancelled\n".len(), streamed);
}

#[tokio::test]
async fn kill_ends_all_and_answers_all() {
    let mut client = Client::created(json!({})).await;
    let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    let first = client.send("run", json!({ "command": "sleep 100" })).await;
    let second = client.send("run", json!({ "command": "while :; do :; done", "sandboxId": fork })).await;
    let kill = client.send("kill", json!({})).await;
    for id in [first, second] {
        assert_eq!(client.answer(id).await["result"]["errorClass"], "CANCELLED");
    }
    assert_eq!(client.answer(kill).await["result"], json!({ "ok": true }));
    assert_eq!(client.answers.next().await, None, "and then it is gone");
    client.serving.take().unwrap().await.unwrap();
}
