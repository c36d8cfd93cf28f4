//! What no client should send. None of it ends the server, nor another request.

use serde_json::{Value, json};

use crate::support::Client;

/// The error that answers a line.
async fn error(client: &mut Client, line: &[u8]) -> (Value, i64) {
    client.requests.line(line).await;
    let answer = client.answers.next().await.expect("an answer");
    (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}")))
}

#[tokio::test]
async fn lines_that_are_no_requests() {
    let mut client = Client::created(json!({})).await;
    let run =
        client.send("run", json!({ "command": "until [ -e go ]; do sleep 0.01; done; echo lived" })).await;
    let deep = ["[".repeat(100_000), "]".repeat(100_000)].concat();
    let deep_params =
        format!("{{\"id\":1,\"method\":\"run\",\"params\":{}1{}}}", "{\"a\":".repeat(5000), "}".repeat(5000));
    let cases: [(&[u8], Value, i64); 24] = [
        (b"hello", Value::Null, -32700),
        (b"{", Value::Null, -32700),
        (b"{\"id\":1,\"method\":\"run\"", Value::Null, -32700),
        (b"\xff\xfe\x00\x01", Value::Null, -32700),
        (b"{\"id\":1,\"method\":\"\xff\"}", Value::Null, -32700),
        (b"\0", Value::Null, -32700),
        (b"{\"id\":1e999,\"method\":\"run\"}", Value::Null, -32700),
        (b"{} {}", Value::Null, -32700),
        (deep.as_bytes(), Value::Null, -32700),
        (deep_params.as_bytes(), Value::Null, -32700),
        (b"1", Value::Null, -32600),
        (b"null", Value::Null, -32600),
        (b"\"run\"", Value::Null, -32600),
        (b"[]", Value::Null, -32600),
        (b"[{\"id\":1,\"method\":\"sandbox.list\"}]", Value::Null, -32600),
        (b"{}", Value::Null, -32600),
        (b"{\"id\":5}", json!(5), -32600),
        (b"{\"id\":5,\"method\":7}", json!(5), -32600),
        (b"{\"id\":{},\"method\":\"run\"}", Value::Null, -32600),
        (b"{\"id\":true,\"method\":\"run\"}", Value::Null, -32600),
        (b"{\"jsonrpc\":\"1.0\",\"id\":\"x\",\"method\":\"run\"}", json!("x"), -32600),
        (b"{\"id\":\"y\",\"method\":\"run\",\"params\":[1]}", json!("y"), -32602),
        (b"{\"id\":null,\"method\":\"nope\"}", Value::Null, -32601),
        (b"{\"id\":1.5,\"method\":\"\"}", json!(1.5), -32601),
    ];
    for (line, id, code) in cases {
        let shown = String::from_utf8_lossy(&line[..line.len().min(60)]).into_owned();
        assert_eq!(error(&mut client, line).await, (id, code), "{shown}");
    }
    client.call("files.write", json!({ "path": "go", "data": "" })).await;
    assert_eq!(client.answer(run).await["result"]["stdout"], "lived\n");
}

#[tokio::test]
async fn lines_that_are_not_answered() {
    let mut client = Client::created(json!({})).await;
    for line in [
        "",
        "   \t\r",
        r#"{"id":"cb_1","result":{}}"#,
        r#"{"id":"cb_99999999999999999999","error":{"code":1,"message":"x"}}"#,
        r#"{"id":7,"result":null}"#,
        r#"{"result":null}"#,
        r#"{"method":"no.such.method"}"#,
        r#"{"method":"run","params":{}}"#,
        r#"{"method":"run","params":[]}"#,
        r#"{"method":"python.run","params":{}}"#,
        r#"{"method":"python.run","params":{"code":"1","context":""}}"#,
        r#"{"method":"run","params":{"command":"echo told > told","stream":true}}"#,
    ] {
        client.requests.line(line).await;
    }
    let run = client.send("run", json!({ "command": "cat told" })).await;
    let next = client.answers.next().await.expect("an answer");
    assert_eq!(next["id"], run, "the first thing that is answered: {next}");
    assert_eq!(next["result"]["stdout"], "told\n", "a notification is done all the same");
}

#[tokio::test]
async fn lines_may_end_as_on_windows() {
    let mut client = Client::created(json!({})).await;
    client.requests.raw(b"{\"id\":\"w\",\"method\":\"sandbox.list\"}\r\n").await;
    assert_eq!(client.answers.to(&json!("w")).await["result"], json!([]));
}

#[tokio::test]
async fn a_line_that_is_too_long_is_dropped_and_the_next_is_taken() {
    let mut client = Client::created(json!({ "limits": { "rpcBytes": 2000 } })).await;
    // Of 100 MB nothing is kept: the pipe to the server holds 64 KiB.
    for length in [2001, 100_000, 100_000_000] {
        let piece = vec![b'x'; 1 << 20];
        let mut left: usize = length;
        while left > 0 {
            let count = left.min(piece.len());
            client.requests.raw(&piece[..count]).await;
            left -= count;
        }
        client.requests.raw(b"\n").await;
        let answer = client.answers.next().await.unwrap();
        assert_eq!(answer["id"], Value::Null);
        assert_eq!(answer["error"], json!({ "code": -32700, "message": "Request too large" }));
    }
    let padded = |length: usize| {
        let line = r#"{"id":"p","method":"sandbox.list"}"#;
        format!("{line}{}", " ".repeat(length - line.len()))
    };
    client.requests.line(padded(2000)).await;
    assert_eq!(client.answers.next().await.unwrap()["result"], json!([]), "just short enough");
    client.requests.line(padded(2001)).await;
    assert_eq!(client.answers.next().await.unwrap()["error"]["code"], -32700);
}

#[tokio::test]
async fn the_limit_on_lines_has_limits_itself() {
    for (asked, limit) in [(1u64, 1024), (1 << 40, 128 << 20)] {
        let mut client = Client::created(json!({ "limits": { "rpcBytes": asked } })).await;
        for (length, code) in [(limit, -32700), (limit + 1, -32700)] {
            client.requests.raw(&vec![b' '; length - 1]).await;
            client.requests.raw(b"x\n").await;
            let error = client.answers.next().await.unwrap()["error"].clone();
            assert_eq!(error["code"], code);
            assert_eq!(error["message"] == "Request too large", length > limit, "{error}");
        }
    }
}

#[tokio::test]
async fn half_a_line_and_the_end() {
    let mut client = Client::created(json!({})).await;
    client.requests.raw(b"{\"id\":1,\"method\":\"ru").await;
    client.leave().await;
}

#[tokio::test]
async fn the_end_while_everything_runs() {
    let mut client = Client::created(json!({})).await;
    for _ in 0..5 {
        let fork = client.call("sandbox.fork", json!({})).await["sandboxId"].clone();
        client.send("run", json!({ "command": "while :; do :; done", "sandboxId": fork })).await;
        client.send("run", json!({ "command": "yes", "stream": true, "sandboxId": fork })).await;
    }
    client.leave().await;
}

#[tokio::test]
async fn ten_thousand_requests_at_once() {
    const MANY: u64 = 10_000;
    let client = Client::created(json!({})).await;
    let Client { mut requests, mut answers, serving } = client;
    let sending = tokio::spawn(async move {
        for number in 0..MANY {
            let (method, params) = match number % 4 {
                0 => ("files.stat", json!({ "path": "/tmp" })),
                1 => ("env.get", json!({ "name": "HOME" })),
                2 => ("sandbox.list", json!({})),
                _ => ("no.such.method", json!({})),
            };
            requests.send_as(json!(format!("n{number}")), method, params).await;
        }
        requests
    });
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..MANY {
        let answer = answers.next().await.expect("an answer");
        let id = answer["id"].as_str().expect("an id").to_owned();
        let number: u64 = id[1..].parse().unwrap();
        match number % 4 {
            0 => assert_eq!(answer["result"]["type"], "dir"),
            1 => assert_eq!(answer["result"]["value"], "/home/user"),
            2 => assert_eq!(answer["result"], json!([])),
            _ => assert_eq!(answer["error"]["code"], -32601),
        }
        assert!(seen.insert(number), "{number} was answered twice");
    }
    drop(sending.await.unwrap());
    serving.unwrap().await.unwrap();
}

#[tokio::test]
async fn ten_thousand_requests_before_the_first_answer_is_read() {
    const MANY: u64 = 10_000;
    let mut client = Client::created(json!({})).await;
    for number in 0..MANY {
        let method = ["files.stat", "no.such.method"][number as usize % 2];
        client.requests.send_as(json!(number), method, json!({ "path": "/tmp" })).await;
    }
    let mut seen = vec![false; MANY as usize];
    for _ in 0..MANY {
        let answer = client.answers.next().await.expect("an answer");
        let number = answer["id"].as_u64().unwrap() as usize;
        assert!(!std::mem::replace(&mut seen[number], true), "{number} was answered twice");
    }
}

#[tokio::test]
async fn the_same_id_twice() {
    let mut client = Client::created(json!({})).await;
    for command in ["echo one", "echo two"] {
        client.requests.send_as(json!("same"), "run", json!({ "command": command })).await;
    }
    for expected in ["one\n", "two\n"] {
        assert_eq!(client.answers.to(&json!("same")).await["result"]["stdout"], expected);
    }
}

#[tokio::test]
async fn more_than_may_wait_is_refused_and_what_waits_is_served() {
    let mut client = Client::created(json!({})).await;
    let endless = client.send("run", json!({ "command": "while :; do :; done", "timeoutMs": 0 })).await;
    // Each holds 5 MB of input; a quarter of a gigabyte may wait.
    let stdin = "A".repeat(5 << 20);
    let (mut waiting, mut refused) = (Vec::new(), 0);
    while refused == 0 {
        waiting.push(client.send("run", json!({ "command": "wc -c", "stdin": stdin })).await);
        let marker = client.send("sandbox.list", json!({})).await;
        // What is refused is refused in the order of the lines: before the marker is answered.
        let first = client.answers.next().await.unwrap();
        if first["id"] != marker {
            assert_eq!(first["id"], waiting.pop().unwrap());
            assert_eq!(first["error"], json!({ "code": -32603, "message": "Too many requests are waiting" }));
            refused += 1;
            client.answer(marker).await;
        }
    }
    assert!(waiting.len() > 10, "only {} could wait", waiting.len());
    // The way out is open.
    assert_eq!(client.call("cancel", json!({})).await["cancelled"], true);
    assert_eq!(client.answer(endless).await["result"]["exitCode"], 125);
    for id in waiting {
        assert_eq!(client.answer(id).await["result"]["stdout"], "3932160\n");
    }
}
