//! What a run says: how each ending looks to a client, streamed and not.

use serde_json::{Value, json};

use crate::support::{Client, decode};

/// A command under some options, and what its result has; members that are not named must not be there.
struct Ending {
    options: Value,
    run: Value,
    exit_code: u8,
    stdout: &'static str,
    stderr_ends: &'static str,
    others: Value,
}

fn endings() -> Vec<Ending> {
    let ending = |options, run, exit_code, stdout, stderr_ends, others| Ending {
        options,
        run,
        exit_code,
        stdout,
        stderr_ends,
        others,
    };
    vec![
        ending(json!({}), json!({ "command": "echo fine; exit 7" }), 7, "fine\n", "", json!({})),
        ending(
            json!({ "timeoutMs": 100 }),
            json!({ "command": "echo begun; sleep 100" }),
            124,
            "begun\n",
            "wardian: timed out after 100 ms\n",
            json!({ "errorClass": "TIMEOUT" }),
        ),
        ending(
            json!({}),
            json!({ "command": "printf begun >&2; while :; do :; done", "timeoutMs": 150 }),
            124,
            "",
            "begun\nwardian: timed out after 150 ms\n",
            json!({ "errorClass": "TIMEOUT" }),
        ),
        ending(
            json!({ "limits": { "commandBytes": 10 } }),
            json!({ "command": "echo too long" }),
            1,
            "",
            "wardian: command too long (13 bytes, limit 10)\n",
            json!({ "errorClass": "LIMIT_EXCEEDED", "limit": "commandBytes" }),
        ),
        ending(
            json!({ "limits": { "stdoutBytes": 4 } }),
            json!({ "command": "echo aéé; echo whole >&2; exit 5" }),
            5,
            "aé",
            "whole\n",
            json!({ "truncated": { "stdout": true, "stderr": false }, "limit": "stdoutBytes" }),
        ),
        ending(
            json!({ "limits": { "stderrBytes": 3 } }),
            json!({ "command": "echo abcdef >&2" }),
            0,
            "",
            "abc",
            json!({ "truncated": { "stdout": false, "stderr": true }, "limit": "stderrBytes" }),
        ),
        ending(
            json!({ "security": { "toolAllowlist": ["cat"] } }),
            json!({ "command": "ls; echo $?; exit 9" }),
            9,
            "126\n",
            "wardian: tool not allowed: ls\n",
            json!({ "errorClass": "CAPABILITY_DENIED" }),
        ),
        ending(
            json!({ "limits": { "processes": 4 } }),
            json!({ "command": "for i in 1 2 3 4 5 6; do sleep 0.1 & done 2>/dev/null; wait; echo on" }),
            0,
            "on\n",
            "",
            json!({ "limit": "processes" }),
        ),
        ending(
            json!({ "fsLimitBytes": 1000 }),
            json!({ "command": "head -c 5000 /dev/zero > f 2> /dev/null; echo $?" }),
            0,
            "1\n",
            "",
            json!({ "limit": "fsLimitBytes" }),
        ),
        ending(
            json!({ "limits": { "fileCount": 1 } }),
            json!({ "command": "touch a; touch b 2> /dev/null; echo $?" }),
            0,
            "1\n",
            "",
            json!({ "limit": "fileCount" }),
        ),
        ending(
            json!({ "limits": { "openFiles": 16 } }),
            json!({ "command": "(for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do exec {fd}< /dev/null; done) 2> /dev/null; echo on" }),
            0,
            "on\n",
            "",
            json!({ "limit": "openFiles" }),
        ),
    ]
}

#[tokio::test]
async fn every_ending_is_reported_as_documented() {
    for ending in endings() {
        let mut client = Client::created(ending.options.clone()).await;
        for stream in [false, true] {
            let mut fresh = client.call("sandbox.fork", json!({})).await;
            let mut params = ending.run.clone();
            params["stream"] = json!(stream);
            params["sandboxId"] = fresh["sandboxId"].take();
            let mut result = client.call("run", params.clone()).await;
            let told = streamed(&mut client).await;
            if stream {
                assert_eq!(told.0, result["stdout"], "{params}");
                assert_eq!(told.1, result["stderr"], "{params}");
            } else {
                assert_eq!(told, (String::new(), String::new()), "{params}");
            }
            let members = result.as_object_mut().unwrap();
            assert!(members.remove("executionTimeMs").unwrap().as_f64().unwrap() >= 0.0);
            let stderr = members.remove("stderr").unwrap();
            assert!(stderr.as_str().unwrap().ends_with(ending.stderr_ends), "{params}: {stderr}");
            let mut expected = ending.others.clone();
            expected["exitCode"] = json!(ending.exit_code);
            expected["stdout"] = json!(ending.stdout);
            assert_eq!(result, expected, "{params}");
        }
    }
}

/// What was streamed so far: standard output and standard error.
async fn streamed(client: &mut Client) -> (String, String) {
    // An answer that comes after all of it.
    let marker = client.send("sandbox.list", json!({})).await;
    let (mut stdout, mut stderr) = (String::new(), String::new());
    loop {
        let message = client.answers.next().await.expect("a message");
        if message["id"] == marker {
            return (stdout, stderr);
        }
        assert_eq!(message["method"], "output", "{message}");
        assert!(message.get("id").is_none(), "{message}");
        let params = &message["params"];
        let stream = if params["stream"] == "stdout" { &mut stdout } else { &mut stderr };
        stream.push_str(params["data"].as_str().unwrap());
    }
}

#[tokio::test]
async fn memory_used_up_ends_what_cannot_go_on() {
    let mut client = Client::created(json!({ "limits": { "memoryBytes": 8 << 20 } })).await;
    let result =
        client.call("run", json!({ "command": "x=$(head -c 100000000 /dev/zero | tr '\\0' a)" })).await;
    assert_eq!(result["limit"], "memoryBytes", "{result}");
    assert_ne!(result["exitCode"], 0, "{result}");
    assert_eq!(client.stdout("echo on").await, "on\n");
}

#[tokio::test]
async fn output_comes_as_it_appears_and_whole() {
    let mut client = Client::created(json!({})).await;
    // Each piece must be here before the script can go on, which waits for the file that follows it.
    let script = "printf 'a\\xc3'; printf '\\xa9'; until [ -e go ]; do sleep 0.01; done; echo b >&2";
    let run = client.send("run", json!({ "command": script, "stream": true })).await;
    let mut text = String::new();
    while text != "aé" {
        let message = client.answers.next().await.unwrap();
        assert_eq!(message["params"]["request_id"], run);
        assert_eq!(message["params"]["stream"], "stdout");
        text += message["params"]["data"].as_str().unwrap();
        assert!("aé".starts_with(&text), "{text}");
    }
    client.call("files.write", json!({ "path": "go", "data": "" })).await;
    let message = client.answers.next().await.unwrap();
    assert_eq!(message["params"], json!({ "request_id": run, "stream": "stderr", "data": "b\n" }));
    let result = &client.answer(run).await["result"];
    assert_eq!((&result["stdout"], &result["stderr"]), (&json!("aé"), &json!("b\n")));
}

#[tokio::test]
async fn streamed_bytes_can_travel_as_base64() {
    let mut client = Client::created(json!({})).await;
    let params = json!({ "command": "printf '\\xff\\xfe'", "stream": true, "encoding": "base64" });
    assert_eq!(client.call("run", params).await["stdout"], "//4=");
    assert_eq!(streamed(&mut client).await.0, "//4=");
}

#[tokio::test]
async fn both_streams_are_sent_and_returned_in_the_order_of_their_writes() {
    let mut client = Client::created(json!({})).await;
    let command = "for i in 1 2 3; do echo out$i; echo err$i >&2; done";
    let said = "out1\nerr1\nout2\nerr2\nout3\nerr3\n";
    for _ in 0..5 {
        let id = client.send("run", json!({ "command": command, "stream": true, "output": true })).await;
        let (mut told, mut streams) = (String::new(), Vec::new());
        let result = loop {
            let message = client.answers.next().await.unwrap();
            if message["id"] == id {
                break message["result"].clone();
            }
            told.push_str(message["params"]["data"].as_str().unwrap());
            streams.push(message["params"]["stream"].as_str().unwrap().to_owned());
        };
        assert_eq!((told.as_str(), result["output"].as_str()), (said, Some(said)));
        assert_eq!(streams, ["stdout", "stderr"].repeat(3));
    }
    let result = client.call("run", json!({ "command": command })).await;
    assert!(result.get("output").is_none(), "only who asks for it gets it");
    let params = json!({ "command": command, "output": true, "encoding": "base64" });
    let result = client.call("run", params).await;
    assert_eq!(decode(&result["output"]), said.as_bytes());
    assert_eq!(decode(&result["stderr"]), b"err1\nerr2\nerr3\n");
    let (code, message) = client.failure("run", json!({ "command": "true", "output": "yes" })).await;
    assert_eq!((code, message.contains("output")), (-32602, true), "{message}");
}

#[tokio::test]
async fn the_place_of_a_cut_is_marked_streamed_or_not() {
    let mut client = Client::created(json!({ "limits": { "stdoutBytes": 6 } })).await;
    let command = "echo abc; echo one >&2; echo def; echo two >&2; echo ghi";
    let mark = "[wardian: stdout is longer than its limit and was cut here]\n";
    for stream in [false, true] {
        let params = json!({ "command": command, "output": true, "stream": stream });
        let result = client.call("run", params).await;
        assert_eq!(result["output"], format!("abc\none\nde\n{mark}two\n"));
        assert_eq!(result["stdout"], "abc\nde");
    }
}
