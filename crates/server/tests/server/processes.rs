//! Processes beside the shell, over the protocol.

use serde_json::{Value, json};

use crate::support::{Client, base64, decode};

/// What a process says, up to its end: its streams, and the end.
async fn listen(client: &mut Client, id: &Value) -> (Vec<u8>, Value) {
    let mut heard = Vec::new();
    loop {
        let message = client.answers.told().await;
        let params = &message["params"];
        assert_eq!(&params["processId"], id, "{message}");
        match message["method"].as_str() {
            Some("process.output") => {
                let data = decode(&params["data"]);
                let acknowledged = json!({ "processId": id, "bytes": data.len() });
                heard.extend(data);
                let ack = client.send("process.ack", acknowledged).await;
                client.answer(ack).await;
            }
            Some("process.exit") => return (heard, params.clone()),
            _ => panic!("{message}"),
        }
    }
}

async fn start(client: &mut Client, params: Value) -> Value {
    client.call("process.start", params).await["processId"].clone()
}

#[tokio::test]
async fn a_process_is_started_written_to_and_waited_for_while_a_command_runs() {
    let mut client = Client::created(json!({})).await;
    let run = client.send("run", json!({ "command": "mkfifo /tmp/f; cat /tmp/f" })).await;
    let id = start(
        &mut client,
        json!({ "command": "cat; echo $X >&2; exit 4", "stdin": true, "env": { "X": "err" } }),
    )
    .await;
    let list = client.call("process.list", json!({})).await;
    assert_eq!(list["processes"][0]["processId"], id);
    assert_eq!(list["processes"][0]["pty"], false);
    client.call("process.write", json!({ "processId": id, "data": base64("one ") })).await;
    client.call("process.write", json!({ "processId": id, "data": base64("two\n") })).await;
    client.call("process.closeStdin", json!({ "processId": id })).await;
    let (heard, end) = listen(&mut client, &id).await;
    assert_eq!(heard, b"one two\nerr\n");
    assert_eq!(end["exitCode"], 4);
    let waited = client.call("process.wait", json!({ "processId": id })).await;
    assert_eq!((&waited["exitCode"], &waited["signal"]), (&json!(4), &Value::Null));
    assert_eq!(client.call("process.list", json!({})).await, json!({ "processes": [] }));
    let late = client.failure("process.write", json!({ "processId": id, "data": "" })).await;
    assert!(late.1.starts_with("ESRCH"), "{late:?}");
    let free = start(
        &mut client,
        json!({ "argv": ["bash", "-c", "until [ -p /tmp/f ]; do sleep 0.01; done; echo free > /tmp/f"] }),
    )
    .await;
    listen(&mut client, &free).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "free\n");
    client.leave().await;
}

/// Waits until the process has said this, and nothing else.
async fn hear(client: &mut Client, id: &Value, expected: &[u8]) {
    let mut heard = Vec::new();
    while heard.len() < expected.len() {
        let message = client.answers.told().await;
        assert_eq!((&message["method"], &message["params"]["processId"]), (&json!("process.output"), id));
        let data = decode(&message["params"]["data"]);
        let ack = client.send("process.ack", json!({ "processId": id, "bytes": data.len() })).await;
        client.answer(ack).await;
        heard.extend(data);
    }
    assert_eq!(heard, expected);
}

#[tokio::test]
async fn a_reader_that_is_killed_takes_nothing_of_what_is_written_along() {
    let mut client = Client::created(json!({})).await;
    let readers = json!({ "command": "timeout 0.2 cat; echo --; cat", "stdin": true });
    let id = start(&mut client, readers).await;
    let write = |text: &str| json!({ "processId": id, "data": base64(text) });
    client.call("process.write", write("one\n")).await;
    hear(&mut client, &id, b"one\n").await;
    // The first cat is gone, and what it was waiting for has not come yet.
    hear(&mut client, &id, b"--\n").await;
    client.call("process.write", write("two\n")).await;
    client.call("process.closeStdin", json!({ "processId": id })).await;
    let (heard, end) = listen(&mut client, &id).await;
    assert_eq!((heard, &end["exitCode"]), (b"two\n".to_vec(), &json!(0)));
    client.leave().await;
}

#[tokio::test]
async fn output_waits_for_the_client_and_all_of_it_arrives() {
    let mut client = Client::created(json!({})).await;
    let command = "head -c 3000000 /dev/zero | tr '\\0' x; echo done > /tmp/done";
    let id = start(&mut client, json!({ "command": command })).await;
    client.call("run", json!({ "command": "sleep 0.2" })).await;
    let early = client.ask("files.stat", json!({ "path": "/tmp/done" })).await;
    assert!(early.get("error").is_some(), "three megabytes were sent before anyone acknowledged them");
    let (heard, end) = listen(&mut client, &id).await;
    assert_eq!((heard.len(), &end["exitCode"]), (3_000_000, &json!(0)));
    client.leave().await;
}

#[tokio::test]
async fn a_terminal_can_be_resized_and_a_process_killed_and_both_end_with_their_sandbox() {
    let mut client = Client::created(json!({})).await;
    let pty = json!({ "command": "size() { python3 -c 'import os; print(*os.get_terminal_size(0))'; }; trap size WINCH; echo ready; while :; do sleep 0.01; done", "pty": { "rows": 10, "columns": 20 } });
    let id = start(&mut client, pty).await;
    let ready = client.answers.told().await;
    assert_eq!(
        (&ready["params"]["stream"], decode(&ready["params"]["data"])),
        (&json!("pty"), b"ready\r\n".to_vec())
    );
    client.call("process.resize", json!({ "processId": id, "rows": 11, "columns": 22 })).await;
    let size = client.answers.told().await;
    assert_eq!(decode(&size["params"]["data"]), b"22 11\r\n");
    client.call("process.signal", json!({ "processId": id, "signal": "KILL" })).await;
    let (_, end) = listen(&mut client, &id).await;
    assert_eq!((&end["exitCode"], &end["signal"]), (&json!(137), &json!(9)));
    let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
    let id = start(&mut client, json!({ "sandboxId": fork, "command": "while :; do :; done" })).await;
    client.call("sandbox.destroy", json!({ "sandboxId": fork })).await;
    assert_eq!(listen(&mut client, &id).await.1["signal"], 9);
    client.leave().await;
}

#[tokio::test]
async fn invalid_process_requests_are_refused_by_name() {
    let mut client = Client::created(json!({})).await;
    let loops = start(&mut client, json!({ "command": "sleep 1000", "stdin": true })).await;
    let refused = [
        ("process.start", json!({}), "needs a command, or an argv"),
        ("process.start", json!({ "command": "a", "argv": ["a"] }), "needs a command, or an argv"),
        ("process.start", json!({ "argv": [] }), "needs a command, or an argv"),
        (
            "process.start",
            json!({ "command": "a", "stdinn": true }),
            "Unknown param: stdinn (did you mean stdin?)",
        ),
        (
            "process.start",
            json!({ "command": "a", "pty": { "rows": 0, "columns": 1 } }),
            "pty.rows must be a number from 1 to 4096",
        ),
        ("process.start", json!({ "command": "x".repeat(70_000) }), "E2BIG"),
        ("process.start", json!({ "argv": ["no-such-program"] }), "ENOENT"),
        ("process.write", json!({ "processId": "99", "data": "" }), "Unknown processId: 99"),
        (
            "process.write",
            json!({ "processId": loops, "data": base64(vec![0; (1 << 20) + 1]) }),
            "at most 1048576 bytes",
        ),
        (
            "process.signal",
            json!({ "processId": loops, "signal": "NONE" }),
            "signal must be the name of a signal",
        ),
        ("process.resize", json!({ "processId": loops, "rows": 1, "columns": 1 }), "ENOTTY"),
        ("process.ack", json!({ "processId": loops, "bytes": 1 }), "more than the client was sent"),
    ];
    for (method, params, message) in refused {
        let (_, said) = client.failure(method, params.clone()).await;
        assert!(said.contains(message), "{method} {params}: {said}");
    }
    // A process that reads nothing is sent no more than it may have waiting.
    let megabyte = json!({ "processId": loops, "data": base64(vec![0; 1 << 20]) });
    client.send("process.write", megabyte.clone()).await;
    let (_, said) = client.failure("process.write", megabyte).await;
    assert!(said.starts_with("EAGAIN"), "{said}");
    client.leave().await;
}

#[tokio::test]
async fn a_client_has_a_maximum_number_of_processes() {
    let mut client = Client::created(json!({ "limits": { "processes": 1000 } })).await;
    for _ in 0..256 {
        start(&mut client, json!({ "argv": ["sleep", "1000"] })).await;
    }
    let (_, said) = client.failure("process.start", json!({ "argv": ["sleep", "1000"] })).await;
    assert_eq!(said, "EAGAIN: a client has at most 256 processes");
    client.leave().await;
}

#[tokio::test]
async fn small_calls_do_what_they_say() {
    let mut client = Client::new(wardian_server::Options::default());
    let capabilities = client.call("capabilities", json!({})).await;
    assert!(capabilities["methods"].as_array().unwrap().contains(&json!("process.start")));
    client.call("create", json!({})).await;
    client.call("files.write", json!({ "path": "/tmp/a", "data": base64("content"), "mode": 0o640 })).await;
    client.call("files.copy", json!({ "path": "/tmp/a", "to": "/tmp/b" })).await;
    client.call("files.rename", json!({ "path": "/tmp/b", "to": "/tmp/c" })).await;
    client.call("files.symlink", json!({ "path": "/tmp/link", "target": "c" })).await;
    client.call("files.chmod", json!({ "path": "/tmp/c", "mode": 0o600 })).await;
    let shown = client.stdout("cd /tmp; ls; cat link; stat -c ' %a' a c; export A=1 B=2; false").await;
    assert_eq!(shown, "a\nc\nlink\ncontent 640\n 600\n");
    client.call("env.unset", json!({ "name": "A" })).await;
    assert_eq!(client.stdout("echo $? ${A-none} $B; readonly B").await, "1 none 2\n");
    assert!(client.failure("env.unset", json!({ "name": "B" })).await.1.starts_with("EPERM"));
    let usage = client.call("usage", json!({})).await;
    assert!(usage["fsBytes"].as_u64().unwrap() >= 14 && usage["processes"] == 1, "{usage}");
    assert_eq!(client.call("isRunning", json!({})).await, json!({ "running": false }));
    let (first, second) = (
        client.send("run", json!({ "command": "sleep 1000" })).await,
        client.send("run", json!({ "command": "echo not me" })).await,
    );
    assert_eq!(client.call("isRunning", json!({})).await, json!({ "running": true }));
    let nobody = client.call("cancel", json!({ "requestId": 12345 })).await;
    assert_eq!(nobody["cancelled"], false);
    client.call("cancel", json!({ "requestId": second })).await;
    client.call("cancel", json!({ "requestId": first })).await;
    assert_eq!(client.answer(first).await["result"]["exitCode"], 125);
    assert_eq!(client.answer(second).await["result"]["exitCode"], 125);
    let rolled =
        json!({ "command": "echo x > /tmp/gone; sleep 1000", "timeoutMs": 50, "onKill": "rollback" });
    assert_eq!(client.call("run", rolled).await["exitCode"], 124);
    assert!(client.failure("files.stat", json!({ "path": "/tmp/gone" })).await.1.starts_with("ENOENT"));
    client.leave().await;
}
